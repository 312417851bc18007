"""How many seals the job makes under constant traffic, and what is left unsealed."""

import pytest
from django.db import connection

from ledger.models import Event, Seal
from tests.ledger.world import sealed_seqs, wait_until_ended
from toolbox import schedule  # noqa: F401  declares the job
from toolbox.scheduler import JOBS, run_job

JOB = "ledger seals"
EVENTS_A_SECOND = 500
SEALS_A_MINUTE = 12
LATEST = 10
"""Seconds within which an event is sealed."""
TRAFFIC = """
INSERT INTO ledger_event (id, action, actor, at, decision, digest)
SELECT gen_random_uuid(), 'mail.delivered', 'agent:x', now(), 'allow', sha256(n::text::bytea)
FROM generate_series(1, %s) AS n
"""


@pytest.fixture(autouse=True)
def signs(settings, tmp_path):
    settings.LEDGER_DIR = tmp_path


def let_pass(seconds: float) -> None:
    """What is recorded in a time, in transactions of ten events."""
    with connection.cursor() as cursor:
        for _ in range(int(seconds * EVENTS_A_SECOND / 10)):
            cursor.execute(TRAFFIC, [10])


class TestSealsJob:
    def test_makes_one_seal_a_run_and_leaves_nothing_that_had_committed(self, transactional_db):
        for run in range(1, 4):
            let_pass(JOBS[JOB].every)
            wait_until_ended()
            assert run_job(JOB) == 1
            assert Seal.objects.count() == run
            assert Event.objects.count() == len(sealed_seqs()) == Seal.objects.count() * 2500

    def test_runs_often_enough_and_not_more(self):
        """An event waits for one run at most, and a run may take as long as the time between."""
        assert 60 / JOBS[JOB].every <= SEALS_A_MINUTE
        assert 2 * JOBS[JOB].every <= LATEST
