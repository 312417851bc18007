"""Holding an agent's work tree while git works in it or its programs look, with no transaction."""

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
def unchanged_work_tree(caller: Caller) -> Iterator[None]:
    """Let no call of git change the work tree while programs of the caller look at it.

    What its role denies is hidden from them by the names that are there when they begin, and
    several may look at once (Spec: hands 6). Raises Denied RATE_LIMITED where the call before takes
    too long.
    """
    with held(lock_of(caller), is_shared=True):
        yield


@contextmanager
def held(lock: Path, *, is_shared: bool = False) -> Iterator[None]:
    """Hold a lock of the operating system, so that it ends with this process, however it ends.

    Raises Denied RATE_LIMITED where the call before takes too long.
    """
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        until = time.monotonic() + PATIENCE
        while not _is_locked(file, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX):
            if time.monotonic() > until:
                raise refuse(
                    Code.RATE_LIMITED,
                    "another git call or run of yours is still under way",
                    "call again when it has ended",
                    rule="one git call of an agent at a time, none during a run (spec: hands 30)",
                    retry_after=5,
                )
            time.sleep(LOOK_EVERY)
        yield
    finally:
        os.close(file)


def lock_of(caller: Caller) -> Path:
    """The file that who works in the caller's work tree holds; agents reach none of these."""
    return organisation_folder(caller.policy.organisation) / LOCKS / str(caller.agent.id)


def _is_locked(file: int, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
