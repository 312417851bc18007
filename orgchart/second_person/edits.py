"""An edit of one row as data: kept while it waits, applied again by the service that made it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any, Unpack

from django.db import models, transaction

from core.actors import Actor
from core.database import needs_transaction
from core.decision import Code, Denied, listed, refuse
from core.language import gettext_noop
from core.permissions import Deed, require_deed
from orgchart.editing import TABLES, delete_row, save_row, subject_of
from orgchart.leaders import replace_leader
from orgchart.models import Agent, Group, Organisation, ToolOverride
from orgchart.organisation_settings import merged
from orgchart.policy.instructions import instructions_given, words_given
from orgchart.second_person.rules import AS_SHOWN
from orgchart.services import ChangeRequest, PolicyChange, followed_settings, settings_previewed
from orgchart.settings_rights import require_settings
from orgchart.staffing import activate_agent
from orgchart.tool_restrictions import clear_tool_restriction, save_tool_restriction

INSTRUCTIONS = gettext_noop("instructions")
MOST_TOLD = 20
"""Agents and roles whose instructions a proposed change shows."""


class EditAct(StrEnum):
    """What is done to the row."""

    SAVE = gettext_noop("save")
    DELETE = gettext_noop("delete")
    ACTIVATE = gettext_noop("activate")
    LEAD = gettext_noop("replace leader of")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What one person's change writes: only the columns that differ, so that it overwrites no
    other change. `key` is None for a new row; `links` are the ids of its many-to-many sides;
    `found` is what the columns held when the change was proposed, `prompts` the system prompts then
    of the agents that get another place, by their ids as text, `told` the `instructions_given`.
    """

    act: EditAct
    table: str
    subject: str
    key: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    links: Mapping[str, list[int]] = field(default_factory=dict)
    found: Mapping[str, Any] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)

    def stored(self) -> dict[str, Any]:
        """The edit as JSON."""
        return asdict(self)


def edit_from(stored: Mapping[str, Any]) -> Edit:
    """The edit of a stored JSON."""
    return Edit(**{**stored, "act": EditAct(stored["act"])})


def saving(row: models.Model, links: Mapping[str, Sequence[models.Model]] | None = None) -> Edit:
    """The edit that saves a row as it is in memory."""
    before = type(row)._default_manager.filter(pk=row.pk).first() if row.pk else None  # noqa: SLF001
    columns = [f.attname for f in row._meta.concrete_fields if not f.primary_key]  # noqa: SLF001
    values = {name: getattr(row, name) for name in columns}
    if before is not None:
        values = {name: value for name, value in values.items() if getattr(before, name) != value}
    if isinstance(row, ToolOverride):
        values = {k: v for k, v in values.items() if k not in ("at", "set_by", "reason")}
    return Edit(
        act=EditAct.SAVE,
        table=type(row).__name__,
        subject=subject_of(row),
        key=row.pk,
        values=values,
        links={name: [other.pk for other in others] for name, others in (links or {}).items()},
        found={name: getattr(before, name) for name in values} if before is not None else {},
        prompts=_prompts(before),
    )


def _prompts(row: models.Model | None) -> dict[str, str]:
    return {str(row.pk): row.system_prompt} if isinstance(row, Agent) else {}


def deleting(row: models.Model) -> Edit:
    """The edit that deletes a row."""
    table = type(row).__name__
    return Edit(act=EditAct.DELETE, table=table, subject=subject_of(row), key=row.pk)


def replacing_leader(group: Group, leader: Agent) -> Edit:
    """The edit that saves a group and lets another member lead it."""
    edit = saving(group)
    prompts = _prompts(leader)
    return replace(edit, act=EditAct.LEAD, links={"leader": [leader.pk]}, prompts=prompts)


def activating(agent: Agent) -> Edit:
    """The edit that activates an agent again."""
    return Edit(
        act=EditAct.ACTIVATE,
        table="Agent",
        subject=subject_of(agent),
        key=agent.pk,
        prompts=_prompts(agent),
    )


