"""The pace of who is refused again and again: who is looked at, in which order, and how often."""

import asyncio
import time
from collections import Counter

import pytest

from toolbox.faces import pace as module
from toolbox.faces.clients import CLIENT, Client
from toolbox.faces.pace import Pace


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "PER_SECOND", 100)
    monkeypatch.setattr(module, "AT_ONCE", 3)


def in_debt(seconds=30.0):
    """The pace of who was refused much more often than time has paid back."""
    return Pace(debt_until=time.monotonic() + seconds)


async def ask(pace, name, order):
    admitted = await pace.admit()
    order.append(name if admitted else f"not {name}")


async def begin(pace, *names):
    """The tasks of these requests, begun in this order, and the order in which they end."""
    order, tasks = [], []
    for name in names:
        tasks.append(asyncio.create_task(ask(pace, name, order)))
        await asyncio.sleep(0)
    return tasks, order


class TestWhoIsRefused:
    def test_a_few_times_waits_for_nothing(self):
        async def run():
            pace = Pace()
            for _ in range(3):
                pace.note_refusal()
                _, order = await begin(pace, "a")
                assert order == ["a"]

        asyncio.run(run())

    def test_more_often_waits_for_a_place(self, monkeypatch):
        async def run():
            pace = Pace()
            for _ in range(100):
                pace.note_refusal()
            tasks, order = await begin(pace, "a", "b")
            assert order == []
            await asyncio.gather(*tasks)
            return order

        assert sorted(asyncio.run(run())) == ["a", "b"]

    def test_waits_no_more_when_time_has_paid(self):
        async def run():
            pace = in_debt(0.05)
            await asyncio.sleep(0.06)
            _, order = await begin(pace, "a", "b")
            return order

        assert asyncio.run(run()) == ["a", "b"]

    def test_last_is_looked_at_first(self):
        async def run():
            tasks, order = await begin(in_debt(), "a", "b", "c")
            await asyncio.gather(*tasks)
            return order

        assert asyncio.run(run()) == ["c", "b", "a"]

    def test_none_is_refused_because_many_wait(self):
        """Who is refused asks again at once: 450 connections to a process took the processors."""

        async def run():
            pace = in_debt()
            tasks, order = await begin(pace, *(["one"] * 1000))
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            return order

        assert "not one" not in asyncio.run(run())

    def test_first_is_left_where_it_waits_too_long(self, monkeypatch):
        monkeypatch.setattr(module, "LONGEST", 0.0)

        async def run():
            tasks, order = await begin(in_debt(), "a")
            await asyncio.gather(*tasks)
            return order

        assert asyncio.run(run()) == ["not a"]

    def test_and_leaves_takes_no_place(self):
        async def run():
            pace = in_debt()
            tasks, order = await begin(pace, "a", "b", "c")
            tasks[2].cancel()
            await asyncio.wait(tasks)
            assert (list(pace.waiting), pace.timer) == ([], None)
            return order

        assert asyncio.run(run()) == ["b", "a"]

    def test_whose_connection_ends_holds_no_place(self):
        """Else who asks and leaves, again and again, pushes out everybody else."""

        async def run():
            pace = in_debt()
            waiting, order = await begin(pace, "a")
            for _ in range(20):
                client = Client()
                CLIENT.set(client)
                flood, _ = await begin(pace, "left")
                client.leave()
                waiting += flood
            CLIENT.set(None)
            await asyncio.gather(*waiting)
            assert (list(pace.waiting), list(client.waiting)) == ([], [])
            return order

        assert asyncio.run(run()) == ["a"]

    def test_whose_connection_has_ended_begins_to_wait_for_no_place(self):
        async def run():
            pace, order = in_debt(), []
            CLIENT.set(Client(has_left=True))
            await ask(pace, "a", order)
            assert not pace.waiting
            return order

        assert asyncio.run(run()) == ["not a"]

    def test_is_looked_at_no_more_often_than_that(self):
        """Eighty that ask again as soon as they are refused."""

        async def run():
            pace, looked_at, begun = Pace(), 0, time.monotonic()

            async def keep_asking():
                nonlocal looked_at
                while time.monotonic() < begun + 0.5:
                    if await pace.admit():
                        looked_at += 1
                        pace.note_refusal()

            await asyncio.gather(*(keep_asking() for _ in range(80)))
            return looked_at, time.monotonic() - begun

        looked_at, seconds = asyncio.run(run())
        assert 3 < looked_at <= 3 + 80 + 100 * seconds + 5


@pytest.mark.parametrize("counted", [module.REFUSALS, range(100, 600)], ids=["errors", "all"])
def test_answers_are_counted_by_their_status(counted):
    pace, sent = Pace(), []

    async def send(message):
        sent.append(message)

    messages = [{"type": "http.response.start", "status": s} for s in (200, 303, 401, 429, 503)]
    messages += [{"type": "http.response.body", "body": b""}]

    async def run():
        found = Counter()
        for message in messages:
            before = pace.debt_until
            await pace.noting(send, counted)(message)
            found[message.get("status")] += pace.debt_until > before
        return found

    found = asyncio.run(run())
    assert sent == messages
    assert [status for status, noted in found.items() if noted] == [
        status for status in (200, 303, 401, 429, 503) if status in counted
    ]
