"""The one application: who answers which address, and what lives as long as the process."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from ipaddress import ip_network
from threading import Event, Thread
from time import monotonic
from types import ModuleType, SimpleNamespace

import pytest
from django.core import signing
from django.http import HttpResponse

from nexus_site import asgi
from nexus_site.console import known_browsers
from nexus_site.serving import body_limits, health
from nexus_site.serving.handlers import ApiHandler, PeopleHandler
from tests.loops import run as run_loop
from tests.measured import turned_away
from tests.patience import PATIENCE, wait_until
from toolbox.faces import pace
from toolbox.faces.rest import formats
from toolbox.faces.threads import THREADS, TURN, in_turn
from toolbox.faces.turns import Turns


@pytest.fixture
def threads():
    with ThreadPoolExecutor(1) as threads:
        yield threads


def talk(application, scope, *messages):
    """What the application sends in one conversation."""
    waiting, sent = list(messages), []

    async def receive():
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    run_loop(application(scope, receive, send))
    return sent


def request(path, method="GET"):
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 5),
        "server": ("localhost", 80),
        "scheme": "http",
    }


BODY = {"type": "http.request", "body": b"", "more_body": False}


def know_owners(monkeypatch, owners, *, are_met):
    """Let the process have seen these keys before, or none of them since its start."""
    met = dict(owners) if are_met else {}
    where = "nexus_site.serving.owners"
    monkeypatch.setattr(f"{where}.owner_of_key", met.get)
    monkeypatch.setattr(f"{where}.meet_owner", lambda key: met.update({key: owners[key]}))


async def ask(site, person, path, method="GET"):
    """Ask for a page in a browser in which a person signed in."""
    asked = request(path, method)
    known = signing.dumps([person, "1"], salt=known_browsers.SALT)
    asked["headers"] += [(b"cookie", f"nexus_browser={known}".encode())]

    async def receive():
        return BODY

    async def send(message):
        pass

    await site(asked, receive, send)


async def call(site, key, path):
    """Call as the agent of a key."""
    asked = request(path, "POST")
    asked["headers"] += [(b"authorization", key.encode())]

    async def receive():
        return BODY

    async def send(message):
        pass

    await site(asked, receive, send)


def site_for_people(threads, people, get_response):
    """The site, in which each page of people is this answer."""
    site = asgi.Site(threads, people_threads=people)
    handler = SimpleNamespace(get_response=get_response, end=lambda response: None)
    site.people = replace(site.people, handler=handler)
    return site


class TestAnEndInTheMiddle:
    @pytest.mark.parametrize(
        ("path", "says"),
        [("/api/v1/me", b"Idempotency-Key"), ("/mcp", b"Idempotency-Key"), ("/admin/", b"NEXUS")],
    )
    def test_of_the_process_is_told_in_the_shape_of_every_error(self, path, says):
        """The server cancels what has not ended in its grace."""
        sent, works = [], Event()

        async def receive():
            return BODY

        async def send(message):
            sent.append(message)

        async def end():
            with ThreadPoolExecutor(1) as threads:
                site = asgi.Site(threads, people_threads=threads, strangers_threads=threads)
                for pool in (threads, THREADS):
                    for _ in range(pool._max_workers):
                        pool.submit(works.wait)
                asked = asyncio.create_task(site(request(path, "POST"), receive, send))
                try:
                    await asyncio.sleep(0.1)
                    asked.cancel()
                    await asked
                finally:
                    works.set()

        run_loop(end())
        start, answer = sent
        assert start["status"] == 503
        assert says in answer["body"]


class TestRouting:
    def ask(self, threads, path, method="GET"):
        return talk(asgi.Site(threads), request(path, method), BODY)

    def test_answers_a_program_without_sessions_and_languages(self, threads):
        start, _ = self.ask(threads, "/healthz")
        names = {name.lower() for name, _ in start["headers"]}
        assert start["status"] == 200
        assert b"x-request-id" in names
        assert not names & {b"set-cookie", b"content-language", b"vary"}

    def test_gives_people_the_whole_of_django(self, threads):
        start, _ = self.ask(threads, "/nowhere")
        names = {name.lower() for name, _ in start["headers"]}
        assert start["status"] == 404
        assert {b"content-security-policy", b"x-frame-options", b"x-request-id"} <= names

    @pytest.mark.parametrize(
        ("cookies", "who"),
        [
            ([], "strangers"),
            (["nexus_language=en; nexus_browser=abc"], "strangers"),
            (["nexus_browser={known}"], "people"),
            (["nexus_language=en", "nexus_browser={known}"], "people"),
        ],
    )
    def test_lets_no_stranger_wait_in_the_threads_of_people(self, threads, cookies, who):
        """Else a flood of sign-ins would keep the Board from its pages."""
        known = signing.dumps(["ada", "1"], salt=known_browsers.SALT)
        pools = {name: ThreadPoolExecutor(1, name) for name in ("people", "strangers")}
        site = asgi.Site(
            threads, people_threads=pools["people"], strangers_threads=pools["strangers"]
        )
        asked = request("/nowhere")
        asked["headers"] += [(b"cookie", each.format(known=known).encode()) for each in cookies]
        assert talk(site, asked, BODY)[0]["status"] == 404
        assert [name for name, pool in pools.items() if pool._threads] == [who]
        for pool in pools.values():
            pool.shutdown()

    def test_lets_no_person_take_the_threads_of_all(self, threads, settings):
        """Else who may only look keeps the Boards of all organisations from their pages."""
        freed, begun = Event(), []

        def wait_or_answer(request):
            begun.append(request.path)
            if request.path == "/slow":
                freed.wait(30)
            return HttpResponse()

        people = ThreadPoolExecutor(settings.WEB_PEOPLE_THREADS)
        site = site_for_people(threads, people, wait_or_answer)

        async def flood_and_ask():
            flood = [asyncio.create_task(ask(site, "mallory", "/slow")) for _ in range(20)]
            await asyncio.sleep(0.1)
            try:
                async with asyncio.timeout(20):
                    await ask(site, "ada", "/quick")
            finally:
                freed.set()
            await asyncio.gather(*flood)

        run_loop(flood_and_ask())
        people.shutdown()
        assert begun.index("/quick") == settings.WEB_PEOPLE_THREADS // 2
        assert begun.count("/slow") == 20
        assert not site.turns

    def test_lets_no_acts_of_people_take_the_threads_of_all(self, threads, settings):
        """Else people whose changes wait for a lock keep all others from every page."""
        freed, begun = Event(), []

        def wait_or_answer(request):
            begun.append(request.method)
            if request.method == "POST":
                freed.wait(PATIENCE)
            return HttpResponse()

        people = ThreadPoolExecutor(settings.WEB_PEOPLE_THREADS)
        site = site_for_people(threads, people, wait_or_answer)
        most = settings.WEB_PEOPLE_THREADS - 1

        async def act_and_ask():
            names = [str(number) for number in range(10)]
            acts = [asyncio.create_task(ask(site, name, "/act", "POST")) for name in names]
            await asyncio.to_thread(wait_until, lambda: len(begun) >= most)
            try:
                async with asyncio.timeout(PATIENCE / 2):
                    await ask(site, "ada", "/page")
            finally:
                freed.set()
            await asyncio.gather(*acts)

        run_loop(act_and_ask())
        people.shutdown()
        assert begun.index("GET") == most
        assert begun.count("POST") == 10
        assert not site.turns

    @pytest.mark.parametrize("path", ["/api/v1/me", "/api/v1/tools/read_inbox", "/mcp"])
    @pytest.mark.parametrize(
        ("flooders", "asker", "at_once", "are_met"),
        [
            ([(1, 1)], (2, 1), 3, True),
            ([(1, 1), (2, 1), (3, 1)], (4, 2), 4, True),
            ([(1, 1), (2, 1), (3, 1)], (4, 2), 4, False),
            ([None], (4, 2), 3, True),
        ],
        ids=["a colleague", "another organisation", "after a start", "unknown keys"],
    )
    def test_lets_no_agents_take_the_threads_of_all(
        self, monkeypatch, path, flooders, asker, at_once, are_met
    ):
        """Else one agent's calls, refused by its rate or not, keep all others waiting."""
        freed, begun = Event(), []

        def work(key):
            begun.append(key)
            if key != "asker":
                freed.wait(30)
            return HttpResponse()

        async def face(scope, receive, send):
            await in_turn(eight, work, dict(scope["headers"])[b"authorization"].decode())

        async def flood_and_ask():
            keys = [str(number % len(flooders)) for number in range(20)]
            flood = [asyncio.create_task(call(site, key, path)) for key in keys]
            await asyncio.sleep(0.1)
            try:
                async with asyncio.timeout(20):
                    await call(site, "asker", path)
            finally:
                freed.set()
            await asyncio.gather(*flood)

        owners = {"asker": asker} | {str(key): who for key, who in enumerate(flooders)}
        know_owners(monkeypatch, owners, are_met=are_met)
        eight = ThreadPoolExecutor(8)
        site = asgi.Site(eight, faces={("*", "/mcp"): SimpleNamespace(application=face)})
        handler = SimpleNamespace(
            get_response=lambda asked: work(asked.headers["Authorization"]), end=lambda _: None
        )
        site.agents = replace(site.agents, handler=handler)
        run_loop(flood_and_ask())
        eight.shutdown()
        assert begun.index("asker") == at_once
        assert len(begun) == 21
        assert not site.turns

    @pytest.mark.parametrize(
        "path", ["/api/v1/tools/send_mail", "/api/v1/tools/read_inbox", "/mcp"]
    )
    def test_looks_at_who_is_refused_too_often_at_a_pace(self, threads, monkeypatch, db, path):
        """Strangers with many connections took the processors from good agents."""
        monkeypatch.setattr(pace, "LONGEST", 0.0)
        monkeypatch.setattr("nexus_site.serving.owners.owner_of_key", {"known": (5, 1)}.get)
        strangers, before = Turns(3), turned_away("429")
        site = asgi.Site(threads)
        site.turns["agent", 0] = strangers
        statuses = []
        for key in ["bad", "bad again", "known"]:
            asked = request(path, "POST")
            asked["headers"] += [(b"authorization", key.encode())]
            start, answer = talk(site, asked, BODY)
            statuses.append((start["status"], b"too many calls were refused" in answer["body"]))
            assert strangers.pace.debt_until
            strangers.pace.debt_until = monotonic() + PATIENCE
        assert statuses == [(401, False), (429, True), (401, False)]
        assert turned_away("429") == before + 1

    def test_looks_at_strangers_browsers_at_a_pace(self, threads, monkeypatch, db):
        monkeypatch.setattr(pace, "LONGEST", 0.0)
        site = asgi.Site(threads)
        login, strangers = request("/admin/login/"), site.turns_of("stranger", "", 2)
        assert talk(site, login, BODY)[0]["status"] == 200
        assert strangers.pace.debt_until  # every page counts
        strangers.pace.debt_until, before = monotonic() + PATIENCE, turned_away("503")
        assert talk(site, login, BODY)[0]["status"] == 503
        assert turned_away("503") == before + 1
        start, answer = talk(site, request("/api/schema/"), BODY)
        assert (start["status"], json.loads(answer["body"])["error_code"]) == (429, "RATE_LIMITED")
        known = signing.dumps(["ada", "1"], salt=known_browsers.SALT)
        hers = request("/admin/login/")
        hers["headers"] += [(b"cookie", f"nexus_browser={known}".encode())]
        assert talk(site, hers, BODY)[0]["status"] == 200
        assert talk(site, request("/healthz"), BODY)[0]["status"] == 200

    def test_counts_a_call_whose_client_left_until_its_thread_is_free(self, threads):
        """Else one agent takes all threads: it asks, leaves, and asks again."""
        freed, begun, turn = Event(), [], Turns(2)

        def work():
            begun.append(1)
            freed.wait(30)

        async def ask_and_leave():
            TURN.set((turn,))
            for _ in range(5):
                call = asyncio.create_task(in_turn(eight, work))
                await asyncio.sleep(0.05)
                call.cancel()
                await asyncio.wait([call])
            at_once = len(begun)
            freed.set()
            async with asyncio.timeout(20):
                await in_turn(eight, work)
            return at_once

        eight = ThreadPoolExecutor(8)
        assert run_loop(ask_and_leave()) == 2
        assert len(begun) == 3
        wait_until(lambda: (turn.taken, list(turn.waiting)) == (0, []))
        eight.shutdown()

    @pytest.mark.parametrize("path", ["/healthz", "/api/schema/"])
    def test_answers_in_no_turn_what_has_threads_of_its_own(self, threads, monkeypatch, path):
        monkeypatch.setattr(asgi.Site, "turn_of_agent", None)
        assert self.ask(threads, path)[0]["status"] == 200

    @pytest.mark.parametrize(
        ("threads_of_all", "agent", "all_agents"), [(1, 2, 2), (4, 2, 2), (20, 9, 10)]
    )
    def test_leaves_an_agent_two_threads(
        self, threads, settings, threads_of_all, agent, all_agents
    ):
        """One call may wait for long: its other calls answer meanwhile."""
        settings.WEB_THREADS = threads_of_all
        turn = asgi.Site(threads).turn_of_agent(None)
        assert [each.most for each in turn] == [agent, all_agents]

    @pytest.mark.parametrize(("path", "status"), [("/admin/login/", 503), ("/api/schema/", 429)])
    def test_lets_few_strangers_wait_at_once(self, threads, monkeypatch, path, status):
        """Else a flood of sign-ins holds the connections and the memory that are for all."""
        monkeypatch.setattr(asgi, "STRANGERS_WAITING", 1)
        site = asgi.Site(threads)
        turn = site.turns_of("stranger", "", 2)
        assert talk(site, request(path), BODY)[0]["status"] == 200
        wait_until(lambda: not turn.taken)
        turn.waiting[object()] = None
        assert talk(site, request(path), BODY)[0]["status"] == status
        assert talk(site, request("/healthz"), BODY)[0]["status"] == 200
        site.strangers_threads.shutdown()

    @pytest.mark.parametrize("path", ["/api/schema/", "/api/docs/", "/api/docs/nothing/"])
    def test_reads_the_description_in_the_threads_of_strangers(self, threads, path):
        """It needs no key, so a flood of requests for it must take no thread of the agents."""
        strangers = ThreadPoolExecutor(1)
        site = asgi.Site(threads, strangers_threads=strangers)
        assert talk(site, request(path), BODY)[0]["status"] in (200, 404)
        assert strangers._threads
        assert not threads._threads
        strangers.shutdown()

    @pytest.mark.parametrize("path", ["/api/docs/", "/api/docs/mail/"])
    def test_guards_the_page_where_a_key_is_typed_as_every_page(self, threads, settings, path):
        start, _ = self.ask(threads, path)
        headers = dict(start["headers"])
        policy = headers[b"Content-Security-Policy"].decode()
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers[b"X-Frame-Options"] == b"DENY"
        foreign = request(path)
        foreign["headers"] = [(b"host", b"evil.example")]
        assert talk(asgi.Site(threads), foreign, BODY)[0]["status"] == 400
        settings.SECURE_SSL_REDIRECT = True
        assert self.ask(threads, path)[0]["status"] == 301

    @pytest.mark.parametrize("path", ["/healthz", "/readyz"])
    def test_says_whether_it_works_while_all_agents_wait(self, threads, path, monkeypatch):
        """As for a database that hangs: who watches must not take that for a dead process."""
        monkeypatch.setattr(health, "readiness", lambda: (False, {"status": "unavailable"}))
        freed = Event()
        waiting = threads.submit(freed.wait, 5)
        try:
            assert self.ask(threads, path)[0]["status"] == {"/healthz": 200, "/readyz": 503}[path]
            assert not waiting.done()
        finally:
            freed.set()

    def test_hands_a_waiting_address_to_its_face(self, threads):
        async def face(scope, receive, send):
            await send({"face": scope["path"]})

        site = asgi.Site(threads, faces={("*", "/mcp"): SimpleNamespace(application=face)})
        assert talk(site, request("/mcp", "POST"), BODY) == [{"face": "/mcp"}]

    @pytest.mark.parametrize("path", ["/healthz", "/nowhere", "/api/v1/me"])
    def test_answers_though_the_system_starts_no_thread_any_more(self, threads, path, monkeypatch):
        """As where other programs of this user took all that there may be."""
        site = asgi.Site(threads, faces={})

        def refuse(thread):
            raise RuntimeError("can't start new thread")

        async def ask():
            async with site.lifespan():
                monkeypatch.setattr(Thread, "start", refuse)
                return [await self.status(site, path) for _ in range(3)]

        assert set(run_loop(ask())) <= {200, 401, 404}

    async def status(self, site, path):
        sent = []

        async def receive():
            return BODY

        async def send(message):
            sent.append(message)

        await site(request(path), receive, send)
        return sent[0]["status"]

    def test_closes_a_websocket(self, threads):
        site = asgi.Site(threads)
        assert talk(site, {"type": "websocket"})[0]["type"] == "websocket.close"

    def test_builds_two_chains(self, threads):
        site = asgi.Site(threads)
        assert type(site.agents.handler) is ApiHandler
        assert type(site.people.handler) is PeopleHandler
        assert site.agents.limit < site.people.limit


