"""Deadlines: who is told, when, and that it is once."""

from datetime import timedelta

import pytest

from contracts.approvals import deployments
from contracts.approvals.expiry import expire_approvals
from contracts.deadlines import REMINDED_BEFORE, notify_due
from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_contract
from contracts.models import Contract, Deadline
from ledger.models import Event
from mailroom.models import SYSTEM, Mail
from tests.contracts.world import (
    accept,
    approve,
    at_once,
    at_state,
    close,
    issue,
    now,
    refusal,
    row,
    submit,
)

NOW = now()
pytestmark = pytest.mark.django_db


def told(handle):
    found = Mail.objects.filter(from_agent=SYSTEM, to_agent=handle).order_by("id")
    return [mail.subject for mail in found]


class TestDeadlines:
    def test_reminds_the_assignee_a_day_before_and_tells_the_issuer_after(self, nexus):
        due = now() + timedelta(days=3)
        contract = issue(nexus, deadline=due)
        assert notify_due(now=due - REMINDED_BEFORE - timedelta(seconds=1)) == 0
        assert notify_due(now=due - REMINDED_BEFORE) == 1
        assert told("backend_worker") == [f"{contract} is due soon"]
        assert notify_due(now=due - timedelta(seconds=1)) == 0
        assert notify_due(now=due) == 1
        assert told("it_manager") == [f"{contract} of backend_worker is overdue"]
        assert notify_due(now=due + timedelta(days=9)) == 0

    def test_reminds_half_way_where_there_is_less_than_a_day(self, nexus):
        begun = now()
        contract = issue(nexus, deadline=begun + timedelta(hours=2))
        remind = Deadline.objects.get(contract_id=contract, stage="remind")
        assert abs((remind.due_at - begun).total_seconds() - 3600) < 60

    @pytest.mark.parametrize("late", [timedelta(0), timedelta(days=3)])
    def test_reminds_nobody_once_it_has_gone_by(self, nexus, late):
        due = now() + timedelta(days=3)
        contract = issue(nexus, deadline=due)
        assert notify_due(now=due + late) == 2
        assert not [s for s in told("backend_worker") if "due" in s]
        assert told("it_manager") == [f"{contract} of backend_worker is overdue"]
        actions = Event.objects.filter(subject=f"contract:{contract}").values_list(
            "action", flat=True
        )
        assert "contract.overdue" in actions
        assert "contract.reminded" not in actions
        assert notify_due(now=due + late) == 0

    @pytest.mark.parametrize("ago", [timedelta(0), timedelta(microseconds=1), timedelta(days=400)])
    def test_is_never_in_the_past(self, nexus, ago):
        draft = ContractDraft(to="backend_worker", title="T", body="B", deadline=NOW - ago)
        refused = refusal(
            issue_contract,
            caller=nexus.caller("it_manager"),
            draft=draft,
            tool="create_contract",
            now=NOW,
        )
        assert refused.code == "INVALID_PARAMS"
        assert "in the future" in refused.next_action
        assert refused.details == {"deadline": "must be in the future"}
        assert not Contract.objects.exists()

    def test_sets_none_where_there_is_no_deadline(self, nexus):
        issue(nexus)
        assert not Deadline.objects.exists()

    @pytest.mark.parametrize("state", ["review", "passed", "failed", "cancelled"])
    def test_tells_nobody_of_work_that_is_handed_in_or_closed(self, nexus, state):
        due = now() + timedelta(days=2)
        at_state(nexus, state, deadline=due)
        assert notify_due(now=due) == 2
        subjects = told("backend_worker") + told("it_manager")
        assert not [s for s in subjects if "due" in s]

    @pytest.mark.parametrize(
        ("before", "reader", "said"),
        [
            (timedelta(hours=20), "backend_worker", "{} is due soon"),
            (timedelta(0), "it_manager", "{} of backend_worker is overdue"),
        ],
    )
    def test_tells_what_fell_due_in_review_once_the_work_is_sent_back(
        self, nexus, before, reader, said
    ):
        due = now() + timedelta(days=2)
        contract = at_state(nexus, "review", deadline=due)
        said = said.format(contract)
        notify_due(now=due - before)
        assert said not in told(reader)
        close(nexus, contract, "rework")
        notify_due(now=due - before)
        assert told(reader).count(said) == 1
        submit(nexus, contract, at=due + timedelta(seconds=1))
        close(nexus, contract, "rework")
        assert notify_due(now=due - before) == 0

    def test_leaves_an_event_of_each(self, nexus):
        due = now() + timedelta(days=2)
        contract = issue(nexus, deadline=due)
        notify_due(now=due - timedelta(hours=1))
        notify_due(now=due)
        actions = Event.objects.filter(subject=f"contract:{contract}").values_list(
            "action", flat=True
        )
        assert {"contract.reminded", "contract.overdue"} <= set(actions)

    def test_catches_up_after_an_hour_without_a_beat(self, nexus):
        due = now() + timedelta(minutes=10)
        contract = issue(nexus, deadline=due)
        assert notify_due(now=due + timedelta(hours=1)) == 2
        assert told("it_manager") == [f"{contract} of backend_worker is overdue"]


class TestApprovals:
    def over(self, contract, **more):
        return row(contract).expires_at + timedelta(**more)

    @pytest.mark.parametrize("state", ["pending", "in_progress"])
    def test_are_called_off_once_when_their_time_runs_out(self, nexus, state):
        contract = approve(nexus)
        if state == "in_progress":
            accept(nexus, contract, by="devops_worker")
        assert expire_approvals(now=self.over(contract, seconds=-1)) == 0
        assert expire_approvals(now=self.over(contract)) == 1
        assert expire_approvals(now=self.over(contract, days=9)) == 0
        ended = row(contract)
        assert (ended.state, ended.closed_by) == ("cancelled", "system:approvals")
        assert Event.objects.filter(action="approval.expired").count() == 1
        expected = [f"{contract} has expired unused"]
        assert (told("it_manager"), told("devops_worker")) == (expected, expected)

    def test_that_were_used_or_closed_stay_as_they_are(self, nexus):
        used, closed = approve(nexus), approve(nexus)
        deployments.use_approval(
            caller=nexus.caller("devops_worker"),
            environment="production",
            artifact=row(used).artifact,
            now=now(),
        )
        close(nexus, closed, "cancelled")
        before = [row(used).version, row(closed).version]
        assert expire_approvals(now=self.over(used, days=1)) == 0
        assert [row(used).version, row(closed).version] == before

    def test_that_ran_out_open_nothing_though_no_clock_has_looked(self, nexus):
        contract = approve(nexus)
        refused = refusal(
            deployments.use_approval,
            caller=nexus.caller("devops_worker"),
            environment="production",
            artifact=row(contract).artifact,
            now=self.over(contract),
        )
        assert refused.code == "APPROVAL_REQUIRED"


@pytest.mark.django_db(transaction=True)
class TestSeveralBeatsAtOnce:
    def test_tell_each_row_once(self, nexus):
        due = now() + timedelta(hours=1)
        for _ in range(10):
            issue(nexus, deadline=due)
        counts = at_once([lambda: notify_due(now=due - timedelta(minutes=1))] * 4)
        counts += at_once([lambda: notify_due(now=due)] * 4)
        assert sum(counts) == 20
        assert len(told("backend_worker")) == len(told("it_manager")) == 10
