"""Expired leases, swept by the real job: rows per second, lateness; PostgreSQL to compare."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from django.db import connection

from lab.bench import postgres
from lab.bench.load import Rate
from lab.bench.report import Report
from ledger.sql import insert
from orgchart.models import Organisation
from tasks.store import READ
from toolbox import scheduler

OTHERS = 20_000
"""Claimed tasks that are not due: PostgreSQL's own rate is measured on them."""

FILL = """
INSERT INTO tasks_task (organisation_id, number, subject, description, active_form, status,
    metadata, required_role, task_type, created_by, owner_id, owner_role, claimed_at, lease_due_at)
SELECT %(organisation)s, %(first)s + n, 'Task ' || n, '', '', 'in_progress', '{}',
    'frontend_worker', '', 'system:bench', %(owner)s, 'frontend_worker', now(),
    now() + CASE WHEN n <= %(due)s THEN interval '-1 day' ELSE interval '1 day' END
FROM generate_series(1, %(count)s) AS n
"""
WATCH = """
CREATE UNLOGGED TABLE bench_swept (at timestamptz);
CREATE FUNCTION bench_swept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO bench_swept VALUES (clock_timestamp());
    RETURN NULL;
END $$;
CREATE TRIGGER bench_swept AFTER UPDATE ON tasks_task FOR EACH ROW
WHEN (NEW.lease_due_at IS NULL AND OLD.lease_due_at IS NOT NULL) EXECUTE FUNCTION bench_swept();
"""


def rows(report: Report, organisation: Organisation, *, due: int) -> None:
    """PostgreSQL's rate for what one released claim writes, then one turn of the organisation.

    All are due at once, so a row's lateness is its wait behind the others.
    """
    organisation.settings |= {"task_lease": 1800}
    organisation.policy_version += 1
    organisation.save()
    agents = {a.handle: a.id for a in organisation.agents.all()}
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(number), 0) FROM tasks_task")
        (first,) = cursor.fetchone()
        values = {
            "organisation": organisation.id,
            "owner": agents["frontend_worker"],
            "first": first,
            "due": due,
            "count": due + OTHERS,
        }
        cursor.execute(FILL, values)
        cursor.execute("VACUUM ANALYZE tasks_task")
    script = _script(organisation.id, agents, first + due)
    own = report.line("PostgreSQL itself: release + notice", 1, _postgres(script))
    with connection.cursor() as cursor:
        cursor.execute(WATCH)
        cursor.execute("SELECT clock_timestamp()")
        (began,) = cursor.fetchone()
    begun = time.perf_counter()
    scheduler.run_job("leases")
    took = time.perf_counter() - begun
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM at - %s) FROM bench_swept", [began])
        late = [float(seconds) for (seconds,) in cursor.fetchall()]
    swept = Rate.of(late, took, 0)
    report.line(f"leases swept, {due} due", 1, swept, own)
    report.value("leases swept by one worker in a minute", swept.per_second * 60, "rows")


def _postgres(script: str) -> Rate:
    return postgres.measure(script=script, clients=1, seconds=3)


def _script(organisation: int, agents: dict[str, int], first: int) -> str:
    """What the job does for one row, in a transaction: read, release, mail, two events."""
    now = datetime.now(UTC)
    read = postgres.literal(READ, {"organisation": organisation, "number": "@n@"})
    event = postgres.event_values(organisation, agents["frontend_worker"], now)
    release = postgres.save_task_script(
        organisation, {"lease_due_at": None, "owner_id": None, "owner_role": ""}, now
    )
    steps = [
        f"\\set n {first} + random(1, {OTHERS})\nBEGIN",
        read,
        release,
        postgres.send_script(organisation, agents),
        postgres.literal(insert(), {f"ev_{name}": value for name, value in event.items()}),
        "COMMIT",
    ]
    script = ";\n".join(steps).replace("'@n@'", ":n")
    return script.replace("'@event@'", "gen_random_uuid()")
