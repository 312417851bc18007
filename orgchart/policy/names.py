"""What a name that belongs to no agent is answered."""

from __future__ import annotations

from core.decision import Code, Deny, deny

SHOWN = 64
"""Characters of a requested name that an answer repeats."""


def unknown_agent(name: str, next_action: str, *, code: Code = Code.NOT_FOUND) -> Deny:
    """The refusal of a name that is no handle, address or alias here (Spec: mail 20)."""
    return deny(
        code,
        f"there is no agent {name[:SHOWN]!r} in this organisation",
        next_action,
        rule="the agent exists (spec: mail 20)",
    )
