"""Runs that take long: their output on the event stream, and people who stop them."""

import time
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone
from psycopg.errors import AdminShutdown

from core.actors import System
from core.decision import Code, Denied
from core.permissions import PeopleGroup
from governance.models import Intervention
from ledger.models import Event
from orgchart.keys import digest_of, issue_key
from orgchart.models import Agent
from orgchart.pauses.services import pause_agent
from orgchart.tool_restrictions import set_tool_restriction
from tests.admin.forms import filled
from tests.admin.places import act_page, change_page
from tests.decisions import denied
from tests.documents.world import NOW
from tests.patience import PATIENCE, wait_until
from tests.people import join
from tests.workspace.calls import call, coding
from tests.workspace.watching import board_member, meanwhile, printed
from toolbox.faces import event_reader
from toolbox.modes import close_mode
from toolbox.registry import CODING_ONLY
from workspace.git.judged_commit import last_run
from workspace.models import Run
from workspace.runs import queue, rules, services, stopping, watching
from workspace.runs.recording import RecordedRun
from workspace.runs.stopping import PROCESS_ENDS, stop_own_runs, stop_run
from workspace.runs.watching import RunRight, RunWatcher
from workspace.sandbox import driver

pytestmark = pytest.mark.skipif(
    isinstance(driver.strongest(), str), reason=f"no sandbox here: {driver.strongest()}"
)
MARK = "86398.1717"
"""Seconds that a daemon of these tests sleeps, by which it is found."""
OTHERS_END = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
LONG = f"""import subprocess, time


def test_it():
    subprocess.Popen(["setsid", "sleep", "{MARK}"])
    time.sleep(600)
"""
TALKS = """import time

import pytest


@pytest.mark.parametrize("number", range(30))
def test_it(number):
    time.sleep(0.1)
"""


def daemons():
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if MARK.encode() in path.read_bytes():
                found.append(path)
        except OSError:
            continue
    return found


def is_started():
    return Run.objects.exclude(started_at=None).exists()


def is_waiting(pid):
    """Whether a connection waits for a lock of this process of the database."""
    with connection.cursor() as cursor:
        cursor.execute(BLOCKED, [pid])
        return cursor.fetchone()[0] > 0


def begun(caller):
    return queue.take_turn(
        caller=replace(caller, tool="run_test"),
        paths=["tests/"],
        commit="c" * 40,
        seconds=services.LIMITS.seconds,
        now=NOW,
    )


def end(row, caller):
    run = RecordedRun(row, caller)
    run(b"ok")
    run.end(0)


def key_of(caller):
    """The digest of a new key of the caller."""
    system = System(name="tests", organisation_id=caller.organisation_id)
    agent = Agent.objects.get(id=caller.agent.id)
    return digest_of(issue_key(agent=agent, caller=system, now=timezone.now()))


@pytest.fixture
def board(nexus):
    """A client signed in as a member of the Board."""
    user = get_user_model().objects.create(username="board", is_staff=True)
    user.groups.set([Group.objects.get(name=PeopleGroup.BOARD)])
    join(user)
    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def alice(nexus):
    return board_member(nexus)


