"""Writing the agents of a pack: rows stay, places change, who is gone is deactivated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from core.actions import Action
from ledger.history import last_event
from orgchart import models
from orgchart.packs.pack import Pack, Staff
from orgchart.policy.vocabulary import BOARD

Note = Callable[[str, str, str, Iterable[str]], None]

IN_OR_OUT = (Action.AGENT_ACTIVATED, Action.AGENT_DEACTIVATED)

PLACE = {"group_id": None, "name": "", "is_leader": False}
AT_ONCE = 200
"""Rows of one INSERT or UPDATE: a statement takes 65,535 values at most."""


def write_staff(
    organisation: models.Organisation,
    pack: Pack,
    roles: Mapping[str, models.Role],
    groups: Mapping[str, models.Group],
    note: Note,
) -> None:
    """Make the agents what the pack says, except that none deactivated otherwise is activated.

    Names and leaders are unique in a group, so every place that changes is left before any is
    taken.
    """
    rows = {row.handle: row for row in organisation.agents.all()}
    for row in rows.values():
        row.skills = sorted(row.skills)
    added = [one for one in pack.staff if one.handle not in rows]
    rows |= _add(organisation, added, roles)
    wanted = {one.handle: _values(one, roles, groups, rows) for one in pack.staff}
    for handle in _kept_deactivated(organisation, pack, rows):
        wanted[handle] |= {"active": False, "is_leader": False}
    taken = {(v["group_id"], v["name"]) for v in wanted.values() if v["group_id"]}
    kept_groups = {group.id for group in groups.values()}
    for handle, row in rows.items():
        if handle not in wanted:
            wanted[handle] = _values_of_removed(row, taken, kept_groups)
    fresh = {one.handle for one in added}
    changed = {
        handle: columns
        for handle, values in wanted.items()
        if (columns := [c for c, value in values.items() if getattr(rows[handle], c) != value])
    }
    _leave_places(rows, changed)
    _write(rows, wanted, changed)
    co_managed = _write_co_managers(rows, pack)
    for handle in sorted(fresh | changed.keys() | co_managed):
        if handle in fresh:
            note("added", "agent", handle, ())
        else:
            columns = changed.get(handle, [])
            more = ["co_managers"] if handle in co_managed else []
            note(_verb(rows[handle], columns), "agent", handle, [*columns, *more])


def _kept_deactivated(
    organisation: models.Organisation, pack: Pack, rows: Mapping[str, models.Agent]
) -> list[str]:
    """The pack's agents that a person or HR's agent deactivated: activating one gives rights.

    Who activates it is asked for a second person; a pack is not (Spec: packs 17, people 30).
    """
    inactive = [one.handle for one in pack.staff if one.active and not rows[one.handle].active]
    last = {
        handle: last_event(f"agent:{handle}", organisation.id, action__in=IN_OR_OUT)
        for handle in inactive
    }
    return [h for h, event in last.items() if event and event.action == Action.AGENT_DEACTIVATED]


def _verb(row: models.Agent, columns: list[str]) -> str:
    if "active" not in columns:
        return "changed"
    return "activated" if row.active else "deactivated"


def _add(
    organisation: models.Organisation, added: list[Staff], roles: Mapping[str, models.Role]
) -> dict[str, models.Agent]:
    """Insert agents with handle and role only: their superiors may be among them."""
    rows = [
        models.Agent(organisation=organisation, handle=one.handle, role=roles[one.role])
        for one in added
    ]
    inserted = models.Agent.objects.bulk_create(rows, batch_size=AT_ONCE)
    return {row.handle: row for row in inserted}


def _values(
    one: Staff,
    roles: Mapping[str, models.Role],
    groups: Mapping[str, models.Group],
    rows: Mapping[str, models.Agent],
) -> dict[str, Any]:
    return {
        "role_id": roles[one.role].id,
        "title": one.title,
        "active": one.active,
        "reports_to_id": None if one.reports_to == BOARD else rows[one.reports_to].id,
        "group_id": groups[one.group].id if one.group else None,
        "name": one.name,
        "is_leader": one.is_leader,
        "skills": sorted(one.skills),
        "system_prompt": one.system_prompt,
        "job_description": one.job_description,
    }


def _values_of_removed(
    row: models.Agent, taken: set[tuple[int, str]], groups: set[int]
) -> dict[str, Any]:
    """Deactivated; the place in its group is kept while no other agent has it.

    Its keys stay: they do not work while it is deactivated, and work again when a later pack
    activates it.
    """
    values: dict[str, Any] = {"active": False, "is_leader": False}
    if row.group_id is not None and (
        row.group_id not in groups or (row.group_id, row.name) in taken
    ):
        values |= PLACE
    return values


def _leave_places(rows: Mapping[str, models.Agent], changed: Mapping[str, list[str]]) -> None:
    moving = [rows[handle].id for handle, columns in changed.items() if PLACE.keys() & set(columns)]
    models.Agent.objects.filter(id__in=moving).update(**PLACE)


def _write(
    rows: Mapping[str, models.Agent],
    wanted: Mapping[str, Mapping[str, Any]],
    changed: Mapping[str, list[str]],
) -> None:
    columns: set[str] = set()
    for handle, names in changed.items():
        columns.update(names)
        for name in names:
            setattr(rows[handle], name, wanted[handle][name])
    if changed:
        fields = sorted({column.removesuffix("_id") for column in columns | PLACE.keys()})
        touched = [rows[handle] for handle in changed]
        models.Agent.objects.bulk_update(touched, fields, batch_size=AT_ONCE)


def _write_co_managers(rows: Mapping[str, models.Agent], pack: Pack) -> set[str]:
    """Set the co-managers; the handles whose co-managers changed."""
    through = models.Agent.co_managers.through
    ids = {row.id: handle for handle, row in rows.items()}
    present: dict[str, set[str]] = {}
    pairs = through.objects.filter(from_agent_id__in=ids)
    for managed, manager in pairs.values_list("from_agent_id", "to_agent_id"):
        present.setdefault(ids[managed], set()).add(ids[manager])
    changed = set()
    for one in pack.staff:
        if present.get(one.handle, set()) != set(one.co_managers):
            rows[one.handle].co_managers.set([rows[handle] for handle in one.co_managers])
            changed.add(one.handle)
    return changed
