"""Runs a function in a process of its own."""

import os
import signal
import sys
import traceback
from collections.abc import Callable

from nexus_site.run.processes import kill_session
from nexus_site.run.shim import be_called, end_with_parent


def fork(run: Callable[[], int | None], *, name: str = "") -> int:
    """Run the function in a new process and session, and end with its status; the process id.

    The new process gets SIGTERM when this one dies, and none of this one's signal handlers. `ps -e`
    shows it under its name (Linux).
    """
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os._exit(_status_of_running(run, parent=parent, name=name))
    return pid


def status_of(pid: int, *, wait: bool = False) -> int | None:
    """The exit status of a child that ended (negative: by that signal), nothing while it runs."""
    ended, status = os.waitpid(pid, 0 if wait else os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _status_of_running(run: Callable[[], int | None], *, parent: int, name: str) -> int:
    """Become a process of one's own, run, and say how it went; nothing gets past this."""
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        end_with_parent(parent)
        if name:
            be_called(name)
        status = run() or 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - the last line of this process
        traceback.print_exc()
        status = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        pass  # the reader of our output is gone
    kill_session(os.getpid())  # what it started: where our parent is gone, only we end it
    return status
