"""How a deployed service is: what its engine says, and what it answers at its own address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from django.conf import settings

from core.database import planned_for_values
from core.decision import Code, refuse
from core.outgoing import FAILURES, close_after, trusted
from toolbox.caller import Caller
from workspace.builds.containers import container_name, problem_of
from workspace.builds.engine import opened
from workspace.builds.images import engine_answers, require_engine
from workspace.builds.models import Deployment
from workspace.builds.results import ServiceHealth
from workspace.builds.rules import health_path_of, port_of
from workspace.builds.vocabulary import DeploymentState
from workspace.outside_calls import slot

LONGEST = 10.0
"""Seconds that the engine, and then the service, have."""


def check_health(*, caller: Caller, service: str, environment: str | None) -> ServiceHealth:
    """Whether the newest deployment of a service runs and answers.

    Its address is the engine's or the setting SERVICE_ADDRESSES, never the caller's.

    Spec: hands 25. Raises Denied NOT_FOUND, DRIVER_UNAVAILABLE, RATE_LIMITED.
    """
    require_engine(caller)
    row = latest(caller, service, environment)
    with slot(caller, "health checks"):
        problem = _problem_of_deployment(row)
        if not problem:
            with engine_answers(), opened(LONGEST) as engine:
                container = engine.container(container_name(row))
                image = engine.image(row.artifact)
            problem = problem_of(container) or answer_problem(_address(row, container, image))
    return {
        "service": service,
        "environment": row.environment,
        "artifact": row.artifact,
        "healthy": not problem,
        "message": problem or "it runs and answers",
    }


def latest(caller: Caller, service: str, environment: str | None) -> Deployment:
    """The newest deployment of a service in the caller's organisation. Raises NOT_FOUND."""
    found = Deployment.objects.filter(organisation_id=caller.organisation_id, service=service)
    if environment is not None:
        found = found.filter(environment=environment)
    with planned_for_values():
        row = found.order_by("-id").first()
    if row is None:
        raise refuse(
            Code.NOT_FOUND,
            f"no service {service[:100]} was deployed here",
            "name a service as docker_deploy returned it",
            rule="run_health_check only looks (spec: hands 11)",
        )
    return row


def _problem_of_deployment(row: Deployment) -> str:
    match DeploymentState(row.state):
        case DeploymentState.STARTED:
            return f"{row.id} is still under way"
        case DeploymentState.FAILED:
            return f"{row.id} failed: {row.problem}"
        case DeploymentState.REMOVED:
            return f"{row.id} was taken down: {row.problem}"
        case DeploymentState.UNKNOWN | DeploymentState.SUCCEEDED:
            return ""


def _address(
    row: Deployment, container: Mapping[str, Any] | None, image: Mapping[str, Any] | None
) -> str:
    """Where the service answers; '' where it says of itself that it serves nothing."""
    name = f"{row.organisation.slug}/{row.environment}/{row.service}"
    named = settings.SERVICE_ADDRESSES.get(name)
    if named:
        return str(named)
    port = port_of(image or {})
    networks = ((container or {}).get("NetworkSettings") or {}).get("Networks") or {}
    numbers = [str(each.get("IPAddress") or "") for each in networks.values()]
    number = next(filter(None, numbers), "")
    if port is None or not number:
        return ""
    return f"http://{number}:{port}{health_path_of(image or {})}"


def answer_problem(address: str) -> str:
    """Why an address does not answer well, or ''. No redirect is followed, no body is read."""
    if not address:
        return ""
    try:
        with (
            close_after(LONGEST) as trace,
            httpx.Client(timeout=LONGEST, trust_env=False, verify=trusted()) as client,
            client.stream("GET", address, extensions={"trace": trace}) as response,
        ):
            status = response.status_code
    except FAILURES as problem:
        return f"it does not answer ({type(problem).__name__})"
    return "" if status < 400 else f"it answers {status}"
