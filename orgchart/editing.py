"""Editing single rows of the organisation by hand: one change of policy each, previewed first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Unpack

from django.db import IntegrityError, models
from django.db.models import ProtectedError

from core.actions import Action
from core.database import violated_constraint
from core.decision import Code, refuse, require
from core.permissions import Deed, require_deed
from orgchart.models import (
    Agent,
    Alias,
    ContactRule,
    Group,
    MailTypeRule,
    Organisation,
    Role,
    ToolOverride,
)
from orgchart.needed import rows_that_need
from orgchart.organisation_settings import merged, public
from orgchart.policy.hiring import no_active_superior
from orgchart.services import ChangeRequest, PolicyChange, change_policy
from orgchart.settings_rights import require_settings

LONGEST_RECORDED = 8000
"""Characters of one value in the event of a change."""
MOST_NAMED = 20
"""Of the rows that keep another one from being deleted, so many are named."""


class Table(NamedTuple):
    """How the ledger names a table's rows (`role.changed`), and the deed of editing them."""

    noun: str
    deed: Deed


TABLES: Mapping[type[models.Model], Table] = {
    Organisation: Table("organisation", Deed.EDIT_ORGANISATION),
    Role: Table("role", Deed.EDIT_ROLE),
    Group: Table("group", Deed.EDIT_GROUP),
    Agent: Table("agent", Deed.EDIT_AGENT),
    Alias: Table("alias", Deed.EDIT_ALIAS),
    MailTypeRule: Table("mail_type", Deed.EDIT_MAIL_TYPE),
    ContactRule: Table("contact", Deed.EDIT_CONTACT),
    ToolOverride: Table("override", Deed.RESTRICT_TOOL),
}


def subject_of(row: models.Model) -> str:
    """How the ledger names a row, the same before and after a change of it."""
    noun = TABLES[type(row)].noun
    if isinstance(row, Organisation):
        return f"{noun}:{row.slug}"
    return f"{noun}:{row}"


def save_row(
    *,
    row: models.Model,
    organisation_id: int,
    links: Mapping[str, Sequence[models.Model]] | None = None,
    **request: Unpack[ChangeRequest],
) -> PolicyChange:
    """Write one row, new or changed, as a change of policy; `links` are its many-to-many sides.

    Raises Denied: VERSION_MISMATCH when the policy moved on since it was read, INVALID_PARAMS for
    an empty reason, a broken invariant, or what a constraint of the database refuses.
    """
    caller, reason = request["caller"], request["reason"]
    require_deed(caller, TABLES[type(row)].deed, reason=reason)
    require_settings(caller, changed_settings(row), reason=reason)
    _require_active_superior(row)
    added = row.pk is None

    def apply(_organisation: Organisation) -> None:
        if isinstance(row, Organisation):
            row.save(update_fields=["name", "description", "settings"])
        else:
            row.save()
        for name, others in (links or {}).items():
            getattr(row, name).set(others)

    try:
        return change_policy(
            organisation_id=organisation_id,
            apply=apply,
            action=Action(f"{TABLES[type(row)].noun}.{'added' if added else 'changed'}"),
            subject=subject_of(row),
            details={"changed": _changed(row)},
            **request,
        )
    except IntegrityError as error:
        raise _constraint(error) from error


def _require_active_superior(row: models.Model) -> None:
    """Check that an agent is placed under an active one (Spec: organisation 49). Raises Denied.

    An agent whose superior was deactivated stays where it is until it is moved.
    """
    if not isinstance(row, Agent) or row.reports_to is None or row.reports_to.active:
        return
    before = Agent.objects.filter(pk=row.pk).values_list("reports_to_id", flat=True).first()
    if before != row.reports_to_id:
        require(no_active_superior(row.reports_to.handle))


