"""Running one shell command behind walls: no network, nothing of this machine but /usr, limits."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, cast

from core.decision import Code, refuse

TOOLS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where the walls themselves are looked for, whatever PATH this process has."""

UNPRIVILEGED = 65534
"""The user that root becomes first: bubblewrap refuses some mounts to root."""

CLEAN = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb"}  # noqa: S108
DYING = 5.0
"""Seconds that what was killed may take to be gone."""
PROBE = "printf walls; exit 7"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one command may use. Sizes in bytes; memory and files for each process."""

    seconds: float = 10
    output: int = 64 * 1024
    memory: int = 512 * 1024 * 1024
    file: int = 16 * 1024 * 1024
    scratch: int = 32 * 1024 * 1024
    processes: int = 128
    open_files: int = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutcome:
    """How a command ended: `status` is None when it was killed for its time or its output."""

    output: bytes
    status: int | None
    timed_out: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Walls:
    """The programs that isolate, by their paths."""

    bwrap: str
    prlimit: str
    setpriv: str

    def argv(self, command: str, limits: Limits, *, info: int) -> list[str]:
        """The whole line that runs a command behind the walls; who it is, is written to `info`."""
        wrapped = [*self._wrapped(limits), "--info-fd", str(info), "--", "/bin/sh", "-c", command]
        return [*self._limited(limits), *self._dropped(), *wrapped]

    def _limited(self, limits: Limits) -> list[str]:
        return [
            self.prlimit,
            f"--cpu={max(1, int(limits.seconds) + 1)}",
            f"--as={limits.memory}",
            f"--fsize={limits.file}",
            f"--nproc={limits.processes}",
            f"--nofile={limits.open_files}",
            "--core=0",
            "--",
        ]

    def _dropped(self) -> list[str]:
        if os.geteuid() != 0:
            return [self.setpriv, "--no-new-privs", "--"]
        return [
            self.setpriv,
            f"--reuid={UNPRIVILEGED}",
            f"--regid={UNPRIVILEGED}",
            "--clear-groups",
            "--no-new-privs",
            "--bounding-set=-all",
            "--",
        ]

    def _wrapped(self, limits: Limits) -> list[str]:
        clean = [word for pair in CLEAN.items() for word in ("--setenv", *pair)]
        return [
            *(self.bwrap, "--unshare-all", "--unshare-user", "--disable-userns"),
            *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *("--hostname", "sandbox", "--clearenv", *clean),
            *("--ro-bind", "/usr", "/usr"),
            *("--symlink", "usr/bin", "/bin", "--symlink", "usr/sbin", "/sbin"),
            *("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
            *("--ro-bind-try", "/etc/alternatives", "/etc/alternatives"),
            *("--proc", "/proc", "--dev", "/dev"),
            *("--size", str(limits.scratch), "--tmpfs", "/tmp"),  # noqa: S108  inside the walls
            *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"),  # noqa: S108
        ]


def run(command: str, *, limits: Limits | None = None) -> CommandOutcome:
    """Run a shell command in an empty folder behind the walls; its output and errors together.

    Everything it started is gone when this returns. Raises Denied ISOLATION_UNAVAILABLE.
    """
    return _run(required(), command, limits or Limits())


def required() -> Walls:
    """The walls that commands run behind here. Raises Denied ISOLATION_UNAVAILABLE."""
    walls = find()
    problem = problem_of(walls)
    if isinstance(walls, str) or problem:
        raise refuse(
            Code.ISOLATION_UNAVAILABLE,
            f"this needs a sandbox, and this installation has none: {problem}",
            "go on without it; who runs the installation installs bubblewrap",
            rule="commands run only behind walls",
        )
    return walls


def find() -> Walls | str:
    """The programs that isolate; or which of them is missing."""
    found = {name: shutil.which(name, path=TOOLS) for name in ("bwrap", "prlimit", "setpriv")}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    return Walls(**{name: str(path) for name, path in found.items()})


_proven: set[Walls] = set()


def problem_of(walls: Walls | str) -> str:
    """Why no command can be isolated here, or ''. Tried out once in each process that succeeds."""
    if isinstance(walls, str):
        return walls
    if walls not in _proven:
        tried = _run(walls, PROBE, Limits(seconds=10))
        if (tried.status, tried.output) != (7, b"walls"):
            said = tried.output.decode(errors="replace").strip()[:200]
            return f"bubblewrap cannot isolate here ({said or 'no answer'})"
        _proven.add(walls)
    return ""


def _run(walls: Walls, command: str, limits: Limits) -> CommandOutcome:
    ends = time.monotonic() + limits.seconds
    with _started(walls, command, limits, ends) as process:
        output = b""
        try:
            output, cut = _read(cast("IO[bytes]", process.stdout), ends, limits.output)
            status = None if cut else process.wait(max(0.0, ends - time.monotonic()))
        except subprocess.TimeoutExpired as late:
            return CommandOutcome(output=late.output or output, status=None, timed_out=True)
    return CommandOutcome(output=output, status=status, cut=cut)


@contextmanager
def _started(
    walls: Walls, command: str, limits: Limits, ends: float
) -> Iterator[subprocess.Popen[bytes]]:
    """The running command; at the end it and everything it started are gone."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as info:
        try:
            process = subprocess.Popen(
                walls.argv(command, limits, info=writer),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={"PATH": TOOLS},
                cwd="/",
                start_new_session=True,
                pass_fds=[writer],
            )
        finally:
            os.close(writer)
        with process:
            first = _first_of(info, ends)
            try:
                yield process
            finally:
                _kill(process, first)


def _first_of(info: IO[bytes], ends: float) -> int | None:
    """A handle on the first process behind the walls: when it has ended, all of them have."""
    try:
        said, _ = _read(info, ends, 4096)
        found = re.search(rb'"child-pid": ([0-9]+)', said)
        return os.pidfd_open(int(found.group(1))) if found else None
    except (subprocess.TimeoutExpired, ProcessLookupError):
        return None


def _read(stream: IO[bytes], ends: float, limit: int) -> tuple[bytes, bool]:
    """All that comes until the end, or the first `limit` bytes, and whether there was more.

    Raises subprocess.TimeoutExpired with what came in time.
    """
    data = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while len(data) <= limit:
            left = ends - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise subprocess.TimeoutExpired("sandbox", left, output=bytes(data))
            chunk = os.read(stream.fileno(), 65536)
            if not chunk:
                return bytes(data), False
            data += chunk
    return bytes(data[:limit]), True


def _kill(process: subprocess.Popen[bytes], first: int | None) -> None:
    """End the walls, and wait until the process space behind them has ended with them."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    if first is not None:
        with selectors.DefaultSelector() as selector:
            selector.register(first, selectors.EVENT_READ)
            selector.select(DYING)
        os.close(first)
