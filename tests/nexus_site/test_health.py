"""What proxies and Prometheus ask."""

import re
from datetime import timedelta

import pytest
from celery import Celery
from django.db import DatabaseError

from nexus_site.serving import health
from toolbox.models import JobRun
from toolbox.scheduler import JOBS, NOT_RUNNING, database_now


class TestAlive:
    def test_answers_without_a_database(self, client):
        assert client.get("/healthz").json() == {"status": "alive"}

    def test_takes_no_orders(self, client):
        assert client.post("/healthz").status_code == 405


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
        }

    @pytest.mark.parametrize(
        ("silent", "word"),
        [(3, r"last run \d+ s ago"), (300, NOT_RUNNING + r" \(last run 3\d\d s ago\)")],
    )
    def test_says_how_long_the_clocks_were_silent(self, client, silent, word):
        last = database_now() - timedelta(seconds=silent)
        for name in JOBS:
            JobRun.objects.update_or_create(name=name, defaults={"last_at": last})
        assert re.fullmatch(word, client.get("/readyz").json()["scheduler"])

    def test_names_the_jobs_that_are_late(self, client):
        last = {"leases": 61, "charts": 800, "files": 100}
        for name in set(JOBS) - {"notices"}:
            at = database_now() - timedelta(seconds=last.get(name, 2))
            JobRun.objects.update_or_create(name=name, defaults={"last_at": at})
        word = client.get("/readyz").json()["scheduler"]
        assert re.match(r"last run \d+ s ago; late: ", word)
        assert set(word.partition("late: ")[2].split(", ")) == {"leases", "files", "notices"}

    def test_is_unavailable_without_its_database(self, client, monkeypatch):
        monkeypatch.setitem(health.QUICKLY, "port", "1")
        response = client.get("/readyz")
        assert response.status_code == 503
        assert response.json()["database"] == "OperationalError"
        assert response.json()["scheduler"] == "unknown"

    def test_is_unavailable_while_the_pool_has_no_connection(self, client, monkeypatch):
        def nothing_left():
            raise DatabaseError

        monkeypatch.setattr(health, "scheduler_status", nothing_left)
        response = client.get("/readyz")
        assert response.status_code == 503
        assert response.json()["database"] == "DatabaseError"

    def test_is_unavailable_without_its_broker(self, client, monkeypatch):
        monkeypatch.setattr(health, "app", Celery(broker="redis://127.0.0.1:1/0"))
        response = client.get("/readyz")
        assert response.status_code == 503
        assert response.json()["broker"] != "reachable"


@pytest.mark.django_db
class TestMetrics:
    def test_counts_requests_by_route_and_status(self, client):
        client.get("/healthz")
        text = client.get("/metrics").content.decode()
        assert 'nexus_http_request_seconds_count{method="GET",route="healthz",status="200"}' in text

    def test_counts_on_without_its_database(self, client, monkeypatch):
        def lost(registry):
            raise DatabaseError

        monkeypatch.setattr(health, "generate_latest", lost)
        assert b"nexus_http_request_seconds" in client.get("/metrics").content
