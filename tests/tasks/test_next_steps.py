"""What a refusal tells its reader to do next is something that the reader can do."""

from dataclasses import replace

import pytest

from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of as policy_of_pack
from orgchart.policy.compiled import Agent
from tasks.rules.approval import can_approve
from tasks.rules.ownership import can_take
from tasks.rules.updates import can_update
from tasks.rules.values import TaskUpdate
from tasks.vocabulary import Status
from tests.oracle.reading import PACKS
from tests.tasks.policies import NEEDS_APPROVAL, NEXUS, TEAM, actor, policy_of, role, task

TWO = policy_of(
    [role("team-lead", 1, task_lead=True), role("architect")],
    [
        Agent(1, "team-lead", "team-lead", "", managers=("board",)),
        Agent(2, "second-lead", "team-lead", "", managers=("board",)),
        Agent(3, "gone-lead", "team-lead", "", active=False, managers=("board",)),
        Agent(4, "architect", "architect", "", managers=("team-lead",)),
    ],
)
COMPANY = policy_of_pack(sound_pack(PACKS / "nexus"))
BOARD_STEP = "a person of the Board approves it in the admin"


def refusal(who, what, **change):
    return can_update(who, what, TaskUpdate(**change)).decision


def worked(policy, owner):
    agent = policy.agents[owner]
    workers = [agent.id]
    return task("in_progress", owner=agent, task_type=NEEDS_APPROVAL, workers=workers)


class TestApproval:
    @pytest.mark.parametrize(
        ("policy", "owner", "said"),
        [
            (TEAM, "architect", "ask team-lead to approve #5"),
            (TEAM, "team-lead", BOARD_STEP),
            (TWO, "team-lead", "ask second-lead to approve #5"),
            (TWO, "architect", "ask second-lead or team-lead to approve #5"),
        ],
    )
    def test_is_asked_of_whoever_may_give_it(self, policy, owner, said):
        what = worked(policy, owner)
        found = refusal(actor(owner, policy), what, status=Status.COMPLETED)
        assert said in found.next_action
        assert found.next_action.endswith("; then set status alone to completed")

    def test_is_asked_of_no_lead_that_cannot_read_the_task(self):
        """As of one that was hired in place of the task's writer: it would answer NOT_FOUND."""
        approvals = {**COMPANY.settings, "approval_task_types": (NEEDS_APPROVAL,)}
        company = replace(COMPANY, settings=approvals)
        what = replace(worked(company, "backend_worker"), subject_writer=COMPANY.agents["ceo"].id)
        owner = actor("backend_worker", company)
        assert "ask it_manager" in refusal(owner, what, status=Status.COMPLETED).next_action
        unread = replace(what, subject_writer=COMPANY.agents["research_worker"].id)
        found = refusal(owner, unread, status=Status.COMPLETED).next_action
        assert BOARD_STEP in found
        assert "it_manager" not in found

    def test_is_given_by_the_lead_who_may(self):
        found = refusal(actor("team-lead"), worked(TEAM, "architect"), status=Status.COMPLETED)
        assert found.next_action.startswith("call task_approve on #5;")

    def test_of_ones_own_work_is_another_leads_or_the_boards(self):
        for policy, said in ((TEAM, BOARD_STEP), (TWO, "ask second-lead to approve")):
            found = can_approve(actor("team-lead", policy), worked(policy, "team-lead"))
            assert said in found.next_action


class TestForceAssign:
    @pytest.mark.parametrize(
        ("who", "said"),
        [
            ("ceo", "leave forceAssign out"),
            ("hr_manager", "leave forceAssign out"),
            ("backend_worker", "leave forceAssign out, or ask it_manager to assign the task"),
        ],
    )
    def test_is_left_to_a_superior_who_leads(self, who, said):
        assert refusal(actor(who, NEXUS), task(), force=True).next_action == said

    @pytest.mark.parametrize(
        ("writer", "said"),
        [
            ("it_manager", "leave forceAssign out, or ask it_manager to assign the task"),
            ("research_worker", "leave forceAssign out"),
        ],
    )
    def test_is_left_to_one_that_reads_the_task(self, writer, said):
        what = replace(task(), subject_writer=COMPANY.agents[writer].id)
        asked = {"owner": "backend_worker", "force": True}
        assert refusal(actor("backend_worker", COMPANY), what, **asked).next_action == said


