"""TC-01 … TC-21 (Spec: tasks 54) by name, over HTTP, in the dev-team organisation."""

import pytest

from tests.company import load_company
from tests.oracle import tasks as spec
from tests.tasks.world import Http


@pytest.fixture
def http(db) -> Http:
    """The shipped dev-team pack, each agent with its key."""
    return Http(load_company("dev-team").organisation)


def said(*sentences: tuple[str, ...], of: tuple = ()) -> str:
    """The specified sentences, with what is between them."""
    return " ".join(one for group in sentences for one in group).format(*of)


@pytest.fixture
def task(http: Http):
    """Make a task as the team lead, bring it to a version or a state, and return its id."""

    def make(version: int = 1, status: str = "pending", owner: str = "", **fields) -> str:
        now = http.call("team-lead", "task_create", subject="a task", **fields).result

        def update(**change) -> dict:
            return http.call("team-lead", "task_update", taskId=now["id"], **change).result

        if owner:
            now = update(owner=owner, forceAssign=True)
        if status != "pending":
            now = update(status="in_progress")
        if status == "completed":
            now = update(status="completed")
        while now["version"] < version:
            now = update(description="more")
        return now["id"]

    return make


@pytest.fixture
def read(http: Http):
    def get(task_id: str) -> dict:
        return http.call("architect", "task_get", taskId=task_id).result

    return get


class TestTaskCreate:
    def test_tc_01_with_required_role(self, http):
        made = http.call(
            "team-lead", "task_create", subject="x", requiredRole="backend-leader"
        ).result
        assert (made["version"], made["requiredRole"]) == (1, "backend-leader")
        assert (made["id"], made["status"], made["owner"]) == ("1", "pending", "")

    def test_tc_02_invalid_required_role(self, http):
        answer = http.call("team-lead", "task_create", subject="x", requiredRole="invalid-role")
        assert (answer.status, answer.code) == (400, "INVALID_PARAMS")
        assert said(spec.INVALID_ROLE) in answer.message
        assert "requiredRole" in answer.body["details"]

    def test_tc_03_without_required_role(self, http):
        made = http.call("team-lead", "task_create", subject="x").result
        assert (made["version"], made["requiredRole"]) == (1, None)

    def test_tc_04_with_task_type(self, http):
        made = http.call(
            "team-lead", "task_create", subject="x", taskType="backend_implementation"
        ).result
        assert made["taskType"] == "backend_implementation"

    def test_gives_the_whole_object_of_the_specification(self, http):
        made = http.call("team-lead", "task_create", subject="x", activeForm="doing x").result
        assert set(made) == {
            "id", "subject", "description", "activeForm", "status", "owner", "metadata", "blocks",
            "blockedBy", "createdAt", "updatedAt", "requiredRole", "version", "taskType",
        }  # fmt: skip

    @pytest.mark.parametrize("role", spec.ROLES)
    def test_knows_every_role(self, http, role):
        assert http.call("team-lead", "task_create", subject="x", requiredRole=role).status == 200

    @pytest.mark.parametrize("task_type", spec.TASK_TYPES)
    def test_knows_every_type(self, http, task_type):
        assert http.call("team-lead", "task_create", subject="x", taskType=task_type).status == 200

    def test_refuses_an_unknown_type(self, http):
        answer = http.call("team-lead", "task_create", subject="x", taskType="dreaming")
        assert (answer.status, answer.code) == (400, "INVALID_PARAMS")


class TestTaskList:
    def test_tc_05_without_role_filter(self, http, task):
        made = {task(requiredRole=role) for role in (None, *spec.ROLES)}
        listed = http.call("backend-leader", "task_list").result["tasks"]
        assert {line["id"] for line in listed} == made

    def test_tc_06_with_role_filter(self, http, task):
        one, _two, three = (
            task(requiredRole="backend-leader"),
            task(requiredRole="frontend-leader"),
            task(),
        )
        listed = http.call("backend-leader", "task_list", roleFilter="backend-leader").result
        assert [line["id"] for line in listed["tasks"]] == [three, one]

    def test_tc_07_role_filter_matches_owner(self, http, task):
        one = task(requiredRole="frontend-leader", owner="backend-leader")
        listed = http.call("backend-leader", "task_list", roleFilter="backend-leader").result
        assert [line["id"] for line in listed["tasks"]] == [one]
        assert listed["tasks"][0]["owner"] == "backend-leader"

    def test_gives_the_lines_of_the_specification(self, http, task):
        task(requiredRole="backend-leader", taskType="bug_fix")
        (line,) = http.call("backend-leader", "task_list").result["tasks"]
        assert set(line) == {
            "id", "subject", "status", "owner", "blockedBy", "requiredRole", "version", "taskType",
        }  # fmt: skip

    @pytest.mark.parametrize("role_filter", [None, *spec.ROLES])
    def test_agrees_with_the_specification_for_every_pair(self, http, task, role_filter):
        made = {}
        for required in (None, "backend-leader", "architect"):
            for owner in ("", "backend-leader", "frontend-leader"):
                made[task(requiredRole=required, owner=owner)] = (required, owner)
        params = {} if role_filter is None else {"roleFilter": role_filter}
        listed = http.call("architect", "task_list", **params).result["tasks"]
        assert {line["id"] for line in listed} == {
            one
            for one, (required, owner) in made.items()
            if spec.listed(role_filter=role_filter, required=required, owner=owner)
        }


