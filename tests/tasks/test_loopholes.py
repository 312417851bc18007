"""Ways around the rules of tasks that the first audit found, and more of their kind."""

import json
import os
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from core.decision import Denied
from ledger.models import Event
from tasks import services
from tasks.insight.measures import By, durations
from tasks.models import Task
from tasks.rules.values import TaskUpdate
from tasks.vocabulary import Status
from tests.company import load_company
from tests.decisions import denied
from tests.tasks.world import NOW, Http, caller_of, configure, permit

BLANK = ["", " ", "\t\n", "\u2003", "\u200b \u200b", "\u3164\u115f", "\u2800", "\ufe0f"]
HIGHEST = 2**31 - 1


@pytest.fixture
def bring(tmp_path):
    def brought(**fields) -> None:
        file = tmp_path / "task.json"
        file.write_text(json.dumps({"id": "7", "subject": "x", **fields}))
        call_command("tasks", "import", "dev-team", str(file))

    return brought


class TestImport:
    @pytest.mark.parametrize("version", [HIGHEST, True, "3", 0, -1, 1.5, 2**63])
    def test_refuses_what_is_no_version(self, team, bring, version):
        with pytest.raises(CommandError, match="nothing was imported"):
            bring(version=version)
        assert not Task.objects.exists()

    def test_of_the_highest_version_leaves_room(self, team, bring, http):
        bring(version=HIGHEST - 1_000_000)
        done = http.call("architect", "task_update", taskId="7", owner="architect").result
        assert done["version"] == HIGHEST - 1_000_000 + 1

    def test_of_a_long_id_can_be_repeated(self, team, bring, http):
        for _ in range(2):
            bring(id="12345678901")
        assert Task.objects.count() == 1

    @pytest.mark.parametrize("subject", BLANK)
    def test_refuses_a_blank_subject(self, team, bring, subject):
        with pytest.raises(CommandError, match="nothing was imported"):
            bring(subject=subject)

    def test_of_a_chain_takes_a_few_statements(self, team, tmp_path, django_assert_max_num_queries):
        chain = [
            {"id": str(n), "subject": "x", "blockedBy": [str(n - 1)] if n > 1 else []}
            for n in range(1, 301)
        ]
        file = tmp_path / "chain.json"
        file.write_text(json.dumps(chain))
        with django_assert_max_num_queries(30):
            call_command("tasks", "import", "dev-team", str(file))
        assert Event.objects.filter(action="task.imported").count() == 300
        with django_assert_max_num_queries(6):
            call_command("tasks", "export", "dev-team", str(tmp_path / "out.json"))
        assert len(json.loads((tmp_path / "out.json").read_text())) == 300


class TestTheHighestVersion:
    def test_is_a_refusal(self, team, http):
        one = http.call("architect", "task_create", subject="x").result["id"]
        Task.objects.update(version=HIGHEST)
        answer = http.call("architect", "task_update", taskId=one, owner="architect")
        assert (answer.status, answer.code) == (409, "INVALID_TRANSITION")


class TestSubjects:
    @pytest.mark.parametrize("subject", BLANK)
    def test_that_show_nothing_are_refused(self, http, subject):
        assert http.call("architect", "task_create", subject=subject).code == "INVALID_PARAMS"
        one = http.call("architect", "task_create", subject="x").result["id"]
        answer = http.call("architect", "task_update", taskId=one, subject=subject)
        assert answer.code == "INVALID_PARAMS"


class TestCompletion:
    def test_is_for_no_absent_owner(self, http):
        one = http.call("architect", "task_create", subject="x").result["id"]
        claim = {"owner": "architect", "status": "in_progress"}
        assert http.call("architect", "task_update", taskId=one, **claim).status == 200
        for by, owner in (("architect", ""), ("team-lead", ""), ("team-lead", "test-leader")):
            answer = http.call(by, "task_update", taskId=one, owner=owner, status="completed")
            assert answer.code == "INVALID_PARAMS"
        assert Task.objects.get().status == "in_progress"


class TestDeletedTasks:
    def test_take_no_comments(self, http):
        one = http.call("architect", "task_create", subject="x").result["id"]
        http.call("architect", "task_update", taskId=one, status="deleted")
        answer = http.call("architect", "task_comment", taskId=one, body="hm")
        assert (answer.status, answer.code) == (409, "INVALID_TRANSITION")


class TestWarn:
    def test_lists_what_would_have_been_refused(self, team, http):
        configure(team, enforcement="warn")
        one = http.call(
            "team-lead", "task_create", subject="x", requiredRole="backend-leader"
        ).result["id"]
        done = http.call(
            "architect", "task_update", taskId=one, owner="architect", expectedVersion=9
        ).result
        codes = [each["code"] for each in done["warnings"]]
        assert codes == ["VERSION_MISMATCH", "ROLE_MISMATCH"]
        assert Event.objects.filter(action="task.warned").count() == 2
        configure(team, enforcement="off")
        done = http.call("architect", "task_update", taskId=one, expectedVersion=9, subject="y")
        assert "warnings" not in done.result


