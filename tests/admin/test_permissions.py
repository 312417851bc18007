"""One table says what a person may do; every service that a person can reach asks it."""

from pathlib import Path

import pytest
from django.utils import timezone

from contracts.closing import close_contract
from contracts.issuing.services import issue_for_board
from contracts.vocabulary import ContractOutcome
from core.actors import Person, System
from core.decision import Allow, Code, Denied
from core.permissions import Deed, PeopleGroup, can_do, deed_of, require_deed
from documents.memory.services import add_as_person, correct_memory, withdraw_memory
from governance.cases.by_people import services as cases
from governance.cases.vocabulary import Outcome as CaseOutcome
from governance.cases.vocabulary import Stage
from governance.staff.deactivation import deactivate_by_person
from mailroom.board_answers import answer_report
from mailroom.escalations.answers import answer_as_person
from mailroom.outgoing.outbox import resend
from orgchart import models
from orgchart.editing import delete_row, save_row
from orgchart.keys import issue_key, revoke_key
from orgchart.packs import load_pack
from orgchart.pauses.services import (
    pause_agent,
    resume_agent,
    resume_everything,
    stop_everything,
    take_over_pause,
)
from orgchart.policy.vocabulary import ToolMode
from orgchart.second_person.services import confirm_change, reject_change, withdraw_change
from orgchart.services import set_settings
from orgchart.staffing import activate_agent, deactivate_agent
from orgchart.tool_restrictions import clear_tool_restriction, set_tool_restriction
from tasks.by_people import release_by_person, withdraw_approval_by_person
from tasks.discussion import approve_task, comment_task
from tasks.intake.feedback import add_feedback
from tasks.services import create_task
from tests.decisions import denied
from toolbox.frames.ending import cancel_frame
from toolbox.modes import close_mode, open_mode
from workspace.builds.settling import look_again, record_as_failed, take_down
from workspace.git.pushing_back import push_back
from workspace.runs.stopping import stop_run
from workspace.skills import services as skills
from workspace.skills.starting import start_skill

NOBODY, REASON, ID = 10**9, "because", "1" * 32


def of_group(*groups, **fields):
    given = {"username": "p", "is_member": True} | fields
    return Person(organisation_id=NOBODY, groups=frozenset(groups), **given)


class TestCanDo:
    @pytest.mark.parametrize("deed", Deed)
    @pytest.mark.parametrize("group", PeopleGroup)
    def test_is_what_the_table_says(self, deed, group):
        decision = can_do(of_group(group), deed, REASON)
        if group in deed.value.groups:
            assert isinstance(decision, Allow)
        else:
            assert decision.code is Code.NOT_YOURS
            assert decision.sentence == (
                f"Your groups ({group}) do not allow this: {deed.value.title}. "
                f"Ask a member of {' or '.join(deed.value.groups)}."
            )

    @pytest.mark.parametrize("deed", Deed)
    def test_is_nothing_without_a_group_and_everything_for_a_superuser(self, deed):
        refusal = can_do(of_group(), deed, REASON)
        assert refusal.code is Code.NOT_YOURS
        assert refusal.sentence == (
            "You have no role yet. Ask a Board member to add you to a group."
        )
        assert isinstance(can_do(of_group(is_superuser=True), deed, REASON), Allow)

    @pytest.mark.parametrize("deed", Deed)
    @pytest.mark.parametrize("blank", ["  ", "\u200b\u3164"])
    def test_asks_for_a_reason_where_one_is_needed(self, deed, blank):
        decision = can_do(of_group(*PeopleGroup), deed, blank)
        if deed.value.needs_reason:
            assert decision.code is Code.INVALID_PARAMS
        else:
            assert isinstance(decision, Allow)

    def test_is_asked_for_no_reason_where_the_rule_says_so(self):
        """And nowhere else (Spec: people 6)."""
        own_text = {
            Deed.ISSUE_CONTRACT, Deed.COMMENT_TASK, Deed.ANSWER_ESCALATION, Deed.ANSWER_REPORT,
            Deed.TAKE_IN_FEEDBACK, Deed.OPEN_CASE, Deed.KEEP_MEMORY,
        }  # fmt: skip
        takes_nothing_back = {
            Deed.MANAGE_TASK, Deed.APPROVE_TASK, Deed.READ_SKILLS, Deed.ISSUE_KEY, Deed.LOAD_PACK,
        }  # fmt: skip
        users = {Deed.KEEP_PEOPLE}
        found = {deed for deed in Deed if not deed.value.needs_reason}
        assert found == own_text | takes_nothing_back | users


class TestRequireDeed:
    def test_leaves_agents_and_the_system_to_their_own_rules(self):
        system = System(name="tests", organisation_id=NOBODY)
        require_deed(system, Deed.CANCEL_CONTRACT, reason=REASON)
        with denied("INVALID_PARAMS"):
            require_deed(system, Deed.CANCEL_CONTRACT)


