"""Code from a contract's branch to the main branch, and on to a deployment."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from typing import Any

from lab.demo.day import Day
from lab.demo.marks import MARK

BACKEND, LEAD, QA, DEVOPS = "backend_worker", "it_manager", "qa_worker", "devops_worker"
MISSING = ("DRIVER_UNAVAILABLE", "ISOLATION_UNAVAILABLE")
"""What an installation without git, a sandbox or a container engine answers, past every gate."""

SOURCE, TEST = "src/greeting/greet.py", "tests/greeting/test_greet.py"
BRANCH = "feat/greeting"
CHECK = """import sys

sys.path.insert(0, "/work/src/greeting")
from greet import greet


def test_greets():
    assert greet("Ada").startswith("Hello, Ada")
"""


def code_is_written_judged_and_merged(day: Day) -> None:
    """Branch → code → tests → push → QA's verdict on the commit → review → merge → deployment."""
    lead = _coding(day, "ceo", "generate_contract", LEAD, "Lead the greeting", "Review, merge.")
    code = _coding(
        day, LEAD, "create_contract", BACKEND, "Greeting", "Greet by name, with a test.",
        workspace_scope=["src/greeting/", "tests/greeting/"], assigned_branch=BRANCH,
    )  # fmt: skip
    if not _writes(day):
        return
    commit = _pushes(day)
    day.ask(BACKEND, "submit_report", contract_id=code, kind="completion", title="Greeting done",
            body="It greets by name; its test passes.")  # fmt: skip
    seen = day.ask(LEAD, "review_pr", branch=BRANCH, contract_id=code, comment="QA is next.",
                   note="reads the difference")  # fmt: skip
    day.check("the review shows the code", holds=SOURCE in seen["files"])
    day.ask(LEAD, "review_pr", branch=BRANCH, contract_id=code, comment="Ship it.", approve=True,
            expect="APPROVAL_REQUIRED", note="before QA's verdict")  # fmt: skip
    _judges(day, code, commit)
    merged = day.ask(LEAD, "review_pr", branch=BRANCH, contract_id=code, comment="Well done.",
                     approve=True, commit=commit, note="approves, and it is merged")  # fmt: skip
    day.check("the main branch has it", holds=merged["merged"], shown=str(merged["merge_commit"]))
    day.ask(LEAD, "close_contract", contract_id=code, outcome="passed", reason="Merged.")
    _deploys(day)
    day.ask("ceo", "close_contract", contract_id=lead, outcome="cancelled", reason="Led well.")


def _coding(day: Day, by: str, tool: str, to: str, title: str, body: str, **terms: Any) -> str:
    """A contract that opens coding mode, accepted in a session of its own."""
    contract: str = day.ask(
        by, tool, to=to, title=f"{MARK} {title}", body=body, mode="coding", **terms
    )["contract_id"]
    day.ask(to, "accept_contract", contract_id=contract)
    return contract


def _writes(day: Day) -> bool:
    """Whether this machine can run git and tests for an agent; says so where it cannot."""
    answer = day.agents[BACKEND].call("git_branch", {"name": BRANCH})
    day.judge(BACKEND, "git_branch", answer, expect=("OK", *MISSING), note=f"name={BRANCH}")
    if answer.code != "OK":
        day.check("this machine cannot run git for an agent, and says so", holds=True,
                  shown=str(answer.body.get("message")))  # fmt: skip
        return False
    text = f'"""Greets; written at {day.now:%H:%M:%S.%f}."""\n\n\ndef greet(name):\n'
    text += '    return f"Hello, {name}!"\n'
    day.ask(BACKEND, "write_file", path=SOURCE, content=text)
    day.ask(BACKEND, "write_file", path=TEST, content=CHECK)
    ran = day.ask(BACKEND, "run_test", paths=["tests/greeting/"], note="in the sandbox")
    day.check("its tests pass", holds=ran["exit_code"] == 0, shown=ran["output"][-120:].strip())
    return True


def _pushes(day: Day) -> str:
    made = day.ask(BACKEND, "git_commit", message="Greet by name", paths=[SOURCE, TEST])
    day.ask(BACKEND, "git_push", branch=f"{BRANCH}:main", expect="BRANCH_DENIED")
    pushed = day.ask(BACKEND, "git_push", branch=BRANCH)
    day.check("the push is of that commit", holds=pushed == made, shown=pushed["commit"])
    return str(pushed["commit"])


def _judges(day: Day, code: str, commit: str) -> None:
    """QA runs the submitted commit in a sandbox of its own, and judges it."""
    judging = _coding(day, LEAD, "create_contract", QA, "Judge the greeting", "Run its tests.")
    ran = day.ask(QA, "run_test", paths=["tests/greeting/"],
                  note="on the submitted commit")  # fmt: skip
    day.check("QA saw the tests pass", holds=ran["exit_code"] == 0)
    day.ask(QA, "write_file", path=SOURCE, content="x", expect="SCOPE_DENIED",
            note="QA changes no source")  # fmt: skip
    given = day.ask(QA, "write_verdict", contract_id=code, verdict="PASS",
                    evidence=f"run {ran['run_id']}: all passed")  # fmt: skip
    day.check("the verdict names the commit and the run",
              holds=(given["commit"], given["run_digest"]) == (commit, ran["output_sha256"]),
              shown=f"{given['commit']} {given['run_digest']}")  # fmt: skip
    day.ask(LEAD, "close_contract", contract_id=judging, outcome="cancelled", reason="Judged.")


def _deploys(day: Day) -> None:
    """DevOps builds and deploys what was merged, or is told which engine is missing."""
    work = _coding(day, LEAD, "create_contract", DEVOPS, "Deploy the greeting", "To production.")
    dockerfile = "FROM scratch\nLABEL service=greeting\n"
    day.ask(DEVOPS, "write_file", path="docker/greeting/Dockerfile", content=dockerfile)
    built = day.agents[DEVOPS].call(
        "docker_build", {"path": "docker/greeting/", "tag": "greeting:1"}
    )
    day.judge(DEVOPS, "docker_build", built, expect=("OK", *MISSING), note="greeting:1")
    unbuilt = sha256(day.now.isoformat().encode()).hexdigest()  # an artefact of this day only
    artifact = str(built.result.get("digest") or f"sha256:{unbuilt}")
    day.ask(DEVOPS, "docker_deploy", environment="production", artifact=artifact,
            expect=("APPROVAL_REQUIRED", "NOT_FOUND"), note="without an approval")  # fmt: skip
    expires = f"{day.now + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    day.ask(LEAD, "approve_deployment", to=DEVOPS, environment="production", artifact=artifact,
            expires_at=expires, reason="QA passed it.")  # fmt: skip
    deployed = day.agents[DEVOPS].call(
        "docker_deploy", {"environment": "production", "artifact": artifact}
    )
    day.judge(DEVOPS, "docker_deploy", deployed, expect=("OK", "NOT_FOUND", *MISSING),
              note="with the approval")  # fmt: skip
    if deployed.code in MISSING:
        day.check("there is no container engine here, and DevOps is told so", holds=True,
                  shown=str(deployed.body.get("message")))  # fmt: skip
    day.ask(LEAD, "close_contract", contract_id=work, outcome="cancelled", reason="Deployed.")
