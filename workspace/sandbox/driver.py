"""Running one program behind walls: no network, nothing of this machine but /usr, limits."""

from __future__ import annotations

import json
import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import IO, cast

from django.conf import settings

from core.decision import Code, refuse
from workspace.sandbox.launcher.plan import BUBBLEWRAP, NAMESPACES, Plan
from workspace.sandbox.programs import CLEAN, CommandOutcome, Program, shell
from workspace.users import AgentUser

TOOLS = "/usr/local/bin:/usr/bin:/bin"
"""Where bubblewrap is looked for, whatever PATH this process has."""

UNPRIVILEGED = AgentUser(uid=65534, gid=65534)
"""The user of a program without one, where the server is root."""

LAUNCH = (
    "import sys; sys.path.append({root!r}); "
    "from workspace.sandbox.launcher.main import main; sys.exit(main())"
)
DYING = 10.0
"""Seconds that what is not wanted any more may take to be gone."""
TICK = 0.5
"""Seconds after which a silent program's watcher is asked again."""
PROBE = shell("printf walls; exit 7")

Watch = Callable[[bytes], bool]
"""Gets what a program prints, as it comes (b"" while it is silent); False ends the program."""


class NotLaunched(Exception):
    """The walls could not be built; the message says which."""


@dataclass(frozen=True, slots=True)
class Walls:
    """A way to isolate a program; `bubblewrap` is the path of that program, where it is used."""

    way: str
    bubblewrap: str = ""


def run(program: Program, *, watch: Watch | None = None) -> CommandOutcome:
    """Run a program behind the walls.

    Everything it started is gone when this returns. Raises Denied ISOLATION_UNAVAILABLE.
    """
    return run_behind(required(), program, watch=watch)


def run_behind(walls: Walls, program: Program, *, watch: Watch | None = None) -> CommandOutcome:
    """Run a program behind these walls. Raises Denied ISOLATION_UNAVAILABLE."""
    try:
        return _run(walls, program, watch)
    except NotLaunched as problem:
        raise _unavailable(str(problem)) from None


def required() -> Walls:
    """The strongest walls that hold here. Raises Denied ISOLATION_UNAVAILABLE."""
    found = strongest()
    if isinstance(found, str):
        raise _unavailable(found)
    if settings.PRODUCTION and os.geteuid() != 0:
        raise _unavailable("in production each agent has its own user, which needs root")
    return found


def strongest() -> Walls | str:
    """The strongest walls that hold here; or why none does."""
    problems = []
    for walls in find():
        problem = problem_of(walls)
        if not problem:
            return walls
        problems.append(f"{walls.way}: {problem}")
    return "; ".join(problems) or "bubblewrap is not installed"


def _unavailable(problem: str) -> Exception:
    return refuse(
        Code.ISOLATION_UNAVAILABLE,
        f"this needs a sandbox, and this installation has none: {problem[:500]}",
        "go on without it; ask the people who run this installation to run "
        "`manage.py workspace doctor`",
        rule="programs run only behind walls (spec: files 8)",
    )


def find() -> list[Walls]:
    """The ways to isolate that this installation may have, the strongest first."""
    bubblewrap = shutil.which("bwrap", path=TOOLS)
    ways = [Walls(BUBBLEWRAP, bubblewrap)] if bubblewrap else []
    ways.append(Walls(NAMESPACES))
    wanted = settings.WORKSPACE_SANDBOX
    return [walls for walls in ways if wanted in {walls.way, "strongest"}]


_proven: set[Walls] = set()


def problem_of(walls: Walls) -> str:
    """Why these walls isolate nothing here, or ''. Tried out once in each process that succeeds."""
    if walls not in _proven:
        try:
            tried = _run(walls, PROBE, None)
        except NotLaunched as problem:
            return str(problem)
        if (tried.status, tried.output) != (7, b"walls"):
            said = tried.output.decode(errors="replace").strip()[:200]
            return f"it cannot isolate here ({said or 'no answer'})"
        _proven.add(walls)
    return ""


