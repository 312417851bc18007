"""The managers' tools of the matrix, over HTTP, in the shipped NEXUS company."""

import pytest

from core.decision import NAMED
from orgchart.policy.compiled import Policy
from tasks.models import Feedback
from tests.company import load_company
from tests.tasks.world import NOW, Http
from toolbox.denial_limits import EVENT_BYTES
from toolbox.models import Usage


@pytest.fixture
def http(db) -> Http:
    return Http(load_company("nexus").organisation)


def made(http: Http, by: str = "product_manager", **fields) -> str:
    return http.call(by, "task_create", subject="x", **fields).result["id"]


class TestAssignTask:
    def test_gives_a_task_to_an_own_worker(self, http):
        one = made(http, "it_manager", requiredRole="backend_worker")
        task = http.call("it_manager", "assign_task", taskId=one, to="backend_worker").result
        assert (task["owner"], task["version"]) == ("backend_worker", 2)

    @pytest.mark.parametrize("to", ["hr_manager", "ceo", "it_manager", "research_worker", "nobody"])
    def test_reaches_nobody_else(self, http, to):
        answer = http.call("it_manager", "assign_task", taskId=made(http), to=to)
        assert (answer.status, answer.code) == (403, "NOT_YOURS")

    def test_names_some_of_many_workers(self, http, monkeypatch):
        """The answer and its event would else grow with the company."""
        few = Policy.workers_of
        monkeypatch.setattr(Policy, "workers_of", lambda *given: few(*given) * 40)
        answer = http.call("it_manager", "assign_task", taskId=made(http), to="ceo")
        assert answer.body["next_action"].count("_worker") == NAMED

    def test_keeps_to_the_required_role_unless_forced(self, http):
        one = {"taskId": made(http, "it_manager", requiredRole="qa_worker"), "to": "backend_worker"}
        assert http.call("it_manager", "assign_task", **one).code == "ROLE_MISMATCH"
        forced = http.call("it_manager", "assign_task", **one, forceAssign=True).result
        assert forced["owner"] == "backend_worker"

    def test_minds_the_version(self, http):
        one = {"taskId": made(http), "to": "backend_worker", "expectedVersion": 7}
        assert http.call("it_manager", "assign_task", **one).code == "VERSION_MISMATCH"

    def test_is_the_it_managers(self, http):
        answer = http.call("product_manager", "assign_task", taskId="1", to="frontend_worker")
        assert answer.code == "TOOL_NOT_BOUND"


class TestForceAssign:
    def test_of_an_it_manager_reaches_its_own_workers(self, http):
        one = made(http, "it_manager", requiredRole="qa_worker")
        for owner, code in [
            ("hr_manager", "FORCE_ASSIGN_DENIED"),
            ("research_worker", "FORCE_ASSIGN_DENIED"),
            ("backend_worker", ""),
        ]:
            answer = http.call(
                "it_manager", "task_update", taskId=one, owner=owner, forceAssign=True
            )
            assert answer.code == code

    def test_of_an_it_manager_takes_no_task_of_another_role(self, http):
        """Spec: tasks 22."""
        one = made(http, "ceo", requiredRole="hr_manager")
        taken = {"taskId": one, "owner": "it_manager", "status": "in_progress"}
        forced = http.call("it_manager", "task_update", **taken, forceAssign=True)
        assert forced.code == "FORCE_ASSIGN_DENIED"
        assert http.call("it_manager", "task_update", **taken).code == "ROLE_MISMATCH"

    def test_is_nobody_elses(self, http):
        one = made(http, "it_manager")
        for handle in ("ceo", "product_manager", "hr_manager", "backend_worker"):
            answer = http.call(handle, "task_update", taskId=one, owner=handle, forceAssign=True)
            assert answer.code == "FORCE_ASSIGN_DENIED"
            assert answer.message == "Only it_manager can use forceAssign"