class TestDeedOf:
    def test_finds_the_deed_of_a_permission(self):
        assert deed_of("orgchart.delete_role") is Deed.EDIT_ROLE
        assert deed_of("contracts.cancel_contract") is Deed.CANCEL_CONTRACT
        assert deed_of("orgchart.view_role") is None

    def test_is_one_for_each_permission(self):
        names = [f"{d.value.app}.{codename}" for d in Deed for codename in d.value.codenames]
        assert len(names) == len(set(names))


def edit(model):
    def save(who):
        return save_row(
            row=model(), organisation_id=NOBODY, reason=REASON, expected_version=None, **who
        )

    def delete(who):
        return delete_row(
            row=model(), organisation_id=NOBODY, reason=REASON, expected_version=None, **who
        )

    return [save, delete]


def restrict(who):
    set_tool_restriction(
        organisation_id=NOBODY,
        tool="x",
        modes=frozenset(),
        tool_modes=frozenset(),
        reason=REASON,
        **who,
    )


def person_of(who):
    return {"person": who["caller"], "now": who["now"]}


CHANGE = {"change_id": 0, "expected_version": None, "reason": REASON}

CASE = {"case_id": "none", "reason": REASON, "expected_version": 1}
ORGANISATION = models.Organisation(id=NOBODY, slug="none")
AGENT = models.Agent(handle="nobody", active=False)
SERVICES = {
    Deed.ISSUE_KEY: [lambda who: issue_key(agent=AGENT, **who)],
    Deed.REVOKE_KEY: [lambda who: revoke_key(prefix="nx_none", reason=REASON, **who)],
    Deed.ACTIVATE_AGENT: [
        lambda who: activate_agent(handle="x", reason=REASON, **who),
        lambda who: deactivate_agent(handle="x", reason=REASON, **who),
        lambda who: deactivate_by_person(
            agent="x", reason=REASON, expected_version=1, **person_of(who)
        ),
    ],
    Deed.PAUSE_AGENT: [
        lambda who: pause_agent(agent="x", reason=REASON, **person_of(who)),
        lambda who: resume_agent(agent="x", reason=REASON, expected_pause=None, **person_of(who)),
    ],
    Deed.TAKE_OVER_PAUSE: [
        lambda who: take_over_pause(
            agent="x", reason=REASON, expected_pause=None, **person_of(who)
        ),
    ],
    Deed.STOP_ORGANISATION: [
        lambda who: stop_everything(reason=REASON, **person_of(who)),
        lambda who: resume_everything(reason=REASON, expected_pause=None, **person_of(who)),
    ],
    Deed.LOAD_PACK: [lambda who: load_pack(Path("/nowhere"), **who)],
    Deed.EDIT_ORGANISATION: [
        lambda who: save_row(
            row=ORGANISATION,
            organisation_id=NOBODY,
            reason=REASON,
            expected_version=None,
            **who,
        ),
        lambda who: set_settings(organisation=ORGANISATION, values={"no_such": 1}, **who),
    ],
    Deed.EDIT_ROLE: edit(models.Role),
    Deed.EDIT_GROUP: edit(models.Group),
    Deed.EDIT_AGENT: edit(lambda: AGENT),
    Deed.EDIT_ALIAS: edit(models.Alias),
    Deed.EDIT_MAIL_TYPE: edit(models.MailTypeRule),
    Deed.EDIT_CONTACT: edit(lambda: models.ContactRule(sender=models.Role(name="x"))),
    Deed.RESTRICT_TOOL: [
        restrict,
        lambda who: clear_tool_restriction(
            restriction=models.ToolOverride(organisation_id=NOBODY), reason=REASON, **who
        ),
    ],
    Deed.SWITCH_MODE: [
        lambda who: open_mode(session_id=ID, mode=ToolMode.CODING, reason=REASON, **who),
        lambda who: close_mode(session_id=ID, reason=REASON, **who),
    ],
    Deed.CANCEL_FRAME: [lambda who: cancel_frame(frame_id=0, reason=REASON, **who)],
    Deed.SETTLE_DEPLOYMENT: [
        lambda who: look_again(deployment_id="none", reason=REASON, **person_of(who)),
        lambda who: record_as_failed(deployment_id="none", reason=REASON, **person_of(who)),
    ],
    Deed.TAKE_DOWN: [
        lambda who: take_down(deployment_id="none", reason=REASON, **person_of(who)),
    ],
    Deed.STOP_RUN: [lambda who: stop_run(run_id=0, reason=REASON, **who)],
    Deed.APPROVE_SKILL: [
        lambda who: skills.approve(name="none", digest="", reason=REASON, **who),
        lambda who: skills.withdraw(name="none", reason=REASON, **who),
    ],
    Deed.KEEP_MEMORY: [
        lambda who: add_as_person(memory_id=0, text="x", **person_of(who)),
        lambda who: correct_memory(memory_id=0, text="x", reason=REASON, **person_of(who)),
        lambda who: withdraw_memory(memory_id=0, reason=REASON, **person_of(who)),
    ],
    Deed.READ_SKILLS: [lambda who: skills.scan(**who)],
    Deed.START_SKILL: [
        lambda who: start_skill(
            agent="none", name="none", arguments="", reason=REASON, **person_of(who)
        )
    ],
    Deed.ISSUE_CONTRACT: [
        lambda who: issue_for_board(draft=None, **person_of(who)),
    ],
    Deed.CANCEL_CONTRACT: [
        lambda who: close_contract(
            contract_id="none",
            outcome=ContractOutcome.CANCELLED,
            reason=REASON,
            expected_version=1,
            **who,
        )
    ],
    Deed.COMMENT_TASK: [lambda who: comment_task(task_id="1", body="x", **who)],
    Deed.APPROVE_TASK: [lambda who: approve_task(task_id="1", **who)],
    Deed.WITHDRAW_TASK_APPROVAL: [
        lambda who: withdraw_approval_by_person(
            task_id="1", reason=REASON, expected_version=1, **person_of(who)
        )
    ],
    Deed.RELEASE_TASK: [
        lambda who: release_by_person(
            task_id="1", reason=REASON, expected_version=1, **person_of(who)
        )
    ],
    Deed.MANAGE_TASK: [lambda who: create_task(subject="x", **who)],
    Deed.TAKE_IN_FEEDBACK: [lambda who: add_feedback(items=[], source="x", **who)],
    Deed.ANSWER_ESCALATION: [
        lambda who: answer_as_person(
            escalation_id=0, text="x", expected_version=1, **person_of(who)
        )
    ],
    Deed.OPEN_CASE: [
        lambda who: cases.open_case_as_person(title="x", request="x", **person_of(who))
    ],
    Deed.AMEND_CASE: [
        lambda who: cases.amend_case(stage=Stage.TASKS, content={}, **CASE, **person_of(who))
    ],
    Deed.OVERRULE_REVIEW: [
        lambda who: cases.overrule_review(
            outcome=CaseOutcome.APPROVED, confirmed=None, **CASE, **person_of(who)
        )
    ],
    Deed.EXTEND_CASE: [
        lambda who: cases.extend_case(rounds=1, confirmed=None, **CASE, **person_of(who))
    ],
    Deed.END_CASE: [lambda who: cases.end_case(confirmed=None, **CASE, **person_of(who))],
    Deed.ADD_NOTE: [lambda who: cases.add_note(case_id="none", note="x", **person_of(who))],
    Deed.SET_BOARD_SETTINGS: [
        lambda who: set_settings(organisation=ORGANISATION, values={"enforcement": "off"}, **who)
    ],
    Deed.CONFIRM_CHANGE: [lambda who: confirm_change(**CHANGE, **who)],
    Deed.REJECT_CHANGE: [lambda who: reject_change(**CHANGE, **who)],
    Deed.WITHDRAW_CHANGE: [lambda who: withdraw_change(**CHANGE, **who)],
    Deed.ANSWER_REPORT: [
        lambda who: answer_report(mail_id="", text="x", **person_of(who)),
    ],
    Deed.PUSH_BACK: [lambda who: push_back(repository_id=0, reason=REASON, **who)],
    Deed.RESEND_NOTICE: [lambda who: resend(notice_id=0, reason=REASON, **who)],
}
"""Each deed's services, called with rows that do not exist: the deed is decided before them."""

CALLS = [(deed, call) for deed, calls in SERVICES.items() for call in calls]


def code_of(call, who):
    try:
        call({"caller": who, "now": timezone.now()})
    except Denied as refusal:
        return refusal.deny.code
    except Exception:  # noqa: BLE001  whatever follows the decision
        return None
    return None


@pytest.mark.django_db
class TestEveryService:
    def test_is_in_this_table(self):
        assert set(SERVICES) == set(Deed) - {Deed.KEEP_PEOPLE}  # Django's own pages write people

    @pytest.mark.parametrize(("deed", "call"), CALLS, ids=lambda v: getattr(v, "name", ""))
    @pytest.mark.parametrize("group", PeopleGroup)
    def test_asks_the_table(self, deed, call, group):
        refused = code_of(call, of_group(group)) is Code.NOT_YOURS
        assert refused is (group not in deed.value.groups)

    @pytest.mark.parametrize(("deed", "call"), CALLS, ids=lambda v: getattr(v, "name", ""))
    def test_refuses_a_person_without_a_group(self, deed, call):
        assert code_of(call, of_group()) is Code.NOT_YOURS
