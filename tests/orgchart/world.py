"""A small sound pack as text, its policy, and connections of one's own."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.actors import Person, System
from orgchart.models import Organisation
from orgchart.packs import load_pack, review_pack
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of
from orgchart.policy.compiled import Policy
from orgchart.services import PolicyChange

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
PACKS = Path(__file__).parents[2] / "packs"
SHIPPED = ("nexus", "dev-team", "soloqueue", "constitution")
LOADER = System(name="tests", organisation_id=0)

ACME = {
    "organisation.yaml": """\
organisation: acme
name: Acme
description: Makes everything.
settings: {enabled_modes: [chat_safe, coding], max_rounds: 5}
aliases:
  chief: boss
tool_restrictions:
  - {tool: web_search, role: lead, modes: [], reason: costs money}
""",
    "roles.yaml": """\
roles:
  boss:
    title: Boss
    level: 1
    kind: executive
    tools: [generate_contract, send_mail]
  lead:
    title: Lead
    level: 2
    kind: manager
    summary: Leads.
    tools: [send_mail, escalate, create_contract, read_code, web_search]
    task_lead: true
    permissions: {claim_task_type: [code_review], update_own_tasks: true}
  hand:
    title: Hand
    level: 3
    kind: worker
    tools: [send_mail, escalate, read_file, write_file, git_commit]
    denied_tools: [git_push]
    prohibitions: [Speak to the boss]
    files:
      read: [docs/]
      write: ["agents/{agent}/"]
      deny: [.env, "*.pem", secret/place/]
      contract: write
""",
    "mail-protocol.yaml": """\
types:
  info: {senders: all, description: News}
  report: {senders: [lead, hand]}
  contract: {senders: [boss, lead], issued_by: [generate_contract, create_contract]}
  escalation: {senders: [lead, hand], to: superior}
contacts:
  - {from: boss, to: lead}
  - {from: lead, to: boss}
  - {from: lead, to: hand, relation: own}
  - {from: hand, to: lead, types: [report, escalation], relation: own}
board:
  - {from: boss, types: [info]}
""",
    "groups/crew.yaml": """\
group: crew
name: Crew
context: All hands.
""",
    "agents/boss.yaml": "role: boss\ntitle: The Boss\nreports_to: board\n",
    "agents/lead.yaml": """\
role: lead
reports_to: boss
group: crew
name: leader
is_leader: true
""",
    "agents/other_lead.yaml": "role: lead\nreports_to: boss\n",
    "agents/hand_one.yaml": """\
role: hand
title: First Hand
reports_to: lead
co_managers: [other_lead]
group: crew
name: one
is_leader: false
skills: [juggling]
system_prompt: |
  You are handy.
  Be so.
job_description: Carries things.
""",
    "agents/hand_two.yaml": "role: hand\nreports_to: other_lead\n",
}


def write_pack(folder: Path, changes: Mapping[str, str | None] | None = None) -> Path:
    """The small pack in a folder, some files replaced or (None) left out."""
    for name, text in (ACME | dict(changes or {})).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text, encoding="utf-8")
    return folder


def edited(name: str, *pairs: tuple[str, str]) -> dict[str, str]:
    """One file of the small pack with words replaced, each of which must be there."""
    text = ACME[name]
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return {name: text}


def problems(folder, changes=None):
    """The problems as `(file, line, text)` with the file relative to the pack."""
    write_pack(folder, changes)
    return [
        (str(p.file).removeprefix(f"{folder}/"), p.line, f"{p.message}; {p.fix}")
        for p in review_pack(folder).problems
    ]


def acme_policy(folder: Path) -> Policy:
    """The small pack's policy, without a database."""
    return policy_of(sound_pack(write_pack(folder)))


def load(folder: Path, **options: Any) -> PolicyChange:
    return load_pack(folder, caller=LOADER, now=NOW, **options)


def person(organisation: Organisation) -> Person:
    return Person(
        username="alice",
        organisation_id=organisation.id,
        groups=frozenset({"Board", "HR"}),
        is_member=True,
    )


def plain(policy):
    """A policy without the numbers that a database gives."""
    return {
        "roles": policy.roles,
        "groups": policy.groups,
        "mail_types": policy.mail_types,
        "contacts": policy.contacts,
        "names": policy.names,
        "aliases": policy.aliases,
        "settings": policy.settings,
        "enabled_modes": policy.enabled_modes,
        "overrides": policy.tool_restrictions,
        "ceilings": policy.ceilings,
        "agents": {
            handle: {f: getattr(a, f) for f in a.__slots__ if f != "id"}
            for handle, a in policy.agents.items()
        },
    }


def queries(work: Callable[[], object]) -> int:
    """How many statements it takes."""
    with CaptureQueriesContext(connection) as seen:
        work()
    return len(seen)
