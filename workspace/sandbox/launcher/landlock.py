"""A second wall around files and signals, of the kernel itself: Landlock."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable

from workspace.sandbox.launcher import kernel

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
READ = EXECUTE | READ_FILE | READ_DIR
FILE_ONLY = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14 | 1 << 15
RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many rights on files each version of Landlock knows."""
SCOPES = 0b11  # abstract sockets, signals
SCOPES_SINCE, NETWORK_SINCE = 6, 4
BENEATH = 1
VERSION = 1


def version() -> int:
    """The version of Landlock that this kernel offers; 0 for none."""
    try:
        return kernel.syscall(kernel.SYS_LANDLOCK_CREATE, None, 0, VERSION)
    except OSError:
        return 0


def restrict(*, read: Iterable[str], write: Iterable[str]) -> None:
    """Let this process, and all that it starts, only read these paths and only change those.

    Signals and abstract sockets of processes outside are refused too. Without Landlock: nothing.
    """
    offered = version()
    if not offered:
        return
    every = (1 << RIGHTS.get(offered, max(RIGHTS.values()))) - 1
    words = [every]
    if offered >= NETWORK_SINCE:
        words.append(0)
    if offered >= SCOPES_SINCE:
        words.append(SCOPES)
    wanted = struct.pack(f"{len(words)}Q", *words)
    rules = kernel.syscall(kernel.SYS_LANDLOCK_CREATE, wanted, len(wanted), 0)
    for path in read:
        _allow(rules, path, READ)
    for path in write:
        _allow(rules, path, every)
    kernel.syscall(kernel.SYS_LANDLOCK_RESTRICT, rules, 0)
    os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not os.path.isdir(path):  # noqa: PTH112  the launcher imports little
            rights &= FILE_ONLY
        rule = struct.pack("=Qi", rights, fd)
        kernel.syscall(kernel.SYS_LANDLOCK_ADD, rules, BENEATH, rule, 0)
    finally:
        os.close(fd)
