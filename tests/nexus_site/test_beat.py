"""Beat goes by a watch that nobody can set."""

import os
import signal
import socket
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from nexus_site.celery import app
from nexus_site.run import beat, worker
from nexus_site.run.fork import fork, status_of
from tests.patience import PATIENCE, wait_until


@pytest.fixture
def watch(monkeypatch):
    """The machine's uptime in seconds, and what the scheduler sent at it."""

    class Watch:
        def __init__(self):
            self.now = 1000.0
            self.sent = []

        def run(self, scheduler, seconds):
            ends = self.now + seconds
            while self.now <= ends:
                pause = scheduler.tick()
                self.now += pause or 0.0

    watch = Watch()
    monkeypatch.setattr(beat.time, "monotonic", lambda: watch.now)
    monkeypatch.setattr(
        beat.SteadyScheduler, "apply_entry", lambda _, entry, **__: watch.sent.append(entry.name)
    )
    monkeypatch.setattr(beat.SteadyScheduler, "producer", None)
    return watch


@pytest.fixture
def scheduler():
    app.finalize()
    return beat.SteadyScheduler(app=app)


def of_the_scheduler(lines):
    """Without what the listener of an earlier test's server says of its connection."""
    return [line for line in lines if line["event"] != "wake_not_heard"]


class TestSteadyScheduler:
    def test_looks_at_every_clock_when_it_begins(self, scheduler, watch):
        watch.run(scheduler, 0.0)
        assert sorted(watch.sent) == sorted(scheduler.schedule)

    def test_looks_as_often_as_a_clock_asks(self, scheduler, watch):
        watch.run(scheduler, 60.0)
        for name, entry in scheduler.schedule.items():
            often = 60 // entry.schedule.run_every.total_seconds() + 1
            assert watch.sent.count(name) in (often, often - 1)

    @pytest.mark.parametrize("jump", [3600, -3600])
    def test_does_not_mind_a_wall_clock_that_jumps(self, scheduler, watch, monkeypatch, jump):
        watch.run(scheduler, 30.0)
        before, wall = len(watch.sent), datetime.now(UTC) + timedelta(seconds=jump)
        monkeypatch.setattr(beat.ScheduleEntry, "default_now", lambda _: wall)
        watch.run(scheduler, 60.0)
        assert len(watch.sent) > before
        assert watch.sent[before:].count("frames") in range(11, 14)

    def test_says_in_one_line_that_a_job_was_not_sent(self, scheduler, tmp_path, caplog):
        entry = scheduler.schedule["leases"]
        nobody = app.connection_for_write(f"redis+socket://{tmp_path}/none.sock")
        with nobody, capture_logs() as lines:
            scheduler.apply_entry(entry, producer=app.amqp.Producer(nobody, auto_declare=False))
        said = [(line["event"], line["job"]) for line in of_the_scheduler(lines)]
        assert said == [("job_not_sent", "leases")]
        assert "none.sock" in lines[0]["problem"]
        assert caplog.records == []

    def test_goes_on_where_the_broker_never_answers(self, scheduler, monkeypatch):
        """As where the network was cut without a word: the connection is there, and silent."""
        for name in app.conf.broker_transport_options:
            monkeypatch.setitem(app.conf.broker_transport_options, name, 0.1)
        said = []

        def send(address):
            silent = app.connection_for_write(address)
            with silent, capture_logs() as lines:
                producer = app.amqp.Producer(silent, auto_declare=False)
                scheduler.apply_entry(scheduler.schedule["leases"], producer=producer)
            said.extend(lines)

        with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
            address = "redis://{}:{}/0".format(*server.getsockname())
            sending = threading.Thread(target=send, args=(address,), daemon=True)
            sending.start()
            sending.join(PATIENCE / 3)
            assert not sending.is_alive()
        assert [line["event"] for line in of_the_scheduler(said)] == ["job_not_sent"]

    def test_keeps_no_file(self, scheduler):
        assert scheduler.info == ""

    def test_is_the_one_that_beat_uses(self):
        assert app.conf.beat_scheduler == "nexus_site.run.beat:SteadyScheduler"


def test_ends_when_it_is_asked_to_whatever_it_is_doing(monkeypatch, tmp_path):
    """Also in code that catches every exception, as a connection that has just died does."""
    ticked = tmp_path / "ticked"

    def tick(_):
        ticked.touch()
        with suppress(BaseException):
            time.sleep(PATIENCE)
        return 0.01

    monkeypatch.setattr(beat.SteadyScheduler, "tick", tick)
    pid = fork(worker.beat)
    try:
        wait_until(ticked.exists)
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: status_of(pid) is not None)
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        raise
