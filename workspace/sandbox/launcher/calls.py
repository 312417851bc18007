"""The filter of system calls: no way to other namespaces, mounts, processes' memory or networks.

What a program needs to compute, to use files and to talk to itself is left.
"""

from __future__ import annotations

import errno
import platform
import socket
import struct

from workspace.sandbox.launcher import kernel

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, REFUSE = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
NUMBER, ARCHITECTURE = 0, 4
FIRST_ARGUMENT, SECOND_ARGUMENT, THIRD_ARGUMENT, FOURTH_ARGUMENT = 16, 24, 32, 40
X32 = 0x4000_0000

FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
"""The network namespace has a loopback of its own and nothing else; AF_VSOCK would leave it."""

AUDIT = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
EVERYWHERE = [
    *range(428, 434),  # open_tree, move_mount, fsopen, fsconfig, fsmount, fspick
    438,  # pidfd_getfd
    442,  # mount_setattr
]
UNKNOWN = [425, 426, 427, 435, 447]
"""io_uring_*, clone3, memfd_secret: programs fall back to what is filtered."""
UNCOUNTED = {
    "x86_64": [319, 29, 68, 64, 278, 275, 276, 40],
    "aarch64": [279, 194, 186, 190, 75, 76, 77, 71],
}
"""memfd_create, shmget, msgget, semget: memory that no process is seen to hold. vmsplice, splice,
tee, sendfile: pages that stay in pipes and sockets when their file or process lets go of them."""
MAP = {"x86_64": 9, "aarch64": 222}
MAP_SHARED, MAP_ANONYMOUS = 0x01, 0x20
"""Of memory without a file, what is shared stays when a process takes it out of its own view."""
DENIED = {
    # ptrace, process_vm_*, mount, umount2, pivot_root, chroot, unshare, setns, bpf,
    # perf_event_open, add_key, request_key, keyctl, open_by_handle_at, userfaultfd, kexec_*,
    # *_module, swap*, reboot, acct, quotactl, set*name, settimeofday, clock_settime, syslog, kcmp;
    # iopl, ioperm
    "x86_64": [
        *(101, 310, 311, 165, 166, 155, 161, 272, 308, 321, 298, 248, 249, 250, 304, 323, 246, 320),
        *(175, 313, 176, 167, 168, 169, 163, 179, 170, 171, 164, 227, 103, 312, 172, 173),
    ],
    "aarch64": [
        *(117, 270, 271, 40, 39, 41, 51, 97, 268, 280, 241, 217, 218, 219, 265, 282, 104, 294),
        *(105, 273, 106, 224, 225, 142, 89, 60, 161, 162, 170, 112, 116, 272),
    ],
}
CLONE = {"x86_64": 56, "aarch64": 220}
SOCKET = {"x86_64": 41, "aarch64": 198}
SET_OPTION = {"x86_64": 54, "aarch64": 208}
BUFFER_SIZES = (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33)  # and both with FORCE
"""A wish that has no effect: what waits in sockets is counted by the sizes they begin with."""
DONE = REFUSE | 0
"""The call is not made, and its answer is 0: success."""


def program() -> bytes:
    """The filter for this machine, as the kernel and bubblewrap take it.

    Raises KeyError on a processor whose numbers are not known here.
    """
    machine = platform.machine()
    lines = [
        *(_load(ARCHITECTURE), *_unless(EQUAL, AUDIT[machine], KILL), _load(NUMBER)),
        *_if(AT_LEAST, X32, REFUSE | errno.EPERM),
    ]
    for number in (*DENIED[machine], *EVERYWHERE):
        lines += _if(EQUAL, number, REFUSE | errno.EPERM)
    for number in (*UNKNOWN, *UNCOUNTED[machine]):
        lines += _if(EQUAL, number, REFUSE | errno.ENOSYS)
    spaces = [
        _load(FIRST_ARGUMENT),
        *_if(ANY_BIT, kernel.EVERY_SPACE, REFUSE | errno.EPERM),
        _return(ALLOW),
    ]
    lines += [_line(EQUAL, CLONE[machine], 0, len(spaces)), *spaces]
    families = [_load(FIRST_ARGUMENT)]
    for family in FAMILIES:
        families += _if(EQUAL, family, ALLOW)
    families += [_return(REFUSE | errno.EAFNOSUPPORT)]
    lines += [_line(EQUAL, SOCKET[machine], 0, len(families)), *families]
    sizes = [_load(SECOND_ARGUMENT), *_unless(EQUAL, socket.SOL_SOCKET, ALLOW)]
    sizes += [_load(THIRD_ARGUMENT)]
    for size in BUFFER_SIZES:
        sizes += _if(EQUAL, size, DONE)
    sizes += [_return(ALLOW)]
    lines += [_line(EQUAL, SET_OPTION[machine], 0, len(sizes)), *sizes]
    maps = [_load(FOURTH_ARGUMENT), *_unless(ANY_BIT, MAP_ANONYMOUS, ALLOW)]
    maps += [*_if(ANY_BIT, MAP_SHARED, REFUSE | errno.ENOSYS), _return(ALLOW)]
    lines += [_line(EQUAL, MAP[machine], 0, len(maps)), *maps]
    return b"".join([*lines, _return(ALLOW)])


def _line(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("HBBI", code, then, otherwise, value)


def _load(place: int) -> bytes:
    return _line(LOAD, place)


def _return(value: int) -> bytes:
    return _line(RETURN, value)


def _if(test: int, value: int, answer: int) -> list[bytes]:
    return [_line(test, value, 0, 1), _return(answer)]


def _unless(test: int, value: int, answer: int) -> list[bytes]:
    return [_line(test, value, 1, 0), _return(answer)]
