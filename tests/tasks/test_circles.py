"""Circles of dependencies: the database itself refuses them, and looks once for many."""

from graphlib import CycleError, TopologicalSorter

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.database import violated_values
from tasks.dependencies import NO_CIRCLE
from tasks.models import Dependency, Task
from tests.plans import renew_statistics

TASKS = 6
EDGES = st.tuples(st.integers(0, TASKS - 1), st.integers(0, TASKS - 1)).filter(
    lambda edge: edge[0] != edge[1]
)
READ = """
SELECT sum(pg_stat_get_xact_numscans(one) + pg_stat_get_xact_tuples_returned(one))
FROM (SELECT 'tasks_dependency'::regclass::oid UNION ALL
      SELECT indexrelid FROM pg_index WHERE indrelid = 'tasks_dependency'::regclass) AS t(one)"""
"""Looks into the table and its indexes, and the rows or entries that they returned."""


@pytest.fixture
def tasks(team):
    """Makes tasks of one organisation; no call, so that many are cheap."""

    def make(count):
        first = Task.objects.count() + 1
        rows = [
            Task(organisation=team, number=number, subject="x")
            for number in range(first, first + count)
        ]
        return Task.objects.bulk_create(rows)

    return make


def insert(tasks, edges):
    """Insert the dependencies in their order with one statement, and take it back if it fails."""
    with transaction.atomic():
        Dependency.objects.bulk_create(
            Dependency(
                organisation_id=tasks[0].organisation_id, blocker=tasks[one], blocked=tasks[other]
            )
            for one, other in edges
        )


def has_circle(edges):
    before = {}
    for blocker, blocked in edges:
        before.setdefault(blocked, set()).add(blocker)
    try:
        TopologicalSorter(before).prepare()
    except CycleError:
        return True
    return False


def work():
    with connection.cursor() as cursor:
        cursor.execute(READ)
        return cursor.fetchone()[0]


class TestStatementsOfManyDependencies:
    @given(statements=st.lists(st.lists(EDGES, min_size=1, max_size=8, unique=True), max_size=5))
    @settings(
        max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    def test_are_refused_exactly_where_they_close_a_circle(self, tasks, statements):
        """The error names one of its dependencies, and this one lies on a circle."""
        Dependency.objects.all().delete()
        rows = tasks(TASKS)
        there = set()
        for edges in statements:
            fresh = [edge for edge in edges if edge not in there]
            if not has_circle(there | set(fresh)):
                insert(rows, fresh)
                there |= set(fresh)
                continue
            with pytest.raises(IntegrityError) as refused:
                insert(rows, fresh)
            assert refused.value.__cause__.diag.constraint_name == NO_CIRCLE
            places = {row.id: place for place, row in enumerate(rows)}
            blocker, blocked = (places[one] for one in violated_values(refused.value))
            assert (blocker, blocked) in fresh
            assert is_reached(blocker, blocked, there | set(fresh))

    def test_look_at_each_dependency_once_not_once_for_each_new_one(self, tasks):
        """200 tasks before the first of a chain of 300: one walk, where each asked for its own."""
        rows = tasks(500)
        insert(rows, [(place, place + 1) for place in range(299)])
        renew_statistics("tasks_task")
        renew_statistics("tasks_dependency")
        before = work()
        insert(rows, [(place, 0) for place in range(300, 500)])
        assert work() - before < 2_500

    def test_that_close_nothing_on_both_sides_of_a_task_take_two_walks(self, tasks):
        rows = tasks(500)
        insert(rows, [(place, place + 1) for place in range(299)])
        renew_statistics("tasks_task")
        renew_statistics("tasks_dependency")
        before = work()
        insert(rows, [(400, 0), *((place, 400) for place in range(401, 500)), (400, 299)])
        assert work() - before < 2_500


def is_reached(wanted, start, edges):
    """Whether one comes from `start` to `wanted` along the dependencies."""
    reached, ahead = {start}, [start]
    while ahead:
        place = ahead.pop()
        ahead += [other for one, other in edges if one == place and other not in reached]
        reached.update(ahead)
    return wanted in reached
