"""The real web processes, for benchmarks: on a free port, without a limit of calls."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nexus_site.run import web

APPLICATION = "lab.bench.site:application"
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Served:
    """Where the web processes answer, and which they are."""

    port: int
    pids: tuple[int, ...]

    def cpu_seconds(self) -> float:
        """Processor time that they have used so far."""
        times = [
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids
        ]
        return sum(int(fields[11]) + int(fields[12]) for fields in times) / TICKS


@contextmanager
def serving(url: str, *, workers: int) -> Iterator[Served]:
    """Run web processes on a database. Raises RuntimeError when they do not answer."""
    reserved = web.reserve(host="127.0.0.1", port=0)
    port = reserved.getsockname()[1]
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "ROOT_URLCONF": "lab.bench.urls",
        # As in a company: calls faster than the rate, from a bucket that never gets empty here.
        "NEXUS_RATE_PER_MINUTE": "600",
        "NEXUS_RATE_BURST": str(10**9),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "nexus_site.run.web", str(reserved.fileno()), APPLICATION],
            env=environment,
            pass_fds=[reserved.fileno()],
        )
        for _ in range(workers)
    ]
    try:
        _wait_for(port, processes)
        yield Served(port, tuple(process.pid for process in processes))
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(10)
        reserved.close()


def _wait_for(port: int, processes: list[subprocess.Popen[bytes]]) -> None:
    for _ in itertools.repeat(None, 1800):
        if any(process.poll() is not None for process in processes):
            raise RuntimeError("a web process did not start")
        try:
            with socket.create_connection(("127.0.0.1", port), 0.2) as probe:
                probe.sendall(
                    b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
                )
                if probe.recv(12)[9:12] == b"200":
                    time.sleep(1.5)
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError("the web processes did not answer in three minutes")
