"""May this agent use this skill, and may its commands run; pure (Spec: skills 4, skills 12)."""

from __future__ import annotations

from dataclasses import dataclass

from core.decision import Allow, Code, Decision, deny
from orgchart.policy.compiled import Agent
from workspace.skills.definition import Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A skill as its file is now, with what people approved of it."""

    definition: Definition | None
    digest: str = ""
    problem: str = ""
    approved_digest: str = ""
    was_approved: bool = False


def can_use_skill(agent: Agent, name: str, found: Found, *, person: bool = False) -> Decision:
    """Decide whether the skill may be opened for the agent, by itself or by a person.

    Listed, there, valid, not reserved to the other of people and agents; and approved as it is
    now, where it runs commands or was approved before.
    """
    if name not in agent.skills:
        return deny(
            Code.TOOL_NOT_BOUND,
            f"skill {name} is not among the skills of {agent.handle}",
            _listed(agent),
            rule="an agent uses the skills its definition lists (spec: skills 4)",
        )
    skill = found.definition
    if skill is None:
        return deny(
            Code.NOT_FOUND,
            f"skill {name} cannot be used: {found.problem or 'it is not installed'}",
            f"tell {agent.superior}; the people who run this installation can correct or "
            "install it",
            rule="SKILL.md in a configured folder",
        )
    if skill.people_only and not person:
        return deny(
            Code.TOOL_DENIED,
            f"only people start {name} (disable_model_invocation)",
            f"ask {agent.superior} to have it started for you",
            rule="disable_model_invocation",
        )
    if skill.agents_only and person:
        return deny(
            Code.TOOL_DENIED,
            f"only agents start {name} (user-invocable: false)",
            f"let {agent.handle} start it with use_skill",
            rule="user-invocable",
        )
    if found.digest != found.approved_digest and (skill.commands or found.was_approved):
        changed = "it changed after its approval" if found.approved_digest else "it runs commands"
        if found.was_approved and not found.approved_digest:
            changed = "its approval was withdrawn"
        return deny(
            Code.APPROVAL_REQUIRED,
            f"skill {name} needs a person's approval as it is now: {changed}",
            f"ask {agent.superior} for the approval of {found.digest[:16]}",
            rule="a person approves the exact file",
            digest=found.digest,
        )
    return Allow(f"skill of {agent.handle}")


def _listed(agent: Agent) -> str:
    names = ", ".join(sorted(agent.skills))
    return f"your skills: {names}" if names else "go on without skills"