def changed_settings(row: models.Model) -> frozenset[str]:
    """The names of the settings that saving the row changes."""
    if isinstance(row, Group):
        before = Group.objects.filter(pk=row.pk).values_list("member_delegation", flat=True)
        is_changed = row.member_delegation is not next(iter(before), False)
        return frozenset({"member_delegation"} if is_changed else ())
    if isinstance(row, Organisation):
        stored = merged(Organisation.objects.get(pk=row.pk).settings)
        wanted = merged(row.settings)
        return frozenset(name for name in stored if stored[name] != wanted[name])
    return frozenset()


def delete_row(
    *, row: models.Model, organisation_id: int, **request: Unpack[ChangeRequest]
) -> PolicyChange:
    """Take one row away as a change of policy. Agents are deactivated instead, never deleted.

    Raises Denied like `save_row`, and INVALID_PARAMS for a row that others still need.
    """
    require_deed(request["caller"], TABLES[type(row)].deed, reason=request["reason"])
    if isinstance(row, Agent | Organisation):
        raise refuse(
            Code.INVALID_PARAMS,
            f"{row} is never deleted: its mails and events stay",
            "deactivate it instead",
            rule="deactivated rather than deleted",
        )
    subject = subject_of(row)

    def apply(_organisation: Organisation) -> None:
        _require_unneeded(row)
        # A copy by primary key: a rolled-back preview leaves the caller's row as it was.
        _rows(row).get(pk=row.pk).delete()

    try:
        return change_policy(
            organisation_id=organisation_id,
            apply=apply,
            action=Action(f"{TABLES[type(row)].noun}.removed"),
            subject=subject,
            **request,
        )
    except ProtectedError as error:  # by a row that came meanwhile
        raise _kept(row) from error
    except IntegrityError as error:
        raise _constraint(error) from error


def _require_unneeded(row: models.Model) -> None:
    """Refuse to delete a row that others need. Raises Denied.

    What agents wrote is kept: no change of it would let the row go (Spec: groups 15).
    """
    needing = rows_that_need(row, MOST_NAMED)
    if not needing:
        return
    if not all(type(each) in TABLES for each in needing):
        raise _kept(row)
    raise refuse(
        Code.INVALID_PARAMS,
        f"{row} is still needed by {', '.join(sorted(str(each) for each in needing))}",
        "change those first",
        rule="nothing needs what is deleted",
    )


def _kept(row: models.Model) -> Exception:
    return refuse(
        Code.INVALID_PARAMS,
        f"{row} is not deleted: what was written in it is kept",
        "let its agents leave it: without them it gives no right",
        rule="nothing needs what is deleted",
    )


def changed_values(row: models.Model, names: Sequence[str]) -> list[tuple[str, Any, Any]]:
    """The (name, stored value, new value) of a row's named columns that differ from the table.

    They are kept and shown: of settings only what everybody may read.
    """
    stored = _rows(row).filter(pk=row.pk).first() if row.pk else None
    found = []
    for name in names:
        before = getattr(stored, name) if stored else None
        after = getattr(row, name)
        if before != after:
            if isinstance(row, Organisation) and name == "settings":
                before, after = public(before or {}), public(after)
            found.append((name, before, after))
    return found


def _changed(row: models.Model) -> dict[str, dict[str, str]]:
    """The columns that saving the row changes, as the ledger keeps them (Spec: people 59)."""
    columns = (field for field in row._meta.concrete_fields if not field.primary_key)  # noqa: SLF001  Django's public name
    return {
        name: {"before": _recorded(before), "after": _recorded(after)}
        for name, before, after in changed_values(row, [column.name for column in columns])
    }


def _recorded(value: Any) -> str:
    text = "" if value is None else str(value)
    more = len(text) - LONGEST_RECORDED
    return f"{text[:LONGEST_RECORDED]}… and {more} more characters" if more > 0 else text


def _rows(row: models.Model) -> models.QuerySet[Any]:
    """Every row of a row's table."""
    return type(row)._default_manager.all()  # noqa: SLF001  Django's public name


def _constraint(error: IntegrityError) -> Exception:
    name = violated_constraint(error) or "constraint"
    return refuse(
        Code.INVALID_PARAMS,
        f"the database refuses this: {name}",
        "something of that name or place exists already, or a value is out of its range",
        rule=str(name),
    )
