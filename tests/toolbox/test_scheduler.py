"""Scheduled jobs: due rows, each handled once, whatever beats, fails or is late."""

import ast
import threading
from collections import Counter
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from structlog.testing import capture_logs

from core.database import database_now
from tests.company import load_company
from tests.patience import PATIENCE
from tests.sources import parsed
from toolbox import celery_task, scheduler
from toolbox.models import IdempotencyRecord, JobRun

NOW = timezone.now()
ROOT = Path(__file__).parents[2]


@pytest.fixture
def due(nexus):
    """Ten rows that are due, and one that is not."""
    agent = nexus.agent("ceo")
    rows = [
        IdempotencyRecord(agent=agent, key=f"k{n}", request_digest=b"x", due_at=NOW)
        for n in range(10)
    ]
    late = IdempotencyRecord(
        agent=agent, key="later", request_digest=b"x", due_at=NOW + timedelta(hours=1)
    )
    IdempotencyRecord.objects.bulk_create([*rows, late])
    return IdempotencyRecord.objects.filter(due_at__lte=NOW)


def delete(row):
    IdempotencyRecord.objects.filter(pk=row.pk).delete()


@pytest.mark.django_db
class TestSweep:
    @pytest.mark.parametrize("batch", [1, 3, 10, 200])
    def test_handles_every_due_row_once_in_batches_of_any_size(self, due, batch):
        seen = []

        def act(row):
            seen.append(row.key)
            delete(row)

        assert scheduler.sweep(due, act, batch=batch) == 10
        assert sorted(seen) == sorted(f"k{n}" for n in range(10))
        assert IdempotencyRecord.objects.get().key == "later"

    @pytest.mark.parametrize("batch", [1, 4, 200])
    def test_goes_on_after_a_row_that_fails_and_undoes_only_that_one(self, due, batch):
        def act(row):
            delete(row)
            if row.key == "k3":
                raise RuntimeError("broken")

        assert scheduler.sweep(due, act, batch=batch) == 9
        left = set(IdempotencyRecord.objects.values_list("key", flat=True))
        assert left == {"k3", "later"}

    def test_gives_each_organisation_a_turn_and_leaves_the_rest_to_the_next_run(
        self, due, monkeypatch
    ):
        """What agents of one made fall due at once keeps no other waiting, not even a batch: a row
        may be a thread of 200 escalations.
        """
        other = load_company("dev-team").agent("team-lead")
        IdempotencyRecord.objects.create(agent=other, key="b", request_digest=b"x", due_at=NOW)
        monkeypatch.setattr(scheduler, "TURN", 0)
        seen = []

        def act(row):
            seen.append(row.agent.organisation.slug)
            delete(row)

        rows = due.order_by("id")
        assert scheduler.sweep(rows, act, batch=3, of="agent__organisation") == 2
        assert sorted(seen) == ["dev-team", "nexus"]
        monkeypatch.undo()
        assert scheduler.sweep(rows, act, batch=3, of="agent__organisation") == 9

    def test_is_no_longer_for_many_organisations_than_for_one(self, due, monkeypatch):
        """What falls due meanwhile waits for its end, and seals for a thread of the worker."""
        other, seen = load_company("dev-team").agent("team-lead"), Counter()
        IdempotencyRecord.objects.bulk_create(
            IdempotencyRecord(agent=other, key=f"d{n}", request_digest=b"x", due_at=NOW)
            for n in range(10)
        )
        monkeypatch.setattr(scheduler.time, "monotonic", lambda: float(seen.total()))

        def act(row):
            seen[row.agent.organisation.slug] += 1
            delete(row)

        assert scheduler.sweep(due, act, of="agent__organisation") <= scheduler.TURN + 2
        assert seen["dev-team"] == seen["nexus"] > 1

    def test_ends_no_turn_with_a_row_that_fails(self, due, monkeypatch):
        """One that fails after the end of each turn would keep all others from it."""
        monkeypatch.setattr(scheduler, "TURN", 0)

        def act(row):
            delete(row)
            if row.key == "k0":
                raise RuntimeError("broken")

        rows = due.order_by("id")
        assert scheduler.sweep(rows, act, of="agent__organisation") == 1
        assert scheduler.sweep(rows, act, of="agent__organisation") == 1
        assert not IdempotencyRecord.objects.filter(key__in=("k1", "k2")).exists()


