"""A case with a marker in each of its artifacts, and which office may meet which marker."""

import hashlib

from tests.governance.cases import oracle
from tests.governance.cases.world import Play

PLANTED = "REQUEST TITLE WHY TASK VERIFY BODY ARTICLE COMMAND REASON"
MARKS = {name: f"MARK-{name.lower()}-7f3a" for name in PLANTED.split()}
# By hand: which office may meet which marker.
MAY_SEE = {
    "ANALYST": {"REQUEST"},
    "PLANNER": {"WHY"},
    "IMPLEMENTER": {"TASK", "VERIFY"},
    "REVIEWER": {"TASK", "VERIFY", "BODY"},
    "TESTER": {"VERIFY", "BODY"},
    "CONDUCTOR": set(),
}
HANDLE = {office: office.lower() for office in oracle.OFFICES}


def marked_case(company):
    company_case = Play(company, request=MARKS["REQUEST"], title=MARKS["TITLE"])
    body = MARKS["BODY"]
    digest = hashlib.sha256(body.encode()).hexdigest()
    company_case.submit(
        "ANALYSIS", content={"what": "W", "why": MARKS["WHY"], "constraints": MARKS["WHY"]}
    )
    task = {"id": "T1", "task": MARKS["TASK"], "verify_by": MARKS["VERIFY"]}
    company_case.submit("TASKS", content={"tasks": [task]})
    made = {"artifacts": [{"path": "a.py", "sha256": digest, "body": body}]}
    company_case.submit("IMPLEMENTATION", content=made)
    found = {"violations": [{"task": "T1", "article": MARKS["ARTICLE"]}]}
    company_case.submit("REVIEW", "REJECTED", content=found)
    company.call(
        "conductor", "case_decide", case_id=company_case.id, decision="CONTINUE",
        reason=MARKS["REASON"],
    )  # fmt: skip
    company_case.submit("IMPLEMENTATION", content=made)
    company_case.submit("REVIEW", "APPROVED")
    evidence = [{"task": "T1", "command": MARKS["COMMAND"], "exit_status": 0,
                 "output_sha256": digest}]  # fmt: skip
    company_case.submit("TEST", "PASSED", evidence=evidence)
    return company_case
