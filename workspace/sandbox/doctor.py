"""Trying each wall: what a hostile program of an agent gets, and what it does not."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from core.decision import Denied
from workspace.homes import HOME_MODE
from workspace.sandbox import driver
from workspace.sandbox.launcher import landlock
from workspace.sandbox.programs import CommandOutcome, Mount, Program, ProgramLimits
from workspace.users import AgentUser

SECRET = "doctor-secret"  # noqa: S105  what the tried programs look for
MARK = "86399.4242"
"""Seconds that a daemon of the doctor sleeps, by which it is found."""
HUNGRY = "x=0123456789abcdef; for i in $(seq 23); do x=$x$x; done"
"""Takes 128 MB in every shell; what `tail` takes of /dev/zero is not the same everywhere."""


@dataclass(frozen=True, slots=True)
class SandboxFinding:
    """One wall, whether it holds, and what was seen when it was tried."""

    wall: str
    holds: bool
    seen: str


@dataclass(frozen=True, slots=True)
class Bench:
    """Two agents with a home each, and a sandbox to try."""

    first: AgentUser | None
    second: AgentUser | None
    homes: Path

    def run(
        self, line: str, *, limits: ProgramLimits | None = None, other: bool = False
    ) -> CommandOutcome:
        """A shell line of the first agent, which sees its home, and the other's if asked."""
        mounts = [Mount(self.homes / "first", "/home", writable=True)]
        if other:
            mounts.append(Mount(self.homes / "second", "/other", writable=True))
        program = Program(
            argv=("/bin/sh", "-c", line),
            mounts=tuple(mounts),
            folder="/home",
            user=self.first,
            limits=limits or ProgramLimits(),
        )
        return driver.run(program)


def examine() -> list[SandboxFinding]:
    """Try every wall, one after the other; a wall that could not be tried does not hold."""
    findings = []
    with _bench() as bench:
        for wall, attempt in ATTEMPTS.items():
            try:
                holds, seen = attempt(bench)
            except (Denied, OSError) as problem:
                holds, seen = False, str(problem)
            findings.append(SandboxFinding(wall, holds, " ".join(seen.split())[:160]))
    return findings


@contextmanager
def _bench() -> Iterator[Bench]:
    """Two homes in the company tree's own place, gone afterwards."""
    root = Path(settings.WORKSPACE_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    homes = Path(tempfile.mkdtemp(prefix=".doctor-", dir=root))
    users: list[AgentUser | None] = [None, None]
    if os.geteuid() == 0:
        last = settings.WORKSPACE_UIDS[-1]
        users = [AgentUser(last, last), AgentUser(last - 1, last - 1)]
    try:
        for name, user in zip(("first", "second"), users, strict=True):
            (homes / name).mkdir(mode=HOME_MODE)
            (homes / name / "file").write_text(SECRET if name == "second" else "own")
            (homes / name / "file").chmod(0o600)
            if user:
                for path in (homes / name / "file", homes / name):
                    os.chown(path, user.uid, user.gid)
        yield Bench(users[0], users[1], homes)
    finally:
        shutil.rmtree(homes, ignore_errors=True)


def _runs(bench: Bench) -> tuple[bool, str]:
    outcome = bench.run("cat file; echo new > made; id -u")
    return outcome.status == 0 and outcome.output.startswith(b"own"), _said(outcome)


def _has_its_own_user(bench: Bench) -> tuple[bool, str]:
    uid = bench.run("id -u").output.decode().strip()
    return bench.first is not None and uid == str(bench.first.uid), f"user {uid}"


def _cannot_see_other_homes(bench: Bench) -> tuple[bool, str]:
    places = f"{bench.homes}/second/file /proc/1/root{bench.homes}/second/file"
    return _gets_nothing(bench.run(f"cat {places}; ls -a {bench.homes}"), SECRET)


def _is_refused_other_homes(bench: Bench) -> tuple[bool, str]:
    """Even shown to it, the other's home stays closed: its owner is another user."""
    return _gets_nothing(bench.run("cat /other/file; echo x > /other/new", other=True), SECRET)


def _reaches_no_network(bench: Bench) -> tuple[bool, str]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        server.settimeout(0.2)
        local.bind("\0nexus-doctor")
        local.listen()
        port = server.getsockname()[1]
        code = (
            "import socket\n"
            f"places = [(2, ('127.0.0.1', {port})), (1, '\\0nexus-doctor'), (2, ('1.1.1.1', 53))]\n"
            "for f, a in places:\n"
            "    try: socket.create_connection(a, 1) if f == 2 else socket.socket(f).connect(a)\n"
            "    except OSError as e: print(e.strerror or e)\n"
            "    else: print('REACHED', a)\n"
        )
        outcome = bench.run(f'/usr/bin/env python3 -I -c "{code}" 2>&1 || perl -e "exit 1"')
        if outcome.status != 0:  # no python in /usr: by the shell's own means
            outcome = bench.run(f"bash -c 'echo REACHED > /dev/tcp/127.0.0.1/{port}' 2>&1; true")
        try:
            server.accept()
        except TimeoutError:
            return b"REACHED" not in outcome.output, _said(outcome)
        return False, "a server of this machine was reached"


def _sees_no_processes(bench: Bench) -> tuple[bool, str]:
    pid = os.getpid()
    outcome = bench.run(f"ls -d /proc/[0-9]* | wc -l; kill -0 {pid} 2>&1; cat /proc/{pid}/cmdline")
    first = outcome.output.split(b"\n")[0].strip()
    few = first.isdigit() and int(first) < 8
    return few and b"manage" not in outcome.output, f"{first.decode()} processes seen"


def _has_no_secrets(bench: Bench) -> tuple[bool, str]:
    outcome = bench.run("env; cat /proc/*/environ")
    names = ("DATABASE", "SECRET", "NEXUS", "TOKEN")
    leaked = [name for name in names if name.encode() in outcome.output]
    return not leaked and outcome.status is not None, f"leaked: {leaked}" if leaked else "clean"


def _writes_nowhere_else(bench: Bench) -> tuple[bool, str]:
    places = "/usr/x /etc/x /x /dev/x /proc/sys/kernel/hostname /sys/x"
    outcome = bench.run(
        f"for p in {places}; do (echo x > $p) 2>/dev/null && echo WROTE $p; done; true"
    )
    return _gets_nothing(outcome, "WROTE")


def _has_no_rights(bench: Bench) -> tuple[bool, str]:
    outcome = bench.run("grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status")
    values = dict(line.split(":", 1) for line in outcome.output.decode().splitlines())
    numbers = {name: value.strip() for name, value in values.items()}
    good = numbers.get("NoNewPrivs") == "1" and numbers.get("Seccomp") == "2"
    return good and int(numbers.get("CapEff", "1"), 16) == 0, str(numbers)


def _makes_no_walls(bench: Bench) -> tuple[bool, str]:
    outcome = bench.run("unshare -U true && echo MADE; mount -t tmpfs x /tmp && echo MADE; true")
    return _gets_nothing(outcome, "MADE")


def _leaves_no_daemon(bench: Bench) -> tuple[bool, str]:
    bench.run(f"(setsid nohup sleep {MARK} > /dev/null 2>&1 &); sleep 0.1")
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _says(path, MARK)]
    return not left, f"left: {left}" if left else "all gone"


