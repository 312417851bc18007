"""What agents can do with files."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller
from toolbox.registry import CODING_ONLY, tool
from workspace.files import services
from workspace.param_types import OnePath, PathAndContent
from workspace.results import FileContent, LogLines, WrittenFile


def _check_read(caller: Caller, params: OnePath, now: datetime) -> None:
    services.require_readable(caller=caller, path=params.path)


@tool(
    "read_file",
    group=ToolGroup.CODE,
    modes=CODING_ONLY,
    read_only=True,
    acts_outside=True,
    dry_run=_check_read,
)
def read_file(caller: Caller, params: OnePath, now: datetime) -> FileContent:
    """Read a file in your scope."""
    return services.read_file(caller=caller, path=params.path)


@tool(
    "read_code",
    group=ToolGroup.CODE,
    modes=CODING_ONLY,
    read_only=True,
    acts_outside=True,
    dry_run=_check_read,
)
def read_code(caller: Caller, params: OnePath, now: datetime) -> FileContent:
    """Read a file of your workers' workspaces; it changes nothing."""
    return services.read_file(caller=caller, path=params.path)


def _check_write(caller: Caller, params: PathAndContent, now: datetime) -> None:
    services.require_writable(caller=caller, path=params.path)


@tool(
    "write_file",
    group=ToolGroup.CODE,
    modes=CODING_ONLY,
    destructive=True,
    idempotent=True,
    dry_run=_check_write,
)
def write_file(caller: Caller, params: PathAndContent, now: datetime) -> WrittenFile:
    """Write a file in your scope, whole."""
    return services.write_file(caller=caller, path=params.path, content=params.content, now=now)


class ReadLogs(OnePath):
    """The end of a log."""

    lines: int = Field(200, ge=1, le=5000)


@tool("read_logs", group=ToolGroup.CODE, modes=CODING_ONLY, read_only=True)
def read_logs(caller: Caller, params: ReadLogs, now: datetime) -> LogLines:
    """Read the end of a log file in your scope."""
    return services.read_log(caller=caller, path=params.path, lines=params.lines)
