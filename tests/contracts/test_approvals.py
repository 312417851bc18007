"""Authorisations: one deployment, one change of the organisation, a budget."""

import itertools
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from contracts.approvals import authorisations, budgets, deployments
from contracts.issuing.changes import NamedChange, SoughtLine
from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_for_board
from contracts.vocabulary import ContractKind, OrgAct
from core.decision import Allow, Code
from ledger.models import Event
from mailroom.models import Mail
from orgchart.explaining import CallQuestion, explain
from tests.company import load_company
from tests.contracts.world import (
    DIGEST,
    accept,
    approve,
    close,
    issue,
    now,
    org_change,
    refusal,
    row,
    submit_by_mail,
)
from tests.oracle.org import AGENTS

pytestmark = pytest.mark.django_db


def use(nexus, *, by="devops_worker", environment="production", artifact=DIGEST, at=None):
    return deployments.use_approval(
        caller=nexus.caller(by), environment=environment, artifact=artifact, now=at or now()
    )


class TestApproveDeployment:
    def test_leaves_a_contract_that_names_one_deployment(self, nexus):
        contract = row(approve(nexus))
        assert contract.kind == "deployment_approval"
        assert (contract.environment, contract.artifact) == ("production", DIGEST)
        assert contract.notice.mail_type == "deployment_approval"
        assert contract.notice.to_agent == "devops_worker"

    @pytest.mark.parametrize(
        ("to", "code"),
        [
            ("backend_worker", Code.LEVEL_DENIED),
            ("qa_worker", Code.LEVEL_DENIED),
            ("it_manager", Code.LEVEL_DENIED),
            ("ceo", Code.LEVEL_DENIED),
            ("research_worker", Code.CONTACT_DENIED),
            ("board", Code.CONTACT_DENIED),
            ("nobody", Code.RECIPIENT_UNKNOWN),
        ],
    )
    def test_is_for_ones_own_worker_that_deploys(self, nexus, to, code):
        assert refusal(approve, nexus, to=to).code == code

    @pytest.mark.parametrize(
        "fields", [{"environment": "Production"}, {"artifact": "a b"}, {"hours": -1}]
    )
    def test_refuses_what_names_no_deployment_ahead(self, nexus, fields):
        assert refusal(approve, nexus, **fields).code is Code.INVALID_PARAMS

    def test_is_explained_at_the_time_of_the_database(self, nexus, monkeypatch):
        """Spec: clocks 3. The clock of the machine that answers does not count."""
        machine = timezone.now()
        params = {"to": "devops_worker", "environment": "production", "artifact": DIGEST}
        params |= {"expires_at": (machine + timedelta(hours=1)).isoformat(), "reason": "Passed."}
        monkeypatch.setattr(timezone, "now", lambda: machine + timedelta(hours=2))
        it_manager = nexus.policy.agents["it_manager"]
        question = CallQuestion(
            policy=nexus.policy, agent=it_manager, tool="approve_deployment", params=params
        )
        assert isinstance(explain(question), Allow)

    def test_is_not_issued_with_any_other_tool(self, nexus):
        found = refusal(
            issue, nexus, "devops_worker", kind=ContractKind.DEPLOYMENT_APPROVAL,
            environment="production", artifact=DIGEST, expires_at=now() + timedelta(hours=1),
        )  # fmt: skip
        assert found.code is Code.INVALID_PARAMS
        assert "approve_deployment" in found.next_action