def plan_of(walls: Walls, program: Program) -> Plan:
    """What the launcher is to do."""
    limits = program.limits
    user = program.user or UNPRIVILEGED
    root = os.geteuid() == 0
    return Plan(
        way=walls.way,
        bubblewrap=walls.bubblewrap,
        argv=list(program.argv),
        environment={**CLEAN, **program.environment},
        folder=program.folder,
        uid=user.uid if root else None,
        gid=user.gid if root else None,
        mounts=[(str(each.source), each.target, each.writable) for each in program.mounts],
        limits=[
            (resource.RLIMIT_CPU, max(1, int(limits.seconds) + 1)),
            (resource.RLIMIT_AS, limits.memory),
            (resource.RLIMIT_FSIZE, limits.file),
            (resource.RLIMIT_NPROC, limits.processes),
            (resource.RLIMIT_NOFILE, limits.open_files),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_MEMLOCK, 0),  # sockets would hold pages that processes let go of
        ],
        scratch=limits.scratch,
        memory=limits.memory_of_all,
    )


def _run(walls: Walls, program: Program, watch: Watch | None) -> CommandOutcome:
    ends = time.monotonic() + program.limits.seconds
    with _launched(plan_of(walls, program), program.stdin) as (process, report):
        stream = cast("IO[bytes]", process.stdout)
        output, why = _read(stream, ends, program.limits.output, watch)
        if why:
            return CommandOutcome(
                output=output,
                status=None,
                timed_out=why == "time",
                cut=why == "output",
                cancelled=why == "watch",
            )
        facts = _report(report, ends)
    if "error" in facts:
        raise NotLaunched(str(facts["error"]))
    status = cast("int | None", facts.get("status"))
    timed_out = status is None and time.monotonic() >= ends
    return CommandOutcome(output=output, status=status, timed_out=timed_out)


def _read(stream: IO[bytes], ends: float, limit: int, watch: Watch | None) -> tuple[bytes, str]:
    """What comes until the end, and why it was not read to its end: time, output or watch."""
    data = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            left = ends - time.monotonic()
            if left <= 0:
                return bytes(data), "time"
            ready = selector.select(min(left, TICK))
            chunk = os.read(stream.fileno(), 65536) if ready else b""
            if ready and not chunk:
                return bytes(data), ""
            room = limit - len(data)
            data += chunk[:room]
            if watch is not None and not watch(chunk[:room]):
                return bytes(data), "watch"
            if len(chunk) > room:
                return bytes(data), "output"


def _report(report: IO[bytes], ends: float) -> dict[str, int | str | None]:
    """How the program ended; nothing where it closed its output and goes on past its time."""
    with selectors.DefaultSelector() as selector:
        selector.register(report, selectors.EVENT_READ)
        if not selector.select(max(0.0, ends - time.monotonic())):
            return {}
    first = report.readline()
    return cast("dict[str, int | str | None]", json.loads(first)) if first else {"error": "killed"}


@contextmanager
def _launched(plan: Plan, stdin: bytes) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """The running launcher and its report; at the end it and everything it started are gone."""
    with ExitStack() as ours:
        with ExitStack() as theirs:  # also where no further file can be opened
            life, end = os.pipe()
            theirs.callback(os.close, life)
            line = ours.enter_context(os.fdopen(end, "wb", buffering=0))
            end, write = os.pipe()
            theirs.callback(os.close, write)
            report = ours.enter_context(os.fdopen(end, "rb"))
            told = os.memfd_create("plan", 0)
            theirs.callback(os.close, told)
            os.write(told, plan.to_bytes())
            os.lseek(told, 0, os.SEEK_SET)
            given = (told, life, write)
            root = str(settings.BASE_DIR)
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", LAUNCH.format(root=root), *map(str, given)],
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={"PATH": TOOLS},
                cwd="/",
                start_new_session=True,
                pass_fds=given,
            )
        with process:
            try:
                _feed(process, stdin)
                yield process, report
            finally:
                line.close()
                _bury(process)


def _feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Write a program's input while its output is read."""

    def write() -> None:
        with suppress(BrokenPipeError), cast("IO[bytes]", process.stdin) as stdin:
            stdin.write(data)

    if data:
        threading.Thread(target=write, daemon=True).start()


def _bury(process: subprocess.Popen[bytes]) -> None:
    """Wait for the launcher, which ends all that it started once its line is cut."""
    try:
        process.wait(DYING)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
