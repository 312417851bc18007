"""Dependencies: symmetric, without circles, holding what waits, telling what is free."""

from itertools import pairwise

import pytest
from django.db import IntegrityError, transaction

from core.decision import Code, Denied
from ledger.models import Event
from mailroom.models import Mail
from tasks import dependencies, services
from tasks.models import Dependency, Task
from tasks.vocabulary import Status
from tests.decisions import denied
from tests.tasks.world import NOW, caller_of, dev_team, permit
from toolbox.denial_limits import EVENT_BYTES
from toolbox.models import Usage


@pytest.fixture
def finish(update):
    def finished(task_id: str, by: str = "team-lead") -> dict:
        update(by, task_id, status=Status.IN_PROGRESS)
        return update(by, task_id, status=Status.COMPLETED)

    return finished


@pytest.fixture
def read(who):
    return lambda task_id: services.get_task(caller=who("architect"), task_id=task_id)


def refused(act, *args, **fields) -> Denied:
    before = (list(Task.objects.order_by("id").values()), Dependency.objects.count())
    with pytest.raises(Denied) as denied:
        act(*args, **fields)
    assert (list(Task.objects.order_by("id").values()), Dependency.objects.count()) == before
    return denied.value


class TestJoining:
    def test_is_seen_from_both_sides(self, make, update, read):
        one, two, three = make(), make(), make()
        update("architect", two, add_blocks=(three,), add_blocked_by=(one,))
        assert read(one)["blocks"] == [two]
        assert (read(two)["blockedBy"], read(two)["blocks"]) == ([one], [three])
        assert read(three)["blockedBy"] == [two]

    def test_counts_as_a_change_of_who_has_to_wait(self, make, update, read):
        one, two = make(), make()
        update("architect", one, add_blocks=(two,))
        assert (read(one)["version"], read(two)["version"]) == (2, 2)
        three = make(blocked_by=[one])
        assert (read(one)["version"], read(three)["version"]) == (2, 1)

    def test_counts_what_one_call_writes_for_others(self, make, update):
        """Spec: settings 6. A name of 6 bytes makes a row and an event; the end tells everyone."""
        blocker, *waiting = [make() for _ in range(21)]
        update("architect", blocker, add_blocks=tuple(waiting))
        assert Usage.objects.get().bytes == 20 * EVENT_BYTES
        update("architect", blocker, status=Status.DELETED)
        told = Mail.objects.filter(from_agent="system").count()
        assert told > 5
        assert Usage.objects.get().bytes == (20 + 3 * told) * EVENT_BYTES

    def test_makes_no_task_wait_for_more_than_a_list_can_show(self, make, update, monkeypatch):
        monkeypatch.setattr(dependencies, "MOST", 2)
        one, two, three, waiting = make(), make(), make(), make()
        update("architect", waiting, add_blocked_by=(one, two))
        for task_id, fields in [
            (waiting, {"add_blocked_by": (three,)}), (three, {"add_blocks": (waiting,)}),
        ]:  # fmt: skip
            assert refused(update, "architect", task_id, **fields).deny.code is Code.INVALID_PARAMS
        update("architect", waiting, add_blocked_by=(one,))

    def test_lets_no_more_tasks_wait_for_one_than_its_end_can_count(
        self, make, update, monkeypatch
    ):
        monkeypatch.setattr(dependencies, "MOST_HELD", 2)
        one, two, three, blocker = make(), make(), make(), make()
        found = refused(update, "architect", blocker, add_blocks=(one, two, three))
        assert found.deny.code is Code.INVALID_PARAMS
        update("architect", blocker, add_blocks=(one, two))
        for task_id, fields in [
            (blocker, {"add_blocks": (three,)}),
            (three, {"add_blocked_by": (blocker,)}),
        ]:
            found = refused(update, "architect", task_id, **fields)
            assert found.deny.code is Code.INVALID_PARAMS
        with denied("INVALID_PARAMS"):
            make(blocked_by=[blocker])
        update("architect", blocker, add_blocks=(one,))

    def test_again_changes_no_dependency(self, make, update):
        one, two = make(), make()
        for _ in range(2):
            update("architect", one, add_blocks=(two, two))
        assert Dependency.objects.count() == 1
        assert Task.objects.get(number=2).open_blockers == 1

    def test_to_itself_is_refused(self, make, update):
        one = make()
        found = refused(update, "architect", one, add_blocks=(one,))
        assert found.deny.code is Code.INVALID_PARAMS

    @pytest.mark.parametrize("length", [2, 3, 7])
    def test_in_a_circle_of_any_length_is_refused(self, make, update, length):
        ring = [make() for _ in range(length)]
        for blocker, blocked in pairwise(ring):
            update("architect", blocker, add_blocks=(blocked,))
        found = refused(update, "architect", ring[-1], add_blocks=(ring[0],))
        assert found.deny.code is Code.INVALID_PARAMS
        assert "circle" in found.deny.message

    def test_in_a_circle_is_refused_by_the_database_itself(self, make, update):
        one, two = make(), make()
        update("architect", one, add_blocks=(two,))
        rows = {task.number: task for task in Task.objects.all()}
        with pytest.raises(IntegrityError, match="circle"), transaction.atomic():
            Dependency.objects.create(
                organisation_id=rows[1].organisation_id, blocker=rows[2], blocked=rows[1]
            )

    def test_across_organisations_is_refused_by_the_database_itself(self, make):
        make()
        other = dev_team("other")
        services.create_task(caller=caller_of(other, "architect"), subject="x", now=NOW)
        mine, theirs = Task.objects.order_by("id")
        with pytest.raises(IntegrityError, match="own organisation"), transaction.atomic():
            Dependency.objects.create(
                organisation_id=mine.organisation_id, blocker=mine, blocked=theirs
            )

    def test_to_an_unknown_task_is_refused(self, make, update):
        for unknown in ("77", "x", "0"):
            found = refused(update, "architect", make(), add_blocked_by=(unknown,))
            assert found.deny.code is Code.NOT_FOUND

    def test_to_a_deleted_task_is_refused(self, make, update):
        one, two = make(), make()
        update("architect", two, status=Status.DELETED)
        found = refused(update, "architect", one, add_blocks=(two,))
        assert found.deny.code is Code.INVALID_TRANSITION

    def test_may_not_hold_up_somebody_elses_task(self, make, update):
        one, two = make(), make()
        update("test-leader", two, owner="test-leader")
        found = refused(update, "architect", one, add_blocks=(two,))
        assert found.deny.code is Code.NOT_YOURS
        update("team-lead", one, add_blocks=(two,))

    def test_may_wait_for_somebody_elses_task(self, make, update, read):
        one, two = make(), make()
        update("test-leader", two, owner="test-leader")
        update("architect", one, add_blocked_by=(two,))
        assert read(one)["blockedBy"] == [two]
        assert read(two)["version"] == 2

    def test_a_completed_task_waits_for_nothing_unfinished(self, make, update, finish):
        done, open_task, also_done = make(), make(), make()
        finish(done)
        finish(also_done)
        found = refused(update, "team-lead", done, add_blocked_by=(open_task,))
        assert found.deny.code is Code.INVALID_TRANSITION
        found = refused(update, "team-lead", open_task, add_blocks=(done,))
        assert found.deny.code is Code.INVALID_TRANSITION
        update("team-lead", done, add_blocked_by=(also_done,))


