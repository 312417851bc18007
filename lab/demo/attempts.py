"""A dozen attempts that are refused, each by its own rule, each leaving its trace."""

from __future__ import annotations

import uuid
from typing import Any

from lab.demo.day import Day
from lab.demo.marks import MARK

MAIL: dict[str, Any] = {"type": "info", "subject": "Hello", "body": "A word."}


def refused_attempts(day: Day) -> None:
    """Wrong recipient, type, tool, owner, mail or version: all refused."""
    _mail(day)
    _tools(day)
    _contracts(day)
    _wire(day)


def _mail(day: Day) -> None:
    for to in ("ceo", "frontend_worker", "hr_manager", "board"):
        day.ask("backend_worker", "send_mail", to=to, **MAIL, expect="CONTACT_DENIED")
    notices = day.inbox("backend_worker", from_="system")
    day.check("the sender finds a notice of it", holds=bool(notices),
              shown=notices[0]["subject"] if notices else "none")  # fmt: skip
    day.ask("research_worker", "send_mail", to="no_such_agent", **MAIL, expect="RECIPIENT_UNKNOWN")
    day.ask("ceo", "send_mail", to="board", **MAIL, expect="MAIL_TYPE_DENIED")
    day.ask("ceo", "send_mail", to="it_manager", **{**MAIL, "type": "contract"},
            expect="MAIL_TYPE_DENIED", note="a contract comes from generate_contract")  # fmt: skip
    day.ask("it_manager", "send_mail", to="product_manager", **MAIL, expect="MAIL_TYPE_DENIED")
    day.ask("backend_worker", "send_mail", to="it_manager", **MAIL, contract_ref="CON-none",
            expect="NOT_FOUND")  # fmt: skip
    forged = day.ask("qa_worker", "send_mail", to="it_manager", from_="ceo", **MAIL,
                     note="from=ceo is ignored")  # fmt: skip
    sent = day.ask("it_manager", "read_mail", mail_id=forged["mail_id"])
    day.check("the mail names who really sent it", holds=sent.get("from") == "qa_worker",
              shown=str(sent.get("from")))  # fmt: skip
    day.ask("backend_worker", "read_mail", mail_id=forged["mail_id"], expect="NOT_FOUND",
            note="somebody else's mail")  # fmt: skip


def _tools(day: Day) -> None:
    day.ask("research_worker", "delete_everything", expect="UNKNOWN_TOOL")
    day.ask("backend_worker", "create_contract", to="qa_worker", title="x", body="x",
            expect="TOOL_NOT_BOUND")  # fmt: skip
    day.ask("devops_worker", "read_logs", service="api", expect="MODE_DENIED")
    day.ask("ceo", "read_file", path="src/search/index.py", expect="TOOL_NOT_BOUND")


def _contracts(day: Day) -> None:
    paper: dict[str, Any] = {"title": f"{MARK} Not to be", "body": "x"}
    for to in ("ceo", "it_manager", "product_manager", "research_worker"):
        day.ask("it_manager", "create_contract", to=to, **paper,
                expect=("LEVEL_DENIED", "CONTACT_DENIED"))  # fmt: skip
    contract = day.ask(
        "it_manager",
        "create_contract",
        to="backend_worker",
        title=f"{MARK} Small fix",
        body="One line.",
        workspace_scope=["src/search/"],
    )["contract_id"]
    backend: dict[str, Any] = {"contract_id": contract}
    day.ask("frontend_worker", "accept_contract", **backend, expect="NOT_FOUND")
    day.ask("backend_worker", "accept_contract", **backend, expected_version=7,
            expect="VERSION_MISMATCH")  # fmt: skip
    day.ask("backend_worker", "accept_contract", **backend, expected_version=1)
    day.ask("backend_worker", "submit_report", **backend, kind="completion", title="Done",
            body="One line.")  # fmt: skip
    day.ask("backend_worker", "close_contract", **backend, outcome="passed", reason="Mine.",
            expect="NOT_YOURS")  # fmt: skip
    day.ask("it_manager", "close_contract", **backend, outcome="passed", reason="Looks good.",
            expect="APPROVAL_REQUIRED", note="QA cannot be skipped")  # fmt: skip
    day.ask("qa_worker", "write_verdict", **backend, verdict="FAIL", evidence="1 failed")
    day.ask("it_manager", "close_contract", **backend, outcome="failed", reason="QA found a bug.")
    day.ask("it_manager", "close_contract", **backend, outcome="passed", reason="Please.",
            expect="INVALID_TRANSITION")  # fmt: skip


def _wire(day: Day) -> None:
    day.ask("ceo", "send_mail", to="it_manager", **MAIL, colour="red", expect="INVALID_PARAMS")
    day.ask("ceo", "send_mail", to="it_manager", **{**MAIL, "subject": 7}, expect="INVALID_PARAMS")
    key = {"Idempotency-Key": f"demo-{uuid.uuid4()}"}
    first = day.ask("ceo", "send_mail", to="hr_manager", **MAIL, headers=key)
    again = day.ask("ceo", "send_mail", to="hr_manager", **MAIL, headers=key, note="the same again")
    day.check("the repetition sent nothing", holds=first["mail_id"] == again["mail_id"])
    day.ask("ceo", "send_mail", to="hr_manager", **{**MAIL, "body": "Other."}, headers=key,
            expect="IDEMPOTENCY_MISMATCH")  # fmt: skip
