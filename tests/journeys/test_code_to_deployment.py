"""Contract, branch, code, tests, verdict on the commit, review, merge, approval, deployment."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.workspace.builds.engine import engine_at
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


@pytest.fixture
def engine(settings, tmp_path):
    with engine_at(tmp_path / "engine.sock") as running:
        settings.CONTAINER_ENGINE = f"unix://{running.socket}"
        yield running


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

    def test_goes_from_a_contract_to_the_main_branch_and_to_an_approved_deployment(
        self, stage, engine
    ):
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
        self.deploy(stage, engine)

    def deploy(self, stage, engine):
        """Build an image from DevOps' own folder; production takes it once it is approved."""
        stage.issued_and_accepted("it_manager", "devops_worker", mode="coding")
        stage.done("devops_worker", "write_file", path="docker/sums/Dockerfile",
                   content="FROM scratch\nCOPY add.py /\n")  # fmt: skip
        stage.done("devops_worker", "write_file", path="docker/sums/add.py", content=GOOD)
        built = stage.done("devops_worker", "docker_build", path="docker/sums/", tag="sums:1")
        deploy = {"environment": "production", "artifact": built["digest"]}
        assert stage.call("devops_worker", "docker_deploy", **deploy).code == "APPROVAL_REQUIRED"
        until = (timezone.now() + timedelta(hours=1)).isoformat()
        stage.done("it_manager", "approve_deployment", to="devops_worker", reason="QA passed it",
                   expires_at=until, **deploy)  # fmt: skip
        assert not engine.containers
        done = stage.done("devops_worker", "docker_deploy", **deploy)
        assert done["state"] == "succeeded"
        assert len(engine.containers) == 1
        assert stage.call("devops_worker", "docker_deploy", **deploy).code == "APPROVAL_REQUIRED"