class TestUseApproval:
    def test_uses_it_up(self, nexus):
        contract_id = approve(nexus)
        assert use(nexus) == contract_id
        used = row(contract_id)
        assert used.used_at is not None
        assert (used.state, used.version) == ("pending", 2)
        assert Event.objects.get(action="approval.used").for_agent_id == used.issuer_id
        assert "was used" in refusal(use, nexus).message

    def test_uses_one_of_two_at_a_time(self, nexus):
        later, sooner = approve(nexus, hours=2), approve(nexus, hours=1)
        assert use(nexus) == sooner
        assert use(nexus) == later
        assert refusal(use, nexus).code is Code.APPROVAL_REQUIRED

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"environment": "staging"}, "another environment"),
            ({"environment": "Production"}, "another environment"),
            ({"environment": "production "}, "another environment"),
            ({"artifact": "sha256:" + "b" * 64}, "another environment or artefact"),
            ({"at": now() + timedelta(days=1)}, "has expired"),
            ({"by": "backend_worker"}, "there is none"),
            ({"by": "it_manager"}, "there is none"),
        ],
    )
    def test_refuses_any_other_deployment_and_says_why(self, nexus, fields, why):
        contract_id = approve(nexus)
        found = refusal(use, nexus, **fields)
        assert found.code is Code.APPROVAL_REQUIRED
        assert why in found.message
        assert "to approve exactly" in found.next_action
        assert row(contract_id).used_at is None

    def test_refuses_where_there_is_none(self, nexus):
        assert "there is none" in refusal(use, nexus).message

    def test_refuses_a_cancelled_one(self, nexus):
        close(nexus, approve(nexus), "cancelled")
        assert "is cancelled" in refusal(use, nexus).message

    def test_serves_work_in_progress_too(self, nexus):
        contract_id = approve(nexus)
        accept(nexus, contract_id, by="devops_worker")
        assert use(nexus) == contract_id
        assert row(contract_id).version == 3


