"""What the tools of builds return."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from core.params import wire_result
from workspace.builds.vocabulary import DeploymentState
from workspace.results import RunLog


@wire_result
class BuiltImage(RunLog):
    """An image that was built."""

    tag: str
    digest: Annotated[str, Field(description="what docker_deploy takes as artifact")]
    output: Annotated[str, Field(description="the end of what the build printed")]


@wire_result
class DeployedArtifact(RunLog):
    """A deployment; `state` says how it ended."""

    deployment_id: str
    environment: str
    service: str
    artifact: str
    state: DeploymentState
    message: Annotated[str, Field(description="what went wrong, if anything did")]
    deployed_at: datetime


@wire_result
class ServiceHealth(TypedDict):
    """How a deployed service is."""

    service: str
    environment: str
    artifact: str
    healthy: bool
    message: str
