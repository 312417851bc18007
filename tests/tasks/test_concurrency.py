"""Many real connections at once: one winner, nothing lost, versions without a gap."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import transaction

from core import machines
from core.actors import Person
from core.decision import Code, Denied
from ledger.models import Event
from tasks import services
from tasks.by_people import move_by_person
from tasks.dependencies import lock_dependencies
from tasks.models import Dependency, Task
from tasks.rules.values import TaskUpdate
from tasks.schedule import release_overdue
from tasks.store import read_task
from tasks.vocabulary import Status
from tests.concurrency import at_once, is_waiting_for_a_lock
from tests.decisions import denied
from tests.patience import wait_until
from tests.tasks.crowd import callers_of, claim, each, made, make_crowd, round_of_claims
from tests.tasks.world import NOW

FEW = 24

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def crowd(db):
    return make_crowd()


@pytest.fixture
def callers(crowd):
    return callers_of(crowd)


@pytest.fixture
def few(callers):
    return callers[:FEW]


class TestClaims:
    @pytest.mark.parametrize("versioned", [True, False])
    def test_have_one_winner(self, callers, versioned):
        for _ in range(5):
            round_of_claims(callers, versioned=versioned)
        claims = Event.objects.filter(action="task.claimed")
        assert claims.count() == Task.objects.count() == 5

    def test_would_have_many_with_read_then_write(self, few, monkeypatch):
        """The twin without the guard: what the compare-and-swap is there for."""
        statement = machines._statement

        def unguarded(*args, **kwargs):
            return statement(*args, **kwargs).replace(" AND version = %(swap_version)s", "")

        monkeypatch.setattr(machines, "_statement", unguarded)

        def contend():
            for _ in range(20):
                round_of_claims(few, versioned=True)

        with pytest.raises(AssertionError):
            contend()

    def test_of_released_tasks_go_round(self, few):
        task_id = made(few[0])

        def work(caller):
            for _ in range(5):
                try:
                    claim(task_id)(caller)
                except Denied:
                    continue
                services.update_task(
                    caller=caller, task_id=task_id, update=TaskUpdate(owner=""), now=NOW
                )

        each(work, few)
        row = read_task(few[0].organisation_id, task_id)
        events = Event.objects.filter(action__in=["task.claimed", "task.released"]).order_by("seq")
        assert row.version == 1 + len(events)
        assert row.owner is None


class TestUpdates:
    def test_without_a_version_all_count(self, few):
        task_id = made(few[0])

        def work(caller):
            for turn in range(4):
                update = TaskUpdate(metadata={f"{caller.handle}.{turn}": True})
                services.update_task(caller=caller, task_id=task_id, update=update, now=NOW)

        each(work, few)
        row = read_task(few[0].organisation_id, task_id)
        assert row.version == 1 + 4 * len(few)
        assert len(row.metadata) == 4 * len(few)
        versions = [e.details["version"] for e in Event.objects.filter(action="task.updated")]
        assert sorted(versions) == list(range(2, row.version + 1))


class TestNumbers:
    def test_are_given_once_and_without_a_gap(self, few):
        answers = each(lambda caller: [made(caller) for _ in range(5)], few)
        numbers = sorted(int(one) for answer in answers for one in answer)
        assert numbers == list(range(1, 5 * len(few) + 1))

    def test_of_a_creation_that_fails_are_not_lost(self, callers):
        with denied("NOT_FOUND"):
            made(callers[0], blocked_by=["77"])
        assert made(callers[0]) == "1"


class TestDependencies:
    def test_closing_a_circle_from_all_sides_at_once_leaves_it_open(self, few):
        ring = [made(few[0]) for _ in few]

        def work(pair):
            caller, blocker, blocked = pair
            update = TaskUpdate(add_blocks=(blocked,))
            return services.update_task(caller=caller, task_id=blocker, update=update, now=NOW)

        pairs = [
            (caller, ring[place], ring[(place + 1) % len(ring)]) for place, caller in enumerate(few)
        ]
        answers = each(work, pairs)
        assert answers.count(Code.INVALID_PARAMS) == 1
        assert Dependency.objects.count() == len(ring) - 1

    def test_that_come_while_the_blocker_ends_never_strand_a_task(self, few):
        lead = few[0]
        for _ in range(10):
            blocker, blocked = made(lead), made(lead)
            services.update_task(
                caller=lead, task_id=blocker, update=TaskUpdate(status=Status.IN_PROGRESS), now=NOW
            )

            def work(update, blocker=blocker):
                services.update_task(caller=lead, task_id=blocker, update=update, now=NOW)

            each(work, [TaskUpdate(status=Status.COMPLETED), TaskUpdate(add_blocks=(blocked,))])
            ended = read_task(lead.organisation_id, blocker)
            waits = read_task(lead.organisation_id, blocked)
            assert ended.status == "completed"
            assert (waits.open_blockers, waits.waits_for) == (0, [])

    def test_of_many_tasks_at_once_wait_for_no_deadlock(self, few):
        tasks = [made(few[0]) for _ in range(6)]

        def work(place):
            caller = few[place]
            one, other = tasks[place % 6], tasks[(place * 5 + 1) % 6]
            for update in (TaskUpdate(add_blocks=(other,)), TaskUpdate(status=Status.DELETED)):
                try:
                    services.update_task(caller=caller, task_id=one, update=update, now=NOW)
                except Denied:
                    continue

        each(work, range(len(few)))
        for task in Task.objects.all():
            row = read_task(few[0].organisation_id, str(task.number))
            assert row.open_blockers == len(row.waits_for)

    def test_let_a_person_who_moves_one_of_the_tasks_hold_it_only_later(self, few):
        """Else the two would wait for each other, and PostgreSQL breaks off one of them."""
        caller, task = few[0], made(few[0])
        made(caller, blocked_by=[task])
        person = Person(
            username="ada",
            organisation_id=caller.organisation_id,
            groups=frozenset({"Board"}),
            is_member=True,
        )

        def move():
            return move_by_person(
                person=person,
                task_id=task,
                status=Status.DELETED,
                reason="Made twice.",
                expected_version=1,
                now=NOW,
            )

        with ThreadPoolExecutor(1) as other:
            with transaction.atomic():
                lock_dependencies(caller.organisation_id)
                moved = other.submit(at_once, [move])
                wait_until(is_waiting_for_a_lock)
                assert Task.objects.select_for_update(nowait=True).get(number=task)
            assert moved.result()[0]["status"] == Status.DELETED


class TestLeases:
    def test_are_ended_once_by_many_sweeps(self, few):
        ids = [made(few[0]) for _ in range(30)]
        for task_id in ids:
            claim(task_id, status=Status.IN_PROGRESS)(few[0])
        later = NOW.replace(hour=12)
        handled = sum(each(lambda _: release_overdue(now=later), range(4)))
        while left := release_overdue(now=later):  # a turn ends by time, on a slow machine too
            handled += left
        assert handled == 30
        assert Event.objects.filter(action="task.lease_expired").count() == 30
        assert set(Task.objects.values_list("version", flat=True)) == {3}

    def test_a_renewal_and_the_sweep_do_not_both_win(self, few):
        caller, later = few[0], NOW.replace(hour=12)
        for _ in range(10):
            task_id = made(caller)
            claim(task_id, status=Status.IN_PROGRESS)(caller)

            def renew(task_id=task_id):
                update = TaskUpdate(metadata={"alive": True}, expected_version=2)
                return services.update_task(
                    caller=caller, task_id=task_id, update=update, now=later
                )

            answers = at_once([renew, lambda: release_overdue(now=later)], raising=True)
            row = read_task(caller.organisation_id, task_id)
            if isinstance(answers[0], dict):
                assert (row.owner, row.version) == (caller.handle, 3)
            else:
                assert answers[0] is Code.VERSION_MISMATCH
                assert (row.owner, row.version) == (None, 3)


class TestTransactions:
    def test_that_roll_back_leave_nothing(self, callers):
        task_id = made(callers[0])
        before = (read_task(callers[0].organisation_id, task_id), Event.objects.count())

        @transaction.atomic
        def fail():
            claim(task_id)(callers[0])
            raise RuntimeError("the caller's transaction fails")

        with pytest.raises(RuntimeError):
            fail()
        after = (read_task(callers[0].organisation_id, task_id), Event.objects.count())
        assert after[0] == before[0]
        assert after[1] == before[1]
