"""From a Pack to an organisation's tables, row by row; what is equal already is not touched."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any

from django.db.models import ProtectedError

from orgchart import models
from orgchart.needed import rows_that_need
from orgchart.packs.pack import Pack
from orgchart.packs.rows import Changes, delete_missing, differing, upsert
from orgchart.packs.staffing import write_staff
from orgchart.policy.compiled import Role
from orgchart.policy.vocabulary import BOARD, ContractScope

RETIRED: Mapping[str, Any] = {
    "tools": [],
    "denied_tools": [],
    "files_read": [],
    "files_write": [],
    "files_contract": ContractScope.NONE.value,
    "task_lead": False,
    "permissions": {},
    "offices": [],
}
"""What is left of a role that a pack no longer has while deactivated agents still hold it."""

RETIRED_GROUP: Mapping[str, Any] = {"context": "", "member_delegation": False}
"""What is left of a group that a pack no longer has while its memory has entries."""


def write_pack(organisation: models.Organisation, pack: Pack, *, new: bool, by: str) -> list[str]:
    """Make the organisation what the pack says; the sentences say what changed, none if nothing.

    Agents keep their rows, so their ids, keys and mail; who is gone from the pack is deactivated.
    Settings are written to a new organisation only. Tool restrictions are added, never removed.
    """
    changes = Changes()
    _write_organisation(organisation, pack, changes, new=new)
    roles = _write_roles(organisation, pack, changes)
    groups = _write_groups(organisation, pack, changes)
    write_staff(organisation, pack, roles, groups, changes.add)
    _write_aliases(organisation, pack, changes)
    _write_mail_types(organisation, pack, changes)
    _write_contacts(organisation, pack, roles, changes)
    _write_tool_restrictions(organisation, pack, roles, changes, by=by)
    _retire_roles(organisation, pack, changes)
    _remove_groups(organisation, pack, changes)
    return changes.lines


def _write_organisation(
    row: models.Organisation, pack: Pack, changes: Changes, *, new: bool
) -> None:
    values: dict[str, Any] = {"name": pack.name, "description": pack.description}
    if new:
        values["settings"] = dict(pack.settings)
    changed = differing(row, values)
    if new:
        changes.add("added", "organisation", row.slug)
    elif changed:
        changes.add("changed", "organisation", row.slug, changed)
    if changed:
        row.save(update_fields=changed)


def _role_values(role: Role) -> dict[str, Any]:
    return {
        "name": role.name,
        "title": role.title,
        "level": role.level,
        "kind": role.kind.value,
        "summary": role.summary,
        "tools": sorted(role.tools),
        "denied_tools": sorted(role.denied_tools),
        "prohibitions": list(role.prohibitions),
        "files_read": list(role.files.read),
        "files_write": list(role.files.write),
        "files_deny": list(role.files.deny),
        "files_contract": role.files.contract.value,
        "task_lead": role.task_lead,
        "permissions": dict(role.permissions),
        "offices": sorted(office.value for office in role.offices),
    }


def _write_roles(
    organisation: models.Organisation, pack: Pack, changes: Changes
) -> dict[str, models.Role]:
    rows = {row.name: row for row in organisation.roles.all()}
    wanted = {role.name: _role_values(role) for role in pack.roles}
    return upsert(partial(models.Role, organisation=organisation), rows, wanted, changes, "role")


def _write_groups(
    organisation: models.Organisation, pack: Pack, changes: Changes
) -> dict[str, models.Group]:
    rows = {row.slug: row for row in organisation.groups.all()}
    wanted = {group.slug: asdict(group) for group in pack.groups}
    return upsert(partial(models.Group, organisation=organisation), rows, wanted, changes, "group")


def _write_aliases(organisation: models.Organisation, pack: Pack, changes: Changes) -> None:
    agents = dict(organisation.agents.values_list("handle", "id"))
    rows = {row.alias: row for row in organisation.aliases.all()}
    wanted = {
        alias: {"alias": alias, "agent_id": agents[handle]}
        for alias, handle in pack.aliases.items()
    }
    upsert(partial(models.Alias, organisation=organisation), rows, wanted, changes, "alias")
    delete_missing(rows, wanted, changes, "alias")


def _names(values: frozenset[str] | None) -> list[str] | None:
    return None if values is None else sorted(values)


def _write_mail_types(organisation: models.Organisation, pack: Pack, changes: Changes) -> None:
    rows = {row.name: row for row in organisation.mail_types.all()}
    wanted = {
        rule.name: {
            "name": rule.name,
            "senders": _names(rule.senders),
            "issued_by": list(rule.issued_by),
            "to_superior": rule.to_superior,
            "description": rule.description,
        }
        for rule in pack.mail_types
    }
    new = partial(models.MailTypeRule, organisation=organisation)
    upsert(new, rows, wanted, changes, "mail type")
    delete_missing(rows, wanted, changes, "mail type")


def _write_contacts(
    organisation: models.Organisation,
    pack: Pack,
    roles: Mapping[str, models.Role],
    changes: Changes,
) -> None:
    rows = {str(row): row for row in organisation.contacts.select_related("sender", "recipient")}
    wanted = {
        f"{rule.sender} -> {rule.recipient}": {
            "sender_id": roles[rule.sender].id,
            "recipient_id": None if rule.recipient == BOARD else roles[rule.recipient].id,
            "types": _names(rule.types),
            "needs_contract": rule.needs_contract,
            "relation": rule.relation.value,
        }
        for rule in pack.contacts
    }
    new = partial(models.ContactRule, organisation=organisation)
    upsert(new, rows, wanted, changes, "contact")
    delete_missing(rows, wanted, changes, "contact")


def _write_tool_restrictions(
    organisation: models.Organisation,
    pack: Pack,
    roles: Mapping[str, models.Role],
    changes: Changes,
    *,
    by: str,
) -> None:
    """Add the pack's tool restrictions; an existing one loses modes, never gains any."""
    agents = {row.handle: row for row in organisation.agents.all()}
    for given in pack.tool_restrictions:
        restriction = given.restriction
        kind, _, name = restriction.scope.partition(":")
        row, added = models.ToolOverride.objects.get_or_create(
            organisation=organisation,
            tool=restriction.tool,
            role=roles[name] if kind == "role" else None,
            agent=agents[name] if kind == "agent" else None,
            defaults={
                "modes": sorted(mode.value for mode in restriction.modes),
                "set_by": by,
                "reason": given.reason,
            },
        )
        narrowed = sorted({mode.value for mode in restriction.modes} & set(row.modes))
        if added:
            changes.add("added", "tool restriction", f"{restriction.tool} for {restriction.scope}")
        elif sorted(row.modes) != narrowed:
            row.modes = narrowed
            row.save(update_fields=["modes"])
            changes.add(
                "changed",
                "tool restriction",
                f"{restriction.tool} for {restriction.scope}",
                ["modes"],
            )


