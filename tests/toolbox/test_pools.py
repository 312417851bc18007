"""Pools of threads: who works, in which order, and how many wake up."""

import threading
from queue import Empty

import pytest

from tests.patience import PATIENCE, wait_until
from toolbox.faces.pools import LastIdleQueue, pool_of, start_threads

COUNT = 4


@pytest.fixture
def pool():
    with pool_of(COUNT, "worker") as pool:
        start_threads(pool)
        queue = pool._work_queue
        wait_until(lambda: len(queue._waiting) == COUNT, "a thread does not pause")
        yield pool


def who():
    return threading.current_thread().name


class TestAPool:
    def test_has_its_threads_before_any_work(self, pool):
        assert {thread.name for thread in pool._threads} == {f"worker_{n}" for n in range(COUNT)}

    def test_gives_work_to_the_thread_that_paused_last(self, pool):
        workers = set()
        for _ in range(20):
            workers.add(pool.submit(who).result(PATIENCE))
            wait_until(lambda: len(pool._work_queue._waiting) == COUNT, "a thread works for ever")
        assert len(workers) == 1

    def test_wakes_one_thread_for_one_piece_of_work(self, pool):
        """`SimpleQueue` wakes a second one, which finds nothing."""
        asleep = [*pool._work_queue._waiting]
        pool.submit(who).result(PATIENCE)
        wait_until(lambda: len(pool._work_queue._waiting) == COUNT, "a thread works for ever")
        assert pool._work_queue._waiting[:-1] == asleep[:-1]
        assert pool._work_queue._waiting[-1] is not asleep[-1]

    def test_works_with_all_its_threads_at_once(self, pool):
        together = threading.Barrier(COUNT)
        done = [pool.submit(together.wait, PATIENCE) for _ in range(COUNT)]
        assert sorted(each.result(PATIENCE) for each in done) == list(range(COUNT))

    def test_does_the_oldest_work_first(self):
        order, begin = [], threading.Event()
        with pool_of(1, "one") as pool:
            pool.submit(begin.wait, PATIENCE)
            for number in range(20):
                pool.submit(order.append, number)
            begin.set()
        assert order == list(range(20))

    def test_loses_nothing_where_many_give_it_work(self, pool):
        def give(number):
            return [pool.submit(lambda n=n: (number, n)) for n in range(200)]

        with pool_of(COUNT, "giver") as givers:
            given = [each for done in givers.map(give, range(8)) for each in done]
            found = [each.result(PATIENCE) for each in given]
        assert found == [(number, n) for number in range(8) for n in range(200)]

    def test_ends_with_what_waits_left_out(self, pool):
        begin = threading.Event()
        running = [pool.submit(begin.wait, PATIENCE) for _ in range(COUNT)]
        waiting = [pool.submit(who) for _ in range(50)]
        pool.shutdown(wait=False, cancel_futures=True)
        begin.set()
        assert all(each.result(PATIENCE) for each in running)
        assert all(each.cancelled() for each in waiting)
        for thread in pool._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


def test_a_queue_without_work_says_so():
    queue = LastIdleQueue()
    assert queue.empty()
    with pytest.raises(Empty):
        queue.get_nowait()
    queue.put(1)
    assert not queue.empty()
    assert queue.get_nowait() == 1
