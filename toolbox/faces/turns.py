"""Turns: of one owner's requests only some have threads at once; the others wait, in their order.

A thread that is done hands its turn to who waits for it, and works on for them. Through the event
loop, which has to wake up for it and then wakes a thread, a call costs a quarter more while many
wait.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from toolbox.faces.pace import Pace

_lock = RLock()
"""Held for a moment, while turns are taken and handed on."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Turns:
    """What at most so many requests of one owner hold at once."""

    most: int
    taken: int = 0
    waiting: OrderedDict[Request, None] = field(default_factory=OrderedDict)
    pace: Pace = field(default_factory=Pace)


@dataclass(slots=True, eq=False)
class Request:
    """Work for a thread, once it holds one of each of the `turns`, which it takes in their order.

    `done` becomes what the work returns or raises. Work whose `done` was cancelled before it began
    is left out. Who asked has to `leave` then, so that nothing waits on, and holds a body, for it.
    """

    threads: ThreadPoolExecutor
    turns: tuple[Turns, ...]
    work: Callable[..., Any]
    given: tuple[Any, ...]
    done: Future[Any] = field(default_factory=Future)
    held: int = 0

    def begin(self) -> None:
        """Ask for a thread: now, or when others have handed on the turns that are missing."""
        with _lock:
            holds_all = self.take()
        if holds_all:
            _ask_for_threads([self])

    def take(self) -> bool:
        """Take the turns that are missing; False where one has to be waited for."""
        for turns in self.turns[self.held :]:
            if turns.taken >= turns.most:
                turns.waiting[self] = None
                return False
            turns.taken += 1
            self.held += 1
        return True

    def hand_on(self) -> list[Request]:
        """Give each turn to who has waited longest for it, or back; returns who holds all now."""
        ready = []
        with _lock:
            for turns in self.turns[: self.held]:
                if not turns.waiting:
                    turns.taken -= 1
                    continue
                following, _ = turns.waiting.popitem(last=False)
                following.held += 1
                if following.take():
                    ready.append(following)
        return ready

    def leave(self) -> None:
        """Wait no longer, and hold nothing for it. What a thread has begun goes on."""
        if not self.done.cancel():
            return
        self.given, ready = (), []
        with _lock:
            if self.held < len(self.turns) and self in self.turns[self.held].waiting:
                del self.turns[self.held].waiting[self]
                ready = self.hand_on()
        _ask_for_threads(ready)

    def give_up(self, place: Future[None]) -> None:
        """Tell who asked that the pool ended while this waited for a thread."""
        if place.cancelled():
            self.done.cancel()

    def answer(self) -> None:
        """Do the work in this thread, unless who asked has left."""
        try:
            if self.done.set_running_or_notify_cancel():
                self.done.set_result(self.work(*self.given))
        except BaseException as problem:  # noqa: BLE001  who asked raises it
            self.done.set_exception(problem)


def _ask_for_threads(ready: list[Request]) -> None:
    """Let a thread of its pool work for each; where the pool has ended, `done` is cancelled."""
    while ready:
        request = ready.pop()
        try:
            request.threads.submit(_work_for, [request]).add_done_callback(request.give_up)
        except RuntimeError:
            request.done.cancel()
            ready += request.hand_on()


def _work_for(next_one: list[Request]) -> None:
    """Work for a request, then for the one that follows, while no other work waits for a thread.

    The list holds a request only until it is answered, so that nothing keeps its body after that.
    """
    while next_one:
        request = next_one.pop()
        request.answer()
        ready, threads = request.hand_on(), request.threads
        if ready and ready[0].threads is threads and not _is_wanted(threads):
            next_one.append(ready.pop(0))
        _ask_for_threads(ready)


def _is_wanted(threads: ThreadPoolExecutor) -> bool:
    """Whether other work waits for a thread of the pool, or the pool has ended."""
    return threads._shutdown or not threads._work_queue.empty()  # noqa: SLF001  it has no names for this
