"""From an organisation's tables to the files of a pack; loading them gives the same policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from django.db import transaction

from core.files import UNFINISHED, filled
from orgchart import models
from orgchart.packs.layout import AGENTS, GROUPS, ORGANISATION, PROTOCOL, ROLES
from orgchart.packs.problems import Notes
from orgchart.packs.source import read_document
from orgchart.policy.vocabulary import BOARD, ContractScope, Relation

WIDTH = 100
ODD_BREAKS = frozenset("\r\x85\u2028\u2029\ufeff")
Files = dict[str, Mapping[str, Any]]


class NotAPack(ValueError):
    """The folder holds something else, or the pack of another organisation."""


class _Dumper(yaml.SafeDumper):
    """Plain YAML without aliases; lists indented below their key."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002  its base has them
        super().increase_indent(flow, False)


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    if not ODD_BREAKS.isdisjoint(value):  # only escapes keep these apart from a line's end
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def export_pack(organisation: models.Organisation, directory: Path) -> list[Path]:
    """Write the organisation as a pack and return the files; the same organisation, the same bytes.

    An older pack of the organisation in the folder is replaced. Nothing is lost: deactivated agents
    and tool restrictions are written, too; keys, mails and events are not part of a pack. A folder
    that it was killed in is no pack until the next export. Raises NotAPack for a folder with other
    content.
    """
    _require_place(directory, organisation)
    with transaction.atomic():
        row = models.Organisation.objects.select_for_update(no_key=True).get(id=organisation.id)
        files = _files(row)
    with filled(directory) as write:
        for name, content in files.items():
            text = yaml.dump(
                content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH
            )
            write(name, text.encode())
        written = [directory / name for name in files]
        for folder in (AGENTS, GROUPS):
            for stale in set((directory / folder).glob("*.yaml")) - set(written):
                stale.unlink()
    return written


def _require_place(directory: Path, organisation: models.Organisation) -> None:
    if not directory.exists():
        return
    if directory.is_dir() and {path.name for path in directory.iterdir()} <= {UNFINISHED}:
        return
    document = read_document(directory / ORGANISATION, Notes())
    if document is None:
        raise NotAPack(f"{directory} is not empty and holds no pack; name another folder")
    there = document.data.get("organisation")
    if there != organisation.slug:
        raise NotAPack(
            f"{directory} holds the pack of {there or 'no organisation'}; name another folder"
        )


def _files(row: models.Organisation) -> Files:
    files: Files = {
        ORGANISATION: _organisation(row),
        ROLES: {"roles": {r.name: _role(r) for r in row.roles.order_by("level", "name")}},
        PROTOCOL: _protocol(row),
    }
    for group in row.groups.order_by("slug"):
        files[f"{GROUPS}/{group.slug}.yaml"] = {
            "group": group.slug,
            "name": group.name,
            "context": group.context,
            "member_delegation": group.member_delegation,
        }
    agents = row.agents.select_related("role", "reports_to", "group").order_by("handle")
    for agent in agents.prefetch_related("co_managers"):
        files[f"{AGENTS}/{agent.handle}.yaml"] = _agent(agent)
    return files


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Only what differs from what an absent key means."""
    return {key: value for key, value in values.items() if value not in ("", [], {}, None, False)}


def _organisation(row: models.Organisation) -> dict[str, Any]:
    aliases = row.aliases.select_related("agent").order_by("alias")
    return {
        "organisation": row.slug,
        "name": row.name,
        **_given({"description": row.description}),
        "settings": dict(sorted(row.settings.items())),
        "aliases": {alias.alias: alias.agent.handle for alias in aliases},
        **_given({"tool_restrictions": [_tool_restriction(r) for r in _tool_restrictions(row)]}),
    }


def _tool_restrictions(row: models.Organisation) -> list[models.ToolOverride]:
    found = row.overrides.select_related("role", "agent")
    return sorted(found, key=lambda t: (t.tool, str(t.role or ""), str(t.agent or "")))


def _tool_restriction(row: models.ToolOverride) -> dict[str, Any]:
    return {
        "tool": row.tool,
        **_given({"agent": row.agent and row.agent.handle, "role": row.role and row.role.name}),
        "modes": sorted(row.modes),
        **_given({"reason": row.reason}),
    }


def _role(row: models.Role) -> dict[str, Any]:
    files = {"read": row.files_read, "write": row.files_write, "deny": row.files_deny}
    return {
        "title": row.title,
        "level": row.level,
        "kind": row.kind,
        **_given({"summary": row.summary}),
        "tools": sorted(row.tools),
        "denied_tools": sorted(row.denied_tools),
        "prohibitions": row.prohibitions,
        "files": {**files, "contract": ContractScope(row.files_contract).value},
        **_given(
            {
                "task_lead": row.task_lead,
                "permissions": row.permissions,
                "offices": sorted(row.offices),
            }
        ),
    }


def _protocol(row: models.Organisation) -> dict[str, Any]:
    contacts = [
        (c, c.recipient.name if c.recipient else BOARD)
        for c in row.contacts.select_related("sender", "recipient")
    ]
    contacts.sort(key=lambda pair: (pair[0].sender.name, pair[1]))
    return {
        "types": {t.name: _mail_type(t) for t in row.mail_types.order_by("name")},
        "contacts": [
            _contact(c, {"from": c.sender.name, "to": to}) for c, to in contacts if to != BOARD
        ],
        "board": [_contact(c, {"from": c.sender.name}) for c, to in contacts if to == BOARD],
    }


def _mail_type(row: models.MailTypeRule) -> dict[str, Any]:
    return {
        "senders": "all" if row.senders is None else sorted(row.senders),
        **_given({"issued_by": row.issued_by, "to": "superior" if row.to_superior else ""}),
        **_given({"description": row.description}),
    }


def _contact(row: models.ContactRule, ends: dict[str, Any]) -> dict[str, Any]:
    return {
        **ends,
        **({} if row.types is None else {"types": sorted(row.types)}),
        **_given({"needs_contract": row.needs_contract}),
        **({} if row.relation == Relation.ANY else {"relation": Relation(row.relation).value}),
    }


def _agent(row: models.Agent) -> dict[str, Any]:
    return {
        "role": row.role.name,
        **_given({"title": row.title}),
        **({} if row.active else {"active": False}),
        "reports_to": row.reports_to.handle if row.reports_to else BOARD,
        **_given(
            {
                "co_managers": sorted(other.handle for other in row.co_managers.all()),
                "group": row.group.slug if row.group else "",
                "name": row.name if row.group else "",
            }
        ),
        **({"is_leader": row.is_leader} if row.group else {}),
        **_given(
            {
                "skills": sorted(row.skills),
                "system_prompt": row.system_prompt,
                "job_description": row.job_description,
            }
        ),
    }
