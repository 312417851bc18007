"""What updates do and leave behind: claims, leases, metadata, events, refusals, enforcement."""

from datetime import timedelta

import pytest
from django.db import connection

from core.actors import Person
from core.decision import Code, Denied
from ledger.models import Event
from mailroom.models import Mail
from orgchart.models import Agent
from tasks import schedule, services
from tasks.models import Experience, Task
from tasks.rules.values import TaskUpdate
from tasks.schedule import release_overdue, undated_claims
from tasks.store import save_change
from tasks.vocabulary import Status
from tests.tasks.world import NOW, caller_of, configure, dev_team, permit, touch
from toolbox import scheduler

LEASE = timedelta(seconds=1800)
STARTED = {"status": Status.IN_PROGRESS}


@pytest.fixture
def refusal(update):
    """Try an update that must be refused; the refusal's code, once nothing has changed."""

    def refused(by: str, task_id: str, **fields) -> Code:
        before = (list(Task.objects.order_by("id").values()), Event.objects.count())
        with pytest.raises(Denied) as denied:
            update(by, task_id, **fields)
        assert (list(Task.objects.order_by("id").values()), Event.objects.count()) == before
        return denied.value.deny.code

    return refused


def newest_event() -> Event:
    return Event.objects.order_by("-seq")[0]


class TestCreate:
    def test_numbers_each_organisation_from_1(self, make, who):
        assert [make(), make()] == ["1", "2"]
        other = dev_team("other")
        task = services.create_task(caller=caller_of(other, "architect"), subject="x", now=NOW)
        assert task["id"] == "1"

    def test_leaves_an_event(self, make):
        make("architect", required_role="backend-leader")
        event = newest_event()
        assert (event.action, event.actor) == ("task.created", "agent:architect")
        assert event.subject == "task:dev-team/1"

    def test_may_wait_for_others_from_the_start(self, make, who):
        blocker = make()
        task_id = make(blocked_by=[blocker])
        task = services.get_task(caller=who("architect"), task_id=task_id)
        assert (task["blockedBy"], task["version"]) == ([blocker], 1)
        ahead = services.get_task(caller=who("architect"), task_id=blocker)
        assert (ahead["blocks"], ahead["version"]) == ([task_id], 1)

    def test_refuses_metadata_beyond_measure(self, make):
        with pytest.raises(Denied) as denied:
            make(metadata={"x": "y" * 70_000})
        assert denied.value.deny.code is Code.INVALID_PARAMS


class TestClaim:
    def test_is_remembered(self, make, update):
        task = update("architect", make(), owner="architect")
        assert task["claimedAt"] == NOW
        assert newest_event().action == "task.claimed"

    def test_by_an_alias_or_address_is_of_the_agent(self, team, make, update):
        agent = Agent.objects.get(organisation=team, handle="architect")
        agent.aliases.create(organisation=team, alias="drawer")
        touch(team)
        assert update("architect", make(), owner="drawer")["owner"] == "architect"

    def test_and_start_are_one_update(self, make, update):
        task = update("architect", make(), owner="architect", status=Status.IN_PROGRESS)
        assert (task["status"], task["owner"], task["version"]) == ("in_progress", "architect", 2)
        assert task["startedAt"] == NOW

    def test_of_an_unknown_agent_is_refused(self, make, refusal):
        assert refusal("architect", make(), owner="nobody") is Code.INVALID_PARAMS

    def test_for_a_deactivated_agent_is_refused(self, team, make, refusal):
        Agent.objects.filter(organisation=team, handle="architect").update(active=False)
        touch(team)
        assert refusal("team-lead", make(), owner="architect") is Code.RECIPIENT_INACTIVE

    def test_by_one_deactivated_since_its_call_began_is_refused(self, team, make, who):
        task_id, caller = make(), who("architect")
        Agent.objects.filter(organisation=team, handle="architect").update(active=False)
        with pytest.raises(Denied) as denied:
            services.update_task(
                caller=caller, task_id=task_id, update=TaskUpdate(owner="architect"), now=NOW
            )
        assert denied.value.deny.code is Code.RECIPIENT_INACTIVE
        assert Task.objects.get().owner is None

    def test_of_another_organisations_task_finds_nothing(self, make):
        task_id = make()
        stranger = caller_of(dev_team("other"), "architect")
        with pytest.raises(Denied) as denied:
            services.update_task(
                caller=stranger, task_id=task_id, update=TaskUpdate(owner="architect"), now=NOW
            )
        assert denied.value.deny.code is Code.NOT_FOUND

    @pytest.mark.parametrize("task_id", ["0", "01", "-1", "x", "9" * 40, "１", "1 ", "1.0"])
    def test_of_what_is_no_id_finds_nothing(self, make, refusal, task_id):
        make()
        assert refusal("architect", task_id, owner="architect") is Code.NOT_FOUND

    def test_across_roles_is_marked(self, make, update):
        task_id = make(required_role="backend-leader")
        update("team-lead", task_id, owner="architect", force=True)
        assert Task.objects.get().cross_role
        update("team-lead", task_id, owner="backend-leader")
        assert not Task.objects.get().cross_role

    def test_given_by_the_lead_is_on_the_owners_stream(self, team, make, update):
        update("team-lead", make(), owner="architect")
        event = newest_event()
        architect = Agent.objects.get(organisation=team, handle="architect")
        assert (event.for_agent_id, event.kind) == (architect.id, "task")


