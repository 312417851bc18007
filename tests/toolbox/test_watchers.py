"""Many who watch and wait at once, on a real server: each gets its own, and nobody polls."""

import asyncio
import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from socket import SO_RCVBUF, SOL_SOCKET, socket
from urllib.parse import urlsplit

import httpx
import pytest
from django.db import connection

from ledger.models import Event
from tests.loops import run as run_loop
from tests.patience import PATIENCE, wait_until
from toolbox import wake
from toolbox.faces import event_reader, event_stream
from toolbox.faces.long_poll import LONGEST

MANY = 200
MAIL = {"type": "info", "subject": "Hello", "body": "A word."}
PARENTS = {
    "it_manager": ("backend_worker", "devops_worker", "qa_worker", "frontend_worker"),
    "product_manager": ("research_worker",),
}
WORKERS = [(boss, worker) for boss, workers in PARENTS.items() for worker in workers]

LISTENERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database()
  AND (query = 'LISTEN nexus_wake' OR query LIKE 'DELETE FROM toolbox_watch WHERE%')
"""
FLOOD = """
INSERT INTO ledger_event (id, action, actor, at, decision, for_agent_id, kind, reason, digest)
SELECT gen_random_uuid(), 'test.flooded', 'system:tests', now(), 'allow', %s, 'flood',
       repeat('x', 4000), sha256('') FROM generate_series(1, %s)
"""


@pytest.fixture(scope="module")
def port(company, url):
    for agent in company.organisation.agents.all():
        company.key(agent.handle)  # for coroutines, which ask the database nothing
    return urlsplit(url).port


@pytest.fixture
def listening(company):
    """This process hears notifications; those of the beginning are over."""
    rung = threading.Event()
    wake.listen()
    with wake.WAITERS.waiting(0, rung.set):
        while ask_once(LISTENERS) == 0:
            rung.wait(0.02)
        rung.clear()
        ask_once("SELECT count(pg_notify('nexus_wake', '0'))")
        assert rung.wait(PATIENCE)


@pytest.fixture
def looks(monkeypatch, listening):
    """How often each agent's stream was read, its heartbeats put off."""
    monkeypatch.setattr(event_stream, "HEARTBEAT", 600.0)
    counted, read = Counter(), event_reader.read

    def counting(*, caller, **where):
        counted[caller.agent.handle] += 1
        return read(caller=caller, **where)

    monkeypatch.setattr(event_reader, "read", counting)
    return counted


def asked(company, who):
    return (
        f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {company.key(who)}\r\n\r\n"
    ).encode()


