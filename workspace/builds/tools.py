"""What agents can do with images, deployments and CI files."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from core.params import Params, Path
from orgchart.policy.vocabulary import Access, ToolGroup
from toolbox.caller import Caller
from toolbox.registry import CODING_ONLY, tool
from workspace.builds import configuring, deployments, health, images
from workspace.builds.results import BuiltImage, DeployedArtifact, ServiceHealth
from workspace.param_types import Text
from workspace.results import WrittenFile
from workspace.services import require_paths

Artifact = Annotated[str, StringConstraints(min_length=1, max_length=255)]
Environment = Annotated[str, StringConstraints(min_length=1, max_length=63)]
Service = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
TAG = r"^[a-z0-9]+([._-][a-z0-9]+)*(:[a-z0-9][a-z0-9._-]{0,63})?$"


class DockerBuild(Params):
    """An image to build from a folder."""

    path: Path = Field(description="a folder with a Dockerfile, such as docker/api/")
    tag: Annotated[str, StringConstraints(max_length=100, pattern=TAG)] = Field(
        description="the service's name and a version, such as api:1"
    )


def _check_build(caller: Caller, params: DockerBuild, now: datetime) -> Any:
    require_paths(caller, [params.path.rstrip("/") + "/"], Access.READ)
    images.require_engine(caller)


@tool(
    "docker_build",
    group=ToolGroup.CODE,
    modes=CODING_ONLY,
    open_world=True,
    acts_outside=True,
    dry_run=_check_build,
)
def docker_build(caller: Caller, params: DockerBuild, now: datetime) -> BuiltImage:
    """Build a container image from a folder in your scope; deploy it by the digest returned."""
    return images.build(caller=caller, path=params.path, tag=params.tag, now=now)


class DockerDeploy(Params):
    """One artefact for one environment (Spec: hands 9)."""

    environment: Environment
    artifact: Artifact = Field(description="its digest, such as sha256:…")


def _check_deploy(caller: Caller, params: DockerDeploy, now: datetime) -> Any:
    deployments.require_deployable(
        caller=caller, environment=params.environment, artifact=params.artifact, now=now
    )


@tool(
    "docker_deploy",
    group=ToolGroup.CODE,
    modes=CODING_ONLY,
    destructive=True,
    open_world=True,
    acts_outside=True,
    dry_run=_check_deploy,
)
def docker_deploy(caller: Caller, params: DockerDeploy, now: datetime) -> DeployedArtifact:
    """Deploy an artefact. Production needs an unused approval of exactly this deployment."""
    return deployments.deploy(
        caller=caller, environment=params.environment, artifact=params.artifact, now=now
    )


class ManageCiConfig(Params):
    """One file of the CI configuration and what it is to hold."""

    path: Path = Field(description="such as .github/workflows/ci.yml")
    content: Text = Field(description="one YAML mapping, without anchors and tags")


def _check_configure(caller: Caller, params: ManageCiConfig, now: datetime) -> Any:
    configuring.require_configurable(caller=caller, path=params.path, content=params.content)


@tool(
    "manage_ci_config",
    group=ToolGroup.CODE,
    modes=CODING_ONLY,
    destructive=True,
    idempotent=True,
    dry_run=_check_configure,
)
def manage_ci_config(caller: Caller, params: ManageCiConfig, now: datetime) -> WrittenFile:
    """Write a file of the CI/CD configuration in your scope."""
    return configuring.write_ci_config(
        caller=caller, path=params.path, content=params.content, now=now
    )


class RunHealthCheck(Params):
    """A service to look at."""

    service: Service = Field(description="as docker_deploy returned it")
    environment: Environment | None = Field(None, description="the newest deployment's if left out")


def _check_health(caller: Caller, params: RunHealthCheck, now: datetime) -> Any:
    images.require_engine(caller)
    health.latest(caller, params.service, params.environment)


@tool(
    "run_health_check",
    group=ToolGroup.CODE,
    modes=CODING_ONLY,
    read_only=True,
    acts_outside=True,
    dry_run=_check_health,
)
def run_health_check(caller: Caller, params: RunHealthCheck, now: datetime) -> ServiceHealth:
    """Ask a deployed service whether it is well. Its address is known here, never given."""
    return health.check_health(
        caller=caller, service=params.service, environment=params.environment
    )
