"""Verifying a large ledger in several processes that all see the same moment."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.db import connection

from core.database import fetch_row
from ledger.rules import Keys
from ledger.spans import HIGHEST, LOWEST, Part, Span

MANY = 900_000  # events from which on further processes save more than their start takes
MOST = 16  # processes, each with a database connection
SEAL_COST = 50  # a seal is as much work as so many events
ROOT = Path(__file__).resolve().parents[1]
NOT_OF_LIBPQ = {"autocommit", "prepare_threshold", "client_encoding"}

PARTS = """
WITH work AS (
    SELECT number, sum(greatest(count, 0) + %(seal)s) OVER (ORDER BY number) AS upto
    FROM ledger_seal
)
SELECT max(number), max(upto) FROM work
GROUP BY ceil(upto * %(parts)s / (SELECT max(upto) FROM work)) ORDER BY 1
"""

logger = logging.getLogger(__name__)


def plan_parts() -> list[Part]:
    """Split the ledger into parts of equal work, one for each processor; a small one is one."""
    processes = min(_processors(), MOST)
    with connection.cursor() as cursor:
        cursor.execute(PARTS, {"parts": processes, "seal": SEAL_COST})
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


def verify_parts(parts: Sequence[Part], trusted: Keys) -> Iterator[tuple[Part, Span | None]]:
    """Each part with what a process of its own found, in order; None for one that failed.

    Only in a transaction without savepoints: the processes see what it sees.
    """
    (snapshot,) = fetch_row("SELECT pg_export_snapshot()")
    common = {
        "connection": _address(),
        "snapshot": snapshot,
        "keys": {name: public.hex() for name, public in trusted.items()},
    }
    tasks = [json.dumps(common | asdict(part)) for part in parts]
    running = [_start() for _ in parts]
    with ThreadPoolExecutor(len(parts)) as pool:
        try:
            answers = list(map(pool.submit, [each.communicate for each in running], tasks))
            for part, process, answer in zip(parts, running, answers, strict=True):
                said, _ = answer.result()
                yield part, _read(said, process.returncode)
        finally:
            for process in running:
                process.kill()


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
