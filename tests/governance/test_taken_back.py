"""What people take back of keys and of tasks without an owner: kept once, and nothing else."""

import pytest
from django.utils import timezone

from documents.memory import services
from documents.models import Memory
from governance.models import Intervention
from orgchart.keys import revoke_key
from tasks import services as tasks
from tasks.by_people import move_by_person
from tasks.models import Task
from tasks.vocabulary import Status
from tests.company import load_company
from tests.decisions import denied

pytestmark = pytest.mark.django_db


@pytest.fixture
def company(db):
    return load_company("nexus")


class TestAKey:
    def revoke(self, company, prefix, reason="It was lost."):
        person = company.person("Board")
        revoke_key(prefix=prefix, caller=person, now=timezone.now(), reason=reason)

    def test_leaves_one_intervention_however_often_it_is_revoked(self, company):
        prefix = company.key("backend_worker")[:12]
        self.revoke(company, prefix)
        self.revoke(company, prefix)
        row = Intervention.objects.get()
        assert (row.action_taken, row.subject) == ("revoke_key", f"key:{prefix}")
        assert (row.operator_role, row.reason) == ("HUMAN_ADMIN", "It was lost.")

    def test_is_not_revoked_without_a_reason(self, company):
        key = company.key("backend_worker")
        with denied("INVALID_PARAMS"):
            self.revoke(company, key[:12], reason=" ")
        assert company.call("backend_worker", "current_time").status == 200
        assert not Intervention.objects.exists()


class TestATaskOfNobody:
    def move(self, company, status, reason=""):
        row = Task.objects.get()
        return move_by_person(
            person=company.person("Board"), task_id=str(row.number), status=status, reason=reason,
            expected_version=row.version, now=timezone.now(),
        )  # fmt: skip

    @pytest.fixture(autouse=True)
    def task(self, company):
        tasks.create_task(caller=company.person("Board"), subject="Build", now=timezone.now())

    def test_moves_on_without_a_reason_and_is_no_intervention(self, company):
        self.move(company, Status.IN_PROGRESS)
        assert Task.objects.get().status == Status.IN_PROGRESS
        assert not Intervention.objects.exists()

    def test_is_deleted_with_a_reason_only(self, company):
        with denied("INVALID_PARAMS"):
            self.move(company, Status.DELETED)
        assert Task.objects.get().status == Status.PENDING
        self.move(company, Status.DELETED, "Made twice.")
        row = Intervention.objects.get()
        assert (row.action_taken, row.trigger_condition) == (
            "move_task_deleted",
            "pending, no owner",
        )


class TestAMemory:
    @pytest.fixture
    def entry(self, company):
        text = {"scope": "agent", "text": "The release is on Friday."}
        assert company.call("backend_worker", "memory_append", **text).status == 200
        return Memory.objects.get()

    @pytest.mark.parametrize("action", ["withdraw_memory", "correct_memory"])
    def test_is_replaced_once_with_a_reason(self, company, entry, action):
        more = {"text": "It is on Monday."} if action == "correct_memory" else {}
        more |= {"memory_id": entry.id, "person": company.person("Board"), "now": timezone.now()}
        with denied("INVALID_PARAMS"):
            getattr(services, action)(reason=" ", **more)
        assert not Intervention.objects.exists()
        getattr(services, action)(reason="Wrong day.", **more)
        with denied("INVALID_TRANSITION"):
            getattr(services, action)(reason="Wrong day.", **more)
        row = Intervention.objects.get()
        assert (row.action_taken, row.subject) == (action, f"memory:{entry.id}")
        assert (row.operator, row.reason) == ("alice", "Wrong day.")
