"""Deactivating agents; their open work goes to their superior (Spec: organisation 37)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from contracts.vocabulary import OrgAct
from core.actors import Actor, Person
from core.decision import Denied
from core.interventions import record_intervention
from core.permissions import Deed, require_deed
from governance.results import DeactivatedAgent
from governance.staff import open_work, org_changes, rules
from governance.staff.org_files import write_org_files_soon
from orgchart import staffing
from orgchart.compiling import compile_policy
from orgchart.models import Agent as AgentRow
from orgchart.models import Organisation
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.names import unknown_agent
from toolbox.caller import Caller


def deactivate_agent(
    *, caller: Caller, agent: str, reason: str, expected_version: int | None, now: datetime
) -> DeactivatedAgent:
    """Deactivate an agent that an org_change contract of the CEO names.

    `holds` names what the caller may read; the superior is told of all. Raises Denied:
    AUTHORISATION_REQUIRED, VERSION_MISMATCH, NOT_FOUND, LEVEL_DENIED for itself, the top agent or
    one above, INVALID_TRANSITION for one that is deactivated already, INVALID_PARAMS for a broken
    invariant.
    """
    with transaction.atomic():
        contract = org_changes.use_change(caller, OrgAct.DEACTIVATE, agent, now)
        org_changes.require_policy(caller.policy, expected_version)
        target = org_changes.find_agent(caller, agent)
        caller.require(rules.can_manage(caller.agent, target, caller.policy))
        done = _deactivate(caller, caller.policy, target, reason, now, contract=contract)
        return {**done, "holds": open_work.seen_by(caller, done["holds"])}


def deactivate_by_person(
    *, person: Person, agent: str, reason: str, expected_version: int, now: datetime
) -> DeactivatedAgent:
    """Deactivate an agent by a person of the Board or of HR, with a reason.

    Raises Denied: NOT_YOURS for other groups, NOT_FOUND, INVALID_PARAMS for an empty reason
    or a broken invariant, INVALID_TRANSITION, VERSION_MISMATCH.
    """
    require_deed(person, Deed.ACTIVATE_AGENT, reason=reason)
    with transaction.atomic():
        policy = compile_policy(person.organisation_id)
        org_changes.require_policy(policy, expected_version)
        target = policy.resolve(agent)
        if target is None:
            raise Denied(unknown_agent(agent, "choose an agent of the list", known=policy.agents))
        record_intervention(
            person,
            deed=Deed.ACTIVATE_AGENT,
            subject=f"agent:{target.handle}",
            trigger_condition="active",
            action_taken="deactivate_agent",
            reason=reason,
            now=now,
        )
        return _deactivate(person, policy, target, reason, now)


def _deactivate(
    caller: Actor, policy: Policy, target: Agent, reason: str, now: datetime, **details: Any
) -> DeactivatedAgent:
    successor = policy.agents.get(target.superior)
    # Lock the organisation and the agent before its work, in the order of loading a pack.
    Organisation.objects.select_for_update(no_key=True).get(id=policy.organisation_id)
    AgentRow.objects.select_for_update(no_key=True).get(id=target.id)
    held = open_work.reassign_work(
        caller=caller, leaver=target, successor=successor, reason=reason, now=now
    )
    change = staffing.deactivate_agent(
        handle=target.handle,
        caller=caller,
        now=now,
        reason=reason,
        expected_version=policy.version,
        details={"holds": held.result(), **details},
    )
    write_org_files_soon(change.after)
    return {
        "agent": target.handle,
        "holds": held.result(),
        "handed_to": target.superior,
        "policy_version": change.after.version,
    }
