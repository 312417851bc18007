"""What a person does takes effect with the rights of that moment (Spec: people 68)."""

import pytest
from django.contrib.auth import get_user_model

from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_for_board
from core.decision import Denied
from core.people import person_named
from core.permissions import PeopleGroup
from ledger.models import Event
from mailroom.board_answers import answer_report
from orgchart.keys import issue_key
from orgchart.models import Agent, ApiKey, Membership, Organisation
from orgchart.pauses.models import Pause
from orgchart.pauses.services import pause_agent
from orgchart.second_person.edits import saving
from orgchart.second_person.services import propose_change, reject_change
from orgchart.services import set_settings
from tasks.discussion import approve_task
from tasks.services import create_task


def change_a_setting(person, company, now):
    row = company.organisation
    set_settings(organisation=row, values={"max_rounds": "7"}, caller=person, now=now)


def issue_a_key(person, company, now):
    issue_key(agent=Agent.objects.get(handle="qa_worker"), caller=person, now=now)


def pause(person, company, now):
    pause_agent(person=person, agent="qa_worker", reason="Look.", now=now)


def reject(person, company, now):
    role = company.organisation.roles.get(name="qa_worker")
    role.tools = [*role.tools, "web_search"]
    hr = person_named("hr", company.organisation.id)
    row = propose_change(
        edit=saving(role), caller=hr, now=now, reason="More.", expected_version=None
    )
    reject_change(change_id=row.id, expected_version=None, caller=person, now=now, reason="No.")


def issue_a_contract(person, company, now):
    draft = ContractDraft(to="ceo", title="Sell", body="Sell it.")
    issue_for_board(person=person, draft=draft, now=now)


def add_a_task(person, company, now):
    create_task(caller=person, subject="Sell", now=now)


def approve_a_task(person, company, now):
    made = company.call("qa_worker", "task_create", subject="Sell").result["id"]
    company.call("qa_worker", "task_update", taskId=made, owner="qa_worker")
    company.call("qa_worker", "task_update", taskId=made, status="in_progress")
    ApiKey.objects.all().delete()
    approve_task(caller=person, task_id=made, now=now)


def answer_a_report(person, company, now):
    report = company.call("ceo", "send_mail", to="board", type="report", subject="S", body="B")
    answer_report(mail_id=report.result["mail_id"], text="Good.", person=person, now=now)


ACTS = [
    change_a_setting, issue_a_key, pause, reject, issue_a_contract, add_a_task, approve_a_task,
    answer_a_report,
]  # fmt: skip


@pytest.fixture
def person(board, hr, company):
    """A member of the Board as a request finds them at its beginning."""
    return person_named("board", company.organisation.id)


def leave_the_group(user):
    user.groups.clear()


def leave_the_organisation(user):
    Membership.objects.filter(person=user).delete()


def stop_signing_in(user):
    get_user_model().objects.filter(pk=user.pk).update(is_active=False)


@pytest.mark.parametrize("act", ACTS)
class TestAnAct:
    @pytest.mark.parametrize("leave", [leave_the_group, leave_the_organisation, stop_signing_in])
    def test_of_who_has_left_meanwhile_changes_nothing(self, person, company, now, act, leave):
        leave(get_user_model().objects.get(username="board"))
        before = company.organisation.policy_version
        with pytest.raises(Denied) as refused:
            act(person, company, now)
        assert refused.value.deny.code == "NOT_YOURS"
        assert "ended while this was carried out" in refused.value.deny.message
        assert Organisation.objects.get().policy_version == before
        assert not ApiKey.objects.filter(agent__handle="qa_worker").exists()
        assert not Pause.objects.exists()
        assert not Event.objects.filter(actor="human:board").exists()

    def test_of_who_got_a_right_meanwhile_is_carried_out(self, person, company, now, act, groups):
        user = get_user_model().objects.get(username="board")
        user.groups.add(groups[PeopleGroup.HR])
        act(person, company, now)
        assert Event.objects.filter(actor="human:board").exists()