@pytest.mark.django_db
class TestRowsThatAreOver:
    """After a day without a worker there are millions. Spec: clocks 18."""

    @pytest.mark.parametrize("batch", [1, 3, 10, 200])
    def test_are_deleted_and_no_others(self, due, batch):
        assert scheduler.delete_over(due, batch=batch) == 10
        assert IdempotencyRecord.objects.get().key == "later"

    def test_are_deleted_in_small_statements(self, due):
        with CaptureQueriesContext(connection) as seen:
            scheduler.delete_over(due, batch=3)
        assert sum(each["sql"].startswith("DELETE") for each in seen) == 4

    def test_that_take_long_are_left_to_the_next_run(self, due, monkeypatch):
        monkeypatch.setattr(scheduler, "TURN", 0)
        assert scheduler.delete_over(due, batch=3) == 3
        assert due.count() == 7


def test_no_job_deletes_all_rows_at_once():
    for path in (path for room in settings.ROOMS for path in (ROOT / room).glob("schedule.py")):
        assert ".delete()" not in path.read_text("utf-8"), path


ONE_ORGANISATIONS = {
    "documents/files.py": 1,  # by author
}
"""Sweeps whose rows no turn parts, by file."""


def test_each_sweep_over_what_agents_make_gives_turns():
    """Spec: clocks 18."""
    found = Counter()
    for path in (path for room in settings.ROOMS for path in (ROOT / room).rglob("*.py")):
        if "sweep(" in (source := path.read_text("utf-8")):
            found[str(path.relative_to(ROOT))] = sum(
                getattr(node.func, "id", "") == "sweep"
                and "of" not in {k.arg for k in node.keywords}
                for node in ast.walk(parsed(source))
                if isinstance(node, ast.Call)
            )
    assert +found == Counter(ONE_ORGANISATIONS)


@pytest.mark.django_db(transaction=True)
class TestSweepWithoutItsDatabase:
    def test_ends_where_the_connection_was_lost_between_two_rows(self, due, monkeypatch):
        seen, release = [], connection.savepoint_commit

        def act(row):
            seen.append(row.key)
            delete(row)

        def released(sid):
            release(sid)
            if len(seen) == 3:
                connection.connection.close()

        monkeypatch.setattr(connection, "savepoint_commit", released)
        with capture_logs() as said, pytest.raises(OperationalError):
            scheduler.sweep(due.all(), act)
        monkeypatch.undo()
        assert len(seen) == 3
        assert said == [], "a row was blamed for it"
        assert due.count() == 10


@pytest.mark.django_db(transaction=True)
class TestSweepWhereALockIsHeld:
    """As by an operator's statement (Spec: clocks 14)."""

    def test_is_for_the_organisations_of_other_rows(self, nexus, due, monkeypatch):
        """A foreign key is checked at the commit, which all rows of a turn share."""
        monkeypatch.setattr(scheduler, "TURN", 0)
        other = load_company("dev-team").agent("team-lead")
        IdempotencyRecord.objects.create(agent=other, key="d", request_digest=b"x", due_at=NOW)
        given = connection.get_connection_params()
        where = {name: given[name] for name in ("dbname", "user", "host")}

        def act(row):
            delete(row)
            row.pk, row.due_at = None, NOW + timedelta(hours=1)
            row.save(force_insert=True)

        with psycopg.connect(**where) as operator, connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '100ms'")
            ceo = nexus.agent("ceo").id
            operator.execute("SELECT 1 FROM orgchart_agent WHERE id = %s FOR UPDATE", [ceo])
            assert scheduler.sweep(due, act, of="agent__organisation") == 1
            cursor.execute("RESET lock_timeout")
        assert {row.agent_id for row in due} == {ceo}
        assert due.count() == 10


