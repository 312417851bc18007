"""What a program and all that it started hold in memory together."""

from __future__ import annotations

import os
from collections.abc import Iterable

SOCKET = 425_984
"""Bytes that may wait in a socket: calls.BUFFER_SIZES keeps programs from asking for more, and
loopback.WAITING the kernel from giving more."""
OWN = ("RssAnon", "VmSwap", "VmPTE")
"""What only one process holds: its memory, also where it was moved out, and the tables of it."""


def descendants(process: int) -> list[int]:
    """A process and all that it started, from whichever of its threads."""
    found, at = [process], 0
    while at < len(found):
        for thread in _threads(found[at]):
            found += map(int, _read(f"/proc/{found[at]}/task/{thread}/children").split())
        at += 1
    return found


def is_more_than(most: int, processes: Iterable[int]) -> bool:
    """Whether these processes hold more bytes: their own, those they share, what waits in sockets.

    What several share counts for each at first; only where that is too much it is divided up,
    which takes the kernel longer.
    """
    held = {process: _facts(process, "status") for process in processes}
    rest = most - _in_sockets(held)
    rest -= sum(facts.get(name, 0) for facts in held.values() for name in OWN)
    if sum(facts.get("RssShmem", 0) for facts in held.values()) <= rest:
        return rest < 0
    return sum(_share_of(process, facts) for process, facts in held.items()) > rest


def _share_of(process: int, facts: dict[str, int]) -> int:
    """Bytes of a process's part in what it shares; all of it where the kernel does not say.

    A process that ended since its facts were read has no part any more.
    """
    if not facts.get("RssShmem"):
        return 0
    part = _facts(process, "smaps_rollup").get("Pss_Shmem")
    return _facts(process, "status").get("RssShmem", 0) if part is None else part


def _in_sockets(processes: Iterable[int]) -> int:
    """Bytes that the sockets of the sandbox's network may hold; not those of this machine's."""
    for process in processes:
        try:
            if os.stat(f"/proc/{process}/ns/net").st_ino == os.stat("/proc/self/ns/net").st_ino:  # noqa: PTH116  the launcher imports little
                continue
        except OSError:
            continue
        words = _read(f"/proc/{process}/net/sockstat").split()
        if words[:2] == ["sockets:", "used"]:
            return int(words[2]) * SOCKET
    return 0


def _facts(process: int, name: str) -> dict[str, int]:
    """The lines in kB of one of a process's files, in bytes; none of one that ended."""
    lines = (line.split() for line in _read(f"/proc/{process}/{name}").splitlines())
    return {
        words[0].rstrip(":"): int(words[1]) * 1024
        for words in lines
        if len(words) == 3 and words[2] == "kB"
    }


def _threads(process: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{process}/task")  # noqa: PTH208  the launcher imports little
    except OSError:
        return []


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123  the same
            return file.read()
    except OSError:
        return ""
