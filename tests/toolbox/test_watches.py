"""Only who is waited for is notified, and nobody who waits misses anything."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import psycopg
import pytest
from django.db import connection, connections

from tests.concurrency import connect_apart
from tests.patience import PATIENCE, wait_until
from toolbox import wake
from toolbox.models import Watch
from toolbox.watches import Watches

AGENT = 2**40 + 7


@contextmanager
def listening():
    """A connection as another process has it: it hears, and its pid stands in the rows."""
    params = connection.get_connection_params()
    words = {k: params[k] for k in ("dbname", "user", "password", "host", "port") if params.get(k)}
    with psycopg.connect(**words, autocommit=True) as raw:
        raw.execute(f"LISTEN {wake.CHANNEL}")
        yield raw


def is_connected(pid):
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid])
        return cursor.fetchone()


def heard(raw, seconds=0.5):
    return [note.payload for note in raw.notifies(timeout=seconds, stop_after=1)]


@pytest.fixture
def other(transactional_db):
    """Another process that listens, and its watches; it waits for nobody yet."""
    waited_for = set()
    with listening() as raw:
        watches = Watches(lambda: waited_for)
        watches.connect(raw)
        watches.raw, watches.waited_for = raw, waited_for
        yield watches


class TestNotification:
    def test_is_not_sent_for_an_agent_that_nobody_waits_for(self, other):
        wake._notify({AGENT}, "@me")
        assert heard(other.raw) == []

    def test_is_sent_for_an_agent_that_another_process_waits_for(self, other):
        other.announce(AGENT)
        wake._notify({AGENT, AGENT + 1}, "@me")
        assert heard(other.raw, PATIENCE) == [f"{AGENT}@me"]

    def test_is_not_sent_for_what_only_the_sender_waits_for(self, other, monkeypatch):
        other.announce(AGENT)
        monkeypatch.setattr(wake, "WATCHES", other)
        wake._notify({AGENT}, "@me")
        assert heard(other.raw) == []


class TestConnect:
    def test_announces_everybody_who_is_waited_for(self, other):
        other.waited_for.update({AGENT, AGENT + 1})
        other.connect(other.raw)
        assert set(Watch.objects.values_list("agent_id", flat=True)) == {AGENT, AGENT + 1}
        assert other.covers(AGENT)

    def test_removes_rows_of_processes_that_ended(self, other):
        with listening() as gone:
            dead = Watches(set)
            dead.connect(gone)
            dead.announce(AGENT)
        wait_until(lambda: not is_connected(dead.listener))
        other.connect(other.raw)
        assert not Watch.objects.exists()

    def test_is_missing_so_nothing_is_announced(self, other):
        other.disconnect()
        other.announce(AGENT)
        assert not Watch.objects.exists()
        assert other.covers(AGENT), "the next connection announces it and wakes all"


class TestRetire:
    def test_removes_an_agent_for_which_nobody_waited_twice(self, other):
        other.announce(AGENT)
        other.retire(other.raw)
        assert Watch.objects.exists()
        other.retire(other.raw)
        assert not Watch.objects.exists()
        assert not other.covers(AGENT)

    def test_keeps_an_agent_for_which_somebody_waits(self, other):
        other.announce(AGENT)
        other.waited_for.add(AGENT)
        for _ in range(3):
            other.retire(other.raw)
        assert other.covers(AGENT)
        assert Watch.objects.exists()

    def test_keeps_one_for_which_somebody_came_meanwhile(self, other):
        other.announce(AGENT)
        other.retire(other.raw)
        other.waited_for.add(AGENT)
        other.retire(other.raw)
        other.waited_for.clear()
        other.retire(other.raw)
        assert other.covers(AGENT)

    def test_removes_no_row_that_was_announced_again(self, other):
        """The deletion comes late: meanwhile somebody else waits for the same agent."""
        other.announce(AGENT)
        other.retire(other.raw)

        class Late:
            def execute(self, statement, values):
                other.announce(AGENT)
                other.raw.execute(statement, values)

        other.retire(Late())
        assert other.covers(AGENT)
        assert Watch.objects.count() == 1


class TestAProxyThatPools:
    """Between us and the server, as PgBouncer: it hears notifications and passes none on."""

    def test_is_known_by_the_number_of_its_connections(self, other):
        assert wake._hears(other.raw)
        own_number = SimpleNamespace(info=SimpleNamespace(backend_pid=1))
        own_number.execute = other.raw.execute
        assert not wake._hears(own_number)

    def test_lets_waiters_look_from_time_to_time(self, transactional_db, monkeypatch):
        monkeypatch.setattr(wake, "_hears", lambda raw: False)
        monkeypatch.setattr(wake, "LOOK_SECONDS", 0.05)

        def end():
            raise SystemExit

        with wake.WAITERS.waiting(AGENT, end), pytest.raises(SystemExit):
            wake._listen_forever()


class TestWhoComesAtTheMomentOfACommit:
    def test_never_misses_it(self, other):
        """What commits after the look is notified, for the announcement came before it."""
        chance, missed, meet = random.Random(7), 0, threading.Barrier(2, timeout=PATIENCE)
        pauses = [(chance.uniform(0, 0.002), chance.uniform(0, 0.002)) for _ in range(300)]

        def send():
            connect_apart()
            try:
                for number, (_, pause) in enumerate(pauses):
                    meet.wait()
                    time.sleep(pause)
                    Watch.objects.create(agent_id=-1 - number, listener=0)  # stands for a mail
                    wake._notify({AGENT + number}, "@me")
                    meet.wait()
            finally:
                connections.close_all()

        def was_told(number):
            notes = other.raw.notifies(timeout=PATIENCE)
            return any(note.payload == f"{AGENT + number}@me" for note in notes)

        with ThreadPoolExecutor(1) as thread:
            sending = thread.submit(send)
            for number, (pause, _) in enumerate(pauses):
                meet.wait()
                time.sleep(pause)
                other.announce(AGENT + number)
                is_there = Watch.objects.filter(agent_id=-1 - number).exists()
                meet.wait()
                missed += not is_there and not was_told(number)
            sending.result()
        assert missed == 0

    def test_would_miss_it_if_it_looked_before_its_announcement(self, other):
        """The order is what the first test proves: here the commit comes between the two."""
        assert not Watch.objects.filter(agent_id=AGENT).exists()
        wake._notify({AGENT}, "@me")
        other.announce(AGENT)
        assert heard(other.raw) == []