@pytest.mark.django_db(transaction=True)
class TestThreeBeatsAtOnce:
    def test_share_the_rows_between_them(self, due):
        gate, seen, counts = threading.Barrier(3), [], []

        def act(row):
            seen.append(row.key)
            delete(row)

        def beat():
            gate.wait(PATIENCE)
            try:
                counts.append(scheduler.sweep(due.all(), act, batch=2))
            finally:
                connection.close()

        threads = [threading.Thread(target=beat) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        scheduler.sweep(due.all(), act)
        assert sum(counts) <= 10
        assert sorted(seen) == sorted(f"k{n}" for n in range(10))


@pytest.mark.django_db
class TestRunJob:
    def test_records_when_it_ran_and_what_it_did(self, due):
        assert scheduler.run_job("idempotency", now=NOW) == 10
        run = JobRun.objects.get(name="idempotency")
        assert (run.last_at, run.last_rows, run.rows, run.runs) == (NOW, 10, 10, 1)
        scheduler.run_job("idempotency", now=NOW)
        run.refresh_from_db()
        assert (run.last_rows, run.rows, run.runs) == (0, 10, 2)

    def test_goes_by_the_databases_time(self, due):
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            (before,) = cursor.fetchone()
        scheduler.run_job("idempotency")
        assert JobRun.objects.get().last_at >= before

    def test_records_why_a_handler_failed(self, monkeypatch):
        def broken(_now):
            raise RuntimeError("no database")

        monkeypatch.setitem(scheduler.JOBS, "broken", scheduler.ScheduledJob("broken", 1, broken))
        with pytest.raises(RuntimeError):
            scheduler.run_job("broken", now=NOW)
        assert JobRun.objects.get(name="broken").last_problem == "RuntimeError: no database"

    def test_records_the_rows_that_failed(self, due, monkeypatch):
        def act(row):
            delete(row)
            if row.key in ("k3", "k4"):
                raise RuntimeError(f"broken {row.key}")

        half = scheduler.ScheduledJob(
            "half", 1, lambda _now: scheduler.sweep(due.order_by("key"), act)
        )
        monkeypatch.setitem(scheduler.JOBS, "half", half)
        assert scheduler.run_job("half", now=NOW) == 8
        run = JobRun.objects.get(name="half")
        assert run.last_rows == 8
        assert run.last_problem.startswith("2 rows failed, the first: IdempotencyRecord ")
        assert run.last_problem.endswith("RuntimeError: broken k3")

    def test_refuses_two_jobs_of_one_name(self):
        with pytest.raises(ValueError, match="idempotency"):
            scheduler.scheduled_job("idempotency", every=1)(lambda _now: 0)

    def test_has_a_job_for_everything_that_is_due(self):
        assert set(scheduler.JOBS) >= {
            "idempotency",
            "ledger seals",
            "frames",
            "escalations",
            "notices",
            "deadlines",
            "leases",
        }


@pytest.mark.django_db
class TestJob:
    """What a message of beat does; the job's period is 300 seconds."""

    @pytest.mark.parametrize(
        ("seconds_ago", "problem", "runs"),
        [(100, "", 1), (200, "", 2), (100, "RuntimeError: no", 2), (-3600, "", 2)],
    )
    def test_runs_unless_it_just_ran(self, seconds_ago, problem, runs):
        last = database_now() - timedelta(seconds=seconds_ago)
        JobRun.objects.create(name="idempotency", last_at=last, runs=1, last_problem=problem)
        celery_task.run_job("idempotency")
        assert JobRun.objects.get().runs == runs

    @pytest.mark.parametrize(("hours_ago", "runs"), [(1, 1), (23, 1), (24, 2), (25, 2)])
    def test_of_a_daily_job_comes_every_hour_and_one_a_day_is_used(
        self, hours_ago, runs, monkeypatch
    ):
        daily = scheduler.ScheduledJob("daily", 86400, lambda _now: 0)
        monkeypatch.setitem(scheduler.JOBS, "daily", daily)
        last = database_now() - timedelta(hours=hours_ago)
        JobRun.objects.create(name="daily", last_at=last, runs=1)
        celery_task.run_job("daily")
        assert JobRun.objects.get().runs == runs

    def test_leaves_a_job_alone_that_another_thread_runs(self):
        with celery_task.RUNNING["idempotency"]:
            celery_task.run_job("idempotency")
            celery_task.run_job("frames")
        assert list(JobRun.objects.values_list("name", flat=True)) == ["frames"]

    def test_takes_no_last_thread_to_wait_for_others(self, settings):
        """Spec: clocks 15."""
        others = [name for name, job in scheduler.JOBS.items() if job.waits_for_others]
        for_files = {"files", "charts", "repositories", "git garbage"}
        assert set(others) == {"notices", "deployments", *for_files}
        with ExitStack() as hanging:
            for _ in range(settings.WORKER_THREADS - 1):
                hanging.enter_context(celery_task.WAITING)
            for name in [*others, "frames"]:
                celery_task.run_job(name)
            assert list(JobRun.objects.values_list("name", flat=True)) == ["frames"]
        celery_task.run_job("notices")
        assert set(JobRun.objects.values_list("name", flat=True)) == {*others, "frames"}

    def test_runs_what_found_no_thread_as_soon_as_one_is_free(self, settings, monkeypatch):
        """Garbage comes every hour: beside jobs of each few seconds it would find no place."""
        ran = []

        def notices(_now):
            ran.append("notices")
            celery_task.run_job("git garbage")  # its message comes meanwhile
            return 0

        def garbage(_now):
            ran.append("git garbage")
            return 0

        job = scheduler.ScheduledJob
        monkeypatch.setattr(celery_task, "WAITING", threading.Semaphore(1))
        monkeypatch.setitem(scheduler.JOBS, "notices", job("notices", 5, notices, True))
        monkeypatch.setitem(scheduler.JOBS, "git garbage", job("git garbage", 3600, garbage, True))
        celery_task.run_job("notices")
        assert ran == ["notices", "git garbage"]
        assert not celery_task.MISSED

    def test_keeps_nothing_of_a_job_that_there_is_not(self):
        with capture_logs() as lines:
            celery_task.run_job("forged")
        assert "forged" not in celery_task.RUNNING
        assert [(line["event"], line["job"]) for line in lines] == [("unknown_job", "forged")]

    def test_runs_again_after_a_run_that_failed(self, monkeypatch):
        def broken(_now):
            raise RuntimeError("no database")

        monkeypatch.setitem(scheduler.JOBS, "broken", scheduler.ScheduledJob("broken", 1, broken))
        for _ in range(2):
            with pytest.raises(RuntimeError):
                celery_task.run_job("broken")
        assert JobRun.objects.get(name="broken").runs == 2

    def test_runs_the_first_time(self):
        celery_task.run_job("idempotency")
        assert JobRun.objects.get().runs == 1


@pytest.mark.django_db
class TestAClockThatWasSetBack:
    """A last run in the future would hide for as long that the scheduler is not running."""

    @pytest.fixture(autouse=True)
    def ran(self):
        JobRun.objects.bulk_create(JobRun(name=name, last_at=NOW) for name in scheduler.JOBS)

    def test_hides_no_scheduler_that_is_not_running(self):
        before = NOW - timedelta(days=3)
        assert scheduler.NOT_RUNNING in scheduler.scheduler_problem(now=before)
        assert set(scheduler.late_jobs(now=before)) == set(scheduler.JOBS)

    def test_is_not_one_of_another_machine_that_is_seconds_late(self):
        before = NOW - timedelta(seconds=30)
        assert scheduler.scheduler_problem(now=before) == ""
        assert not scheduler.late_jobs(now=before)
        assert scheduler.seconds_since_last_run(now=before) == 0  # people read it


class TestSchedule:
    def test_lets_beat_send_every_job(self):
        from nexus_site.celery import app

        app.finalize()
        entries = {entry["args"][0]: entry["schedule"] for entry in app.conf.beat_schedule.values()}
        assert entries == {c.name: min(c.every, 3600) for c in scheduler.JOBS.values()}
