"""What one person changes alone gives nobody a right: every rule asked before and after it."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from random import sample

import pytest

from contracts.issuing.rules import can_issue
from contracts.vocabulary import ContractKind
from core.decision import Allow
from documents.rules import may_read_report, may_read_reports_of, may_read_shared
from governance.staff.rules import (
    can_give_role,
    can_manage,
    can_restrict_tools,
)
from mailroom.rules import Channel, can_attach, can_escalate_to, can_mail
from orgchart import catalogue
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import Pack, PackToolRestriction, Staff, policy_of
from orgchart.policy import invariants
from orgchart.policy.compiled import (
    Agent,
    ContactRule,
    FileScopes,
    MailTypeRule,
    Policy,
    Role,
    ToolRestriction,
)
from orgchart.policy.difference import between
from orgchart.policy.parties import BOARD_PARTY
from orgchart.policy.paths import can_touch
from orgchart.policy.readership import can_read_text, can_tell
from orgchart.policy.vocabulary import Access, ContractScope, Kind, Office, Relation
from tasks.rules.actors import lead_roles
from tasks.rules.ownership import can_take
from tasks.rules.visibility import can_require_role
from tests.company import PACKS
from toolbox.frames.rules import can_carry_result, can_delegate
from toolbox.registry import REGISTRY
from toolbox.rules import Holder, can_use

ORGANISATIONS = ("nexus", "soloqueue", "dev-team", "constitution")
FOLDERS = ("company/", "docs/", "src/", "reports/", "tests/", ".github/")
MOST = int(os.environ.get("NEXUS_VARIANTS", "300"))
"""Changes of each organisation that are tried: NEXUS has some thousands."""
NEW = "somebody_new"
"""An agent that is hired later: what a role or a rule gives it counts, too (Spec: people 9)."""


def paths_of(policy: Policy) -> tuple[str, ...]:
    """A file in each folder that a role names, and in each home."""
    scopes = {
        scope
        for role in policy.roles.values()
        for scope in (*role.files.read, *role.files.write, *role.files.deny)
    }
    found = set()
    for scope in {*scopes, *FOLDERS}:
        for handle in policy.agents if "{" in scope else ("",):
            path = scope.replace("{agent}", handle).replace("{worker}", handle)
            found.add(path.replace("*", "x") + ("file.md" if path.endswith("/") else ""))
    return tuple(sorted(found))


def rights_of(policy: Policy, paths: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
    """Everything that the rules allow, each as a tuple."""
    agents = [agent for agent in policy.agents.values() if agent.active]
    yield from (("leads tasks", name) for name in lead_roles(policy))
    for one in agents:
        yield from of_one(policy, one, paths)
        for other in agents:
            for right in of_pair(policy, one, other, paths[:4]):
                yield (one.handle, other.handle, *right)
        for kind in policy.mail_types:
            if isinstance(can_mail(one, BOARD_PARTY, kind, policy), Allow):
                yield one.handle, "board", kind


def of_one(policy: Policy, one: Agent, paths: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
    for tool, mode in product(REGISTRY.all(), policy.enabled_modes):
        if isinstance(can_use(tool, tool.name, Holder(one, policy, mode)), Allow):
            yield one.handle, tool.name, mode
    for right in touched(one, policy.roles[one.role].files, paths):
        yield (one.handle, *right)
    for role in policy.roles.values():
        if isinstance(can_require_role(policy, one, role.name), Allow):
            yield one.handle, "requires", role.name
        if isinstance(can_give_role(one, role, policy), Allow) and (
            role.tools & {"create_agent_jd", "update_org_chart"}
        ):
            yield one.handle, "gives", role.name
        for kind in ("bug", "feature"):
            if isinstance(can_take(policy, one, role.name, kind), Allow):
                yield one.handle, "takes", role.name, kind
    for office in policy.roles[one.role].offices:
        yield one.handle, office


@cache
def touched(one: Agent, files: FileScopes, paths: tuple[str, ...]) -> list[tuple[object, ...]]:
    """The paths that an agent may read or write, with a contract or without."""
    return [
        (path, access, scope)
        for path, access, scope in product(paths, Access, ((), ("src/",)))
        if isinstance(can_touch(path, access, agent=one, files=files, contract_scope=scope), Allow)
    ]


def of_pair(
    policy: Policy, one: Agent, other: Agent, paths: tuple[str, ...]
) -> Iterator[tuple[object, ...]]:
    open_to = Channel("C", one.id, other.id, frozenset(policy.mail_types))
    for kind, channels in product(policy.mail_types, ((), (open_to,))):
        if isinstance(can_mail(one, other, kind, policy, channels), Allow):
            yield "mails", kind, bool(channels)
    asked = {
        "reads": can_read_text(policy, other, one),
        "tells": can_tell(policy, one, other),
        "delegates": can_delegate(one, other, other.handle, policy),
        "carries": can_carry_result(other, one, policy),
        "attaches": can_attach(paths, one, other, policy),
    }
    found = {
        **{name: isinstance(decision, Allow) for name, decision in asked.items()},
        "escalates": one.superior == other.handle
        and isinstance(can_escalate_to(one, policy), Allow),
        "reads reports": may_read_reports_of(other, one, policy),
        "reads the report": may_read_report("reports/x.md", other, one, policy),
        "reads shared": may_read_shared(other, one, policy),
    }
    yield from ((name,) for name, is_so in found.items() if is_so)
    yield from of_office(policy, one, other)


def of_office(policy: Policy, one: Agent, other: Agent) -> Iterator[tuple[object, ...]]:
    """What an agent does to another with a tool of its role."""
    tools = policy.role_of(one).tools - policy.role_of(one).denied_tools
    for kind, tool in product(ContractKind, tools & {"create_contract", "generate_contract"}):
        if isinstance(can_issue(one, other, kind, tool, policy), Allow):
            yield "issues", kind, tool
    if "manage_tools" in tools and isinstance(can_restrict_tools(one, other), Allow):
        yield ("restricts",)
    if "update_org_chart" in tools and isinstance(can_manage(one, other, policy), Allow):
        yield ("manages",)


# What a person can change on one form


COLUMNS = {"role": "roles", "contact": "contacts", "type": "mail_types", "agent": "staff"}


def variants(pack: Pack) -> Iterator[tuple[str, Pack]]:
    """Each column of each row changed alone, to each of a few values; rows added and removed."""
    changes = {"role": of_role, "contact": of_contact, "type": of_type, "agent": of_agent}
    for word, column in COLUMNS.items():
        for at, row in enumerate(getattr(pack, column)):
            for name, changed in changes[word](row, pack):
                named = [getattr(row, key, "") for key in ("name", "handle", "sender", "recipient")]
                yield f"{word} {' '.join(named)} {name}", with_one(pack, column, at, changed)
    for at, group in enumerate(pack.groups):
        changed = replace(group, context="Other words.", name="Other")
        yield f"group {group.slug}", with_one(pack, "groups", at, changed)
    yield from with_new_rows(pack)


def with_new_rows(pack: Pack) -> Iterator[tuple[str, Pack]]:
    pairs = {(rule.sender, rule.recipient) for rule in pack.contacts}
    names = [role.name for role in pack.roles]
    for sender, recipient in {*product(names, names)} - pairs:
        rule = ContactRule(sender, recipient, types=frozenset(), relation=Relation.OWN)
        yield f"new contact {sender} {recipient}", with_one(pack, "contacts", None, rule)
    handles = [one.handle for one in pack.staff]
    for alias, handle in product([*pack.aliases, "somebody"], handles):
        yield f"alias {alias} {handle}", replace(pack, aliases={**pack.aliases, alias: handle})
    for alias in pack.aliases:
        rest = {name: handle for name, handle in pack.aliases.items() if name != alias}
        yield f"no alias {alias}", replace(pack, aliases=rest)
    scopes = ["organisation", f"agent:{handles[-1]}", f"role:{names[-1]}"]
    for tool, scope in product(("send_mail", "write_file", "read_inbox", "task_create"), scopes):
        limit = PackToolRestriction(restriction=ToolRestriction(scope, tool, frozenset()))
        yield f"limit {tool} {scope}", replace(pack, tool_restrictions=(limit,))


def with_one(pack: Pack, column: str, at: int | None, changed: object) -> Pack:
    """The pack with one row changed, taken away (None) or added (`at` None)."""
    rows = list(getattr(pack, column))
    if at is None:
        rows.append(changed)
    elif changed is None:
        del rows[at]
    else:
        rows[at] = changed
    return replace(pack, **{column: tuple(rows)})


def of_role(role: Role, pack: Pack) -> Iterator[tuple[str, Role]]:
    for column, names in (
        ("tools", catalogue.bindable()),
        ("denied_tools", ("send_mail", "escalate", "write_file", "task_create", "task_approve")),
        ("offices", Office),
    ):
        for name in names:
            yield f"{column} {name}", replace(role, **{column: getattr(role, column) ^ {name}})
    for level, kind in product(range(1, 5), Kind):
        if role.level == level or role.kind is kind:
            yield f"{level} {kind}", replace(role, level=level, kind=kind)
    yield "task_lead", replace(role, task_lead=not role.task_lead)
    for given in ({}, *({"claim_task_type": each} for each in ([], ["bug"], True, False))):
        yield f"permissions {given}", replace(role, permissions=given)
    for name, on in product(("update_own_tasks", "comment_on_all_tasks"), (True, False)):
        yield f"{name} {on}", replace(role, permissions={**role.permissions, name: on})
    yield from of_files(role)
    yield "text", replace(role, title="Other", summary="Other", prohibitions=())


def of_files(role: Role) -> Iterator[tuple[str, Role]]:
    for column in ("read", "write", "deny"):
        paths = {*getattr(role.files, column)}
        for path in {*paths, "docs/", "company/", "agents/{agent}/", "agents/{worker}/", "*.pem"}:
            files = replace(role.files, **{column: tuple(sorted(paths ^ {path}))})
            yield f"{column} {path}", replace(role, files=files)
    for scope in ContractScope:
        yield f"contract {scope}", replace(role, files=replace(role.files, contract=scope))


def of_contact(rule: ContactRule, pack: Pack) -> Iterator[tuple[str, ContactRule | None]]:
    names = frozenset(kind.name for kind in pack.mail_types)
    yield "removed", None
    yield "every type", replace(rule, types=None)
    for name in sorted(names):
        yield f"type {name}", replace(rule, types=(rule.types or names) ^ {name})
    yield "no type", replace(rule, types=frozenset())
    yield "needs contract", replace(rule, needs_contract=not rule.needs_contract)
    for relation in Relation:
        yield f"relation {relation}", replace(rule, relation=relation)


def of_type(kind: MailTypeRule, pack: Pack) -> Iterator[tuple[str, MailTypeRule | None]]:
    names = [*(role.name for role in pack.roles), *Kind]
    yield "removed", None
    yield "every sender", replace(kind, senders=None)
    for name in names:
        yield f"sender {name}", replace(kind, senders=(kind.senders or frozenset(names)) ^ {name})
    yield "no tool", replace(kind, issued_by=())
    yield "a tool", replace(kind, issued_by=(*kind.issued_by, "write_verdict"))
    yield "to superior", replace(kind, to_superior=not kind.to_superior)
    yield "text", replace(kind, description="Other")


def of_agent(one: Staff, pack: Pack) -> Iterator[tuple[str, Staff]]:
    values: dict[str, list[object]] = {
        "reports_to": ["board"],
        "co_managers": [],
        "name": ["somebody"],
        "role": [role.name for role in pack.roles],
        "group": ["", *(group.slug for group in pack.groups)],
        "is_leader": [not one.is_leader],
        "skills": [
            tuple({*one.skills} ^ {skill}) for skill in ("tidy", "write_file", "generate_contract")
        ],
        "title": ["Other"],
        "system_prompt": ["Other words."],
    }
    for other in pack.staff:
        if other.handle != one.handle:
            values["reports_to"].append(other.handle)
            values["co_managers"].append(tuple({*one.co_managers} ^ {other.handle}))
            values["name"].append(other.name)
    for name, given in values.items():
        for value in given:
            yield f"{name} {value}", replace(one, **{name: value})


def hired(pack: Pack, role: str) -> Pack:
    """The pack with one more holder of a role, below the same superior as the others."""
    above = next((one.reports_to for one in pack.staff if one.role == role), "it_manager")
    if above not in {one.handle for one in pack.staff}:
        above = pack.staff[0].handle
    new = replace(pack.staff[-1], handle=NEW, role=role, reports_to=above, group="", name="",
                  co_managers=(), is_leader=False)  # fmt: skip
    return replace(pack, staff=(*pack.staff, new))


@pytest.mark.parametrize("organisation", ORGANISATIONS)
def test_what_is_changed_alone_gives_no_right(organisation):
    pack = sound_pack(PACKS / organisation)
    before = policy_of(pack)
    paths = paths_of(policy_of(hired(pack, pack.roles[0].name)))
    had = frozenset(rights_of(before, paths))
    later = {
        role.name: frozenset(rights_of(policy_of(hired(pack, role.name)), paths))
        for role in pack.roles
    }
    count: Counter[str] = Counter()
    every = list(variants(pack))
    for label, changed in sample(every, min(MOST, len(every))):
        try:
            after = policy_of(changed)
        except KeyError:  # a name that resolves no more: the database refuses it
            continue
        if invariants.violations(after):
            count["refused"] += 1
        elif between(before, after).allowed:
            count["waits"] += 1
        else:
            count["alone"] += 1
            assert not frozenset(rights_of(after, paths)) - had, label
            names = {role.name for role in changed.roles} & {*label.split()} or {
                pack.roles[count["alone"] % len(pack.roles)].name
            }
            for name in names:
                hire = policy_of(hired(changed, name))
                assert not frozenset(rights_of(hire, paths)) - later[name], (label, name)
    assert min(count["refused"], count["waits"], count["alone"]) > 20, count
