"""The stories of the day: work down the chain, reports up, and what is refused (Spec: wire 31)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils import timezone

from contracts.closing import close_contract
from contracts.vocabulary import ContractOutcome
from lab.demo.attempts import refused_attempts
from lab.demo.cases import a_case_is_delivered, a_case_stops
from lab.demo.code import code_is_written_judged_and_merged
from lab.demo.day import Day
from lab.demo.marks import MARK
from lab.demo.staff import hr_hires

__all__ = ["MARK", "STORIES"]

HANDS = ("OK", "DRIVER_UNAVAILABLE", "ISOLATION_UNAVAILABLE")
"""Past every gate; whether a hand moves depends on what this machine has."""


def work_goes_down_and_comes_back(day: Day) -> None:
    """Board → CEO → IT Manager → Backend → report → QA → passed → CEO → Board."""
    order = day.order(title=f"{MARK} Faster search", body="p95 below one second for a week.")
    day.ask("ceo", "accept_contract", contract_id=order)
    to_it = day.ask(
        "ceo",
        "generate_contract",
        to="it_manager",
        title=f"{MARK} Rebuild the search service",
        body="Index incrementally; p95 below 800 ms on the nightly load test.",
        priority="high",
    )["contract_id"]
    day.ask("it_manager", "accept_contract", contract_id=to_it)
    code = _backend_works(day)
    day.ask("qa_worker", "write_verdict", contract_id=code, verdict="PASS",
            evidence="pytest tests/search: 212 passed, exit 0")  # fmt: skip
    day.ask("it_manager", "close_contract", contract_id=code, outcome="passed", reason="QA passed.")
    day.ask("backend_worker", "write_file", path="src/search/index.py", content="x",
            expect="MODE_DENIED", note="the contract is over, its mode too")  # fmt: skip
    day.ask("it_manager", "send_mail", to="ceo", type="report", contract_ref=to_it,
            submits=True, subject="Search rebuilt",
            body="QA passed it: 740 ms at p95.")  # fmt: skip
    day.ask("ceo", "close_contract", contract_id=to_it, outcome="passed", reason="Numbers hold.")
    day.ask("ceo", "send_mail", to="board", type="report", contract_ref=order,
            submits=True, subject="Search is fast",
            body="740 ms at p95, judged by QA.")  # fmt: skip
    closed = close_contract(
        contract_id=order,
        outcome=ContractOutcome.PASSED,
        reason="The CEO has reported.",
        expected_version=None,
        caller=day.board,
        now=timezone.now(),
    )
    day.narrator.person(day.board.username, "closes the contract of the ceo", closed["state"])


def _backend_works(day: Day) -> str:
    code: str = day.ask(
        "it_manager",
        "create_contract",
        to="backend_worker",
        title=f"{MARK} Incremental indexer",
        body="Write the indexer in src/search/, with tests.",
        mode="coding",
        workspace_scope=["src/search/"],
        assigned_branch="feat/indexer",
    )["contract_id"]
    backend = "backend_worker"
    write: dict[str, Any] = {"path": "src/search/index.py", "content": "INDEX = {}\n"}
    day.ask(backend, "write_file", **write, expect="MODE_DENIED", note="before accepting")
    day.ask(backend, "accept_contract", contract_id=code, expected_version=1)
    session = day.agents[backend].get("/api/v1/me").body.get("session", {})
    day.check("accepting turned the session", holds=session.get("mode") == "coding",
              shown=f"mode={session.get('mode')} contract={session.get('contract')}")  # fmt: skip
    day.ask(backend, "write_file", **write, expect=HANDS)
    day.ask(backend, "write_file", path="src/billing/pay.py", content="x", expect="SCOPE_DENIED")
    day.ask(backend, "git_push", branch="main", expect="BRANCH_DENIED")
    question = day.ask(backend, "send_mail", to="it_manager", type="question", contract_ref=code,
                       subject="Which tokeniser?", body="By character or by word?")  # fmt: skip
    day.ask("it_manager", "read_mail", mail_id=question["mail_id"])
    day.ask("it_manager", "send_mail", to=backend, type="info", reply_to=question["mail_id"],
            subject="Re: Which tokeniser?", body="By word.", contract_ref=code)  # fmt: skip
    day.ask(backend, "submit_report", contract_id=code, kind="completion",
            title="Indexer finished", body="740 ms at p95 over six nights.")  # fmt: skip
    return code


def frontend_talks_to_product_under_a_grant(day: Day) -> None:
    """Closed, open both ways while a contract grants it, closed again (Spec: mail 10)."""
    ask: dict[str, Any] = {
        "to": "product_manager",
        "type": "question",
        "subject": "Which colour?",
        "body": "Red?",
    }
    tell: dict[str, Any] = {
        "to": "frontend_worker",
        "type": "requirement_clarification",
        "subject": "The colour",
        "body": "Blue.",
    }
    day.ask("frontend_worker", "send_mail", **ask, expect="CONTRACT_REQUIRED")
    day.ask("product_manager", "send_mail", **tell, expect="CONTRACT_REQUIRED")
    contract = day.ask(
        "it_manager",
        "create_contract",
        to="frontend_worker",
        title=f"{MARK} Result page",
        body="Stream results; ask the Product Manager where the design is silent.",
        grants=[
            {"from": "frontend_worker", "to": "product_manager", "types": ["question"]},
            {
                "from": "product_manager",
                "to": "frontend_worker",
                "types": ["requirement_clarification"],
            },
        ],
    )["contract_id"]
    day.ask("frontend_worker", "accept_contract", contract_id=contract)
    day.ask("frontend_worker", "send_mail", **ask, contract_ref=contract)
    day.ask("product_manager", "send_mail", **tell, contract_ref=contract)
    day.ask("frontend_worker", "send_mail", **{**ask, "type": "report"}, contract_ref=contract,
            expect="MAIL_TYPE_DENIED")  # fmt: skip
    day.ask("frontend_worker", "submit_report", contract_id=contract, kind="completion",
            title="Result page finished", body="It streams.")  # fmt: skip
    day.ask("it_manager", "close_contract", contract_id=contract, outcome="passed", reason="Seen.")
    day.ask("frontend_worker", "send_mail", **ask, contract_ref=contract,
            expect="CONTRACT_REQUIRED")  # fmt: skip
    day.ask("product_manager", "send_mail", **tell, contract_ref=contract,
            expect="CONTRACT_REQUIRED")  # fmt: skip


def a_problem_goes_up_step_by_step(day: Day) -> None:
    """Worker → manager → CEO, and the answer back down (Spec: escalation 1)."""
    problem: dict[str, Any] = {
        "subject": "Out of disk",
        "body": "The load test fills the staging disk.",
    }
    first = day.ask("devops_worker", "escalate", **problem)
    day.check("it reached the direct superior", holds=first.get("to") == "it_manager")
    second = day.ask("it_manager", "escalate", **problem, follows=first["escalation_id"])
    day.check("and then the CEO", holds=second.get("to") == "ceo")
    day.ask("ceo", "send_mail", to="it_manager", type="info", reply_to=second["mail_id"],
            subject="Re: Out of disk", body="Buy 200 GB.")  # fmt: skip
    day.ask("it_manager", "send_mail", to="devops_worker", type="info", reply_to=first["mail_id"],
            subject="Re: Out of disk", body="200 GB are ordered.")  # fmt: skip
    day.ask("devops_worker", "send_mail", to="ceo", type="escalation", **problem,
            expect="CONTACT_DENIED", note="no step can be skipped")  # fmt: skip


def work_left_open(day: Day) -> None:
    """What people find when they look: work to review, a report to answer, work that goes on."""
    order = day.order(title=f"{MARK} Open an office in Paris", body="Ten desks by spring.")
    day.ask("ceo", "accept_contract", contract_id=order)
    day.ask("ceo", "send_mail", to="board", type="report", contract_ref=order, submits=True,
            subject="The office is found", body="Ten desks near the station.")  # fmt: skip
    going_on = day.order(title=f"{MARK} Keep the search fast", body="Below one second all year.")
    day.ask("ceo", "accept_contract", contract_id=going_on)
    to_it = day.ask("ceo", "generate_contract", to="it_manager", title=f"{MARK} Watch the search",
                    body="Report every month.")["contract_id"]  # fmt: skip
    day.ask("it_manager", "accept_contract", contract_id=to_it)


STORIES: tuple[tuple[str, Callable[[Day], None]], ...] = (
    ("Work goes down the chain, and its report comes back up", work_goes_down_and_comes_back),
    ("Code goes from a branch to the main branch", code_is_written_judged_and_merged),
    ("Frontend and Product, under a grant", frontend_talks_to_product_under_a_grant),
    ("HR hires under the CEO's contract", hr_hires),
    ("A problem goes up, step by step", a_problem_goes_up_step_by_step),
    ("A case fails twice and is delivered", a_case_is_delivered),
    ("A case stops at a violation", a_case_stops),
    ("What is tried on any day, and refused", refused_attempts),
)
