"""How a container of an image is run here: without privileges, mounts or this machine's network."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from workspace.builds.engine import Engine, EngineRefused, EngineUnavailable
from workspace.builds.models import Deployment
from workspace.builds.rules import emptied_labels_of, health_check_of, user_of, volumes_of
from workspace.builds.vocabulary import DEPLOYMENT_ID, DeploymentState
from workspace.runs.recording import RecordedRun

WATCHED = 3.0
"""Seconds that a container must run before it counts as started."""
PRINTED = "10m"
"""What a container printed is kept up to this size: engines have no limit of their own."""
SCRATCH = "rw,noexec,nosuid,nodev,size=64m"
WRITABLE = ("/tmp", "/run")  # noqa: S108  inside the container
SYSTEM_CALLS = ["no-new-privileges"]
INSTALLATION = "nexus-"
"""How the names of images and containers of all installations begin."""
OTHER_NAME = "it was interrupted; its container was named under another SECRET_KEY and may run"
MOST_BEFORE = 1000
"""Newest deployments in one place whose containers are looked for under other names."""


@dataclass(frozen=True, slots=True)
class DeploymentOutcome:
    """How a deployment ended, and what there is to say about it."""

    state: DeploymentState
    problem: str = ""


def namespace(organisation_id: int) -> str:
    """The names of an organisation's images and containers on an engine that others use too."""
    secret = settings.SECRET_KEY.encode()
    installation = hmac.digest(secret, b"containers", hashlib.sha256).hex()[:10]
    return f"{INSTALLATION}{installation}/o{organisation_id}"


def image_prefix(organisation_id: int) -> str:
    """How the names of an organisation's images begin: in one piece, without a slash.

    Podman finds an image of a short name also by the last pieces of its own: `o2/api`, `api`.
    """
    return f"{namespace(organisation_id).replace('/', '-')}-"


def container_name(row: Deployment) -> str:
    """The one name of a deployment's container: what a crash left is found by it."""
    return f"{image_prefix(row.organisation_id)}{row.id}"


def container_prefix(organisation_id: int) -> str:
    """How the names of an organisation's containers begin: no other container has such a name."""
    return f"{image_prefix(organisation_id)}{DEPLOYMENT_ID}-"


def owned_by(organisation_id: int) -> dict[str, str]:
    """What all containers and networks of one organisation have in common."""
    return {"nexus.owner": namespace(organisation_id)}


def labels_of(organisation_id: int, environment: str, service: str) -> dict[str, str]:
    """What all containers of one service in one environment have in common."""
    return owned_by(organisation_id) | _place_labels(environment, service)


def _place_labels(environment: str, service: str) -> dict[str, str]:
    return {"nexus.environment": environment, "nexus.service": service}


def _labels_of(row: Deployment) -> dict[str, str]:
    return labels_of(row.organisation_id, row.environment, row.service)


def network_of(organisation_id: int) -> str:
    """The network of an organisation's containers: others reach none of them through it.

    A closed one, from which nothing outside is reached, has a name of its own: a network cannot be
    closed later. A network that the operator names is one for all.
    """
    kind = "open" if settings.CONTAINER_OUTBOUND else "closed"
    return settings.CONTAINER_NETWORK or f"{image_prefix(organisation_id)}{kind}"


def _endpoints(row: Deployment) -> dict[str, Any]:
    """The name of a service in its organisation's network; in one for all it could be another's.

    No other server's name ends like this. With a shorter end, the service `metadata` in the
    environment `google` would answer what is asked of `metadata.google.internal`.
    """
    if settings.CONTAINER_NETWORK:
        return {}
    name = f"{row.service}.{row.environment}.nexus.internal"
    return {network_of(row.organisation_id): {"Aliases": [name]}}


def limits() -> dict[str, Any]:
    """What a container may use, as the settings say."""
    memory = settings.CONTAINER_MEMORY
    return {
        "Memory": memory,
        "MemorySwap": memory,
        "NanoCpus": settings.CONTAINER_MILLICPUS * 1_000_000,
        "PidsLimit": 256,
    }


def config_of(row: Deployment, image: Mapping[str, Any]) -> dict[str, Any]:
    """The engine's configuration of a deployment's container (Spec: hands 24)."""
    return {
        "Image": row.artifact,
        "User": user_of(image),
        "Healthcheck": health_check_of(image),
        "Labels": {**emptied_labels_of(image), **_labels_of(row), "nexus.deployment": row.id},
        "NetworkingConfig": {"EndpointsConfig": _endpoints(row)},
        "HostConfig": {
            **limits(),
            "Privileged": False,
            "Binds": [],
            "Mounts": [],
            "Devices": [],
            "CapAdd": [],
            "CapDrop": ["ALL"],
            "SecurityOpt": SYSTEM_CALLS,
            "ReadonlyRootfs": True,
            "Tmpfs": dict.fromkeys((*WRITABLE, *volumes_of(image)), SCRATCH),
            "NetworkMode": network_of(row.organisation_id),
            "PublishAllPorts": False,
            "IpcMode": "private",
            "LogConfig": {"Type": "json-file", "Config": {"max-size": PRINTED}},
            "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 3},
        },
    }


