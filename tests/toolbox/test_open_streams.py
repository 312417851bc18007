"""Streams and waiting calls of one process: a bound for each client, a budget for all."""

import pytest

from core.budget import Budget
from nexus_site.live import stream as live
from toolbox.faces import event_stream, long_poll, tool_list_changes
from toolbox.faces.sse import PROCESS, OpenStreams

KINDS = [event_stream._STREAMS, long_poll._WAITING, tool_list_changes._STREAMS, live._STREAMS]


def fill(streams, client, stack):
    """Open as many as the client gets; how many."""
    opened = 0
    while not streams.is_full(client):
        stack.enter_context(streams.counting(client))
        opened += 1
    return opened


@pytest.fixture
def stack():
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield stack


class TestOneClient:
    def test_holds_its_bound(self, stack):
        streams = OpenStreams(5, Budget(1500))
        assert fill(streams, "one", stack) == 5
        assert not streams.is_full("other")

    def test_gives_back_what_it_held(self, stack):
        budget = Budget(1500)
        streams = OpenStreams(5, budget)
        fill(streams, "one", stack)
        stack.close()
        assert (budget.open, streams.is_full("one"), dict(streams._open)) == (0, False, {})


class TestManyClients:
    @pytest.mark.parametrize("most", [10, 50, 1500])
    def test_leave_room_for_those_that_come_late(self, stack, most):
        streams = OpenStreams(most, Budget(1500))
        for number in range(40):
            assert fill(streams, number, stack) >= 1
        assert fill(streams, "late", stack) >= 1

    def test_never_take_more_than_there_is(self, stack):
        budget = Budget(100)
        streams = OpenStreams(50, budget)
        for number in range(1000):
            fill(streams, number, stack)
        assert budget.open == 100

    def test_of_one_organisation_leave_room_for_others(self, stack):
        budget = Budget(1500)
        kinds = [OpenStreams(50, budget), OpenStreams(50, budget)]

        def fill_all(house):
            for streams in kinds:
                for number in range(house * 10_000, house * 10_000 + 1000):
                    while not streams.is_full(number, house):
                        stack.enter_context(streams.counting(number, house))

        fill_all(1)
        assert budget.open == 750
        fill_all(2)
        assert not kinds[0].is_full("of a third", 3)
        stack.close()
        assert (budget.open, budget.of.total()) == (0, 0)

    def test_share_one_budget_with_every_kind_of_stream(self, stack, settings):
        assert all(kind.budget is PROCESS for kind in KINDS)
        assert PROCESS.most < settings.WEB_CONNECTIONS

    def test_of_one_kind_leave_less_for_another(self, stack):
        budget = Budget(20)
        one, other = OpenStreams(50, budget), OpenStreams(50, budget)
        for number in range(20):
            fill(one, number, stack)
        assert other.is_full("late")
