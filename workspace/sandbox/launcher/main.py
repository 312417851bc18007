"""The launcher: builds the walls, runs one program behind them, and leaves nothing of it.

A process of its own, because namespaces, users and filters belong to a process. It imports nothing
but the standard library and its own folder. Three descriptors are given: the plan; a line that is
cut when the program is not wanted any more; and one to report how it ended.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import sys
import time

from workspace.sandbox.launcher import calls, kernel, landlock, loopback, memory_use, view
from workspace.sandbox.launcher.plan import BUBBLEWRAP, HIDES, Plan, read_plan

LOOK_EVERY = 0.1
"""Seconds between two looks at the memory that a program and all it started use together."""
SETUP_FAILED = 125
OUT_OF_MEMORY = 137


def main() -> int:
    """Run the plan and report its status, or why it could not be run."""
    plan_fd, life, report = (int(word) for word in sys.argv[1:4])
    for fd in (life, report):
        os.set_inheritable(fd, False)
    with os.fdopen(plan_fd, "rb") as file:
        plan = read_plan(file.read())
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    try:
        enter_spaces(plan)
        child = os.fork()
        if child == 0:
            _become(plan, report)
    except (OSError, view.Refused, KeyError) as problem:
        _tell(report, error=str(problem))
        return SETUP_FAILED
    _let_go_of_streams()
    status = supervise(child, life, plan.memory)
    end_all(child)
    _tell(report, status=status)
    return 0


def enter_spaces(plan: Plan) -> None:
    """Enter a process namespace for the child, by way of a user namespace where we are not root.

    The child enters the others: the launcher keeps the view of this machine.
    """
    if plan.uid is None:
        _enter_user_space()
    if plan.way != BUBBLEWRAP:
        kernel.unshare(kernel.NEWPID)


def _enter_user_space() -> None:
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.NEWUSER)
    lines = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
    for name, line in lines.items():
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(line)


def _become(plan: Plan, report: int) -> None:
    """Build the walls in the child, then become the program, or its first ancestor behind them."""
    os.umask(0o022)  # a service may have a stricter one: the agent's user must reach its own view
    try:
        if plan.way == BUBBLEWRAP:
            kernel.unshare(kernel.NEWNS | kernel.NEWNET)
            loopback.begin()
            _become_bubblewrap(plan)
        kernel.unshare(kernel.CHILDS_SPACES)
        view.build(plan)
        loopback.begin()
        socket.sethostname("sandbox")
        _limit(plan)
        _drop(plan)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        writable = [target for _, target, can_write in plan.mounts if can_write]
        landlock.restrict(read=["/"], write=[*view.WRITABLE, *writable])
        kernel.filter_calls(calls.program())
        program = os.fork()
        if program == 0:
            _execute(plan)
        _let_go_of_streams()
        os._exit(_wait_as_first(program))
    except BaseException as problem:  # noqa: BLE001  a fork of the launcher must never go on
        _tell(report, error=f"{type(problem).__name__}: {problem}")
    os._exit(SETUP_FAILED)


def _execute(plan: Plan) -> None:
    """Become the program; its first line of errors says so where it cannot be started."""
    os.setsid()
    try:
        os.chdir(plan.folder)
        os.execvpe(plan.argv[0], plan.argv, plan.environment)  # noqa: S606  no shell is meant
    except OSError as problem:
        os.write(2, f"{plan.argv[0]}: {problem.strerror}\n".encode())
    os._exit(127)


def _become_bubblewrap(plan: Plan) -> None:
    """Stage what only root can reach, become the agent's user, and let bubblewrap do the rest."""
    mounts = _stage(plan.mounts, plan.scratch)
    filtered = os.memfd_create("calls", 0)
    os.write(filtered, calls.program())
    os.lseek(filtered, 0, os.SEEK_SET)
    os.set_inheritable(filtered, True)
    _limit(plan)
    _drop(plan)
    words = bubblewrap_words(plan, mounts, filtered)
    os.execve(plan.bubblewrap, [plan.bubblewrap, *words], {})  # noqa: S606


