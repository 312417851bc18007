"""The tasks pages of the admin: everything to see, every text escaped."""

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.urls import reverse

from ledger.models import Event
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
    "query", ["", "?q=2", "?q=%23" + "2", "?q=architect", "?q=script", "?status=pending"]
)
def test_the_list_answers(board, task, query):
    page = board.get(reverse("admin:tasks_task_changelist") + query)
    assert page.status_code == 200
    assert EVIL not in page.content.decode()


def test_a_task_shows_its_neighbours_and_its_discussion(board, task):
    page = board.get(reverse("admin:tasks_task_change", args=[task.id]))
    assert page.status_code == 200
    text = page.content.decode()
    assert EVIL not in text
    assert "#1 ahead" in text
    assert "agent:architect" in text


def test_a_task_shows_its_history(board, task):
    page = board.get(reverse("admin:tasks_task_history", args=[task.id]))
    assert "task.created" in page.content.decode()


def test_nothing_is_changed_around_the_services(board, task):
    for name, args in [("add", []), ("delete", [task.id])]:
        assert board.get(reverse(f"admin:tasks_task_{name}", args=args)).status_code == 403
    page = board.post(reverse("admin:tasks_task_change", args=[task.id]), {"subject": "x"})
    assert page.status_code == 403
    task.refresh_from_db()
    assert task.subject == EVIL


def test_feedback_is_shown_escaped(board, team):
    row = Feedback.objects.create(organisation=team, body=EVIL, source="hook", received_at=NOW)
    for page in (
        board.get(reverse("admin:tasks_feedback_changelist")),
        board.get(reverse("admin:tasks_feedback_change", args=[row.id])),
    ):
        assert page.status_code == 200
        assert EVIL not in page.content.decode()


def sit(client, desk):
    user = get_user_model().objects.create_user(f"at-{desk}", is_staff=True)
    user.groups.add(Group.objects.get(name=desk))
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def drop(client, task, status, version=None, **more):
    data = {"status": status, "version": version or task.version, **more}
    address = reverse("admin:tasks_task_move", args=[task.id])
    return client.post(address, data, headers={"accept": "application/json"})


@pytest.fixture
def free(team, task):
    return Task.objects.get(number=1)


def test_the_board_shows_cards_escaped(board, task):
    page = board.get(reverse("admin:tasks_task_board"))
    assert page.status_code == 200
    assert EVIL not in page.content.decode()
    assert "waits for 1" in page.content.decode()


def test_a_card_moves_by_the_rules(board, free):
    answer = drop(board, free, "in_progress")
    assert (answer.status_code, answer.json()["version"]) == (200, free.version + 1)
    free.refresh_from_db()
    assert free.status == "in_progress"


@pytest.mark.parametrize(
    ("status", "version", "code"),
    [
        ("in_progress", 99, "VERSION_MISMATCH"),
        ("completed", None, "INVALID_TRANSITION"),
        ("deleted", None, "INVALID_PARAMS"),
        ("elsewhere", None, "INVALID_PARAMS"),
    ],
)
def test_a_refused_drop_changes_nothing_and_leaves_a_trace(board, free, status, version, code):
    answer = drop(board, free, status, version)
    assert (answer.status_code, answer.json()["code"]) == (409, code)
    assert answer.json()["message"]
    assert Event.objects.filter(action="human.denied", code=code).exists()
    free.refresh_from_db()
    assert (free.status, free.version) == ("pending", 1)


def test_a_blocked_card_does_not_start(board, task):
    assert drop(board, task, "in_progress").json()["code"] == "TASK_BLOCKED"


def test_deleting_keeps_the_reason(board, free):
    assert drop(board, free, "deleted", reason="twice").status_code == 200
    assert free.comments.get().body == "twice"


@pytest.mark.parametrize(
    ("desk", "sees", "moves"),
    [("Board", 200, 200), ("HR", 200, 409), ("Reviewer", 200, 409), ("Observer", 200, 409)],
)
def test_who_sees_and_who_moves(client, free, desk, sees, moves):
    sit(client, desk)
    page = client.get(reverse("admin:tasks_task_board"))
    assert page.status_code == sees
    assert (b'draggable="true"' in page.content) == (desk == "Board")
    assert drop(client, free, "in_progress").status_code == moves


def test_looking_moves_nothing(board, free):
    address = reverse("admin:tasks_task_move", args=[free.id])
    assert board.get(address, {"status": "in_progress", "version": 1}).status_code == 405
    free.refresh_from_db()
    assert free.version == 1
