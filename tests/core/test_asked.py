"""A question to what hangs keeps neither who asks nor more than one thread."""

from queue import Queue
from threading import Event, Thread

import pytest

from core import asked
from core.asked import Asked
from tests.patience import PATIENCE, wait_until


@pytest.fixture
def hanging():
    """A question that hangs until the test ends, how often it was asked, and its end."""
    freed, times = Event(), Queue()

    def find():
        times.put(1)
        freed.wait()
        return "found"

    yield Asked(find, seconds=0.01), times, freed
    freed.set()


def is_answered(ask):
    try:
        return ask() == "found"
    except TimeoutError:
        return False


def test_is_answered():
    assert Asked(lambda: "found", seconds=60)() == "found"


def test_is_asked_anew_each_time():
    answers = iter("ab")
    ask = Asked(lambda: next(answers), seconds=60)
    assert [ask(), ask()] == ["a", "b"]


def test_raises_what_it_meets():
    def broken():
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        Asked(broken, seconds=60)()


def test_keeps_no_one_waiting_and_is_asked_once(hanging):
    ask, times, _ = hanging
    for _ in range(3):
        with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
            ask()
    times.get(timeout=PATIENCE)
    assert times.empty()


def test_is_answered_again_when_it_goes_on(hanging):
    ask, _, freed = hanging
    with pytest.raises(TimeoutError):
        ask()
    freed.set()
    wait_until(lambda: is_answered(ask))


def test_says_that_there_is_no_thread_for_it(monkeypatch):
    class NoThread(Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    ask = Asked(lambda: "found", seconds=60)
    with monkeypatch.context() as patched:
        patched.setattr(asked, "Thread", NoThread)
        with pytest.raises(OSError, match="no more threads"):
            ask()
    assert ask() == "found"
