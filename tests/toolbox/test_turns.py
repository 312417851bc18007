"""Turns at the threads: how many at once, in which order, and what becomes of who waits."""

import random
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Event

import pytest

from tests.patience import PATIENCE, wait_until
from toolbox.faces.turns import Request, Turns


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as pool:
        yield pool


def begun(threads, turns, work, *given):
    request = Request(threads, turns, work, given)
    request.begin()
    return request.done


class TestRequests:
    def test_of_one_owner_are_answered_in_their_order(self, threads):
        turns, order = Turns(1), []
        done = [begun(threads, (turns,), order.append, number) for number in range(50)]
        for each in done:
            each.result(PATIENCE)
        assert order == list(range(50))
        assert (turns.taken, list(turns.waiting)) == (0, [])

    def test_hold_no_more_turns_at_once_than_there_are(self, threads):
        """Of 400, of five agents in two organisations; none is lost."""
        random.seed(1)
        organisations = [Turns(2), Turns(3)]
        agents = [(Turns(1 + number % 2), organisations[number % 2]) for number in range(5)]
        now, most, lock = {}, {}, threading.Lock()

        def work(turns):
            with lock:
                for each in turns:
                    now[each] = now.get(each, 0) + 1
                    most[each] = max(most.get(each, 0), now[each])
            time.sleep(random.random() / 2000)
            with lock:
                for each in turns:
                    now[each] -= 1
            return turns

        asked = [random.choice(agents) for _ in range(400)]
        done = [begun(threads, turns, work, turns) for turns in asked]
        assert [each.result(PATIENCE) for each in done] == asked
        assert all(most[turns] <= turns.most for turns in most)
        assert most[organisations[0]] == 2
        assert all(turns.taken == 0 and not turns.waiting for turns in most)

    def test_of_others_come_before_those_that_follow_in_the_same_thread(self):
        """A thread works on for one owner only while no one else waits for it."""
        order, first = [], Event()
        with ThreadPoolExecutor(1) as one:
            mine = (Turns(1),)
            done = [begun(one, mine, first.wait, PATIENCE)]
            done += [begun(one, mine, order.append, "mine") for _ in range(3)]
            done.append(begun(one, (Turns(1),), order.append, "theirs"))
            first.set()
            for each in done:
                each.result(PATIENCE)
        assert order == ["theirs", "mine", "mine", "mine"]

    def test_that_fail_say_so_and_hand_on_their_turn(self, threads):
        turns = (Turns(1),)
        failing = begun(threads, turns, lambda: 1 // 0)
        assert begun(threads, turns, lambda: 2).result(PATIENCE) == 2
        with pytest.raises(ZeroDivisionError):
            failing.result(PATIENCE)

    def test_whose_client_leaves_while_they_wait_are_not_answered(self, threads):
        turns, freed, answered = (Turns(1),), Event(), []
        running = begun(threads, turns, freed.wait, PATIENCE)
        gone = begun(threads, turns, answered.append, "gone")
        staying = begun(threads, turns, answered.append, "staying")
        assert gone.cancel()
        freed.set()
        staying.result(PATIENCE)
        assert running.result(PATIENCE)
        assert answered == ["staying"]
        assert turns[0].taken == 0

    def test_that_leave_hand_on_what_they_held_and_hold_no_body(self, threads):
        """It holds its agent's turn and waits for its organisation's: its sibling needs neither."""
        agent, organisation, freed = Turns(1), Turns(1), Event()
        running = begun(threads, (organisation,), freed.wait, PATIENCE)
        leaving = Request(threads, (agent, organisation), print, (b"body",))
        leaving.begin()
        sibling = begun(threads, (agent,), lambda: "sibling")
        assert (agent.taken, len(agent.waiting), len(organisation.waiting)) == (1, 1, 1)
        leaving.leave()
        leaving.leave()
        assert sibling.result(PATIENCE) == "sibling"
        assert (leaving.given, len(organisation.waiting)) == ((), 0)
        freed.set()
        running.result(PATIENCE)
        wait_until(lambda: (agent.taken, organisation.taken) == (0, 0))

    def test_may_leave_at_any_moment(self, threads):
        """Of 2,000 that leave while turns are handed on, no turn is lost and none counted twice."""
        random.seed(2)
        turns = [Turns(2), Turns(1)]
        asked = []
        for number in range(2_000):
            asked.append(Request(threads, tuple(turns), time.sleep, (0.00005,)))
            asked[-1].begin()
            if number % 3:
                random.choice(asked[-20:]).leave()
        for each in asked:
            assert each.done.cancelled() or each.done.result(PATIENCE) is None
        wait_until(lambda: [(each.taken, len(each.waiting)) for each in turns] == [(0, 0)] * 2)

    @pytest.mark.parametrize("most", [1, 9], ids=["of the turn", "of a thread"])
    def test_that_wait_when_the_threads_end_are_cancelled(self, most):
        """Of 2,000, so that no hand-over calls the next one from itself."""
        turns, freed, begun_at, answered = (Turns(most),), Event(), Event(), []

        def hold():
            begun_at.set()
            return freed.wait(PATIENCE)

        pool = ThreadPoolExecutor(1)
        running = begun(pool, turns, hold)
        waiting = [begun(pool, turns, answered.append, number) for number in range(2_000)]
        assert begun_at.wait(PATIENCE)
        pool.shutdown(wait=False, cancel_futures=True)
        freed.set()
        assert running.result(PATIENCE)
        for each in waiting:
            with pytest.raises(CancelledError):
                each.result(PATIENCE)
        assert not answered
