"""What proxies and Prometheus ask."""

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Thread

import psycopg
import pytest
from celery import Celery
from django.db import DatabaseError, InternalError, connection

from core.database import database_now
from documents import root
from ledger.sealer import Backlog
from nexus_site.serving import health
from nexus_site.serving.metrics import STATE
from tests.patience import PATIENCE, wait_until
from toolbox.models import JobRun
from toolbox.scheduler import JOBS, NOT_RUNNING
from workspace.sandbox.weaknesses import status as isolation_status


class TestAlive:
    def test_answers_without_a_database(self, client):
        assert client.get("/healthz").json() == {"status": "alive"}

    def test_takes_no_orders(self, client):
        assert client.post("/healthz").status_code == 405


@pytest.fixture(autouse=True)
def nothing_checked_yet():
    health.readiness.forget()
    for metrics in (*STATE._collector_to_names, *health.LIVE._collector_to_names):
        metrics._families.forget()


@pytest.fixture
def broker(monkeypatch):
    """A broker that is always there."""
    monkeypatch.setattr(health, "app", Celery(broker="memory://"))


@pytest.mark.django_db
class TestReady:
    def test_answers_when_database_and_broker_are_reachable(self, client, broker):
        response = client.get("/readyz")
        assert response.status_code == 200
        assert response.json() == {
            "status": "ready",
            "database": "reachable",
            "broker": "reachable",
            "scheduler": f"{NOT_RUNNING} (no job has run yet)",
            "ledger": "sealed",
            "files": "reachable",
            "hands": isolation_status(),
        }

    @pytest.mark.parametrize(
        ("silent", "word"),
        [(3, r"last run \d+ s ago"), (300, NOT_RUNNING + r" \(last run 3\d\d s ago\)")],
    )
    def test_says_how_long_the_clocks_were_silent(self, client, broker, silent, word):
        last = database_now() - timedelta(seconds=silent)
        for name in JOBS:
            JobRun.objects.update_or_create(name=name, defaults={"last_at": last})
        assert re.fullmatch(word, client.get("/readyz").json()["scheduler"])

    def test_names_the_jobs_that_are_late(self, client, broker):
        last = {"leases": 61, "charts": 800, "files": 100}
        for name in set(JOBS) - {"notices"}:
            at = database_now() - timedelta(seconds=last.get(name, 2))
            JobRun.objects.update_or_create(name=name, defaults={"last_at": at})
        word = client.get("/readyz").json()["scheduler"]
        assert re.match(r"last run \d+ s ago; late: ", word)
        assert set(word.partition("late: ")[2].split(", ")) == {"leases", "files", "notices"}

    def test_names_the_jobs_that_fail(self, client, broker):
        for name in JOBS:
            problem = "1 rows failed, the first: x" if name == "leases" else ""
            values = {"last_at": database_now(), "last_problem": problem}
            JobRun.objects.update_or_create(name=name, defaults=values)
        assert client.get("/readyz").json()["scheduler"].endswith("; failing: leases")
        assert "nexus_scheduler_failing_jobs 1.0" in client.get("/metrics").content.decode()

    def test_is_found_out_once_a_second_whoever_asks(self, client, broker, monkeypatch):
        found = []
        check = health.database_problem
        monkeypatch.setattr(health, "database_problem", lambda: found.append(1) or check())
        for _ in range(20):
            assert client.get("/readyz").status_code == 200
        assert 1 <= len(found) < 20

    def test_says_that_events_wait_for_their_seal(self, client, broker, monkeypatch):
        late = Backlog(seq=5, seconds=61.0, holder=None)
        monkeypatch.setattr(health, "read_backlog", lambda now: late)
        assert client.get("/readyz").json()["ledger"].startswith("NOT SEALED for 61 s")

    def test_says_that_the_ledger_does_not_end_as_it_was_kept(self, client, broker, monkeypatch):
        """Without what is wrong: strangers may ask."""
        assert client.get("/readyz").json()["ledger"] == "sealed"
        monkeypatch.setattr(health.chain_end, "is_whole", lambda: False)
        health.readiness.forget()
        said = client.get("/readyz").json()["ledger"]
        assert said == "NOT WHOLE: see `manage.py ledger verify`"
        late = Backlog(seq=5, seconds=61.0, holder=None)
        monkeypatch.setattr(health, "read_backlog", lambda now: late)
        health.readiness.forget()
        said = client.get("/readyz").json()["ledger"]
        assert said == "NOT SEALED for 61 s, NOT WHOLE: see `manage.py ledger verify`"

    def test_says_that_the_disk_of_the_ledger_hangs(self, client, broker, monkeypatch):
        monkeypatch.setattr(health.chain_end, "is_whole", lambda: False)
        monkeypatch.setattr(health.chain_end, "folder_answers", lambda: False)
        answer = client.get("/readyz")
        assert answer.status_code == 200
        assert answer.json()["ledger"] == "its folder, LEDGER_DIR, does not answer"

    def test_says_that_the_company_tree_is_missing(self, client, broker, monkeypatch):
        monkeypatch.setattr(root.ask_mark, "_find", lambda: "")
        monkeypatch.setattr(root, "_known", lambda path, here: "ours")
        answer = client.get("/readyz")
        assert answer.status_code == 200
        assert "its disk may not be mounted" in answer.json()["files"]

    def test_is_unavailable_without_its_database(self, client, broker, monkeypatch):
        monkeypatch.setitem(health.QUICKLY, "port", "1")
        response = client.get("/readyz")
        assert response.status_code == 503
        assert response.json()["database"] == "OperationalError"
        assert response.json()["scheduler"] == "unknown"

    def test_is_unavailable_while_the_pool_has_no_connection(self, client, broker, monkeypatch):
        def nothing_left():
            raise DatabaseError

        monkeypatch.setattr(health, "scheduler_status", nothing_left)
        response = client.get("/readyz")
        assert response.status_code == 503
        assert response.json()["database"] == "DatabaseError"

    def test_is_ready_where_an_index_of_the_ledger_is_damaged(self, client, broker, monkeypatch):
        """A proxy took every machine out of its turn, while agents could work."""

        def read(**_):
            raise InternalError from psycopg.errors.DataCorrupted()

        monkeypatch.setattr(health, "read_backlog", read)
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["database"]) == (200, "reachable")
        assert answer.json()["ledger"].startswith("unknown: a file of PostgreSQL is damaged")

    @pytest.mark.django_db(transaction=True)
    def test_waits_for_no_server_that_hangs(self, client, broker, monkeypatch):
        """A proxy in front of it still takes connections."""
        monkeypatch.setattr(health, "QUESTION", "SELECT pg_sleep(5)")
        monkeypatch.setattr(health, "ANSWER_SECONDS", 0.2)
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")

    def test_waits_for_no_lock(self, client, broker):
        """As of an operator who forgot an open transaction."""
        given = connection.get_connection_params()
        where = {name: given[name] for name in ("dbname", "user", "host")}

        def look():
            try:
                return health.check_readiness()
            finally:
                connection.close()

        with ThreadPoolExecutor(1) as threads, psycopg.connect(**where) as other:
            other.execute("LOCK TABLE ledger_event IN ACCESS EXCLUSIVE MODE")
            fine, words = threads.submit(look).result(PATIENCE)
        assert (fine, words["database"], words["ledger"]) == (False, "OperationalError", "unknown")

    def test_waits_for_no_broker_that_hangs(self, tmp_path, monkeypatch):
        """A broker that stands still took every thread that asked for it, those of agents too."""
        with socket.socket(socket.AF_UNIX) as still:
            still.bind(str(tmp_path / "broker"))
            still.listen()
            hanging = Celery(broker=f"redis+socket://{tmp_path}/broker")
            monkeypatch.setattr(health, "app", hanging)
            said = []
            Thread(target=lambda: said.append(health.broker_problem()), daemon=True).start()
            wait_until(lambda: said, "it waits for ever")
        assert said == ["OperationalError"]

    def test_is_unavailable_without_its_broker(self, client, monkeypatch):
        monkeypatch.setattr(health, "app", Celery(broker="redis://127.0.0.1:1/0"))
        response = client.get("/readyz")
        assert response.status_code == 503
        assert response.json()["broker"] == "OperationalError"


