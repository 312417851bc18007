"""Leases that ran out, swept by the real clock: rows per second and lateness, beside PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from ledger.sql import insert
from nexus_site.bench import postgres
from nexus_site.bench.load import Rate
from orgchart.models import Organisation
from tasks import writing
from tasks.rows import READ
from toolbox import clock

OTHERS = 20_000
"""Claimed tasks that are not due: PostgreSQL's own rate is measured on them."""

FILL = """
INSERT INTO tasks_task (organisation_id, number, subject, description, active_form, status,
    metadata, required_role, task_type, created_by, owner_id, owner_role, claimed_at, lease_due_at)
SELECT %(organisation)s, %(first)s + n, 'Task ' || n, '', '', 'in_progress', '{}',
    'backend_worker', '', 'system:bench', %(owner)s, 'backend_worker', now(),
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


def rows(line: Callable[..., Rate], organisation: Organisation, *, due: int) -> None:
    """PostgreSQL's rate for what one released claim writes, then the clock over all that is due.

    All are due at once, so a row's lateness is its wait behind the others.
    """
    agents = {a.handle: a.id for a in organisation.agents.all()}
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(number), 0) FROM tasks_task")
        (first,) = cursor.fetchone()
        values = {
            "organisation": organisation.id,
            "owner": agents["backend_worker"],
            "first": first,
            "due": due,
            "count": due + OTHERS,
        }
        cursor.execute(FILL, values)
        cursor.execute("VACUUM ANALYZE tasks_task")
    script = _script(organisation.id, agents, first + due)
    own = line("PostgreSQL itself: release + notice", 1, _postgres(script))
    with connection.cursor() as cursor:
        cursor.execute(WATCH)
        cursor.execute("SELECT clock_timestamp()")
        (began,) = cursor.fetchone()
    begun = time.perf_counter()
    clock.tick("leases")
    took = time.perf_counter() - begun
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM at - %s) FROM bench_swept", [began])
        late = [float(seconds) for (seconds,) in cursor.fetchall()]
    line(f"leases swept, {due} due", 1, Rate.of(late, took, abs(len(late) - due)), own)


def _postgres(script: str) -> Rate:
    return postgres.measure(script=script, clients=1, seconds=3)


def _script(organisation: int, agents: dict[str, int], first: int) -> str:
    """What the clock does for one row, in a transaction: read, release, read, mail, two events."""
    now = datetime.now(UTC)
    read = postgres.literal(READ, {"organisation": organisation, "number": "@n@"})
    event = postgres.event_values(organisation, agents["backend_worker"], now)
    sets: dict[str, Any] = {"lease_due_at": None, "owner_id": None, "owner_role": ""}
    release = writing.statement(tuple(sorted(sets)), claims=False, ends=False, completes=False)
    values: dict[str, Any] = {f"set_{name}": value for name, value in sets.items()}
    values |= {f"ev_{name}": value for name, value in event.items()}
    values |= {"id": "@id@", "seen": 1, "now": now}
    steps = [
        f"\\set n {first} + random(1, {OTHERS})\nBEGIN",
        read,
        postgres.literal(release, values).replace("version = 1", "version >= 1"),
        read,
        postgres.send_script(organisation, agents),
        postgres.literal(insert(), {f"ev_{name}": value for name, value in event.items()}),
        "COMMIT",
    ]
    mine = f"(SELECT id FROM tasks_task WHERE organisation_id = {organisation} AND number = :n)"
    script = ";\n".join(steps).replace("'@n@'", ":n").replace("'@id@'", mine)
    return script.replace("'@event@'", "gen_random_uuid()")
