"""`make up`: the whole company on one machine, in the foreground."""

import fcntl
import gc
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nexus_site.run import web, worker
from nexus_site.run.postgres import Cluster
from nexus_site.run.supervisor import Child


class CannotStart(Exception):
    """Something is in the way; the message says what and how to clear it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run, and where."""

    host: str
    port: int
    workers: int
    var: Path
    broker: Path | None  # the embedded broker's folder, if it is used
    cluster: Cluster | None = None  # the embedded database, if it is used

    @property
    def metrics(self) -> Path:
        """Where the processes of this machine leave their counts for /metrics."""
        return self.var / "metrics"

    @property
    def address(self) -> str:
        """Where to reach it from this machine."""
        return "127.0.0.1" if self.host in {"0.0.0.0", "::"} else self.host  # noqa: S104 - compared

    @property
    def url(self) -> str:
        """Where people and agents find it."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.port}"


@contextmanager
def only_one(var: Path) -> Iterator[None]:
    """Refuse a second `up` of this checkout while one runs."""
    var.mkdir(parents=True, exist_ok=True)
    with (var / "up.lock").open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise CannotStart(f"it runs already (process {file.read().strip()})") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def listen(plan: Plan) -> socket.socket:
    """Take the port before anything is started, or say early that it is taken."""
    try:
        return web.listen(host=plan.host, port=plan.port)
    except OSError as error:
        raise CannotStart(
            f"cannot listen on {plan.host}:{plan.port} ({error.strerror}); "
            f"choose another port: PORT={plan.port + 1} make up"
        ) from error


def wanted_by(pid_file: Path) -> Callable[[], bool]:
    """Whether `make` still wants it: interrupted, it removes the file; killed, it has no child."""
    parent = os.getppid()
    return lambda: pid_file.exists() and os.getppid() == parent


def prepare(plan: Plan) -> None:
    """Clear what an earlier run left: wake-ups nobody waits for, counts of processes long gone."""
    for folder in filter(None, [plan.metrics, plan.broker]):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)


def children(plan: Plan, *, listening: socket.socket, on_ready: Callable[[], None]) -> list[Child]:
    """The web processes, of which the first says that it answers, the worker, the beat, and who
    keeps the embedded database.
    """
    first = partial(web.serve, listening, on_ready)
    others = partial(web.serve, listening)
    return [
        Child(name="web 1", run=first),
        *[Child(name=f"web {number}", run=others) for number in range(2, plan.workers + 1)],
        Child(name="worker", run=worker.work),
        Child(name="beat", run=worker.beat),
        *([Child(name="postgres", run=plan.cluster.keep)] if plan.cluster else []),
    ]


def import_the_site() -> None:
    """Import all that the children need, once for all of them."""
    import nexus_site.asgi  # noqa: F401 - for its effect

    gc.collect()
    gc.freeze()  # what is never collected is never copied
