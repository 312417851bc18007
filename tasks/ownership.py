"""Whose task it is: role match, owners, who may change, approve and discuss; pure decisions."""

from __future__ import annotations

from core.decision import Allow, Code, Decision, Deny, deny
from orgchart.policy.compiled import Agent, Policy
from tasks.facts import Change, Facts
from tasks.parties import Hand, is_for, lead_name, permissions_of, roles_taking
from tasks.vocabulary import Status

YES = Allow("tasks (seed 001 §5.2)")
ASKED = 5
"""Leads that a refusal names at most."""


def can_take(policy: Policy, agent: Agent, required_role: str, task_type: str) -> Decision:
    """Whether a task is for this agent: its required role, and the types its role claims.

    The narrower of the two holds (seed 001 §5.2.2, §10.1).
    """
    if required_role and not is_for(required_role, agent):
        return _mismatch(
            f'Task requires "{required_role}"',
            agent,
            f'Use TaskList({{ roleFilter: "{agent.role}" }}) to find tasks for your role.',
            f'list tasks for your role with task_list {{"roleFilter": "{agent.role}"}}',
        )
    claims = permissions_of(policy, agent.role).claims
    if claims is not None and task_type and task_type not in claims:
        takers = " or ".join(f'"{role}"' for role in roles_taking(policy, task_type))
        return _mismatch(
            f'Tasks of type "{task_type}" require {takers or "another role"}',
            agent,
            "Use TaskRecommend() to find tasks of your types.",
            "take one of those that task_recommend finds for you",
        )
    return YES


def _mismatch(requirement: str, agent: Agent, instead: str, next_action: str) -> Deny:
    return deny(
        Code.ROLE_MISMATCH,
        f'Role mismatch. {requirement}, but you are "{agent.role}". {instead}',
        next_action,
        rule="role match (seed 001 §5.2.2)",
    )


def fits_owner(hand: Hand, task: Facts, change: Change) -> Decision:
    """A new owner's role matches, unless a lead forces it (seed 001 §5.2.2)."""
    new = change.new_owner
    if not change.sets_owner or new is None or new == task.owner or (change.force and hand.is_lead):
        return YES
    found = can_take(hand.policy, new, task.required_role, task.task_type)
    if isinstance(found, Allow) or _is(hand, new):
        return found
    return deny(
        found.code,
        found.message.split(". Use ")[0].replace("but you are", "but the new owner's role is")
        + ".",
        f"choose an owner that fits, or, as {lead_name(hand.policy)}, repeat with forceAssign",
        rule=found.rule,
    )


def may_set_owner(hand: Hand, task: Facts, change: Change) -> Decision:
    """Agents claim for themselves and release their own; leads assign their people."""
    if not change.sets_owner or change.new_owner == task.owner:
        return YES
    new = change.new_owner
    held = task.owner is not None and not _is(hand, task.owner) and not hand.leads(task.owner)
    if held:
        return _theirs(task, "wait until it is released, or take another with task_recommend")
    if new is None or _is(hand, new) or hand.leads(new) or _manages(hand, change):
        return YES
    return deny(
        Code.NOT_YOURS,
        f"{hand.handle} may set owner to itself or to nobody, not to {new.handle}",
        f'claim it with owner "{hand.handle}", or ask {lead_name(hand.policy)} to assign it',
        rule="who sets an owner",
    )


def _manages(hand: Hand, change: Change) -> bool:
    new = change.new_owner
    return change.assigns and new is not None and hand.handle in new.managers


def may_change(hand: Hand, task: Facts, change: Change) -> Decision:
    """Owner, task lead, or where nobody owns it whoever could take it or created it.

    Not owning it first is no way around `update_own_tasks`; keeping a claim alive needs none.
    """
    if change.curates:
        return _in_backlog(task)
    owner_alone = change.sets_owner and change.status is None and not change.edits
    if owner_alone or leads_task(hand, task):  # may_set_owner has decided on the owner
        return YES
    mine = task.owner is not None and _is(hand, task.owner)
    holder = change.new_owner if change.sets_owner else task.owner
    if mine or (holder is not None and _is(hand, holder)):
        return YES if mine and change.renews else _own(hand)
    if holder is not None or hand.agent is None:
        return _theirs(task, "comment on it with task_comment, or ask its owner")
    return _open(hand, hand.agent, task, change)


def _open(hand: Hand, agent: Agent, task: Facts, change: Change) -> Decision:
    moves = change.status in (Status.IN_PROGRESS, Status.COMPLETED)
    if task.creator == hand.handle and not moves:
        return YES
    own = _own(hand)
    if isinstance(own, Deny):
        return own
    return can_take(hand.policy, agent, task.required_role, task.task_type)


