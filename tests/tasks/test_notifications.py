"""Notices to many agents at once: who gets one, what is left of a clash, and what they cost."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from core.actions import Action
from ledger.models import Event
from mailroom import delivery
from mailroom.models import Mail
from orgchart.models import Agent, Role
from orgchart.policy_cache import current_policy
from tasks.notifications import notify_agents
from tasks.schedule import release_overdue
from tasks.store import read_task
from tests.tasks.world import NOW, add_agent, touch


@pytest.fixture
def row(team, http):
    task = http.call("architect", "task_create", subject="Build it").result["id"]
    return read_task(team.id, task)


@pytest.fixture
def notify(team, row):
    def notify(*handles):
        policy = current_policy(team.id)
        with transaction.atomic():
            notify_agents(
                policy,
                [policy.agents[handle] for handle in handles],
                row,
                action=Action.TASK_FREE,
                subject="It is free",
                why=lambda agent: f"For {agent.handle}.",
                now=NOW,
            )

    return notify


def inboxes():
    return sorted(Mail.objects.filter(from_agent="system").values_list("to_agent", "subject"))


def test_each_gets_a_mail_and_an_event_of_its_own(notify):
    notify("architect", "team-lead")
    about = "It is free: Build it"
    assert inboxes() == [("architect", about), ("team-lead", about)]
    events = Event.objects.filter(action=Action.TASK_FREE)
    told = {(event.for_agent_id, event.details["why"]) for event in events}
    ids = dict(Agent.objects.values_list("handle", "id"))
    assert told == {(ids[handle], f"For {handle}.") for handle in ("architect", "team-lead")}
    delivered = Event.objects.filter(action=Action.MAIL_DELIVERED).values_list("subject", flat=True)
    assert set(delivered) == {f"mail:{mail.id}" for mail in Mail.objects.all()}


def test_who_left_after_the_policy_was_read_gets_neither(team, row, notify):
    current_policy(team.id)
    Agent.objects.filter(organisation=team, handle="architect").update(active=False)
    notify("architect", "team-lead")
    assert [to for to, _ in inboxes()] == ["team-lead"]
    assert Event.objects.filter(action=Action.TASK_FREE).count() == 1


def test_a_mail_whose_id_is_taken_gets_another(notify, monkeypatch):
    ids = iter(["MAIL-1", "MAIL-1", "MAIL-1", "MAIL-2"])
    monkeypatch.setattr(delivery, "timed_id", lambda *_: next(ids))
    notify("architect", "team-lead")
    assert sorted(Mail.objects.values_list("id", flat=True)) == ["MAIL-1", "MAIL-2"]
    assert [to for to, _ in inboxes()] == ["architect", "team-lead"]


def test_nobody_to_notify_is_no_error(notify):
    notify()
    assert inboxes() == []


def test_many_cost_as_many_statements_as_one(team, notify):
    role = Role.objects.get(organisation=team, name="architect")
    for number in range(30):
        add_agent(team, f"architect-{number}", role)
    touch(team)
    handles = [f"architect-{number}" for number in range(30)]
    notify("architect")

    def statements(*handles):
        with CaptureQueriesContext(connection) as captured:
            notify(*handles)
        return len(captured)

    assert statements(*handles) == statements("architect")
    assert len(inboxes()) == 32


def test_the_end_of_one_task_is_one_mail_however_many_waited(team, http):
    """Spec: tasks 32. Else a few calls would fill the inbox of everyone."""
    made = [http.call("architect", "task_create", subject=f"t{n}").result["id"] for n in range(26)]
    blocker, waiting = made[0], made[1:]
    joined = http.call("architect", "task_update", taskId=blocker, addBlocks=waiting)
    assert joined.status == 200
    assert http.call("architect", "task_update", taskId=blocker, status="deleted").status == 200
    agents = Agent.objects.filter(organisation=team)
    assert inboxes() == sorted((agent.handle, "25 tasks can go on") for agent in agents)
    body = Mail.objects.filter(from_agent="system").first().body
    assert "Task #1 is deleted; #2, #3" in body
    assert "#21 and 5 more have no open blockers" in body
    assert "- #2: " in body
    assert "t21" not in body
    assert Event.objects.filter(action=Action.TASK_UNBLOCKED).count() == agents.count()


def test_a_freed_task_is_announced_to_all_who_could_claim_it(team, http):
    task = http.call("architect", "task_create", subject="x").result["id"]
    begun = {"owner": "architect", "status": "in_progress"}
    assert http.call("architect", "task_update", taskId=task, **begun).status == 200
    assert release_overdue(now=NOW + timedelta(days=36500)) == 1
    subjects = dict(inboxes())
    assert subjects.pop("architect") == "Your claim on task #1 expired: x"
    others = Agent.objects.filter(organisation=team).exclude(handle="architect")
    assert subjects == {agent.handle: "Task #1 is free again: x" for agent in others}


def test_a_freed_task_counts_among_the_bytes_of_who_did_not_keep_it(team, http, settings):
    """One claim after the other would else fill the disk, 200 mails at a time."""
    task = http.call("architect", "task_create", subject="x").result["id"]
    begun = {"owner": "architect", "status": "in_progress"}
    assert http.call("architect", "task_update", taskId=task, **begun).status == 200
    settings.NEXUS_BYTES_PER_MINUTE = 10_000
    assert release_overdue(now=NOW + timedelta(days=36500)) == 1
    assert dict(inboxes()) == {"architect": "Your claim on task #1 expired: x"}
    assert (
        http.call("backend-leader", "task_update", taskId=task, owner="backend-leader").status
        == 200
    )


def test_who_was_deactivated_is_not_announced_with_the_task(team, http):
    task = http.call("architect", "task_create", subject="x").result["id"]
    begun = {"owner": "architect", "status": "in_progress"}
    assert http.call("architect", "task_update", taskId=task, **begun).status == 200
    Agent.objects.filter(organisation=team, handle="architect").update(active=False)
    touch(team)
    assert release_overdue(now=NOW) == 1
    told = Mail.objects.filter(subject="Task #1 is free again: x")
    assert told.count() == Agent.objects.filter(organisation=team, active=True).count()
    assert not told.filter(body__contains="architect").exists()
    events = list(Event.objects.filter(action="task.free").values_list("details", flat=True))
    assert len(events) == told.count()
    assert "architect" not in str(events)
