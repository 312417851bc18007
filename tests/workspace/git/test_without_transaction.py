"""Git at work for seconds: no transaction is open, and what changed meanwhile decides."""

import fcntl
import threading
from contextlib import contextmanager

import pytest
from django.db import connection
from django.db.backends.postgresql.base import DatabaseWrapper

from core.budget import Budget
from ledger.models import Event
from tests.company import load_company
from tests.contracts import world
from tests.patience import PATIENCE
from tests.workspace.git.world import SCOPE, Hands, needs_walls
from workspace import outside_calls
from workspace.git import branches, holding, pushing
from workspace.git.models import Draft
from workspace.git.worktree import AgentWorkTree
from workspace.tree import organisation_folder

pytestmark = [needs_walls, pytest.mark.django_db(transaction=True)]
FILE = f"{SCOPE}data.bin"
OPEN = """
SELECT query FROM pg_stat_activity
WHERE datname = current_database() AND state LIKE 'idle in transaction%'
"""
OTHERS_END = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@pytest.fixture
def hands(transactional_db):
    hands = Hands(load_company("nexus"))
    hands.contract = hands.hire()
    assert hands.branch().status == 200
    hands.write(FILE)
    hands.give()
    return hands


class Git:
    """Git, which is at work until the test lets it end."""

    def __init__(self, monkeypatch):
        self.is_at_work, self.may_end = threading.Event(), threading.Event()
        stage = AgentWorkTree.stage

        def held(place, *args, **kwargs):
            self.is_at_work.set()
            assert self.may_end.wait(PATIENCE)
            return stage(place, *args, **kwargs)

        monkeypatch.setattr(AgentWorkTree, "stage", held)


@pytest.fixture
def git(monkeypatch):
    git = Git(monkeypatch)
    yield git
    git.may_end.set()


def lock_file(hands, handle="backend_worker"):
    folder = organisation_folder(hands.company.organisation.slug) / holding.LOCKS
    return folder / str(hands.company.agent(handle).id)


@contextmanager
def while_it_commits(hands, git):
    """A commit in another thread, git at work; the answer is in the list at the end."""
    answers = []

    def run():
        try:
            answers.append(hands.commit(FILE))
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert git.is_at_work.wait(PATIENCE)
        yield answers
    finally:
        git.may_end.set()
        thread.join()


class TestACommit:
    def test_holds_no_transaction_while_git_works(self, hands, git):
        with while_it_commits(hands, git) as answers, connection.cursor() as cursor:
            cursor.execute(OPEN)
            assert cursor.fetchall() == []
        assert answers[0].status == 200

    def test_is_refused_when_its_contract_ended_meanwhile(self, hands, git):
        before = hands.draft.commit
        with while_it_commits(hands, git) as answers:
            world.close(hands.company, hands.contract, "cancelled", version=2)
        assert answers[0].code == "INVALID_TRANSITION"
        assert Draft.objects.get().commit == before
        assert not Event.objects.filter(action="branch.committed").exists()

    def test_is_recorded_where_the_database_ended_its_connection_meanwhile(self, hands, git):
        with while_it_commits(hands, git) as answers, connection.cursor() as cursor:
            cursor.execute(OTHERS_END)
        assert answers[0].status == 200
        assert Event.objects.filter(action="branch.committed").count() == 1

    def test_is_refused_when_its_draft_moved_meanwhile(self, hands, git):
        with while_it_commits(hands, git) as answers:
            Draft.objects.update(updated_at="2020-01-01T00:00:00Z", commit="e" * 40)
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
        monkeypatch.setattr(outside_calls, "PLACES", Budget(1))
        with outside_calls.slot(hands.company.caller("backend_worker"), "tests"):
            assert hands.branch().code == "RATE_LIMITED"
        assert hands.branch().status == 200

    def test_is_not_for_other_agents(self, hands):
        hands.hire("frontend_worker", assigned_branch="feat/page")
        with lock_file(hands).open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            assert hands.branch("frontend_worker", "feat/page").status == 200


class TestAConnectionEndedInTheTransaction:
    """The work of git is done: what is recorded of it is recorded on another connection, once."""

    @pytest.fixture
    def ends(self, monkeypatch):
        """End the connection once, after this function of a module; how often it was called."""

        def ends_after(where, name):
            called, function = [], getattr(where, name)

            def end(*args, **kwargs):
                function(*args, **kwargs)
                called.append(name)
                if len(called) == 1:
                    with connection.cursor() as cursor:
                        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

            monkeypatch.setattr(where, name, end)
            return called

        return ends_after

    def events(self, action):
        return Event.objects.filter(action=action).count()

    def test_checks_a_branch_out(self, hands, ends):
        world.close(hands.company, hands.contract, "cancelled", version=2)
        hands.hire(assigned_branch="feat/next")
        called = ends(branches, "record")
        assert hands.branch(name="feat/next").status == 200
        assert len(called) == 2
        assert self.events("branch.checked_out") == 2

    def test_commits(self, hands, ends):
        called = ends(branches, "record")
        answer = hands.commit(FILE)
        assert (answer.status, len(called)) == (200, 2)
        assert Draft.objects.get().commit == answer.result["commit"]
        assert self.events("branch.committed") == 1

    def test_commits_once_where_the_commit_was_not_heard_of(self, hands, monkeypatch):
        commit, left = DatabaseWrapper._commit, [1]

        def lose(self):
            is_recorded = left and Event.objects.filter(action="branch.committed").exists()
            with self.wrap_database_errors:
                commit(self)
                if is_recorded:
                    left.pop()
                    with self.connection.cursor() as cursor:
                        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

        monkeypatch.setattr(DatabaseWrapper, "_commit", lose)
        answer = hands.commit(FILE)
        assert (answer.status, left) == (200, [])
        assert Draft.objects.get().commit == answer.result["commit"]
        assert self.events("branch.committed") == 1

    def test_pushes(self, hands, ends):
        assert hands.commit(FILE).status == 200
        called = ends(pushing, "record")
        assert (hands.push().status, len(called)) == (200, 2)
        assert self.events("branch.pushed") == 1
        assert hands.tip() == Draft.objects.get().commit
