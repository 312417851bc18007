"""The task board: who sees what, what is counted, and every way to move a card."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from core.permissions import PeopleGroup
from ledger.models import Event
from tasks import by_people, services
from tasks.models import Comment, Counter, Task
from tasks.pages import board as admin_board
from tasks.pages.board import moves_of
from tasks.rules.values import TaskUpdate
from tasks.vocabulary import TRANSITIONS, Status
from tests.tasks.people import sign_in
from tests.tasks.world import NOW, caller_of, configure, dev_team

EVIL = "<script>alert(1)</script>"
MOST_QUERIES = 16
"""Session, person, groups, rights, organisations, filters; cards and count of each column."""


@pytest.fixture
def make(team):
    def made(subject="x", organisation=team, owner="", **fields) -> Task:
        lead = caller_of(organisation, "team-lead")
        number = services.create_task(caller=lead, subject=subject, now=NOW, **fields)["id"]
        if owner:
            services.update_task(
                caller=caller_of(organisation, owner),
                task_id=number,
                update=TaskUpdate(owner=owner),
                now=NOW,
            )
        return Task.objects.get(organisation=organisation, number=number)

    return made


def html_of(client, **query):
    answer = client.get(reverse("admin:tasks_task_board"), query)
    assert answer.status_code == 200
    return answer.content.decode()


def cards(html):
    return {int(number) for number in re.findall(r'id="card-(\d+)"', html)}


def card(html, task):
    found = re.search(rf'id="card-{task.number}".*?</article>', html, re.DOTALL)
    return found.group() if found else ""


def count(html, status):
    found = re.search(rf'id="tb-{status}">.*?tb-count"[^>]*>([^<]*)<', html, re.DOTALL)
    return found.group(1)


def post(client, task, status, *, script=True, **more):
    data = {"status": status, "version": task.version, **more}
    headers = {"accept": "application/json"} if script else {}
    return client.post(reverse("admin:tasks_task_move", args=[task.id]), data, headers=headers)


class TestMoves:
    @pytest.mark.parametrize("status", [*Status])
    def test_are_those_of_the_matrix(self, status):
        assert moves_of(status, 0) == TRANSITIONS[status]

    @pytest.mark.parametrize("status", [Status.PENDING, Status.IN_PROGRESS])
    def test_of_what_waits_lead_only_away(self, status):
        assert moves_of(status, 2) == (Status.DELETED,)


class TestLooking:
    def test_has_a_heading(self, team):
        heading = re.search(r"<h1>(.*?)</h1>", html_of(sign_in(PeopleGroup.HR))).group(1)
        assert heading == 'Task board <span class="nx-quiet">dev-team</span>'

    @pytest.mark.parametrize("desk", [*PeopleGroup])
    def test_gives_handles_to_the_board_alone(self, make, desk):
        make()
        html = html_of(sign_in(desk))
        acts = desk is PeopleGroup.BOARD
        for handle in ('draggable="true"', 'name="status"', "tb-dialog", "data-acts"):
            assert (handle in html) == acts, handle

    def test_is_closed_to_staff_without_a_desk(self, team):
        assert sign_in(None).get(reverse("admin:tasks_task_board")).status_code == 403

    def test_escapes_what_agents_wrote(self, make):
        make(EVIL)
        html = html_of(sign_in(PeopleGroup.BOARD))
        assert EVIL not in html
        assert "&lt;script&gt;" in html

    def test_shows_deleted_ones_on_demand(self, make):
        task = make()
        client = sign_in(PeopleGroup.BOARD)
        post(client, task, "deleted", reason="twice")
        assert cards(html_of(client)) == set()
        html = html_of(client, deleted="1")
        assert cards(html) == {task.number}
        assert "hidden" in re.search(r'<details class="tb-move"[^>]*>', html).group()


class TestFilters:
    @pytest.fixture
    def mixed(self, make):
        return {
            "free": make(),
            "role": make(required_role="architect"),
            "type": make(task_type="bug_fix"),
            "mine": make(owner="architect"),
            "both": make(required_role="architect", task_type="bug_fix", owner="architect"),
        }

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ({}, {"free", "role", "type", "mine", "both"}),
            ({"role": "architect"}, {"role", "both"}),
            ({"type": "bug_fix"}, {"type", "both"}),
            ({"owner": "architect"}, {"mine", "both"}),
            ({"owner": "-"}, {"free", "role", "type"}),
            ({"owner": "-", "role": "architect"}, {"role"}),
            ({"owner": "architect", "type": "bug_fix", "role": "architect"}, {"both"}),
            ({"owner": "team-lead"}, set()),
            ({"role": "nobody", "type": EVIL, "owner": "x"}, {"free", "role", "type", "mine",
                                                              "both"}),
        ],
    )  # fmt: skip
    def test_choose(self, mixed, query, found):
        html = html_of(sign_in(PeopleGroup.BOARD), **query)
        assert cards(html) == {mixed[name].number for name in found}
        assert count(html, "pending") == str(len(found))
        assert EVIL not in html

    def test_look_through_the_newest_where_no_index_serves(self, mixed, team, monkeypatch):
        monkeypatch.setattr(admin_board, "MAX_FILTERED", 2)
        client = sign_in(PeopleGroup.BOARD)
        html = html_of(client, type="bug_fix")
        assert cards(html) == {mixed["both"].number}
        assert "among the newest 2 tasks" in html
        assert "among the newest" not in html_of(client, role="architect")
        Counter.objects.filter(organisation=team).update(last=2)
        assert "among the newest" not in html_of(client, type="bug_fix")


class TestManyCards:
    def test_show_the_newest_and_count_the_rest(self, make, monkeypatch):
        monkeypatch.setattr(admin_board, "MAX_CARDS", 3)
        numbers = [make().number for _ in range(5)]
        html = html_of(sign_in(PeopleGroup.BOARD))
        assert cards(html) == set(numbers[-3:])
        assert count(html, "pending") == "5"
        assert "the newest 3" in html

    @pytest.mark.parametrize(
        ("lengths", "budget", "most"),
        [([3, 2], 64, 64), ([64, 64], 64, 32), ([64, 2, 5], 20, 13), ([9, 9, 9], 2, 1)],
    )
    def test_give_way_where_the_board_is_full(self, lengths, budget, most):
        assert admin_board.longest_of(lengths, budget) == most

    def test_leave_short_columns_whole(self, make, monkeypatch):
        monkeypatch.setattr(admin_board, "MAX_SHOWN", 4)
        first = make()
        Task.objects.filter(id=first.id).update(status="in_progress")
        numbers = [make().number for _ in range(5)]
        assert cards(html_of(sign_in(PeopleGroup.BOARD))) == {first.number, *numbers[-3:]}

    def test_of_many_owners_one_is_typed(self, make, monkeypatch):
        mine, other = make(owner="architect"), make()
        client = sign_in(PeopleGroup.BOARD)
        assert '<select name="owner">' in html_of(client)
        monkeypatch.setattr(admin_board, "MAX_OWNERS", 1)
        html = html_of(client, owner="architect")
        assert '<input name="owner" value="architect"' in html
        assert cards(html) == {mine.number} != {other.number}

    def test_are_counted_up_to_a_bound(self, make, monkeypatch):
        monkeypatch.setattr(admin_board, "MAX_CARDS", 2)
        monkeypatch.setattr(admin_board, "MAX_COUNT", 4)
        for _ in range(4):
            make()
        client = sign_in(PeopleGroup.BOARD)
        with CaptureQueriesContext(connection) as seen:
            html = html_of(client)
        assert count(html, "pending") == "3+"
        assert "data-exact" not in re.search(r'id="tb-pending">.*?</h2>', html, re.DOTALL).group()
        counting = [q["sql"] for q in seen if "COUNT" in q["sql"] and "tasks_task" in q["sql"]]
        assert len(counting) == 1
        assert "LIMIT 4" in counting[0]

    def test_cost_no_more_queries(self, make, team):
        client = sign_in(PeopleGroup.BOARD)
        make(owner="")
        html_of(client)
        with CaptureQueriesContext(connection) as few:
            html_of(client)
        for place in range(20):
            make(owner="architect" if place % 2 else "")
        with CaptureQueriesContext(connection) as many:
            html_of(client)
        assert len(few) == len(many) <= MOST_QUERIES


def test_the_ways_to_the_list_lead_there(make, monkeypatch):
    monkeypatch.setattr(admin_board, "MAX_CARDS", 1)
    first, second = make(), make()
    client = sign_in(PeopleGroup.BOARD)
    found = re.findall(r'href="(/admin/tasks/task/\?[^"]+)"', html_of(client))
    assert len(found) == 2
    for address in found:
        listed = client.get(address.replace("&amp;", "&"))
        assert listed.status_code == 200
        assert all(f"#{task.number} x" in listed.content.decode() for task in (first, second))


class TestOrganisations:
    def test_are_kept_apart(self, make, team):
        other = dev_team("other")
        ours, theirs = make("ours"), make("theirs", organisation=other)
        client = sign_in(PeopleGroup.BOARD)
        assert "For which organisation?" in html_of(client)
        html = html_of(client, organisation=team.id)
        assert card(html, ours)
        assert "theirs" not in html
        assert reverse("admin:tasks_task_move", args=[theirs.id]) not in html
        assert "another organisation" in html

    def test_are_not_mixed_up_by_a_move(self, make, team):
        other = dev_team("other")
        ours, theirs = make("ours"), make("theirs", organisation=other)
        assert ours.number == theirs.number
        assert post(sign_in(PeopleGroup.BOARD), theirs, "in_progress").status_code == 200
        ours = Task.objects.get(pk=ours.pk)
        theirs = Task.objects.get(pk=theirs.pk)
        assert (ours.status, theirs.status) == ("pending", "in_progress")
        assert Event.objects.get(action="task.started").organisation_id == other.id


class TestMovingWithAScript:
    @pytest.mark.parametrize(
        ("desk", "status"),
        [*((desk, 409) for desk in PeopleGroup if desk is not PeopleGroup.BOARD), (None, 403)],
    )
    def test_is_the_boards_alone(self, make, desk, status):
        task = make()
        assert post(sign_in(desk), task, "in_progress").status_code == status
        task = Task.objects.get(pk=task.pk)
        assert (task.status, task.version) == ("pending", 1)
        assert Event.objects.filter(action="human.denied").exists()

    def test_is_nothing_that_a_link_does(self, make):
        task = make()
        address = reverse("admin:tasks_task_move", args=[task.id])
        answer = sign_in(PeopleGroup.BOARD).get(address, {"status": "in_progress", "version": 1})
        assert answer.status_code == 405

    def test_says_where_the_card_may_go_next(self, make):
        answer = post(sign_in(PeopleGroup.BOARD), make(), "in_progress").json()
        assert answer["moves"] == ["completed", "deleted"]
        assert answer["message"] == "#1 is in progress."

    def test_says_so_of_what_waits(self, make):
        first = make()
        second = make(blocked_by=[str(first.number)])
        answer = post(sign_in(PeopleGroup.BOARD), second, "in_progress")
        assert answer.status_code == 409
        assert answer.json()["message"] == (
            "Task #2 waits for #1, which is unfinished. Complete or delete it first."
        )

    @pytest.mark.parametrize(
        ("version", "status", "words"),
        [
            (7, "in_progress", "changed after you opened this page; it is at version 1 now. Rel"),
            (1, "completed", "cannot become completed from where it is now. Move it to in pro"),
            (1, "deleted", "This needs a reason: Change task. Say why"),
            ("x", "in_progress", "Reload the board."),
            (
                "9" * 10,
                "in_progress",
                "and the version of the page. Reload the board.",
            ),
        ],
    )
    def test_is_refused_in_sentences_without_tools_in_them(self, make, version, status, words):
        message = post(sign_in(PeopleGroup.BOARD), make(), status, version=version).json()[
            "message"
        ]
        assert words in message
        assert "task_" not in message
        assert ".:" not in message
        assert Event.objects.get(action="human.denied").reason

    def test_needs_an_approval_where_the_type_does(self, team, make):
        configure(team, approval_task_types=["deployment"])
        client, task = sign_in(PeopleGroup.BOARD), make(task_type="deployment")
        assert "needs approval" in card(html_of(client), task)
        assert "needs approval" not in card(html_of(client), make(task_type="testing"))
        post(client, task, "in_progress")
        task = Task.objects.get(pk=task.pk)
        answer = post(client, task, "completed").json()
        assert answer["code"] == "APPROVAL_REQUIRED"
        assert "approve the work, then" in answer["message"]

    def test_needs_the_token_of_the_page(self, make):
        task = make()
        client = sign_in(PeopleGroup.BOARD, enforce_csrf_checks=True)
        assert post(client, task, "in_progress").status_code == 403
        html = html_of(client)
        token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', card(html, task)).group(1)
        answer = post(client, task, "in_progress", csrfmiddlewaretoken=token)
        assert answer.status_code == 200

    def test_of_a_task_that_is_gone_finds_nothing(self, make):
        task = make()
        task.id += 1000
        assert post(sign_in(PeopleGroup.BOARD), task, "in_progress").status_code == 404


class TestMovingWithoutAScript:
    def test_offers_the_columns_that_the_card_may_go_to(self, make):
        first = make()
        second = make(blocked_by=[str(first.number)])
        html = html_of(sign_in(PeopleGroup.BOARD))
        options = {
            task.number: re.findall(r'<option value="(\w+)">', card(html, task))
            for task in (first, second)
        }
        assert options == {1: ["in_progress", "deleted"], 2: ["deleted"]}

    def test_comes_back_to_the_board_as_it_was_filtered(self, make, team):
        task, client = make(), sign_in(PeopleGroup.BOARD)
        html = html_of(client, owner="-", deleted="1")
        back = re.search(r'name="back" value="([^"]*)"', html).group(1).replace("&amp;", "&")
        answer = post(client, task, "in_progress", script=False, back=back)
        assert answer.status_code == 302
        board = reverse("admin:tasks_task_board")
        assert answer.headers["Location"] == f"{board}?organisation={team.id}&owner=-&deleted=1"
        assert "#1 is in progress." in client.get(answer.headers["Location"]).content.decode()

    @pytest.mark.parametrize("back", ["https://elsewhere.example/", "//e", "owner=x&next=//e", "%"])
    def test_leads_nowhere_else(self, make, team, back):
        answer = post(sign_in(PeopleGroup.BOARD), make(), "in_progress", script=False, back=back)
        board = reverse("admin:tasks_task_board")
        assert answer.headers["Location"] == f"{board}?organisation={team.id}"

    def test_shows_a_refusal_on_the_board(self, make):
        task, client = make(), sign_in(PeopleGroup.BOARD)
        answer = post(client, task, "deleted", script=False, reason=" ")
        html = client.get(answer.headers["Location"]).content.decode()
        assert "This needs a reason: Change task." in html
        task = Task.objects.get(pk=task.pk)
        assert task.status == "pending"

    def test_deletes_with_a_reason_in_the_discussion(self, make):
        task, client = make(), sign_in(PeopleGroup.BOARD)
        post(client, task, "deleted", script=False, reason=EVIL)
        assert Comment.objects.get(task=task).body == EVIL
        html = client.get(reverse("admin:tasks_task_change", args=[task.id])).content.decode()
        assert EVIL not in html

    def test_undoes_the_deletion_where_the_reason_cannot_be_kept(self, make, monkeypatch):
        def broken(**_):
            raise RuntimeError

        monkeypatch.setattr(by_people, "comment_task", broken)
        task = make()
        with pytest.raises(RuntimeError):
            post(sign_in(PeopleGroup.BOARD), task, "deleted", reason="x")
        task = Task.objects.get(pk=task.pk)
        assert task.status == "pending"