@pytest.mark.django_db
class TestMetrics:
    def test_counts_requests_by_route_and_status(self, client):
        client.get("/healthz")
        text = client.get("/metrics").content.decode()
        assert 'nexus_http_request_seconds_count{method="GET",route="healthz",status="200"}' in text

    @pytest.mark.parametrize(("whole", "value"), [(True, "1.0"), (False, "0.0")])
    def test_say_whether_the_ledger_is_whole(self, client, monkeypatch, whole, value):
        monkeypatch.setattr(health.chain_end, "is_whole", lambda: whole)
        assert f"nexus_ledger_whole {value}" in client.get("/metrics").content.decode()

    def test_answer_this_machine_only(self, client):
        assert client.get("/metrics", REMOTE_ADDR="192.0.2.1").status_code == 401
        forged = {"REMOTE_ADDR": "192.0.2.1", "HTTP_X_FORWARDED_FOR": "127.0.0.1"}
        assert client.get("/metrics", **forged).status_code == 401

    def test_need_the_token_where_there_is_one(self, client, settings):
        settings.METRICS_TOKEN = "s3cret"
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", HTTP_AUTHORIZATION="Bearer other").status_code == 401
        found = client.get("/metrics", REMOTE_ADDR="1.2.3.4", HTTP_AUTHORIZATION="Bearer s3cret")
        assert found.status_code == 200

    def test_need_a_token_in_production(self, client, settings):
        settings.PRODUCTION = True
        assert client.get("/metrics").status_code == 401

    def test_do_not_grow_with_invented_methods_and_paths(self, client):
        for number in range(20):
            client.generic(f"INVENTED{number}", f"/nowhere/{number}")
            client.get(f"/api/v1/nowhere/{number}")
        text = client.get("/metrics").content.decode()
        assert "INVENTED" not in text
        assert "nowhere" not in text

    def test_counts_on_at_once_while_its_database_is_gone(self, client, monkeypatch):
        """Prometheus waits ten seconds, the pool for a connection as long."""
        monkeypatch.setitem(health.QUICKLY, "port", "1")
        text = client.get("/metrics").content
        assert b"nexus_http_request_seconds" in text
        assert b"nexus_work" not in text

    @pytest.mark.django_db(transaction=True)
    def test_wait_for_no_lock(self, client):
        given = connection.get_connection_params()
        where = {name: given[name] for name in ("dbname", "user", "host")}
        with psycopg.connect(**where) as other:
            other.execute("LOCK TABLE tasks_task IN ACCESS EXCLUSIVE MODE")
            text = client.get("/metrics").content
        assert b"nexus_tasks_unfinished" not in text
        assert b"nexus_ledger_whole" in text

    def test_counts_on_without_its_database(self, client, monkeypatch):
        def lost(registry):
            raise DatabaseError

        monkeypatch.setattr(health, "generate_latest", lost)
        assert b"nexus_http_request_seconds" in client.get("/metrics").content
