"""What will be tried on tasks and versions: refused, nothing changed, one event, never a 500."""

import json

import pytest

from ledger.models import Event
from tasks.models import Task
from tests.tasks.world import Http, dev_team


@pytest.fixture
def one(http) -> str:
    return http.call("team-lead", "task_create", subject="x", requiredRole="architect").result["id"]


@pytest.fixture
def attempt(http, client):
    """Send a body as it is; it must be refused, leave one event, and change nothing."""

    def attempted(tool: str, body, handle: str = "architect") -> dict:
        key = http.key(handle)
        text = body if isinstance(body, str | bytes) else json.dumps(body)
        before = (list(Task.objects.order_by("id").values()), Event.objects.count())
        answer = client.post(
            f"/api/v1/tools/{tool}",
            text,
            content_type="application/json",
            headers={"Authorization": f"Bearer {key}"},
        )
        assert 400 <= answer.status_code < 500, answer.content
        after = (list(Task.objects.order_by("id").values()), Event.objects.count())
        assert after == (before[0], before[1] + 1)
        assert Event.objects.order_by("-seq")[0].decision == "deny"
        found = answer.json()
        assert found["next_action"]
        return found

    return attempted


class TestVersions:
    @pytest.mark.parametrize(
        "version", ["1", True, False, 0, -1, 2**31, 2**63, 1.0, 1.5, [1], {"gt": 0}, 10**400]
    )
    def test_of_another_kind_are_refused(self, attempt, one, version):
        found = attempt("task_update", {"taskId": one, "subject": "y", "expectedVersion": version})
        assert found["error_code"] == "INVALID_PARAMS"
        assert "expectedVersion" in found["details"]

    @pytest.mark.parametrize("number", ["NaN", "1e999", "-Infinity"])
    def test_that_are_no_numbers_are_refused(self, attempt, one, number):
        attempt("task_update", f'{{"taskId": "{one}", "expectedVersion": {number}}}')

    def test_given_twice_are_refused(self, attempt, one):
        attempt("task_update", f'{{"taskId": "{one}", "expectedVersion": 9, "expectedVersion": 1}}')

    def test_that_come_true_again_do_not_pass(self, http, attempt, one):
        """Claimed, released and claimed again in between: same owner, another version."""
        update = {"taskId": one, "owner": "architect"}
        seen = http.call("architect", "task_update", **update).result["version"]
        http.call("architect", "task_update", **update | {"owner": ""})
        http.call("architect", "task_update", **update)
        found = attempt("task_update", {"taskId": one, "expectedVersion": seen})
        assert found["error_code"] == "VERSION_MISMATCH"


class TestFields:
    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"taskId": 1},
            {"taskId": ["1"]},
            {"taskId": None},
            {"task_id": "1"},
            {"taskId": "1", "expected_version": 1},
            {"taskId": "1", "required_role": "architect"},
            {"taskId": "1", "requiredRole": "architect"},
            {"taskId": "1", "version": 7},
            {"taskId": "1", "organisation": 1},
            {"taskId": "1", "status": "done"},
            {"taskId": "1", "status": ["pending"]},
            {"taskId": "1", "owner": 7},
            {"taskId": "1", "owner": ["architect"]},
            {"taskId": "1", "owner": "ar\u0441hitect"},
            {"taskId": "1", "owner": "Architect"},
            {"taskId": "1", "owner": " architect"},
            {"taskId": "1", "owner": "x" * 65},
            {"taskId": "1", "forceAssign": "true"},
            {"taskId": "1", "forceAssign": 1},
            {"taskId": "1", "metadata": []},
            {"taskId": "1", "metadata": "x"},
            {"taskId": "1", "subject": ""},
            {"taskId": "1", "subject": "x" * 501},
            {"taskId": "1", "subject": None, "addBlocks": "2"},
            {"taskId": "1", "addBlocks": [2]},
            {"taskId": "1", "addBlockedBy": ["1"] * 201},
        ],
    )
    def test_of_another_kind_or_name_are_refused(self, attempt, one, body):
        assert attempt("task_update", body)["error_code"] == "INVALID_PARAMS"

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"subject": ""},
            {"subject": 7},
            {"subject": "x", "owner": "architect"},
            {"subject": "x", "version": 9},
            {"subject": "x", "status": "completed"},
            {"subject": "x", "requiredRole": ""},
            {"subject": "x", "requiredRole": "Architect"},
            {"subject": "x", "requiredRole": "architect\u0000"},
            {"subject": "x", "taskType": "TESTING"},
            {"subject": "x", "blockedBy": "1"},
            {"subject": "\ud800"},
            '{"subject": "\\ud800"}',
            '{"subject": "a\\u0000b"}',
            '{"subject": "x", "metadata": {"a": "\\u0000"}}',
            '{"subject": "x", "metadata": ' + '{"a":' * 40 + "1" + "}" * 40 + "}",
            b'{"subject": "\xff"}',
        ],
    )
    def test_of_a_creation_are_refused_alike(self, attempt, one, body):
        assert attempt("task_create", body)["error_code"] == "INVALID_PARAMS"

    @pytest.mark.parametrize(
        "body",
        [
            {"owner__handle": "architect"},
            {"status__in": ["pending"]},
            {"status": "pending' OR 1=1 --"},
            {"owner": "architect' OR '1'='1"},
            {"roleFilter": "required_role"},
            {"limit": 0},
            {"limit": 201},
            {"limit": "5"},
            {"limit": True},
            {"cursor": "'; DROP TABLE tasks_task; --"},
        ],
    )
    def test_of_a_list_are_refused(self, attempt, one, body):
        assert attempt("task_list", body)["error_code"] == "INVALID_PARAMS"

    def test_hold_whatever_text_there_is(self, http):
        text = "<script>'; DROP TABLE tasks_task; -- %s {} \u202e 任务 🐘"
        made = http.call(
            "architect",
            "task_create",
            subject=text,
            description=text,
            metadata={text: [text, 1e64]},
        ).result
        read = http.call("architect", "task_get", taskId=made["id"]).result
        assert read["subject"] == read["description"] == text
        assert read["metadata"][text][0] == text


