"""An agent that is activated again: nothing that was opened for it before works."""

import shutil
import threading
import time
from collections import Counter
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.decision import Code, Denied
from governance.staff.deactivation import deactivate_by_person
from ledger.models import Event
from mailroom.models import Mail
from orgchart.models import Agent
from orgchart.packs import load_pack
from orgchart.policy.vocabulary import ToolMode
from orgchart.staffing import activate_agent
from tasks import schedule
from tasks.models import Task
from tasks.schedule import release_overdue
from tests.company import PACKS, load_company
from tests.concurrency import at_once, is_waiting_for_a_lock
from tests.patience import PATIENCE
from toolbox import modes
from toolbox.models import ModeGrant
from toolbox.modes import open_mode

pytestmark = pytest.mark.django_db

AGENT = "research_worker"


@pytest.fixture
def company(db):
    return load_company("nexus")


def open_coding(company, session_id=None):
    open_mode(
        session_id=session_id or company.caller(AGENT).session.id, mode=ToolMode.CODING,
        caller=company.person("Board"), now=timezone.now(), reason="To repair it.",
    )  # fmt: skip


def deactivate(company):
    deactivate_by_person(
        person=company.person("HR"), agent=AGENT, reason="Misused it.",
        expected_version=company.policy.version, now=timezone.now(),
    )  # fmt: skip


def deactivate_by_pack(company, folder):
    shutil.copytree(PACKS / "nexus", folder)
    agent = folder / "agents" / f"{AGENT}.yaml"
    agent.write_text(f"{agent.read_text(encoding='utf-8')}active: false\n", encoding="utf-8")
    load_pack(folder, caller=company.system, now=timezone.now())


def activate(company):
    activate_agent(
        handle=AGENT, caller=company.person("Board"), now=timezone.now(), reason="Is back."
    )


class TestActivatedAgain:
    def test_is_in_no_mode_that_a_person_opened_before(self, company):
        open_coding(company)
        assert company.caller(AGENT).session.mode is ToolMode.CODING
        deactivate(company)
        activate(company)
        del company.keys[AGENT]
        assert company.caller(AGENT).session.mode is ToolMode.CHAT_SAFE
        grant = ModeGrant.objects.get()
        assert (grant.closed_at is not None, grant.closed_by) == (True, "human:alice")

    def test_is_in_none_after_a_pack_deactivated_it_either(self, company, tmp_path):
        open_coding(company)
        deactivate_by_pack(company, tmp_path / "nexus")
        load_pack(PACKS / "nexus", caller=company.system, now=timezone.now())
        assert company.caller(AGENT).session.mode is ToolMode.CHAT_SAFE

    def test_is_in_none_that_a_person_would_open_meanwhile(self, company):
        session_id = company.caller(AGENT).session.id
        deactivate(company)
        with pytest.raises(Denied) as refused:
            open_coding(company, session_id)
        assert refused.value.deny.code is Code.AGENT_INACTIVE
        assert not ModeGrant.objects.exists()

    def test_needs_a_new_key_after_a_pack_deactivated_it_too(self, company, tmp_path):
        assert company.call(AGENT, "current_time").status == 200
        deactivate_by_pack(company, tmp_path / "nexus")
        assert company.call(AGENT, "current_time").status == 401
        activate(company)
        assert company.call(AGENT, "current_time").status == 401

    def test_owns_no_task_where_no_job_ran_meanwhile(self, company):
        """Its superior, and the ledger, were told that the task is free for others."""
        task = company.call(AGENT, "task_create", subject="x").result["id"]
        company.call(AGENT, "task_update", taskId=task, owner=AGENT, status="in_progress")
        assert Task.objects.get().owner.handle == AGENT
        deactivate(company)
        activate(company)
        assert (Task.objects.get().owner, Task.objects.get().status) == (None, "in_progress")
        assert Event.objects.get(action="task.lease_expired").for_agent_id is not None
        assert release_overdue(now=timezone.now()) == 0

    def test_waits_until_the_scheduler_freed_more_tasks_than_a_page_could(
        self, company, monkeypatch
    ):
        monkeypatch.setattr(schedule, "MOST_FREED", 1)
        for _ in range(2):
            task = company.call(AGENT, "task_create", subject="x").result["id"]
            company.call(AGENT, "task_update", taskId=task, owner=AGENT, status="in_progress")
        deactivate(company)
        with pytest.raises(Denied) as refused:
            activate(company)
        assert refused.value.deny.code is Code.INVALID_TRANSITION
        assert not Agent.objects.get(handle=AGENT).active
        assert release_overdue(now=timezone.now()) == 2
        activate(company)
        assert Agent.objects.get(handle=AGENT).active

    def test_left_many_tasks_that_the_scheduler_frees_some_at_once(self, company, monkeypatch):
        """Twice two here, and the last two one by one."""
        monkeypatch.setattr(schedule, "MOST_TOLD", 2)
        for _ in range(6):
            task = company.call(AGENT, "task_create", subject="x").result["id"]
            company.call(AGENT, "task_update", taskId=task, owner=AGENT, status="in_progress")
        deactivate(company)
        assert release_overdue(now=timezone.now()) == 6
        assert not Task.objects.exclude(owner=None).exists()
        freed = Event.objects.filter(action="task.lease_expired")
        assert [event.details["version"] for event in freed] == [3] * 6
        told = Mail.objects.filter(subject="2 tasks are free again")
        assert set(Counter(told.values_list("recipient")).values()) == {2}

    def test_left_any_number_of_tasks_and_each_agent_hears_of_them_once(self, company):
        """The change of the policy waits until all are free."""
        statements = {}
        for count in (2, 20):
            for _ in range(count):
                task = company.call(AGENT, "task_create", subject="x").result["id"]
                company.call(AGENT, "task_update", taskId=task, owner=AGENT, status="in_progress")
            deactivate(company)
            with CaptureQueriesContext(connection) as seen:
                activate(company)
            del company.keys[AGENT]
            statements[count] = len([one for one in seen if "ledger_event" not in one["sql"]])
            told = Mail.objects.filter(subject=f"{count} tasks are free again")
            assert set(Counter(told.values_list("recipient")).values()) == {1}
            assert not Task.objects.exclude(owner=None).exists()
            Task.objects.all().delete()
        freed = Event.objects.filter(action="task.lease_expired")
        assert [event.details["version"] for event in freed] == [3] * 22
        assert statements[20] == statements[2]


class TestDeactivatedAtTheSameMoment:
    @pytest.mark.django_db(transaction=True)
    def test_keeps_no_mode_that_a_person_opens(self, company, monkeypatch):
        """The mode is opened, and not yet committed, when the deactivation closes modes."""
        session_id = company.caller(AGENT).session.id
        is_open = threading.Event()

        def late(action, **fields):
            is_open.set()
            for _ in range(100):
                if is_waiting_for_a_lock():
                    break
                time.sleep(0.02)
            return record(action, **fields)

        record = modes.record
        monkeypatch.setattr(modes, "record", late)

        def leave():
            is_open.wait(PATIENCE)
            deactivate(company)

        ends = at_once([partial(open_coding, company, session_id), leave])
        assert ends == [None, None]
        assert not ModeGrant.objects.filter(closed_at=None).exists()
