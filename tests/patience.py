"""Waiting for other threads and processes: no test's outcome depends on how fast the machine is."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

PATIENCE = 60  # seconds; only what never happens takes as long


def wait_until(holds: Callable[[], object], what: str = "it never happened") -> None:
    """Wait until it holds."""
    ends = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < ends, what
        time.sleep(0.02)


@pytest.fixture
def over() -> Iterator[threading.Event]:
    """Set when the test ends: what a server that never answers waits for."""
    ends = threading.Event()
    yield ends
    ends.set()


def drip(send: Callable[[bytes], object], over: threading.Event, drop: bytes = b"H") -> bool:
    """Send a drop again and again until the test is over; whether the client hung up before."""
    ends = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < ends and not over.wait(0.05):
            send(drop)
    except OSError:
        return True
    return False