class TestRelease:
    def test_clears_owner_and_lease_and_keeps_the_state(self, make, update):
        task_id = make()
        update("architect", task_id, owner="architect", status=Status.IN_PROGRESS)
        task = update("architect", task_id, owner="")
        assert (task["owner"], task["status"]) == ("", "in_progress")
        assert "leaseDueAt" not in task

    def test_is_the_owners_and_the_leads(self, make, update, refusal):
        task_id = make()
        update("architect", task_id, owner="architect")
        assert refusal("test-leader", task_id, owner="") is Code.NOT_YOURS
        assert update("team-lead", task_id, owner="")["owner"] == ""

    def test_lets_the_next_one_claim(self, make, update):
        task_id = make()
        update("architect", task_id, owner="architect")
        update("architect", task_id, owner="")
        assert update("test-leader", task_id, owner="test-leader")["version"] == 4


class TestLease:
    @pytest.fixture(autouse=True)
    def _lease(self, team):
        configure(team, task_lease=1800)

    def test_is_off_unless_the_organisation_sets_it(self, make, update):
        other = dev_team("other-team")
        caller = caller_of(other, "architect")
        task = services.create_task(caller=caller, subject="x", now=NOW)
        claim = TaskUpdate(owner="architect", **STARTED)
        done = services.update_task(caller=caller, task_id=task["id"], update=claim, now=NOW)
        assert "leaseDueAt" not in done
        release_overdue(now=NOW + timedelta(days=365))
        assert services.get_task(caller=caller, task_id=task["id"])["owner"] == "architect"

    def test_covers_a_claim_in_progress(self, make, update):
        task_id = make()
        assert "leaseDueAt" not in update("architect", task_id, owner="architect")
        assert update("architect", task_id, **STARTED)["leaseDueAt"] == NOW + LEASE

    def test_starts_with_the_work_that_a_lead_starts(self, make, update):
        task_id = make()
        update("architect", task_id, owner="architect")
        assert update("team-lead", task_id, **STARTED)["leaseDueAt"] == NOW + LEASE

    @pytest.mark.parametrize("force", [True, False])
    def test_never_takes_an_assignment_from_a_working_agent(self, make, update, force):
        """The attack of the first audit: finished work was given to another agent."""
        task_id = make()
        update("team-lead", task_id, owner="architect", force=force)
        assert "leaseDueAt" not in update("architect", task_id, **STARTED)
        assert "leaseDueAt" not in update("architect", task_id, description="half done")
        assert release_overdue(now=NOW + 100 * LEASE) == 0
        assert Task.objects.get().owner.handle == "architect"

    def test_covers_the_next_claim_after_an_assignment(self, make, update):
        task_id = make()
        update("team-lead", task_id, owner="architect", force=True, **STARTED)
        update("architect", task_id, owner="")
        task = update("test-leader", task_id, owner="test-leader")
        assert task["leaseDueAt"] == NOW + LEASE

    def test_renewed_leaves_the_version(self, make, update):
        task_id = make()
        update("architect", task_id, owner="architect", **STARTED)
        later = NOW + timedelta(minutes=20)
        task = update("architect", task_id, at=later)
        assert (task["leaseDueAt"], task["version"]) == (later + LEASE, 2)
        assert newest_event().details == {"version": 2, "renewed": True}
        assert update("architect", task_id, expected_version=2)["version"] == 2

    def test_is_renewed_by_each_update_of_the_owner(self, make, update):
        task_id = make()
        update("architect", task_id, owner="architect", **STARTED)
        later = NOW + timedelta(minutes=20)
        task = update("architect", task_id, at=later, description="more")
        assert task["leaseDueAt"] == later + LEASE

    def test_stops_no_sweep_at_the_highest_version(self, make, update):
        for task_id in (make(), make()):
            update("architect", task_id, owner="architect", **STARTED)
        Task.objects.filter(number=1).update(version=2**31 - 1)
        assert release_overdue(now=NOW + LEASE) == 1
        assert Task.objects.get(number=2).owner is None

    def test_is_renewed_by_who_may_claim_and_no_more(self, team, make, update, refusal):
        permit(team, "architect", claim_task_type=True)
        task_id = make()
        update("architect", task_id, owner="architect")
        update("team-lead", task_id, **STARTED)
        later = NOW + timedelta(minutes=20)
        assert update("architect", task_id, at=later)["leaseDueAt"] == later + LEASE
        assert refusal("architect", task_id, metadata={}) is Code.NOT_YOURS

    def test_is_not_renewed_by_anybody_else(self, make, update):
        task_id = make()
        update("architect", task_id, owner="architect", **STARTED)
        later = NOW + timedelta(minutes=20)
        task = update("team-lead", task_id, at=later, description="more")
        assert task["leaseDueAt"] == NOW + LEASE

    def test_that_runs_out_clears_the_owner_and_keeps_the_state(self, make, update, who):
        task_id = make(required_role="backend-leader")
        update("backend-leader", task_id, owner="backend-leader", status=Status.IN_PROGRESS)
        assert release_overdue(now=NOW + LEASE - timedelta(seconds=1)) == 0
        assert release_overdue(now=NOW + LEASE) == 1
        task = services.get_task(caller=who("architect"), task_id=task_id)
        assert (task["owner"], task["status"], task["version"]) == ("", "in_progress", 3)
        event = Event.objects.get(action="task.lease_expired")
        assert event.actor == "system:leases"
        assert "expired" in event.reason
        told = Mail.objects.filter(recipient__isnull=False).values_list("recipient__handle")
        assert sorted(handle for (handle,) in told) == ["backend-leader", "backend-leader-2"]
        assert release_overdue(now=NOW + LEASE) == 0

    def test_fences_the_late_owner(self, make, update, refusal):
        task_id = make()
        update("architect", task_id, owner="architect", status=Status.IN_PROGRESS)
        release_overdue(now=NOW + LEASE)
        late = {"status": Status.COMPLETED, "expected_version": 2}
        assert refusal("architect", task_id, **late) is Code.VERSION_MISMATCH
        update("test-leader", task_id, owner="test-leader")
        assert refusal("architect", task_id, status=Status.COMPLETED) is Code.NOT_YOURS

    def test_of_0_lasts_for_ever(self, team, make, update):
        configure(team, task_lease=0)
        assert "leaseDueAt" not in update("architect", make(), owner="architect")

    def test_switched_off_later_does_not_run_out(self, team, make, update, who):
        task_id = make()
        update("architect", task_id, owner="architect")
        configure(team, task_lease=0)
        release_overdue(now=NOW + LEASE)
        task = services.get_task(caller=who("architect"), task_id=task_id)
        assert (task["owner"], task["version"]) == ("architect", 2)
        assert "leaseDueAt" not in task

    def test_set_later_gives_claims_taken_before_a_whole_lease(self, team, make, update):
        """Their owners could not know that an update would be needed."""
        configure(team, task_lease=0)
        left, kept = make(), make()
        for task_id in (left, kept):
            update("architect", task_id, owner="architect", **STARTED)
        configure(team, task_lease=1800)
        assert release_overdue(now=NOW + 9 * LEASE) == 0
        update("architect", kept, at=NOW + 9 * LEASE + LEASE / 2, description="more")
        assert release_overdue(now=NOW + 10 * LEASE) == 1
        owners = dict(Task.objects.values_list("number", "owner__handle"))
        assert owners == {int(left): None, int(kept): "architect"}
        assert release_overdue(now=NOW + 11 * LEASE) == 1

    def test_reaches_claims_without_a_due_time(self, make, update):
        update("architect", make(), owner="architect", **STARTED)
        Task.objects.update(lease_due_at=None)
        assert release_overdue(now=NOW) == 0
        assert release_overdue(now=NOW + LEASE) == 1

    def test_is_given_in_the_turns_of_one_run(self, team, make, update, monkeypatch):
        """Spec: clocks 18. Organisations with many such claims share its 5 seconds."""
        other, done, date = dev_team("other", task_lease=1800), [], schedule._date_claim
        started = TaskUpdate(owner="architect", **STARTED)
        for _ in range(8):
            update("architect", make(), owner="architect", **STARTED)
            act = {"caller": caller_of(other, "architect"), "now": NOW}
            made = services.create_task(subject="x", **act)
            services.update_task(task_id=made["id"], update=started, **act)
        Task.objects.update(lease_due_at=None)

        def take_a_second(task, **given):
            done.append(task.organisation_id)
            date(task, **given)

        monkeypatch.setattr(schedule, "_date_claim", take_a_second)
        monkeypatch.setattr(scheduler.time, "monotonic", lambda: float(len(done)))
        release_overdue(now=NOW)
        assert len(done) <= scheduler.TURN + 2
        assert set(done) == {team.id, other.id}

    def test_of_0_gets_no_due_time(self, team, make, update):
        configure(team, task_lease=0)
        update("architect", make(), owner="architect")
        assert release_overdue(now=NOW + LEASE) == 0
        assert Task.objects.get().lease_due_at is None

    def test_dated_while_its_owner_completes_is_no_obstacle(self, make, update, monkeypatch):
        task_id = make()
        update("architect", task_id, owner="architect", status=Status.IN_PROGRESS)
        Task.objects.update(lease_due_at=None)

        def dated_first(*given):
            Task.objects.update(lease_due_at=NOW)
            return save_change(*given)

        monkeypatch.setattr(services, "save_change", dated_first)
        assert "leaseDueAt" not in update("architect", task_id, status=Status.COMPLETED)
        assert Task.objects.get().lease_due_at is None

    def test_finds_claims_without_a_due_time_by_index(self, db):
        undated = undated_claims().filter(organisation_id=1)
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")
        assert "task_undated" in undated.explain()

    def test_ends_with_the_task(self, make, update):
        task_id = make()
        update("architect", task_id, owner="architect", status=Status.IN_PROGRESS)
        task = update("architect", task_id, status=Status.COMPLETED)
        assert "leaseDueAt" not in task
        assert task["owner"] == "architect"

    def test_of_an_agent_who_left_is_ended_at_once(self, team, make, update):
        configure(team, task_lease=0)
        task_id = make()
        update("architect", task_id, owner="architect")
        Agent.objects.filter(organisation=team, handle="architect").update(active=False)
        touch(team)
        assert release_overdue(now=NOW) == 1
        assert "deactivated" in Event.objects.get(action="task.lease_expired").reason