class TestBacklog:
    def keep(self, http, **fields):
        return http.call("product_manager", "manage_backlog", **fields)

    def ids(self, http, **fields) -> list[str]:
        return [task["id"] for task in self.keep(http, **fields).result["tasks"]]

    def test_holds_what_nobody_owns_and_what_has_not_begun(self, http):
        free, begun, owned = made(http), made(http), made(http)
        http.call("ceo", "task_update", taskId=begun, status="in_progress")
        http.call("ceo", "task_update", taskId=owned, owner="ceo")
        assert self.ids(http) == [free]

    def test_is_added_to_edited_and_emptied(self, http):
        task = self.keep(http, action="add", subject="new", requiredRole="research_worker").result
        one = {"taskId": task["id"], "expectedVersion": 1}
        edited = self.keep(http, action="edit", **one, subject="newer", taskType="testing").result
        assert (edited["subject"], edited["taskType"], edited["version"]) == ("newer", "testing", 2)
        assert self.keep(http, action="edit", **one, subject="x").code == "VERSION_MISMATCH"
        gone = self.keep(http, action="remove", taskId=task["id"]).result
        assert gone["status"] == "deleted"
        assert self.ids(http) == []

    @pytest.mark.parametrize(
        ("writer", "role"),
        [
            ("ceo", "hr_manager"),
            ("ceo", "it_manager"),
            ("it_manager", "backend_worker"),
            ("it_manager", "frontend_worker"),  # co-managed, and no contact without a contract
        ],
    )
    def test_takes_nothing_from_another_department(self, http, writer, role):
        """Spec: tasks 50."""
        one = made(http, writer, requiredRole=role)
        edit = {"action": "edit", "taskId": one}
        for change in (
            {**edit, "requiredRole": "product_manager"},
            {**edit, "requiredRole": ""},
            {**edit, "description": "mine"},
            {"action": "remove", "taskId": one},
        ):
            assert http.call("product_manager", "manage_backlog", **change).code == "NOT_YOURS"
        ranked = http.call("product_manager", "prioritize_tasks", taskIds=[one])
        assert ranked.code == ""

    def test_asks_no_role_that_cannot_read_the_subject(self, http):
        """Spec: tasks 35."""
        one = made(http, "ceo")
        asked = {"action": "edit", "taskId": one, "requiredRole": "research_worker"}
        assert self.keep(http, **asked).code == "CONTACT_DENIED"
        assert self.keep(http, **asked, subject="In my words").code == ""
        claim = {"taskId": one, "owner": "research_worker"}
        assert http.call("research_worker", "task_update", **claim).code == ""

    def test_edits_nothing_that_has_been_taken(self, http):
        one = made(http)
        http.call("ceo", "task_update", taskId=one, owner="ceo")
        for params in ({"action": "edit", "subject": "mine"}, {"action": "remove"}):
            assert self.keep(http, taskId=one, **params).code == "NOT_YOURS"

    @pytest.mark.parametrize(
        "params",
        [
            {"action": "add"},
            {"action": "edit", "subject": "x"},
            {"action": "remove"},
            {"action": "burn"},
            {"action": "add", "subject": "x", "requiredRole": "nobody"},
            {"cursor": "MTox" * 9},
            {"cursor": "LTE6LTE"},
        ],
    )
    def test_refuses_what_it_cannot_read(self, http, params):
        assert self.keep(http, **params).code == "INVALID_PARAMS"

    @pytest.mark.parametrize(
        ("params", "said"),
        [
            ({"action": "edit", "subject": "y", "blockedBy": ["77"]}, "edit takes no blockedBy"),
            ({"action": "edit", "feedbackId": "77"}, "edit takes no feedbackId"),
            ({"action": "add", "subject": "y", "expectedVersion": 1},
             "add takes no taskId, expectedVersion"),
            ({"action": "remove", "subject": "y", "limit": 7}, "remove takes no subject, limit"),
            ({"action": "list", "description": "", "cursor": "x"},
             "list takes no taskId, description"),
        ],
    )  # fmt: skip
    def test_refuses_what_an_action_would_ignore(self, http, params, said):
        one = made(http)
        answer = self.keep(http, taskId=one, **params)
        assert answer.code == "INVALID_PARAMS"
        assert said in answer.message
        assert http.call("ceo", "task_get", taskId=one).result["version"] == 1
        assert self.ids(http) == [one]

    def test_minds_no_parameter_that_says_nothing(self, http):
        nothing = {"taskId": None, "expectedVersion": None, "cursor": None, "limit": 50}
        assert self.keep(http, action="add", subject="x", **nothing).status == 200

    def test_is_ranked_in_the_given_order(self, http):
        one, two, three, four = (made(http) for _ in range(4))
        ranked = http.call("product_manager", "prioritize_tasks", taskIds=[three, one]).result
        assert ranked["tasks"] == [{"id": three, "version": 2}, {"id": one, "version": 2}]
        assert self.ids(http) == [three, one, two, four]
        http.call("product_manager", "prioritize_tasks", taskIds=[four])
        http.call("product_manager", "prioritize_tasks", taskIds=[three, two], place="bottom")
        assert self.ids(http) == [four, one, three, two]

    def test_pages_through_all_ranks_once(self, http):
        made_ids = [made(http) for _ in range(7)]
        http.call("product_manager", "prioritize_tasks", taskIds=[made_ids[4], made_ids[2]])
        found, cursor = [], {}
        while True:
            page = self.keep(http, limit=2, **cursor).result
            found += [task["id"] for task in page["tasks"]]
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert found == self.ids(http)
        assert len(set(found)) == 7

    def test_is_ranked_all_or_none(self, http):
        one, taken = made(http), made(http)
        http.call("ceo", "task_update", taskId=taken, owner="ceo")
        answer = http.call("product_manager", "prioritize_tasks", taskIds=[one, taken])
        assert answer.code == "NOT_YOURS"
        assert http.call("ceo", "task_get", taskId=one).result["version"] == 1
        twice = http.call("product_manager", "prioritize_tasks", taskIds=[one, one])
        assert twice.code == "INVALID_PARAMS"

    def test_counts_an_event_for_each_task(self, http):
        """A call ranks 200 tasks: as one row it would fill the disk past every quota."""
        tasks = [made(http) for _ in range(20)]
        assert http.call("product_manager", "prioritize_tasks", taskIds=tasks).status == 200
        assert Usage.objects.get().bytes == 20 * EVENT_BYTES

    def test_ranks_what_is_recommended(self, http):
        one, two = made(http), made(http)
        http.call("product_manager", "prioritize_tasks", taskIds=[two])
        found = http.call("research_worker", "task_recommend").result["tasks"]
        assert [task["id"] for task in found] == [two, one]

    def test_is_the_product_managers(self, http):
        for handle in ("ceo", "it_manager", "frontend_worker"):
            for tool in ("manage_backlog", "prioritize_tasks", "read_user_feedback"):
                assert http.call(handle, tool).code == "TOOL_NOT_BOUND"


