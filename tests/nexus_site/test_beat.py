"""Beat goes by a watch that nobody can set."""

from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from nexus_site.celery import app
from nexus_site.run import beat


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
        assert [(line["event"], line["job"]) for line in lines] == [("job_not_sent", "leases")]
        assert "none.sock" in lines[0]["problem"]
        assert caplog.records == []

    def test_keeps_no_file(self, scheduler):
        assert scheduler.info == ""

    def test_is_the_one_that_beat_uses(self):
        assert app.conf.beat_scheduler == "nexus_site.run.beat:SteadyScheduler"
