"""The event stream as the database gives it: what commits, when it commits, from any place."""

from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from ledger import sql
from ledger.events import Decision, Event
from orgchart.compiling import POLICIES
from orgchart.services import digest_of
from tests.company import load_company
from toolbox import stream

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@contextmanager
def elsewhere():
    """A connection of its own to the tests' database: one more writer."""
    given = connection.get_connection_params()
    names = ("host", "port", "user", "password", "dbname")
    with psycopg.connect(**{name: given[name] for name in names if given.get(name)}) as other:
        yield other
        other.rollback()


def write(writer, agent, subject, *, actor="system:tests", kind="mail", denied=False):
    event = Event(
        action="test.happened",
        actor=actor,
        at=NOW,
        decision=Decision.DENY if denied else Decision.ALLOW,
        code="CONTACT_DENIED" if denied else "",
        subject=subject,
        for_agent_id=agent,
        kind=kind,
    )
    writer.execute(sql.INSERT, sql.params(event))


def commit(agent, *subjects, **how):
    with elsewhere() as writer:
        for subject in subjects:
            write(writer, agent, subject, **how)
        writer.commit()


class Watcher:
    """An agent that reads its stream, and can go on from any event it was given."""

    def __init__(self, company, who="backend_worker"):
        self.caller = company.caller(who)
        self.key = digest_of(company.key(who))
        self.place = stream.here()
        self.ids = []
        self.seen = []

    @property
    def agent(self):
        return self.caller.agent.id

    def look(self):
        """What is new, to the end."""
        new, more = [], True
        while more:
            page = stream.read(caller=self.caller, key=self.key, after=self.place)
            assert not page.over
            new += [event["subject"] for _, event in page.events]
            self.ids += [str(place) for place, _ in page.events]
            self.place, more = page.place, page.more
        self.seen += new
        return new

    def again(self, last):
        """What a reconnection from an id gives."""
        self.place = stream.place_of(last)
        return self.look()


@pytest.fixture(scope="module")
def company(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        POLICIES.clear()
        yield load_company("nexus")
        call_command("flush", verbosity=0, interactive=False, reset_sequences=False)


@pytest.fixture
def watcher(company):
    return Watcher(company)


class TestBeginning:
    def test_leaves_out_what_was_there_while_an_older_transaction_is_open(self, watcher):
        with elsewhere() as older:
            older.execute("SELECT pg_current_xact_id()")
            commit(watcher.agent, "before")
            watcher.place = stream.here()
            assert watcher.look() == []
            commit(watcher.agent, "after")
            assert watcher.look() == ["after"]
            write(older, watcher.agent, "older")
            older.commit()
        assert watcher.look() == ["older"]
        assert watcher.look() == []