@pytest.mark.django_db(transaction=True)
class TestALongRun:
    def test_streams_its_output_piece_by_piece(self, backend, write):
        write("tests/test_talks.py", TALKS)
        result = call(backend, "run_test", paths=["tests/"])["result"]
        assert result["exit_code"] == 0, result["output"]
        pieces = printed(backend)
        assert len(pieces) > 1
        assert "".join(piece["output"] for piece in pieces) == result["output"]
        assert [piece["from"] for piece in pieces] == [
            sum(len(each["output"]) for each in pieces[:number]) for number in range(len(pieces))
        ]
        assert {piece["run"] for piece in pieces} == {result["run_id"]}

    def test_goes_on_when_the_database_ends_its_connections(self, backend, write):
        """A failover: the run was ended, its result lost, and its place taken for minutes."""
        write("tests/test_talks.py", TALKS)

        def fail_over():
            wait_until(lambda: printed(backend))
            with connection.cursor() as cursor:
                cursor.execute(OTHERS_END)

        with meanwhile(fail_over):
            result = call(backend, "run_test", paths=["tests/"])["result"]
        assert result["exit_code"] == 0, result["output"]
        assert "30 passed" in result["output"]
        row = Run.objects.get()
        assert (row.exit_status, row.output_sha256) == (0, result["output_sha256"])
        assert Event.objects.filter(action="run.ended").count() == 1

    def test_goes_on_and_is_no_second_run_where_postgresql_breaks_a_deadlock(self, backend, write):
        """The program ran up to three times for one call, and left a run for each."""
        write("tests/test_talks.py", TALKS)
        broken = []

        def lock_in_the_opposite_order():
            wait_until(lambda: printed(backend))
            given = connection.get_connection_params()
            where = {n: given[n] for n in ("dbname", "user", "host", "port") if given.get(n)}
            with psycopg.connect(**where) as other:
                other.execute("SELECT FROM workspace_run FOR UPDATE")
                wait_until(lambda: is_waiting(other.info.backend_pid))
                other.execute("LOCK TABLE workspace_run")  # who waits longest is the victim
                broken.append(not is_waiting(other.info.backend_pid))
                other.rollback()

        with meanwhile(lock_in_the_opposite_order):
            result = call(backend, "run_test", paths=["tests/"])["result"]
        assert broken
        assert result["exit_code"] == 0, result["output"]
        assert Run.objects.get().exit_status == 0
        assert Event.objects.filter(action="run.ended").count() == 1

    @pytest.mark.parametrize("is_saved", [False, True])
    def test_has_one_end_where_its_connection_ended(self, backend, monkeypatch, is_saved):
        """No one can say whether the commit was done that had no answer."""
        run, save = RecordedRun(begun(backend), backend), RecordedRun._save
        tried = []

        def lost_once(self, *given, **named):
            tried.append(given)
            if is_saved or len(tried) > 1:
                save(self, *given, **named)
            if len(tried) == 1:
                raise OperationalError from AdminShutdown()

        monkeypatch.setattr(RecordedRun, "_save", lost_once)
        run.end(0)
        assert Run.objects.get().exit_status == 0
        assert Event.objects.filter(action="run.ended").count() == 1

    def test_is_seen_on_the_stream_of_its_own_agent_only(self, nexus, backend, write):
        write("tests/test_talks.py", TALKS)
        begin = event_reader.here()
        call(backend, "run_test", paths=["tests/"])
        for caller in (backend, coding(nexus, "it_manager")):
            page = event_reader.read(caller=caller, key=key_of(caller), after=begin)
            found = [event for _, event in page.events if event["kind"] == "run"]
            assert bool(found) == (caller is backend)
            assert all(event["details"]["output"] for event in found)

    def test_streams_nothing_where_it_is_short(self, backend, write, monkeypatch):
        monkeypatch.setattr(watching, "LOOK_EVERY", PATIENCE)
        write("tests/test_a.py", "def test_it():\n    assert True\n")
        call(backend, "run_test", paths=["tests/"])
        assert printed(backend) == []

    def test_streams_no_more_than_its_bound(self, backend):
        row = begun(backend)
        watcher = RunWatcher(row, backend)
        watcher._next = 0.0
        watcher(b"x" * (rules.STREAMED + 5000))
        watcher.end()
        pieces = [len(piece["output"]) for piece in printed(backend)]
        assert max(pieces) == rules.PIECE
        assert sum(pieces) == rules.STREAMED

    def test_keeps_letters_whole_whose_bytes_come_apart(self, backend):
        row = begun(backend)
        watcher = RunWatcher(row, backend)
        for byte in "ä€😀".encode():
            watcher._next = 0.0
            watcher(bytes([byte]))
        assert "".join(piece["output"] for piece in printed(backend)) == "ä€😀"
        assert watcher.size == len("ä€😀".encode()) + 512 * len(printed(backend))
        row.refresh_from_db()
        assert row.output == "ä€😀"

    def test_copies_what_was_printed_before_with_no_further_piece(self, backend):
        """A program can print a million single bytes in the time of a run."""

        class Piece(str):
            __slots__ = ()
            copied = 0

            def replace(self, *_):
                return self

            def __radd__(self, before):
                Piece.copied += len(before)
                return str.__add__(before, self)

        watcher = RunWatcher(begun(backend), backend)
        watcher._next = float("inf")
        watcher._decoder = SimpleNamespace(decode=lambda *_, **__: Piece("x"))
        for _ in range(100):
            watcher(b"x")
        assert watcher.text == "x" * 100
        assert Piece.copied == 0

    def test_ends_when_its_agent_is_paused(self, backend, write, alice):
        write("tests/test_long.py", LONG)

        def pause():
            wait_until(is_started)
            pause_agent(person=alice, agent="backend_worker", reason="Wait.", now=timezone.now())

        with meanwhile(pause):
            result = call(backend, "run_test", paths=["tests/"])["result"]
        assert (result["exit_code"], result["stopped_for"]) == (137, "its agent is paused")
        assert daemons() == []

    def test_ends_when_coding_mode_of_its_session_is_closed(self, backend, write, alice):
        write("tests/test_long.py", LONG)

        def close():
            wait_until(is_started)
            close_mode(
                session_id=backend.session.id, caller=alice, reason="Wait.", now=timezone.now()
            )

        with meanwhile(close):
            result = call(backend, "run_test", paths=["tests/"])["result"]
        assert result["stopped_for"] == "coding mode of its session was closed"
        assert daemons() == []

    def test_ends_when_its_tool_is_taken_away(self, nexus, backend, write):
        write("tests/test_long.py", LONG)

        def restrict():
            wait_until(is_started)
            set_tool_restriction(
                organisation_id=nexus.id, tool="run_test", modes=frozenset(),
                tool_modes=CODING_ONLY, caller=System(name="tests", organisation_id=nexus.id),
                agent=Agent.objects.get(id=backend.agent.id), reason="Wait.", now=timezone.now(),
            )  # fmt: skip

        with meanwhile(restrict):
            result = call(backend, "run_test", paths=["tests/"])["result"]
        assert result["stopped_for"] == "run_test is taken away from backend_worker"


