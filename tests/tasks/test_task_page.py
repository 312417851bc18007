"""One task's page in the admin: the drawing, the discussion, the history, and who may do what."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from core.permissions import PeopleGroup
from ledger.models import Event
from tasks import discussion, services
from tasks.models import Comment, Task
from tasks.rules.values import TaskUpdate
from tasks.vocabulary import Status
from tests.admin.forms import filled
from tests.tasks.people import sign_in
from tests.tasks.world import NOW, caller_of, configure, dev_team

EVIL = "<script>alert(1)</script>"
MOST_QUERIES = 16
"""Session, person, groups, rights; the row; four for the drawing; discussion, history, policy."""


@pytest.fixture
def at(db):
    return sign_in


@pytest.fixture
def make(team):
    def made(subject="x", organisation=team, **fields) -> Task:
        task = services.create_task(
            caller=caller_of(organisation, "team-lead"), subject=subject, now=NOW, **fields
        )
        return Task.objects.get(organisation=organisation, number=task["id"])

    return made


def page_of(task, query=""):
    return reverse("admin:tasks_task_change", args=[task.id]) + query


def act_of(task, name):
    return reverse(f"admin:tasks_task_{name}", args=[task.id])


def html_of(client, task, query=""):
    answer = client.get(page_of(task, query))
    assert answer.status_code == 200
    return answer.content.decode()


class TestTheDrawing:
    def test_links_each_neighbour_and_says_its_state(self, at, make):
        first = make("ahead")
        second = make("here", blocked_by=[str(first.number)])
        third = make("behind", blocked_by=[str(second.number)])
        html = html_of(at(PeopleGroup.BOARD), second)
        for task in (first, third):
            assert f'href="{page_of(task)}"' in html
        assert 'aria-label="#1 ahead: pending, owner none"' in html
        assert "1 task that come before it to the left" in html
        assert html.count('class="tg-line"') == 2

    def test_is_not_there_for_a_task_alone(self, at, make):
        html = html_of(at(PeopleGroup.BOARD), make())
        assert "<svg class=" not in html
        assert "This task has no dependencies" in html

    def test_has_no_style_of_its_own_and_no_script(self, at, make):
        """What the content security policy would refuse one day is not needed."""
        first = make("ahead")
        html = html_of(at(PeopleGroup.BOARD), make(blocked_by=[str(first.number)]))
        svg = re.search(r'<svg class="tg-graph".*?</svg>\s*</div>', html, re.DOTALL).group()
        assert "style=" not in svg
        assert not re.search(r"\son\w+=", svg)

    def test_escapes_what_agents_wrote(self, at, make):
        first = make(EVIL)
        html = html_of(at(PeopleGroup.BOARD), make(EVIL, description=EVIL, metadata={EVIL: EVIL},
                                            blocked_by=[str(first.number)]))  # fmt: skip
        assert "<script>alert" not in html
        assert html.count("&lt;script&gt;alert(1)") >= 5

    def test_says_that_there_are_more_than_it_shows(self, at, make):
        hub = make("hub")
        for _ in range(61):
            make(blocked_by=[str(hub.number)])
        assert "Only the nearest 60 tasks are drawn" in html_of(at(PeopleGroup.BOARD), hub)


class TestTheDiscussion:
    def test_takes_a_comment_once_however_often_its_form_is_sent(self, at, make):
        task, client = make(), at(PeopleGroup.BOARD)
        form = filled(client, page_of(task), "comment-form", body="Well done.")
        client.post(act_of(task, "comment"), form)
        again = client.post(act_of(task, "comment"), form, follow=True)
        assert Comment.objects.count() == 1
        assert "nothing was done again" in again.content.decode()
        form = filled(client, page_of(task), "comment-form", body="Well done.")
        client.post(act_of(task, "comment"), form)
        assert Comment.objects.count() == 2

    def test_takes_a_comment_of_the_board_as_it_is(self, at, make):
        task = make()
        answer = at(PeopleGroup.BOARD).post(act_of(task, "comment"), {"body": "Well done."})
        assert answer.headers["Location"] == page_of(task)
        comment = Comment.objects.get()
        assert (comment.author, comment.body) == ("human:at-Board", "Well done.")
        assert Event.objects.filter(action="task.commented", actor="human:at-Board").exists()
        task = Task.objects.get(pk=task.pk)
        assert task.version == 1

    def test_marks_an_observers_words(self, at, make):
        task = make()
        observer = at(PeopleGroup.OBSERVER)
        assert "[HUMAN_NOTE]" in html_of(observer, task)
        observer.post(act_of(task, "comment"), {"body": "Look at this."})
        assert Comment.objects.get().body == "[HUMAN_NOTE] Look at this."
        assert "HUMAN_NOTE</span>" in html_of(observer, task)

    @pytest.mark.parametrize("desk", [PeopleGroup.HR, PeopleGroup.REVIEWER, None])
    def test_is_closed_to_other_desks(self, at, make, desk):
        task, client = make(), at(desk)
        assert client.post(act_of(task, "comment"), {"body": "x"}).status_code == 403
        assert not Comment.objects.exists()
        if desk:
            assert 'id="comment-form"' not in html_of(client, task)
        assert Event.objects.filter(action="human.denied").exists()

    def test_is_not_shown_to_hr(self, at, team, make):
        """Nor is what the task says beyond its subject (Spec: people 52)."""
        task = make(description="secret plan", metadata={"secret": "key"})
        discussion.comment_task(
            caller=caller_of(team, "architect"), task_id=str(task.number), body="secret", now=NOW
        )
        assert "secret" not in html_of(at(PeopleGroup.HR), task)
        assert "secret" in html_of(at(PeopleGroup.REVIEWER), task)

    @pytest.mark.parametrize("body", ["", "   ", "x" * 10_001])
    def test_takes_no_empty_and_no_endless_words(self, at, make, body):
        task = make()
        answer = at(PeopleGroup.BOARD).post(act_of(task, "comment"), {"body": body})
        assert answer.status_code == 200
        assert not Comment.objects.exists()

    def test_escapes_and_pages_what_was_said(self, at, make):
        task = make()
        Comment.objects.bulk_create(
            Comment(task=task, author="agent:architect", body=f"{EVIL} no. {n}.", created_at=NOW)
            for n in range(60)
        )
        client = at(PeopleGroup.BOARD)
        html = html_of(client, task)
        assert "<script>alert" not in html
        assert "no. 59." in html
        assert "no. 9." not in html
        earlier = re.search(r'href="(\?before=\d+)#discussion"', html).group(1)
        older = html_of(client, task, earlier)
        assert "no. 9." in older
        assert "no. 59." not in older

    @pytest.mark.parametrize("before", ["x", "-1", "9" * 18, "9" * 40, "٣"])
    def test_takes_any_address(self, at, make, before):
        assert at(PeopleGroup.BOARD).get(page_of(make()), {"before": before}).status_code == 200

    def test_asks_for_the_token_of_the_form(self, at, make):
        task = make()
        client = at(PeopleGroup.BOARD, enforce_csrf_checks=True)
        assert client.post(act_of(task, "comment"), {"body": "x"}).status_code == 403
        assert not Comment.objects.exists()


class TestApproval:
    @pytest.fixture
    def begun(self, team, make):
        configure(team, approval_task_types=["deployment"])
        task = make("ship it", task_type="deployment")
        services.update_task(
            caller=caller_of(team, "devops-leader"),
            task_id=str(task.number),
            update=TaskUpdate(owner="devops-leader", status=Status.IN_PROGRESS),
            now=NOW,
        )
        return Task.objects.get(pk=task.pk)

    def test_is_given_by_the_board_and_kept(self, at, begun):
        board = at(PeopleGroup.BOARD)
        assert "Approve the work" in html_of(board, begun)
        data = {"reason": "Checked by hand.", "version": begun.version}
        assert board.post(act_of(begun, "approve"), data).status_code == 302
        begun = Task.objects.get(pk=begun.pk)
        assert begun.approved_by == "human:at-Board"
        assert Comment.objects.get().body == "Checked by hand."
        html = html_of(board, begun)
        assert "Approve the work" not in html
        assert "Withdraw the approval" in html

    def test_shows_what_it_approves(self, at, team, begun):
        """The task's page, which the person read, may be older than the page of the approval."""
        services.update_task(
            caller=caller_of(team, "devops-leader"),
            task_id=str(begun.number),
            update=TaskUpdate(description="Never tested.", metadata={"commit": "c0ffee"}),
            now=NOW,
        )
        html = at(PeopleGroup.BOARD).get(act_of(begun, "approve")).content.decode()
        assert "Never tested." in html
        assert "c0ffee" in html

    def test_needs_no_remark(self, at, begun):
        at(PeopleGroup.BOARD).post(
            act_of(begun, "approve"), {"reason": "", "version": begun.version}
        )
        assert not Comment.objects.exists()
        begun = Task.objects.get(pk=begun.pk)
        assert begun.approved_at

    def test_is_taken_back(self, at, begun):
        board = at(PeopleGroup.BOARD)
        board.post(act_of(begun, "approve"), {"version": begun.version})
        data = {"reason": "Too early.", "version": begun.version + 1}
        assert board.post(act_of(begun, "withdraw-approval"), data).status_code == 302
        begun = Task.objects.get(pk=begun.pk)
        assert begun.approved_at is None

    @pytest.mark.parametrize("enforcement", ["enforce", "warn", "off"])
    def test_of_what_changed_meanwhile_is_refused_in_a_sentence(self, at, team, begun, enforcement):
        """Whatever is let pass of agents: a person would approve what they did not read."""
        configure(team, enforcement=enforcement)
        answer = at(PeopleGroup.BOARD).post(act_of(begun, "approve"), {"version": 1})
        html = answer.content.decode()
        assert answer.status_code == 200
        assert "changed after you opened this page" in html
        assert "task_get" not in html
        assert not Task.objects.get(pk=begun.pk).approved_at

    @pytest.mark.parametrize("enforcement", ["enforce", "warn", "off"])
    def test_is_not_lost_by_a_release_of_what_changed_meanwhile(self, at, team, begun, enforcement):
        configure(team, enforcement=enforcement)
        data = {"reason": "Too slow.", "version": 1}
        answer = at(PeopleGroup.BOARD).post(act_of(begun, "release"), data)
        assert "changed after you opened this page" in answer.content.decode()
        assert Task.objects.get(pk=begun.pk).owner
        begun = Task.objects.get(pk=begun.pk)
        assert begun.approved_at is None
        assert Event.objects.filter(action="human.denied", code="VERSION_MISMATCH").exists()

    def test_is_not_offered_where_no_type_asks_for_it(self, at, make, begun):
        Task.objects.filter(id=begun.id).update(task_type="testing")
        html = html_of(at(PeopleGroup.BOARD), begun)
        assert "Approve the work" not in html
        assert "needs approval" not in html

    def test_is_announced_but_not_offered_before_there_is_work(self, at, make, begun):
        html = html_of(at(PeopleGroup.BOARD), make(task_type="deployment"))
        assert "Approve the work" not in html
        assert "needs approval" in html

    @pytest.mark.parametrize("desk", [PeopleGroup.HR, PeopleGroup.REVIEWER, PeopleGroup.OBSERVER])
    def test_is_the_boards_alone(self, at, begun, desk):
        client = at(desk)
        assert "Approve the work" not in html_of(client, begun)
        assert client.post(act_of(begun, "approve"), {"version": begun.version}).status_code == 403
        begun = Task.objects.get(pk=begun.pk)
        assert begun.approved_at is None


