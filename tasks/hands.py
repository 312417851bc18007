"""From whoever calls to the hand that the rules know: an agent, or a person of the Board."""

from __future__ import annotations

from core.actors import Actor, Person
from core.decision import Code, refuse
from orgchart.compiling import current_policy
from orgchart.policy.compiled import Policy
from tasks.parties import Hand
from tasks.vocabulary import Enforcement
from toolbox.caller import Caller

BOARD_DESK = "Board"


def enforcement_of(policy: Policy) -> Enforcement:
    """The organisation's switch for role match and version (seed 001 §8.2)."""
    return Enforcement(policy.settings["enforcement"])


def hand_of(caller: Actor) -> Hand:
    """The calling agent under its policy, or a person with the right to change tasks.

    Raises Denied NOT_YOURS for a person who does not sit at the Board.
    """
    if isinstance(caller, Caller):
        return Hand(caller.policy, caller.agent)
    if isinstance(caller, Person) and BOARD_DESK not in caller.offices:
        raise refuse(
            Code.NOT_YOURS,
            f"{caller.username} does not sit at the Board, whose people change tasks",
            "ask somebody of the Board",
            rule="human roles",
        )
    return Hand(current_policy(caller.organisation_id))