class TestMetadata:
    def test_is_merged_key_by_key(self, make, update):
        task_id = make(metadata={"a": 1, "b": 2})
        task = update("architect", task_id, metadata={"b": 3, "c": {"d": [1.5, True, None]}})
        assert task["metadata"] == {"a": 1, "b": 3, "c": {"d": [1.5, True, None]}}

    def test_null_removes_a_key(self, make, update, who):
        task_id = make(metadata={"a": 1, "b": 2})
        update("architect", task_id, metadata={"a": None})
        task = services.get_task(caller=who("architect"), task_id=task_id)
        assert task["metadata"] == {"b": 2}

    def test_may_not_grow_beyond_measure_bit_by_bit(self, make, update, refusal):
        task_id = make(metadata={"a": "x" * 40_000})
        assert refusal("architect", task_id, metadata={"b": "x" * 40_000}) is Code.INVALID_PARAMS

    @pytest.mark.parametrize(
        ("first", "then"),
        [
            ({str(n): n for n in range(900)}, {str(-n): n for n in range(900)}),
            ({"a": [0] * 9000}, {"b": [0] * 9000}),
        ],
        ids=["keys", "elements"],
    )
    def test_of_several_calls_holds_no_more_than_one_could_bring(
        self, make, update, refusal, first, then
    ):
        """An import of what was exported takes no more."""
        task_id = make(metadata=first)
        assert refusal("architect", task_id, metadata=then) is Code.INVALID_PARAMS
        update("architect", task_id, metadata=dict.fromkeys(first) | then)


