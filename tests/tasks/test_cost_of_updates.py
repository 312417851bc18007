"""What an update of a task costs the database: statements, and entries of indexes."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.company import count_ahead

UPDATES = """
SELECT pg_stat_get_xact_tuples_updated(t), pg_stat_get_xact_tuples_hot_updated(t)
FROM (SELECT 'tasks_task'::regclass::oid AS t) AS one
"""


def updates():
    """Rows of tasks updated in this transaction, and those of them that touched no index (HOT)."""
    with connection.cursor() as cursor:
        cursor.execute(UPDATES)
        return cursor.fetchone()


@pytest.fixture
def task(http):
    return http.call("architect", "task_create", subject="x").result["id"]


class TestClaim:
    def test_is_three_statements(self, http, task, django_assert_num_queries):
        """Who calls, the task, and the change with its event."""
        http.call("backend-leader", "task_list")
        count_ahead(http.organisation)
        with django_assert_num_queries(3):
            update = {"taskId": task, "owner": "backend-leader"}
            assert http.call("backend-leader", "task_update", **update).status == 200


class TestChangeOfText:
    @pytest.mark.parametrize(
        "change", [{"description": "y"}, {"activeForm": "y"}, {"metadata": {"a": 1}}], ids=str
    )
    def test_touches_no_index(self, http, task, change):
        before = updates()
        assert http.call("architect", "task_update", taskId=task, **change).status == 200
        updated, hot = (now - then for now, then in zip(updates(), before, strict=True))
        assert (updated, hot) == (1, 1)


class TestWaitingForMoreTasks:
    def test_takes_the_same_statements_for_each_number(self, http, task):
        """All dependencies are inserted by one, counted by two, and their bytes by two."""
        taken = []
        for count in (20, 20, 40):
            blockers = [http.call("architect", "task_create", subject="x").result["id"]
                        for _ in range(count)]  # fmt: skip
            count_ahead(http.organisation)
            with CaptureQueriesContext(connection) as queries:
                update = {"taskId": task, "addBlockedBy": blockers}
                assert http.call("architect", "task_update", **update).status == 200
            taken.append(len(queries))
        assert taken[1] == taken[2]

    def test_reads_none_of_their_long_texts(self, http, task):
        """A call names 200 tasks and an end frees 1000: their texts together fill the memory."""
        long = {"description": "long" * 1000, "metadata": {"a": "long" * 1000}}
        blocker = http.call("architect", "task_create", subject="x", **long).result["id"]
        with CaptureQueriesContext(connection) as queries:
            update = {"taskId": task, "addBlockedBy": [blocker]}
            assert http.call("architect", "task_update", **update).status == 200
        (read,) = [
            one["sql"] for one in queries if "ANY(" in one["sql"] and "o.handle" in one["sql"]
        ]
        assert "t.description" not in read
        assert "t.metadata" not in read
