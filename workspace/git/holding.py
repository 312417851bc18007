"""Holding an agent's work tree while git works in it; no transaction of the database is open."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.decision import Code, refuse
from toolbox.caller import Caller
from workspace.outside_calls import slot
from workspace.tree import organisation_folder

LOCKS = ".locks"
PATIENCE = 20.0
"""Seconds that a call waits for the one before it."""
LOOK_EVERY = 0.05


@contextmanager
def held_work_tree(caller: Caller) -> Iterator[None]:
    """Hold the caller's work tree: of one agent one call of git works at a time.

    Raises Denied RATE_LIMITED where the call before takes too long.
    """
    with slot(caller, "git calls"), held(lock_of(caller)):
        yield


@contextmanager
def held(lock: Path) -> Iterator[None]:
    """Hold a lock of the operating system, so that it ends with this process, however it ends.

    Raises Denied RATE_LIMITED where the call before takes too long.
    """
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        until = time.monotonic() + PATIENCE
        while not _is_locked(file):
            if time.monotonic() > until:
                raise refuse(
                    Code.RATE_LIMITED,
                    "another git call of yours is still under way",
                    "call again when it has ended",
                    rule="one git call of an agent at a time (spec: hands 30)",
                    retry_after=5,
                )
            time.sleep(LOOK_EVERY)
        yield
    finally:
        os.close(file)


def lock_of(caller: Caller) -> Path:
    """The file that who works in the caller's work tree holds; agents reach none of these."""
    return organisation_folder(caller.policy.organisation) / LOCKS / str(caller.agent.id)


def _is_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
