"""Becomes another program: as a plain user, detached from its parent or bound to its life.

`python -I -S shim.py [--map ID | --drop ID | --drop-but-reach ID] [--detach LOG] -- PROGRAM …`
where ID is UID:GID.
Standard library only, imports nothing of ours: it must start in milliseconds and before Django can.
"""

import argparse
import ctypes
import os
import signal
import sys
from pathlib import Path

CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP = 28, 1 << 2
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION = 0x20080522
M_ARENA_MAX = -8


def map_to(uid: int, gid: int) -> None:
    """Enter a user namespace in which this process's own ids read as `uid` and `gid`.

    PostgreSQL refuses to run as root. Inside the namespace it sees a plain user, outside its files
    still belong to the user who started it: no user is added and no folder is opened.
    """
    outer_uid, outer_gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "this system does not let us enter a user namespace")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{uid} {outer_uid} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{gid} {outer_gid} 1", encoding="ascii")


def drop_to(uid: int, gid: int) -> None:
    """Give up root for good."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def drop_but_reach(uid: int, gid: int) -> None:
    """Give up root for good, but for one right of it: to pass folders that are closed to others."""
    libc = ctypes.CDLL(None, use_errno=True)
    keep = 1 << CAP_DAC_OVERRIDE
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    # effective, permitted and inheritable, in two words of 32 rights each
    rights = (ctypes.c_uint32 * 6)(keep, keep, keep, 0, 0, 0)
    # Without this bit the right would not count where a program asks access(2), as PostgreSQL does.
    failed = libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    drop_to(uid, gid)
    failed = failed or libc.capset(header, rights)
    ambient = (PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0)
    if failed or libc.prctl(*ambient):
        raise OSError(ctypes.get_errno(), "this system does not let us keep a right of root's")


def detach(log: str) -> None:
    """Leave the terminal and the parent, who is told our process id on standard output.

    The parent may end without ending us; our output goes to the log.
    """
    child = os.fork()
    if child > 0:
        os.write(sys.stdout.fileno(), str(child).encode())
        os._exit(0)
    os.setsid()
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


def end_with_parent(parent: int) -> None:
    """Ask the kernel (Linux's) for SIGTERM when the parent dies, however it dies."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            raise SystemExit("the parent ended first")


def share_one_arena() -> None:
    """Let all threads of this process and its children share one arena (glibc).

    Python lets one thread run at a time, so several arenas save no waiting and only hold more.
    """
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_ARENA_MAX, 1)


def give_free_memory_back() -> None:
    """Return to the system what this process has freed; else it keeps that for itself (glibc)."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def be_called(name: str) -> None:
    """Show this process under a name of up to 15 letters where processes are listed (Linux's)."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode("ascii", "replace")[:15])


def ids(text: str) -> tuple[int, int]:
    """Read `UID:GID`."""
    uid, _, gid = text.partition(":")
    return int(uid), int(gid)


def main(argv: list[str]) -> None:
    """Apply what is asked, then become the program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--map", type=ids)
    parser.add_argument("--drop", type=ids)
    parser.add_argument("--drop-but-reach", type=ids)
    parser.add_argument("--detach")
    parser.add_argument("program", nargs="+")
    options = parser.parse_args(argv)
    if options.detach:
        detach(options.detach)
    if options.map:
        map_to(*options.map)
    if options.drop:
        drop_to(*options.drop)
    if options.drop_but_reach:
        drop_but_reach(*options.drop_but_reach)
    os.execvp(options.program[0], options.program)  # noqa: S606 - becoming the program is the purpose


if __name__ == "__main__":
    main(sys.argv[1:])
