"""Open tasks whose writer was replaced: the agent above it learns of them (Spec: tasks 63)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from core.actors import Actor
from core.decision import listed
from mailroom.delivery import send_system_mail
from orgchart.policy.vocabulary import Visibility
from orgchart.policy_cache import current_policy
from tasks.models import Task
from tasks.vocabulary import UNFINISHED

LISTED = 50


def open_tasks_by(writer_id: int, organisation_id: int) -> tuple[str, ...]:
    """The ids of the unfinished tasks without owner whose subject an agent wrote, by number."""
    rows = Task.objects.filter(
        organisation_id=organisation_id,
        status__in=sorted(UNFINISHED),
        owner=None,
        subject_writer=writer_id,
    )
    return tuple(map(str, sorted(rows.values_list("number", flat=True))))


def notify_superiors(agent_ids: Sequence[int], caller: Actor, now: datetime) -> None:
    """Tell who is above an agent that got another role which open tasks that agent wrote.

    Runs in the transaction of the change. Where every agent reads every task nothing is told.
    """
    policy = current_policy(caller.organisation_id)
    if policy.settings["task_visibility"] == Visibility.ALL:
        return
    for writer in (policy.by_id[agent_id] for agent_id in agent_ids):
        superior = policy.agents.get(writer.superior)
        tasks = open_tasks_by(writer.id, policy.organisation_id) if superior else ()
        if superior is None or not tasks:
            continue
        named = listed([f"#{task}" for task in tasks], most=LISTED)
        send_system_mail(
            organisation_id=policy.organisation_id,
            recipient=superior,
            subject=f"{writer.handle} has another role and leaves open tasks that it wrote",
            body=f"Tasks without owner whose subject {writer.handle} wrote: {named}.\n\n"
            "An agent to which it may not write any more does not see them. Write the subject, and "
            "what else is to be known, in your own words with task_update; delete what is not "
            "needed any more.",
            quotes=[],
            now=now,
        )
