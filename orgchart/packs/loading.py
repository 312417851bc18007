"""Loading a pack into the database, and what loading it would change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction

from core.actions import Action
from core.actors import Person, System
from core.permissions import Deed, require_deed
from orgchart import staffing
from orgchart.compiling import compile_policy
from orgchart.models import Organisation
from orgchart.packs.checking import sound_pack
from orgchart.packs.layout import ORGANISATION, PROTOCOL, ROLES
from orgchart.packs.pack import Pack
from orgchart.packs.writing import write_pack
from orgchart.policy.compiled import Policy
from orgchart.policy.difference import Difference
from orgchart.services import PolicyChange, change_policy

NOTHING = Difference((), ())
GONE = "the pack has it no more"


class OtherOrganisation(ValueError):
    """A pack is compared with an organisation that is not its own."""


class _NothingToChange(Exception):
    """The organisation is what the pack says already."""


@dataclass(frozen=True, slots=True)
class PackDifference:
    """What loading a pack would do: rows it would write, and what that permits and forbids.

    `kept_deactivated` are agents of the pack that would stay deactivated.
    """

    rows: tuple[str, ...]
    difference: Difference
    kept_deactivated: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether loading would do nothing."""
        return not self.rows


def load_pack(
    directory: Path,
    *,
    caller: Person | System,
    now: datetime,
    preview: bool = False,
    organisation: str = "",
) -> PolicyChange:
    """Make an organisation what its pack says, whole or not at all, in one change of policy.

    A new organisation is created. In a live one agents keep their ids, keys and mail; who is gone
    from the pack is deactivated, hands what it holds to the next above it that stays, and is active
    again when a later pack has it. An agent that was deactivated otherwise stays so. Its settings
    are left alone: those of a pack are what a new organisation begins with. Tool restrictions of
    people stay; those of the pack are added and narrow what is there. An organisation that is what
    the pack says already gets no new version and no event (`changed` is False). `organisation`
    names that of a folder without organisation.yaml.

    Raises BadPack with every problem of the files, or Denied for what breaks an invariant together
    with what the organisation holds that is not in the pack.
    """
    require_deed(caller, Deed.LOAD_PACK)
    return _load(sound_pack(directory, organisation), caller, now, [], preview=preview)


def diff_pack(
    organisation: Organisation, directory: Path, *, caller: Person | System, now: datetime
) -> PackDifference:
    """What loading the pack over the organisation would change; nothing is changed.

    Raises BadPack, Denied, and OtherOrganisation where the names differ.
    """
    names_itself = any((directory / name).exists() for name in (ORGANISATION, ROLES, PROTOCOL))
    pack = sound_pack(directory, "" if names_itself else organisation.slug)
    if pack.organisation != organisation.slug:
        raise OtherOrganisation(
            f"{directory} is the pack of {pack.organisation}, not of {organisation.slug}"
        )
    rows: list[str] = []
    change = _load(pack, caller, now, rows, preview=True)
    return PackDifference(tuple(rows), change.difference, _kept_deactivated(pack, change.after))


def kept_deactivated(directory: Path, policy: Policy, organisation: str = "") -> tuple[str, ...]:
    """The agents of a loaded pack that stay deactivated in the policy it gave (Spec: packs 17)."""
    return _kept_deactivated(sound_pack(directory, organisation), policy)


def _kept_deactivated(pack: Pack, policy: Policy) -> tuple[str, ...]:
    active = (one.handle for one in pack.staff if one.active)
    return tuple(handle for handle in active if not policy.agents[handle].active)


def _load(
    pack: Pack, caller: Person | System, now: datetime, rows: list[str], *, preview: bool
) -> PolicyChange:
    with transaction.atomic():
        organisation, new = Organisation.objects.get_or_create(
            slug=pack.organisation, defaults={"name": pack.name, "policy_version": 0}
        )
        try:
            change = _apply_pack(organisation, pack, caller, now, rows, new=new, preview=preview)
        except _NothingToChange:
            policy = compile_policy(organisation.id)
            return PolicyChange(policy, NOTHING, changed=False)
        if preview:
            transaction.set_rollback(True)  # with it goes the row of a new organisation
        return change


def _lock(organisation: Organisation) -> None:
    """Lock the organisation, then its agents, whose work is locked after them.

    A call of an agent locks the agent before its work: no circle of locks can close.
    """
    Organisation.objects.select_for_update(no_key=True).get(id=organisation.id)
    list(organisation.agents.select_for_update(no_key=True).order_by("id").values_list("id"))


def _apply_pack(
    organisation: Organisation,
    pack: Pack,
    caller: Person | System,
    now: datetime,
    rows: list[str],
    *,
    new: bool,
    preview: bool,
) -> PolicyChange:
    caller = replace(caller, organisation_id=organisation.id)
    held: dict[str, Any] = {}
    if not new:
        _lock(organisation)
        staying = {one.handle for one in pack.staff if one.active}
        if organisation.agents.filter(active=True).exclude(handle__in=staying).exists():
            before = compile_policy(organisation.id)
            held = staffing.reassign_work_of_leavers(
                caller=caller, policy=before, staying=staying, reason=GONE, now=now
            )

    def apply(row: Organisation) -> None:
        rows[:] = write_pack(row, pack, new=new, by=caller.actor)
        if not rows:
            raise _NothingToChange

    return change_policy(
        organisation_id=organisation.id,
        apply=apply,
        caller=caller,
        action=Action.PACK_LOADED,
        now=now,
        preview=preview,
        new=new,
        details={"rows": rows, **({"holds": held} if held else {})},
    )
