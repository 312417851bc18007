"""Comments and approvals."""

from datetime import timedelta

import pytest

from core.actors import Person
from core.decision import Code, Denied
from ledger.models import Event
from tasks import discussion, services
from tasks.models import Comment, Task
from tasks.rules.values import TaskUpdate
from tasks.schedule import release_overdue
from tasks.vocabulary import Status
from tests.company import load_company
from tests.decisions import denied
from tests.tasks.world import NOW, Http, caller_of, configure, dev_team, permit


@pytest.fixture
def task_id(who) -> str:
    made = services.create_task(
        caller=who("team-lead"), subject="x", task_type="deployment", now=NOW
    )
    return made["id"]


@pytest.fixture
def update(who, task_id):
    def updated(by: str, **fields) -> dict:
        return services.update_task(
            caller=who(by), task_id=task_id, update=TaskUpdate(**fields), now=NOW
        )

    return updated


def code_of(act, **fields) -> Code:
    with pytest.raises(Denied) as denied:
        act(**fields, now=NOW)
    return denied.value.deny.code


class TestComments:
    def test_are_shown_with_the_task_in_their_order(self, who, task_id):
        for handle in ("architect", "test-leader"):
            discussion.comment_task(caller=who(handle), task_id=task_id, body="hm", now=NOW)
        task = services.get_task(caller=who("architect"), task_id=task_id)
        authors = [comment["author"] for comment in task["comments"]]
        assert authors == ["agent:architect", "agent:test-leader"]

    def test_change_neither_version_nor_lease(self, team, who, task_id, update):
        configure(team, task_lease=1800)
        before = update("architect", owner="architect", status=Status.IN_PROGRESS)
        discussion.comment_task(caller=who("architect"), task_id=task_id, body="hm", now=NOW)
        after = services.get_task(caller=who("architect"), task_id=task_id)
        assert (after["version"], after["leaseDueAt"]) == (2, before["leaseDueAt"])

    def test_reach_the_owners_stream(self, who, task_id, update):
        update("architect", owner="architect")
        discussion.comment_task(caller=who("test-leader"), task_id=task_id, body="hm", now=NOW)
        event = Event.objects.order_by("-seq")[0]
        assert (event.action, event.for_agent_id) == ("task.commented", who("architect").agent.id)

    def test_are_held_back_by_permissions(self, team, who, task_id, update):
        permit(team, "architect", update_own_tasks=True, claim_task_type=["deployment"])
        said = {"caller": who("architect"), "task_id": task_id, "body": "hm"}
        assert code_of(discussion.comment_task, **said) is Code.NOT_YOURS
        update("architect", owner="architect")
        discussion.comment_task(**said, now=NOW)

    def test_of_observers_are_marked_as_notes(self, team, task_id):
        observer = Person(
            username="olga", organisation_id=team.id, groups=frozenset({"Observer"}), is_member=True
        )
        discussion.comment_task(caller=observer, task_id=task_id, body="hm", now=NOW)
        comment = Comment.objects.get()
        assert (comment.author, comment.body) == ("human:olga", "[HUMAN_NOTE] hm")

    def test_of_people_without_a_desk_are_refused(self, team, task_id):
        nobody = Person(username="nemo", organisation_id=team.id, is_member=True)
        said = {"caller": nobody, "task_id": task_id, "body": "hm"}
        assert code_of(discussion.comment_task, **said) is Code.NOT_YOURS

    def test_on_another_organisations_task_find_nothing(self, task_id):
        stranger = caller_of(dev_team("other"), "architect")
        said = {"caller": stranger, "task_id": task_id, "body": "hm"}
        assert code_of(discussion.comment_task, **said) is Code.NOT_FOUND


