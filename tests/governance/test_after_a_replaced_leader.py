"""What a replaced leader leaves behind: it orders, closes and approves nothing (contracts 52)."""

import pytest
from django.utils import timezone

from contracts.models import Contract
from mailroom.models import Mail
from orgchart.leaders import replace_leader
from orgchart.models import Agent, Group, Role
from orgchart.services import change_policy
from tests.company import load_company

CODE = {"mode": "coding", "workspace_scope": ["src/a/"], "assigned_branch": "feat/a"}
APPROVAL = {"environment": "production", "artifact": f"sha256:{'a' * 64}", "reason": "r",
            "expires_at": "2999-01-01T00:00:00Z"}  # fmt: skip


@pytest.fixture
def unit(db):
    """A unit of NEXUS below the CEO: a lead, who makes code, two judges, and who deploys."""
    company = load_company("nexus")
    members = {
        "lead": "it_manager", "maker": "backend_worker", "judge": "qa_worker",
        "other_judge": "qa_worker", "deployer": "devops_worker",
    }  # fmt: skip

    def hire(organisation):
        group = Group.objects.create(organisation=organisation, slug="unit", name="Unit")
        above = company.agent("ceo")
        for name, role in members.items():
            agent = Agent.objects.create(
                organisation=organisation, handle=f"unit_{name}", title=name, group=group,
                name=name, role=Role.objects.get(organisation=organisation, name=role),
                reports_to=above, is_leader=name == "lead",
            )  # fmt: skip
            above = agent if agent.is_leader else above

    change_policy(
        organisation_id=company.organisation.id, apply=hire, caller=company.system,
        action="agent.hired", now=timezone.now(),
    )  # fmt: skip
    return company


def ask(company, who, tool, **params):
    answer = company.call(f"unit_{who}", tool, **params)
    return answer.result if answer.code == "OK" else answer.code


def order(company, to, **terms):
    issued = ask(company, "lead", "create_contract", to=f"unit_{to}", title="Do", body="b", **terms)
    return issued["contract_id"]


def let_lead(company, name):
    replace_leader(
        group=Group.objects.get(slug="unit"), leader=company.agent(f"unit_{name}"),
        caller=company.system, now=timezone.now(), reason="It leads better",
    )  # fmt: skip


def issuer_of(contract_id):
    return Contract.objects.get(id=contract_id).issuer_name


def submitted(company):
    work = order(company, "maker", **CODE)
    ask(company, "maker", "accept_contract", contract_id=work)
    done = {"contract_id": work, "kind": "completion", "title": "Done", "body": "b"}
    ask(company, "maker", "submit_report", **done)
    return work


class TestContractsOfAReplacedLeader:
    def test_are_closed_by_the_new_leader_alone(self, unit):
        work = order(unit, "maker")
        let_lead(unit, "deployer")
        end = {"contract_id": work, "outcome": "cancelled", "reason": "over"}
        assert ask(unit, "lead", "close_contract", **end) in ("NOT_YOURS", "NOT_FOUND")
        assert ask(unit, "deployer", "close_contract", **end)["state"] == "cancelled"

    def test_are_told_to_the_new_leader(self, unit):
        work = order(unit, "maker")
        let_lead(unit, "deployer")
        told = Mail.objects.get(to_agent="unit_deployer", subject__startswith="You are now the iss")
        assert work in told.body

    def test_with_the_new_leader_go_to_the_one_above(self, unit):
        work = order(unit, "deployer")
        approval = ask(unit, "lead", "approve_deployment", to="unit_deployer", **APPROVAL)
        let_lead(unit, "deployer")
        assert issuer_of(work) == issuer_of(approval["contract_id"]) == "ceo"

    def test_do_not_go_to_who_judged_the_work(self, unit):
        """Spec: organisation 29."""
        work = submitted(unit)
        verdict = {"contract_id": work, "verdict": "PASS", "evidence": "212 passed"}
        ask(unit, "judge", "write_verdict", **verdict)
        let_lead(unit, "judge")
        assert issuer_of(work) == "ceo"

    def test_in_review_go_to_another_member(self, unit):
        work = submitted(unit)
        let_lead(unit, "judge")
        assert issuer_of(work) == "unit_judge"

    def test_are_not_judged_by_it(self, unit):
        """Spec: contracts 28: it ordered the work."""
        work = submitted(unit)
        let_lead(unit, "judge")
        verdict = {"contract_id": work, "verdict": "PASS", "evidence": "212 passed"}
        assert unit.agent("unit_lead").role.name == "qa_worker"
        assert ask(unit, "lead", "write_verdict", **verdict) == "NOT_YOURS"
        assert "verdict_id" in ask(unit, "other_judge", "write_verdict", **verdict)

    def test_that_it_works_on_stay(self, unit):
        issued = unit.call(
            "ceo", "generate_contract", to="unit_lead", title="Lead", body="b"
        ).result["contract_id"]
        let_lead(unit, "deployer")
        assert issuer_of(issued) == "ceo"

    def test_that_have_ended_stay(self, unit):
        work = order(unit, "maker")
        end = {"contract_id": work, "outcome": "cancelled", "reason": "over"}
        ask(unit, "lead", "close_contract", **end)
        let_lead(unit, "deployer")
        assert issuer_of(work) == "unit_lead"


class TestContractsWithAnAgentThatMoves:
    def test_stay_with_a_manager_that_stays_one(self, unit):
        """Spec: contracts 52."""
        work = order(unit, "maker")

        change_policy(
            organisation_id=unit.organisation.id,
            apply=lambda organisation: Agent.objects.filter(handle="unit_maker").update(
                group=None, name="", reports_to=unit.agent("it_manager")
            ) and None,
            caller=unit.system, action="agent.moved", now=timezone.now(),
        )  # fmt: skip
        assert issuer_of(work) == "unit_lead"
