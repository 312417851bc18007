"""Who changes which settings of an organisation (Spec: people 13)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from core.actors import Actor, Person
from core.decision import Code, refuse
from core.permissions import Deed, require_deed
from orgchart.organisation_settings import SETTINGS

BOARDS = SETTINGS.keys() | {"member_delegation"}  # the last is a group's
INSTALLATIONS = frozenset({"repository", "allow_internal_addresses"})
"""They reach this machine's files, keys and network, which other organisations share."""


def require_settings(caller: Actor, names: AbstractSet[str], *, reason: str) -> None:
    """Raise Denied NOT_YOURS for settings that this person may not change."""
    if not BOARDS.isdisjoint(names):
        require_deed(caller, Deed.SET_BOARD_SETTINGS, reason=reason)
    is_elsewhere = isinstance(caller, Person) and not caller.is_member_of_all
    if is_elsewhere and not INSTALLATIONS.isdisjoint(names):
        raise refuse(
            Code.NOT_YOURS,
            f"You may not change this setting: {', '.join(sorted(INSTALLATIONS & names))}",
            "ask a member of the Board who is a member of every organisation",
            rule="what reaches the machine and its network is the installation's (spec: people 13)",
        )
