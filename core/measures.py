"""How long answers take, and what is turned away unread, counted over all processes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from prometheus_client import Counter, Histogram

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

# Few buckets, few labels: a call pays for each of them.
REQUESTS = Histogram(
    "nexus_http_request_seconds",
    "Time to answer, by method, route and status",
    ["method", "route", "status"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30),
)

TURNED_AWAY = Counter(
    "nexus_http_turned_away",
    "Requests and connections refused before anything of them was looked at, by status",
    ["status"],
)


def count_turned_away(status: int) -> None:
    """Count what is refused for its form, its host or the crowd it comes in."""
    TURNED_AWAY.labels(status).inc()


def measure(method: str, route: str, status: int, seconds: float) -> None:
    """Count an answer; an unknown method counts as `other`."""
    _of(method if method in METHODS else "other", route, status).observe(seconds)


@lru_cache(maxsize=512)
def _of(method: str, route: str, status: int) -> Any:
    """The measure of requests of this kind; to look for it takes longer than to add to it."""
    return REQUESTS.labels(method, route, status)
