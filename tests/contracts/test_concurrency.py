"""Two at once: each on a connection of its own, and only one truth afterwards."""

import threading
from functools import partial

import pytest
from django.db import connections, transaction

from contracts import store
from contracts.approvals import deployments
from contracts.issuing import rules
from contracts.issuing import services as issuing
from contracts.models import Contract, Report, Verdict
from contracts.reassignment import reassign_contracts
from contracts.vocabulary import ContractKind, ContractState, ReportKind
from core.actions import Action
from core.decision import Code
from ledger.models import Event
from mailroom.delivery import MailDraft
from mailroom.models import ContactGrant, Mail
from mailroom.services import send_mail
from orgchart.models import Agent
from orgchart.services import change_policy
from tests.concurrency import is_waiting_for_a_lock, outlast_the_look_for_a_deadlock
from tests.contracts.world import (
    DIGEST,
    accept,
    approve,
    at_once,
    at_state,
    close,
    issue,
    judge,
    now,
    refusal,
    row,
    submit,
)
from tests.patience import PATIENCE, wait_until
from toolbox.models import ModeGrant

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 5
PARTIES = ("it_manager", "backend_worker")


@pytest.fixture
def company(nexus):
    """The company with every key made, so that threads only use them."""
    for handle in nexus.policy.agents:
        nexus.caller(handle)
    return nexus


def won(ends):
    return [end for end in ends if not isinstance(end, Code)]


def count(action, contract_id):
    return Event.objects.filter(action=action, subject=f"contract:{contract_id}").count()


class TestOpenContracts:
    def test_goes_past_no_limit(self, company, monkeypatch):
        """Spec: contracts 59."""
        monkeypatch.setattr(rules, "MOST_OPEN", 3)
        ends = at_once([partial(issue, company)] * 6)
        assert len(won(ends)) == Contract.objects.count() == 3
        assert ends.count(Code.QUOTA_EXCEEDED) == 3


class TestAccepting:
    @pytest.mark.parametrize("version", [None, 1])
    def test_lets_exactly_one_of_many_win(self, company, version):
        contract_id = issue(company, coding=True)
        ends = at_once([partial(accept, company, contract_id, version=version)] * 6)
        assert won(ends) == [{"state": "in_progress", "version": 2}]
        lost = Code.INVALID_TRANSITION if version is None else Code.VERSION_MISMATCH
        assert ends.count(lost) == 5
        assert count("contract.accepted", contract_id) == 1
        assert ModeGrant.objects.filter(closed_at=None).count() == 1

    def test_or_cancelling_wins_when_both_saw_the_same_version(self, company):
        for _ in range(ROUNDS):
            contract_id = issue(company, coding=True)
            accepted, cancelled = at_once(
                [
                    partial(accept, company, contract_id, version=1),
                    partial(close, company, contract_id, "cancelled", version=1),
                ]
            )
            (winner,) = won([accepted, cancelled])
            assert [accepted, cancelled].count(Code.VERSION_MISMATCH) == 1
            assert winner == {"state": row(contract_id).state, "version": 2}
            assert row(contract_id).version == 2

    def test_and_cancelling_never_leave_a_mode_behind(self, company):
        for _ in range(ROUNDS):
            contract_id = issue(company, coding=True)
            accepted, cancelled = at_once(
                [
                    partial(accept, company, contract_id),
                    partial(close, company, contract_id, "cancelled"),
                ]
            )
            assert cancelled["state"] == row(contract_id).state == "cancelled"
            assert accepted is Code.INVALID_TRANSITION or accepted["state"] == "in_progress"
            assert not ModeGrant.objects.filter(closed_at=None).exists()
            assert company.caller("backend_worker").session.mode == "chat_safe"


class TestAnsweringARequest:
    def test_is_done_by_one_of_many_budgets(self, company):
        asked = company.call("it_manager", "request_budget", amount="9", purpose="Disks.").result
        budget = partial(
            issue, company, "it_manager", by="ceo", tool="generate_contract",
            kind=ContractKind.BUDGET, request=asked["mail_id"],
        )  # fmt: skip
        ends = at_once([budget] * 4)
        assert len(won(ends)) == 1
        assert ends.count(Code.INVALID_TRANSITION) == 3
        assert Contract.objects.filter(request_id=asked["mail_id"]).count() == 1