def ask_once(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


def flood(agent, count):
    with connection.cursor() as cursor:
        cursor.execute(FLOOD, [agent, count])
    wake.WAITERS.wake([agent])


@asynccontextmanager
async def watchers(company, port, count):
    """Open streams, agent after agent; where each has come to is in its list."""
    tasks, found = [], []
    try:
        for number in range(count):
            who = WORKERS[number % len(WORKERS)][1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(asked(company, who))
            await reader.readuntil(b": watching\n")
            seen = []
            tasks.append((asyncio.create_task(follow(reader, seen)), writer))
            found.append((who, seen))
        yield found
    finally:
        for task, writer in tasks:
            task.cancel()
            writer.close()


async def follow(reader, seen):
    """Keep the data of every event."""
    while line := await reader.readline():
        if line.startswith(b"data: "):
            seen.append(json.loads(line[6:]))


async def until(holds):
    await asyncio.to_thread(wait_until, holds)


async def meanwhile(work):
    return await asyncio.to_thread(work)


class TestManyWatchers:
    def test_each_get_their_own_once_and_ask_nothing_in_between(self, company, port, looks):
        async def watch():
            async with watchers(company, port, MANY) as found:
                await until(lambda: sum(looks.values()) == MANY)
                await meanwhile(lambda: company.call("it_manager", "read_inbox"))
                assert sum(looks.values()) == MANY
                listening = await meanwhile(lambda: ask_once(LISTENERS))
                sent = await meanwhile(lambda: [mail_to(boss, to) for boss, to in WORKERS])
                await until(lambda: all(seen for _, seen in found))
                await until(lambda: sum(looks.values()) >= 2 * MANY)
            return listening, dict(sent), found

        def mail_to(boss, worker):
            result = company.call(boss, "send_mail", to=worker, **MAIL).result
            return worker, f"mail:{result['mail_id']}"

        listening, sent, found = run_loop(watch())
        assert listening == 1
        assert len(found) == MANY
        assert all([e["subject"] for e in seen] == [sent[who]] for who, seen in found)
        assert sum(looks.values()) == 2 * MANY

    def test_are_not_held_up_by_one_that_does_not_read(self, company, port, looks):
        """Nor does the server read for it what it does not take: it gets the rest later."""
        stalled = "research_worker"
        agent, pages = company.agent(stalled).id, 15
        with closing(socket()) as slow:
            slow.setsockopt(SOL_SOCKET, SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", port))
            slow.sendall(asked(company, stalled))
            begun = b""
            while b": watching\n" not in begun:
                begun += slow.recv(64)
            flood(agent, pages * event_reader.PAGE)

            async def others():
                async with watchers(company, port, 1) as found:
                    mail = {"to": found[0][0], **MAIL}
                    for number in range(1, pages + 1):
                        await meanwhile(lambda: company.call("it_manager", "send_mail", **mail))
                        await until(lambda number=number: len(found[0][1]) == number)

            run_loop(others())
            wait_until(lambda: looks[stalled])
            assert looks[stalled] < pages
            ids, total = set(), pages * event_reader.PAGE
            for line in slow.makefile("rb"):
                assert not line.startswith(b": alive"), "it fell silent too early"
                if line.startswith(b"id: "):
                    ids.add(line)
                if len(ids) == total:
                    break
        assert Event.objects.filter(for_agent_id=agent, kind="flood").count() == total

    def test_hear_that_the_stream_lives_however_often_it_looks_in_vain(
        self, company, port, monkeypatch
    ):
        """Behind a proxy that pools connections, each looks every 3 s (Spec: wire 11)."""
        monkeypatch.setattr(event_stream, "HEARTBEAT", 0.5)
        over, agent = threading.Event(), company.agent("backend_worker").id

        def ring():
            while not over.wait(0.01):
                wake.WAITERS.wake([agent])

        async def watch():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(asked(company, "backend_worker"))
            try:
                await asyncio.wait_for(reader.readuntil(b": alive\n"), PATIENCE)
            finally:
                over.set()
                writer.close()

        ringing = threading.Thread(target=ring)
        ringing.start()
        run_loop(watch())
        ringing.join()

    def test_leave_nothing_behind_when_they_go(self, company, port):
        async def come_and_go():
            async with watchers(company, port, 20):
                await until(lambda: sum(map(len, wake.WAITERS._waiting.values())) == 20)
            await until(lambda: not wake.WAITERS._waiting)

        run_loop(come_and_go())


class TestOwnDeeds:
    def test_wake_nobody_who_did_them(self, company, port):
        """Neither its watchers nor its waiting read: only the bell of whom it concerns rings."""
        rung = []
        boss, worker = company.agent("it_manager").id, company.agent("backend_worker").id
        with (
            wake.WAITERS.waiting(worker, lambda: rung.append("worker")),
            wake.WAITERS.waiting(boss, lambda: rung.append("boss")),
        ):
            company.call("backend_worker", "send_mail", to="it_manager", **MAIL)
        assert rung == ["boss"]

    def test_wake_the_agents_of_their_own_organisation_alone(self, company, listening):
        """Spec: wire 21. A change of the organisation wakes all who wait in it, and no others."""
        rung, own = Counter(), company.organisation.id
        restricted = {"agent": "backend_worker", "tool": "git_push", "reason": "For now."}
        with (
            wake.WAITERS.waiting(-1, lambda: rung.update(["own"]), own),
            wake.WAITERS.waiting(-2, lambda: rung.update(["other"]), own + 1),
        ):
            for act in ({"action": "tighten", "modes": []}, {"action": "restore"}):
                before = rung["own"]
                assert company.call("it_manager", "manage_tools", **act, **restricted).code == "OK"
                wait_until(lambda before=before: rung["own"] > before)
        assert not rung["other"]

    def test_do_not_end_a_wait_and_looking_takes_nothing_away(self, company, port):
        me, key = company.agent("hr_manager").id, company.key("hr_manager")

        def unread(wait=0):
            answer = httpx.post(
                f"http://127.0.0.1:{port}/api/v1/tools/read_inbox",
                json={"wait": wait},
                headers={"Authorization": f"Bearer {key}"},
                timeout=LONGEST + PATIENCE,
            )
            return [mail["subject"] for mail in answer.json()["result"]["mails"]]

        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(unread, wait=LONGEST)
            run_loop(until(lambda: me in wake.WAITERS._waiting))
            report = {**MAIL, "type": "report"}
            assert company.call("hr_manager", "send_mail", to="ceo", **report).code == "OK"
            assert not waiting.done()
            company.call("ceo", "send_mail", to="hr_manager", **{**MAIL, "subject": "Come"})
            assert waiting.result(PATIENCE) == ["Come"]
        assert unread() == unread(wait=LONGEST) == ["Come"]
