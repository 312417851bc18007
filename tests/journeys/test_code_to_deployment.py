"""Contract, branch, code, tests, verdict on the commit, review, merge, approval, deployment."""

from datetime import timedelta

import pytest
from django.utils import timezone

from workspace.git.models import Branch, BranchMove
from workspace.sandbox import driver

WALLS = driver.strongest()
pytestmark = pytest.mark.skipif(isinstance(WALLS, str), reason=f"no sandbox here: {WALLS}")

BRANCH = "feat/sum"
SOURCE, TEST = "src/sums/add.py", "tests/sums/test_add.py"
GOOD, BAD = "def add(a, b):\n    return a + b\n", "def add(a, b):\n    return a - b\n"
CHECK = (
    "import sys\n\nsys.path.insert(0, '/work/src/sums')\nfrom add import add\n\n\n"
    "def test_adds():\n    assert add(2, 3) == 5\n"
)
WORK = {"mode": "coding", "workspace_scope": ["src/sums/", "tests/sums/"],
        "assigned_branch": BRANCH}  # fmt: skip


class TestCode:
    def write(self, stage, code):
        stage.done("backend_worker", "write_file", path=SOURCE, content=code)
        stage.done("backend_worker", "write_file", path=TEST, content=CHECK)
        stage.done("backend_worker", "git_commit", message="Add", paths=[SOURCE, TEST])
        return stage.done("backend_worker", "git_push", branch=BRANCH)["commit"]

    def submit(self, stage, contract):
        stage.done("backend_worker", "submit_report", contract_id=contract, kind="completion",
                   title="Done", body="")  # fmt: skip

    def judge(self, stage, contract, verdict):
        ran = stage.done("qa_worker", "run_test", paths=["tests/sums/"])
        given = stage.done("qa_worker", "write_verdict", contract_id=contract, verdict=verdict,
                           evidence=f"run {ran['run_id']}")  # fmt: skip
        assert given["run_digest"] == ran["output_sha256"]
        return ran["exit_code"], given["commit"]

    def approve(self, stage, **params):
        return stage.call("it_manager", "review_pr", branch=BRANCH, comment="Read.", approve=True,
                          **params)  # fmt: skip

    def test_goes_from_a_contract_to_the_main_branch_and_to_an_approved_deployment(self, stage):
        stage.issued_and_accepted("ceo", "it_manager", mode="coding")
        contract = stage.issued_and_accepted("it_manager", "backend_worker", **WORK)
        stage.issued_and_accepted("it_manager", "qa_worker", mode="coding")
        stage.done("backend_worker", "git_branch", name=BRANCH)
        first = self.write(stage, BAD)
        assert stage.call("backend_worker", "git_push", branch="main").code == "BRANCH_DENIED"
        self.submit(stage, contract)
        assert self.judge(stage, contract, "FAIL") == (1, first)
        assert self.approve(stage).code == "APPROVAL_REQUIRED"
        stage.done("it_manager", "close_contract", contract_id=contract, outcome="rework",
                   reason="QA failed it")  # fmt: skip
        second = self.write(stage, GOOD)
        self.submit(stage, contract)
        assert self.approve(stage).code == "APPROVAL_REQUIRED"
        assert self.judge(stage, contract, "PASS") == (0, second)
        seen = stage.done("it_manager", "review_pr", branch=BRANCH, comment="Reading.")
        assert "return a + b" in seen["difference"]
        assert self.approve(stage, commit=first).code == "VERSION_MISMATCH"
        merged = self.approve(stage, commit=second).result
        assert Branch.objects.get(name="main").commit == merged["merge_commit"]
        assert BranchMove.objects.get(kind="merge").verdict.commit == second
        closed = stage.done("it_manager", "close_contract", contract_id=contract,
                            outcome="passed", reason="Merged")  # fmt: skip
        assert closed["state"] == "passed"
        self.deploy(stage)

    def deploy(self, stage):
        """To the engine where there is one; else up to the approval."""
        stage.issued_and_accepted("it_manager", "devops_worker", mode="coding")
        digest = "sha256:" + "a" * 64
        deploy = {"environment": "production", "artifact": digest}
        refused = stage.call("devops_worker", "docker_deploy", **deploy)
        assert refused.code in ("APPROVAL_REQUIRED", "NOT_FOUND", "DRIVER_UNAVAILABLE")
        until = (timezone.now() + timedelta(hours=1)).isoformat()
        stage.done("it_manager", "approve_deployment", to="devops_worker", reason="QA passed it",
                   expires_at=until, **deploy)  # fmt: skip
        answer = stage.call("devops_worker", "docker_deploy", **deploy)
        assert answer.code in ("OK", "NOT_FOUND", "DRIVER_UNAVAILABLE")