class TestOrgChange:
    """What HR may change: what a line names, once, while its contract is in progress."""

    def use(self, nexus, act="hire", subject="recruiter", *, by="hr_manager", at=None):
        caller, sought = nexus.caller(by), SoughtLine(OrgAct(act), subject)
        with transaction.atomic():
            return authorisations.use_change(caller=caller, sought=sought, now=at or now())

    def test_is_used_once(self, nexus):
        contract_id = org_change(nexus, "hire recruiter", "deactivate devops_worker")
        assert self.use(nexus) == contract_id
        found = refusal(self.use, nexus)
        assert found.code is Code.AUTHORISATION_REQUIRED
        assert "ceo" in found.next_action
        assert self.use(nexus, "deactivate", "devops_worker") == contract_id

    def test_named_twice_is_used_twice(self, nexus):
        org_change(nexus, "describe qa_worker", "describe qa_worker")
        for _ in range(2):
            self.use(nexus, "describe", "qa_worker")
        assert refusal(self.use, nexus, "describe", "qa_worker").code == "AUTHORISATION_REQUIRED"

    @pytest.mark.parametrize(("act", "subject"), list(itertools.product(OrgAct, AGENTS)))
    def test_covers_that_act_on_that_agent_only(self, nexus, act, subject):
        org_change(nexus, "describe qa_worker")
        if (act, subject) == (OrgAct.DESCRIBE, "qa_worker"):
            assert self.use(nexus, act, subject)
        else:
            found = refusal(self.use, nexus, act, subject)
            assert found.code is Code.AUTHORISATION_REQUIRED

    def test_is_there_while_it_is_in_progress_only(self, nexus):
        contract_id = org_change(nexus, "hire recruiter", accepted=False)
        assert refusal(self.use, nexus).code is Code.AUTHORISATION_REQUIRED
        accept(nexus, contract_id, by="hr_manager")
        submit_by_mail(nexus, contract_id, by="hr_manager")
        assert refusal(self.use, nexus).code is Code.AUTHORISATION_REQUIRED
        close(nexus, contract_id, "rework", by="ceo")
        self.use(nexus)

    def test_ends_by_its_expiry_its_deadline_or_after_a_week(self, nexus):
        for fields, end in (
            ({"expires_at": now() + timedelta(hours=2)}, timedelta(hours=2)),
            ({"deadline": now() + timedelta(hours=3)}, timedelta(hours=3)),
            ({}, timedelta(days=7)),
        ):
            contract_id = org_change(nexus, "hire recruiter", **fields)
            late = refusal(self.use, nexus, at=now() + end + timedelta(minutes=1))
            assert late.code is Code.AUTHORISATION_REQUIRED
            assert self.use(nexus, at=now() + end - timedelta(minutes=1)) == contract_id

    def test_is_its_assignees_alone(self, nexus):
        org_change(nexus, "hire recruiter")
        for handle in ("it_manager", "ceo", "product_manager"):
            assert refusal(self.use, nexus, by=handle).code is Code.AUTHORISATION_REQUIRED

    def test_names_at_least_one_change_of_an_agent_there_is(self, nexus):
        for changes in (
            (), ("hire it_manager",), ("hire board",), ("hire No-Handle",), ("move nobody",),
            ("hire recruiter", "deactivate recruter"),
        ):  # fmt: skip
            assert refusal(org_change, nexus, *changes).code is Code.INVALID_PARAMS
        place = {"role": "emperor"}, {"reports_to": "nobody"}, {"group": "none"}, {"leads": "none"}
        for given in place:
            lines = [NamedChange(OrgAct.MOVE, "backend_worker", **given)]
            assert refusal(
                issue, nexus, "hr_manager", by="ceo", tool="generate_contract",
                kind=ContractKind.ORG_CHANGE, changes=lines,
            ).code is Code.INVALID_PARAMS  # fmt: skip
        for kind in (ContractKind.WORK, ContractKind.BUDGET):
            change = [NamedChange(OrgAct.HIRE, "recruiter")]
            found = refusal(
                issue, nexus, "hr_manager", by="ceo", tool="generate_contract", kind=kind,
                changes=change,
            )  # fmt: skip
            assert found.code is Code.INVALID_PARAMS
            soon = now() + timedelta(hours=1)
            found = refusal(
                issue, nexus, "hr_manager", by="ceo", tool="generate_contract", kind=kind,
                expires_at=soon,
            )  # fmt: skip
            assert found.code is Code.INVALID_PARAMS
        past = now() - timedelta(hours=1)
        found = refusal(org_change, nexus, "hire recruiter", expires_at=past)
        assert found.code is Code.INVALID_PARAMS

    def test_may_name_what_follows_a_hire(self, nexus):
        org_change(nexus, "hire recruiter", "deactivate recruiter")
        self.use(nexus, "deactivate", "recruiter")

    def test_resolves_an_alias(self, nexus):
        org_change(nexus, "describe backend_dev")
        self.use(nexus, "describe", "backend_worker")

    def test_is_shown_to_hr(self, nexus):
        contract_id = org_change(nexus, "hire recruiter")
        self.use(nexus)
        found = nexus.call("hr_manager", "list_contracts", contract_id=contract_id).result
        (line,) = found["changes"]
        assert (line["act"], line["subject"]) == ("hire", "recruiter")
        assert line["used_at"]
        assert "hire recruiter" in row(contract_id).notice.body

    def test_hr_cannot_issue_its_own(self, nexus):
        for to in ("hr_manager", "ceo", "it_manager"):
            found = refusal(issue, nexus, to, by="hr_manager", kind=ContractKind.ORG_CHANGE)
            assert found.code is Code.LEVEL_DENIED

    def test_is_for_hr_only(self, nexus):
        found = refusal(
            issue, nexus, "it_manager", by="ceo", tool="generate_contract",
            kind=ContractKind.ORG_CHANGE, changes=[NamedChange(OrgAct.HIRE, "recruiter")],
        )  # fmt: skip
        assert found.code is Code.LEVEL_DENIED


