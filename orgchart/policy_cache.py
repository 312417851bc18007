"""The compiled policies that this process keeps."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from sys import getsizeof
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from django.db import connection

from orgchart.compiling import compile_policy, policy_version
from orgchart.policy.compiled import Policy

CACHED_BYTES = 100_000_000
"""Bound of the cache of each process, as `bytes_of` estimates them."""
BYTES_OF_POLICY, BYTES_OF_VALUE = 20_000, 180
"""Measured: what every policy takes, and what each agent, name, role and rule adds."""
EMPTY = getsizeof("")
MOST_BYTES = 20_000_000
"""The most that a change may make of one policy: several of the largest have room in the cache."""

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
    block = _outermost_block()
    return block is not None and organisation_id in _changing.get(block, ())


def _outermost_block() -> Any:
    """The block that ends the open transaction; those that only tests put around are none."""
    blocks: list[Any] = connection.atomic_blocks
    return next((b for b in blocks if not getattr(b, "_from_testcase", False)), None)


class PolicyCache:
    """Compiled policies by organisation and version; the least recently used are dropped.

    A version of one server never changes its meaning, so an entry is never stale: the caller names
    the version that it read in the same query as its key. Behind a failover the last versions may
    be lost and are counted again, so all is forgotten then (Spec: clocks 17). A policy is compiled
    by one thread; others that need it wait for the result. The bound is memory, not a number of
    policies: an organisation of a thousand agents takes the place of twenty small ones.
    """

    def __init__(self, capacity: int = CACHED_BYTES) -> None:
        self._capacity = capacity
        self._bytes = self._times_forgotten = 0
        self._lock = Lock()
        self._policies: OrderedDict[int, Policy] = OrderedDict()
        self._compiling: WeakValueDictionary[int, _CompileLock] = WeakValueDictionary()

    def get(self, organisation_id: int, version: int) -> Policy:
        """The policy of that version, or of a newer one that was committed meanwhile."""
        if _changing and _is_changing(organisation_id):
            return compile_policy(organisation_id)
        held = self._find(organisation_id, version)
        if held is not None:
            return held
        with self._lock:
            mine = self._compiling.setdefault(organisation_id, _CompileLock())
        with mine.lock:
            held = self._find(organisation_id, version)
            if held is None:
                times_forgotten = self._times_forgotten
                held = compile_policy(organisation_id)
                self._keep(held, times_forgotten)
            return held

    def clear(self) -> None:
        """Forget everything, also what is being compiled."""
        with self._lock:
            self._policies.clear()
            self._bytes = 0
            self._times_forgotten += 1

    def _find(self, organisation_id: int, version: int) -> Policy | None:
        with self._lock:
            held = self._policies.get(organisation_id)
            if held is None or held.version != version:
                return None
            self._policies.move_to_end(organisation_id)
            return held

    def _keep(self, policy: Policy, times_forgotten: int | None = None) -> None:
        with self._lock:
            if times_forgotten not in (None, self._times_forgotten):
                return
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
    """About how much memory a policy holds: a part that each has, its agents and rules, and what
    people wrote of them.
    """
    values = (
        len(policy.agents)
        + len(policy.names)
        + len(policy.roles)
        + len(policy.contacts)
        + len(policy.mail_types)
    )
    written = sum(getsizeof(text) - EMPTY for text in set(_texts(policy)))
    return BYTES_OF_POLICY + BYTES_OF_VALUE * values + written


def _texts(policy: Policy) -> Iterator[str]:
    """What is written without a bound of its own; what is equal is in memory once."""
    yield str(policy.settings)
    for agent in policy.agents.values():
        yield agent.system_prompt
        yield from agent.skills
    for group in policy.groups.values():
        yield group.context
    for role in policy.roles.values():
        files = role.files
        yield role.summary
        yield str(role.permissions)
        for words in (role.prohibitions, role.tools, role.denied_tools):
            yield from words
        for words in (files.read, files.write, files.deny):
            yield from words
    for mail_type in policy.mail_types.values():
        yield mail_type.description


POLICIES = PolicyCache()


def current_policy(organisation_id: int) -> Policy:
    """The organisation's policy as committed now (or as written in this transaction)."""
    return POLICIES.get(organisation_id, policy_version(organisation_id))
