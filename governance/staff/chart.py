"""Moving agents in the chain of command: several at once, whole or not at all (seed 000 §1.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from core.actions import Action
from core.decision import Code, refuse, require
from governance.staff import authority, rules
from orgchart.models import Agent as AgentRow
from orgchart.models import Group, Organisation, Role
from orgchart.policy.compiled import Agent
from orgchart.policy.vocabulary import BOARD
from toolbox.caller import Caller

NOWHERE = ""
"""A group that is given as empty: the agent leaves its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One agent's new place; what is None stays. `group` '' leaves the group."""

    agent: str
    reports_to: str | None = None
    co_managers: Sequence[str] | None = None
    role: str | None = None
    group: str | None = None
    name: str | None = None
    is_leader: bool | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it is given."""
        return all(
            value is None
            for value in (
                self.reports_to, self.co_managers, self.role, self.group, self.name, self.is_leader,
            )
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Decided:
    """A move that may be made: the agent and the names it resolved to."""

    move: Move
    target: Agent
    above: Agent | None
    beside: tuple[Agent, ...]


def update_org_chart(
    *,
    caller: Caller,
    moves: Sequence[Move],
    reason: str,
    expected_version: int | None,
    now: datetime,
) -> dict[str, Any]:
    """Move agents under an org_change contract of the CEO in progress.

    Raises Denied: AUTHORISATION_REQUIRED, VERSION_MISMATCH, NOT_FOUND, LEVEL_DENIED for its own
    row, one above, or a role above; INVALID_PARAMS for an empty or doubled move or a broken
    invariant. Nothing has moved then.
    """
    with transaction.atomic():
        contract = authority.require_org_change(caller)
        version = authority.require_version(caller, expected_version)
        decided = [_decided(caller, move) for move in moves]
        _require_each_once(decided)

        def apply(organisation: Organisation) -> None:
            for step in sorted(decided, key=lambda d: d.move.is_leader is True):
                _move(organisation, step)  # who leads no longer goes first: one leader at a time

        change = authority.change_organisation(
            caller,
            apply,
            action=Action.ORGCHART_UPDATED,
            contract=contract,
            version=version,
            now=now,
            reason=reason,
            agents=[d.target.handle for d in decided],
        )
    return {
        "agents": [d.target.handle for d in decided],
        "policy_version": change.after.version,
        "newly_allowed": list(change.difference.allowed),
        "newly_forbidden": list(change.difference.forbidden),
    }


def _decided(caller: Caller, move: Move) -> _Decided:
    target = authority.find_agent(caller, move.agent)
    require(rules.can_manage(caller.agent, target, caller.policy))
    if move.is_empty:
        raise _bad(target.handle, "nothing to change was given", "give what is to change")
    if move.role is not None:
        role = authority.find_role(caller, move.role)
        require(rules.can_give_role(caller.agent, role, caller.policy))
    if move.reports_to == BOARD:
        raise _bad(target.handle, "only people let an agent report to the Board", rules.PEOPLE)
    if move.group and move.group not in caller.policy.groups:
        raise _bad(target.handle, f"there is no group {move.group}", "name a group that there is")
    _require_address(caller, move, target)
    above = move.reports_to and authority.find_active(caller, move.reports_to, "reports_to")
    beside = [authority.find_active(caller, n, "co_managers") for n in move.co_managers or ()]
    return _Decided(move, target, above or None, tuple(beside))


def _require_address(caller: Caller, move: Move, target: Agent) -> None:
    """In a group an agent has a name; its address names nobody else."""
    group = target.group if move.group is None else move.group
    name = target.name if move.name is None else move.name
    if move.group is None and move.name is None:
        return
    if group and not name:
        raise _bad(target.handle, "an address is `group.name`: name is missing", "give name")
    if move.name and not group:
        raise _bad(target.handle, "a name needs a group", "give group too")
    address = f"{group}.{name}"
    if group and caller.policy.names.get(address, target.handle) != target.handle:
        raise _bad(target.handle, f"{address} already names somebody", "choose another name")


def _require_each_once(decided: Sequence[_Decided]) -> None:
    seen: set[str] = set()
    for step in decided:
        if step.target.handle in seen:
            raise _bad(step.target.handle, "it is moved twice", "put its changes into one")
        seen.add(step.target.handle)


def _move(organisation: Organisation, step: _Decided) -> None:
    move = step.move
    row = AgentRow.objects.get(id=step.target.id)
    if move.role is not None:
        row.role = Role.objects.get(organisation=organisation, name=move.role)
    if step.above is not None:
        row.reports_to_id = step.above.id
    if move.group is not None:
        row.group = _group(organisation, move.group)
        row.name = row.name if row.group else ""
        row.is_leader = False
    if move.name is not None:
        row.name = move.name
    if move.is_leader is not None:
        row.is_leader = move.is_leader
    row.save()
    if move.co_managers is not None:
        row.co_managers.set(agent.id for agent in step.beside)


def _group(organisation: Organisation, slug: str) -> Group | None:
    return None if slug == NOWHERE else Group.objects.get(organisation=organisation, slug=slug)


def _bad(handle: str, problem: str, mend: str) -> Exception:
    return refuse(
        Code.INVALID_PARAMS,
        f"changes: {handle}: {problem}",
        mend,
        rule="parameters",
        changes=f"{handle}: {problem}",
    )
