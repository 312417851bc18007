"""Who waits for a frame is woken by the commit that makes it, and holds no thread meanwhile."""

import asyncio
import time
from threading import Timer

import pytest
from django.db import connections
from django.utils import timezone

from tests.company import load_company
from tests.loops import run as run_loop
from tests.patience import PATIENCE
from toolbox import wake
from toolbox.faces import long_poll
from toolbox.faces.long_poll import poll
from toolbox.faces.sse import OpenStreams
from toolbox.faces.threads import in_thread
from toolbox.frames import ending, services

LEADER, DEVELOPER = "coding_leader", "coding_developer"


@pytest.fixture
def committed(transactional_db):
    return load_company("soloqueue")


async def at_once(_agent_id):
    """Announces nobody."""


def later(work):
    """Do the work in a thread of its own in a moment."""

    def done():
        try:
            work()
        finally:
            connections.close_all()

    timer = Timer(0.4, done)
    timer.start()
    return timer


def wait_for(company, handle: str, patience: float, **params):
    """What the faces do with `wait`: ask, and ask again when the agent's bell rings."""
    agent_id = company.agent(handle).id
    company.key(handle)

    def look():
        return company.call(handle, "next_frame", **params).result

    async def waiting():
        return await poll(
            agent_id=agent_id,
            seconds=patience,
            ask=lambda _: in_thread(look),
            is_empty=lambda result: not result["frame"],
        )

    begun = time.monotonic()
    return run_loop(waiting())["frame"], time.monotonic() - begun


class TestWaiting:
    def test_for_work_ends_when_it_comes(self, committed):
        caller = committed.caller(LEADER)
        timer = later(
            lambda: services.delegate_to(
                caller=caller, to=DEVELOPER, instruction="x", context=None, now=timezone.now()
            )
        )
        frame, seconds = wait_for(committed, DEVELOPER, PATIENCE)
        timer.join()
        assert frame["instruction"] == "x"
        assert seconds < PATIENCE / 2

    def test_for_a_result_ends_when_it_comes(self, committed):
        frame_id = committed.call(LEADER, "delegate_to", to=DEVELOPER, instruction="x").result[
            "frame_id"
        ]
        committed.call(DEVELOPER, "next_frame")
        caller = committed.caller(DEVELOPER)
        timer = later(
            lambda: ending.return_result(
                caller=caller, frame_id=frame_id, result="r", failed=False, now=timezone.now()
            )
        )
        outcome, seconds = wait_for(committed, LEADER, PATIENCE, frame_id=frame_id)
        timer.join()
        assert outcome["result"] == "r"
        assert seconds < PATIENCE / 2

    def test_ends_with_nothing_when_patience_ends(self, committed):
        frame, seconds = wait_for(committed, DEVELOPER, 0.6)
        assert frame is None
        assert seconds >= 0.6

    def test_looks_once_a_second_however_often_others_ring(self, monkeypatch):
        """Spec: wire 21. Each look costs the agent one call of its rate."""
        monkeypatch.setattr(long_poll.wake, "listen", lambda: None)
        monkeypatch.setattr(long_poll, "announce", at_once)
        looks = []

        async def ask(last):
            looks.append(last)
            return ()

        async def ring():
            while True:
                wake.WAITERS.wake([1])
                await asyncio.sleep(0.01)

        async def together():
            ringing = asyncio.ensure_future(ring())
            await poll(agent_id=1, seconds=1.5, ask=ask, is_empty=lambda _: True)
            ringing.cancel()

        run_loop(together())
        assert looks == [False, False, False, True]

    def test_is_for_so_many_calls_of_one_agent(self, monkeypatch):
        """One more is asked once, as the last, and answered while the others still wait."""
        monkeypatch.setattr(long_poll, "_WAITING", OpenStreams(2))
        monkeypatch.setattr(long_poll.wake, "listen", lambda: None)
        monkeypatch.setattr(long_poll, "announce", at_once)

        async def wait(agent_id, lasts, begun):
            async def ask(last):
                lasts.append(last)
                begun.release()
                return ()

            await poll(agent_id=agent_id, seconds=PATIENCE, ask=ask, is_empty=lambda _: True)

        async def together():
            asked, begun = [[], [], [], []], asyncio.Semaphore(0)
            agents = zip((1, 1, 2), asked, strict=False)
            waiting = [asyncio.ensure_future(wait(*each, begun)) for each in agents]
            for _ in waiting:
                await begun.acquire()
            await wait(1, asked[3], begun)
            still = [each.cancel() for each in waiting]
            await asyncio.wait(waiting)
            await asyncio.sleep(0)
            return asked, still, asyncio.all_tasks() - {asyncio.current_task()}

        asked, still, left = run_loop(together())
        assert asked == [[False], [False], [False], [True]]
        assert not left
        assert still == [True, True, True]

    @pytest.mark.parametrize("wait", [-1, 31, "5", 1.5, True, None])
    def test_is_at_most_thirty_seconds(self, committed, wait):
        assert committed.call(DEVELOPER, "next_frame", wait=wait).code == "INVALID_PARAMS"
