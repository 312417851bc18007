"""Contracts of several agents in any order never give what no single one of them gives."""

import itertools

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from hypothesis.stateful import run_state_machine_as_test as run

from contracts.models import Contract, Report, Verdict
from contracts.session_contract import find_working_contract
from core.decision import Deny
from tests.machines import CompanyMachine
from workspace import rules as git_rules

pytestmark = pytest.mark.django_db
ISSUE = {
    "a": {"to": "backend_worker", "workspace_scope": ["src/a/"], "assigned_branch": "a"},
    "b": {"to": "backend_worker", "workspace_scope": ["src/b/"], "mode": "coding"},
    "c": {"to": "frontend_worker", "assigned_branch": "c"},
    "plain": {"to": "backend_worker"},
}
CHANGES = [("describe", "backend_worker"), ("describe", "qa_worker"), ("move", "qa_worker")]
WORKERS = ("backend_worker", "frontend_worker")


class Day(CompanyMachine):
    """Every call is allowed to be made; what must never happen is asked after each."""

    def __init__(self):
        super().__init__()
        self.contracts, self.lines = [], []

    def call(self, who, tool, **params):
        return self.here.call(who, tool, **params)

    @rule(kind=st.sampled_from(sorted(ISSUE)))
    def issue(self, kind):
        made = self.call("it_manager", "create_contract", title="T", body="B", **ISSUE[kind])
        self.contracts.append((made.result["contract_id"], ISSUE[kind]["to"]))
        self.call(ISSUE[kind]["to"], "accept_contract", contract_id=self.contracts[-1][0])

    @rule(at=st.integers(0, 9))
    def submit(self, at):
        if self.contracts:
            number, worker = self.contracts[at % len(self.contracts)]
            self.call(worker, "submit_report", contract_id=number, kind="completion",
                      title="T", body="B")  # fmt: skip

    @rule(at=st.integers(0, 9), verdict=st.sampled_from(["PASS", "FAIL"]))
    def judge(self, at, verdict):
        if self.contracts:
            self.call("qa_worker", "write_verdict", contract_id=self.contracts[at % len(
                self.contracts)][0], verdict=verdict, evidence="E")  # fmt: skip

    @rule(at=st.integers(0, 9), outcome=st.sampled_from(["passed", "rework"]))
    def close(self, at, outcome):
        if not self.contracts:
            return
        number = self.contracts[at % len(self.contracts)][0]
        done = self.call("it_manager", "close_contract", contract_id=number, outcome=outcome,
                         reason="R")  # fmt: skip
        row = Contract.objects.get(id=number)
        code = row.mode == "coding" or row.assigned_branch or row.workspace_scope
        if done.code == "OK" and outcome == "passed" and code:
            last = Report.objects.filter(contract=row).latest("submission")
            found = set(Verdict.objects.filter(report=last).values_list("finding", flat=True))
            assert found == {"PASS"}

    @rule(worker=st.sampled_from(WORKERS))
    def use(self, worker):
        found = find_working_contract(self.here.caller(worker))
        held = Contract.objects.filter(assignee__handle=worker, state="in_progress")
        for path, branch in itertools.product(("src/a/", "src/b/"), ("a", "b", "c")):
            one = found is not None and not isinstance(found, Deny)
            scope, assigned = (found.workspace_scope, found.assigned_branch) if one else ((), "")
            used = path in scope and not isinstance(
                git_rules.can_use_branch(branch, assigned), Deny
            )
            given = [c for c in held if path in c.workspace_scope and branch == c.assigned_branch]
            assert not used or given

    @rule(named=st.sampled_from(CHANGES))
    def name(self, named):
        named_change = {"act": named[0], "subject": named[1]}
        made = self.call("ceo", "generate_contract", to="hr_manager", title="T", body="B",
                         kind="org_change", changes=[named_change])  # fmt: skip
        self.call("hr_manager", "accept_contract", contract_id=made.result["contract_id"])
        self.lines.append(named)

    @rule(done=st.sampled_from(CHANGES), title=st.integers(0, 99))
    def change(self, done, title):
        act, who = done
        answer = (
            self.call("hr_manager", "update_agent_jd", agent=who, title=f"T{title}")
            if act == "describe"
            else self.call("hr_manager", "update_org_chart", reason="R",
                           changes=[{"agent": who, "co_managers": []}])
        )  # fmt: skip
        if answer.code == "OK":
            assert done in self.lines
            self.lines.remove(done)
        else:
            assert done not in self.lines


def test_never_reaches_what_no_contract_gives(nexus):
    class OneDay(Day):
        company = nexus

    run(
        OneDay,
        settings=settings(
            max_examples=10, stateful_step_count=25, deadline=None, database=None,
            suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink],
        ),
    )  # fmt: skip
