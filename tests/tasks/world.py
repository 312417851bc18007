"""Two small organisations of the specification, callers in them, and tools called over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from core.actors import System
from orgchart.keys import issue_key
from orgchart.models import Agent, Organisation, Role
from orgchart.policy.vocabulary import Kind, ToolMode
from orgchart.policy_cache import current_policy
from tasks.vocabulary import TaskType
from tests.agents import AgentsClient
from tests.oracle.tasks import ROLES
from toolbox.caller import Caller, CallerSession

NOW = datetime(2026, 2, 15, 9, 0, tzinfo=UTC)

CLAIMS = {
    "team-lead": [str(kind) for kind in TaskType],
    "backend-leader": ["backend_implementation", "bug_fix", "code_review", "other"],
    "frontend-leader": ["frontend_implementation", "ui_design", "bug_fix", "other"],
}


def make_organisation(slug: str, **settings: Any) -> Organisation:
    """An organisation without agents."""
    return Organisation.objects.create(slug=slug, name=slug, settings=settings)


def add_role(organisation: Organisation, name: str, level: int = 2, **fields: Any) -> Role:
    return Role.objects.create(
        organisation=organisation,
        name=name,
        title=name,
        level=level,
        kind=Kind.EXECUTIVE if level == 1 else Kind.WORKER,
        **fields,
    )


def add_agent(
    organisation: Organisation, handle: str, role: Role, reports_to: Agent | None = None
) -> Agent:
    return Agent.objects.create(
        organisation=organisation, handle=handle, role=role, title=handle, reports_to=reports_to
    )


def dev_team(slug: str = "dev-team", **settings: Any) -> Organisation:
    """Spec: tasks 2: one agent for each role, and a second backend-leader."""
    organisation = make_organisation(slug, **{"task_visibility": "all", **settings})
    lead_role = add_role(organisation, "team-lead", 1, task_lead=True)
    lead = add_agent(organisation, "team-lead", lead_role)
    for name in ROLES[1:]:
        role = add_role(organisation, name)
        add_agent(organisation, name, role, lead)
        if name == "backend-leader":
            add_agent(organisation, "backend-leader-2", role, lead)
    return organisation


def permit(organisation: Organisation, role: str, **permissions: Any) -> None:
    """Give a role permissions (Spec: tasks 40)."""
    Role.objects.filter(organisation=organisation, name=role).update(permissions=permissions)
    touch(organisation)


def touch(organisation: Organisation) -> None:
    """Count a change of the policy, so that the next caller sees it."""
    organisation.policy_version += 1
    organisation.save()


def configure(organisation: Organisation, **settings: Any) -> None:
    organisation.settings |= settings
    touch(organisation)


def company(slug: str = "nexus", **settings: Any) -> Organisation:
    """A part of Spec: organisation 6: CEO, two IT managers with a worker each, product and QA."""
    organisation = make_organisation(slug, **{"task_visibility": "all", **settings})
    it = add_role(organisation, "it_manager", 2, task_lead=True, tools=["assign_task"])
    product = add_role(
        organisation,
        "product_manager",
        2,
        tools=["manage_backlog", "prioritize_tasks", "read_user_feedback"],
    )
    backend = add_role(organisation, "backend_worker", 3)
    qa = add_role(organisation, "qa_worker", 3)
    ceo = add_agent(organisation, "ceo", add_role(organisation, "ceo", 1))
    one = add_agent(organisation, "it_manager", it, ceo)
    two = add_agent(organisation, "it_manager_2", it, ceo)
    add_agent(organisation, "product_manager", product, ceo)
    add_agent(organisation, "backend_worker", backend, one)
    add_agent(organisation, "backend_worker_2", backend, two)
    add_agent(organisation, "qa_worker", qa, one)
    return organisation


def caller_of(organisation: Organisation, handle: str) -> Caller:
    """An agent's caller under the present policy."""
    policy = current_policy(organisation.id)
    return Caller(
        agent=policy.agents[handle],
        policy=policy,
        session=CallerSession(id="", mode=ToolMode.CHAT_SAFE),
        tool="task_update",
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call was answered with."""

    status: int
    body: dict[str, Any]

    @property
    def result(self) -> dict[str, Any]:
        assert self.status == 200, self.body
        return self.body["result"]

    @property
    def code(self) -> str:
        return self.body.get("error_code", "")

    @property
    def message(self) -> str:
        return self.body.get("message", "")


class Http:
    """Agents of one organisation, each with its key, calling tools over HTTP."""

    def __init__(self, organisation: Organisation) -> None:
        self.organisation = organisation
        self._keys: dict[str, str] = {}
        self._client = AgentsClient()

    def key(self, handle: str) -> str:
        if handle not in self._keys:
            agent = Agent.objects.get(organisation=self.organisation, handle=handle)
            system = System(name="tests", organisation_id=self.organisation.id)
            self._keys[handle] = issue_key(agent=agent, caller=system, now=timezone.now())
        return self._keys[handle]

    def call(self, handle: str, name: str, /, **params: Any) -> Answer:
        response = self._client.post(
            f"/api/v1/tools/{name}",
            params,
            content_type="application/json",
            headers={"Authorization": f"Bearer {self.key(handle)}"},
        )
        return Answer(response.status_code, response.json())


CSV = """id,body,author,category,rating,received_at,colour
7,"It is slow, very",ann,bug,2,2026-01-05T10:00:00,red
8,Lovely,bob,,5,,
"""
