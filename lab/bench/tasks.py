"""Claim, update, list and recommend among a million tasks; PostgreSQL to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from django.db import connection

from lab.bench import postgres
from lab.bench.load import Rate, Request, post
from orgchart.models import Organisation
from tasks import listing
from tasks.store import READ

CALL = "/api/v1/tools/"
FEW = 10_000
Measured = Callable[[Request, int, int], Rate]
Line = Callable[..., Rate]

FILL = """
INSERT INTO tasks_task (organisation_id, number, subject, description, active_form, status,
    metadata, required_role, task_type, created_by, completed_at)
SELECT %(organisation)s, n, 'Task ' || n, repeat('All is well. ', 10), '',
    (ARRAY['pending', 'completed'])[n %% 2 + 1], '{}',
    (ARRAY['', 'backend_worker', 'frontend_worker', 'qa_worker'])[n / 2 %% 4 + 1],
    (ARRAY['', 'testing', 'bug_fix'])[n %% 3 + 1], 'system:bench', now()
FROM generate_series(%(first)s, %(last)s) AS n
"""


def fill(organisation: Organisation, *, first: int, last: int) -> None:
    """Put tasks into the organisation: half of them pending, of four roles and three types."""
    with connection.cursor() as cursor:
        cursor.execute(FILL, {"organisation": organisation.id, "first": first, "last": last})
        cursor.execute(
            "INSERT INTO tasks_counter (organisation_id, last) VALUES (%s, %s) "
            "ON CONFLICT (organisation_id) DO UPDATE SET last = EXCLUDED.last",
            [organisation.id, last],
        )
        cursor.execute("VACUUM ANALYZE tasks_task")


def rows(
    line: Line,
    rate: Measured,
    organisation: Organisation,
    keys: dict[str, str],
    *,
    count: int,
    clients: tuple[int, ...],
) -> None:
    """One line for each measurement and number of clients, with few tasks and with many."""
    fill(organisation, first=1, last=FEW)
    small = {many: _pages(line, rate, keys, many, f"{FEW} tasks") for many in clients}
    fill(organisation, first=FEW + 1, last=count)
    free = iter(range(2, count, 2))
    for many in clients:
        _pages(line, rate, keys, many, f"{count} tasks", small[many])
        script = claim_script(organisation.id, count)
        own = postgres.measure(script=script, clients=many, seconds=3)
        base = line("PostgreSQL itself: read + claim + event", many, own)
        claim = _claims(free, keys["backend_worker"]).__next__
        line("task_update, claim", many, rate(claim, many, 200), base)
        update = _updates(keys["it_manager"], count).__next__
        line("task_update, text", many, rate(update, many, 200), base)
        script = list_script(organisation.id)
        own = postgres.measure(script=script, clients=many, seconds=3)
        line("PostgreSQL itself: page of tasks", many, own)


def _pages(
    line: Line,
    rate: Measured,
    keys: dict[str, str],
    clients: int,
    size: str,
    compared: tuple[Rate, Rate] | None = None,
) -> tuple[Rate, Rate]:
    key = keys["backend_worker"]
    page = post(
        CALL + "task_list",
        {"roleFilter": "backend_worker", "status": "pending", "owner": ""},
        key,
    )
    best = post(CALL + "task_recommend", {}, key)
    one, other = compared or (None, None)
    return (
        line(f"task_list, {size}", clients, rate(lambda: page, clients, 200), one),
        line(f"task_recommend, {size}", clients, rate(lambda: best, clients, 200), other),
    )


def _claims(free: Iterator[int], key: str) -> Iterator[bytes]:
    """Claims of one task after the other, of those that require the role or none."""
    for number in free:
        if number // 2 % 4 in (0, 1):
            body = {"taskId": str(number), "owner": "backend_worker", "expectedVersion": 1}
            yield post(CALL + "task_update", body, key)


def _updates(key: str, count: int) -> Iterator[bytes]:
    """Updates by a task lead of tasks all over the list."""
    number = 1
    while True:
        number = (number + 99_991) % (count - 1) + 1
        yield post(CALL + "task_update", {"taskId": str(number), "description": "Changed."}, key)


def claim_script(organisation: int, count: int) -> str:
    """The two statements of a claim, on a task that pgbench draws."""
    now = datetime.now(UTC)
    read = postgres.literal(READ, {"organisation": organisation, "number": "@n@"})
    write = postgres.save_task_script(
        organisation,
        {"claimed_at": now, "lease_due_at": None, "owner_role": "backend_worker"},
        now,
    )
    # Odd numbers: the measured claims are of even ones, and must find their version.
    script = f"\\set n 2 * random(1, {count // 2 - 1}) + 1\n{read};\n{write}"
    return script.replace("'@n@'", ":n").replace("'@event@'", "gen_random_uuid()")


def list_script(organisation: int) -> str:
    """The statement of the page that is measured."""
    return postgres.literal(
        listing.statement("none", by_role=True, namesake=False),
        {
            "organisation": organisation,
            "statuses": ["pending"],
            "before": listing.BEFORE_ALL,
            "limit": 50,
            "role": "backend_worker",
        },
    )
