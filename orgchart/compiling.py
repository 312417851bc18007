"""From tables to the Policy, and the in-process cache of compiled policies."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from sys import intern
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from django.db import connection

from orgchart import models
from orgchart.orgsettings import enabled_modes, merged
from orgchart.policy.building import build_policy
from orgchart.policy.compiled import (
    Agent,
    ContactRule,
    FileScopes,
    Group,
    MailTypeRule,
    Policy,
    Role,
    ToolRestriction,
)
from orgchart.policy.parties import active_superior
from orgchart.policy.vocabulary import BOARD, ContractScope, Kind, Office, Relation, ToolMode

CACHED_BYTES = 100_000_000
"""Bound of the cache of each process, as `bytes_of` estimates them."""
BYTES_OF_POLICY, BYTES_OF_VALUE = 20_000, 180
"""Measured: what every policy takes, and what each agent, name, role and rule adds."""

VERSION = "SELECT policy_version FROM orgchart_organisation WHERE id = %s"

_changing: WeakKeyDictionary[Any, set[int]] = WeakKeyDictionary()
"""Organisations changed in a transaction that is still open, by its outermost block."""


def mark_changing(organisation_id: int) -> None:
    """Say that the open transaction changes this policy: if it rolls back, the version it counted
    is given again to another change, so nothing compiled inside it may be cached.
    """
    block = _outermost_block()
    if block is not None:
        _changing.setdefault(block, set()).add(organisation_id)


def _is_changing(organisation_id: int) -> bool:
    if not _changing:
        return False
    block = _outermost_block()
    return block is not None and organisation_id in _changing.get(block, ())


def _outermost_block() -> Any:
    """The block that ends the open transaction; those that only tests put around are none."""
    blocks: list[Any] = connection.atomic_blocks
    return next((b for b in blocks if not getattr(b, "_from_testcase", False)), None)


def compile_policy(organisation_id: int) -> Policy:
    """Read the organisation's tables and compile them.

    The version is read before and after, so that a policy never mixes two versions; inside a
    transaction that holds the organisation's row lock the first reading always agrees.
    """
    while True:
        organisation = models.Organisation.objects.get(id=organisation_id)
        policy = _compiled(organisation)
        if _version(organisation_id) == policy.version:
            return policy


def _version(organisation_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(VERSION, [organisation_id])
        found: tuple[int] | None = cursor.fetchone()
    if found is None:
        raise models.Organisation.DoesNotExist(f"there is no organisation {organisation_id}")
    return found[0]


def _compiled(organisation: models.Organisation) -> Policy:
    roles = list(organisation.roles.all())
    groups = list(organisation.groups.all())
    return build_policy(
        organisation_id=organisation.id,
        organisation=organisation.slug,
        version=organisation.policy_version,
        roles=[_role(r) for r in roles],
        agents=_agents(
            organisation,
            roles={role.id: intern(role.name) for role in roles},
            groups={group.id: intern(group.slug) for group in groups},
        ),
        groups=[Group(g.slug, g.name, g.context, g.member_delegation) for g in groups],
        mail_types=[_mail_type(t) for t in organisation.mail_types.all()],
        contacts=[
            ContactRule(
                sender=intern(c.sender.name),
                recipient=intern(c.recipient.name) if c.recipient else BOARD,
                types=None if c.types is None else _set(c.types),
                needs_contract=c.needs_contract,
                relation=Relation(c.relation),
            )
            for c in organisation.contacts.select_related("sender", "recipient")
        ],
        aliases={a.alias: a.agent.handle for a in organisation.aliases.select_related("agent")},
        settings=merged(organisation.settings),
        enabled_modes=enabled_modes(organisation.settings),
        tool_restrictions=[
            _tool_restriction(row) for row in organisation.overrides.select_related("role", "agent")
        ],
    )


# Organisations of one pack say the same: in memory their words, and sets of words, are there once.
@lru_cache(maxsize=4096)
def _tuple_of(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(intern, words))


@lru_cache(maxsize=4096)
def _set_of(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(intern, words))


def _tuple(words: Iterable[str]) -> tuple[str, ...]:
    return _tuple_of(tuple(words))


def _set(words: Iterable[str]) -> frozenset[str]:
    return _set_of(tuple(words))


def _role(row: models.Role) -> Role:
    return Role(
        name=intern(row.name),
        title=intern(row.title),
        level=row.level,
        kind=Kind(row.kind),
        tools=_set(row.tools),
        denied_tools=_set(row.denied_tools),
        summary=intern(row.summary),
        prohibitions=_tuple(row.prohibitions),
        files=FileScopes(
            _tuple(row.files_read),
            _tuple(row.files_write),
            _tuple(row.files_deny),
            contract=ContractScope(row.files_contract),
        ),
        task_lead=row.task_lead,
        permissions=row.permissions,
        offices=frozenset(o for o in Office if o in row.offices),
    )


def _agents(
    organisation: models.Organisation, *, roles: Mapping[int, str], groups: Mapping[int, str]
) -> list[Agent]:
    """The agents, read without a model instance for each: a policy may have thousands."""
    rows = list(organisation.agents.values_list(*AGENT_COLUMNS, named=True))
    by_id = {row.id: row for row in rows}
    reports_to = {r.handle: intern(by_id[r.reports_to_id].handle) for r in rows if r.reports_to_id}
    active = {row.handle for row in rows if row.active}
    through = models.Agent.co_managers.through.objects.filter(from_agent__organisation=organisation)
    co_managers: dict[int, list[str]] = {}
    for one, other in through.values_list("from_agent_id", "to_agent_id"):
        co_managers.setdefault(one, []).append(by_id[other].handle)
    return [
        Agent(
            id=row.id,
            handle=intern(row.handle),
            role=roles[row.role_id],
            title=intern(row.title),
            active=row.active,
            reports_to=reports_to.get(row.handle, ""),
            managers=(
                active_superior(row.handle, reports_to.get, active),
                *sorted(co_managers.get(row.id, [])),
            ),
            group=groups[row.group_id] if row.group_id else "",
            name=intern(row.name),
            is_leader=row.is_leader,
            skills=_set(row.skills),
            system_prompt=intern(row.system_prompt),
        )
        for row in rows
    ]


AGENT_COLUMNS = (
    "id", "handle", "role_id", "title", "active", "reports_to_id", "group_id", "name", "is_leader",
    "skills", "system_prompt",
)  # fmt: skip


def _mail_type(row: models.MailTypeRule) -> MailTypeRule:
    return MailTypeRule(
        name=intern(row.name),
        senders=None if row.senders is None else _set(row.senders),
        issued_by=_tuple(row.issued_by),
        to_superior=row.to_superior,
        description=intern(row.description),
    )


def _tool_restriction(row: models.ToolOverride) -> ToolRestriction:
    if row.agent:
        scope = f"agent:{row.agent.handle}"
    else:
        scope = f"role:{row.role.name}" if row.role else "organisation"
    return ToolRestriction(scope, row.tool, frozenset(m for m in ToolMode if m in row.modes))


class PolicyCache:
    """Compiled policies by organisation and version; the least recently used are dropped.

    A version never changes its meaning, so an entry is never stale: the caller names the version
    that it read in the same query as its key. A policy is compiled by one thread; others that
    need it wait for the result. The bound is memory, not a number of policies: an organisation of
    a thousand agents takes the place of twenty small ones.
    """

    def __init__(self, capacity: int = CACHED_BYTES) -> None:
        self._capacity = capacity
        self._bytes = 0
        self._lock = Lock()
        self._policies: OrderedDict[int, Policy] = OrderedDict()
        self._compiling: WeakValueDictionary[int, _CompileLock] = WeakValueDictionary()

    def get(self, organisation_id: int, version: int) -> Policy:
        """The policy of that version, or of a newer one that was committed meanwhile."""
        if _is_changing(organisation_id):
            return compile_policy(organisation_id)
        held = self._find(organisation_id, version)
        if held is not None:
            return held
        with self._lock:
            mine = self._compiling.setdefault(organisation_id, _CompileLock())
        with mine.lock:
            held = self._find(organisation_id, version)
            if held is None:
                held = compile_policy(organisation_id)
                self._keep(held)
            return held

    def clear(self) -> None:
        """Forget everything; for tests that reuse ids."""
        with self._lock:
            self._policies.clear()
            self._bytes = 0

    def _find(self, organisation_id: int, version: int) -> Policy | None:
        with self._lock:
            held = self._policies.get(organisation_id)
            if held is None or held.version != version:
                return None
            self._policies.move_to_end(organisation_id)
            return held

    def _keep(self, policy: Policy) -> None:
        with self._lock:
            replaced = self._policies.pop(policy.organisation_id, None)
            self._policies[policy.organisation_id] = policy
            self._bytes += bytes_of(policy) - (bytes_of(replaced) if replaced else 0)
            while self._bytes > self._capacity and len(self._policies) > 1:
                _, oldest = self._policies.popitem(last=False)
                self._bytes -= bytes_of(oldest)


class _CompileLock:
    """Held by the thread that compiles one organisation's policy."""

    def __init__(self) -> None:
        self.lock = Lock()


def bytes_of(policy: Policy) -> int:
    """About how much memory a policy holds: a part that each has, and its agents and rules."""
    values = (
        len(policy.agents)
        + len(policy.names)
        + len(policy.roles)
        + len(policy.contacts)
        + len(policy.mail_types)
    )
    return BYTES_OF_POLICY + BYTES_OF_VALUE * values


POLICIES = PolicyCache()


def current_policy(organisation_id: int) -> Policy:
    """The organisation's policy as committed now (or as written in this transaction)."""
    return POLICIES.get(organisation_id, _version(organisation_id))