class TestSubmitting:
    def test_hands_the_work_in_once(self, company):
        contract_id = at_state(company, ContractState.IN_PROGRESS)
        ends = at_once([partial(submit, company, contract_id)] * 4)
        (winner,) = won(ends)
        assert winner["state"] == row(contract_id).state == "review"
        assert ends.count(Code.INVALID_TRANSITION) == 3
        assert Report.objects.count() == Mail.objects.filter(mail_type="report").count() == 1

    def test_progress_and_completion_at_once_are_both_told(self, company):
        contract_id = at_state(company, ContractState.IN_PROGRESS)
        ends = at_once(
            [
                partial(submit, company, contract_id, kind=ReportKind.PROGRESS),
                partial(submit, company, contract_id),
            ]
        )
        assert ends[1]["state"] == "review"
        assert ends[0] is Code.INVALID_TRANSITION or ends[0]["state"] == "in_progress"


class TestClosing:
    def test_lets_exactly_one_of_many_win(self, company):
        contract_id = at_state(company, ContractState.REVIEW)
        outcomes = ["passed", "failed", "cancelled"] * 2
        ends = at_once([partial(close, company, contract_id, outcome) for outcome in outcomes])
        (winner,) = won(ends)
        assert winner["version"] == row(contract_id).version == 4
        assert row(contract_id).state == winner["state"]
        assert ends.count(Code.INVALID_TRANSITION) == 5
        closings = [count(f"contract.{o}", contract_id) for o in ("passed", "failed", "cancelled")]
        assert sum(closings) == 1

    def test_by_agent_and_person_at_once_happens_once(self, company):
        contract_id = at_state(company, ContractState.REVIEW)
        board = company.person("Board")
        ends = at_once(
            [
                partial(close, company, contract_id, "passed", version=3),
                partial(close, company, contract_id, "cancelled", by=board, version=3),
            ]
        )
        (winner,) = won(ends)
        assert ends.count(Code.VERSION_MISMATCH) == 1
        assert winner == {"state": row(contract_id).state, "version": 4}

    def test_never_passes_work_that_qa_fails_at_that_moment(self, company):
        for _ in range(ROUNDS):
            contract_id = at_state(company, ContractState.REVIEW, workspace_scope=["src/"])
            judge(company, contract_id, "PASS")
            verdict, closed = at_once(
                [
                    partial(judge, company, contract_id, "FAIL"),
                    partial(close, company, contract_id),
                ]
            )
            if isinstance(verdict, Code):
                assert verdict is Code.INVALID_TRANSITION
                assert row(contract_id).state == "passed"
            else:
                assert closed is Code.APPROVAL_REQUIRED
                assert row(contract_id).state == "review"
            assert Verdict.objects.filter(contract_id=contract_id).count() == 2 - isinstance(
                verdict, Code
            )

    def test_lets_no_mail_through_a_channel_that_is_closed(self, company):
        from contracts.issuing.rules import RequestedChannel

        for _ in range(ROUNDS):
            wish = RequestedChannel("frontend_worker", "product_manager")
            contract_id = issue(company, "frontend_worker", grants=[wish])
            mail = MailDraft(
                to="product_manager",
                mail_type="question",
                subject="?",
                body="",
                contract_ref=contract_id,
            )
            sent, closed = at_once(
                [
                    lambda mail=mail: send_mail(
                        caller=company.caller("frontend_worker"), draft=mail, now=now()
                    ),
                    partial(close, company, contract_id, "cancelled"),
                ]
            )
            assert closed["state"] == "cancelled"
            assert sent is Code.CONTRACT_REQUIRED or sent["status"] == "delivered"
            assert not ContactGrant.objects.filter(closed_at=None).exists()

    def test_waits_for_a_mail_that_its_channel_has_let_through(self, company, monkeypatch):
        from contracts.issuing.rules import RequestedChannel
        from mailroom import services

        wish = RequestedChannel("frontend_worker", "product_manager")
        contract_id = issue(company, "frontend_worker", grants=[wish])
        insert, ended, seen = services.insert_mail, threading.Event(), []

        def close_it():
            try:
                close(company, contract_id, "cancelled")
            finally:
                ended.set()
                connections.close_all()

        def insert_while_it_closes(*args, **kwargs):
            threading.Thread(target=close_it).start()
            while not ended.is_set() and not is_waiting_for_a_lock():
                ended.wait(0.01)
            seen.append(ended.is_set())
            return insert(*args, **kwargs)

        monkeypatch.setattr(services, "insert_mail", insert_while_it_closes)
        mail = MailDraft(
            to="product_manager", mail_type="question", subject="?", body="",
            contract_ref=contract_id,
        )  # fmt: skip
        sent = send_mail(caller=company.caller("frontend_worker"), draft=mail, now=now())
        assert ended.wait(PATIENCE)
        assert seen == [False]
        delivered = Event.objects.get(action="mail.delivered", subject=f"mail:{sent['mail_id']}")
        assert delivered.seq < Event.objects.get(action="grant.closed").seq


