"""Who may approve a task, and when an approval ends; pure decisions."""

from __future__ import annotations

from core.decision import Code, Decision, deny
from orgchart.policy.compiled import Policy
from tasks.rules.actors import TaskActor, lead_name
from tasks.rules.ownership import YES, changes_owner, has_ended, leads_task, owned_by_other
from tasks.rules.values import TaskRow, TaskUpdate
from tasks.vocabulary import Status

MAX_NAMED_LEADS = 5
"""Leads that a refusal names at most."""


def can_approve(actor: TaskActor, task: TaskRow) -> Decision:
    """A task lead who did none of the work approves it (Spec: tasks 45)."""
    rule = "approval (spec: tasks 44)"
    if not actor.is_lead:
        return deny(
            Code.LEVEL_DENIED,
            f"Only {lead_name(actor.policy)} can approve tasks",
            "say what you think of it with task_comment",
            rule=rule,
        )
    if actor.agent is not None and actor.agent.id in task.workers:
        return deny(
            Code.NOT_YOURS,
            f"{actor.handle} worked on task #{task.number} (owned, started or changed it) and "
            "cannot approve it",
            approval_step(actor.policy, task),
            rule=rule,
        )
    if not leads_task(actor, task):
        return owned_by_other(task, "approve tasks of your own workers")
    match task.status:
        case Status.IN_PROGRESS:
            return YES
        case Status.PENDING:
            return deny(
                Code.INVALID_TRANSITION,
                f"Task #{task.number} is pending: there is no work to approve yet.",
                "approve it once its status is in_progress and the work is done",
                rule=rule,
                allowed=[],
            )
        case Status.COMPLETED | Status.DELETED:
            return has_ended(task, rule)


def approvers(policy: Policy, task: TaskRow) -> tuple[str, ...]:
    """Handles of the active task leads who may approve this task, sorted."""
    leads = (TaskActor(policy, one) for one in policy.agents.values() if one.active)
    return tuple(
        sorted(
            lead.handle
            for lead in leads
            if lead.agent is not None
            and lead.is_lead
            and lead.agent.id not in task.workers
            and leads_task(lead, task)
        )
    )


def approval_step(policy: Policy, task: TaskRow) -> str:
    """How to get an approval: from a lead who did none of the work, or else from the Board."""
    able = approvers(policy, task)
    if able:
        return f"ask {' or '.join(able[:MAX_NAMED_LEADS])} to approve #{task.number}"
    return (
        "no task lead is left who may approve it: say with task_comment that it is ready, and a "
        "person of the Board approves it in the admin"
    )


def keeps_approval(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> bool:
    """Whether an approval remains after an update (Spec: tasks 44).

    It ends with the start, with a change of content by anyone, and with a change of owner by
    anyone but a lead.
    """
    if update.status is Status.IN_PROGRESS or update.reworks:
        return False
    return not changes_owner(actor, task, update) or leads_task(actor, task)
