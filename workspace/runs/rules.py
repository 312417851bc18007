"""What a run may stream, and when a person may stop it; pure."""

from __future__ import annotations

from core.decision import Allow, Code, Decision, Deny, deny

PIECE = 4096
"""Characters of one event at most."""
STREAMED = 64 * 1024
"""Characters of one run that are streamed; the log has the rest."""
KEPT = 1024 * 1024
"""Bytes of output that a log holds at most."""


def next_piece(text: str, sent: int) -> str:
    """What of a run's output is streamed next, after `sent` characters (Spec: hands 28)."""
    return text[sent : min(sent + PIECE, STREAMED)]


def stopped(run_id: int, reason: str, superior: str) -> Deny:
    """The refusal of work whose run was stopped: by a person, or with its agent's right to it."""
    return deny(
        Code.INVALID_TRANSITION,
        f"run {run_id} was stopped: {reason}",
        f"ask {superior} before you run it again",
        rule="people stop runs (spec: hands 29)",
    )


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
