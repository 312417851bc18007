"""The tasks pages of the admin: everything to see, every text escaped."""

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse

from tasks import discussion, services
from tasks.models import Feedback, Task
from tests.tasks.world import NOW, caller_of

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def board(client, db):
    client.force_login(
        get_user_model().objects.create_superuser("ada"),
        backend="django.contrib.auth.backends.ModelBackend",
    )
    return client


@pytest.fixture
def task(team) -> Task:
    caller = caller_of(team, "architect")
    ahead = services.create_task(caller=caller, subject="ahead", now=NOW)["id"]
    made = services.create_task(
        caller=caller,
        subject=EVIL,
        description=EVIL,
        metadata={EVIL: EVIL},
        blocked_by=[ahead],
        now=NOW,
    )
    discussion.comment_task(caller=caller, task_id=made["id"], body=EVIL, now=NOW)
    return Task.objects.get(number=made["id"])


@pytest.mark.parametrize(
    "query", ["", "?q=2", "?q=%23" + "2", "?q=architect", "?q=script", "?status__exact=pending"]
)
def test_the_list_answers(board, task, query):
    page = board.get(reverse("admin:tasks_task_changelist") + query)
    assert page.status_code == 200
    assert EVIL not in page.content.decode()


def test_a_task_shows_its_history(board, task):
    page = board.get(reverse("admin:tasks_task_history", args=[task.id]))
    assert "task.created" in page.content.decode()


def test_nothing_is_changed_around_the_services(board, task):
    for name, args in [("add", []), ("delete", [task.id])]:
        assert board.get(reverse(f"admin:tasks_task_{name}", args=args)).status_code == 403
    page = board.post(reverse("admin:tasks_task_change", args=[task.id]), {"subject": "x"})
    assert page.status_code == 403
    task = Task.objects.get(pk=task.pk)
    assert task.subject == EVIL


def test_feedback_is_shown_escaped(board, team):
    row = Feedback.objects.create(organisation=team, body=EVIL, source="hook", received_at=NOW)
    for page in (
        board.get(reverse("admin:tasks_feedback_changelist")),
        board.get(reverse("admin:tasks_feedback_change", args=[row.id])),
    ):
        assert page.status_code == 200
        assert EVIL not in page.content.decode()
