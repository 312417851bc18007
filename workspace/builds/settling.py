"""People settle a deployment whose outcome is not known (Spec: hands 31), or take one down."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.db import IntegrityError, transaction

from core.actions import Action
from core.actors import Person
from core.database import database_now, violated_constraint
from core.decision import Code, Denied, refuse
from core.events import Event
from core.interventions import record_intervention
from core.machines import Swap, swap
from core.permissions import Deed, require_deed
from ledger.services import record
from ledger.sql import event_cte
from workspace.builds import rules
from workspace.builds.containers import (
    DeploymentOutcome,
    found_in_place,
    found_under_other_names,
)
from workspace.builds.deployments import SETTLED_AFTER, find_outcome, settle, under_way
from workspace.builds.engine import opened
from workspace.builds.images import engine_answers
from workspace.builds.models import Deployment
from workspace.builds.vocabulary import DeploymentState

LONGEST = 20.0
"""Seconds that the engine has to remove what runs."""


def look_again(
    *, deployment_id: str, person: Person, reason: str, now: datetime
) -> DeploymentState:
    """Ask the engine how the deployment ended, and save that; the state it has then.

    It is under way meanwhile, so no other deployment begins in its place, and the scheduler settles
    it if this process ends. Raises Denied NOT_YOURS, INVALID_PARAMS without a reason, NOT_FOUND,
    INVALID_TRANSITION where the end is known or another deployment is under way.
    """
    row = _unknown(deployment_id, person, reason)
    _begin_again(row, person, reason)
    row = Deployment.objects.get(id=row.id)
    settle(row, find_outcome(row), by=person)
    return DeploymentState(Deployment.objects.get(id=row.id).state)


def _begin_again(row: Deployment, person: Person, reason: str) -> None:
    event = Event.by(
        person,
        Action.DEPLOYMENT_ASKED,
        at=database_now(),
        subject=f"deployment:{row.id}",
        reason=reason,
    )
    change = Swap(
        model=Deployment,
        key=row.id,
        version=row.version,
        state=("state", DeploymentState.UNKNOWN, DeploymentState.STARTED),
        values={"settled_at": None, "due_at": event.at + SETTLED_AFTER},
    )
    try:
        with transaction.atomic():
            moved = swap(change, [event_cte(event)])
    except IntegrityError as problem:
        if violated_constraint(problem) != "deployment_one_at_a_time":
            raise
        raise under_way(row.service, row.environment) from None
    if not moved:
        raise _settled_meanwhile(row)


def record_as_failed(*, deployment_id: str, person: Person, reason: str, now: datetime) -> None:
    """Save that the deployment does not run, as the person found out.

    Raises Denied NOT_YOURS, INVALID_PARAMS without a reason, NOT_FOUND, INVALID_TRANSITION.
    """
    row = _unknown(deployment_id, person, reason)
    outcome = DeploymentOutcome(DeploymentState.FAILED, f"{person.username} looked: {reason}")
    if not settle(row, outcome, by=person):
        raise _settled_meanwhile(row)


def take_down(*, deployment_id: str, person: Person, reason: str, now: datetime) -> None:
    """Remove the containers of a service that runs, as an intervention (Spec: hands 37).

    The engine is asked outside any transaction; what breaks off can be done again. Raises Denied
    NOT_YOURS, INVALID_PARAMS without a reason, NOT_FOUND, INVALID_TRANSITION where another one
    runs or none, or it runs under another SECRET_KEY, DRIVER_UNAVAILABLE where the engine does not
    remove them.
    """
    require_deed(person, Deed.TAKE_DOWN, reason=reason)
    row = _found(deployment_id, person)
    with engine_answers(), opened(LONGEST) as engine:
        containers = found_in_place(engine, row)
        person.require(rules.can_find_all(found_under_other_names(engine, row)))
        row = _found(deployment_id, person)  # a later deployment may have begun meanwhile
        person.require(rules.can_take_down(DeploymentState(row.state), is_current=row.is_current))
        subject = f"deployment:{row.id}"
        with transaction.atomic():
            record(
                Action.DEPLOYMENT_REMOVAL_STARTED,
                by=person,
                at=database_now(),
                subject=subject,
                reason=reason,
                details={"containers": containers},
            )
        for each in containers:
            engine.remove(each)
    event = Event.by(
        person, Action.DEPLOYMENT_REMOVED, at=database_now(), subject=subject, reason=reason
    )
    change = Swap(
        model=Deployment,
        key=row.id,
        version=row.version,
        state=("state", row.state, DeploymentState.REMOVED),
        values={"problem": f"{person.username} took it down: {reason}"},
    )
    with transaction.atomic():
        if not swap(change, [event_cte(event)]):
            raise _settled_meanwhile(row)
        record_intervention(
            replace(person, is_asked_again=False),  # it was done, so it is recorded
            deed=Deed.TAKE_DOWN,
            subject=subject,
            trigger_condition=f"{row.service} running in {row.environment}",
            action_taken="take_down_deployment",
            reason=reason,
            now=event.at,
        )


def _unknown(deployment_id: str, person: Person, reason: str) -> Deployment:
    require_deed(person, Deed.SETTLE_DEPLOYMENT, reason=reason)
    row = _found(deployment_id, person)
    person.require(rules.can_settle(DeploymentState(row.state), is_replaced=row.is_replaced))
    return row


def _found(deployment_id: str, person: Person) -> Deployment:
    rows = Deployment.objects.filter(organisation_id=person.organisation_id)
    row = rows.filter(id=deployment_id).first()
    if row is None:
        raise refuse(
            Code.NOT_FOUND,
            f"there is no deployment {deployment_id}",
            "look at the list of deployments",
            rule=rules.RULE,
        )
    return row


def _settled_meanwhile(row: Deployment) -> Denied:
    return refuse(
        Code.INVALID_TRANSITION,
        f"another person settled {row.id} meanwhile",
        "reload the page to see how it ended",
        rule=rules.RULE,
    )
