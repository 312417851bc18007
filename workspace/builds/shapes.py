"""What is read of an engine's answers, whatever else is in them; pure."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

EngineId = Annotated[str, Field(pattern=r"^[A-Za-z0-9:._-]{1,128}$")]
"""How engines name images and containers: it goes into addresses and tables."""


class Named(TypedDict):
    """What the engine made or lists."""

    Id: EngineId


class ListedContainer(Named, total=False):
    """A container in a list of them."""

    Names: list[str] | None


class ListedImage(Named, total=False):
    """An image in a list of them."""

    RepoTags: list[str] | None
    Size: int


class HealthCheck(TypedDict, total=False):
    """How an engine looks after a container; times in billionths of a second, 0 for its own."""

    Test: list[str] | None
    Interval: int
    Timeout: int
    StartPeriod: int
    StartInterval: int
    Retries: int


@with_config(ConfigDict(extra="allow"))
class ImageConfig(TypedDict, total=False):
    """How an image is to be run; what else is in it counts for its length."""

    Healthcheck: HealthCheck | None
    User: str | None
    ExposedPorts: dict[str, Any] | None
    Volumes: dict[str, Any] | None
    Labels: dict[str, str] | None


class Image(TypedDict, total=False):
    """An image."""

    Id: EngineId
    RepoTags: list[str] | None
    Size: int
    Config: ImageConfig | None


class Health(TypedDict, total=False):
    """What a container's own health check says."""

    Status: str


class ContainerState(TypedDict, total=False):
    """Whether a container runs."""

    Running: bool
    Restarting: bool
    ExitCode: int
    Health: Health | None


class Network(TypedDict, total=False):
    """A container's place in a network."""

    IPAddress: str


class NetworkSettings(TypedDict, total=False):
    """A container's networks."""

    Networks: dict[str, Network] | None


class Container(TypedDict, total=False):
    """A container."""

    Id: EngineId
    State: ContainerState | None
    NetworkSettings: NetworkSettings | None


class EngineInfo(TypedDict, total=False):
    """What the engine can limit; one that does not say it of a resource cannot."""

    MemoryLimit: bool
    PidsLimit: bool
    CpuCfsQuota: bool


class PodmanHost(TypedDict, total=False):
    """The controllers of the kernel by which Podman limits containers."""

    cgroupControllers: list[str] | None


class PodmanInfo(TypedDict):
    """What Podman says of its machine."""

    host: PodmanHost


NAMED, IMAGE, CONTAINER = TypeAdapter(Named), TypeAdapter(Image), TypeAdapter(Container)
CONTAINERS, IMAGES = TypeAdapter(list[ListedContainer]), TypeAdapter(list[ListedImage])
INFO, PODMAN_INFO = TypeAdapter(EngineInfo), TypeAdapter(PodmanInfo)
