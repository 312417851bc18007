"""What a replaced leader leaves behind: it closes no contract, and its tasks go on without it."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from contracts.models import Contract
from governance.staff.deactivation import deactivate_by_person
from mailroom.models import Mail
from orgchart.leaders import replace_leader
from orgchart.models import Agent, Group, Organisation, Role
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

    def test_in_review_cost_no_statement_each(self, unit):
        """There may be thousands, and a change of the policy waits for them."""

        def statements():
            with CaptureQueriesContext(connection) as seen:
                let_lead(unit, "judge")
            let_lead(unit, "lead")
            return len(seen)

        def submit():
            work = order(unit, "deployer")
            ask(unit, "deployer", "accept_contract", contract_id=work)
            done = {"contract_id": work, "kind": "completion", "title": "Done", "body": "b"}
            assert ask(unit, "deployer", "submit_report", **done)["state"] == "review"

        submit()
        statements()  # what is asked once for each process
        one = statements()
        for _ in range(5):
            submit()
        assert statements() == one

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


def own_task(company, by, **fields):
    return ask(company, by, "task_create", subject=f"By {by}", **fields)["id"]


class TestTasksOfAReplacedLeader:
    """Spec: tasks 61, tasks 63: what it wrote reaches its former people no more."""

    def test_stay_with_a_member_that_works_on_one(self, unit):
        task = own_task(unit, "lead", description="how")
        ask(unit, "maker", "task_update", taskId=task, owner="unit_maker", status="in_progress")
        let_lead(unit, "deployer")
        shown = ask(unit, "maker", "task_get", taskId=task)
        assert (shown["status"], shown["withheld"]) == ("in_progress", ["description", "subject"])
        assert ask(unit, "maker", "task_update", taskId=task, status="completed")["owner"]

    def test_are_passed_on_by_the_new_leader_in_its_own_words(self, unit):
        task = own_task(unit, "lead", requiredRole="backend_worker")
        let_lead(unit, "judge")
        assert ask(unit, "maker", "task_get", taskId=task) == "NOT_FOUND"
        assert ask(unit, "judge", "task_update", taskId=task, subject="Anew")["subject"] == "Anew"
        assert ask(unit, "maker", "task_update", taskId=task, owner="unit_maker")["owner"]

    def test_are_told_to_the_new_leader(self, unit):
        held = own_task(unit, "lead")
        ask(unit, "maker", "task_update", taskId=held, owner="unit_maker")
        first, second = own_task(unit, "lead"), own_task(unit, "lead")
        own_task(unit, "maker")
        let_lead(unit, "deployer")
        told = Mail.objects.get(to_agent="unit_deployer", subject__startswith="unit_lead has ano")
        assert f"wrote: #{first}, #{second}.\n" in told.body
        assert not Mail.objects.filter(subject__startswith="unit_deployer has ano").exists()

    def test_are_told_to_the_one_above_where_it_leaves(self, unit):
        task = own_task(unit, "lead")
        let_lead(unit, "deployer")
        deactivate_by_person(
            person=unit.person("HR"), agent="unit_lead", reason="It left", now=timezone.now(),
            expected_version=Organisation.objects.get(id=unit.organisation.id).policy_version,
        )  # fmt: skip
        told = Mail.objects.get(to_agent="unit_deployer", subject="unit_lead was deactivated")
        assert f"that it wrote, seen only by who may read it: {task}\n" in told.body


class TestAnAgentAboveACreator:
    """Spec: tasks 27: it edits and withdraws as the creator does, where it could create it."""

    def for_it(self, unit):
        role = {"requiredRole": "it_manager"}
        return unit.call("hr_manager", "task_create", subject="For IT", **role).result["id"]

    def test_edits_a_task_for_another_role(self, unit):
        changed = {"taskId": self.for_it(unit), "description": "more"}
        assert unit.call("ceo", "task_update", **changed).result["description"] == "more"
        assert unit.call("product_manager", "task_update", **changed).code == "ROLE_MISMATCH"

    def test_starts_nothing_that_it_could_not_claim(self, unit):
        started = {"taskId": self.for_it(unit), "status": "in_progress"}
        assert unit.call("ceo", "task_update", **started).code == "ROLE_MISMATCH"

    def test_edits_none_for_a_role_that_it_may_not_contact(self, unit):
        task = own_task(unit, "lead", requiredRole="backend_worker")
        answer = unit.call("ceo", "task_update", taskId=task, description="from the top")
        assert answer.code == "ROLE_MISMATCH"

    def test_withdraws_such_a_task(self, unit):
        task = own_task(unit, "lead", requiredRole="backend_worker")
        assert unit.call("ceo", "task_update", taskId=task, status="deleted").code == "OK"

    def test_takes_none_from_its_owner(self, unit):
        task = own_task(unit, "lead", requiredRole="backend_worker")
        ask(unit, "maker", "task_update", taskId=task, owner="unit_maker")
        answer = unit.call("ceo", "task_update", taskId=task, status="deleted")
        assert answer.code == "NOT_YOURS"
