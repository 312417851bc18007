"""A company of any size: a CEO, managers with ten workers each, and the rules between them."""

from __future__ import annotations

from datetime import datetime

from core.actions import Action
from core.actors import System
from orgchart.compiling import compile_policy
from orgchart.models import (
    Agent,
    ContactRule,
    Group,
    MailTypeRule,
    Organisation,
    Role,
)
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import Kind, Relation
from orgchart.policy_cache import POLICIES
from orgchart.services import change_policy
from toolbox.caller import Caller, CallerSession
from toolbox.models import Session

TEAM = 10
ROLES = (
    ("ceo", 1, Kind.EXECUTIVE, ["send_mail", "generate_contract", "write_note"]),
    (
        "team_manager",
        2,
        Kind.MANAGER,
        ["send_mail", "create_contract", "approve_deployment", "escalate", "submit_report"],
    ),
    (
        "team_worker",
        3,
        Kind.WORKER,
        ["send_mail", "escalate", "read_contract", "submit_report", "docker_deploy"],
    ),
)
CONTACTS = (
    ("ceo", "team_manager", Relation.ANY),
    ("team_manager", "ceo", Relation.ANY),
    ("team_manager", "team_worker", Relation.OWN),
    ("team_worker", "team_manager", Relation.OWN),
)
SETTINGS = {
    "board_webhook": "http://127.0.0.1:9/",
    "escalation_timeout": 7200,
    "ceo_timeout": 14_400,
    "task_lease": 1800,
    "task_visibility": "all",
}


def found_company(*, agents: int, now: datetime) -> Policy:
    """Create the organisation `simulated` with this many agents; its policy."""
    POLICIES.clear()
    organisation = Organisation.objects.create(
        slug="simulated", name="Simulated", settings=SETTINGS
    )
    change_policy(
        organisation_id=organisation.id,
        apply=lambda row: _staff(row, agents),
        caller=System(name="simulation", organisation_id=organisation.id),
        action=Action.ORGANISATION_LOADED,
        now=now,
        new=True,
    )
    Session.objects.bulk_create(
        Session(organisation=organisation, agent=agent, standing=True, opened_at=now)
        for agent in organisation.agents.all()
    )
    return compile_policy(organisation.id)


def _staff(organisation: Organisation, agents: int) -> None:
    roles = {
        name: Role.objects.create(
            organisation=organisation, name=name, title=name, level=level, kind=kind, tools=tools
        )
        for name, level, kind, tools in ROLES
    }
    for name in ("info", "report", "question"):
        MailTypeRule.objects.create(organisation=organisation, name=name)
    MailTypeRule.objects.create(organisation=organisation, name="escalation", to_superior=True)
    MailTypeRule.objects.create(
        organisation=organisation,
        name="contract",
        issued_by=["generate_contract", "create_contract"],
    )
    MailTypeRule.objects.create(
        organisation=organisation,
        name="deployment_approval",
        issued_by=["approve_deployment"],
    )
    for sender, recipient, relation in CONTACTS:
        ContactRule.objects.create(
            organisation=organisation,
            sender=roles[sender],
            recipient=roles[recipient],
            relation=relation,
        )
    _people(organisation, roles, agents)


def _people(organisation: Organisation, roles: dict[str, Role], agents: int) -> None:
    ceo = Agent.objects.create(organisation=organisation, handle="ceo", role=roles["ceo"])
    left = agents - 1
    number = 0
    while left > 0:
        group = Group.objects.create(
            organisation=organisation, slug=f"team{number}", name=f"Team {number}"
        )
        manager = Agent.objects.create(
            organisation=organisation,
            handle=f"m{number}",
            role=roles["team_manager"],
            reports_to=ceo,
            group=group,
            name="leader",
            is_leader=True,
        )
        size = min(TEAM, left - 1)
        Agent.objects.bulk_create(
            Agent(
                organisation=organisation,
                handle=f"w{number}_{n}",
                role=roles["team_worker"],
                reports_to=manager,
                group=group,
                name=f"w{n}",
            )
            for n in range(size)
        )
        left -= size + 1
        number += 1


def callers(policy: Policy) -> list[Caller]:
    """Everybody, ready to call."""
    sessions = dict(
        Session.objects.filter(organisation_id=policy.organisation_id, standing=True).values_list(
            "agent_id", "id"
        )
    )
    mode = next(iter(policy.enabled_modes))
    return [
        Caller(
            agent=agent,
            policy=policy,
            session=CallerSession(str(sessions[agent.id]), mode),
            request_id="simulation",
        )
        for agent in policy.agents.values()
    ]
