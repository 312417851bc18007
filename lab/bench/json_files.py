"""What a list of tasks in files costs: a claim under a lock, two JSON files, each with fsync.

A file that takes another's name is sure to keep it after a power failure only once its folder is
made durable too. Many leave that out; a claim in PostgreSQL, once answered, is as durable as this.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings

from lab.bench.load import Rate


def claim_tasks(clients: int, seconds: float, *, lasting: bool = False) -> Rate:
    """Claim as fast as `clients` threads can, in a folder on the disk of this installation.

    `lasting` makes the folder durable too.
    """
    settings.NEXUS_VAR.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.NEXUS_VAR) as name:
        folder, begun = Path(name), time.perf_counter()
        until = begun + seconds
        with ThreadPoolExecutor(clients) as threads:
            claim = partial(_claim, folder, lasting=lasting)
            runs = list(threads.map(lambda who: _until(until, partial(claim, who)), range(clients)))
        times = [each for run in runs for each in run]
        return Rate.of(times, time.perf_counter() - begun, 0)


def _until(end: float, claim: Callable[[int], None]) -> list[float]:
    times: list[float] = []
    while (begun := time.perf_counter()) < end:
        claim(len(times))
        times.append(time.perf_counter() - begun)
    return times


def _claim(folder: Path, who: int, number: int, *, lasting: bool) -> None:
    """Read, check and write one task, and write its event, while no other client does."""
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        task = folder / f"{who}-{number}.json"
        held: dict[str, Any] = {"version": 1, "owner": ""}
        if task.exists():
            held = json.loads(task.read_text("utf-8"))
        if not held["owner"]:
            claimed = {"version": held["version"] + 1, "owner": f"agent-{who}"}
            event = {"action": "task.updated", "by": who, "task": number}
            _replace(task, claimed, lasting=lasting)
            _replace(folder / "event.json", event, lasting=lasting)


def _replace(path: Path, value: dict[str, object], *, lasting: bool) -> None:
    """Write a file so that it is whole or as before, whatever happens."""
    new = path.with_suffix(".new")
    with new.open("w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
    if lasting:
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