class TestFeedback:
    @pytest.fixture
    def heard(self, http):
        return [
            Feedback.objects.create(
                organisation=http.organisation,
                body=f"report {number}",
                category=("bug", "wish")[number % 2],
                received_at=NOW,
            )
            for number in range(5)
        ]

    def test_is_read_newest_first(self, http, heard):
        page = http.call("product_manager", "read_user_feedback", limit=3).result
        assert [item["body"] for item in page["feedback"]] == ["report 4", "report 3", "report 2"]
        rest = http.call(
            "product_manager", "read_user_feedback", limit=3, cursor=page["next_cursor"]
        ).result
        assert [item["body"] for item in rest["feedback"]] == ["report 1", "report 0"]

    def test_is_filtered(self, http, heard):
        page = http.call("product_manager", "read_user_feedback", category="wish").result
        assert len(page["feedback"]) == 2

    def test_becomes_a_task(self, http, heard):
        task = http.call(
            "product_manager",
            "manage_backlog",
            action="add",
            subject="mend it",
            feedbackId=str(heard[0].id),
        ).result
        heard[0].refresh_from_db()
        assert str(heard[0].task.number) == task["id"]

    @pytest.mark.parametrize("feedback_id", ["0", "x", "99999999", "9" * 30])
    def test_that_does_not_exist_makes_no_task(self, http, feedback_id):
        answer = http.call(
            "product_manager", "manage_backlog", action="add", subject="x", feedbackId=feedback_id
        )
        assert answer.code == "NOT_FOUND"
        assert http.call("ceo", "task_list").result["tasks"] == []

    def test_of_another_organisation_is_not_there(self, http, heard):
        other = Http(load_company("soloqueue").organisation).organisation
        Feedback.objects.update(organisation=other)
        assert http.call("product_manager", "read_user_feedback").result["feedback"] == []
