"""How long a superior may take to answer an escalation; pure."""

from __future__ import annotations

from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.vocabulary import BOARD


def seconds_to_answer(superior: Agent | None, policy: Policy) -> int:
    """The top agent has its own time (Spec: escalation 11, 13)."""
    is_top = superior is not None and superior.superior == BOARD
    seconds: int = policy.settings["ceo_timeout" if is_top else "escalation_timeout"]
    return seconds