def apply_edit(
    edit: Edit, *, organisation_id: int, **request: Unpack[ChangeRequest]
) -> PolicyChange:
    """Apply an edit by the service of its table. Raises Denied like that service, and NOT_FOUND.

    A preview is rolled back and follows no settings: it says what would be refused already.
    """
    if request.get("preview"):
        with transaction.atomic():
            seen = apply_followed(edit, organisation_id=organisation_id, **request)
            if values := _changed_settings(edit):
                settings_previewed(Organisation.objects.get(id=organisation_id), values)
        return seen
    caller, now, reason = request["caller"], request["now"], request["reason"]
    following = followed(
        edit, organisation_id=organisation_id, caller=caller, now=now, reason=reason
    )
    with following as take_effect, transaction.atomic():
        change = apply_followed(edit, organisation_id=organisation_id, **request)
        take_effect()
    return change


@contextmanager
def followed(
    edit: Edit, *, organisation_id: int, caller: Actor, now: datetime, reason: str
) -> Iterator[Callable[[], None]]:
    """Enter what the settings that an edit changes mean elsewhere, as `followed_settings`.

    Raises Denied, first for settings that the caller may not change (Spec: hands 22).
    """
    values = _changed_settings(edit)
    if not values:
        yield lambda: None
        return
    require_deed(caller, Deed.EDIT_ORGANISATION, reason=reason)
    require_settings(caller, values.keys(), reason=reason)
    organisation = Organisation.objects.get(id=organisation_id)
    with followed_settings(organisation, values, caller, now) as take_effect:
        yield take_effect


def _changed_settings(edit: Edit) -> dict[str, Any]:
    """The settings of its organisation that an edit changes, with their new values."""
    if edit.table != Organisation.__name__ or "settings" not in edit.values:
        return {}
    before, after = (merged(columns["settings"]) for columns in (edit.found, edit.values))
    return {name: value for name, value in after.items() if value != before[name]}


@needs_transaction
def apply_followed(
    edit: Edit, *, organisation_id: int, **request: Unpack[ChangeRequest]
) -> PolicyChange:
    """Apply an edit whose settings were followed before. Raises Denied like `apply_edit`.

    The row is read under the lock of every change of policy: what a rule compares it with, and the
    columns that the edit leaves alone, are those that are stored then (Spec: people 8).
    """
    Organisation.objects.select_for_update(no_key=True).filter(id=organisation_id).first()
    row = _row_of(edit, organisation_id)
    if isinstance(row, ToolOverride):
        if edit.act is EditAct.DELETE:
            return clear_tool_restriction(restriction=row, **request)
        return save_tool_restriction(row=row, **request)
    match edit.act:
        case EditAct.ACTIVATE:
            return activate_agent(handle=str(row), **request)
        case EditAct.LEAD:
            leader = Agent.objects.get(pk=edit.links["leader"][0], organisation_id=organisation_id)
            assert isinstance(row, Group)  # noqa: S101  narrows the type
            return replace_leader(group=row, leader=leader, **request)
        case EditAct.DELETE:
            return delete_row(row=row, organisation_id=organisation_id, **request)
        case EditAct.SAVE:
            links = _links_of(row, edit.links, organisation_id)
            return save_row(row=row, organisation_id=organisation_id, links=links, **request)


def _row_of(edit: Edit, organisation_id: int) -> models.Model:
    """The row as it is now, with the edit's columns set in memory."""
    model = next(table for table in TABLES if table.__name__ == edit.table)
    row: models.Model | None
    if edit.key is None:
        row = model()
    else:
        own = "pk" if edit.table == "Organisation" else "organisation_id"
        found = model._default_manager.filter(pk=edit.key)  # noqa: SLF001  Django's public name
        row = found.filter(**{own: organisation_id}).first()
    if row is None:
        raise _gone(f"{edit.subject} no longer exists")
    _require_as_found(row, edit)
    _require_prompts(edit, organisation_id)
    for name, value in edit.values.items():
        setattr(row, name, value)
    _require_named_rows(row, edit)
    return row


