"""Calls of the Linux kernel that Python does not offer; each raises OSError as Python's own do."""

from __future__ import annotations

import ctypes
import os
import platform
import struct

NEWNS, NEWCGROUP, NEWUTS = 0x0002_0000, 0x0200_0000, 0x0400_0000
NEWIPC, NEWUSER, NEWPID, NEWNET = 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000
CHILDS_SPACES = NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWNET
EVERY_SPACE = CHILDS_SPACES | NEWPID | NEWUSER

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
AT_RECURSIVE, AT_EMPTY_PATH = 0x8000, 0x1000

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
SECCOMP_MODE_FILTER = 2
LAST_CAPABILITY = 40

SYS_MOUNT_SETATTR, SYS_LANDLOCK_CREATE, SYS_LANDLOCK_ADD, SYS_LANDLOCK_RESTRICT = 442, 444, 445, 446
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(answer: int, what: str) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return answer


def unshare(flags: int) -> None:
    """Enter new namespaces."""
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system, or bind a path elsewhere."""
    words = [os.fsencode(word) or None for word in (source, target, kind)]
    answer = _libc.mount(*words, ctypes.c_ulong(flags), os.fsencode(options) or None)
    _checked(answer, f"mount {target}")


def set_mount(fd: int, attributes: int, *, recursive: bool = True) -> None:
    """Add attributes, such as MS_RDONLY or MS_NOSUID, to the mount at this descriptor."""
    values = struct.pack("QQQQ", attributes, 0, 0, 0)
    flags = AT_EMPTY_PATH | (AT_RECURSIVE if recursive else 0)
    answer = _libc.syscall(SYS_MOUNT_SETATTR, fd, b"", flags, values, len(values))
    _checked(answer, "mount_setattr")


def become_root_of(folder: str) -> None:
    """Make a mounted folder the root of this mount namespace; the old one is gone."""
    os.chdir(folder)
    _checked(_libc.syscall(SYS_PIVOT_ROOT[platform.machine()], b".", b"."), "pivot_root")
    _checked(_libc.umount2(b".", MNT_DETACH), "umount")
    os.chdir("/")


def prctl(option: int, value: int, more: object = 0) -> None:
    """Set a property of this process."""
    zero = ctypes.c_ulong(0)
    _checked(_libc.prctl(option, ctypes.c_ulong(value), more, zero, zero), f"prctl {option}")


def drop_capabilities() -> None:
    """Let no program that starts from here gain a right, whatever bits its file has."""
    for capability in range(LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # a plain user has none to drop
            break
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def filter_calls(program: bytes) -> None:
    """Filter this process's system calls, and those of all that it starts, for ever."""
    code = ctypes.create_string_buffer(program)
    size = ctypes.c_ushort(len(program) // 8)

    class Filter(ctypes.Structure):
        _fields_ = (("size", ctypes.c_ushort), ("code", ctypes.c_void_p))

    wanted = Filter(size.value, ctypes.cast(code, ctypes.c_void_p).value)
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(wanted))


def syscall(number: int, *words: object) -> int:
    """Any other call, by its number."""
    return _checked(_libc.syscall(number, *words), f"system call {number}")
