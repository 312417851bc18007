"""Who may approve a task, and when an approval ends; pure decisions."""

from __future__ import annotations

from core.decision import Code, Decision, deny
from tasks.rules.actors import TaskActor, lead_name
from tasks.rules.asking import active_leads, leads_to_ask
from tasks.rules.ownership import YES, already_ended, changes_owner, leads_task, owned_by_other
from tasks.rules.values import TaskRow, TaskUpdate
from tasks.vocabulary import Status


def can_approve(actor: TaskActor, task: TaskRow) -> Decision:
    """A task lead who did none of the work approves it (Spec: tasks 45)."""
    rule = "approval (spec: tasks 44)"
    if not actor.is_lead:
        return deny(
            Code.LEVEL_DENIED,
            f"Only {lead_name(actor.policy)} can approve tasks",
            "write your opinion with task_comment",
            rule=rule,
        )
    if actor.party.id in task.workers:
        return deny(
            Code.NOT_YOURS,
            f"{actor.handle} worked on task #{task.number} (owned, started or changed it) and "
            "cannot approve it",
            approval_step(actor, task),
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
            return already_ended(task, rule)


def may_approve(lead: TaskActor, task: TaskRow) -> bool:
    """Whether a task lead leads this task and did none of its work."""
    return lead.is_lead and lead.party.id not in task.workers and leads_task(lead, task)


def approval_step(actor: TaskActor, task: TaskRow) -> str:
    """How to get an approval: from a lead who did none of the work, or else from the Board."""
    names = leads_to_ask(actor, task, lambda lead: may_approve(lead, task))
    if names:
        return f"ask {names} to approve #{task.number}"
    if any(may_approve(lead, task) for lead in active_leads(actor, task)):
        return "say with task_comment that it is ready for its approval by a task lead"
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