class TestTimes:
    def test_of_claim_start_and_completion_are_kept(self, make, update):
        task_id = make(task_type="testing")
        hours = [NOW + timedelta(hours=n) for n in range(3)]
        update("architect", task_id, at=hours[0], owner="architect")
        update("architect", task_id, at=hours[1], status=Status.IN_PROGRESS)
        task = update("architect", task_id, at=hours[2], status=Status.COMPLETED)
        assert [task["claimedAt"], task["startedAt"], task["completedAt"]] == hours

    def test_completion_adds_to_the_owners_experience(self, make, update):
        for _ in range(2):
            task_id = make(task_type="testing")
            update("architect", task_id, owner="architect", status=Status.IN_PROGRESS)
            update("architect", task_id, status=Status.COMPLETED)
        experience = Experience.objects.get()
        assert (experience.agent.handle, experience.task_type) == ("architect", "testing")
        assert experience.completed == 2


class TestCompletionWithoutAnOwner:
    """Spec: tasks 58."""

    def completed(self, make, update, by, **fields):
        task_id = make("team-lead", task_type="testing", **fields)
        update(by, task_id, **STARTED)
        update(by, task_id, status=Status.COMPLETED)
        return Task.objects.get(number=int(task_id))

    def test_counts_for_the_agent_that_completes_it(self, make, update):
        done = self.completed(make, update, "architect", required_role="architect")
        assert (done.owner, done.completed_by.handle) == (None, "architect")
        assert Experience.objects.get().agent.handle == "architect"

    def test_counts_for_no_lead_that_could_not_take_it(self, make, update):
        done = self.completed(make, update, "team-lead", required_role="architect")
        assert (done.owner, done.completed_by) == (None, None)
        assert not Experience.objects.exists()

    def test_counts_for_a_lead_that_could_take_it(self, make, update):
        assert self.completed(make, update, "team-lead").completed_by.handle == "team-lead"


