"""From whoever calls to the hand that the rules know: an agent, or a person of the Board."""

from __future__ import annotations

from core.actors import Actor
from core.deeds import Deed, require_deed
from orgchart.compiling import current_policy
from orgchart.policy.compiled import Policy
from tasks.parties import Hand
from tasks.vocabulary import Enforcement
from toolbox.caller import Caller


def enforcement_of(policy: Policy) -> Enforcement:
    """The organisation's switch for role match and version (seed 001 §8.2)."""
    return Enforcement(policy.settings["enforcement"])


def hand_of(caller: Actor, deed: Deed = Deed.MANAGE_TASK) -> Hand:
    """The calling agent under its policy, or a person whose groups allow the deed.

    Raises Denied NOT_YOURS.
    """
    if isinstance(caller, Caller):
        return Hand(caller.policy, caller.agent)
    require_deed(caller, deed)
    return Hand(current_policy(caller.organisation_id))
