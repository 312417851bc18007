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
class RunLog(TypedDict):
    """A run, and its log: a file that the agent can read."""

    run_id: str
    output_sha256: Annotated[
        str, Field(description="SHA-256 of the whole log; name it as evidence")
    ]
    log: Annotated[str, Field(description="path of the log in the company tree")]


@wire_result
class ProgramRun(RunLog):
    """A program that ran in the sandbox."""

    commit: Annotated[str | None, Field(description="the submitted commit, where one was judged")]
    exit_code: Annotated[int, Field(description="124 if its time was over, 137 if it was killed")]
    output: str
    truncated: Annotated[bool, Field(description="true if `output` is only the end of the log")]
    timed_out: bool
    stopped_for: Annotated[str | None, Field(description="who or what ended it before its end")]


@wire_result
class BranchResult(TypedDict):
    """A branch and its last commit."""

    branch: str
    commit: str


@wire_result
class ReviewComment(TypedDict):
    """A review of a contract's branch: what it changes, what QA found, and the merge, if any."""

    branch: str
    url: Annotated[str, Field(description="the contract's page, for people")]
    contract_id: str
    commit: Annotated[str, Field(description="where the branch is")]
    difference: Annotated[str, Field(description="what it changes, as a patch")]
    truncated: Annotated[bool, Field(description="true if `difference` is not all of it")]
    files: list[str]
    verdict: Annotated[str | None, Field(description="QA's finding on the latest submission")]
    judged_commit: Annotated[str | None, Field(description="the commit that QA passed")]
    merged: bool
    merge_commit: str | None


@wire_result
class LogLines(TypedDict):
    """The end of a log."""

    lines: list[str]


@wire_result
class StartedSkill(TypedDict):
    """A skill that was started; the caller goes on inside its frame."""

    frame_id: str
    name: str
    prompt: str
    allowed_tools: list[str]
    due_at: datetime
    run: Annotated[RunLog | None, Field(description="of its command lines, if it has any")]
