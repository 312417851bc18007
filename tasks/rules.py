"""What may happen to a task, by whom: seed 001 §5.2 as pure functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.decision import Allow, Code, Decision, Deny, deny
from tasks.facts import Change, Facts
from tasks.ownership import (
    YES,
    approval_step,
    approvers,
    ended,
    fits_owner,
    keeps_approval,
    leads_task,
    may_change,
    may_set_owner,
)
from tasks.parties import Hand, lead_name
from tasks.vocabulary import LEAD_ONLY, TRANSITIONS, Enforcement, Status

TRANSITION = "state transitions (seed 001 §5.2.3)"
"""The rule that refuses a transition; its refusals are counted (seed 001 §9.1)."""

ENDED = "what has ended stays (seed 001 §5.2.3)"
SOFT = frozenset({Code.VERSION_MISMATCH, Code.ROLE_MISMATCH})
"""What `enforcement` switches (decisions.md § Tasks)."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """The decision, and under `warn` what `enforce` would have refused."""

    decision: Decision
    warnings: tuple[Deny, ...] = ()


Check = Callable[[Hand, Facts, Change], Decision]


def can_update(hand: Hand, task: Facts, change: Change, enforcement: Enforcement) -> Ruling:
    """Decide one update: version, force, state, role, owner, rights, blockers, approval."""
    warnings: list[Deny] = []
    for check in CHECKS:
        found = check(hand, task, change)
        if isinstance(found, Allow):
            continue
        if found.code not in SOFT or enforcement is Enforcement.ENFORCE:
            return Ruling(found, tuple(warnings))
        if enforcement is Enforcement.WARN:
            warnings.append(found)
    return Ruling(YES, tuple(warnings))


def has_version(hand: Hand, task: Facts, change: Change) -> Decision:
    """The optimistic lock, where the caller names a version (seed 001 §5.2.1)."""
    expected = change.expected_version
    if expected is None or expected == task.version:
        return YES
    return deny(
        Code.VERSION_MISMATCH,
        f"Task version mismatch. Expected: {expected}, Current: {task.version}. "
        "Another agent has modified this task. Please refresh and retry.",
        f'read it again with task_get {{"taskId": "{task.id}"}}, then decide anew',
        rule="optimistic lock (seed 001 §5.2.1)",
        expected=expected,
        current=task.version,
    )


def may_force(hand: Hand, task: Facts, change: Change) -> Decision:
    """`forceAssign` belongs to task leads, each over its own people (seed 001 §5.2.2)."""
    rule = "forceAssign (seed 001 §5.2.2)"
    if not change.force:
        return YES
    if not hand.is_lead:
        return deny(
            Code.FORCE_ASSIGN_DENIED,
            f"Only {lead_name(hand.policy)} can use forceAssign",
            _without_force(hand),
            rule=rule,
        )
    target = change.new_owner
    if change.sets_owner and target is not None and not hand.leads(target):
        return deny(
            Code.FORCE_ASSIGN_DENIED,
            f"{hand.handle} can use forceAssign for its own workers only, not for {target.handle}",
            "assign one of your own workers",
            rule=rule,
        )
    return YES


def _without_force(hand: Hand) -> str:
    above = hand.policy.agents.get(hand.agent.superior) if hand.agent else None
    if above is None or not Hand(hand.policy, above).is_lead:
        return "leave forceAssign out"
    return f"leave forceAssign out, or ask {above.handle} to assign the task"


def has_transition(hand: Hand, task: Facts, change: Change) -> Decision:
    """The state matrix with its actors (seed 001 §5.2.3, appendix C); what has ended stays."""
    if change.status is None:
        return _in_time(task, change)
    allowed = TRANSITIONS[task.status]
    lead_only = (task.status, change.status) in LEAD_ONLY
    if change.status in allowed and not (lead_only and not leads_task(hand, task)):
        return _in_time(task, change)
    names = ", ".join(f'"{status}"' for status in allowed)
    only = any((task.status, status) in LEAD_ONLY for status in allowed)
    actors = f" ({lead_name(hand.policy)} only)" if only else ""
    return deny(
        Code.INVALID_TRANSITION,
        f'Invalid status transition: "{task.status}" -> "{change.status}". '
        f'Allowed transitions from "{task.status}": [{names}]{actors}.',
        _next_state(task, change.status),
        rule=TRANSITION,
        allowed=[str(status) for status in allowed],
    )


def _in_time(task: Facts, change: Change) -> Decision:
    if task.status is Status.DELETED:
        return ended(task, ENDED)
    if task.status is not Status.COMPLETED:
        return YES
    if change.sets_owner and change.new_owner != task.owner:
        return ended(task, ENDED)
    if task.approved and change.reworks:
        return deny(
            Code.INVALID_TRANSITION,
            f"Task #{task.id} is completed as it was approved: its content stays.",
            "say it with task_comment, or create a new task with task_create",
            rule=ENDED,
            allowed=[],
        )
    return YES


def _next_state(task: Facts, wanted: Status) -> str:
    if wanted is task.status:
        return f"leave status out: the task is {wanted} already"
    if not TRANSITIONS[task.status] or task.status is Status.COMPLETED:
        return "create a new task with task_create"
    return f"set status to one of: {', '.join(TRANSITIONS[task.status])}"


def not_blocked(hand: Hand, task: Facts, change: Change) -> Decision:
    """A task with an unfinished blocker neither starts nor completes (decisions.md § Tasks)."""
    if change.status not in (Status.IN_PROGRESS, Status.COMPLETED):
        return YES
    blockers = sorted({*task.open_blockers, *change.new_blockers}, key=int)
    if not blockers:
        return YES
    names = ", ".join(f"#{number}" for number in blockers)
    return deny(
        Code.TASK_BLOCKED,
        f"Task #{task.id} is blocked by unfinished tasks: {names}.",
        "finish these first, or take another with task_recommend; you are told when it is free",
        rule="dependencies (seed 001 §2.2)",
        blockedBy=blockers,
    )


def is_approved(hand: Hand, task: Facts, change: Change) -> Decision:
    """Types that the pack marks complete only with an approval that this update leaves standing.

    (seed 001 §10.2)
    """
    if change.status is not Status.COMPLETED or not task.needs_approval:
        return YES
    if keeps_approval(hand, task, change):
        return YES
    mine = hand.handle in approvers(hand.policy, task)
    step = f"call task_approve on #{task.id}" if mine else approval_step(hand.policy, task)
    return deny(
        Code.APPROVAL_REQUIRED,
        f'Tasks of type "{task.task_type}" need the approval of {lead_name(hand.policy)} '
        "before they are completed.",
        f"{step}; then set status alone to completed",
        rule="approval (seed 001 §10.2)",
    )


CHECKS: tuple[Check, ...] = (
    has_version,
    may_force,
    has_transition,
    fits_owner,
    may_set_owner,
    may_change,
    not_blocked,
    is_approved,
)
