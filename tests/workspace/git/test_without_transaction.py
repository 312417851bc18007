"""Git at work for seconds: no transaction is open, and what changed meanwhile decides."""

import fcntl
import os
import threading
import time
from contextlib import contextmanager
from functools import partial

import psycopg
import pytest
from django.db import connection

from ledger.models import Event
from tests.company import load_company
from tests.contracts import world
from tests.workspace.git.world import SCOPE, Hands, needs_walls
from workspace import outside
from workspace.git import holding
from workspace.git.models import Draft
from workspace.tree import organisation_folder

pytestmark = [needs_walls, pytest.mark.django_db(transaction=True)]
FILE = f"{SCOPE}data.bin"
IDLE = """
SELECT query FROM pg_stat_activity
WHERE datname = current_database() AND state LIKE 'idle in transaction%'
  AND clock_timestamp() - state_change > interval '0.5 seconds'
"""


@pytest.fixture
def hands(transactional_db, settings):
    settings.NEXUS_BYTES_PER_MINUTE = 100_000_000
    hands = Hands(load_company("nexus"))
    hands.contract = hands.hire()
    assert hands.branch().status == 200
    return hands


def big(hands):
    """A file that keeps git at work for a second or more."""
    file = hands.write(FILE)
    file.write_bytes(os.urandom(40_000_000))
    hands.give()


def lock_file(hands, handle="backend_worker"):
    folder = organisation_folder(hands.company.organisation.slug) / holding.LOCKS
    return folder / str(hands.company.agent(handle).id)


def is_at_work(hands):
    with lock_file(hands).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def elsewhere(work):
    """Do this in another thread; its answer is in the list at the end."""
    answers = []

    def run():
        try:
            answers.append(work())
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    yield answers
    thread.join()


def sampled(until):
    """The statements of transactions that idled while a list was empty, and how often we looked."""
    names = ("host", "port", "user", "password", "dbname")
    given = connection.get_connection_params()
    found, looks = [], 0
    with psycopg.connect(**{n: given[n] for n in names if given.get(n)}, autocommit=True) as db:
        while not until:
            found += [query for (query,) in db.execute(IDLE)]
            looks += 1
            time.sleep(0.05)
    return found, looks


class TestACommit:
    def test_holds_no_transaction_while_git_works(self, hands):
        big(hands)
        begun = time.monotonic()
        with elsewhere(partial(hands.commit, FILE)) as answers:
            idle, looks = sampled(answers)
        assert answers[0].status == 200
        assert time.monotonic() - begun > 1
        assert looks > 5
        assert idle == []

    def test_is_refused_when_its_contract_ended_meanwhile(self, hands):
        before = hands.draft.commit
        big(hands)
        with elsewhere(partial(hands.commit, FILE)) as answers:
            while not is_at_work(hands):
                assert not answers
            world.close(hands.company, hands.contract, "cancelled", version=2)
            assert is_at_work(hands), "git was faster than this test"
        assert answers[0].status in (403, 404, 409), answers[0].code
        assert Draft.objects.get().commit == before
        assert not Event.objects.filter(action="branch.committed").exists()

    def test_is_refused_when_its_draft_moved_meanwhile(self, hands):
        big(hands)
        with elsewhere(partial(hands.commit, FILE)) as answers:
            while not is_at_work(hands):
                assert not answers
            time.sleep(0.3)
            Draft.objects.update(updated_at="2020-01-01T00:00:00Z", commit="e" * 40)
            assert is_at_work(hands), "git was faster than this test"
        assert answers[0].code == "INVALID_TRANSITION"
        assert Draft.objects.get().commit == "e" * 40


class TestHolding:
    def test_answers_a_second_call_when_the_first_takes_too_long(self, hands, monkeypatch):
        monkeypatch.setattr(holding, "PATIENCE", 0.3)
        with lock_file(hands).open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            answer = hands.branch()
            assert (answer.status, answer.code) == (429, "RATE_LIMITED")
        assert hands.branch().status == 200

    def test_leaves_threads_to_others(self, hands, monkeypatch):
        monkeypatch.setattr(outside, "_free", threading.BoundedSemaphore(1))
        with outside.slot("tests"):
            assert hands.branch().code == "RATE_LIMITED"
        assert hands.branch().status == 200

    def test_is_not_for_other_agents(self, hands):
        hands.hire("frontend_worker", assigned_branch="feat/page")
        with lock_file(hands).open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            assert hands.branch("frontend_worker", "feat/page").status == 200