def _gone(problem: str) -> Denied:
    return refuse(Code.NOT_FOUND, problem, "propose the change again", rule="the row exists")


def _require_named_rows(row: models.Model, edit: Edit) -> None:
    """Check that the rows that the edit's columns name exist: a role or a group may have been
    deleted since it was proposed. Raises Denied NOT_FOUND.
    """
    for column in row._meta.concrete_fields:  # noqa: SLF001  Django's public name
        key = edit.values.get(column.attname)
        if key is None or not isinstance(column, models.ForeignKey):
            continue
        if not column.related_model._default_manager.filter(pk=key).exists():  # noqa: SLF001  as above
            raise _gone(f"{edit.subject} names a role, group or agent that no longer exists")


def _require_as_found(row: models.Model, edit: Edit) -> None:
    """Check that no column of the edit changed since it was proposed (Spec: people 29).

    Raises Denied VERSION_MISMATCH. Not every column gives a right, so the difference can be the one
    shown while the edit would put back what another person changed.
    """
    changed = [name for name, value in edit.found.items() if getattr(row, name) != value]
    if changed:
        raise refuse(
            Code.VERSION_MISMATCH,
            f"{edit.subject} changed since this was proposed: {', '.join(changed)}",
            "propose the change again",
            rule=AS_SHOWN,
        )


def _require_prompts(edit: Edit, organisation_id: int) -> None:
    """Check that the agents of the edit are instructed as when it was proposed (Spec: people 29).

    A prompt gives no right, and so one person changes it alone; but who confirms that an agent gets
    a place has read what it is told to do there. Raises Denied VERSION_MISMATCH.
    """
    agents = Agent.objects.filter(organisation_id=organisation_id, pk__in=edit.prompts)
    told = [a.handle for a in agents if a.system_prompt != edit.prompts[str(a.pk)]]
    if told:
        raise refuse(
            Code.VERSION_MISMATCH,
            f"{edit.subject} changed since this was proposed: system_prompt of {', '.join(told)}",
            "propose the change again",
            rule=AS_SHOWN,
        )


def require_told(edit: Edit, change: PolicyChange) -> None:
    """Check that who orders changes by an applied edit is told what it was when it was proposed.

    Raises Denied VERSION_MISMATCH (Spec: people 29, people 60).
    """
    told = told_by(change)
    others = sorted({who for who, _ in told.items() ^ edit.told.items()})
    if others:
        raise refuse(
            Code.VERSION_MISMATCH,
            f"{edit.subject} changed since this was proposed: instructions of {listed(others)}",
            "propose the change again",
            rule=AS_SHOWN,
        )


def told_by(change: PolicyChange) -> dict[str, str]:
    """The `instructions_given` of a change."""
    return {} if change.before is None else instructions_given(change.before, change.after)


def words_told(edit: Edit, change: PolicyChange) -> list[tuple[str, str, str]]:
    """What who confirms an edit has to read, as columns of it: the words of `told_by`, and the
    system prompts of the agents that get another place; of more than MOST_TOLD the names.
    """
    if change.before is None:
        return []
    told = words_given(change.before, change.after)
    for key, prompt in edit.prompts.items():
        placed = change.after.by_id.get(int(key))
        if placed is not None and prompt:
            told.setdefault(placed.handle, prompt)
    lines = [f"{who}: {words or '–'}" for who, words in islice(told.items(), MOST_TOLD)]
    if left := list(told)[MOST_TOLD:]:
        lines.append(listed(left))
    return [(INSTRUCTIONS, "–", line) for line in lines]


def _links_of(
    row: models.Model, links: Mapping[str, list[int]], organisation_id: int
) -> dict[str, list[models.Model]]:
    found = {}
    for name, ids in links.items():
        model = row._meta.get_field(name).related_model  # noqa: SLF001  Django's public name
        assert isinstance(model, type)  # noqa: S101  narrows the type
        rows = model._default_manager.filter(id__in=ids, organisation_id=organisation_id)  # noqa: SLF001
        found[name] = list(rows)
    return found
