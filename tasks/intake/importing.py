"""Importing tasks from files: all in one transaction, or none; no task twice."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any

from django.db import connection, transaction
from django.db.models import F, QuerySet

from core.actions import Action
from core.actors import Actor
from core.database import planned_for_values, rows_of_array
from core.events import Event
from core.limits import BIGGEST_VERSION
from ledger.services import insert_events
from orgchart.policy.compiled import Policy
from tasks.dependencies import count_dependencies, lock_dependencies
from tasks.intake.files import MAX_DIGITS, FileEntry, StoredTask, TaskFiles
from tasks.models import Dependency, Task
from tasks.rules.changes import lease_due_at, subject_of
from tasks.vocabulary import UNFINISHED, Status

AT_ONCE = 1000
"""Rows of one INSERT."""
SHOWN = 10
"""Tasks of a circle that its message names."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result for one object: `imported`, `exists` (left as it is) or `bad`.

    `good`: valid, but not imported because another one is bad.
    """

    place: str
    result: str
    detail: str = ""


class NothingImported(Exception):
    """At least one object is bad, so nothing was imported; carries the result for each."""

    def __init__(self, outcomes: Sequence[ImportResult]) -> None:
        super().__init__("nothing was imported")
        self.outcomes = list(outcomes)


def import_tasks(
    *, caller: Actor, policy: Policy, files: TaskFiles, skip_bad: bool, now: datetime
) -> list[ImportResult]:
    """Insert the tasks of the files with their ids and versions; leave existing tasks as they are.

    Raises NothingImported, with nothing changed, for a bad object unless `skip_bad`.
    """
    with transaction.atomic():
        lock_dependencies(policy.organisation_id)
        good = [(one, one.task) for one in files.found if one.task is not None]
        existing = _existing(policy.organisation_id, [int(task.id) for _, task in good])
        fresh = [(one, task) for one, task in good if int(task.id) not in existing]
        broken = _broken(policy.organisation_id, [task for _, task in fresh])
        outcomes = [_outcome(one, existing, broken) for one in files.found]
        if any(one.result == "bad" for one in outcomes) and not skip_bad:
            raise NothingImported([_not_imported(one) for one in outcomes])
        _insert_tasks(caller, policy, [task for _, task in fresh if task.id not in broken], now)
    return outcomes


def _outcome(one: FileEntry, existing: set[int], broken: dict[str, str]) -> ImportResult:
    if one.task is None:
        return ImportResult(one.place, "bad", one.problem)
    if int(one.task.id) in existing:
        return ImportResult(one.place, "exists", f"#{one.task.id} exists and is not changed")
    if one.task.id in broken:
        return ImportResult(one.place, "bad", broken[one.task.id])
    return ImportResult(one.place, "imported", f"#{one.task.id} {one.task.subject}")


def _not_imported(one: ImportResult) -> ImportResult:
    return replace(one, result="good") if one.result == "imported" else one


def _existing(organisation_id: int, numbers: list[int]) -> set[int]:
    return set(_of_numbers(organisation_id, numbers).values_list("number", flat=True))


def _of_numbers(organisation_id: int, numbers: Collection[int]) -> QuerySet[Task]:
    """The tasks with these numbers, of which there may be hundreds of thousands."""
    found = rows_of_array(list(numbers), "bigint")
    return Task.objects.filter(organisation_id=organisation_id, number__in=found)


def _broken(organisation_id: int, tasks: Sequence[StoredTask]) -> dict[str, str]:
    """Tasks with missing neighbours, completed before a blocker, or in a circle."""
    broken = {
        task.id: f"the id of a new task has {MAX_DIGITS} digits at most"
        for task in tasks
        if len(task.id) > MAX_DIGITS
    }
    by_id = {task.id: task for task in tasks}
    named = {int(other) for task in tasks for other in (*task.blocks, *task.blocked_by)}
    there = dict(_of_numbers(organisation_id, named).values_list("number", "status"))
    while True:  # a task that names a broken one is broken too
        left = {one: task for one, task in by_id.items() if one not in broken}
        found: dict[str, str] = {}
        for task in left.values():
            missing = [
                other
                for other in (*task.blocks, *task.blocked_by)
                if other not in left and int(other) not in there
            ]
            if missing:
                found[task.id] = f"it names #{missing[0]}, which does not exist"
        for blocker, blocked in _edges(left.values()):
            states = [left[one].status if one in left else there.get(int(one)) for one in
                      (blocker, blocked)]  # fmt: skip
            if states[0] in UNFINISHED and states[1] == Status.COMPLETED:
                found[blocked if blocked in left else blocker] = (
                    f"#{blocked} is completed while #{blocker}, which blocks it, is not"
                )
        if not found:
            found = _in_circles(organisation_id, left, joins_old=bool(there))
        if not found:
            return broken
        broken |= found


def _in_circles(
    organisation_id: int, tasks: Mapping[str, StoredTask], *, joins_old: bool
) -> dict[str, str]:
    """Tasks that would close a circle, alone or with existing ones, and the circle."""
    before: dict[int, set[int]] = {}
    edges = {(int(blocker), int(blocked)) for blocker, blocked in _edges(tasks.values())}
    if joins_old:
        old = Dependency.objects.filter(blocker__organisation_id=organisation_id)
        with planned_for_values():
            edges |= set(old.values_list("blocker__number", "blocked__number"))
    for blocker, blocked in edges:
        before.setdefault(blocked, set()).add(blocker)
    found: dict[str, str] = {}
    while (circle := _circle(before)) is not None:
        named = " > ".join(f"#{number}" for number in circle[:SHOWN])
        more = " > …" if len(circle) > SHOWN else ""
        closing = {number for number in circle if str(number) in tasks}
        for number in closing:
            found[str(number)] = f"blocks and blockedBy close a circle: {named}{more}"
        before = {
            number: ahead - closing for number, ahead in before.items() if number not in closing
        }
    return found


def _circle(before: Mapping[int, set[int]]) -> list[int] | None:
    try:
        TopologicalSorter(before).prepare()
    except CycleError as problem:
        circle: list[int] = problem.args[1]
        return circle
    return None


def _edges(tasks: Any) -> set[tuple[str, str]]:
    listed = list(tasks)
    down = {(task.id, other) for task in listed for other in task.blocks}
    return down | {(other, task.id) for task in listed for other in task.blocked_by}


def _insert_tasks(
    caller: Actor, policy: Policy, tasks: Sequence[StoredTask], now: datetime
) -> None:
    """Insert tasks, dependencies and events; the number of statements does not grow with tasks."""
    organisation_id = policy.organisation_id
    fresh = [
        Task(organisation_id=organisation_id, **_columns(task, policy, caller, now))
        for task in tasks
    ]
    Task.objects.bulk_create(fresh, batch_size=AT_ONCE)
    edges = {(int(blocker), int(blocked)) for blocker, blocked in _edges(tasks)}
    numbers = {number for edge in edges for number in edge}
    ids = dict(_of_numbers(organisation_id, numbers).values_list("number", "id"))
    Dependency.objects.bulk_create(
        [
            Dependency(
                organisation_id=organisation_id, blocker_id=ids[blocker], blocked_id=ids[blocked]
            )
            for blocker, blocked in _from_the_first(edges)
        ],
        batch_size=AT_ONCE,
        ignore_conflicts=True,
    )
    new = {task.number for task in fresh}
    joined = sorted({blocked for _, blocked in edges} - new)
    _of_numbers(organisation_id, joined).filter(version__lt=BIGGEST_VERSION).update(
        version=F("version") + 1, updated_at=now
    )
    events = [
        _event(
            Action.TASK_IMPORTED,
            caller,
            policy,
            int(task.id),
            now,
            details={"version": task.version, "status": task.status.value},
        )
        for task in tasks
    ]
    events += [_event(Action.TASK_JOINED, caller, policy, number, now) for number in joined]
    insert_events(events)
    # Each edge names a new task, so none was there before.
    count_dependencies([(ids[blocker], ids[blocked]) for blocker, blocked in edges])
    if new:
        _advance(organisation_id, max(new))


def _event(
    action: Action, caller: Actor, policy: Policy, number: int, now: datetime, **fields: Any
) -> Event:
    subject = subject_of(policy, number)
    return Event.by(caller, action, at=now, subject=subject, kind="task", **fields)


def _from_the_first(edges: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """The dependencies in the order of the work.

    A task's dependants follow it, so that the trigger, which walks them, finds none yet.
    """
    before: dict[int, set[int]] = {}
    for blocker, blocked in edges:
        before.setdefault(blocked, set()).add(blocker)
    place = {number: at for at, number in enumerate(TopologicalSorter(before).static_order())}
    return sorted(edges, key=lambda edge: (place[edge[0]], place[edge[1]]))


ADVANCE = """
INSERT INTO tasks_counter AS c (organisation_id, last) VALUES (%(organisation)s, %(last)s)
ON CONFLICT (organisation_id) DO UPDATE SET last = greatest(c.last, EXCLUDED.last)
"""


def _advance(organisation_id: int, last: int) -> None:
    """Go on counting behind this number."""
    with connection.cursor() as cursor:
        cursor.execute(ADVANCE, {"organisation": organisation_id, "last": last})


def _columns(task: StoredTask, policy: Policy, caller: Actor, now: datetime) -> dict[str, Any]:
    owner = policy.resolve(task.owner) if task.owner else None
    at = task.updated_at or task.created_at or now
    ended = task.status is Status.COMPLETED
    return {
        "number": int(task.id),
        "subject": task.subject,
        "description": task.description,
        "active_form": task.active_form or "",
        "status": task.status,
        "owner_id": owner.id if owner else None,
        "owner_role": owner.role if owner else "",
        "cross_role": bool(owner and task.required_role not in (None, "", owner.role)),
        "workers": [owner.id] if owner else [],
        "metadata": task.metadata or {},
        "required_role": task.required_role or "",
        "task_type": task.task_type or "",
        "version": task.version,
        "claimed_at": at if owner else None,
        "started_at": at if task.status is Status.IN_PROGRESS else None,
        "completed_at": at if ended else None,
        "completed_by_id": owner.id if owner and ended else None,
        "lease_due_at": lease_due_at(policy, now)
        if owner and task.status is Status.IN_PROGRESS
        else None,
        "created_by": caller.actor,
        "created_at": task.created_at or at,
        "updated_at": at,
    }
