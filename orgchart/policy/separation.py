"""Powers that no role may hold together, whatever a pack or a person writes."""

from __future__ import annotations

from collections.abc import Iterator

from orgchart import catalogue
from orgchart.catalogue import Source
from orgchart.policy.compiled import Policy, Role
from orgchart.policy.paths import is_within
from orgchart.policy.violation import BrokenInvariant, Subject
from orgchart.policy.vocabulary import ContractScope, Kind

ORDERS_CHANGES = "generate_contract"
"""The tool whose `org_change` contracts replace a second person (Spec: people 10)."""
ORGANISATION_TOOLS = frozenset(
    {"create_agent_jd", "update_agent_jd", "deactivate_agent", "update_org_chart"}
)
JUDGES = {
    "write_verdict": frozenset(
        {"git_commit", "git_push", "docker_build", "docker_deploy", "manage_ci_config"}
    ),
    "approve_deployment": frozenset({"docker_deploy", "docker_build"}),
    "review_pr": frozenset({"git_commit", "git_push", "write_file"}),
}
JUDGES_WRITE = ("tests/", "reports/", "agents/")


def contracts(policy: Policy) -> Iterator[BrokenInvariant]:
    """Workers issue no contracts (Spec: contracts 5)."""
    for role in policy.roles.values():
        if role.kind is Kind.WORKER and role.tools & {"create_contract", ORDERS_CHANGES}:
            yield BrokenInvariant(
                "C-07",
                Subject.ROLE,
                role.name,
                "a worker never issues contracts",
                "take the tool away",
            )


def judges(policy: Policy) -> Iterator[BrokenInvariant]:
    """No role approves its own work, and QA never writes what it judges (Spec: organisation 28)."""
    for role in policy.roles.values():
        usable = role.tools - role.denied_tools
        for judge, made in JUDGES.items():
            if judge in usable and usable & made:
                yield BrokenInvariant(
                    "no agent approves its own work",
                    Subject.ROLE,
                    role.name,
                    f"a role with {judge} cannot also have {', '.join(sorted(usable & made))}",
                    "give the judging and the making to different roles",
                )
        if len(role.offices) > 1:
            yield BrokenInvariant(
                "one office for each role",
                Subject.ROLE,
                role.name,
                f"one role holds the offices {', '.join(sorted(role.offices))}: it would see what "
                "one of them may not see (spec: constitution 25)",
                "give the offices to different roles",
            )
        if "write_verdict" in usable:
            yield from _judge_writes(role)


def responsible(policy: Policy) -> Iterator[BrokenInvariant]:
    """Who writes verdicts answers for no one's work (Spec: organisation 29).

    `review_pr` is the exception that the tool matrix makes for the IT manager (Spec: tools 4).
    """
    for role in policy.roles.values():
        if "write_verdict" not in role.tools - role.denied_tools:
            continue
        issues = sorted(role.tools & {"create_contract", ORDERS_CHANGES, "assign_task"})
        if role.kind is not Kind.WORKER or issues:
            yield BrokenInvariant(
                "a judge is not responsible",
                Subject.ROLE,
                role.name,
                f"write_verdict is for a worker that orders no work; this is of kind {role.kind}"
                + (f" with {', '.join(issues)}" if issues else ""),
                "give write_verdict to a role of its own",
            )


def _judge_writes(role: Role) -> Iterator[BrokenInvariant]:
    """Whatever tool it has to write with (Spec: organisation 30)."""
    loose = [w for w in role.files.write if not any(is_within(w, ok) for ok in JUDGES_WRITE)]
    if loose or role.files.contract is ContractScope.WRITE:
        yield BrokenInvariant(
            "QA cannot write source",
            Subject.ROLE,
            role.name,
            f"who writes verdicts may write {', '.join(loose) or 'the contract scope'}",
            f"keep its write scope to {', '.join(JUDGES_WRITE)}",
        )


def single_entry(policy: Policy) -> Iterator[BrokenInvariant]:
    """One role changes the organisation (Spec: organisation 31)."""
    holders = sorted(r.name for r in policy.roles.values() if r.tools & ORGANISATION_TOOLS)
    if len(holders) > 1:
        yield BrokenInvariant(
            "single entry to the organisation",
            Subject.ROLE,
            ", ".join(holders),
            "more than one role may change the organisation (spec: organisation 31)",
            "leave these tools to one role",
        )


SKILL_TOOLS = frozenset({"web_search", "read_url"})
"""Role tools that an agent may also have as a skill (Spec: skills 5): they only look."""


def skills(policy: Policy) -> Iterator[BrokenInvariant]:
    """A skill is no way around the matrix: role tools come from roles (Spec: skills 5)."""
    bound = (n for n, entry in catalogue.known().items() if entry.source is not Source.SKILL)
    powers = frozenset(bound) - SKILL_TOOLS
    for agent in policy.agents.values():
        for tool in sorted(agent.skills & powers):
            yield BrokenInvariant(
                "skills bind no role tools",
                Subject.AGENT,
                agent.handle,
                f"{tool} is bound by roles, offices or the system, not by skills",
                "take it out of the agent's skills",
            )