class TestWaiting:
    def test_holds_start_and_completion_and_names_the_blockers(self, make, update):
        blockers = [make(), make()]
        task = make(blocked_by=blockers)
        found = refused(update, "architect", task, status=Status.IN_PROGRESS)
        assert found.deny.code is Code.TASK_BLOCKED
        assert found.deny.details["blockedBy"] == blockers
        started = make()
        update("architect", started, status=Status.IN_PROGRESS)
        update("architect", started, add_blocked_by=(blockers[0],))
        found = refused(update, "architect", started, status=Status.COMPLETED)
        assert found.deny.code is Code.TASK_BLOCKED

    def test_ends_when_the_last_blocker_does(self, make, update, finish):
        blockers = [make(), make()]
        task = make(blocked_by=blockers)
        finish(blockers[0])
        refused(update, "architect", task, status=Status.IN_PROGRESS)
        finish(blockers[1])
        assert update("architect", task, status=Status.IN_PROGRESS)["status"] == "in_progress"

    def test_ends_when_the_blocker_is_deleted(self, make, update):
        blocker = make()
        task = make(blocked_by=[blocker])
        update("architect", blocker, status=Status.DELETED)
        update("architect", task, status=Status.IN_PROGRESS)

    def test_for_a_task_that_is_deleted_counts_no_more(self, make, update):
        blocker = make()
        update("architect", make(blocked_by=[blocker]), status=Status.DELETED)
        assert Task.objects.get(number=1).dependents == 0

    def test_update_that_ends_and_joins_at_once_counts_right(self, make, update):
        one, two, three = make(), make(), make()
        update("team-lead", one, add_blocks=(two,))
        update("team-lead", one, status=Status.IN_PROGRESS)
        update("team-lead", one, status=Status.COMPLETED, add_blocks=(three,))
        assert set(Task.objects.values_list("open_blockers", flat=True)) == {0}


class TestAnnouncement:
    def told(self) -> dict[str, str]:
        return {mail.recipient.handle: mail.subject for mail in Mail.objects.all()}

    def test_goes_to_those_who_could_take_it(self, make, finish):
        blocker = make()
        make(blocked_by=[blocker], required_role="backend-leader")
        finish(blocker)
        assert set(self.told()) == {"backend-leader", "backend-leader-2"}
        events = Event.objects.filter(action="task.unblocked")
        assert {event.kind for event in events} == {"task"}
        assert events.count() == 2

    def test_minds_the_types_of_each_role(self, team, make, finish):
        for role in ("architect", "test-leader"):
            kinds = ["testing"] if role == "test-leader" else []
            permit(team, role, claim_task_type=kinds)
        blocker = make()
        make(blocked_by=[blocker], task_type="testing")
        finish(blocker)
        assert "test-leader" in self.told()
        assert "architect" not in self.told()

    def test_goes_to_the_owner_where_there_is_one(self, make, update, finish):
        blocker = make()
        task = make(blocked_by=[blocker])
        update("architect", task, owner="architect")
        finish(blocker)
        assert set(self.told()) == {"architect"}

    def test_waits_for_the_last_blocker(self, make, finish):
        blockers = [make(), make()]
        make(blocked_by=blockers)
        finish(blockers[0])
        assert not self.told()
        finish(blockers[1])
        assert self.told()

    def test_is_not_made_twice(self, make, update, finish):
        blocker = make()
        make(blocked_by=[blocker], required_role="architect")
        finish(blocker)
        update("team-lead", blocker, status=Status.DELETED)
        assert Mail.objects.count() == 1
