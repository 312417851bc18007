"""What a drawing of dependencies says: cut texts, states, and what is not in it."""

import pytest

from tasks import services
from tasks.models import Task
from tasks.pages.graph_drawing import cut, draw
from tasks.pages.neighbourhood import (
    MAX_TASKS,
    Neighbour,
    Neighbourhood,
    _reached,
    neighbourhood,
    shares,
)
from tasks.vocabulary import Status
from tests.tasks.world import NOW, caller_of, dev_team


def neighbour(number, status=Status.PENDING, owner="", blockers=0, subject="Work"):
    return Neighbour(
        id=number, number=number, subject=subject, status=status, owner=owner,
        open_blockers=blockers,
    )  # fmt: skip


def found(focus, *tasks, edges=(), whole=True):
    return Neighbourhood(focus=focus, tasks={t.id: t for t in tasks}, edges=edges, whole=whole)


class TestCut:
    @pytest.mark.parametrize(
        ("text", "lines"),
        [
            ("", ("",)),
            ("short", ("short",)),
            ("one two three", ("one two", "three")),
            ("one two three four five", ("one two", "three four…")),
            ("  much \n space  ", ("much space",)),
            ("unbreakableword", ("unbreakable", "word")),
            ("unbreakable" * 3, ("unbreakable", "unbreakabl…")),
            ("搜索结果页面慢", ("搜索结果页", "面慢")),
        ],
    )
    def test_breaks_between_words_and_says_what_it_left_out(self, text, lines):
        assert cut(text, 11, 2) == lines


class TestAPicture:
    def test_says_state_and_owner_in_words(self):
        (box,) = draw(found(1, neighbour(1, Status.IN_PROGRESS, "architect"))).boxes
        assert box.words == "#1 Work: in progress, owner architect"
        assert box.look == "tg-in_progress tg-focus"

    def test_says_who_waits(self):
        picture = draw(found(1, neighbour(1), neighbour(2, blockers=1), edges=((1, 2),)))
        first, second = picture.boxes
        assert (first.state, second.state) == ("pending", "pending · waits")
        assert first.x < second.x
        assert "0 tasks that come before it to the left, 1 task that wait" in picture.words

    def test_of_a_finished_task_waits_for_nothing(self):
        (box,) = draw(found(1, neighbour(1, Status.DELETED, blockers=1))).boxes
        assert box.state == "deleted"

    def test_says_what_it_leaves_out(self):
        tasks = [neighbour(n) for n in range(1, 6)]
        edges = ((1, 2), (2, 3), (1, 3), (3, 4), (1, 4))
        assert draw(found(2, *tasks[:3], edges=edges[:3])).remarks == (
            "One dependency that follows from the lines drawn is left out.",
        )
        remarks = draw(found(2, *tasks, edges=edges, whole=False)).remarks
        assert remarks[0].startswith("Only the nearest 5 tasks are drawn")
        assert remarks[1].startswith("2 dependencies that follow")


class TestShares:
    @pytest.mark.parametrize(
        ("ahead", "behind", "room", "both"),
        [
            (3, 4, 59, (3, 4)),
            (100, 100, 59, (29, 30)),
            (100, 0, 59, (59, 0)),
            (0, 100, 59, (0, 59)),
            (10, 100, 59, (10, 49)),
            (100, 10, 59, (49, 10)),
        ],
    )
    def test_give_one_side_what_the_other_does_not_need(self, ahead, behind, room, both):
        assert shares(ahead, behind, room) == both


class TestANeighbourhood:
    def make(self, team, blocked_by=(), subject="x"):
        made = services.create_task(
            caller=caller_of(team, "team-lead"), subject=subject, blocked_by=blocked_by, now=NOW
        )
        return made["id"]

    def of(self, team, number):
        return neighbourhood(Task.objects.get(organisation=team, number=number).id)

    def test_reaches_both_sides_at_any_depth_and_no_further(self, team):
        one = self.make(team)
        two = self.make(team, [one])
        three = self.make(team, [two])
        self.make(team, [one])  # shares a blocker only
        found = self.of(team, two)
        assert {t.number for t in found.tasks.values()} == {int(one), int(two), int(three)}
        assert (len(found.edges), found.whole) == (2, True)

    def test_stops_where_no_more_can_be_drawn(self, team, django_assert_num_queries):
        hub = self.make(team)
        for _ in range(MAX_TASKS + 5):
            self.make(team, [hub])
        with django_assert_num_queries(5):  # one of them finds the task's key
            found = self.of(team, hub)
        assert len(found.tasks) == MAX_TASKS
        assert not found.whole
        assert len(draw(found).boxes) == MAX_TASKS

    def test_of_a_long_chain_keeps_the_nearest(self, team):
        last = self.make(team)
        for _ in range(MAX_TASKS + 10):
            last = self.make(team, [last])
        found = self.of(team, last)
        numbers = sorted(t.number for t in found.tasks.values())
        assert numbers == list(range(int(last) - MAX_TASKS + 1, int(last) + 1))
        task = Task.objects.get(organisation=team, number=last)
        assert len(_reached(task.id, ahead=True)) == MAX_TASKS  # no further is it looked

    def test_stays_in_its_organisation(self, team):
        other = dev_team("other")
        one, two = self.make(team), self.make(other)
        self.make(team, [one])
        self.make(other, [two])
        assert {t.id for t in self.of(team, one).tasks.values()} == set(
            Task.objects.filter(organisation=team).values_list("id", flat=True)
        )
