"""What proxies and Prometheus ask."""

from datetime import timedelta

import pytest
from celery import Celery
from django.db import DatabaseError

from nexus_site import health
from toolbox.clock import database_now
from toolbox.models import ClockRun


class TestAlive:
    def test_answers_without_a_database(self, client):
        assert client.get("/healthz").json() == {"status": "alive"}

    def test_takes_no_orders(self, client):
        assert client.post("/healthz").status_code == 405


@pytest.mark.django_db
class TestReady:
    def test_answers_when_database_and_broker_are_reachable(self, client):
        response = client.get("/readyz")
        assert response.status_code == 200
        assert response.json() == {
            "status": "ready",
            "database": "reachable",
            "broker": "reachable",
            "clocks": "no beat was ever heard",
        }

    @pytest.mark.parametrize(
        ("silent", "word"), [(3, "heard 3 s ago"), (300, "no beat was heard for 300 s")]
    )
    def test_says_how_long_the_clocks_were_silent(self, client, silent, word):
        last = database_now() - timedelta(seconds=silent)
        ClockRun.objects.update_or_create(name="seals", defaults={"last_at": last})
        assert client.get("/readyz").json()["clocks"] == word

    def test_is_unavailable_without_its_database(self, client, monkeypatch):
        class Lost:
            def cursor(self):
                raise DatabaseError

        monkeypatch.setattr(health, "connection", Lost())
        response = client.get("/readyz")
        assert response.status_code == 503
        assert response.json()["database"] == "DatabaseError"

    def test_is_unavailable_without_its_broker_folder(self, client, settings, tmp_path):
        settings.NEXUS_BROKER_FOLDER = tmp_path / "missing"
        response = client.get("/readyz")
        assert response.status_code == 503
        assert "missing" in response.json()["broker"]

    def test_is_unavailable_without_its_redis(self, client, settings, monkeypatch):
        settings.REDIS_URL = "redis://127.0.0.1:1/0"
        monkeypatch.setattr(health, "app", Celery(broker=settings.REDIS_URL))
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
