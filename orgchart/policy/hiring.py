"""Where an agent can be placed: under which superiors, and what it could do there; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from core.decision import Allow, Code, Decision, deny
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.guarantees import problem_of_way_up
from orgchart.policy.vocabulary import BOARD, Kind
from orgchart.policy.way_up import tool_to_escalate

RULE = "an agent reports to one above it, and can reach it (spec: organisation 49)"


@dataclass(frozen=True, slots=True)
class PossibleSuperior:
    """A superior, whether an agent can be placed under it, and which agents it could write to."""

    superior: str
    title: str
    decision: Decision
    contacts: tuple[str, ...] = ()

    @property
    def is_possible(self) -> bool:
        """Whether an agent can be placed there."""
        return isinstance(self.decision, Allow)


def placed(agent: Agent, superior: str) -> Agent:
    """The agent as it would be under that superior."""
    above = () if superior == BOARD else (superior,)
    return replace(agent, active=True, managers=above, reports_to="".join(above))


def newcomer(role: str) -> Agent:
    """An agent of a role, not hired yet; no agent can have its name."""
    return Agent(id=0, handle="(new)", role=role, title="")


def can_be_under(policy: Policy, agent: Agent, superior: str) -> Decision:
    """Decide whether the agent can report to that superior (Spec: organisation 49).

    The superior is active, no worker, of a higher rank, of no other group and not below the agent;
    and the agent can escalate to it. Directly under the Board is one top agent, or the leader
    of each group.
    """
    if superior == BOARD:
        return _can_be_top(policy, agent)
    above = policy.agents.get(superior)
    if above is None or not above.active:
        return no_active_superior(superior)
    there = placed(agent, superior)
    misplaced = _misplaced(policy, agent, above)
    if misplaced is None and not tool_to_escalate(there, policy):
        misplaced = _no(
            f"it could not reach {superior}: {problem_of_way_up(policy, there)}",
            f"add a contact rule from {agent.role} to {above.role} first",
        )
    return misplaced or Allow(RULE)


def no_active_superior(superior: str) -> Decision:
    """The refusal of a place under an agent that is deactivated or does not exist."""
    return _no(f"{superior} is no active agent", "choose another superior")


def _misplaced(policy: Policy, agent: Agent, above: Agent) -> Decision | None:
    """Why an agent is no superior of another, by kind, rank and chain; None where it can be."""
    if _is_worker(policy, above):
        return _no(f"{above.handle} is a worker and manages no agent", "choose a manager")
    if policy.level_of(above) >= policy.level_of(agent):
        return _no(
            f"{above.handle} is of level {policy.level_of(above)}, and the role {agent.role} is of "
            f"level {policy.level_of(agent)}",
            "choose a superior of a lower level number",
        )
    if agent.is_across_groups(above):
        return _no(
            f"{above.handle} is of the group {above.group}, this agent of {agent.group}",
            "choose its leader, or a manager of no other group",
        )
    if agent.handle in (above.handle, *(one.handle for one in policy.chain_above(above))):
        return _no(f"{above.handle} reports to {agent.handle}", "choose an agent not below it")
    return None


def _is_worker(policy: Policy, agent: Agent) -> bool:
    return policy.role_of(agent).kind is Kind.WORKER


def _can_be_top(policy: Policy, agent: Agent) -> Decision:
    tops = [a for a in policy.agents.values() if a.active and a.superior == BOARD]
    others = [top for top in tops if top.handle != agent.handle]
    if not others or (agent.is_leader and all(top.is_leader for top in others)):
        return Allow(RULE)
    names = ", ".join(sorted(top.handle for top in others)[:3])
    return _no(f"{names} is directly under the Board already", "choose an agent as superior")


def _no(message: str, next_action: str) -> Decision:
    return deny(Code.INVALID_PARAMS, message, next_action, rule=RULE)


def places_of(policy: Policy, agent: Agent) -> list[PossibleSuperior]:
    """The Board and every manager but the agent: possible ones first, nearest rank first."""
    found = list(_places(policy, agent))
    return sorted(found, key=lambda place: (not place.is_possible, _rank(policy, place)))


def _rank(policy: Policy, place: PossibleSuperior) -> tuple[int, str]:
    above = policy.agents.get(place.superior)
    return (-policy.level_of(above) if above else 1, place.superior)


def _places(policy: Policy, agent: Agent) -> Iterator[PossibleSuperior]:
    # A copy with lists of contacts of its own: what is asked of an imagined agent is not kept.
    imagined = replace(policy)
    managers = (a for a in policy.agents.values() if a.active and not _is_worker(policy, a))
    for name in (*(a.handle for a in managers if a.handle != agent.handle), BOARD):
        decision = can_be_under(policy, agent, name)
        title = policy.role_of(policy.agents[name]).title if name != BOARD else "The people"
        imagined._contacts.clear()  # noqa: SLF001  of the copy
        contacts = imagined.contacts_of(placed(agent, name)) if isinstance(decision, Allow) else ()
        yield PossibleSuperior(name, title, decision, contacts)