@pytest.mark.django_db(transaction=True)
class TestStopping:
    def test_on_its_page_ends_all_its_programs(self, backend, write, board):
        write("tests/test_long.py", LONG)
        begun = time.monotonic()

        def stop():
            wait_until(daemons)
            run = Run.objects.get()
            assert "Stop run" in board.get(change_page(run)).content.decode()
            page = act_page(run, "stop")
            form = filled(board, page, "act-form", reason="It takes the machine.")
            assert board.post(page, form).status_code == 302

        with meanwhile(stop):
            result = call(backend, "run_test", paths=["tests/"])["result"]
        assert time.monotonic() - begun < 2 * PATIENCE
        assert daemons() == []
        assert result["exit_code"] == 137
        assert result["stopped_for"] == "board: It takes the machine."
        told = Event.objects.get(action="run.stopped")
        assert (told.actor, told.reason) == ("human:board", "It takes the machine.")
        assert (told.for_agent_id, told.kind) == (backend.agent.id, "run")
        kept = Intervention.objects.get()
        assert (kept.action_taken, kept.trigger_condition) == ("stop_run", "run running")
        html = board.get(change_page(Run.objects.get())).content.decode()
        assert "stopped: board: It takes the machine." in html
        assert "/stop/" not in html

    def test_is_not_asked_to_stop_what_ended_with_its_server(self, backend, board):
        """It has no end, and its place is free: nothing runs that could be stopped."""
        run = begun(backend)
        assert "Stop run" in board.get(change_page(run)).content.decode()
        Run.objects.filter(id=run.id).update(ends_by=timezone.now() - timedelta(seconds=1))
        html = board.get(change_page(run)).content.decode()
        assert "interrupted: the server ended meanwhile" in html
        assert "Stop run" not in html

    def test_takes_a_waiting_run_out_of_the_queue(self, backend, alice):
        first = begun(backend)

        def stop():
            wait_until(lambda: Run.objects.filter(started_at=None).exists())
            waiting = Run.objects.get(started_at=None)
            stop_run(run_id=waiting.id, caller=alice, reason="Later.", now=timezone.now())

        with meanwhile(stop), pytest.raises(Denied) as refusal:
            begun(backend)
        assert refusal.value.deny.code is Code.INVALID_TRANSITION
        assert "alice: Later." in refusal.value.deny.message
        assert Run.objects.exclude(id=first.id).get().ended_at is not None

    def test_starts_no_run_that_was_stopped_just_before(self, backend, alice):
        row = Run.objects.create(
            organisation_id=backend.organisation_id, agent_id=backend.agent.id, tool="run_test",
            paths=[], asked_at=NOW, ends_by=timezone.now() + queue.GRACE,
        )  # fmt: skip
        stop_run(run_id=row.id, caller=alice, reason="Later.", now=timezone.now())
        assert not queue._start(row, backend, 9.0, RunRight(backend))
        assert not Event.objects.filter(action="run.started").exists()

    def test_is_refused_for_what_has_ended(self, backend, alice):
        row = begun(backend)
        end(row, backend)
        with pytest.raises(Denied) as refusal:
            stop_run(run_id=row.id, caller=alice, reason="Late.", now=timezone.now())
        assert refusal.value.deny.code is Code.INVALID_TRANSITION
        assert not Intervention.objects.exists()

    def test_is_refused_for_what_was_interrupted(self, backend, alice):
        row = begun(backend)
        Run.objects.filter(id=row.id).update(ends_by=NOW)
        with denied("INVALID_TRANSITION"):
            stop_run(run_id=row.id, caller=alice, reason="Late.", now=timezone.now())

    def test_does_not_reach_into_another_organisation(self, backend, alice):
        row = begun(backend)
        other = replace(alice, organisation_id=alice.organisation_id + 1)
        with pytest.raises(Denied) as refusal:
            stop_run(run_id=row.id, caller=other, reason="Mine.", now=timezone.now())
        assert refusal.value.deny.code is Code.NOT_FOUND

    def test_frees_the_place_of_one_whose_process_was_killed(self, backend, alice):
        row = begun(backend)
        stop_run(run_id=row.id, caller=alice, reason="Dead.", now=timezone.now())
        row.refresh_from_db()
        assert row.ends_by < timezone.now() + 2 * queue.GRACE

    def test_makes_no_evidence(self, backend, alice):
        row = begun(backend)
        stop = partial(stop_run, run_id=row.id, caller=alice, reason="Wrong.", now=timezone.now())
        stop()
        end(row, backend)
        assert Run.objects.get().stopped_for == "alice: Wrong."
        assert last_run(backend, "c" * 40) == ""
        again = begun(backend)
        end(again, backend)
        assert last_run(backend, "c" * 40) == Run.objects.get(id=again.id).output_sha256