def _in_backlog(task: Facts) -> Decision:
    if task.owner is None and task.status is Status.PENDING:
        return YES
    return deny(
        Code.NOT_YOURS,
        f"Task #{task.id} is not in the backlog: it is {task.status}"
        + (f" and owned by {task.owner.handle}." if task.owner else "."),
        "list the backlog with manage_backlog; ask its owner or a task lead to change this one",
        rule="the backlog is what nobody owns and what has not begun",
    )


def _own(hand: Hand) -> Decision:
    if hand.permissions.update_own:
        return YES
    return deny(
        Code.NOT_YOURS,
        f'{hand.role} lacks the permission "update_own_tasks"',
        f"ask {lead_name(hand.policy)} to make the change",
        rule="permissions (seed 001 §10.1)",
    )


def _is(hand: Hand, agent: Agent) -> bool:
    return hand.agent is not None and hand.agent.id == agent.id


def leads_task(hand: Hand, task: Facts) -> bool:
    """Whether the hand is a task lead over this task."""
    if task.owner is not None:
        return hand.leads(task.owner)
    return hand.leads_open(task.required_role)


def _theirs(task: Facts, next_action: str) -> Deny:
    owner = task.owner.handle if task.owner else "somebody else"
    return deny(
        Code.NOT_YOURS,
        f"Task #{task.id} is owned by {owner}.",
        next_action,
        rule="a task is changed by its owner and by task leads",
    )


def can_approve(hand: Hand, task: Facts) -> Decision:
    """A task lead approves, never one who did the work (seed 001 §10.2)."""
    rule = "approval (seed 001 §10.2)"
    if not hand.is_lead:
        return deny(
            Code.LEVEL_DENIED,
            f"Only {lead_name(hand.policy)} can approve tasks",
            "say what you think of it with task_comment",
            rule=rule,
        )
    if hand.agent is not None and hand.agent.id in task.workers:
        return deny(
            Code.NOT_YOURS,
            f"{hand.handle} worked on task #{task.id} (owned, started or changed it) and cannot "
            "approve it",
            approval_step(hand.policy, task),
            rule=rule,
        )
    if not leads_task(hand, task):
        return _theirs(task, "approve tasks of your own workers")
    match task.status:
        case Status.IN_PROGRESS:
            return YES
        case Status.PENDING:
            return deny(
                Code.INVALID_TRANSITION,
                f"Task #{task.id} is pending: nobody has begun the work that would be approved.",
                "approve it once whoever does it has set status to in_progress and done the work",
                rule=rule,
                allowed=[],
            )
        case Status.COMPLETED | Status.DELETED:
            return ended(task, rule)


def approvers(policy: Policy, task: Facts) -> tuple[str, ...]:
    """Handles of the active task leads who may approve this task, sorted."""
    leads = (Hand(policy, one) for one in policy.agents.values() if one.active)
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


def approval_step(policy: Policy, task: Facts) -> str:
    """How an approval is got: from a lead who did none of the work, or else from the Board."""
    able = approvers(policy, task)
    if able:
        return f"ask {' or '.join(able[:ASKED])} to call task_approve on #{task.id}"
    return (
        "no task lead is left who may approve it: say with task_comment that it is ready, and a "
        "person of the Board approves it in the admin"
    )


def keeps_approval(hand: Hand, task: Facts, change: Change) -> bool:
    """Whether an approval stands after an update (seed 001 §10.2).

    It ends with the start, with a change of content by anybody, and with a change of owner by
    anybody but a lead.
    """
    takes = change.sets_owner and change.new_owner != task.owner
    started = change.status is Status.IN_PROGRESS
    redone = started or change.reworks or (takes and not leads_task(hand, task))
    return task.approved and not redone


def can_comment(hand: Hand, task: Facts) -> Decision:
    """Everybody discusses every task, unless its role's permissions leave that out."""
    if hand.permissions.comment_all or hand.agent is None:
        return YES
    mine = hand.agent.id in task.workers or task.creator == hand.handle
    if mine or (task.owner is not None and _is(hand, task.owner)):
        return YES
    return deny(
        Code.NOT_YOURS,
        f'{hand.role} lacks the permission "comment_on_all_tasks"',
        "comment on tasks that you own, worked on or created",
        rule="permissions (seed 001 §10.1)",
    )


def ended(task: Facts, rule: str) -> Deny:
    """The refusal of changes that come too late."""
    what = "nothing of it changes any more" if task.status is Status.DELETED else "its owner stays"
    return deny(
        Code.INVALID_TRANSITION,
        f'The task is "{task.status}": {what}.',
        "create a new task with task_create",
        rule=rule,
        allowed=[],
    )
