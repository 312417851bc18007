"""Deployments: what must hold before one starts, its start, and its end whatever happens."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction

from contracts.approvals.deployments import use_approval
from contracts.models import Contract
from core.actions import Action
from core.actors import Actor, System
from core.database import database_now, needs_transaction, violated_constraint
from core.decision import Code, Decision, Denied, Deny, refuse
from core.events import Event
from core.ids import timed_id
from core.machines import Swap, swap
from ledger.services import record
from ledger.sql import event_cte
from toolbox.caller import Caller
from toolbox.scheduler import act_on_each
from workspace.builds import containers, rules
from workspace.builds.containers import DeploymentOutcome
from workspace.builds.engine import Engine, EngineRefused, EngineUnavailable, opened
from workspace.builds.images import engine_answers, require_engine, require_limits
from workspace.builds.models import Deployment, ImageBuild
from workspace.builds.results import DeployedArtifact
from workspace.builds.vocabulary import DEPLOYMENT_ID, DeploymentState
from workspace.runs.recording import FAILED, RecordedRun, recorded_run

log = structlog.get_logger(__name__)

LONGEST = 60.0
"""Seconds that the engine has for a deployment."""
SETTLED_AFTER = timedelta(seconds=LONGEST + 60)
ACTIONS = {
    DeploymentState.SUCCEEDED: Action.DEPLOYMENT_SUCCEEDED,
    DeploymentState.FAILED: Action.DEPLOYMENT_FAILED,
    DeploymentState.UNKNOWN: Action.DEPLOYMENT_UNKNOWN,
}


def deploy(*, caller: Caller, environment: str, artifact: str, now: datetime) -> DeployedArtifact:
    """Deploy one artefact to one environment; production uses up an approval of exactly this.

    It is a run, which people can stop; the deployment fails then. Raises Denied APPROVAL_REQUIRED,
    QUOTA_EXCEEDED, INVALID_PARAMS, NOT_FOUND, INVALID_TRANSITION, RATE_LIMITED; DRIVER_UNAVAILABLE.
    Then no approval is used. What happens after the start is the result's `state`. Spec: hands 9,
    hands 24, hands 37, contracts 18.
    """
    began = caller.clock.now()
    require_deployable(caller=caller, environment=environment, artifact=artifact, now=now)
    built = _built(caller, artifact)
    what = [artifact, environment]
    with (
        recorded_run(caller=caller, paths=what, seconds=LONGEST, now=now) as run,
        engine_answers(),
        opened(LONGEST) as engine,
    ):
        require_limits(engine)
        image = _resolved(engine.image(artifact), artifact)
        caller.require(rules.can_describe(image))
        caller.require(rules.can_run_as(image))
        caller.require(rules.can_hold_volumes(image))
        _require_place(engine, caller, environment, built.service)
        # It waited for its turn and the engine: its right or an approval may have ended meanwhile.
        run.require_right()
        row = _start(caller, environment, built, now + (caller.clock.now() - began))
        try:
            outcome = containers.start(engine, row, image, run)
        except Exception:
            settle(row, DeploymentOutcome(DeploymentState.UNKNOWN, "it was interrupted"), by=caller)
            raise
        settle(row, outcome, by=caller)
        run.end(0 if outcome.state is DeploymentState.SUCCEEDED else FAILED)
    return _result_of(Deployment.objects.get(id=row.id), run)


def require_deployable(*, caller: Caller, environment: str, artifact: str, now: datetime) -> None:
    """Raise Denied where a deployment would be refused before an engine is asked; uses nothing."""
    if rules.needs_approval(environment):
        with transaction.atomic():
            _use_approval(caller, environment, artifact, now)
            transaction.set_rollback(True)
    caller.require(rules.can_name_environment(environment))
    require_engine(caller)
    caller.require(rules.can_name_artifact(artifact))


@needs_transaction
def _use_approval(caller: Caller, environment: str, artifact: str, now: datetime) -> str:
    """Use an approval of this deployment; its contract's id. Raises Denied APPROVAL_REQUIRED, also
    where each is of an agent that built the image, in another role (Spec: organisation 28), or from
    before it was built (Spec: hands 33).

    Who approved it sent the contract's mail; its issuer may be the successor of that agent.
    """
    rows = ImageBuild.objects.filter(organisation_id=caller.organisation_id, digest=artifact)
    builds = list(rows.values_list("built_by_id", "built_at"))

    def can_deploy_under(approval: Contract) -> Decision:
        approver = approval.notice.sender_id
        by_another = rules.can_approve_build(approver, [builder for builder, _ in builds])
        if isinstance(by_another, Deny):
            return by_another
        return rules.can_be_approved(approval.id, approval.created_at, [at for _, at in builds])

    return use_approval(
        caller=caller,
        environment=environment,
        artifact=artifact,
        now=now,
        can_deploy_under=can_deploy_under,
    )


def _built(caller: Caller, artifact: str) -> ImageBuild:
    """The newest build of this digest in the caller's organisation. Raises Denied NOT_FOUND."""
    found = ImageBuild.objects.filter(organisation_id=caller.organisation_id, digest=artifact)
    row = found.order_by("-id").first()
    if row is None:
        raise _unknown(artifact)
    return row


