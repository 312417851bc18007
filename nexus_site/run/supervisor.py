"""Keeps child processes running and responding until told to stop, then leaves none behind.

Children are forked: what the parent has imported they need not import again, which is most of the
time a start takes. So the parent must run no threads and hold no connections.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Self

from nexus_site.run.fork import fork, status_of
from nexus_site.run.processes import kill_session
from nexus_site.run.pulse import Pulse

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
POLL = 0.1  # seconds
STEADY = 10.0  # seconds a child must live for its earlier failures to be forgotten
TOO_MANY = 6  # failures in a row of a child that never lived so long
LONGEST_PAUSE = 30.0  # seconds


@dataclass(kw_only=True)
class Child:
    """One process to keep running, the leader of a process group of its own."""

    name: str
    run: Callable[[], int | None]
    grace: float = 10.0  # seconds to end by itself when asked
    is_needed: bool = False  # others use it until they end: it is asked to stop after them
    pulse: Pulse | None = None  # it beats; silent for too long, it is killed and started again
    pid: int | None = None
    status: int | None = None
    failures: int = 0
    was_steady: bool = False
    started: float = 0.0
    next_start: float = 0.0

    def start(self, *, now: float) -> None:
        """Run it. If we are killed, the kernel asks it to end. Raises OSError."""
        self.status = None
        if self.pulse is not None:
            self.pulse.begin(now=now)
        self.started = now
        self.pid = fork(self.run, name=f"nexus {self.name}")

    def ended(self) -> int | None:
        """Its exit status once it ended (negative: the signal that ended it)."""
        if self.pid is not None and self.status is None:
            self.status = status_of(self.pid)
        return self.status

    def failed(self, *, now: float) -> float:
        """Note an unexpected end; return the pause before the next start, in seconds."""
        self.kill_group()  # what it left behind
        self.pid = None
        lived = now - self.started > STEADY
        self.failures = 1 if lived else self.failures + 1
        self.was_steady |= lived
        pause = min(2.0 ** (self.failures - 1), LONGEST_PAUSE)
        self.next_start = now + pause
        return pause

    def ask_to_stop(self) -> None:
        """Ask the leader; it stops its own children in its own order."""
        if self.pid is not None and self.ended() is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill_group(self) -> None:
        """End it and whatever it started, and wait until it is gone."""
        if self.pid is None:
            return
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:  # gone, or so young that it leads no group yet
            if self.ended() is None:
                os.kill(self.pid, signal.SIGKILL)
        if self.ended() is None:
            self.status = status_of(self.pid, wait=True)
        kill_session(self.pid)


@dataclass(kw_only=True)
class Supervisor:
    """Starts children, starts the fallen again with growing pauses, stops all when asked.

    A child that never lived for STEADY seconds is given up, and all with it: it cannot run here.
    One that did is tried for as long as it takes: what keeps it down (a full disk) may pass.
    """

    children: Sequence[Child]
    say: Callable[[str], None]
    still_wanted: Callable[[], bool] = lambda: True
    stopping: threading.Event = field(default_factory=threading.Event)
    requests: int = 0

    def __enter__(self) -> Self:
        """Take over the signals that mean stop, even where the shell had them ignored."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._stop)
        return self

    def __exit__(self, *error: object) -> None:
        """Stop every child; the signals stay ours, so that a second Ctrl-C breaks nothing off."""
        self.stop_all()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Note the wish to stop; a repeated one is an order."""
        self.requests += 1
        self.stopping.set()

    def finish(self, task: Child, meanwhile: Callable[[], None]) -> int:
        """Run something to its end while doing something else; its status, 1 if asked to stop."""
        task.start(now=time.monotonic())
        try:
            meanwhile()
            while task.ended() is None:
                if self.stopping.wait(POLL / 4):
                    return 1
        finally:
            task.kill_group()
        if task.status and task.status < 0:
            self.say(f"{task.name} was killed (signal {-task.status}); start again.")
        return task.status or 0

    def run(self) -> int:
        """Keep the children running until asked to stop; 0, or 1 if one could not be kept alive."""
        for child in self.children:
            child.start(now=time.monotonic())
        while not self.stopping.wait(POLL):
            if not self.still_wanted():
                break
            for child in self.children:
                if not self._keep(child, now=time.monotonic()):
                    return 1
        return 0

    def _keep(self, child: Child, *, now: float) -> bool:
        """Start a fallen child again; False once it has ended by itself too often."""
        if child.pid is None:
            if now >= child.next_start:
                self._start_again(child, now=now)
            return True
        if child.pulse and child.ended() is None and child.pulse.is_silent(now=now):
            self.say(f"{child.name} did not respond for {child.pulse.limit:.0f} s; killing it.")
            child.kill_group()
        status = child.ended()
        if status is None:
            return True
        pause = child.failed(now=now)
        hopeless = status >= 0 and not child.was_steady  # who is killed did nothing wrong
        if hopeless and child.failures >= TOO_MANY:
            self.say(
                f"{child.name} ended {child.failures} times in a row (last: {status}); giving up."
            )
            return False
        self.say(f"{child.name} ended with status {status}; starting it again in {pause:.0f} s.")
        return True

    def _start_again(self, child: Child, *, now: float) -> None:
        """Start it, or later: the machine may have no room for a process."""
        try:
            child.start(now=now)
        except OSError as problem:
            pause = child.failed(now=now)
            self.say(f"{child.name} cannot be started: {problem}; trying again in {pause:.0f} s.")

    def stop_all(self) -> None:
        """End every child, those that others need after the others."""
        orders = max(self.requests, 1)
        for is_needed in (False, True):
            self._stop_all_of([c for c in self.children if c.is_needed is is_needed], orders)

    def _stop_all_of(self, children: Sequence[Child], orders: int) -> None:
        """End these, first by asking, then, past its grace or a second order, by force."""
        for child in children:
            child.ask_to_stop()
        asked = time.monotonic()
        for child in children:
            while child.pid is not None and child.ended() is None:
                if time.monotonic() - asked > child.grace or self.requests > orders:
                    break
                time.sleep(POLL / 4)
            child.kill_group()
            child.pid = None
