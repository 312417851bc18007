"""Any sequence of operations by any agents keeps what must always hold."""

from datetime import timedelta
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from core.decision import Code, Denied
from ledger.models import Event
from tasks import discussion, services
from tasks.models import Dependency, Task
from tasks.rules.values import TaskUpdate
from tasks.schedule import release_overdue
from tasks.store import read_task, task_result
from tasks.vocabulary import TRANSITIONS, Status
from tests.tasks.world import (
    NOW,
    add_agent,
    add_role,
    caller_of,
    configure,
    make_organisation,
)

AGENTS = ("lead", "a1", "a2", "b1")
SLUGS = (f"machine-{number}" for number in count())

agents = st.sampled_from(AGENTS)
places = st.integers(min_value=0, max_value=11)
statuses = st.one_of(st.none(), st.sampled_from(Status))
owners = st.one_of(st.none(), st.just(""), agents)
versions = st.sampled_from(["none", "current", "stale"])


def warnings_recorded():
    """How many refusals the ledger says `warn` let pass."""
    return Event.objects.filter(action="task.warned").count()


class Tasks(RuleBasedStateMachine):
    """The tasks of one small organisation, and what is known of them."""

    def __init__(self) -> None:
        super().__init__()
        self.organisation = make_organisation(
            next(SLUGS), task_visibility="all", task_lease=600, approval_task_types=["deployment"]
        )
        roles = {name: add_role(self.organisation, name) for name in "ab"}
        lead_role = add_role(self.organisation, "lead", 1, task_lead=True)
        lead = add_agent(self.organisation, "lead", lead_role)
        for handle in AGENTS[1:]:
            add_agent(self.organisation, handle, roles[handle[0]], lead)
        self.callers = {name: caller_of(self.organisation, name) for name in AGENTS}
        self.now = NOW
        self.ids: list[str] = []
        self.seen: dict[str, int] = {}
        self.lost: list[tuple[str, str, int]] = []
        self.enforcement = "enforce"

    def one(self, place: int) -> str:
        return self.ids[place % len(self.ids)]

    def row(self, task_id: str):
        return read_task(self.organisation.id, task_id)

    def picture(self) -> tuple:
        tasks = Task.objects.filter(organisation=self.organisation).order_by("number")
        edges = Dependency.objects.filter(organisation=self.organisation).order_by("id")
        return list(tasks.values()), list(edges.values())

    def attempt(self, act) -> Code | dict:
        """Do it; a refusal must leave everything as it was, and no event."""
        before = (self.picture(), Event.objects.count())
        try:
            return act()
        except Denied as refusal:
            assert (self.picture(), Event.objects.count()) == before
            return refusal.deny.code

    @precondition(lambda self: len(self.ids) < 12)
    @rule(
        agent=agents,
        role=st.sampled_from([None, "a", "b"]),
        kind=st.sampled_from([None, "testing", "deployment"]),
        blockers=st.lists(places, max_size=2),
    )
    def create(self, agent, role, kind, blockers):
        named = sorted({self.one(place) for place in blockers}) if self.ids else []
        made = self.attempt(
            lambda: services.create_task(
                caller=self.callers[agent],
                subject="x",
                required_role=role,
                task_type=kind,
                blocked_by=named,
                now=self.now,
            )
        )
        if isinstance(made, dict):
            assert made["version"] == 1
            assert made["blockedBy"] == sorted(named, key=int)
            assert made["id"] == str(len(self.ids) + 1)
            self.ids.append(made["id"])

    @precondition(lambda self: self.ids)
    @rule(
        agent=agents,
        place=places,
        status=statuses,
        owner=owners,
        version=versions,
        force=st.booleans(),
        edit=st.booleans(),
    )
    def update(self, agent, place, status, owner, version, force, edit):
        task_id = self.one(place)
        before = self.row(task_id)
        expected = {"none": None, "current": before.version, "stale": before.version + 1}[version]
        marks = warnings_recorded()
        done = self.attempt(
            lambda: services.update_task(
                caller=self.callers[agent],
                task_id=task_id,
                update=TaskUpdate(
                    status=status,
                    owner=owner,
                    expected_version=expected,
                    force=force,
                    metadata={"by": agent} if edit else None,
                ),
                now=self.now,
            )
        )
        self.warned(done, marks, version=version, force=force, before=before)
        if isinstance(done, dict):
            after = self.row(task_id)
            done.pop("warnings", None)
            assert done == task_result(after)
            renewed = before.owner == agent and not (status or edit or owner is not None)
            released_nothing = before.owner is None and owner == "" and not (status or edit)
            assert after.version == before.version + (0 if renewed or released_nothing else 1)
            assert status is None or status in TRANSITIONS[Status(before.status)]
            assert not force or agent == "lead"
            leased = after.owner and after.status == "in_progress" and not after.is_assigned
            assert (after.lease_due_at is not None) == bool(leased)
            if leased and after.owner == agent:
                assert after.lease_due_at == self.now + timedelta(seconds=600)

    def warned(self, done, marks, *, version, force, before):
        """What is refused, listed as warnings with an event each, or ignored (Spec: tasks 36)."""
        is_refused = done in (Code.VERSION_MISMATCH, Code.ROLE_MISMATCH)
        assert not is_refused or self.enforcement == "enforce"
        if version == "stale" and self.enforcement == "enforce":
            assert done is Code.VERSION_MISMATCH
        events = warnings_recorded() - marks
        if not isinstance(done, dict):
            assert not events
            return
        after, owes = self.row(done["id"]), set()
        if after.owner not in (None, before.owner) and not force:
            role = self.callers[after.owner].agent.role
            if before.required_role not in ("", role):
                owes.add("ROLE_MISMATCH")
        if version == "stale":
            owes.add("VERSION_MISMATCH")
        found = [each["code"] for each in done.get("warnings", [])]
        assert (events, len(set(found))) == (len(found), len(found))
        assert owes <= set(found) if self.enforcement == "warn" else not found
        assert not owes or self.enforcement != "enforce"

    @rule(to=st.sampled_from(["enforce", "enforce", "warn", "off"]))
    def switch(self, to):
        """The owners that passed meanwhile stay; the next update is decided as it says now."""
        self.enforcement = to
        configure(self.organisation, enforcement=to)
        self.callers = {name: caller_of(self.organisation, name) for name in AGENTS}

    @precondition(lambda self: self.ids)
    @rule(agent=agents, place=places, other=places, down=st.booleans(), status=statuses)
    def join(self, agent, place, other, down, status):
        named = (self.one(other),)
        self.attempt(
            lambda: services.update_task(
                caller=self.callers[agent],
                task_id=self.one(place),
                update=TaskUpdate(
                    status=status,
                    add_blocks=named if down else (),
                    add_blocked_by=() if down else named,
                ),
                now=self.now,
            )
        )

    @precondition(lambda self: self.ids)
    @rule(agent=agents, place=places, approve=st.booleans())
    def approve(self, agent, place, approve):
        before = self.row(self.one(place))
        done = self.attempt(
            lambda: discussion.approve_task(
                caller=self.callers[agent],
                task_id=self.one(place),
                approve=approve,
                now=self.now,
            )
        )
        if isinstance(done, dict):
            assert agent == "lead"
            assert self.callers["lead"].agent.id not in before.workers

    @rule(minutes=st.sampled_from([1, 9, 11]))
    def pass_time(self, minutes):
        self.now += timedelta(minutes=minutes)
        held = {one: self.row(one) for one in self.ids}
        release_overdue(now=self.now)
        for task_id, row in held.items():
            if row.lease_due_at is not None and row.lease_due_at <= self.now:
                after = self.row(task_id)
                assert (after.owner, after.status) == (None, row.status)
                assert after.version == row.version + 1
                self.lost.append((row.owner, task_id, row.version))

    @precondition(lambda self: self.lost and self.enforcement == "enforce")
    @rule(place=places)
    def come_late(self, place):
        agent, task_id, version = self.lost[place % len(self.lost)]
        answer = self.attempt(
            lambda: services.update_task(
                caller=self.callers[agent],
                task_id=task_id,
                update=TaskUpdate(status=Status.COMPLETED, expected_version=version),
                now=self.now,
            )
        )
        assert answer is Code.VERSION_MISMATCH

    @invariant()
    def versions_grow(self):
        now = {one: self.row(one).version for one in self.ids}
        assert all(now[one] >= version for one, version in self.seen.items())
        self.seen = now

    @invariant()
    def dependencies_are_symmetric_and_have_no_circle(self):
        rows = {int(one): self.row(one) for one in self.ids}
        for number, row in rows.items():
            assert all(number in rows[other].blocked_by for other in row.blocks)
            assert all(number in rows[other].blocks for other in row.blocked_by)
        reached: dict[int, set[int]] = {}

        def below(number: int) -> set[int]:
            if number not in reached:
                reached[number] = set(rows[number].blocks).union(
                    *(below(other) for other in rows[number].blocks)
                )
            return reached[number]

        assert not any(number in below(number) for number in rows)

    @invariant()
    def counts_are_those_of_unfinished_neighbours(self):
        rows = {int(one): self.row(one) for one in self.ids}
        unfinished = {n for n, row in rows.items() if row.status in ("pending", "in_progress")}
        for row in rows.values():
            assert row.open_blockers == len(unfinished.intersection(row.blocked_by))
            assert row.dependents == len(unfinished.intersection(row.blocks))
            if row.status == "completed":
                assert not row.open_blockers
                assert row.completed_at is not None
                assert row.task_type != "deployment" or row.approved_at is not None


@pytest.mark.django_db
def test_any_sequence_keeps_what_must_hold():
    run_machine(
        Tasks,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
