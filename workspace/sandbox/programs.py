"""What runs in the sandbox: a program, what it sees, what it may use, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from workspace.sandbox.launcher.plan import HIDES
from workspace.users import AgentUser

SCRATCH = "/tmp"  # noqa: S108  inside the sandbox
HIDDEN = Path(HIDES)
"""The source of a mount that hides what is at its target; a folder's target ends with '/'."""

CLEAN = {"PATH": "/usr/bin:/bin", "HOME": SCRATCH, "LANG": "C.UTF-8", "TERM": "dumb"}
"""The environment of a program that asks for nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLimits:
    """What one program may use. Sizes in bytes; `memory` and `file` are for each process."""

    seconds: float = 10
    output: int = 64 * 1024
    memory: int = 512 * 1024 * 1024
    memory_of_all: int = 1024 * 1024 * 1024
    file: int = 16 * 1024 * 1024
    scratch: int = 32 * 1024 * 1024
    processes: int = 128
    open_files: int = 256


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine that a program sees at `target`, an absolute path.

    The last part of `source`, and what is below it, belongs to agents and is never followed where
    it is a link.
    """

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to run in the sandbox, by its words; `folder` is where it starts.

    Besides the mounts it sees /usr and an empty /tmp. `environment` is added to the clean one.
    Without a `user` it runs as the unprivileged user 65534.
    """

    argv: tuple[str, ...]
    mounts: tuple[Mount, ...] = ()
    folder: str = SCRATCH
    user: AgentUser | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: ProgramLimits = field(default_factory=ProgramLimits)
    stdin: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """How a program ended: output and errors together.

    `status` is None when it was killed: for its time, its output, or because it was cancelled.
    """

    output: bytes
    status: int | None
    timed_out: bool = False
    cut: bool = False
    cancelled: bool = False


def shell(line: str, *, limits: ProgramLimits | None = None) -> Program:
    """A shell's command line as a program."""
    return Program(argv=("/bin/sh", "-c", line), limits=limits or ProgramLimits())
