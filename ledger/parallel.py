"""Verifying a large ledger in several processes that all see the same moment."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.db import connection

from core.database import fetch_row
from ledger.rules import Keys
from ledger.spans import HIGHEST, LOWEST, Part, Span

MANY = 900_000  # events from which on further processes save more than their start takes
MOST = 16  # parts, each with a database connection
SEAL_COST = 50  # a seal is as much work as so many events
START_COST = 50_000  # and the start of a process as so many
ROOT = Path(__file__).resolve().parents[1]
NOT_OF_LIBPQ = {"autocommit", "prepare_threshold", "client_encoding"}

PARTS = """
WITH work AS (
    SELECT number, sum(greatest(count, 0) + %(seal)s) OVER (ORDER BY number) AS upto
    FROM ledger_seal
)
SELECT max(number), max(upto) FROM work
GROUP BY greatest(1, ceil((upto - %(start)s) * %(parts)s
                          / (SELECT greatest(max(upto) - %(start)s, 1) FROM work)))
ORDER BY 1
"""

logger = logging.getLogger(__name__)

Found = tuple[Part, Span | None]


def plan_parts() -> list[Part]:
    """Split the ledger into parts of equal work, one for each processor; a small one is one.

    The first part is larger by the start of a process, which it does without.
    """
    values = {"parts": min(_processors(), MOST), "seal": SEAL_COST, "start": START_COST}
    with connection.cursor() as cursor:
        cursor.execute(PARTS, values)
        ends = cursor.fetchall()
    if not ends or ends[-1][1] < MANY:
        return [Part()]
    firsts = [LOWEST, *(number + 1 for number, _ in ends[:-1])]
    lasts = [*(number for number, _ in ends[:-1]), HIGHEST]
    return [Part(first=first, last=last) for first, last in zip(firsts, lasts, strict=True)]


def _processors() -> int:
    """Those that this process may use, where the system says so."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def verify_apart(parts: Sequence[Part], trusted: Keys) -> Iterator[Iterator[Found]]:
    """Each part with what a process of its own found, in order; None for one that failed.

    The processes work as long as the context is open. Only in a transaction without savepoints:
    they see what it sees.
    """
    tasks = _tasks(parts, trusted)
    running = [_start() for _ in parts]
    with ThreadPoolExecutor(MOST) as pool:
        try:
            answers = list(map(pool.submit, [each.communicate for each in running], tasks))
            yield (
                (part, _read(answer.result()[0], process.returncode))
                for part, process, answer in zip(parts, running, answers, strict=True)
            )
        finally:
            for process in running:
                process.kill()


def _tasks(parts: Sequence[Part], trusted: Keys) -> list[str]:
    if not parts:
        return []
    (snapshot,) = fetch_row("SELECT pg_export_snapshot()")
    common = {
        "connection": _address(),
        "snapshot": snapshot,
        "keys": {name: public.hex() for name, public in trusted.items()},
    }
    return [json.dumps(common | asdict(part)) for part in parts]


def _start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ledger.verify_part"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _read(said: str, status: int) -> Span | None:
    if status != 0:
        logger.error("a process that verifies a part of the ledger failed; this one goes on")
        return None
    return Span(**json.loads(said))


def _address() -> dict[str, Any]:
    """Where the database of this connection is, for a connection of another process."""
    params = connection.get_connection_params()
    return {
        name: value
        for name, value in params.items()
        if isinstance(value, str | int) and name not in NOT_OF_LIBPQ
    }