def start(
    engine: Engine, row: Deployment, image: Mapping[str, Any], run: RecordedRun
) -> DeploymentOutcome:
    """Start a deployment's container in the place of its predecessors; how that ended.

    Where it does not keep running, or its run is stopped, it is removed, and what ran before goes
    on. The run ends before that is removed: afterwards it cannot be stopped.
    """
    name = container_name(row)
    created = False
    try:
        run(f"create container {name}\n".encode())
        if not settings.CONTAINER_NETWORK:
            engine.require_network(
                network_of(row.organisation_id),
                owned_by(row.organisation_id),
                is_closed=not settings.CONTAINER_OUTBOUND,
            )
        engine.create(name, config_of(row, image))
        created = True
        run(b"start it\n")
        engine.start(name)
        problem = _watch(engine, name, run) or run.end(0)
        if not problem:
            return DeploymentOutcome(DeploymentState.SUCCEEDED, retire_others(engine, row))
        return _failed(engine, name, problem)
    except EngineRefused as refusal:
        return _failed(engine, name, f"the engine refused it: {refusal}")
    except EngineUnavailable as problem:
        if not created and not problem.asked:
            return DeploymentOutcome(
                DeploymentState.FAILED, f"the engine was not reached: {problem}"
            )
        return DeploymentOutcome(DeploymentState.UNKNOWN, f"the engine did not answer: {problem}")


def find_outcome(engine: Engine, row: Deployment) -> DeploymentOutcome:
    """How a deployment ended whose process was interrupted.

    Raises EngineRefused, EngineUnavailable: then its container may do its work.
    """
    name = container_name(row)
    found = engine.container(name)
    problem = problem_of(found)
    if not problem:
        return DeploymentOutcome(DeploymentState.SUCCEEDED, retire_others(engine, row))
    labels = _place_labels(row.environment, row.service)
    if found is None and engine.labelled(labels, prefix=INSTALLATION, ends=(f"-{row.id}",)):
        return DeploymentOutcome(DeploymentState.UNKNOWN, OTHER_NAME)
    return _failed(engine, name, f"it was interrupted; {problem}")


def problem_of(container: Mapping[str, Any] | None) -> str:
    """Why a container does not do its work, or ''."""
    if container is None:
        return "there is no container"
    state = container.get("State") or {}
    if not state.get("Running"):
        return f"its container ended with code {state.get('ExitCode', '?')}"
    if state.get("Restarting"):
        return "its container is started again and again"
    if (state.get("Health") or {}).get("Status") == "unhealthy":
        return "its own health check fails"
    return ""


def _watch(engine: Engine, name: str, run: RecordedRun) -> str:
    """Why a container did not keep running, with its last words; '' if it did, or was stopped."""
    until = time.monotonic() + WATCHED
    while True:
        problem = problem_of(engine.container(name))
        if problem or time.monotonic() >= until or not run(b""):
            said = _last_words(engine, name)
            run(f"{said}\n{problem}".strip().encode())
            return f"{problem}; its last words: {said[-1000:]}" if problem and said else problem
        time.sleep(min(0.5, WATCHED / 3))


def _last_words(engine: Engine, name: str) -> str:
    """What a container printed last; an engine that cannot tell is no problem of the container."""
    try:
        return engine.last_words(name).strip()
    except (EngineRefused, EngineUnavailable):
        return ""


def retire_others(engine: Engine, row: Deployment) -> str:
    """Remove what ran before in this place; what could not be removed, in words.

    Nothing where another process has settled the deployment: a later one may run by then.
    """
    try:
        own = engine.container(container_name(row)) or {}
        others = [each for each in found_in_place(engine, row) if each != own.get("Id")]
        if Deployment.objects.filter(id=row.id, version=row.version).exists():
            for each in others:
                engine.remove(each)
    except (EngineRefused, EngineUnavailable) as problem:
        return f"its predecessor may still run: {problem}"
    return ""


def found_in_place(engine: Engine, row: Deployment) -> list[str]:
    """The ids of all containers of the service in its environment.

    Who removes them asks after this whether the place is still the deployment's: what a later one
    starts is not among them then. Raises EngineRefused, EngineUnavailable.
    """
    return engine.labelled(_labels_of(row), prefix=container_prefix(row.organisation_id))


def found_under_other_names(engine: Engine, row: Deployment) -> list[str]:
    """The ids of containers of the service in its environment that another SECRET_KEY named.

    They are this installation's of before, or of one with a copy of its database: none of them is
    removed here. Raises EngineRefused, EngineUnavailable.
    """
    same = {name: getattr(row, name) for name in ("organisation_id", "environment", "service")}
    ids = Deployment.objects.filter(**same).values_list("id", flat=True)[:MOST_BEFORE]
    labels = _place_labels(row.environment, row.service)
    named = engine.labelled(labels, prefix=INSTALLATION, ends=tuple(f"-{each}" for each in ids))
    return [each for each in named if each not in found_in_place(engine, row)]


def _failed(engine: Engine, name: str, problem: str) -> DeploymentOutcome:
    """Remove the container of a deployment that failed; unknown where it could not be removed."""
    try:
        engine.remove(name)
    except (EngineRefused, EngineUnavailable) as refusal:
        left = f"{problem}; its container may still run: {refusal}"
        return DeploymentOutcome(DeploymentState.UNKNOWN, left)
    return DeploymentOutcome(DeploymentState.FAILED, problem)