def _ends_in_time(bench: Bench) -> tuple[bool, str]:
    begun = time.monotonic()
    outcome = bench.run("sleep 60", limits=ProgramLimits(seconds=1))
    return outcome.timed_out, f"ended after {time.monotonic() - begun:.1f} s"


def _is_limited_in_memory(bench: Bench) -> tuple[bool, str]:
    outcome = bench.run(HUNGRY, limits=ProgramLimits(memory=64 * 1024 * 1024))
    return outcome.status not in (0, None), _said(outcome)


def _is_limited_in_processes(bench: Bench) -> tuple[bool, str]:
    few = ProgramLimits(seconds=5, processes=40)
    outcome = bench.run("for i in $(seq 99); do sleep 4 & done; wait", limits=few)
    return b"fork" in outcome.output.lower(), _said(outcome)


def _is_limited_in_files(bench: Bench) -> tuple[bool, str]:
    big = bench.run("head -c 99000000 /dev/zero > big", limits=ProgramLimits(file=1_000_000))
    full = bench.run("head -c 99000000 /dev/zero > /tmp/x", limits=ProgramLimits(file=10**9))
    holds = big.status not in (0, None) and full.status not in (0, None)
    return holds, f"{_said(big)}; {_said(full)}"


def _is_limited_in_output(bench: Bench) -> tuple[bool, str]:
    outcome = bench.run("yes")
    return outcome.cut, f"cut after {len(outcome.output)} bytes"


def _passes_no_link(bench: Bench) -> tuple[bool, str]:
    link = bench.homes / "first" / "link"
    link.symlink_to("/etc")
    program = Program(argv=("/bin/ls", "/seen"), mounts=(Mount(link, "/seen"),), user=bench.first)
    try:
        outcome = driver.run(program)
    except Denied as refusal:
        return True, refusal.deny.message[-60:]
    return False, _said(outcome)


def _kernel_offers(_bench: Bench) -> tuple[bool, str]:
    version = landlock.version()
    return version > 0, f"Landlock version {version}" if version else "this kernel has no Landlock"


def _gets_nothing(outcome: CommandOutcome, word: str) -> tuple[bool, str]:
    return outcome.status is not None and word.encode() not in outcome.output, _said(outcome)


def _said(outcome: CommandOutcome) -> str:
    return outcome.output.decode(errors="replace").strip() or f"status {outcome.status}"


def _says(path: Path, word: str) -> bool:
    try:
        return word.encode() in path.read_bytes()
    except OSError:
        return False


ATTEMPTS: dict[str, Callable[[Bench], tuple[bool, str]]] = {
    "programs run, in their agent's home": _runs,
    "each agent has its own user": _has_its_own_user,
    "other agents' homes are not there": _cannot_see_other_homes,
    "other agents' homes are closed": _is_refused_other_homes,
    "mounts pass no link": _passes_no_link,
    "no network": _reaches_no_network,
    "no other processes": _sees_no_processes,
    "no secrets in the environment": _has_no_secrets,
    "nothing else can be changed": _writes_nowhere_else,
    "no rights, calls filtered": _has_no_rights,
    "no namespaces, no mounts": _makes_no_walls,
    "nothing stays behind": _leaves_no_daemon,
    "limited time": _ends_in_time,
    "limited memory": _is_limited_in_memory,
    "limited processes": _is_limited_in_processes,
    "limited files and scratch": _is_limited_in_files,
    "limited output": _is_limited_in_output,
    "Landlock is offered": _kernel_offers,
}
