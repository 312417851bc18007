"""Mail, contracts and policy changes in any order: after every step all is as specified."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run

from contracts.models import Contract
from ledger.models import Event
from mailroom.models import ContactGrant, Mail, MailRejection
from orgchart.models import Agent
from orgchart.policy.vocabulary import ToolMode
from tests.machines import CompanyMachine
from tests.mailroom.world import call, configure, send
from tests.oracle import contracts as contract_oracle
from tests.oracle import mail as oracle
from tests.oracle.org import AGENTS, BACKEND, BOARD, DEVOPS, FRONTEND, IT, PM, QA

GRANTS = [
    {"from": FRONTEND, "to": PM, "types": ["question"]},
    {"from": PM, "to": FRONTEND, "types": ["requirement_clarification"]},
]
KINDS = {
    "grant": {"to": FRONTEND, "grants": GRANTS},
    "code": {"to": BACKEND, "mode": "coding", "workspace_scope": ["src/search/"]},
    "plain": {"to": QA},
}
ANYBODY = st.sampled_from(AGENTS)
TYPES = st.sampled_from(oracle.MAIL_TYPES)
OUTCOMES = st.sampled_from(["passed", "failed", "cancelled"])
MEETING = [(FRONTEND, PM, "question"), (PM, FRONTEND, "requirement_clarification")]


class Day(CompanyMachine):
    """One company; `contracts` is what is specified for each contract."""

    def __init__(self):
        super().__init__()
        self.contracts = {}
        self.away = set()
        self.delivered = self.denied = self.rejected = 0

    def choose(self, data):
        """One of them by its number: ids are made by chance, and a day must be repeatable."""
        number = data.draw(st.integers(0, len(self.contracts) - 1), label="contract")
        return list(self.contracts)[number]

    def expect(self, answer, code):
        assert answer.code == code, answer.body
        self.denied += code != "OK"

    def mailed(self, answer, code):
        self.expect(answer, code)
        self.delivered += code == "OK"
        self.rejected += code != "OK"

    @rule(sender=ANYBODY, to=st.sampled_from((*AGENTS, BOARD)), mail_type=TYPES)
    def write(self, sender, to, mail_type):
        if sender in self.away:
            return
        expected = oracle.expected(sender, to, mail_type, inactive=frozenset(self.away))
        if sender == to:
            expected = "CONTACT_DENIED"
        self.mailed(send(self.here, sender, to, type=mail_type), expected)

    @precondition(lambda self: self.contracts)
    @rule(data=st.data(), pair=st.sampled_from(MEETING))
    def write_under_a_contract(self, data, pair):
        contract = self.choose(data)
        kind, state, _ = self.contracts[contract]
        sender, to, mail_type = pair
        expected = oracle.expected(sender, to, mail_type, state if kind == "grant" else "no_grant")
        self.mailed(send(self.here, sender, to, type=mail_type, contract_ref=contract), expected)

    @initialize()
    def morning(self):
        for kind in sorted(KINDS):
            self.issue_one(kind)

    @precondition(lambda self: len(self.contracts) < 6)
    @rule(kind=st.sampled_from(sorted(KINDS)))
    def issue(self, kind):
        self.issue_one(kind)

    def issue_one(self, kind):
        terms = {"title": kind, "body": "x", **KINDS[kind]}
        made = call(self.here, IT, "create_contract", **terms)
        self.expect(made, "OK")
        self.contracts[made.result["contract_id"]] = (kind, "pending", "")
        self.delivered += 1

    def move(self, contract, to, finding=None):
        kind, _, found = self.contracts[contract]
        self.contracts[contract] = (kind, to, found if finding is None else finding)

    @precondition(lambda self: self.contracts)
    @rule(data=st.data(), who=st.sampled_from([FRONTEND, BACKEND, QA, IT]))
    def accept(self, data, who):
        contract = self.choose(data)
        kind, state, _ = self.contracts[contract]
        answer = call(self.here, who, "accept_contract", contract_id=contract)
        if who == KINDS[kind]["to"]:
            self.expect(answer, "OK" if state == "pending" else "INVALID_TRANSITION")
            if state == "pending":
                self.move(contract, "in_progress")
        else:
            assert answer.code in ("NOT_FOUND", "NOT_YOURS")
            self.denied += 1

    @precondition(lambda self: self.contracts)
    @rule(data=st.data())
    def submit(self, data):
        contract = self.choose(data)
        kind, state, _ = self.contracts[contract]
        report = {"kind": "completion", "title": "Done", "body": ""}
        answer = call(self.here, KINDS[kind]["to"], "submit_report", contract_id=contract, **report)
        self.expect(answer, "OK" if state == "in_progress" else "INVALID_TRANSITION")
        if state == "in_progress":
            self.move(contract, "review", finding="")
            self.delivered += 1

    @precondition(lambda self: any(c[:2] == ("code", "review") for c in self.contracts.values()))
    @rule(data=st.data(), finding=st.sampled_from(["PASS", "FAIL"]))
    def judge(self, data, finding):
        ready = [c for c, (k, s, _) in self.contracts.items() if (k, s) == ("code", "review")]
        contract = ready[data.draw(st.integers(0, len(ready) - 1))]
        verdict = {"verdict": finding, "evidence": "ran it"}
        answer = call(self.here, QA, "write_verdict", contract_id=contract, **verdict)
        if self.contracts[contract][2]:  # judged already
            self.expect(answer, "INVALID_TRANSITION")
        else:
            self.expect(answer, "OK")
            self.move(contract, "review", finding)
            self.delivered += 1

    @precondition(lambda self: self.contracts)
    @rule(data=st.data(), outcome=OUTCOMES)
    def close(self, data, outcome):
        contract = self.choose(data)
        kind, state, found = self.contracts[contract]
        answer = call(
            self.here, IT, "close_contract", contract_id=contract, outcome=outcome, reason="so"
        )
        if (state, outcome) not in contract_oracle.MOVES:
            expected = "INVALID_TRANSITION"
        elif kind == "code" and outcome == "passed" and found != "PASS":
            expected = "APPROVAL_REQUIRED"
        else:
            expected = "OK"
            self.move(contract, outcome)
        self.expect(answer, expected)

    @precondition(lambda self: self.contracts)
    @rule(data=st.data(), outcome=OUTCOMES, who=st.sampled_from([BACKEND, FRONTEND, QA, PM]))
    def close_somebody_elses(self, data, outcome, who):
        answer = call(
            self.here,
            who,
            "close_contract",
            contract_id=self.choose(data),
            outcome=outcome,
            reason="mine",
        )
        assert answer.code in ("NOT_FOUND", "NOT_YOURS")
        self.denied += 1

    @rule()
    def devops_leaves_or_comes_back(self):
        self.away ^= {DEVOPS}
        Agent.objects.filter(organisation=self.here.organisation, handle=DEVOPS).update(
            active=DEVOPS not in self.away
        )
        configure(self.here)

    @invariant()
    def every_contract_stands_where_it_should(self):
        rows = dict(Contract.objects.values_list("id", "state"))
        assert rows == {c: state for c, (_, state, _) in self.contracts.items()}

    @invariant()
    def a_channel_is_open_while_its_contract_is(self):
        open_ones = set(
            ContactGrant.objects.filter(closed_at=None).values_list("contract_ref", flat=True)
        )
        assert open_ones == {
            c for c, (k, s, _) in self.contracts.items() if k == "grant" and s in oracle.OPEN
        }

    @invariant()
    def backend_codes_while_it_works_on_a_contract_that_says_so(self):
        coding = any(c[:2] == ("code", "in_progress") for c in self.contracts.values())
        mode = self.here.caller(BACKEND).session.mode
        assert mode == (ToolMode.CODING if coding else ToolMode.CHAT_SAFE)

    @invariant()
    def everything_that_happened_is_kept_and_nothing_else(self):
        assert Mail.objects.exclude(from_agent="system").count() == self.delivered
        assert Event.objects.filter(decision="deny").count() == self.denied
        assert MailRejection.objects.count() == self.rejected


@pytest.mark.slow
def test_a_day_in_any_order(loaded):
    steps = settings(
        max_examples=20,
        stateful_step_count=30,
        deadline=None,
        phases=[Phase.reuse, Phase.generate],  # a day is short enough to read as it fails
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    run(type("OneDay", (Day,), {"company": loaded}), settings=steps)