class TestApproval:
    @pytest.fixture(autouse=True)
    def _needed(self, team, task_id):
        configure(team, approval_task_types=["deployment"])

    @pytest.fixture
    def begun(self, update):
        return update("devops-leader", owner="devops-leader", status=Status.IN_PROGRESS)

    def approve(self, caller, task_id, **fields) -> dict:
        return discussion.approve_task(caller=caller, task_id=task_id, now=NOW, **fields)

    def test_comes_before_completion(self, who, task_id, update, begun):
        with pytest.raises(Denied) as denied:
            update("devops-leader", status=Status.COMPLETED)
        assert denied.value.deny.code is Code.APPROVAL_REQUIRED
        task = self.approve(who("team-lead"), task_id)
        assert (task["approvedBy"], task["version"]) == ("agent:team-lead", 3)
        assert update("devops-leader", status=Status.COMPLETED)["status"] == "completed"

    def test_may_be_taken_back(self, who, task_id, update, begun):
        self.approve(who("team-lead"), task_id)
        self.approve(who("team-lead"), task_id, approve=False, comment="not yet")
        assert Comment.objects.get().body == "not yet"
        with denied("APPROVAL_REQUIRED"):
            update("devops-leader", status=Status.COMPLETED)

    def test_is_for_the_work_as_it_was_seen(self, who, task_id, update, begun):
        for change in (
            {"description": "other"},
            {"metadata": {"a": 1}},
            {"active_form": "Doing another thing"},
            {"owner": ""},
        ):
            self.approve(who("team-lead"), task_id)
            assert "approvedBy" not in update("devops-leader", **change)

    def test_outlives_a_heartbeat_and_an_owner_that_the_lead_sets(
        self, who, task_id, update, begun
    ):
        self.approve(who("team-lead"), task_id)
        assert update("devops-leader")["approvedBy"]
        assert update("team-lead", owner="architect")["approvedBy"]

    def test_ends_with_a_claim_that_expires(self, team, who, task_id, update, begun):
        configure(team, task_lease=60)
        update("devops-leader")
        self.approve(who("team-lead"), task_id)
        assert release_overdue(now=NOW + timedelta(minutes=2)) == 1
        with pytest.raises(Denied) as denied:
            update("devops-leader", status=Status.COMPLETED)
        assert denied.value.deny.code is Code.APPROVAL_REQUIRED

    @pytest.mark.parametrize("owner", ["team-lead", ""])
    def test_completes_nothing_for_its_approver(self, who, task_id, update, begun, owner):
        self.approve(who("team-lead"), task_id)
        assert update("team-lead", owner=owner, force=True)["approvedBy"]
        with pytest.raises(Denied) as denied:
            update("team-lead", status=Status.COMPLETED)
        assert denied.value.deny.code is Code.APPROVAL_REQUIRED

    def test_completes_nothing_for_who_did_none_of_the_work(self, who, task_id, update, begun):
        self.approve(who("team-lead"), task_id)
        assert update("team-lead", owner="")["approvedBy"]
        with pytest.raises(Denied) as denied:
            update("architect", status=Status.COMPLETED)
        assert denied.value.deny.code is Code.APPROVAL_REQUIRED
        assert update("devops-leader", status=Status.COMPLETED)["status"] == "completed"

    @pytest.mark.parametrize(
        "change",
        [{"subject": "y"}, {"description": "y"}, {"metadata": {}}, {"active_form": "Y"}],
    )
    def test_ends_with_the_leads_own_edit_who_then_has_worked_on_it(
        self, who, task_id, update, begun, change
    ):
        self.approve(who("team-lead"), task_id)
        assert "approvedBy" not in update("team-lead", **change)
        given = {"caller": who("team-lead"), "task_id": task_id}
        assert code_of(discussion.approve_task, **given) is Code.NOT_YOURS

    def test_is_not_for_a_lead_who_started_it_without_owning_it(self, who, task_id, update):
        update("team-lead", status=Status.IN_PROGRESS, description="done")
        given = {"caller": who("team-lead"), "task_id": task_id}
        assert code_of(discussion.approve_task, **given) is Code.NOT_YOURS

    def test_is_still_for_a_lead_who_described_and_gave_the_job(self, who, task_id, update):
        update("team-lead", description="how", owner="devops-leader")
        update("devops-leader", status=Status.IN_PROGRESS)
        assert self.approve(who("team-lead"), task_id)["approvedBy"] == "agent:team-lead"

    def test_that_this_very_update_ends_completes_nothing(self, who, task_id, update, begun):
        for change in ({"description": "y"}, {"metadata": {"a": 1}}):
            self.approve(who("team-lead"), task_id)
            with pytest.raises(Denied) as denied:
                update("devops-leader", status=Status.COMPLETED, **change)
            assert denied.value.deny.code is Code.APPROVAL_REQUIRED
            assert Task.objects.get().status == "in_progress"

    def test_keeps_what_was_approved_once_it_is_completed(self, who, task_id, update, begun):
        self.approve(who("team-lead"), task_id)
        update("devops-leader", status=Status.COMPLETED)
        for by in ("devops-leader", "team-lead"):
            for change in ({"subject": "y"}, {"description": "y"}, {"metadata": {"a": 1}}):
                with pytest.raises(Denied) as denied:
                    update(by, **change)
                assert denied.value.deny.code is Code.INVALID_TRANSITION
                assert "task_comment" in denied.value.deny.next_action
        assert Task.objects.get().description == ""

    def test_waits_until_there_is_work(self, who, task_id, update):
        update("devops-leader", owner="devops-leader")
        with pytest.raises(Denied) as denied:
            self.approve(who("team-lead"), task_id)
        assert denied.value.deny.code is Code.INVALID_TRANSITION
        assert "in_progress" in denied.value.deny.next_action

    def test_given_before_there_was_work_ends_when_it_starts(self, task_id, update):
        Task.objects.update(approved_by="agent:team-lead", approved_at=NOW)
        assert "approvedBy" not in update("devops-leader", status=Status.IN_PROGRESS)

    def test_minds_the_version(self, who, task_id, begun):
        given = {"caller": who("team-lead"), "task_id": task_id, "expected_version": 1}
        assert code_of(discussion.approve_task, **given) is Code.VERSION_MISMATCH

    @pytest.mark.parametrize(("enforcement", "said"), [("warn", ["VERSION_MISMATCH"]), ("off", [])])
    def test_passes_a_stale_version_where_it_is_not_enforced(
        self, team, who, task_id, begun, enforcement, said
    ):
        configure(team, enforcement=enforcement)
        task = self.approve(who("team-lead"), task_id, expected_version=1)
        assert (task["approvedBy"], task["version"]) == ("agent:team-lead", 3)
        assert [e.code for e in Event.objects.filter(action="task.warned")] == said
        given = {"caller": who("architect"), "task_id": task_id, "expected_version": 1}
        assert code_of(discussion.approve_task, **given) is Code.LEVEL_DENIED

    def test_is_not_for_members(self, who, task_id, begun):
        given = {"caller": who("architect"), "task_id": task_id}
        assert code_of(discussion.approve_task, **given) is Code.LEVEL_DENIED

    def test_is_not_for_a_lead_who_once_worked_on_it(self, who, task_id, update):
        update("team-lead", owner="team-lead")
        update("team-lead", owner="devops-leader")
        given = {"caller": who("team-lead"), "task_id": task_id}
        assert code_of(discussion.approve_task, **given) is Code.NOT_YOURS
        assert Task.objects.get().approved_at is None


class TestTheShippedTeam:
    """The dev-team pack marks deployments, so that the approval can be tried as it comes."""

    def test_deploys_only_what_the_lead_approved(self, db):
        http = Http(load_company("dev-team").organisation)
        task_id = http.call(
            "team-lead", "task_create", subject="ship", taskType="deployment"
        ).result["id"]
        work = {"taskId": task_id, "owner": "devops-leader", "status": "in_progress"}
        http.call("devops-leader", "task_update", **work)
        done = {"taskId": task_id, "status": "completed"}
        refused = http.call("devops-leader", "task_update", **done)
        assert refused.code == "APPROVAL_REQUIRED"
        assert "team-lead" in refused.message
        assert http.call("devops-leader", "task_approve", taskId=task_id).status == 403
        http.call("team-lead", "task_approve", taskId=task_id)
        assert http.call("devops-leader", "task_update", **done).result["status"] == "completed"
