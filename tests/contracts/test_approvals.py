"""Authorisations: one deployment, one change of the organisation, a budget."""

from datetime import timedelta

import pytest
from django.db import transaction

from contracts.approvals import authorisations, budgets, deployments
from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_for_board
from contracts.vocabulary import ContractKind
from core.decision import Code
from ledger.models import Event
from mailroom.models import Mail
from tests.company import load_company
from tests.contracts.world import DIGEST, accept, approve, close, issue, now, refusal, row

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
        assert "approve_deployment" in found.next_action
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


class TestActiveAuthorisation:
    def change(self, nexus):
        return issue(
            nexus, "hr_manager", by="ceo", tool="generate_contract", kind=ContractKind.ORG_CHANGE
        )

    def found(self, nexus, kind=ContractKind.ORG_CHANGE, handle="hr_manager"):
        return authorisations.active_authorisation(
            organisation_id=nexus.organisation.id, assignee_id=nexus.agent(handle).id, kind=kind
        )

    def test_is_there_while_it_is_in_progress_only(self, nexus):
        contract_id = self.change(nexus)
        assert self.found(nexus) is None
        accept(nexus, contract_id, by="hr_manager")
        assert self.found(nexus).id == contract_id
        close(nexus, contract_id, by="ceo")
        assert self.found(nexus) is None

    def test_is_of_its_kind_its_assignee_and_its_organisation(self, nexus):
        contract_id = self.change(nexus)
        accept(nexus, contract_id, by="hr_manager")
        assert self.found(nexus, ContractKind.WORK) is None
        assert self.found(nexus, handle="it_manager") is None
        nexus.organisation.id += 1
        assert authorisations.active_authorisation(
            organisation_id=nexus.organisation.id,
            assignee_id=row(contract_id).assignee_id,
            kind=ContractKind.ORG_CHANGE,
        ) is None  # fmt: skip

    def test_is_required_by_name(self, nexus):
        with transaction.atomic():
            found = refusal(
                authorisations.require_authorisation,
                caller=nexus.caller("hr_manager"),
                kind=ContractKind.ORG_CHANGE,
            )
        assert found.code is Code.AUTHORISATION_REQUIRED
        assert "ceo" in found.next_action

    def test_hr_cannot_issue_its_own(self, nexus):
        for to in ("hr_manager", "ceo", "it_manager"):
            found = refusal(issue, nexus, to, by="hr_manager", kind=ContractKind.ORG_CHANGE)
            assert found.code is Code.LEVEL_DENIED

    def test_is_for_hr_only(self, nexus):
        found = refusal(
            issue, nexus, "it_manager", by="ceo", tool="generate_contract",
            kind=ContractKind.ORG_CHANGE,
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
        assert refusal(close, nexus, contract_id, by="ceo").code is Code.NOT_YOURS
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