class TestRequestBudget:
    def ask(self, nexus, by="it_manager", **fields):
        return budgets.request_budget(
            caller=nexus.caller(by),
            amount=1500,
            currency="USD",
            purpose="servers",
            contract_ref=None,
            **fields,
            now=now(),
        )

    def test_asks_the_direct_superior(self, nexus):
        done = self.ask(nexus)
        mail = Mail.objects.get(id=done["mail_id"])
        assert (mail.mail_type, mail.to_agent) == ("approval_request", "ceo")
        assert "1500 USD" in mail.subject
        assert Event.objects.filter(action="budget.requested").count() == 1

    def test_refuses_who_has_no_superior(self, nexus):
        assert refusal(self.ask, nexus, by="ceo").code is Code.LEVEL_DENIED

    def test_is_answered_by_a_budget(self, nexus):
        contract_id = issue(
            nexus, "it_manager", by="ceo", tool="generate_contract", kind=ContractKind.BUDGET,
            amount=1500, currency="USD",
        )  # fmt: skip
        assert (row(contract_id).amount, row(contract_id).currency) == (1500, "USD")
        assert "1500 USD" in row(contract_id).notice.body


class TestTheBoard:
    def issue(self, nexus, to="ceo", *offices, **fields):
        draft = ContractDraft(to=to, title="Grow", body="Double it.", **fields)
        person = nexus.person(*(offices or ("Board",)))
        return issue_for_board(person=person, draft=draft, now=now())

    def test_issues_work_to_the_top_agent(self, nexus):
        done = self.issue(nexus)
        contract = row(done["contract_id"])
        assert (contract.issuer_id, contract.issuer_name) == (None, "board")
        assert contract.notice.from_agent == "board"
        assert Event.objects.get(action="contract.issued").actor == "human:alice"

    @pytest.mark.parametrize("to", ["it_manager", "backend_worker"])
    def test_issues_to_nobody_below(self, nexus, to):
        assert refusal(self.issue, nexus, to).code is Code.LEVEL_DENIED

    @pytest.mark.parametrize("office", ["HR", "Reviewer", "Observer"])
    def test_is_an_office(self, nexus, office):
        assert refusal(self.issue, nexus, "ceo", office).code is Code.NOT_YOURS
        contract_id = issue(nexus)
        person = nexus.person(office)
        assert refusal(close, nexus, contract_id, "cancelled", by=person).code is Code.NOT_YOURS

    @pytest.mark.parametrize("kind", [k for k in ContractKind if k is not ContractKind.WORK])
    def test_gives_the_top_agent_work_only(self, nexus, kind):
        assert refusal(self.issue, nexus, kind=kind).code is Code.LEVEL_DENIED

    def test_decides_on_its_own(self, nexus):
        contract_id = self.issue(nexus)["contract_id"]
        board = nexus.person("Board")
        accept(nexus, contract_id, by="ceo")
        assert refusal(close, nexus, contract_id, by=board).code is Code.INVALID_TRANSITION
        submit_by_mail(nexus, contract_id, by="ceo", to="board")
        assert refusal(close, nexus, contract_id, by="ceo").code is Code.NOT_YOURS
        assert close(nexus, contract_id, "rework", by=board)["state"] == "in_progress"
        submit_by_mail(nexus, contract_id, by="ceo", to="board")
        assert close(nexus, contract_id, by=board)["state"] == "passed"
        assert row(contract_id).closed_by == "human:alice"

    def test_cancels_any_and_passes_none_of_others(self, nexus):
        contract_id = issue(nexus)
        board = nexus.person("Board")
        for outcome in ("passed", "failed"):
            assert refusal(close, nexus, contract_id, outcome, by=board).code is Code.NOT_YOURS
        assert refusal(close, nexus, contract_id, "cancelled", by=board, version=7).code == (
            Code.VERSION_MISMATCH
        )
        assert close(nexus, contract_id, "cancelled", by=board, version=1)["version"] == 2

    def test_of_another_organisation_finds_nothing(self, nexus):
        contract_id = issue(nexus)
        other = load_company("constitution").person("Board")
        found = refusal(close, nexus, contract_id, "cancelled", by=other)
        assert found.code is Code.NOT_FOUND
        assert row(contract_id).state == "pending"
