"""Two small policies, actors under them, and task rows for the rules; no database."""

from dataclasses import replace
from datetime import UTC, datetime

from orgchart.policy.building import build_policy
from orgchart.policy.compiled import Agent, Role
from orgchart.policy.vocabulary import Kind
from tasks.rules.actors import TaskActor
from tasks.rules.values import TaskRow
from tasks.vocabulary import Enforcement, Status
from tests.oracle import tasks as spec

AT = datetime(2026, 2, 15, 9, 0, tzinfo=UTC)
NEEDS_APPROVAL = "deployment"


def role(name: str, level: int = 2, **fields) -> Role:
    return Role(name, name, level, Kind.WORKER, frozenset(), **fields)


def policy_of(roles: list[Role], agents: list[Agent]):
    return build_policy(
        organisation_id=1,
        organisation="dev-team",
        version=1,
        roles=roles,
        agents=agents,
        groups=[],
        mail_types=[],
        contacts=[],
        aliases={},
        settings={
            "enforcement": "enforce",
            "task_lease": 1800,
            "task_visibility": "all",
            "approval_task_types": [NEEDS_APPROVAL],
        },
        enabled_modes=frozenset(),
    )


TEAM = policy_of(
    [role("team-lead", 1, task_lead=True), *(role(name) for name in spec.ROLES[1:])],
    [
        Agent(1, "team-lead", "team-lead", "", managers=("board",)),
        *(
            Agent(number, name, name, "", managers=("team-lead",))
            for number, name in enumerate(spec.ROLES[1:], start=2)
        ),
    ],
)
NEXUS = policy_of(
    [
        role("ceo", 1),
        role("it_manager", task_lead=True),
        role("backend_worker", 3),
        role("hr_manager"),
    ],
    [
        Agent(1, "ceo", "ceo", "", managers=("board",)),
        Agent(2, "it_manager", "it_manager", "", managers=("ceo",)),
        Agent(3, "backend_worker", "backend_worker", "", managers=("it_manager",)),
        Agent(4, "backend_worker_2", "backend_worker", "", managers=("it_manager_2",)),
        Agent(5, "hr_manager", "hr_manager", "", managers=("ceo",)),
    ],
)


def actor(name: str, policy=TEAM) -> TaskActor:
    return TaskActor(policy, policy.agents[name])


def under(who: TaskActor, enforcement: Enforcement) -> TaskActor:
    """The actor in an organisation with this switch."""
    settings = {**who.policy.settings, "enforcement": enforcement.value}
    return TaskActor(replace(who.policy, settings=settings), who.party)


def task(
    status: str = "pending",
    *,
    owner: Agent | None = None,
    creator: Agent | None = None,
    completed_by: Agent | None = None,
    approved: bool = False,
    workers=(),
    blockers=(),
    required_role: str = "",
    task_type: str = "",
) -> TaskRow:
    """Task #5 at version 3, as the store reads it."""
    columns = dict.fromkeys(TaskRow.__dataclass_fields__, None)
    columns |= {
        "id": 50,
        "number": 5,
        "version": 3,
        "status": Status(status),
        "owner": owner.handle if owner else None,
        "owner_id": owner.id if owner else None,
        "owner_role": owner.role if owner else "",
        "creator_id": creator.id if creator else None,
        "completed_by_id": completed_by.id if completed_by else None,
        "approved_at": AT if approved else None,
        "workers": list(workers),
        "waits_for": list(blockers),
        "metadata": {},
        "subject_writer": 0,
        "text_writers": {},
        "is_assigned": False,
        "neighbour_writers": {},
        "required_role": required_role,
        "task_type": task_type,
    }
    return TaskRow(**columns)