class TestTwoCallsOfOneIssuer:
    """And of the two agents of one contract: none waits for what another one holds."""

    def test_both_end(self, company):
        """One issues and one closes, many times: a deadlock would be raised here."""
        for _ in range(ROUNDS):
            open_ids = [
                issue(company, to, by="ceo", tool="generate_contract")
                for to in ("it_manager", "product_manager")
            ]
            acts = [partial(close, company, one, "cancelled", by="ceo") for one in open_ids]
            acts += [
                partial(issue, company, to, by="ceo", tool="generate_contract")
                for to in ("product_manager", "it_manager")
            ]
            closed, issued = (ends := at_once(acts))[:2], ends[2:]
            assert [end["state"] for end in closed] == ["cancelled", "cancelled"]
            assert {row(end).state for end in issued} == {"pending"}

    def test_sends_back_while_the_assignee_reports(self, company, monkeypatch):
        contract_id = at_state(company, ContractState.REVIEW, coding=True)
        begun, reopen = threading.Event(), store.reopen_mode

        def late(**fields):
            begun.set()
            wait_until(is_waiting_for_a_lock)
            return reopen(**fields)

        def report():
            begun.wait(PATIENCE)
            return submit(company, contract_id, kind=ReportKind.PROGRESS)

        monkeypatch.setattr(store, "reopen_mode", late)
        back = partial(close, company, contract_id, "rework", reason="once more")
        ends = at_once([back, report])
        assert [end["state"] for end in ends] == ["in_progress", "in_progress"]
        assert company.caller("backend_worker").session.mode == "coding"


class TestIssuing:
    def test_assigns_no_branch_inside_one_that_is_assigned_at_the_same_time(
        self, company, monkeypatch
    ):
        """Spec: contracts 32: git keeps no branch inside another."""
        begun, decide = threading.Event(), issuing.check_draft

        def late(draft, *args, **fields):
            if draft.assigned_branch == "work":
                begun.set()
                wait_until(is_waiting_for_a_lock)
            return decide(draft, *args, **fields)

        def below():
            begun.wait(PATIENCE)
            return issue(company, "frontend_worker", assigned_branch="work/login")

        monkeypatch.setattr(issuing, "check_draft", late)
        ends = at_once([partial(issue, company, assigned_branch="work"), below])
        assert ends[1] is Code.BRANCH_DENIED
        assert row(ends[0]).assigned_branch == "work"

    def test_ends_without_a_deadlock_while_its_parties_are_moved(self, company):
        """A large pack is loaded for longer than PostgreSQL waits before it looks for one."""
        begun = threading.Event()
        later, earlier = sorted((company.agent(one).id for one in PARTIES), reverse=True)

        def move_both(_):
            Agent.objects.filter(id=later).update(title="Moved")
            begun.set()
            outlast_the_look_for_a_deadlock()
            Agent.objects.filter(id=earlier).update(title="Moved")

        def move():
            return change_policy(
                organisation_id=company.organisation.id,
                apply=move_both,
                caller=company.person("Board"),
                action=Action.PACK_LOADED,
                now=now(),
            ).changed

        def order():
            begun.wait(PATIENCE)
            return row(issue(company)).state

        assert at_once([move, order]) == [True, "pending"]


