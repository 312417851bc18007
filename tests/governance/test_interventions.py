"""What people take back from agents: one table, the same fields, once, whoever is faster."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pytest
from django.utils import timezone

from contracts.models import Contract
from core.actors import Person
from core.decision import Code, Denied
from governance.models import Intervention
from governance.staff.deactivation import deactivate_agent, deactivate_by_person
from ledger.models import Event
from mailroom.escalations import answers
from mailroom.escalations import services as escalations
from mailroom.models import Escalation
from orgchart.models import Agent
from tasks import services as tasks
from tasks.by_people import (
    move_by_person,
    release_by_person,
    withdraw_approval_by_person,
)
from tasks.discussion import approve_task
from tasks.models import Task
from tasks.rules.values import TaskUpdate
from tasks.vocabulary import Status
from tests.company import Company, load_company
from tests.concurrency import at_once
from tests.contracts.world import accept, close, issue, org_change
from toolbox.frames import ending
from toolbox.frames import services as frames
from toolbox.models import Frame, ModeGrant, Session
from toolbox.modes import close_mode
from workspace.models import Run, Skill
from workspace.runs import queue
from workspace.runs.recording import RecordedRun
from workspace.runs.stopping import stop_run
from workspace.skills import services as skills

WORKER, REASON = "backend_worker", "It must stop."


@dataclass(frozen=True)
class Scene:
    """Something that runs, and what a person and an agent do to it at one moment."""

    company: Company
    subject: str
    condition: str
    action: str
    event: str
    act: Callable[[Person, str], object]
    rival: Callable[[], object]
    ended: Callable[[], bool]

    def by(self, username: str, *groups: str, reason: str = REASON):
        person = self.company.person(*(groups or ("Board",)), username=username)
        if self.subject.startswith("skill:"):  # a skill belongs to the installation
            person = replace(person, organisation_id=0)
        return self.act(person, reason)


def contract(company):
    contract_id = issue(company)
    worker = partial(accept, company, contract_id, version=1)
    return Scene(
        company, f"contract:{contract_id}", "contract pending", "close_contract_cancelled",
        "contract.cancelled",
        lambda who, why: close(company, contract_id, "cancelled", by=who, reason=why, version=1),
        worker,
        lambda: Contract.objects.get(id=contract_id).state == "cancelled",
    )  # fmt: skip


def task(company):
    caller = company.caller(WORKER)
    made = tasks.create_task(
        caller=company.person("Board"), subject="Build", now=timezone.now(),
        required_role=WORKER,
    )  # fmt: skip
    claimed = tasks.update_task(
        caller=caller,
        task_id=made["id"],
        update=TaskUpdate(owner=WORKER, status=Status.IN_PROGRESS),
        now=timezone.now(),
    )
    done = TaskUpdate(status=Status.COMPLETED, expected_version=claimed["version"])
    row = Task.objects.get(number=int(made["id"]))
    return Scene(
        company, f"task:nexus/{made['id']}", f"in_progress by {WORKER}", "release_task",
        "task.released",
        lambda who, why: release_by_person(
            person=who, task_id=made["id"], reason=why, expected_version=claimed["version"],
            now=timezone.now(),
        ),
        lambda: tasks.update_task(
            caller=caller, task_id=made["id"], update=done, now=timezone.now()
        ),
        lambda: Task.objects.get(id=row.id).owner_id is None,
    )  # fmt: skip


def moved(company):
    """A person moves on the board what an agent holds."""
    scene = task(company)
    row = Task.objects.get()
    return replace(
        scene,
        condition=f"in_progress by {WORKER}",
        action="move_task_deleted",
        event="task.deleted",
        act=lambda who, why: move_by_person(
            person=who, task_id=str(row.number), status=Status.DELETED, reason=why,
            expected_version=row.version, now=timezone.now(),
        ),
        ended=lambda: Task.objects.get().status == Status.DELETED,
    )  # fmt: skip


def approval(company):
    lead, worker = company.caller("team-lead"), company.caller("devops-leader")
    made = tasks.create_task(
        caller=lead, subject="Deploy", task_type="deployment", now=timezone.now()
    )
    task_id, now = made["id"], timezone.now()
    begin = TaskUpdate(owner=worker.handle, status=Status.IN_PROGRESS)
    tasks.update_task(caller=worker, task_id=task_id, update=begin, now=now)
    approved = approve_task(caller=lead, task_id=task_id, now=now)
    done = TaskUpdate(status=Status.COMPLETED)
    return Scene(
        company, f"task:{company.organisation.slug}/{task_id}", f"approved by {lead.actor}",
        "withdraw_task_approval", "task.disapproved",
        lambda who, why: withdraw_approval_by_person(
            person=who, task_id=task_id, reason=why, expected_version=approved["version"],
            now=timezone.now(),
        ),
        lambda: tasks.update_task(caller=worker, task_id=task_id, update=done, now=timezone.now()),
        lambda: Task.objects.get(number=int(task_id)).approved_at is None,
    )  # fmt: skip


def escalation(company):
    made = escalations.escalate(
        caller=company.caller(WORKER), subject="Help", body="Now.", now=timezone.now()
    )
    number = int(made["escalation_id"])
    boss = company.caller("it_manager")
    return Scene(
        company, f"escalation:{number}", "escalation open", "answer_escalation",
        "escalation.answered",
        lambda who, why: answers.answer_as_person(
            escalation_id=number, text=why, expected_version=1, person=who, now=timezone.now()
        ),
        lambda: escalations.escalate(
            caller=boss, subject="Help", body="Me.", follows=number, now=timezone.now()
        ),
        lambda: Escalation.objects.get(id=number).state == "answered",
    )  # fmt: skip


def agent(company):
    authorised = org_change(company, f"deactivate {WORKER}")
    caller, version = company.caller("hr_manager"), company.policy.version
    assert authorised
    return Scene(
        company, f"agent:{WORKER}", "active", "deactivate_agent", "agent.deactivated",
        lambda who, why: deactivate_by_person(
            person=who, agent=WORKER, reason=why, expected_version=version, now=timezone.now()
        ),
        lambda: deactivate_agent(
            caller=caller, agent=WORKER, reason="It left.", expected_version=version,
            now=timezone.now(),
        ),
        lambda: not Agent.objects.get(handle=WORKER).active,
    )  # fmt: skip


def mode(company):
    contract_id = issue(company, coding=True)
    accept(company, contract_id)
    session = str(Session.objects.get(agent__handle=WORKER, standing=True).id)
    return Scene(
        company, f"session:{session}", "session in coding", "close_mode", "session.mode_closed",
        lambda who, why: close_mode(
            session_id=session, reason=why, caller=who, now=timezone.now()
        ),
        lambda: close(company, contract_id, "cancelled", version=2),
        lambda: not ModeGrant.objects.filter(closed_at=None).exists(),
    )  # fmt: skip


def frame(company):
    made = company.call(
        "coding_leader", "delegate_to", to="coding_developer", instruction="Do it."
    ).result["frame_id"]
    worker = company.caller("coding_developer")
    frames.take_next(caller=worker, now=timezone.now())
    worker = company.caller("coding_developer")
    return Scene(
        company, f"frame:{made}", "frame taken", "cancel_frame", "frame.failed",
        lambda who, why: ending.cancel_frame(
            frame_id=int(made), reason=why, caller=who, now=timezone.now()
        ),
        lambda: ending.return_result(
            caller=worker, frame_id=made, result="done", failed=False, now=timezone.now()
        ),
        lambda: Frame.objects.get(id=int(made)).state == "failed",
    )  # fmt: skip


def skill(company):
    Skill.objects.create(
        name="plan", path="/x", text="x", digest="1" * 64, approved_digest="1" * 64,
        approved_by="human:carol", approved_at=timezone.now(), approval_reason="read",
        installed=True, seen_at=timezone.now(), was_approved=True,
    )  # fmt: skip
    worker = company.caller(WORKER)
    return Scene(
        company, "skill:plan", "approved by human:carol", "withdraw_skill_approval",
        "skill.withdrawn",
        lambda who, why: skills.withdraw(name="plan", reason=why, caller=who, now=timezone.now()),
        lambda: skills.use_skill(caller=worker, name="plan", arguments="", now=timezone.now()),
        lambda: Skill.objects.get(name="plan").approved_at is None,
    )  # fmt: skip


def run(company):
    worker = replace(company.caller(WORKER), tool="run_test")
    row = queue.take_turn(caller=worker, paths=["tests/"], commit="", seconds=9, now=timezone.now())
    return Scene(
        company, f"run:{row.id}", "run running", "stop_run", "run.stopped",
        lambda who, why: stop_run(run_id=row.id, caller=who, reason=why, now=timezone.now()),
        lambda: RecordedRun(row, worker).end(0),
        lambda: Run.objects.get(id=row.id).stopped_for != "",
    )  # fmt: skip


SCENES = {
    contract: "nexus", task: "nexus", moved: "nexus",
    approval: "dev-team", escalation: "nexus", agent: "nexus",
    mode: "nexus", frame: "soloqueue", skill: "nexus",
    run: "nexus",
}  # fmt: skip
LOST = {Code.INVALID_TRANSITION, Code.VERSION_MISMATCH, Code.NOT_FOUND, Code.TOOL_NOT_BOUND}
REFUSED = {*LOST, Code.APPROVAL_REQUIRED, Code.UNAUTHENTICATED, Code.NOT_YOURS}
pytestmark = pytest.mark.parametrize("begin", SCENES, ids=lambda begin: begin.__name__)


@pytest.fixture
def scene(begin, tmp_path, settings):
    settings.WORKSPACE_ROOT = tmp_path / "company"
    settings.NEXUS_SKILL_FOLDERS = []
    return begin(load_company(SCENES[begin]))


@pytest.mark.django_db
class TestAnIntervention:
    def test_leaves_the_same_five_fields(self, scene):
        before = timezone.now()
        scene.by("alice")
        row = Intervention.objects.get()
        assert before <= row.timestamp <= timezone.now()
        assert (row.operator, row.operator_role) == ("alice", "HUMAN_ADMIN")
        assert (row.subject, row.trigger_condition) == (scene.subject, scene.condition)
        assert (row.action_taken, row.reason) == (scene.action, REASON)
        expected = None if scene.subject.startswith("skill:") else scene.company.organisation.id
        assert row.organisation_id == expected
        assert scene.ended()
        assert Event.objects.filter(action=scene.event, actor="human:alice").count() == 1

    @pytest.mark.parametrize("reason", ["", " \n\t"])
    def test_is_refused_without_a_reason(self, scene, reason):
        with pytest.raises(Denied) as refusal:
            scene.by("alice", reason=reason)
        assert refusal.value.deny.code is Code.INVALID_PARAMS
        assert not Intervention.objects.exists()
        assert not scene.ended()

    @pytest.mark.parametrize("group", ["Observer", "Reviewer"])
    def test_is_refused_to_other_groups(self, scene, group):
        with pytest.raises(Denied) as refusal:
            scene.by("olga", group)
        assert refusal.value.deny.code is Code.NOT_YOURS
        assert not Intervention.objects.exists()
        assert not scene.ended()


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    def test_many_people_intervene_once(self, scene):
        ends = at_once([partial(scene.by, f"person-{n}") for n in range(6)])
        assert {end for end in ends if isinstance(end, Code)} <= LOST, ends
        assert sum(not isinstance(end, Code | Exception) for end in ends) == 1, ends
        winner = Intervention.objects.get().operator
        events = Event.objects.filter(action=scene.event, subject=scene.subject)
        assert [event.actor for event in events] == [f"human:{winner}"]
        assert scene.ended()

    def test_a_person_and_an_agent_leave_one_truth(self, scene):
        person, agent_end = at_once([partial(scene.by, "alice"), scene.rival])
        if isinstance(person, Code):
            assert person in LOST
            assert not Intervention.objects.exists()
        else:
            assert not isinstance(person, Exception), person
            assert Intervention.objects.get().operator == "alice"
            assert scene.ended()
        assert not isinstance(agent_end, Exception), agent_end
        assert not isinstance(agent_end, Code) or agent_end in REFUSED