class TestEnforcement:
    def test_warn_lets_pass_and_writes_what_enforce_would_have_refused(self, team, make, update):
        configure(team, enforcement="warn")
        task_id = make(required_role="backend-leader")
        task = update("architect", task_id, owner="architect", expected_version=7)
        assert (task["owner"], task["version"]) == ("architect", 2)
        warned = Event.objects.filter(action="task.warned").order_by("seq")
        assert [event.code for event in warned] == ["VERSION_MISMATCH", "ROLE_MISMATCH"]
        assert warned[1].reason.startswith('Role mismatch. Task requires "backend-leader"')

    def test_off_lets_pass_in_silence(self, team, make, update):
        configure(team, enforcement="off")
        task_id = make(required_role="backend-leader")
        update("architect", task_id, owner="architect", expected_version=7)
        assert not Event.objects.filter(action="task.warned").exists()

    @pytest.mark.parametrize("enforcement", ["warn", "off"])
    def test_never_lets_pass_what_it_does_not_switch(self, team, make, refusal, enforcement):
        configure(team, enforcement=enforcement)
        task_id = make()
        assert refusal("architect", task_id, status=Status.COMPLETED) is Code.INVALID_TRANSITION
        assert refusal("architect", task_id, force=True) is Code.FORCE_ASSIGN_DENIED
        assert refusal("architect", task_id, owner="nobody", expected_version=9) is (
            Code.INVALID_PARAMS
        )


class TestPermissions:
    def test_of_the_role_decide_which_types_it_claims(self, team, make, update, refusal):
        permit(team, "architect", claim_task_type=["api_design"], update_own_tasks=True)
        assert refusal("architect", make(task_type="testing"), owner="architect") is (
            Code.ROLE_MISMATCH
        )
        assert update("architect", make(task_type="api_design"), owner="architect")["owner"]
        assert update("architect", make(), owner="architect")["owner"]


class TestPeople:
    def _person(self, team, *offices: str) -> Person:
        return Person(
            username="ada", organisation_id=team.id, groups=frozenset(offices), is_member=True
        )

    def test_of_the_board_change_any_task(self, team, make, update):
        task_id = make()
        update("architect", task_id, owner="architect")
        task = services.update_task(
            caller=self._person(team, "Board"),
            task_id=task_id,
            update=TaskUpdate(status=Status.IN_PROGRESS, expected_version=2),
            now=NOW,
        )
        assert task["status"] == "in_progress"
        assert newest_event().actor == "human:ada"

    @pytest.mark.parametrize("office", ["HR", "Reviewer", "Observer", ""])
    def test_of_other_desks_change_none(self, team, make, office):
        with pytest.raises(Denied) as denied:
            services.update_task(
                caller=self._person(team, office),
                task_id=make(),
                update=TaskUpdate(status=Status.IN_PROGRESS),
                now=NOW,
            )
        assert denied.value.deny.code is Code.NOT_YOURS

    def test_meet_the_same_rules(self, team, make):
        with pytest.raises(Denied) as denied:
            services.update_task(
                caller=self._person(team, "Board"),
                task_id=make(),
                update=TaskUpdate(status=Status.COMPLETED, expected_version=1),
                now=NOW,
            )
        assert denied.value.deny.code is Code.INVALID_TRANSITION