class TestApprovals:
    @pytest.mark.parametrize("given", [1, 2])
    def test_are_each_good_for_one_deployment(self, company, given):
        ids = {approve(company) for _ in range(given)}

        def deploy():
            return deployments.use_approval(
                caller=company.caller("devops_worker"),
                environment="production",
                artifact=DIGEST,
                now=now(),
            )

        ends = at_once([deploy] * 5)
        assert set(won(ends)) == ids
        assert len(won(ends)) == given
        assert ends.count(Code.APPROVAL_REQUIRED) == 5 - given

    def test_are_used_or_cancelled_never_both(self, company):
        for _ in range(ROUNDS):
            contract_id = approve(company)
            used, closed = at_once(
                [
                    lambda: deployments.use_approval(
                        caller=company.caller("devops_worker"),
                        environment="production",
                        artifact=DIGEST,
                        now=now(),
                    ),
                    partial(close, company, contract_id, "cancelled", version=1),
                ]
            )
            if isinstance(used, Code):
                assert used is Code.APPROVAL_REQUIRED
                assert (closed["state"], row(contract_id).used_at) == ("cancelled", None)
            else:
                assert closed is Code.VERSION_MISMATCH
                assert row(contract_id).used_at is not None


class TestDeactivation:
    def deactivate(self, company, handle, successor):
        def apply(organisation):
            Agent.objects.filter(organisation=organisation, handle=handle).update(active=False)

        agents = company.policy.agents
        with transaction.atomic():
            change_policy(
                organisation_id=company.organisation.id,
                apply=apply,
                caller=company.system,
                action="agent.deactivated",
                now=now(),
            )
            return reassign_contracts(
                caller=company.system,
                leaver=agents[handle],
                successor=agents[successor],
                now=now(),
            )

    def test_sees_every_contract_that_was_issued_before_it(self, company):
        issued, held = at_once(
            [
                partial(issue, company, "devops_worker"),
                partial(self.deactivate, company, "devops_worker", "it_manager"),
            ]
        )
        if isinstance(issued, Code):
            assert issued is Code.RECIPIENT_INACTIVE
            assert held.assigned == ()
            assert not Contract.objects.exists()
        else:
            assert held.assigned == (issued,)

    def test_waits_for_a_contract_that_is_being_issued(self, company, monkeypatch):
        written, gone, record = threading.Event(), threading.Event(), issuing.record

        def late(action, **fields):
            written.set()
            gone.wait(1)  # the deactivation has this long to overtake
            return record(action, **fields)

        def deactivate():
            written.wait(PATIENCE)
            held = self.deactivate(company, "devops_worker", "it_manager")
            gone.set()
            return held

        monkeypatch.setattr(issuing, "record", late)
        issued, held = at_once([partial(issue, company, "devops_worker"), deactivate])
        assert held.assigned == (issued,)

    def test_refuses_a_contract_that_comes_after_it(self, company):
        caller = company.caller("it_manager")
        self.deactivate(company, "devops_worker", "it_manager")
        company.caller = lambda _handle: caller
        assert refusal(issue, company, "devops_worker").code is Code.RECIPIENT_INACTIVE

    def test_refuses_the_acceptance_that_comes_after_it(self, company):
        """Of a call that had begun before (Spec: organisation 38)."""
        contract_id = issue(company, "devops_worker", coding=True)
        caller = company.caller("devops_worker")
        self.deactivate(company, "devops_worker", "it_manager")
        company.caller = lambda _handle: caller
        assert refusal(accept, company, contract_id).code is Code.AGENT_INACTIVE
        assert row(contract_id).state == ContractState.PENDING
        assert not ModeGrant.objects.exists()

    def test_waits_for_an_acceptance_that_is_under_way(self, company, monkeypatch):
        contract_id = issue(company, "devops_worker")
        begun, gone, save = threading.Event(), threading.Event(), store.save_contract

        def late(*args, **fields):
            begun.set()
            gone.wait(1)  # the deactivation has this long to overtake
            return save(*args, **fields)

        def deactivate():
            begun.wait(PATIENCE)
            self.deactivate(company, "devops_worker", "it_manager")
            gone.set()
            return row(contract_id).state

        monkeypatch.setattr(store, "save_contract", late)
        ends = at_once([partial(accept, company, contract_id, by="devops_worker"), deactivate])
        assert ends[1] == ContractState.IN_PROGRESS


def test_ids_made_at_the_same_moment_do_not_clash(company, monkeypatch):
    moment = now()
    monkeypatch.setattr("tests.contracts.world.now", lambda: moment)
    ends = at_once([partial(issue, company) for _ in range(8)])
    assert won(ends) == ends, "a refusal is no id"
    assert len(set(ends)) == Contract.objects.count() == 8
