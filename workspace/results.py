"""What the workspace's tools return."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from core.params import wire_result


@wire_result
class FileContent(TypedDict):
    """A file that was read."""

    content: str
    sha256: str


@wire_result
class WrittenFile(TypedDict):
    """A file that was written."""

    sha256: str
    bytes: int


@wire_result
class ProgramRun(TypedDict):
    """A program that ran to its end in the sandbox."""

    exit_code: int
    output: str
    truncated: Annotated[bool, Field(description="true if `output` is not all it printed")]


@wire_result
class BranchResult(TypedDict):
    """A branch and its last commit."""

    branch: str
    commit: str


@wire_result
class ReviewComment(TypedDict):
    """A comment on a branch."""

    branch: str
    url: str


@wire_result
class BuiltImage(TypedDict):
    """An image that was built."""

    tag: str
    digest: str


@wire_result
class Deployment(TypedDict):
    """An artefact that was deployed."""

    environment: str
    artifact: str
    deployed_at: datetime


@wire_result
class ServiceHealth(TypedDict):
    """How a service is."""

    service: str
    healthy: bool
    message: str


@wire_result
class LogLines(TypedDict):
    """The end of a log."""

    lines: list[str]


@wire_result
class SearchHit(TypedDict):
    """One page that a search found."""

    title: str
    url: str
    snippet: str


@wire_result
class SearchResults(TypedDict):
    """What a search of the web found."""

    hits: list[SearchHit]


@wire_result
class WebPage(TypedDict):
    """A page of the web, as text."""

    url: Annotated[str, Field(description="the address after redirects")]
    status: int
    text: str


@wire_result
class StartedSkill(TypedDict):
    """A skill that was started; the caller goes on inside its frame."""

    frame_id: str
    name: str
    prompt: str
    allowed_tools: list[str]
    due_at: datetime
