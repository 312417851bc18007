"""Which updates of a task are allowed, and for which actors, as pure functions (Spec: tasks 13)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.decision import Allow, Code, Decision, Deny, deny, listed
from orgchart.policy.compiled import Agent
from orgchart.policy.parties import Board
from orgchart.policy.readership import RULE
from tasks.rules.actors import TaskActor, enforcement_of, lead_name
from tasks.rules.approval import approval_step, keeps_approval, may_approve
from tasks.rules.asking import active_leads
from tasks.rules.ownership import (
    TAKE_ANOTHER,
    YES,
    already_ended,
    can_change,
    can_comment,
    can_name_owner,
    can_owner_act,
    can_owner_take,
    can_set_owner,
    changes_owner,
    is_out_of_reach,
    leads_task,
    may_force,
    new_owner,
)
from tasks.rules.texts import unreadable_texts
from tasks.rules.values import TaskRow, TaskUpdate
from tasks.rules.visibility import readership_of
from tasks.vocabulary import LEAD_ONLY, TRANSITIONS, Enforcement, Status

TRANSITION = "state transitions (spec: tasks 23)"
"""The rule that refuses a transition; its refusals are counted (Spec: tasks 48)."""

ENDED = "what has ended stays (spec: tasks 24)"
SOFT = frozenset({Code.VERSION_MISMATCH, Code.ROLE_MISMATCH})
"""The refusals that `enforcement` can turn into warnings (Spec: tasks 36)."""


@dataclass(frozen=True, slots=True)
class UpdateDecision:
    """The decision, and under `warn` what `enforce` would have refused."""

    decision: Decision
    warnings: tuple[Deny, ...] = ()


Check = Callable[[TaskActor, TaskRow, TaskUpdate], Decision]


def can_update(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> UpdateDecision:
    """Decide one update by the questions of CHECKS, in their order; the first refusal counts.

    The organisation's `enforcement` makes warnings of some refusals, or ignores them.
    """
    warnings: list[Deny] = []
    for check in CHECKS:
        found = check(actor, task, update)
        if isinstance(found, Allow):
            continue
        effect = effect_of(found, actor)
        if effect is Enforcement.ENFORCE:
            return UpdateDecision(found, tuple(warnings))
        if effect is Enforcement.WARN:
            warnings.append(found)
    return UpdateDecision(YES, tuple(warnings))


def effect_of(found: Deny, actor: TaskActor) -> Enforcement:
    """What `enforcement` makes of a refusal: it is one, it is a warning, or it is nothing.

    A person's older form is refused whatever it says (Spec: tasks 36, people 8).
    """
    is_older_form = found.code is Code.VERSION_MISMATCH and isinstance(actor.party, Board)
    if found.code not in SOFT or is_older_form:
        return Enforcement.ENFORCE
    return enforcement_of(actor.policy)


def can_apply_to_version(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """The task is still at the version that the caller names, if any (Spec: tasks 14)."""
    expected = update.expected_version
    if expected is None or expected == task.version:
        return YES
    return deny(
        Code.VERSION_MISMATCH,
        f"Task version mismatch. Expected: {expected}, Current: {task.version}. "
        "Another agent has modified this task. Please refresh and retry.",
        f'read it again with task_get {{"taskId": "{task.number}"}}, then decide again',
        rule="optimistic lock (spec: tasks 14)",
        expected=expected,
        current=task.version,
    )


def can_force(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """Only task leads force, each for its own people and their tasks (Spec: tasks 21, 22)."""
    rule = "forceAssign (spec: tasks 21)"
    if not update.force:
        return YES
    if not actor.is_lead:
        return deny(
            Code.FORCE_ASSIGN_DENIED,
            f"Only {lead_name(actor.policy)} can use forceAssign",
            _without_force(actor, task),
            rule=rule,
        )
    target = new_owner(actor, update)
    if target is not None and not actor.may_force_for(target):
        return deny(
            Code.FORCE_ASSIGN_DENIED,
            f"{actor.handle} can use forceAssign for its own workers only, not for {target.handle}",
            "assign one of your own workers",
            rule=rule,
        )
    if not may_force(actor, task):
        return deny(
            Code.FORCE_ASSIGN_DENIED,
            f"Task #{task.number} requires {task.required_role}, which neither {actor.handle} nor "
            "one of its workers is: it is the work of others",
            "assign a task for one of your own workers",
            rule=rule,
        )
    return YES


def _without_force(actor: TaskActor, task: TaskRow) -> str:
    party = actor.party
    superior = "" if isinstance(party, Board) else party.superior
    if superior not in {lead.handle for lead in active_leads(actor, task)}:
        return "leave forceAssign out"
    return f"leave forceAssign out, or ask {superior} to assign the task"


def can_move_to(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """The machine allows the transition to this actor (Spec: tasks 23)."""
    after = update.status
    if after is None:
        return YES
    allowed = TRANSITIONS[task.status]
    lead_only = (task.status, after) in LEAD_ONLY
    if after in allowed and not (lead_only and not leads_task(actor, task)):
        return YES
    names = ", ".join(f'"{status}"' for status in allowed)
    only = any((task.status, status) in LEAD_ONLY for status in allowed)
    actors = f" ({lead_name(actor.policy)} only)" if only else ""
    return deny(
        Code.INVALID_TRANSITION,
        f'Invalid status transition: "{task.status}" -> "{after}". '
        f'Allowed transitions from "{task.status}": [{names}]{actors}.',
        _next_state(actor, task, after),
        rule=TRANSITION,
        allowed=[str(status) for status in allowed],
    )


def _next_state(actor: TaskActor, task: TaskRow, after: Status) -> str:
    is_other = is_out_of_reach(actor, task)
    if after is task.status and not is_other:
        return f"leave status out: the task is {after} already"
    if not TRANSITIONS[task.status] or task.status is Status.COMPLETED:
        return "create a new task with task_create"
    if is_other:
        return TAKE_ANOTHER
    return f"set status to one of: {', '.join(TRANSITIONS[task.status])}"


def can_owner_read(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """The owner may read the subject, as it is after the update (Spec: tasks 35)."""
    if not changes_owner(actor, task, update) and update.subject is None:
        return YES
    owner = new_owner(actor, update) if update.owner is not None else task.owner_in(actor.policy)
    writer_id = task.subject_writer if update.subject is None else actor.writer
    if owner is None or readership_of(actor.policy, owner).covers(writer_id):
        return YES
    writer = actor.policy.by_id.get(writer_id)
    return deny(
        Code.CONTACT_DENIED,
        f"{owner.handle} cannot read task #{task.number}: its subject is by "
        f"{writer.handle if writer else 'another agent'}, which may not contact {owner.handle}",
        "write the subject, and what else the owner has to know, in your own words with "
        "task_update; then assign it"
        if update.subject is None
        else "leave the subject as it is",
        rule=RULE,
    )


def can_end_now(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """A task is not completed for an owner that this very update removes or names.

    An agent may claim and complete at once what it did itself (Spec: tasks 58).
    """
    if update.status is not Status.COMPLETED or not changes_owner(actor, task, update):
        return YES
    new = new_owner(actor, update)
    if new is not None and actor.is_agent(new.id):
        return YES
    return deny(
        Code.INVALID_PARAMS,
        "owner: a task is completed for the agent that did the work, so the update that completes "
        "it cannot release it or give it to another agent",
        "leave owner out, or change the owner first and let it complete the task",
        rule="who completed a task (spec: tasks 58)",
        owner="cannot change with status completed",
    )


def can_still_change(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """A deleted task does not change; a completed one keeps its owner and approved content."""
    if task.status is Status.DELETED:
        return already_ended(task, ENDED)
    if task.status is not Status.COMPLETED:
        return YES
    if changes_owner(actor, task, update):
        return already_ended(task, ENDED)
    if task.approved_at is not None and update.reworks:
        return deny(
            Code.INVALID_TRANSITION,
            f"Task #{task.number} is completed as it was approved: its content stays.",
            "write it with task_comment, or create a new task with task_create",
            rule=ENDED,
            allowed=[],
        )
    return YES


def can_replace_texts(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """No agent writes over a text that it cannot read (Spec: tasks 56)."""
    hidden = unreadable_texts(task, update, actor.readership)
    if not hidden:
        return YES
    comments = isinstance(can_comment(actor, task), Allow)
    return deny(
        Code.CONTACT_DENIED,
        f"{', '.join(hidden)[:200]}: another agent wrote it, and {actor.handle} cannot read it",
        "leave it as it is; write yours with task_comment" if comments else "leave it as it is",
        rule=RULE,
    )


def can_go_on(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """A task with an unfinished blocker neither starts nor completes (Spec: tasks 29)."""
    if update.status not in (Status.IN_PROGRESS, Status.COMPLETED):
        return YES
    seen = {*actor.readership.readable(task, task.waits_for), *update.new_blockers}
    blockers = sorted(seen)
    if not blockers and not task.waits_for:
        return YES
    names = listed([f"#{number}" for number in blockers]) or "of agents that you do not work with"
    return deny(
        Code.TASK_BLOCKED,
        f"Task #{task.number} is blocked by unfinished tasks: {names}.",
        "finish these first, or take another with task_recommend; you are notified when it is free",
        rule="dependencies (spec: tasks 29)",
        blockedBy=[str(number) for number in blockers],
    )


def can_complete(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """A task of an approval type completes only with an approval that this update keeps.

    It is completed for an agent that did the work, and that is not its approver (Spec: tasks 45).
    """
    if update.status is not Status.COMPLETED:
        return YES
    if task.task_type not in actor.policy.settings["approval_task_types"]:
        return YES
    if task.approved_at is not None and keeps_approval(actor, task, update):
        worker = new_owner(actor, update) or task.owner_in(actor.policy) or actor.party
        if isinstance(worker, Board):
            return YES
        is_approver = task.approved_by == f"agent:{worker.handle}"
        if worker.id in {*task.workers, task.owner_id} and not is_approver:
            return YES
    approves = isinstance(actor.party, Agent) and may_approve(actor, task)
    step = f"call task_approve on #{task.number}" if approves else approval_step(actor, task)
    return deny(
        Code.APPROVAL_REQUIRED,
        f'Tasks of type "{task.task_type}" need the approval of {lead_name(actor.policy)} '
        "before they are completed.",
        f"{step}; then set status alone to completed",
        rule="approval (spec: tasks 44)",
    )


CHECKS: tuple[Check, ...] = (
    can_apply_to_version,
    can_name_owner,
    can_force,
    can_move_to,
    can_still_change,
    can_end_now,
    can_owner_take,
    can_set_owner,
    can_owner_act,
    can_owner_read,
    can_change,
    can_replace_texts,
    can_go_on,
    can_complete,
)
