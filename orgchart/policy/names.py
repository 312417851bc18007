"""What a name that belongs to no agent is answered."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from core.decision import Code, Deny, deny

SHOWN = 64
"""Characters of a requested name that an answer repeats."""
LIKE = 0.75
"""How like a name must be to be suggested, from 0 to 1."""


def unknown_agent(
    name: str, next_action: str, *, code: Code = Code.NOT_FOUND, known: Collection[str] = ()
) -> Deny:
    """The refusal of a name that is no handle, address or alias here (Spec: mail 20).

    `known` are names that the caller may know: the one most like the name is suggested.
    """
    return deny(
        code,
        f"there is no agent {name[:SHOWN]!r} in this organisation{did_you_mean(name, known)}",
        next_action,
        rule="the agent exists (spec: mail 20)",
    )


def did_you_mean(name: str, known: Collection[str]) -> str:
    """The name most like a wrong one, as the end of a sentence; '' where none is like it."""
    close = get_close_matches(name[:SHOWN].lower(), sorted(known), n=1, cutoff=LIKE)
    return f"; did you mean {close[0]}?" if close else ""
