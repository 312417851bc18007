"""Moving agents in the chain of command: several at once, all or none (Spec: organisation 36)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from contracts.approvals.authorisations import use_change
from contracts.issuing.changes import SoughtLine
from contracts.vocabulary import OrgAct
from core.actions import Action
from core.decision import Code, refuse
from governance.results import ChangedOrgChart
from governance.staff import org_changes, rules
from orgchart.models import Agent as AgentRow
from orgchart.models import Group, Organisation, Role
from orgchart.policy.compiled import Agent
from orgchart.policy.vocabulary import BOARD
from toolbox.caller import Caller

NOWHERE = ""
"""A group that is given as empty: the agent leaves its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMove:
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
class _AllowedMove:
    """A move that is allowed: the agent and the names it resolved to."""

    move: AgentMove
    target: Agent
    above: Agent | None
    co_managers: tuple[Agent, ...]


def update_org_chart(
    *,
    caller: Caller,
    moves: Sequence[AgentMove],
    reason: str,
    expected_version: int | None,
    now: datetime,
) -> ChangedOrgChart:
    """Move agents that an org_change contract of the CEO names.

    Raises Denied: AUTHORISATION_REQUIRED, VERSION_MISMATCH, NOT_FOUND, LEVEL_DENIED for its own
    row, one above, or a role above; INVALID_PARAMS for an empty or doubled move or a broken
    invariant.
    """
    with transaction.atomic():
        allowed = [_allowed(caller, move) for move in moves]
        sought = {step.target.handle: _line(caller, step) for step in allowed}
        used = [use_change(caller=caller, sought=line, now=now) for line in sought.values()]
        version = org_changes.require_policy(caller.policy, expected_version)
        for step in allowed:
            _require_possible(caller, step)
        _require_each_once(allowed)

        def apply(organisation: Organisation) -> None:
            for step in sorted(allowed, key=lambda step: step.move.is_leader is True):
                _save_move(organisation, step)  # the old leader first: one leader at a time

        change = org_changes.change_organisation(
            caller,
            apply,
            action=Action.ORGCHART_UPDATED,
            contract=", ".join(dict.fromkeys(used)),
            version=version,
            now=now,
            reason=reason,
            agents=[step.target.handle for step in allowed],
        )
    return {
        "agents": [step.target.handle for step in allowed],
        "policy_version": change.after.version,
        "newly_allowed": list(change.difference.allowed),
        "newly_forbidden": list(change.difference.forbidden),
    }


def _line(caller: Caller, step: _AllowedMove) -> SoughtLine:
    """The line that allows a move: it names what the agent is to get."""
    target, move = step.target, step.move
    stays = move.group is None
    return rules.line_of(
        OrgAct.MOVE,
        target.handle,
        org_changes.find_role(caller, move.role or target.role),
        target,
        superior=step.above.handle if step.above else target.superior,
        co_managers=[agent.handle for agent in step.co_managers],
        group=target.group if stays else str(move.group),
        is_leader=(target.is_leader and stays) if move.is_leader is None else move.is_leader,
    )


def _allowed(caller: Caller, move: AgentMove) -> _AllowedMove:
    """The move with the agents it names, where HR may move this agent and give this role."""
    target = org_changes.find_agent(caller, move.agent)
    caller.require(rules.can_manage(caller.agent, target, caller.policy))
    if move.role is not None:
        role = org_changes.find_role(caller, move.role)
        caller.require(rules.can_give_role(caller.agent, role, caller.policy))
    if move.group and move.group not in caller.policy.groups:
        raise _refusal(target.handle, f"there is no group {move.group}", "name an existing group")
    above = None
    if move.reports_to not in (None, BOARD):
        above = org_changes.find_active(caller, str(move.reports_to), "reports_to")
    co_managers = org_changes.find_co_managers(caller, move.co_managers or ())
    return _AllowedMove(move, target, above, tuple(co_managers))


def _require_possible(caller: Caller, step: _AllowedMove) -> None:
    """Raise Denied INVALID_PARAMS for a move that gives nothing, or a place there is not."""
    move, handle = step.move, step.target.handle
    if move.is_empty:
        raise _refusal(handle, "nothing to change was given", "give what is to change")
    if move.reports_to == BOARD:
        raise _refusal(handle, "only people let an agent report to the Board", rules.PEOPLE)
    _require_address(caller, move, step.target)


def _require_address(caller: Caller, move: AgentMove, target: Agent) -> None:
    """In a group an agent has a name, and no other agent has its address."""
    group = target.group if move.group is None else move.group
    name = target.name if move.name is None else move.name
    if move.group is None and move.name is None:
        return
    if group and not name:
        raise _refusal(target.handle, "an address is `group.name`: name is missing", "give name")
    if move.name and not group:
        raise _refusal(target.handle, "a name needs a group", "give group too")
    if name and name != target.name:
        caller.require(rules.can_name_in_group(name, target.handle))
    address = f"{group}.{name}"
    if group and caller.policy.names.get(address, target.handle) != target.handle:
        raise _refusal(target.handle, f"{address} belongs to another agent", "choose another name")


def _require_each_once(allowed: Sequence[_AllowedMove]) -> None:
    seen: set[str] = set()
    for step in allowed:
        if step.target.handle in seen:
            raise _refusal(step.target.handle, "it is moved twice", "put its changes into one")
        seen.add(step.target.handle)


def _save_move(organisation: Organisation, step: _AllowedMove) -> None:
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
        row.co_managers.set(agent.id for agent in step.co_managers)


def _group(organisation: Organisation, slug: str) -> Group | None:
    return None if slug == NOWHERE else Group.objects.get(organisation=organisation, slug=slug)


def _refusal(handle: str, problem: str, fix: str) -> Exception:
    return refuse(
        Code.INVALID_PARAMS,
        f"changes: {handle}: {problem}",
        fix,
        rule="parameters",
        changes=f"{handle}: {problem}",
    )