def _retire_roles(organisation: models.Organisation, pack: Pack, changes: Changes) -> None:
    """Remove roles the pack no longer has; one that deactivated agents hold loses its powers."""
    kept = {role.name for role in pack.roles}
    held = set(organisation.agents.values_list("role_id", flat=True))
    for row in organisation.roles.exclude(name__in=kept):
        if row.id not in held:
            row.delete()
            changes.add("removed", "role", row.name)
            continue
        changed = differing(row, RETIRED)
        if changed:
            row.save(update_fields=changed)
            changes.add("retired", "role", row.name, changed)


def _remove_groups(organisation: models.Organisation, pack: Pack, changes: Changes) -> None:
    """Remove groups the pack no longer has; one whose memory is kept stays, and gives no right."""
    for row in organisation.groups.exclude(slug__in={group.slug for group in pack.groups}):
        if _delete_unless_kept(row):
            changes.add("removed", "group", row.slug)
            continue
        changed = differing(row, RETIRED_GROUP)
        if changed:
            row.save(update_fields=changed)
            changes.add("retired", "group", row.slug, changed)


def _delete_unless_kept(row: models.Group) -> bool:
    """Delete a group in which nothing is kept (Spec: groups 15); whether that was so."""
    if rows_that_need(row, 1):
        return False
    with suppress(ProtectedError):  # an entry came meanwhile
        row.delete()
        return True
    return False