def _resolved(image: Mapping[str, Any] | None, artifact: str) -> Mapping[str, Any]:
    """The image, if the engine says that it is the one with this digest."""
    if image is None or image.get("Id") != artifact:
        raise _unknown(artifact)
    return image


def _require_place(engine: Engine, caller: Caller, environment: str, service: str) -> None:
    """Raise Denied QUOTA_EXCEEDED where another service has no place (Spec: hands 37)."""
    organisation_id = caller.organisation_id
    prefix = containers.container_prefix(organisation_id)
    of_all = engine.labelled(containers.owned_by(organisation_id), prefix=prefix)
    labels = containers.labels_of(organisation_id, environment, service)
    own = engine.labelled(labels, prefix=prefix)
    most = settings.CONTAINER_SERVICES
    caller.require(rules.can_have_place(len(of_all), most, takes_one_over=bool(own)))


def _unknown(artifact: str) -> Denied:
    return refuse(
        Code.NOT_FOUND,
        f"no image {artifact[:80]} was built here",
        "build it with docker_build and deploy the digest that it returns",
        rule=rules.RULE,
    )


def _start(caller: Caller, environment: str, built: ImageBuild, now: datetime) -> Deployment:
    """Begin a deployment and use its approval up, in one transaction."""
    try:
        with transaction.atomic():
            approval = None
            if rules.needs_approval(environment):
                approval = _use_approval(caller, environment, built.digest, now)
            row = Deployment.objects.create(
                id=timed_id(DEPLOYMENT_ID, now),
                organisation_id=caller.organisation_id,
                environment=environment,
                service=built.service,
                artifact=built.digest,
                approval_id=approval,
                deployed_by_id=caller.agent.id,
                started_at=now,
                due_at=database_now() + SETTLED_AFTER,
            )
            record(
                Action.DEPLOYMENT_STARTED,
                by=caller,
                at=now,
                subject=f"deployment:{row.id}",
                details={
                    "environment": environment,
                    "service": built.service,
                    "artifact": built.digest,
                    "approval": approval or "",
                },
            )
    except IntegrityError as problem:
        if violated_constraint(problem) != "deployment_one_at_a_time":
            raise
        raise under_way(built.service, environment) from None
    return row


def under_way(service: str, environment: str) -> Denied:
    """The refusal of a second deployment of a service at a time."""
    return refuse(
        Code.INVALID_TRANSITION,
        f"another deployment of {service} to {environment} is under way",
        "wait for its end, then try again",
        rule="one deployment of a service at a time (spec: hands 24)",
    )


def settle(row: Deployment, outcome: DeploymentOutcome, *, by: Actor) -> bool:
    """Save how a deployment ended, with its event; False if the row changed since it was read."""
    event = Event.by(
        by,
        ACTIONS[outcome.state],
        at=database_now(),
        subject=f"deployment:{row.id}",
        reason=outcome.problem[:2000],
        details={"environment": row.environment, "service": row.service, "artifact": row.artifact},
    )
    return swap(
        Swap(
            model=Deployment,
            key=row.id,
            version=row.version,
            state=("state", row.state, outcome.state),
            values={"settled_at": event.at, "problem": outcome.problem},
        ),
        [event_cte(event)],
    )


def settle_interrupted(now: datetime) -> int:
    """Settle deployments that no process saw the end of; returns how many (Spec: hands 24).

    The engine is asked outside any transaction. Concurrent runs are harmless.
    """
    due = Deployment.objects.filter(state=DeploymentState.STARTED, due_at__lte=now)
    return act_on_each(due.order_by("due_at"), _settle_interrupted)


def _settle_interrupted(row: Deployment) -> bool:
    system = System(name="builds", organisation_id=row.organisation_id)
    return settle(row, find_outcome(row), by=system)


def find_outcome(row: Deployment) -> DeploymentOutcome:
    """How the engine says that a deployment ended, which no process saw the end of."""
    try:
        with opened(10.0) as engine:
            return containers.find_outcome(engine, row)
    except (EngineUnavailable, EngineRefused) as problem:
        return DeploymentOutcome(
            DeploymentState.UNKNOWN, f"it was interrupted; the engine: {problem}"
        )


def _result_of(row: Deployment, run: RecordedRun) -> DeployedArtifact:
    """A deployment as its tool returns it."""
    return {
        **run.log(),
        "deployment_id": row.id,
        "environment": row.environment,
        "service": row.service,
        "artifact": row.artifact,
        "state": DeploymentState(row.state),
        "message": row.problem,
        "deployed_at": row.settled_at or row.started_at,
    }
