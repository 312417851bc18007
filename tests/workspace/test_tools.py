"""Every hand through the door: what is decided now, and what is honestly missing."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models import F

from contracts.approvals.deployments import approve_deployment
from contracts.models import Contract
from ledger.models import Event
from orgchart.policy.vocabulary import ToolMode
from tests.documents.world import NOW, caller_of
from toolbox import door
from toolbox.explaining import explain

ARTIFACT = "sha256:" + "a" * 64


def answer(caller, tool, **params):
    found = door.call(caller, tool, params, now=NOW)
    return found.body.get("error_code", "OK")


def coding(nexus, handle):
    caller = caller_of(nexus, handle)
    return replace(caller, session=replace(caller.session, mode=ToolMode.CODING))


@pytest.fixture
def backend(hired):
    return hired(
        "backend_worker", workspace_scope=["src/feature/"], assigned_branch="feature/login"
    )


IN_SCOPE = [
    ("devops_worker", "docker_deploy", {"environment": "staging", "artifact": ARTIFACT}),
    ("devops_worker", "run_health_check", {"service": "api"}),
    ("research_worker", "web_search", {"query": "agents"}),
]

OUT_OF_SCOPE = [
    ("backend_worker", "read_file", {"path": "src/main.py"}),
    ("backend_worker", "read_file", {"path": "agents/ceo/notes/x.md"}),
    ("backend_worker", "read_file", {"path": "tests/.env"}),
    ("backend_worker", "write_file", {"path": "tests/../src/main.py", "content": "x"}),
    ("backend_worker", "run_test", {"paths": ["tests/", "src/"]}),
    ("qa_worker", "write_file", {"path": "src/main.py", "content": "x"}),
    ("qa_worker", "run_linter", {"paths": ["src/main.py"]}),
    ("it_manager", "read_code", {"path": "agents/hr_manager/notes.md"}),
    ("devops_worker", "docker_build", {"path": "src/", "tag": "app:1"}),
    ("devops_worker", "manage_ci_config", {"path": ".github/CODEOWNERS", "content": "x"}),
    ("devops_worker", "read_logs", {"path": "company/org.yaml"}),
    ("research_worker", "read_url", {"url": "http://169.254.169.254/"}),
]


class TestHands:
    @pytest.mark.parametrize(("handle", "tool", "params"), IN_SCOPE)
    def test_say_which_driver_is_missing_once_all_gates_are_passed(
        self, nexus, handle, tool, params
    ):
        found = door.call(coding(nexus, handle), tool, params, now=NOW)
        assert (found.status, found.body["error_code"]) == (503, "DRIVER_UNAVAILABLE")
        assert found.body["details"]["driver"] in found.body["message"]

    @pytest.mark.parametrize(("handle", "tool", "params"), OUT_OF_SCOPE)
    def test_refuse_what_is_out_of_scope_with_one_event(self, nexus, handle, tool, params):
        assert answer(coding(nexus, handle), tool, **params) == "SCOPE_DENIED"
        assert (
            Event.objects.filter(action="tool.denied", tool=tool, code="SCOPE_DENIED").count() == 1
        )

    @pytest.mark.parametrize(("handle", "tool", "params"), [c for c in IN_SCOPE if c[0][0] != "r"])
    def test_stay_closed_outside_coding(self, nexus, handle, tool, params):
        assert answer(caller_of(nexus, handle), tool, **params) == "MODE_DENIED"

    def test_explain_what_the_call_would_answer(self, nexus):
        caller = coding(nexus, "backend_worker")
        for path, code in [("src/main.py", "SCOPE_DENIED"), ("tests/a.py", None)]:
            found = explain(caller, "write_file", {"path": path, "content": ""}, now=NOW)
            assert found["error_code"] == code


class TestContractScope:
    def test_opens_its_folders_to_the_assignee(self, backend):
        assert answer(backend, "write_file", path="src/feature/a.py", content="") == "OK"
        assert answer(backend, "write_file", path="src/feature-evil/a.py", content="") == (
            "SCOPE_DENIED"
        )

    def test_opens_nothing_to_others(self, backend, nexus):
        other = coding(nexus, "frontend_worker")
        assert answer(other, "read_file", path="src/feature/a.py") == "SCOPE_DENIED"


class TestGit:
    @pytest.mark.parametrize(
        "branch", ["main", "refs/heads/master", "feature/other", "--force", "feature/login:main"]
    )
    def test_refuses_any_other(self, backend, branch):
        assert answer(backend, "git_push", branch=branch) == "BRANCH_DENIED"
        assert answer(backend, "git_branch", name=branch) == "BRANCH_DENIED"

    def test_refuses_everything_without_a_contract(self, nexus):
        frontend = coding(nexus, "frontend_worker")
        assert answer(frontend, "git_push", branch="feature/login") == "BRANCH_DENIED"
        assert answer(frontend, "git_commit", message="m", paths=["tests/frontend/a.ts"]) == (
            "BRANCH_DENIED"
        )

    def test_refuses_files_out_of_scope(self, backend):
        assert answer(backend, "git_commit", message="m", paths=["src/main.py"]) == "SCOPE_DENIED"

    def test_ends_with_the_contract(self, backend):
        Contract.objects.update(
            state="cancelled",
            version=F("version") + 1,
            closed_at=NOW,
            closed_by="agent:it_manager",
            closed_reason="enough",
        )
        assert answer(backend, "git_push", branch="feature/login") == "BRANCH_DENIED"


class TestDeploy:
    @pytest.fixture
    def approved(self, nexus):
        approve_deployment(
            caller=caller_of(nexus, "it_manager"), to="devops_worker", environment="production",
            artifact=ARTIFACT, expires_at=NOW + timedelta(hours=1), reason="release", now=NOW,
        )  # fmt: skip
        return coding(nexus, "devops_worker")

    @pytest.mark.parametrize(
        "environment", ["production", "PRODUCTION", "production ", "\nproduction", "prod", "live"]
    )
    def test_to_production_needs_an_approval(self, nexus, environment):
        caller = coding(nexus, "devops_worker")
        assert answer(caller, "docker_deploy", environment=environment, artifact=ARTIFACT) == (
            "APPROVAL_REQUIRED"
        )

    def test_with_one_reaches_the_driver_and_does_not_use_it_up(self, approved):
        for _ in range(2):
            assert answer(
                approved, "docker_deploy", environment="production", artifact=ARTIFACT
            ) == "DRIVER_UNAVAILABLE"  # fmt: skip
        assert Contract.objects.get().used_at is None

    def test_with_one_for_something_else_is_refused(self, approved):
        other = "sha256:" + "b" * 64
        assert answer(approved, "docker_deploy", environment="production", artifact=other) == (
            "APPROVAL_REQUIRED"
        )
        assert answer(approved, "docker_deploy", environment="prod-eu", artifact=ARTIFACT) == (
            "APPROVAL_REQUIRED"
        )
