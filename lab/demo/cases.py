"""Two cases of the constitution: one fails twice and is delivered, one stops."""

from __future__ import annotations

import hashlib
from typing import Any

from lab.demo.day import Day
from lab.demo.marks import MARK

CAST = ("analyst", "planner", "implementer", "reviewer", "tester", "conductor")
"""The six offices; they play along where their organisation is installed."""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _submit(day: Day, who: str, case_id: str, stage: str, **params: Any) -> dict[str, Any]:
    note = f"{stage} {params.get('outcome', '')}".strip()
    return day.ask(who, "case_submit", case_id=case_id, stage=stage, note=note, **params)


def _open(day: Day, request: str) -> str:
    title = f"{MARK} {request}"
    return str(day.ask("analyst", "case_open", title=title, request=request)["case_id"])


def _implement(day: Day, case_id: str, body: str) -> None:
    made = {"path": "greet.py", "sha256": _digest(body), "body": body}
    _submit(day, "implementer", case_id, "IMPLEMENTATION", content={"artifacts": [made]})


def _decide(day: Day, case_id: str, decision: str, reason: str, **more: Any) -> dict[str, Any]:
    return day.ask("conductor", "case_decide", case_id=case_id, decision=decision, reason=reason,
                   note=decision, **more)  # fmt: skip


def _plan(day: Day, case_id: str) -> None:
    analysis = {"what": "A greeting", "why": "Visitors", "constraints": ["Python only"]}
    _submit(day, "analyst", case_id, "ANALYSIS", content=analysis)
    seen = day.ask("planner", "case_inputs", case_id=case_id)["inputs"]
    day.check("the Planner sees ANALYSIS and nothing else", holds=set(seen) == {"ANALYSIS"})
    task = {"id": "T1", "task": "Print hello", "verify_by": "python greet.py prints hello"}
    _submit(day, "planner", case_id, "TASKS", content={"tasks": [task]})


def a_case_is_delivered(day: Day) -> None:
    """Rejected once, failing its test once, then approved, passed and delivered."""
    if not set(CAST) <= set(day.agents):
        day.narrator.fact("no keys of the constitution", "its cases are left out", right=True)
        return
    case_id = _open(day, "Greet every visitor")
    _plan(day, case_id)
    _implement(day, case_id, "print('hello and more')\n")
    seen = day.ask("reviewer", "case_inputs", case_id=case_id)["inputs"]
    day.check("the Reviewer sees TASKS and IMPLEMENTATION",
              holds=set(seen) == {"TASKS", "IMPLEMENTATION"})  # fmt: skip
    breach = {"violations": [{"task": "T1", "article": "change beyond TASKS"}]}
    _submit(day, "reviewer", case_id, "REVIEW", content=breach, outcome="REJECTED")
    _decide(day, case_id, "DELIVER", "Hurry.", expect="INVALID_TRANSITION")
    _decide(day, case_id, "CONTINUE", "A second round.")
    _implement(day, case_id, "print('helo')\n")
    _submit(day, "reviewer", case_id, "REVIEW", outcome="APPROVED")
    run = {"task": "T1", "command": "python greet.py"}
    wrong = {**run, "exit_status": 1, "output_sha256": _digest("helo\n")}
    _submit(day, "tester", case_id, "TEST", outcome="FAILED", evidence=[wrong])
    _decide(day, case_id, "CONTINUE", "A third round.")
    _implement(day, case_id, "print('hello')\n")
    _submit(day, "reviewer", case_id, "REVIEW", outcome="APPROVED")
    day.ask("tester", "case_submit", case_id=case_id, stage="TEST", outcome="PASSED",
            expect="INVALID_PARAMS", note="without evidence")  # fmt: skip
    right = {**run, "exit_status": 0, "output_sha256": _digest("hello\n")}
    _submit(day, "tester", case_id, "TEST", outcome="PASSED", evidence=[right])
    seen = day.ask("conductor", "case_inputs", case_id=case_id)["inputs"]
    day.check("the CONDUCTOR sees outcomes, no content", holds="hello" not in str(seen))
    ended = _decide(day, case_id, "DELIVER", "Approved and passed in one round.")
    day.check("delivered in the third round", holds=ended == {
        "case_id": case_id, "stage": "VERDICT", "round": 3, "state": "delivered"})  # fmt: skip


def a_case_stops(day: Day) -> None:
    """An office acts outside its stage: the round is aborted and the CONDUCTOR ends the case."""
    if not set(CAST) <= set(day.agents):
        return
    case_id = _open(day, "Translate the greeting")
    _plan(day, case_id)
    day.ask("implementer", "case_inputs", case_id=case_id, names=["ANALYSIS"],
            expect="INPUT_DENIED", note="a structural violation")  # fmt: skip
    day.ask("implementer", "case_submit", case_id=case_id, stage="IMPLEMENTATION",
            expect="INVALID_TRANSITION", note="the case is paused")  # fmt: skip
    _decide(day, case_id, "CONTINUE", "Go on.", expect="INVALID_TRANSITION")
    ended = _decide(day, case_id, "STOP", "Structural violation.")
    day.check("stopped", holds=ended["state"] == "stopped")