class TestOptimisticLock:
    def test_tc_08_version_matches(self, http, task):
        one = task(version=3, status="in_progress")
        done = http.call(
            "team-lead", "task_update", taskId=one, status="completed", expectedVersion=3
        ).result
        assert (done["status"], done["version"]) == ("completed", 4)

    def test_tc_09_version_does_not_match(self, http, task, read):
        one = task(version=5, status="in_progress")
        before = read(one)
        answer = http.call(
            "team-lead", "task_update", taskId=one, status="completed", expectedVersion=3
        )
        assert (answer.status, answer.code) == (409, "VERSION_MISMATCH")
        assert answer.message == said(spec.VERSION_MISMATCH, of=(3, 5))
        assert read(one) == before

    def test_tc_10_without_expected_version(self, http, task):
        one = task(version=3, status="in_progress")
        done = http.call("team-lead", "task_update", taskId=one, status="completed").result
        assert (done["status"], done["version"]) == ("completed", 4)


class TestRoleMatch:
    def test_tc_11_role_matches(self, http, task):
        one = task(requiredRole="backend-leader")
        done = http.call("backend-leader", "task_update", taskId=one, owner="backend-leader")
        assert done.result["owner"] == "backend-leader"

    def test_tc_12_role_does_not_match(self, http, task, read):
        one = task(requiredRole="backend-leader")
        before = read(one)
        answer = http.call("frontend-leader", "task_update", taskId=one, owner="frontend-leader")
        assert (answer.status, answer.code) == (403, "ROLE_MISMATCH")
        assert answer.message == said(
            spec.ROLE_MISMATCH, of=("backend-leader", "frontend-leader", "frontend-leader")
        )
        assert read(one) == before

    def test_tc_13_team_lead_forces(self, http, task):
        one = task(requiredRole="backend-leader")
        done = http.call(
            "team-lead", "task_update", taskId=one, owner="architect", forceAssign=True
        )
        assert done.result["owner"] == "architect"

    def test_tc_14_nobody_else_forces(self, http, task, read):
        one = task(requiredRole="backend-leader")
        before = read(one)
        answer = http.call(
            "frontend-leader", "task_update", taskId=one, owner="frontend-leader", forceAssign=True
        )
        assert (answer.status, answer.code) == (403, "FORCE_ASSIGN_DENIED")
        assert answer.message == said(spec.FORCE_ASSIGN)
        assert read(one) == before

    @pytest.mark.parametrize("role", spec.ROLES)
    def test_tc_15_no_required_role(self, http, task, role):
        done = http.call(role, "task_update", taskId=task(), owner=role).result
        assert (done["owner"], done["version"]) == (role, 2)

    def test_every_claim_of_the_specification(self, http, task):
        for required, owner, caller, force, outcome in spec.claims():
            answer = http.call(
                caller,
                "task_update",
                taskId=task(requiredRole=required),
                owner=owner,
                **({"forceAssign": True} if force else {}),
            )
            assert (answer.code or "OK") == outcome, (required, owner, caller, force)


class TestTransitions:
    def test_tc_16_pending_to_in_progress(self, http, task):
        done = http.call("architect", "task_update", taskId=task(), status="in_progress").result
        assert (done["status"], done["owner"], done["version"]) == ("in_progress", "", 2)

    def test_tc_17_in_progress_to_completed(self, http, task):
        one = task(status="in_progress")
        done = http.call("architect", "task_update", taskId=one, status="completed").result
        assert done["status"] == "completed"

    def test_tc_18_completed_to_in_progress(self, http, task, read):
        one = task(status="completed")
        before = read(one)
        answer = http.call("team-lead", "task_update", taskId=one, status="in_progress")
        assert (answer.status, answer.code) == (409, "INVALID_TRANSITION")
        assert answer.message == said(
            spec.INVALID_TRANSITION, spec.ALLOWED_FROM_COMPLETED, of=("completed", "in_progress")
        )
        assert read(one) == before

    def test_tc_19_in_progress_to_pending(self, http, task):
        one = task(status="in_progress")
        answer = http.call("team-lead", "task_update", taskId=one, status="pending")
        assert (answer.status, answer.code) == (409, "INVALID_TRANSITION")
        assert said(spec.INVALID_TRANSITION, of=("in_progress", "pending")) in answer.message


class TestConcurrency:
    def test_tc_20_two_agents_claim_at_once(self, http, task):
        one = task(requiredRole="backend-leader")
        answers = [
            http.call(agent, "task_update", taskId=one, owner=agent, expectedVersion=1)
            for agent in ("backend-leader", "backend-leader-2")
        ]
        assert [answer.code for answer in answers] == ["", "VERSION_MISMATCH"]
        assert answers[1].message.startswith("Task version mismatch. Expected: 1, Current: 2.")

    def test_tc_21_reads_what_is_old_by_then(self, http, task):
        one = task()
        seen = http.call("architect", "task_get", taskId=one).result["version"]
        moved = http.call("test-leader", "task_update", taskId=one, status="in_progress").result
        assert (seen, moved["version"]) == (1, 2)
        answer = http.call(
            "architect", "task_update", taskId=one, owner="architect", expectedVersion=seen
        )
        assert (answer.status, answer.code) == (409, "VERSION_MISMATCH")