def test_a_type_of_others_points_to_what_is_recommended():
    mine = {"claim_task_type": ["testing"]}
    policy = policy_of(
        [role("architect", permissions=mine)],
        [Agent(1, "architect", "architect", "", managers=("board",))],
    )
    found = can_take(policy, policy.agents["architect"], "architect", "deployment")
    assert "task_recommend" in found.next_action
    assert "roleFilter" not in found.sentence


def test_a_new_owner_of_another_role_is_named_once():
    given = {"owner": "architect"}
    found = refusal(actor("team-lead"), task(required_role="backend-leader"), **given)
    assert found.message == (
        'Role mismatch. Task requires "backend-leader", but the new owner\'s role is "architect".'
    )


def test_what_has_ended_is_said_in_whole_sentences():
    given = {"owner": "architect"}
    done = refusal(actor("team-lead"), task("completed"), **given)
    assert done.message == 'The task is "completed": its owner stays.'
    gone = refusal(actor("team-lead"), task("deleted"), active_form="x")
    assert gone.message == 'The task is "deleted": it can no longer change.'


@pytest.mark.parametrize(
    ("who", "status", "after", "said"),
    [
        ("architect", "in_progress", "in_progress", "leave status out"),
        ("team-lead", "in_progress", "in_progress", "leave status out"),
        ("backend-leader", "in_progress", "in_progress", "take another with task_recommend"),
        ("backend-leader", "in_progress", "pending", "take another with task_recommend"),
        ("backend-leader", "completed", "completed", "create a new task"),
        ("architect", "completed", "completed", "leave status out"),
    ],
)
def test_a_state_that_a_task_has_is_left_out_by_who_may_change_it(who, status, after, said):
    """Who is late to claim a task is not told to repeat the call."""
    held = task(status, owner=TEAM.agents["architect"])
    found = refusal(actor(who), held, status=Status(after), owner=who)
    assert found.code == "INVALID_TRANSITION"
    assert said in found.next_action


class TestWhoIsAsked:
    """An agent that the caller reaches, or nobody (Spec: modes 16, wire 39)."""

    @pytest.mark.parametrize(
        ("who", "to", "said"),
        [
            ("backend_worker", "qa_worker", "or ask it_manager to assign it"),
            ("research_worker", "product_manager", 'claim it with owner "research_worker"'),
            ("it_manager", "hr_manager", 'claim it with owner "it_manager"'),
        ],
    )
    def test_to_assign_a_task(self, who, to, said):
        found = refusal(actor(who, COMPANY), task(), owner=to)
        assert found.code == "NOT_YOURS"
        assert found.next_action.endswith(said)

    def test_nobody_where_none_could_and_the_caller_could_not_take_it(self):
        what = task(required_role="hr_manager")
        found = refusal(actor("research_worker", COMPANY), what, owner="hr_manager")
        assert (found.code, found.next_action) == ("NOT_YOURS", "")

    @pytest.mark.parametrize(
        ("who", "said"),
        [
            ("frontend_worker", "comment on it with task_comment"),
            ("it_manager", "comment on it with task_comment, or ask its owner"),
        ],
    )
    def test_about_a_task_of_another(self, who, said):
        held = task("in_progress", owner=COMPANY.agents["ceo"])
        found = refusal(actor(who, COMPANY), held, description="x")
        assert found.next_action == said

    def test_to_approve(self):
        ceo = replace(COMPANY.roles["ceo"], task_lead=True)
        policy = replace(
            COMPANY,
            roles={**COMPANY.roles, "ceo": ceo},
            settings={**COMPANY.settings, "approval_task_types": [NEEDS_APPROVAL]},
        )
        said = {
            who: refusal(actor(who, policy), worked(policy, who), status=Status.COMPLETED)
            for who in ("product_manager", "backend_worker", "research_worker")
        }
        assert said["product_manager"].next_action.startswith("ask ceo to approve")
        assert said["backend_worker"].next_action.startswith("ask it_manager to approve")
        assert said["research_worker"].next_action.startswith("say with task_comment")