def _stage(mounts: list[tuple[str, str, bool]], scratch: int) -> list[tuple[str, str, bool]]:
    """Show the sources, chosen without following links, where the agent's user can reach them.

    The first are the scratch folders: bubblewrap's own have no limit for their number of files.
    """
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    sources = [view.open_place(source) for source, _, _ in mounts]
    kernel.mount("tmpfs", view.BASE, "tmpfs", view.QUIET, "mode=0755,size=1m")
    base = os.open(view.BASE, os.O_PATH | os.O_DIRECTORY)
    staged = []
    for number, (fd, (source, target, writable)) in enumerate(zip(sources, mounts, strict=True)):
        if source == HIDES:
            staged.append((source, target, writable))
            continue
        view.bind(base, fd, f"/{number}", writable=writable)
        staged.append((f"{view.BASE}/{number}", target, writable))
    for target in (view.SCRATCH, view.SHARED):
        view.make_scratch(base, f"{view.OWN}{target}", scratch)
        staged.insert(0, (f"{view.BASE}{view.OWN}{target}", target, True))
    return staged


def bubblewrap_words(plan: Plan, mounts: list[tuple[str, str, bool]], calls_fd: int) -> list[str]:
    """The options of bubblewrap that build the same walls."""
    clean = [word for pair in plan.environment.items() for word in ("--setenv", *pair)]
    seen: list[str] = []
    for source, target, writable in mounts:
        if source != HIDES:
            seen += ["--bind" if writable else "--ro-bind", source, target]
        elif target.endswith("/"):
            seen += ["--size", "4096", "--tmpfs", target, "--remount-ro", target]
        else:
            seen += ["--ro-bind", source, target]
    configuration = [
        word
        for name in view.CONFIGURATION
        for word in ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    ]
    return [
        *("--unshare-all", "--share-net", "--unshare-user", "--disable-userns"),
        "--die-with-parent",
        *("--new-session", "--cap-drop", "ALL", "--hostname", "sandbox", "--clearenv", *clean),
        *("--seccomp", str(calls_fd), "--ro-bind", "/usr", "/usr"),
        *("--symlink", "usr/bin", "/bin", "--symlink", "usr/sbin", "/sbin"),
        *("--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"),
        *configuration,
        *("--proc", "/proc", "--dev", "/dev", "--dev-bind", "/dev/full", "/dev/zero"),
        *seen,
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", plan.folder, "--", *plan.argv),
    ]


def _limit(plan: Plan) -> None:
    """Bound what each process may use; when memory runs short, these processes end first."""
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
        file.write("1000")
    os.nice(5)
    os.umask(0o077)
    for number, most in plan.limits:
        allowed = resource.getrlimit(number)[1]
        most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)  # noqa: PLW2901
        resource.setrlimit(number, (most, most))


def _drop(plan: Plan) -> None:
    """Become the agent's user, for ever, without any right of root."""
    if plan.uid is not None and plan.gid is not None:
        kernel.drop_capabilities()
        try:
            os.setgroups([])
            os.setresgid(plan.gid, plan.gid, plan.gid)
            os.setresuid(plan.uid, plan.uid, plan.uid)
        except PermissionError:  # a service manager may take this right from root as well
            raise PermissionError("the server's root may not become another user") from None
    else:
        kernel.drop_capabilities()


def _let_go_of_streams() -> None:
    """Keep no end of the program's input and output open."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)


def _wait_as_first(program: int) -> int:
    """Wait for the program, and collect what else ends; with this process all others end."""
    while True:
        ended, status = os.wait()
        if ended == program:
            return exit_status(status)


def exit_status(status: int) -> int:
    """A wait status as shells show it: 128 and the signal for what was killed."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def supervise(child: int, life: int, memory: int) -> int | None:
    """Wait for the child to end; None where it was ended because it is no longer wanted."""
    handle = os.pidfd_open(child)
    looker = select.poll()
    looker.register(handle, select.POLLIN)
    looker.register(life, select.POLLIN | select.POLLHUP)
    while True:
        ready = [fd for fd, _ in looker.poll(LOOK_EVERY * 1000)]
        if handle in ready:
            return exit_status(os.waitpid(child, 0)[1])
        if life in ready:
            return None
        if _holds_too_much(child, memory):
            return OUT_OF_MEMORY


def _holds_too_much(child: int, memory: int) -> bool:
    """Whether two looks in a row say so; one may count twice what an ended process left."""
    return all(memory_use.is_more_than(memory, memory_use.descendants(child)) for _ in range(2))


def end_all(child: int) -> None:
    """Kill every process that is left below the launcher, until there is none."""
    while True:
        for process in (child, *memory_use.descendants(os.getpid())[1:]):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def _tell(report: int, **facts: object) -> None:
    os.write(report, json.dumps(facts).encode() + b"\n")
