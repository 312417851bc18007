"""The one ASGI application: streams and waiting reads are coroutines, everything else is Django."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from time import perf_counter
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

import django
import structlog

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nexus_site.settings")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402 - Django is set up first
from django.db import DatabaseError, connection  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.urls import get_resolver  # noqa: E402

from core.measures import count_turned_away, measure  # noqa: E402
from nexus_site.live import stream  # noqa: E402
from nexus_site.run import safety  # noqa: E402
from nexus_site.serving import errors  # noqa: E402
from nexus_site.serving.bridge import Bridge, Message, Receive, Scope, Send  # noqa: E402
from nexus_site.serving.handlers import ApiHandler, PeopleHandler  # noqa: E402
from nexus_site.serving.owners import agent_of, meet_agent, person_of  # noqa: E402
from nexus_site.serving.proxies import Proxies  # noqa: E402
from nexus_site.serving.waitable import WaitableCall, is_waitable  # noqa: E402
from toolbox.faces import event_stream, mcp  # noqa: E402
from toolbox.faces.bodies import Disconnected  # noqa: E402
from toolbox.faces.hosts import status_of_foreign  # noqa: E402
from toolbox.faces.pace import TOO_MANY  # noqa: E402
from toolbox.faces.pools import pool_of, start_threads  # noqa: E402
from toolbox.faces.responses import error_response  # noqa: E402
from toolbox.faces.threads import ANY_TIME, THREADS, TURN, Turn, in_turn  # noqa: E402
from toolbox.faces.turns import Turns  # noqa: E402
from toolbox.quotas import stored  # noqa: E402
from workspace.runs.stopping import stop_own_runs  # noqa: E402

# Faces that wait. Each module offers `application(scope, receive, send)`, and `lifespan()`, an
# asynchronous context manager, if something of it must live as long as the process.
FACES: Mapping[tuple[str, str], ModuleType] = {
    ("GET", "/api/v1/events"): event_stream,
    ("GET", "/admin/live"): stream,
    ("*", "/mcp"): mcp,
    ("*", "/mcp/"): mcp,
}
HEALTH = {"/healthz": "alive", "/readyz": "ready"}
"""Addresses that say whether we work, and what their threads are called."""
DESCRIPTION = ("/api/schema/", "/api/docs/")
"""What strangers read of the API; it is made at the first question to each process."""
SESSION_COOKIE = settings.SESSION_COOKIE_NAME.encode()
log = structlog.get_logger(__name__)
ANSWERS = range(100, 600)  # all statuses: every page that a stranger asks for is counted
READING = ("GET", "HEAD")  # methods of requests that change nothing
STRANGERS = 2  # threads; as many passwords are checked at once
STRANGERS_WAITING = 200  # requests that wait for them
PEOPLE_BODY = 8  # times what an agent may send: forms with a whole pack in them


def is_a_browser(scope: Scope) -> bool:
    """True if a person's browser asks for a page of the API: these requests need Django's session.

    Whether that person may see it is decided behind the middleware.
    """
    if scope["method"] != "GET":
        return False
    headers = dict(scope["headers"])
    return (
        b"authorization" not in headers
        and SESSION_COOKIE in headers.get(b"cookie", b"")
        and b"text/html" in headers.get(b"accept", b"")
    )


def refusal_of(scope: Scope) -> HttpResponse | None:
    """The refusal of what no view should see.

    An address with NUL; a program, or a page's stream, that asks another host, or over HTTP where
    no key or session may travel.
    """
    if "\x00" in scope["path"]:
        return errors.malformed()  # no address of ours, and nothing that a database can look up
    if not (errors.is_for_machine(scope["path"]) or ("GET", scope["path"]) in FACES):
        return None  # Django's middleware does the same for people's pages
    if settings.SECURE_SSL_REDIRECT and scope["scheme"] != "https":
        return error_response(errors.NOT_ENCRYPTED)
    status = status_of_foreign(scope)
    return (
        HttpResponse(errors.FOREIGN, status=status, content_type="text/plain") if status else None
    )


@dataclass
class Site:
    """Sends each request to the handler of its path."""

    threads: ThreadPoolExecutor
    faces: Mapping[tuple[str, str], ModuleType] = field(default_factory=lambda: FACES)
    people_threads: ThreadPoolExecutor = field(
        default_factory=lambda: pool_of(settings.WEB_PEOPLE_THREADS, "people")
    )
    """Pages and sign-ins have threads of their own: a flood of passwords delays no agent."""
    strangers_threads: ThreadPoolExecutor = field(
        default_factory=lambda: pool_of(STRANGERS, "strangers")
    )
    """And what comes from a browser in which no person signed in delays no page of those."""
    turns: WeakValueDictionary[tuple[str, Hashable], Turns] = field(
        default_factory=WeakValueDictionary
    )
    """Of each agent, organisation and person whose requests are under way."""
    health_threads: dict[str, ThreadPoolExecutor] = field(
        default_factory=lambda: {path: pool_of(1, name) for path, name in HEALTH.items()}
    )
    """And who asks for health is answered while every other thread waits for the database."""

    def __post_init__(self) -> None:
        """Build both ways into Django, and read the addresses before the first request does."""
        self.agents = Bridge(
            handler=ApiHandler(), threads=self.threads, limit=settings.NEXUS_MAX_BODY
        )
        self.people = Bridge(
            handler=PeopleHandler(),
            threads=self.people_threads,
            limit=settings.NEXUS_MAX_BODY * PEOPLE_BODY,
        )
        self.strangers = replace(self.people, threads=self.strangers_threads)
        self.description = replace(self.agents, threads=self.strangers_threads)
        self.health = {
            path: replace(self.agents, threads=pool) for path, pool in self.health_threads.items()
        }
        self.proxies = Proxies(settings.TRUSTED_PROXIES)
        get_resolver().url_patterns  # noqa: B018 - imports every view

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI conversation."""
        if scope["type"] == "http":
            scope = self.proxies.resolve(scope)
            path = scope["path"]
            try:
                with suppress(Disconnected):
                    await self.answer(scope, receive, send)
            except asyncio.CancelledError:  # this process ends, and a thread may work on
                await self.break_off(path, send)
        elif scope["type"] == "lifespan":
            await self.live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, in the turn and at the pace of who asks."""
        path = scope["path"]
        TURN.set(ANY_TIME)  # a pipelined request begins in the context of the one before it
        if (refusal := refusal_of(scope)) is not None:
            await self.turn_away(refusal, send)
            return
        face = self.faces.get((scope["method"], path)) or self.faces.get(("*", path))
        if face is None and (bridge := self.bridge_apart(scope)):
            await self.ask_apart(bridge, scope, receive, send)
        elif errors.is_for_machine(path) and (face or not is_a_browser(scope)):
            await self.answer_agent(face, scope, receive, send)
        elif face is not None:
            await self.ask_face(face, scope, receive, send)
        elif person := person_of(scope["headers"]):
            TURN.set(self.turn_of_person(person, acts=scope["method"] not in READING))
            await self.people(scope, receive, send)
        else:
            await self.ask_apart(self.strangers, scope, receive, send)

    async def answer_agent(
        self, face: ModuleType | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer a request with a key, good or not, when it may be looked at."""
        agent = agent_of(scope["headers"])
        turn = self.turn_of_agent(agent)
        TURN.set(turn)
        pace = turn[0].pace
        if not await pace.admit():
            await self.turn_away(error_response(TOO_MANY), send)
            return
        send = pace.noting(send)
        if agent is None:
            await in_turn(self.agents.threads, meet_agent, scope["headers"])
            TURN.set(self.turn_of_agent(agent_of(scope["headers"])))
        if face is not None:
            await self.ask_face(face, scope, receive, send)
        elif is_waitable(scope["method"], scope["path"]):
            await WaitableCall(self.agents)(scope, receive, send)
        else:
            await self.agents(scope, receive, send)

    async def turn_away(self, refusal: HttpResponse, send: Send) -> None:
        """Refuse a request that nothing of ours has looked at."""
        count_turned_away(refusal.status_code)
        await self.agents.send(refusal, send)

    async def break_off(self, path: str, send: Send) -> None:
        """Answer a request whose end this process will not see."""
        with suppress(RuntimeError):  # an answer that has begun has no other end
            await self.agents.send(errors.stopping(path), send)

    def bridge_apart(self, scope: Scope) -> Bridge | None:
        """The way to what has threads of its own: health, and what strangers read of the API.

        Its pages pass the whole middleware: an agent's key is typed there.
        """
        if scope["path"].startswith(DESCRIPTION) and not is_a_browser(scope):
            return self.description if errors.is_for_machine(scope["path"]) else self.strangers
        return self.health.get(scope["path"])

    async def ask_apart(self, bridge: Bridge, scope: Scope, receive: Receive, send: Send) -> None:
        """Let threads of their own answer; of strangers only few wait, and these at their pace.

        Else those of one flood hold what is there for all: processors, connections, memory.
        """
        if bridge.threads is self.strangers_threads:
            turn = self.turns_of("stranger", "", STRANGERS)
            if len(turn.waiting) >= STRANGERS_WAITING or not await turn.pace.admit():
                await self.turn_away(errors.crowded(scope["path"]), send)
                return
            TURN.set((turn,))
            send = turn.pace.noting(send, ANSWERS)
        await bridge(scope, receive, send)

    def turn_of_person(self, name: str, *, acts: bool) -> Turn:
        """One person's pages take half of the threads at once, and the others wait apart.

        However many there are, a page of another person waits for those under way only. What people
        do, all together, leaves one thread to pages that are read: a change may wait for a lock or
        another machine for long.
        """
        most = settings.WEB_PEOPLE_THREADS
        own = self.turns_of("person", name, max(1, most // 2))
        return (own, self.turns_of("acts", "", max(1, most - 1))) if acts else (own,)

    def turn_of_agent(self, agent: tuple[int, int] | None) -> Turn:
        """One organisation's calls take half of the threads at once, one agent's one fewer.

        Two at least: one may wait for long. Callers whose keys this process has not seen yet share
        a turn until it knows whose they are.
        """
        agent_id, organisation_id = agent or (0, 0)
        most = settings.WEB_THREADS // 2
        return (
            self.turns_of("agent", agent_id, max(2, most - 1)),
            self.turns_of("organisation", organisation_id, max(2, most)),
        )

    def turns_of(self, kind: str, owner: Hashable, most: int) -> Turns:
        """What at most so many requests of one owner hold at once."""
        turns = self.turns.get((kind, owner))
        if turns is None:
            turns = self.turns[kind, owner] = Turns(most)
        return turns

    async def ask_face(self, face: ModuleType, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a face answer; if it fails before its answer begins, say so as everywhere else.

        Only what it refuses is measured here: a stream lasts, and a call is measured as it is made.
        """
        begun, started = False, perf_counter()

        async def send_on(message: Message) -> None:
            nonlocal begun
            status = message.get("status", HTTPStatus.OK)
            if not begun and status >= HTTPStatus.BAD_REQUEST:
                route, seconds = scope["path"].strip("/"), perf_counter() - started
                measure(scope["method"], route, status, seconds)
            begun = True
            await send(message)

        try:
            await face.application(scope, receive, send_on)
        except Disconnected:
            return
        except Exception:
            if begun:
                raise
            log.exception("request_failed", path=scope["path"])
            await self.agents.send(errors.broken(scope["path"]), send_on)

    async def live(self, receive: Receive, send: Send) -> None:
        """Keep what the faces need alive between the server's start and its end.

        Whatever program serves this application, it does not start as a role that owns the tables,
        nor without what its pages load.
        """
        await receive()
        if problem := await asyncio.to_thread(_problem_of_start):
            await send({"type": "lifespan.startup.failed", "message": problem})
            return
        async with self.lifespan():
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await asyncio.to_thread(_at_the_end, stop_own_runs)
        await asyncio.to_thread(_at_the_end, stored.give_back)
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Start the threads, and enter every face's lifespan, once each.

        Raises RuntimeError where the system starts none: this process cannot serve.
        """
        own = (self.threads, self.people_threads, self.strangers_threads)
        pools = (*own, *self.health_threads.values())
        for threads in (*pools, THREADS):
            start_threads(threads)
        async with AsyncExitStack() as stack:
            for face in dict.fromkeys(self.faces.values()):
                lifespan: Any = getattr(face, "lifespan", None)
                if lifespan is not None:
                    await stack.enter_async_context(lifespan())
            yield
        for threads in pools:
            threads.shutdown(wait=False, cancel_futures=True)


def _problem_of_start() -> str:
    try:
        return safety.problem_of_start() or safety.problem_of_pages()
    finally:
        connection.close()


def _at_the_end(work: Callable[[], None]) -> None:
    """Do what is done before this process ends; what cannot be done stays, as after a crash."""
    try:
        work()
    except DatabaseError:
        log.warning("not_done_at_the_end", work=work.__name__, exc_info=True)
    finally:
        connection.close()


application = Site(pool_of(settings.WEB_THREADS, "django"))
