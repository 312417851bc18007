"""Hiring and describing agents under the CEO's contract (Spec: organisation 32)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from contracts.approvals.authorisations import use_change
from contracts.models import Contract
from contracts.vocabulary import OrgAct
from core.actions import Action
from core.decision import Code, listed, refuse
from governance.results import DescribedAgent, HiredAgent
from governance.staff import org_changes, rules
from governance.staff.new_kinds import insert_role, role_of_new_kind
from governance.staff.org_files import write_job_file_soon
from mailroom.delivery import send_system_mail
from orgchart import catalogue
from orgchart.models import Agent as AgentRow
from orgchart.models import Organisation, Role
from orgchart.policy.compiled import Agent
from orgchart.policy.compiled import Role as PolicyRole
from orgchart.policy.hiring import newcomer, places_of
from orgchart.policy.vocabulary import BOARD
from toolbox.caller import Caller


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAgent:
    """A new agent as HR describes it; without `reports_to` it reports where its role reports."""

    handle: str
    role: str
    title: str
    job_description: str
    reports_to: str | None = None
    co_managers: Sequence[str] = ()
    group: str | None = None
    name: str | None = None
    skills: Sequence[str] = ()


def hire_agent(
    *, caller: Caller, hire: NewAgent, expected_version: int | None, now: datetime
) -> HiredAgent:
    """Hire an agent that an org_change contract of the CEO names; people issue its key.

    Raises Denied: AUTHORISATION_REQUIRED, VERSION_MISMATCH, LEVEL_DENIED, NOT_FOUND,
    INVALID_PARAMS for a taken name or a broken invariant.
    """
    with transaction.atomic():
        role = _role(caller, hire)
        is_new_kind = role.name not in caller.policy.roles
        caller.require(rules.can_give_role(caller.agent, role, caller.policy))
        caller.require(rules.can_name(hire.handle, role, caller.policy))
        caller.require(rules.can_give_skills(hire.skills, catalogue.known()))
        _require_place(caller, hire, role)
        above = _superior(caller, hire, role)
        co_managers = org_changes.find_co_managers(caller, hire.co_managers)
        sought = rules.line_of(
            OrgAct.HIRE,
            hire.handle,
            role,
            None,
            superior=above.handle,
            co_managers=[agent.handle for agent in co_managers],
            skills=hire.skills,
            group=hire.group or "",
        )
        contract = use_change(caller=caller, sought=sought, now=now)
        version = org_changes.require_policy(caller.policy, expected_version)

        def apply(organisation: Organisation) -> None:
            if is_new_kind:
                insert_role(organisation, role, above.role)
            row = AgentRow.objects.create(
                organisation=organisation,
                handle=hire.handle,
                role=Role.objects.get(organisation=organisation, name=role.name),
                title=hire.title,
                job_description=hire.job_description,
                reports_to_id=above.id,
                group=organisation.groups.get(slug=hire.group) if hire.group else None,
                name=hire.name or "",
                skills=sorted(set(hire.skills)),
            )
            row.co_managers.set(agent.id for agent in co_managers)
            write_job_file_soon(organisation.slug, row)

        change = org_changes.change_organisation(
            caller,
            apply,
            action=Action.AGENT_HIRED,
            subject=f"agent:{hire.handle}",
            contract=contract,
            version=version,
            now=now,
        )
        hired = change.after.agents[hire.handle]
        _tell_issuer(caller, hired, contract, now)
    return {
        "agent": hired.handle,
        "address": hired.address,
        "policy_version": change.after.version,
    }


def _tell_issuer(caller: Caller, hired: Agent, contract: str, now: datetime) -> None:
    """Tell who ordered the hiring what came of it: its line may leave role and superior open.

    Names alone, and no words of HR (Spec: contracts 51).
    """
    issuer_id = Contract.objects.values_list("issuer_id", flat=True).get(id=contract)
    issuer = caller.policy.by_id.get(issuer_id or 0)
    if issuer is None or not issuer.active:
        return
    send_system_mail(
        organisation_id=caller.organisation_id,
        recipient=issuer,
        subject=f"{hired.handle} was hired as {hired.role}",
        body=f"{caller.handle} hired {hired.handle} as {hired.role} under {contract}. It reports "
        f"to {hired.superior}. To change that, issue another contract.",
        quotes=[],
        now=now,
        contract_ref=contract,
    )


def describe_agent(
    *,
    caller: Caller,
    agent: str,
    title: str | None,
    job_description: str | None,
    skills: Sequence[str] | None,
    expected_version: int | None,
    now: datetime,
) -> DescribedAgent:
    """Change an agent's title or job description, or take skills away; what is None stays.

    Raises Denied: AUTHORISATION_REQUIRED, VERSION_MISMATCH, NOT_FOUND, LEVEL_DENIED,
    INVALID_PARAMS when nothing is given.
    """
    given = {"title": title, "job_description": job_description, "skills": skills}
    values = {name: value for name, value in given.items() if value is not None}
    if not values:
        raise refuse(
            Code.INVALID_PARAMS,
            "nothing to change was given",
            "give title, job_description or skills",
            rule="parameters",
        )
    with transaction.atomic():
        contract = org_changes.use_change(caller, OrgAct.DESCRIBE, agent, now)
        version = org_changes.require_policy(caller.policy, expected_version)
        target = org_changes.find_agent(caller, agent)
        caller.require(rules.can_manage(caller.agent, target, caller.policy))
        if skills is not None:
            added = frozenset(skills) - target.skills
            caller.require(rules.can_give_skills(added, catalogue.known()))
            caller.require(rules.can_describe(added))
            values["skills"] = sorted(set(skills))

        def apply(organisation: Organisation) -> None:
            row = org_changes.row_of(target)
            for name, value in values.items():
                setattr(row, name, value)
            row.save(update_fields=list(values))
            write_job_file_soon(organisation.slug, row)

        change = org_changes.change_organisation(
            caller,
            apply,
            action=Action.AGENT_DESCRIBED,
            subject=f"agent:{target.handle}",
            contract=contract,
            version=version,
            now=now,
            changed=sorted(values),
        )
    return {"agent": target.handle, "policy_version": change.after.version}


def _role(caller: Caller, hire: NewAgent) -> PolicyRole:
    """The role to hire into: one there is, or a new kind of worker that has the agent's own name.

    Raises Denied INVALID_PARAMS for another unknown role, or a new kind without its manager.
    """
    if hire.role in caller.policy.roles or hire.role != hire.handle:
        return org_changes.find_role(caller, hire.role)
    caller.require(rules.can_name_kind(hire.role, caller.policy))
    if hire.reports_to is None:
        raise refuse(
            Code.INVALID_PARAMS,
            f"reports_to: {hire.role} is a new kind of worker; name its manager",
            "give reports_to",
            rule="every agent has a superior",
            reports_to="name an agent",
        )
    above = org_changes.find_active(caller, hire.reports_to, "reports_to")
    return role_of_new_kind(hire.role, hire.title, above, caller.policy)


def _require_place(caller: Caller, hire: NewAgent, role: PolicyRole) -> None:
    """In a group an agent has a name, and with both an address that is free."""
    if (hire.group is None) != (hire.name is None):
        missing = "group" if hire.group is None else "name"
        raise refuse(
            Code.INVALID_PARAMS,
            f"{missing}: an address is `group.name`; give both or neither",
            f"give {missing}, or leave the other out",
            rule="parameters",
            **{missing: "is missing"},
        )
    if hire.group is None:
        return
    if hire.group not in caller.policy.groups:
        raise refuse(
            Code.INVALID_PARAMS,
            f"group: there is no group {hire.group}",
            f"name one of: {listed(sorted(caller.policy.groups)) or 'none, leave it out'}",
            rule="the group exists",
            group="there is no such group",
        )
    caller.require(rules.can_name_in_group(str(hire.name), hire.handle))
    caller.require(rules.can_name(f"{hire.group}.{hire.name}", role, caller.policy))


def _superior(caller: Caller, hire: NewAgent, role: PolicyRole) -> Agent:
    """The new agent's superior: without one in the request the one that all holders of the role
    have, or for the first holder the only one that is possible.

    Raises Denied INVALID_PARAMS where it must be given.
    """
    if hire.reports_to is not None and hire.reports_to != BOARD:
        return org_changes.find_active(caller, hire.reports_to, "reports_to")
    policy = caller.policy
    above = {a.superior for a in policy.agents.values() if a.role == role.name and a.active}
    if not above:
        places = places_of(policy, newcomer(role.name))
        above = {place.superior for place in places if place.is_possible}
    if hire.reports_to == BOARD or above == {BOARD} or len(above) != 1:
        raise refuse(
            Code.INVALID_PARAMS,
            "reports_to: name the superior of the new agent; only people hire for the Board",
            "give reports_to",
            rule="every agent has a superior",
            reports_to="name an agent",
        )
    return policy.agents[above.pop()]
