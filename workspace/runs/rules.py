"""What a run may stream, and when a person may stop it; pure."""

from __future__ import annotations

from core.decision import Allow, Code, Decision, deny

PIECE = 4096
"""Characters of one event at most."""
STREAMED = 64 * 1024
"""Characters of one run that are streamed; the log has the rest."""


def next_piece(text: str, sent: int) -> str:
    """What of a run's output is streamed next, after `sent` characters (Spec: hands 28)."""
    return text[sent : min(sent + PIECE, STREAMED)]


def can_stop(run_id: int, *, has_ended: bool, stopped_for: str) -> Decision:
    """Decide whether a run can still be stopped (Spec: hands 29)."""
    if has_ended or stopped_for:
        return deny(
            Code.INVALID_TRANSITION,
            f"run {run_id} has ended or is being stopped",
            "reload the page to see how it ended",
            rule="people stop runs (spec: hands 29)",
        )
    return Allow("people stop runs (spec: hands 29)")
