"""Which acts of an org_change contract a change of the organisation amounts to; pure."""

from __future__ import annotations

from dataclasses import dataclass, fields

from contracts.vocabulary import OrgAct
from core.decision import Code, Deny, deny
from orgchart.policy.compiled import Agent, Policy

ABOUT_AGENTS = frozenset({"version", "agents", "names", "by_id", "holders", "below"})
"""What of a policy a change of agents changes; everything else is no act of a contract."""
DESCRIBES = frozenset({"skills", "title", "system_prompt"})


@dataclass(frozen=True, slots=True)
class NamedAct:
    """One act on one agent, as a line of a contract names it."""

    act: OrgAct
    subject: str


def acts_between(before: Policy, after: Policy) -> list[NamedAct] | Deny:
    """The acts that lead from one policy to the next: what lines have to name, all of it.

    A Deny for what no line can name: a role, a rule, a setting, an agent that is activated again.
    """
    other = sorted(
        each.name
        for each in fields(Policy)
        if each.compare
        and each.name not in ABOUT_AGENTS
        and getattr(before, each.name) != getattr(after, each.name)
    )
    if other:
        return _not_named(f"it changes {', '.join(other)}")
    acts: list[NamedAct] = []
    for handle, agent in sorted(after.agents.items()):
        old = before.agents.get(handle)
        if old is None:
            acts.append(NamedAct(OrgAct.HIRE, handle))
        elif agent.active and not old.active:
            return _not_named(f"it activates {handle} again")
        else:
            acts.extend(NamedAct(act, handle) for act in _acts_on(old, agent))
    return acts


def _acts_on(old: Agent, new: Agent) -> list[OrgAct]:
    changed = {
        each.name
        for each in fields(Agent)
        if each.compare and getattr(old, each.name) != getattr(new, each.name)
    }
    found = [OrgAct.DESCRIBE] if changed & DESCRIBES else []
    return [*found, OrgAct.MOVE] if changed - DESCRIBES else found


def _not_named(why: str) -> Deny:
    return deny(
        Code.AUTHORISATION_REQUIRED,
        f"an org_change contract cannot allow this: {why}",
        "leave the contract out; a second person then confirms the change",
        rule="a contract in place of the second person (spec: people 34)",
    )
