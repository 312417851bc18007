"""Counts for /metrics where the disk is full."""

import subprocess
import sys

import pytest

from tests.disks import disk, full

COUNT = """
import sys
from pathlib import Path
from nexus_site.run.counts import count_in
count_in(Path(sys.argv[1]))
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
counter = Counter("one", "…", ["label"])
for label in range(int(sys.argv[2])):
    counter.labels(f"{label}").inc()
registry = CollectorRegistry()
MultiProcessCollector(registry)
print(len(generate_latest(registry).splitlines()), counter.labels("0")._value.get())
"""


@pytest.fixture
def count(tmp_path):
    """Count with so many labels in a process of its own; how many lines are shown, and a count."""

    def told(labels):
        words = [sys.executable, "-c", COUNT, str(tmp_path), str(labels)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.returncode, done.stderr)
        return tuple(float(word) for word in done.stdout.split())

    with disk(tmp_path, 1):
        yield told


class TestCounts:
    def test_are_shown(self, count):
        assert count(3) == (5, 1)

    def test_are_kept_by_a_process_that_starts_while_the_disk_is_full(self, count, tmp_path):
        with full(tmp_path, but=0):
            assert count(3) == (0, 1)

    def test_are_kept_by_a_process_for_which_the_disk_gets_full(self, count):
        shown, kept = count(20_000)
        assert shown > 1000
        assert kept == 1