class TestForce:
    def test_is_refused_to_everybody_else_whatever_comes_with_it(self, http, attempt, one):
        for handle in ("architect", "product-manager", "backend-leader-2"):
            for more in ({}, {"owner": handle}, {"owner": ""}, {"status": "in_progress"}):
                body = {"taskId": one, "forceAssign": True, **more}
                assert attempt("task_update", body, handle)["error_code"] == "FORCE_ASSIGN_DENIED"

    def test_of_the_lead_does_not_reach_around_states_and_blockers(self, http, attempt, one):
        two = http.call("team-lead", "task_create", subject="y", blockedBy=[one]).result["id"]
        for task, status, code in [
            (one, "completed", "INVALID_TRANSITION"),
            (two, "in_progress", "TASK_BLOCKED"),
        ]:
            body = {"taskId": task, "forceAssign": True, "status": status}
            assert attempt("task_update", body, "team-lead")["error_code"] == code


class TestTenants:
    @pytest.fixture
    def stranger(self, db) -> Http:
        return Http(dev_team("other"))

    @pytest.mark.parametrize(
        ("tool", "more"),
        [
            ("task_get", {}),
            ("task_update", {"owner": "architect"}),
            ("task_comment", {"body": "x"}),
            ("task_approve", {}),
        ],
    )
    def test_find_each_others_tasks_nowhere(self, http, stranger, one, tool, more):
        handle = "team-lead" if tool == "task_approve" else "architect"
        theirs = stranger.call(handle, tool, taskId=one, **more)
        missing = stranger.call(handle, tool, taskId="777", **more)
        nothing_to_approve = tool == "task_approve"  # there no type of task asks for an approval
        expected = "TOOL_NOT_BOUND" if nothing_to_approve else "NOT_FOUND"
        assert theirs.code == missing.code == expected
        assert theirs.message.replace("'1'", "") == missing.message.replace("'777'", "")

    def test_do_not_join_or_list_each_others_tasks(self, http, stranger, one):
        made = stranger.call("architect", "task_create", subject="y", blockedBy=[one])
        assert made.code == "NOT_FOUND"
        assert stranger.call("architect", "task_list").result["tasks"] == []
        assert stranger.call("architect", "task_recommend").result["tasks"] == []

    def test_do_not_take_each_others_cursors_for_more(self, http, stranger, one):
        for _ in range(3):
            http.call("architect", "task_create", subject="y")
        cursor = http.call("architect", "task_list", limit=1).result["next_cursor"]
        assert stranger.call("architect", "task_list", cursor=cursor).result["tasks"] == []


class TestRepetition:
    def test_with_one_key_acts_once(self, http, client, one):
        headers = {
            "Authorization": f"Bearer {http.key('architect')}",
            "Idempotency-Key": "abc",
        }
        for _ in range(2):
            answer = client.post(
                "/api/v1/tools/task_update",
                {"taskId": one, "owner": "architect"},
                content_type="application/json",
                headers=headers,
            )
            assert answer.json()["result"]["version"] == 2
        assert Task.objects.get().version == 2

    def test_explaining_changes_nothing(self, http, client, one):
        def explained(handle, **params):
            answer = client.post(
                "/api/v1/explain",
                {"tool": "task_update", "params": params},
                content_type="application/json",
                headers={"Authorization": f"Bearer {http.key(handle)}"},
            )
            return answer.json()

        assert explained("architect", taskId=one, owner="architect")["allowed"]
        found = explained("test-leader", taskId=one, owner="test-leader")
        assert (found["allowed"], found["error_code"]) == (False, "ROLE_MISMATCH")
        assert found["rule"]
        assert Task.objects.get().version == 1
