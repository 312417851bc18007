"""How many calls an agent may make: a token bucket in the database, counted ahead where it is full.

While a bucket holds many tokens a process takes some for its next calls at once, so that most calls
write nothing to count themselves. The last ones are taken one by one. What was taken ahead is
forgotten as the bucket fills again.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from core.decision import Code, Denied, refuse

CALLS_AHEAD = 16
"""Calls of a key that a process counts at once, …"""
LEAST_LEFT = 64
"""… if so many tokens are left behind them. A process that ends has counted too many."""

_FILLED = """LEAST(%(burst)s::float8, b.tokens + %(per_second)s::float8 * GREATEST(0,
            extract(epoch FROM statement_timestamp() - b.at)))"""
_TAKEN = """CASE WHEN {filled} >= %(ahead)s + %(least)s THEN %(ahead)s
            WHEN {filled} >= 1 THEN 1 ELSE 0 END"""
_TAKEN_NOW = _TAKEN.format(filled=_FILLED)
_TAKEN_FIRST = _TAKEN.format(filled="%(burst)s::float8")
COUNT = f"""
    INSERT INTO toolbox_ratebucket AS b (agent_id, tokens, at, taken)
    SELECT agent_id, %(burst)s::float8 - {_TAKEN_FIRST}, statement_timestamp(), {_TAKEN_FIRST}
    FROM known
    ON CONFLICT (agent_id) DO UPDATE SET
        tokens = {_FILLED} - {_TAKEN_NOW},
        taken = {_TAKEN_NOW},
        at = statement_timestamp()
    RETURNING tokens, taken
"""
"""Takes from the bucket of the agent of `known`: the tokens left; the calls taken, 0 if refused."""
COUNTED = "SELECT 0 AS tokens, 1 AS taken"
"""Answers as COUNT does for a call that was counted ahead."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What the settings allow each agent."""

    per_minute: int
    burst: int

    @property
    def per_second(self) -> float:
        """The tokens that come back."""
        return self.per_minute / 60

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of COUNT."""
        return {
            "burst": self.burst,
            "per_second": self.per_second,
            "ahead": CALLS_AHEAD,
            "least": LEAST_LEFT,
        }

    def seconds_to_fill(self, tokens: float) -> float:
        """How long until a bucket with so many tokens is full, if no other call takes any."""
        return (self.burst - tokens) / self.per_second

    def exceeded(self, tokens: float) -> Denied:
        """The refusal of a call that found so many tokens."""
        wait = max(1, math.ceil((1 - tokens) * 60 / self.per_minute)) if self.per_minute > 0 else 60
        return refuse(
            Code.RATE_LIMITED,
            f"more than {self.per_minute} calls a minute",
            f"wait {wait} s, then call again",
            rule="rate limit",
            retry_after=wait,
        )


def limit() -> Limit:
    """The limit of the settings."""
    return Limit(settings.NEXUS_RATE_PER_MINUTE, settings.NEXUS_RATE_BURST)


class CallsAhead:
    """The calls that this process has counted for the next ones with each key (Spec: wire 21).

    A call is forgotten as soon as its token is back in the bucket: otherwise what several keys and
    processes hold would add to a full bucket.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[bytes, tuple[int, float]] = {}

    def take(self, digest: bytes, per_second: float) -> bool:
        """Use one of a key's calls; False where none is left."""
        with self._lock:
            left, full_at = self._left.pop(digest, (0, 0.0))
            left = min(left, math.floor((full_at - time.monotonic()) * per_second))
            if left > 1:
                self._left[digest] = (left - 1, full_at)
        return left > 0

    def put(self, digest: bytes, more: int, *, full_at: float) -> None:
        """Add calls that were counted, and when the bucket will be full (`time.monotonic`)."""
        with self._lock:
            left, earlier = self._left.get(digest, (0, 0.0))
            self._left[digest] = (left + more, max(earlier, full_at))

    def forget(self) -> None:
        """Forget the calls counted ahead: the database counts the next call of each key."""
        with self._lock:
            self._left.clear()


AHEAD = CallsAhead()