class TestLifespan:
    def test_keeps_each_face_alive_once_and_stops_runs_at_the_end(self, threads, monkeypatch):
        """Spec: hands 26."""
        seen = []
        monkeypatch.setattr(asgi, "stop_own_runs", lambda: seen.append("runs stopped"))

        @asynccontextmanager
        async def lifespan():
            seen.append("in")
            yield
            seen.append("out")

        face = ModuleType("face")
        face.lifespan = lifespan
        site = asgi.Site(threads, faces={("*", "/mcp"): face, ("*", "/mcp/"): face})
        start, end = {"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}
        sent = talk(site, {"type": "lifespan"}, start, end)
        assert seen == ["in", "runs stopped", "out"]
        assert [message["type"] for message in sent] == [
            "lifespan.startup.complete",
            "lifespan.shutdown.complete",
        ]


class TestWhoIsRefusedAtOnce:
    def ask(self, threads, path="/api/v1/me", **changes):
        start, body = talk(asgi.Site(threads), request(path) | changes, BODY)
        return start["status"], body["body"]

    @pytest.mark.parametrize(
        "path", ["/api/v1/me", "/api/v1/tools/read_inbox", "/mcp", "/admin/live"]
    )
    def test_a_program_over_plain_http_where_that_is_closed(self, threads, settings, path):
        settings.SECURE_SSL_REDIRECT = True
        status, body = self.ask(threads, path)
        assert status == 401
        assert b"keys are not accepted over plain HTTP" in body

    @pytest.mark.parametrize("path", ["/api/v1/me", "/mcp", "/admin/live"])
    def test_a_program_that_asks_another_host(self, threads, path):
        assert self.ask(threads, path, headers=[(b"host", b"evil.example")])[0] == 421

    @pytest.mark.parametrize("path", ["/api/v1/me", "/mcp", "/admin/live"])
    def test_a_page_of_another_site(self, threads, path):
        headers = [(b"host", b"localhost"), (b"origin", b"https://evil.example")]
        assert self.ask(threads, path, headers=headers)[0] == 403

    def test_believes_the_scheme_of_a_named_proxy_only(self, threads, settings):
        settings.SECURE_SSL_REDIRECT = True
        told = {"headers": [(b"host", b"localhost"), (b"x-forwarded-proto", b"https")]}
        assert b"plain HTTP" in self.ask(threads, **told)[1]
        settings.TRUSTED_PROXIES = [ip_network("127.0.0.1")]
        assert b"plain HTTP" not in self.ask(threads, **told)[1]

    @pytest.mark.parametrize("path", ["/api/v1/hooks/feedback/a\x00b", "/admin/\x00/", "/mcp\x00"])
    def test_an_address_with_nul(self, threads, path):
        assert self.ask(threads, path)[0] == 400


class TestStrangers:
    def test_are_not_parsed_before_their_key_is_checked(self, threads, monkeypatch, db):
        parsed = []
        monkeypatch.setattr(json, "loads", lambda *args, **_: parsed.append(args))
        monkeypatch.setattr(formats, "read_object", parsed.append)
        body = BODY | {"body": b'{"wait": 30, "a": [' + b"[]," * 1000 + b"[]]}"}
        path = "/api/v1/tools/read_inbox"
        start, _ = talk(asgi.Site(threads), request(path, "POST"), body)
        assert start["status"] == 401
        assert parsed == []

    @pytest.mark.parametrize("path", ["/api/v1/tools/read_inbox", "/api/v1/tools/send_mail", "/x"])
    def test_are_not_read_to_the_end(self, threads, path, db):
        parts = [BODY | {"body": b"x" * 60_000, "more_body": True}] * 3
        start, _ = talk(asgi.Site(threads), request(path, "POST"), *parts)
        assert start["status"] == 413

    def test_are_told_from_agents_and_people(self, nexus, client, django_user_model, monkeypatch):
        monkeypatch.setattr(body_limits, "give_back_connection", lambda: None)  # the test's own
        scope = request("/x")
        assert not body_limits.is_known(scope)
        scope["headers"] = [(b"authorization", b"Bearer nxs_" + b"a" * 40)]
        assert not body_limits.is_known(scope)
        scope["headers"] = [(b"authorization", f"Bearer {nexus.key('ceo')}".encode())]
        assert body_limits.is_known(scope)
        scope["headers"] = [(b"cookie", b"nexus_session=" + b"a" * 32)]
        assert not body_limits.is_known(scope)
        client.force_login(django_user_model.objects.create_user("mia"))
        session = client.cookies["nexus_session"].value
        scope["headers"] = [(b"cookie", f"nexus_session={session}".encode())]
        assert body_limits.is_known(scope)