class TestTypes:
    def test_that_a_role_does_not_claim_are_refused_at_creation(self, team):
        permit(team, "architect", claim_task_type=["api_design"], update_own_tasks=True)
        asked = {"subject": "x", "required_role": "architect", "now": NOW}
        lead = caller_of(team, "team-lead")
        with pytest.raises(Denied) as denied:
            services.create_task(caller=lead, task_type="testing", **asked)
        assert denied.value.deny.code == "ROLE_MISMATCH"
        assert services.create_task(caller=lead, task_type="api_design", **asked)["id"] == "1"
        open_task = services.create_task(caller=lead, subject="x", task_type="testing", now=NOW)
        assert open_task["taskType"] == "testing"

    def test_and_roles_can_be_cleared(self, db):
        http = Http(load_company("nexus").organisation)
        keep = {"action": "add", "subject": "x", "requiredRole": "research_worker"}
        one = http.call("product_manager", "manage_backlog", **keep, taskType="testing").result
        edit = {"action": "edit", "taskId": one["id"], "requiredRole": "", "taskType": ""}
        done = http.call("product_manager", "manage_backlog", **edit).result
        assert (done["requiredRole"], done["taskType"]) == (None, None)


class TestMeasures:
    def test_count_no_time_for_what_was_imported_completed(self, team, bring, http):
        bring(status="completed", owner="architect", updatedAt="2026-02-15T09:00:00Z")
        period = {"since": NOW - timedelta(days=1), "until": NOW + timedelta(days=1)}
        assert durations(team.id, By.AGENT, **period) == []


class TestUpdates:
    def test_of_an_owner_that_ask_nothing_leave_the_version(self, team):
        caller = caller_of(team, "architect")
        one = services.create_task(caller=caller, subject="x", now=NOW)["id"]
        claim = TaskUpdate(owner="architect", status=Status.IN_PROGRESS)
        services.update_task(caller=caller, task_id=one, update=claim, now=NOW)
        done = services.update_task(caller=caller, task_id=one, update=TaskUpdate(), now=NOW)
        assert done["version"] == 2


@pytest.mark.parametrize(
    ("verb", "said"), [("import", "nothing was imported"), ("feedback", "is no plain file")]
)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(team, tmp_path, verb, said):
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(CommandError, match=said):
        call_command("tasks", verb, "dev-team", str(tmp_path / "a.json"))


class TestTheOwnerThatATaskHas:
    """To name it is a change like any other: the version grows (Spec: tasks 27)."""

    def test_is_not_named_by_a_stranger(self, make, update):
        held = make(required_role="backend-leader")
        update("backend-leader", held, owner="backend-leader", status=Status.IN_PROGRESS)
        with denied("NOT_YOURS"):
            update("frontend-leader", held, owner="backend-leader")
        assert Task.objects.get(number=held).version == 2

    @pytest.mark.parametrize("enforcement", ["enforce", "warn"])
    def test_is_none_and_its_release_changes_nothing(self, team, make, update, enforcement):
        configure(team, enforcement=enforcement)
        open_ = make(required_role="backend-leader")
        expected = {"expected_version": 9} if enforcement == "warn" else {}
        done = update("frontend-leader", open_, owner="", **expected)
        assert done["version"] == Task.objects.get(number=open_).version == 1
        assert not Event.objects.filter(action="task.updated").exists()

    def test_is_not_named_by_a_stranger_after_the_end(self, make, update):
        done = make()
        update("architect", done, owner="architect", status=Status.IN_PROGRESS)
        update("architect", done, status=Status.COMPLETED)
        with denied("NOT_YOURS"):
            update("frontend-leader", done, owner="architect")

    def test_renews_its_claim_by_its_name_without_a_permission(self, team, make, update):
        mine = make()
        permit(team, "architect", claim_task_type="*")
        update("architect", mine, owner="architect")
        assert update("architect", mine, owner="architect")["owner"] == "architect"

    def test_is_confirmed_by_a_lead_so_that_no_lease_ends_it(self, make, update):
        claimed = make()
        update("architect", claimed, owner="architect", status=Status.IN_PROGRESS)
        assert Task.objects.get(number=claimed).lease_due_at is not None
        update("team-lead", claimed, owner="architect", force=True)
        row = Task.objects.get(number=claimed)
        assert (row.is_assigned, row.lease_due_at) == (True, None)


class TestADependencyUnderWarn:
    """What `enforce` refuses is a warning from either side (Spec: tasks 36)."""

    @pytest.mark.parametrize("side", ["addBlocks", "addBlockedBy"])
    def test_on_a_task_of_another_role(self, team, make, http, side):
        configure(team, enforcement="warn")
        mine = make("frontend-leader", required_role="frontend-leader")
        waits = make(required_role="backend-leader")
        one, other = (mine, waits) if side == "addBlocks" else (waits, mine)
        done = http.call("frontend-leader", "task_update", taskId=one, **{side: [other]}).result
        assert [warning["code"] for warning in done["warnings"]] == ["ROLE_MISMATCH"]
        assert Event.objects.filter(action="task.warned").count() == 1
