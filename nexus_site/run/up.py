"""`make up`: the whole company on one machine, in the foreground."""

import errno
import fcntl
import gc
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO

from nexus_site.celery import app
from nexus_site.run import broker, roles, web, worker
from nexus_site.run.compiling import elsewhere
from nexus_site.run.postgres import Cluster
from nexus_site.run.processes import holders, kill_group, lives, private
from nexus_site.run.pulse import Pulse
from nexus_site.run.shim import give_free_memory_back, share_one_arena
from nexus_site.run.supervisor import POLL, Child

SHARED = (
    "nexus_site.asgi",
    "anyio._backends._asyncio",
    "billiard.pool",
    "uvicorn.protocols.http.httptools_impl",
    "nexus_site.celery",
    "celery.app.amqp",
    "celery.app.control",
    "celery.app.events",
    "celery.app.log",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.backends.base",
    "celery.concurrency.thread",
    "celery.contrib.django.task",
    "celery.events",
    "celery.worker.autoscale",
    "celery.worker.components",
    "celery.worker.consumer",
    "celery.worker.consumer.delayed_delivery",
    "celery.worker.strategy",
    "django.core.management.commands.migrate",
    "django.views.csrf",
    "kombu.transport.redis",
    "nexus_site.run.beat",
    "psycopg_pool",
    "toolbox.celery_task",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvloop",
)
"""The modules that web processes, worker and beat import."""
GRACE = 10.0  # seconds that what a killed `up` left has to end: as long as a Child


class CannotStart(Exception):
    """Something is in the way; the message says what and how to clear it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPlan:
    """What to run, and where."""

    host: str
    port: int
    workers: int
    var: Path
    cluster: Cluster | None = None  # the embedded database, if it is used
    embedded_broker: bool = False

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
def only_one(var: Path, *, say: Callable[[str], None]) -> Iterator[None]:
    """Refuse a second `up` of this checkout while one runs; end what a killed one left.

    All that it starts shares the lock, so that nothing of it works at the same time as the next.
    """
    var.mkdir(parents=True, exist_ok=True)
    path = var.resolve() / "up.lock"
    with open(path, "a+", encoding="ascii", opener=private) as file:
        os.set_inheritable(file.fileno(), True)  # the broker becomes another program
        _take(file, path, say)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _take(file: IO[str], path: Path, say: Callable[[str], None]) -> None:
    """Take the lock: at once, or from what a killed `up` left, which has its grace to end.

    Who holds it only at the second look is another start, and is not killed.
    """
    if _is_taken(file, within=0.0):
        return
    left = holders(path)
    if _is_taken(file, within=GRACE):
        return
    left &= holders(path)
    if left:
        say(f"Killing processes that an earlier start left: {sorted(left)}.")
    for pid in left:
        with suppress(ProcessLookupError):
            kill_group(pid)
    if not _is_taken(file, within=GRACE):
        raise CannotStart(
            f"processes that an earlier start left hold {path}; "
            f"`lsof {path}` lists them: end them, then start again"
        )


def _is_taken(file: IO[str], *, within: float) -> bool:
    """Take the lock in this time; whether we have it. Raises CannotStart while its `up` lives."""
    ends = time.monotonic() + within
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        file.seek(0)
        first = file.read().strip()
        if first.isdigit() and lives(int(first)):
            raise CannotStart(f"it runs already (process {first})")
        if time.monotonic() >= ends:
            return False
        time.sleep(POLL)


def reserve(plan: StartPlan) -> socket.socket:
    """Take the port before anything is started, or say early that it is taken."""
    try:
        return web.reserve(host=plan.host, port=plan.port)
    except OverflowError:
        raise CannotStart(f"PORT={plan.port} is no port: the last one is 65535") from None
    except OSError as error:
        way = {
            errno.EADDRINUSE: f"choose another port: PORT={plan.port + 1} make up",
            errno.EACCES: "only the superuser opens it: PORT=8000 make up",
        }.get(error.errno or 0, "HOST must be an address of this machine, such as 127.0.0.1")
        raise CannotStart(
            f"cannot listen on {plan.host}:{plan.port} ({error.strerror}); {way}"
        ) from error


def wanted_by(pid_file: Path) -> Callable[[], bool]:
    """Whether `make` still wants it: interrupted, it removes the file; killed, it has no child."""
    parent = os.getppid()
    return lambda: pid_file.exists() and os.getppid() == parent


def prepare(plan: StartPlan) -> None:
    """Clear what an earlier run left: counts of processes that ended.

    The folder stays: it may be a disk in memory, or a link to one. Raises CannotStart without the
    broker's program.
    """
    if plan.embedded_broker:
        try:
            broker.binary()
        except FileNotFoundError as error:
            raise CannotStart(str(error)) from error
    plan.metrics.mkdir(mode=0o700, parents=True, exist_ok=True)
    plan.metrics.chmod(0o700)
    for counts in plan.metrics.glob("*.db"):
        counts.unlink(missing_ok=True)


def children(
    plan: StartPlan, *, reserved: socket.socket, on_ready: Callable[[], None]
) -> list[Child]:
    """The embedded broker, the web processes (the first calls `on_ready`), the worker, the beat,
    and the keeper of the embedded database.
    """
    serve_broker = partial(broker.serve, plan.var)
    work, beat = roles.serve(worker.work), roles.serve(worker.beat)
    if plan.embedded_broker:
        work, beat = broker.after_start(work, plan.var), broker.after_start(beat, plan.var)
    return [
        *([Child(name="broker", run=serve_broker, is_needed=True)] if plan.embedded_broker else []),
        web_process("web 1", reserved, on_ready),
        *[web_process(f"web {number}", reserved) for number in range(2, plan.workers + 1)],
        Child(name="worker", run=work),
        Child(name="beat", run=beat),
        *([Child(name="postgres", run=plan.cluster.keep)] if plan.cluster else []),
    ]


def web_process(
    name: str, reserved: socket.socket, on_ready: Callable[[], None] = lambda: None
) -> Child:
    """One web process, which is started again when it does not respond."""
    pulse = Pulse()
    return Child(
        name=name, run=roles.serve(partial(web.serve, reserved, on_ready, pulse)), pulse=pulse
    )


def import_the_site() -> None:
    """Import and build all that the children need, once: they share its memory."""
    for name in SHARED:
        import_module(name)
    elsewhere.end()
    app.finalize()
    app.loader.init_worker()  # worker and beat would each do it, and find the backend's class
    app.backend  # noqa: B018 - is made here
    app.connection().transport  # noqa: B018 - is made here; it connects in each child
    share_one_arena()
    gc.collect()
    give_free_memory_back()
    gc.freeze()  # what is never collected is never copied