class TestTheHistory:
    def test_tells_what_happened_newest_first(self, at, team, make):
        task = make()
        services.update_task(
            caller=caller_of(team, "architect"),
            task_id=str(task.number),
            update=TaskUpdate(owner="architect", status=Status.IN_PROGRESS),
            now=NOW,
        )
        html = html_of(at(PeopleGroup.BOARD), task)
        assert "pending → in progress; owner none → architect" in html
        assert html.index("task.started") < html.index("task.created")

    def test_is_this_organisations(self, at, team, make):
        other = dev_team("other")
        make("ours")
        theirs = make("theirs", organisation=other)
        html = html_of(at(PeopleGroup.BOARD), theirs)
        assert html.count("task.created") == 1

    def test_links_the_ledger_for_who_may_read_it(self, at, make):
        task = make()
        assert (
            "ledger/event/" in html_of(at(PeopleGroup.OBSERVER), task).partition('id="history"')[2]
        )
        assert "ledger/event/" not in html_of(at(PeopleGroup.HR), task).partition('id="history"')[2]


def test_who_sees_the_page(at, make):
    task = make()
    found = {desk: at(desk).get(page_of(task)).status_code for desk in (*PeopleGroup, None)}
    assert found == {**dict.fromkeys(PeopleGroup, 200), None: 403}


def test_costs_the_same_whatever_is_around_it(at, team, make):
    alone, client = make(), at(PeopleGroup.BOARD)
    hub = make("hub")
    for n in range(30):
        task = make(blocked_by=[str(hub.number)])
        discussion.comment_task(
            caller=caller_of(team, "architect"), task_id=str(hub.number), body=f"{n}", now=NOW
        )
        assert task
    html_of(client, alone)
    counts = []
    for task in (alone, hub):
        with CaptureQueriesContext(connection) as seen:
            html_of(client, task)
        counts.append(len(seen))
    assert counts[0] == counts[1] <= MOST_QUERIES
