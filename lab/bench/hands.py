"""What isolation costs: a program behind walls and bare, a file read safely and plainly."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from documents.tree import SafeTree
from workspace.sandbox import driver
from workspace.sandbox.programs import Program
from workspace.users import AgentUser

PROGRAM = ("/usr/bin/true",)
PROGRAMS, READS = 50, 20_000
USER = AgentUser(uid=65534, gid=65534)


def measured() -> Iterator[str]:
    """One line for each figure."""
    yield f"{'':38}{'times':>8}{'p50 ms':>12}{'p99 ms':>12}"
    yield line("program, bare", PROGRAMS, lambda: subprocess.run(PROGRAM, check=True))
    for walls in driver.find():
        problem = driver.problem_of(walls)
        if problem:
            yield f"program, by {walls.way}: {problem}"
            continue
        program = Program(argv=PROGRAM, user=USER)
        yield line(f"program, by {walls.way}", PROGRAMS, partial(driver.run_behind, walls, program))
    with tempfile.TemporaryDirectory() as folder:
        deep = Path(folder, "src/feature")
        deep.mkdir(parents=True)
        (deep / "a.py").write_bytes(b"x" * 4096)
        tree = SafeTree(Path(folder))
        yield line("file of 4 KB, open() and read()", READS, (deep / "a.py").read_bytes)
        yield line("file of 4 KB, as read_file does", READS, lambda: tree.read("src/feature/a.py"))


def line(name: str, times: int, act: Callable[[], object]) -> str:
    """How long an act takes, half of the times at most and nearly always at most."""
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        act()
        took.append((time.perf_counter() - begun) * 1000)
    took.sort()
    return f"{name:38}{times:>8}{took[times // 2]:>12.3f}{took[times * 99 // 100]:>12.3f}"