@pytest.mark.django_db(transaction=True)
class TestTheEndOfItsProcess:
    """Spec: hands 26."""

    def test_ends_a_run_and_its_programs(self, backend, write):
        write("tests/test_long.py", LONG)

        def end_process():
            wait_until(daemons)
            stop_own_runs()
            assert Run.objects.get().ended_at is not None  # it waited for this

        with meanwhile(end_process):
            result = call(backend, "run_test", paths=["tests/"])["result"]
        assert daemons() == []
        assert result["stopped_for"] == PROCESS_ENDS

    def test_ends_one_that_waits_for_its_turn(self, backend, monkeypatch):
        monkeypatch.setattr(stopping, "PATIENCE", 0.1)
        first = begun(backend)

        def end_process():
            wait_until(lambda: Run.objects.filter(started_at=None).exists())
            stop_own_runs()

        with meanwhile(end_process), denied("INVALID_TRANSITION"):
            begun(backend)
        assert Run.objects.exclude(id=first.id).get().ended_at is not None

    def test_frees_the_place_of_what_cannot_record_its_end(self, backend, monkeypatch):
        monkeypatch.setattr(stopping, "PATIENCE", 0.1)
        row = begun(backend)
        stop_own_runs()
        row.refresh_from_db()
        assert row.ends_by < timezone.now() + 2 * queue.GRACE

    def test_ends_no_run_of_another_process(self, backend):
        row = begun(backend)
        queue.OWN.discard(row)  # as the other process sees it
        stop_own_runs()
        row.refresh_from_db()
        assert row.stopped_for == ""
