"""Who may own, change and discuss a task; pure decisions."""

from __future__ import annotations

from collections.abc import Collection

from core.decision import Allow, Code, Decision, Deny, deny
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.names import did_you_mean
from orgchart.policy.parties import Board
from tasks.rules.actors import TaskActor, is_for, read_permissions, roles_claiming
from tasks.rules.asking import leads_to_ask, may_ask
from tasks.rules.values import TaskRow, TaskUpdate
from tasks.rules.visibility import can_require_role
from tasks.vocabulary import Status

YES = Allow("tasks (spec: tasks 13)")
TAKE_ANOTHER = "wait until it is released, or take another with task_recommend"


def new_owner(actor: TaskActor, update: TaskUpdate) -> Agent | None:
    """The agent that an update names as owner; None where it names none."""
    return actor.policy.resolve(update.owner) if update.owner else None


def changes_owner(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> bool:
    """Whether an update names another owner than the task has."""
    if update.owner is None:
        return False
    new = new_owner(actor, update)
    return (new.id if new else None) != task.owner_id


def can_name_owner(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """The new owner is an agent of the organisation."""
    if not update.owner or new_owner(actor, update) is not None:
        return YES
    return unknown_owner(update.owner, actor.known_names)


def can_owner_act(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """The new owner is active.

    Asked last, so that no other agent learns which agents are deactivated (Spec: mail 19).
    """
    agent = new_owner(actor, update)
    return YES if agent is None or agent.active else inactive_owner(agent.handle)


def unknown_owner(name: str, known: Collection[str] = ()) -> Deny:
    """The refusal of an owner that is no agent; `known` are names that it may suggest."""
    problem = "no agent of this organisation"
    return deny(
        Code.INVALID_PARAMS,
        f"owner: {name[:64]!r} is {problem}{did_you_mean(name, known)}",
        "name an agent by its handle, or '' to release the task",
        rule="owners are agents",
        owner=problem,
    )


def inactive_owner(handle: str) -> Deny:
    """The refusal of an owner that is deactivated."""
    return deny(
        Code.RECIPIENT_INACTIVE,
        f"{handle} is deactivated and takes no tasks",
        "name an active agent as owner",
        rule="owners are active",
    )


def can_take(policy: Policy, agent: Agent, required_role: str, task_type: str) -> Decision:
    """Whether a task is for this agent: its required role, and the types its role claims.

    Both must match (Spec: tasks 42).
    """
    if not _is_for_role(agent, required_role):
        return _mismatch(
            f"{_requirement(policy, agent, required_role, task_type)}, but you are "
            f'"{agent.role}". Use TaskList({{ roleFilter: "{agent.role}" }}) to find tasks for '
            "your role.",
            f'list tasks for your role with task_list {{"roleFilter": "{agent.role}"}}',
        )
    if not _claims_type(policy, agent, task_type):
        return _mismatch(
            f"{_requirement(policy, agent, required_role, task_type)}, but you are "
            f'"{agent.role}". Use TaskRecommend() to find tasks of your types.',
            "take one of those that task_recommend finds for you",
        )
    return YES


def _is_for_role(agent: Agent, required_role: str) -> bool:
    return not required_role or is_for(required_role, agent)


def _claims_type(policy: Policy, agent: Agent, task_type: str) -> bool:
    claims = read_permissions(policy.roles[agent.role].permissions).claims
    return claims is None or not task_type or task_type in claims


def _requirement(policy: Policy, agent: Agent, required_role: str, task_type: str) -> str:
    if not _is_for_role(agent, required_role):
        return f'Task requires "{required_role}"'
    roles = " or ".join(f'"{role}"' for role in roles_claiming(policy, task_type))
    return f'Tasks of type "{task_type}" require {roles or "another role"}'


def _mismatch(problem: str, next_action: str) -> Deny:
    return deny(
        Code.ROLE_MISMATCH,
        f"Role mismatch. {problem}",
        next_action,
        rule="role match (spec: tasks 19)",
    )


def can_owner_take(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """The new owner's role matches, unless a lead forces it (Spec: tasks 19, tasks 21)."""
    new = new_owner(actor, update)
    if new is None or new.id == task.owner_id or (update.force and actor.is_lead):
        return YES
    found = can_take(actor.policy, new, task.required_role, task.task_type)
    if isinstance(found, Allow) or actor.is_agent(new.id):
        return found
    requirement = _requirement(actor.policy, new, task.required_role, task.task_type)
    return _mismatch(
        f'{requirement}, but the new owner\'s role is "{new.role}".',
        _fitting_owner_step(actor, task, update, new),
    )


def _fitting_owner_step(actor: TaskActor, task: TaskRow, update: TaskUpdate, new: Agent) -> str:
    if actor.may_force_for(new) and may_force(actor, task):
        return "choose an owner that fits, or repeat with forceAssign"
    return "choose an owner that fits" if update.assigns else _owner_step(actor, task, new)


def is_out_of_reach(actor: TaskActor, task: TaskRow) -> bool:
    """Whether the task is another agent's, which the actor does not lead."""
    owner = task.owner_in(actor.policy)
    return owner is not None and not actor.is_agent(owner.id) and not actor.leads(owner)


def can_set_owner(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """Agents claim for themselves and release their own tasks; leads assign their people."""
    if not changes_owner(actor, task, update):
        return YES
    if is_out_of_reach(actor, task):
        return owned_by_other(task, TAKE_ANOTHER)
    new = new_owner(actor, update)
    if new is None or actor.is_agent(new.id) or actor.leads(new):
        return YES
    if update.assigns and actor.handle in new.managers:
        return YES
    return deny(
        Code.NOT_YOURS,
        f"{actor.handle} may claim the task for itself or release it, not give it to {new.handle}",
        _owner_step(actor, task, new),
        rule="who sets an owner",
    )


def _owner_step(actor: TaskActor, task: TaskRow, new: Agent) -> str:
    """How an agent that does not set another owner gets a task on; '' where it cannot."""
    names = leads_to_ask(actor, task, lambda lead: lead.leads(new))
    claim = f'claim it with owner "{actor.handle}"'
    if task.owner_id is None and isinstance(actor.party, Agent):
        found = can_take(actor.policy, actor.party, task.required_role, task.task_type)
        if isinstance(found, Allow):
            return f"{claim}, or ask {names} to assign it" if names else claim
    return f"ask {names} to assign it" if names else ""


def can_change(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """The owner, a task lead, or for an unowned task its creator, those above it, and who could
    take it.

    No agent takes a completed task any more: without an owner it is the agent's that completed it.
    An agent without `update_own_tasks` changes no unowned task either; renewing a claim needs no
    permission. To name the owner that a task has is a change like any other.
    """
    if update.curates:
        return _can_curate(actor, task, update)
    only_owner = update.owner is not None and update.status is None and not update.edits
    releases_or_assigns = update.owner == "" or update.assigns
    sets_owner = only_owner and (releases_or_assigns or changes_owner(actor, task, update))
    if sets_owner or leads_task(actor, task):  # can_set_owner decides on the owner
        return YES
    is_owner = actor.is_agent(task.owner_id)
    holder = new_owner(actor, update) if update.owner else task.worker_in(actor.policy)
    if is_owner or (holder is not None and actor.is_agent(holder.id)):
        renews = is_owner and (only_owner or update.renews)
        return YES if renews else _can_update_own(actor, task)
    if task.status is Status.COMPLETED and task.owner_id is None:
        return _can_change_completed(actor, task)
    if holder is not None or isinstance(actor.party, Board):
        return owned_by_other(task, _step_to_owner(actor, task))
    return _can_change_unowned(actor, actor.party, task, update)


def _can_change_completed(actor: TaskActor, task: TaskRow) -> Decision:
    """What was completed for no agent is its creator's (Spec: tasks 27)."""
    if task.completed_by_id is None and actor.is_agent(task.creator_id):
        return YES
    return deny(
        Code.NOT_YOURS,
        f"Task #{task.number} is completed; {actor.handle} did not complete it.",
        _step_to_owner(actor, task),
        rule="a completed task stays as it was completed (spec: tasks 27)",
    )


def _step_to_owner(actor: TaskActor, task: TaskRow) -> str:
    """How the owner learns what another agent wants changed; '' where that agent cannot say it."""
    owner = task.owner_in(actor.policy)
    asks = owner is not None and may_ask(actor, owner)
    if isinstance(can_comment(actor, task), Deny):
        return "ask its owner" if asks else ""
    if asks:
        return "comment on it with task_comment, or ask its owner"
    return "comment on it with task_comment"


def _can_change_unowned(
    actor: TaskActor, agent: Agent, task: TaskRow, update: TaskUpdate
) -> Decision:
    moves = update.status in (Status.IN_PROGRESS, Status.COMPLETED)
    if task.creator_id == agent.id and not moves:
        return YES
    own = _can_update_own(actor, task)
    if isinstance(own, Deny):
        return own
    if not moves and _may_act_for_creator(actor.policy, agent, task, update):
        return YES
    return can_take(actor.policy, agent, task.required_role, task.task_type)


def _may_act_for_creator(policy: Policy, agent: Agent, task: TaskRow, update: TaskUpdate) -> bool:
    """Whether an agent above the creator withdraws a task, or edits one that it could create.

    A creator that was replaced reaches its readers no more (Spec: tasks 27).
    """
    creator = policy.by_id.get(task.creator_id or 0)
    if creator is None or not policy.commands(agent, creator):
        return False
    return not update.edits or isinstance(
        can_require_role(policy, agent, task.required_role), Allow
    )


def _can_be_listed(task: TaskRow) -> Decision:
    if task.owner_id is None and task.status == Status.PENDING:
        return YES
    return deny(
        Code.NOT_YOURS,
        f"Task #{task.number} is not in the backlog: it is {task.status}"
        + (f" and owned by {task.owner}." if task.owner else "."),
        "choose one that manage_backlog lists",
        rule="the backlog holds unowned tasks that have not begun",
    )


def _can_curate(actor: TaskActor, task: TaskRow, update: TaskUpdate) -> Decision:
    """A task of the backlog is ranked; it is edited and removed by its creator, and by a manager
    that could create it for its own workers (Spec: tasks 50).
    """
    listed, party = _can_be_listed(task), actor.party
    only_ranks = update.status is None and set(update.content) == {"rank"}
    if isinstance(listed, Deny) or only_ranks or isinstance(party, Board):
        return listed
    if party.id == task.creator_id:
        return listed
    people, role = (party, *actor.policy.workers_of(party)), task.required_role
    if not role or any(is_for(role, one) for one in people):
        asked = can_require_role(actor.policy, party, role)
        if isinstance(asked, Allow):
            return listed
    return deny(
        Code.NOT_YOURS,
        f"Task #{task.number} requires {role}, a role that you create no tasks for.",
        "say what should change with task_comment",
        rule="the backlog of one's own people (spec: tasks 50)",
    )


def _can_update_own(actor: TaskActor, task: TaskRow) -> Decision:
    if actor.permissions.update_own:
        return YES
    names = leads_to_ask(actor, task, lambda lead: leads_task(lead, task))
    return deny(
        Code.NOT_YOURS,
        f'{actor.role} lacks the permission "update_own_tasks"',
        f"ask {names} to make the change" if names else "",
        rule="permissions (spec: tasks 40)",
    )


def may_force(actor: TaskActor, task: TaskRow) -> bool:
    """Whether a lead may force this task at all: one that its people could do, or one of them owns.

    No department takes the work of another by force (Spec: tasks 22).
    """
    return task.owner_id is not None or actor.leads_open(task.required_role)


def leads_task(actor: TaskActor, task: TaskRow) -> bool:
    """Whether the actor is a task lead over this task: its owner, or who completed it.

    Over one without either, where its people could do it and no other agent has worked on it: what
    another department began, and lost by a lease, is not the lead's (Spec: tasks 22).
    """
    worker = task.worker_in(actor.policy)
    if worker is not None:
        return actor.leads(worker)
    return actor.leads_open(task.required_role) and all(map(actor.leads_id, task.workers))


def owned_by_other(task: TaskRow, next_action: str) -> Deny:
    """The refusal of a change of somebody else's task."""
    return deny(
        Code.NOT_YOURS,
        f"Task #{task.number} is owned by {task.owner or 'another agent'}.",
        next_action,
        rule="a task is changed by its owner and by task leads",
    )


def can_comment(actor: TaskActor, task: TaskRow) -> Decision:
    """Agents comment on the tasks they can read, unless their role's permissions leave that out."""
    if task.status is Status.DELETED:
        return already_ended(task, "comments on deleted tasks (spec: tasks 46)")
    if actor.permissions.comment_all:
        return YES
    if actor.party.id in {*task.workers, task.creator_id, task.owner_id}:
        return YES
    return deny(
        Code.NOT_YOURS,
        f'{actor.role} lacks the permission "comment_on_all_tasks"',
        "comment on tasks that you own, worked on or created",
        rule="permissions (spec: tasks 40)",
    )


def already_ended(task: TaskRow, rule: str) -> Deny:
    """The refusal of a change after the task's end."""
    rest = "it can no longer change" if task.status == Status.DELETED else "its owner stays"
    return deny(
        Code.INVALID_TRANSITION,
        f'The task is "{task.status}": {rest}.',
        "create a new task with task_create",
        rule=rule,
        allowed=[],
    )
