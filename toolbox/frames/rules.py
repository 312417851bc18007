"""Which agents may delegate to which, and how deep; pure (Spec: groups 4, frames 5)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from core.decision import Allow, Code, Decision, Deny, deny, listed
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.names import unknown_agent
from toolbox.frames.vocabulary import UNENDED

MAX_DEPTH = 8
MOST_WAITING = 200
"""Delegations of one opener that wait until one agent takes them."""
ALWAYS = frozenset({"return_result"})
"""Tools that every frame allows: otherwise an agent could not leave it."""
FROM_INSIDE = "a frame is returned from inside, the last one first"


@dataclass(frozen=True, slots=True)
class Stack:
    """The frames below a new one: how many, the agents that wait for a result, the open skills."""

    depth: int = 0
    openers: frozenset[str] = frozenset()
    skills: frozenset[str] = frozenset()


def can_delegate(source: Agent, target: Agent | None, name: str, policy: Policy) -> Decision:
    """Decide whether one agent may delegate to another, called `name` in the request.

    Leader to a member of its group; leader to leader across groups; member to member only where
    the group's `member_delegation` allows it. What no rule allows is refused.
    """
    if target is None:
        step, known = _candidates(source, policy), delegates_of(source, policy)
        return unknown_agent(name, step, code=Code.RECIPIENT_UNKNOWN, known=known)
    rule = _rule_between(source, target, policy)
    if not rule:
        return deny(
            Code.CONTACT_DENIED,
            f"{source.address} may not delegate to {target.address}: {_why_not(source, target)}",
            _candidates(source, policy),
            rule="a leader delegates to its members and to other leaders (spec: groups 4)",
        )
    if not target.active:  # after the contact check: no other agent learns who is deactivated
        return deny(
            Code.RECIPIENT_INACTIVE,
            f"{target.address} is deactivated",
            _candidates(source, policy),
            rule="delegation goes to active agents",
        )
    return Allow(rule)


def can_open(target: Agent, stack: Stack) -> Decision:
    """Decide whether a stack may grow by a frame of this agent: no circle, no deeper than 8."""
    if target.handle in stack.openers:
        return deny(
            Code.DELEGATION_CIRCLE,
            f"{target.address} itself waits for a result of this stack",
            "return your own result, or delegate to another agent",
            rule="no circle of delegation",
        )
    return _within_depth(stack)


def can_enter_skill(name: str, stack: Stack) -> Decision:
    """Decide whether a skill may be opened on a stack: never inside itself, never deeper than 8."""
    if name in stack.skills:
        return deny(
            Code.INVALID_TRANSITION,
            f"{name} is already open in this stack",
            "go on in the frame you are in, and return its result",
            rule="a skill never runs inside itself",
        )
    return _within_depth(stack)


def can_return(frame_id: int, state: str, reason: str, *, inside: bool) -> Decision:
    """Decide whether an agent may return a frame: it works in the frame, which has not ended."""
    if state not in UNENDED:
        why = f": {reason}" if reason else ""
        return deny(
            Code.INVALID_TRANSITION,
            f"frame {frame_id} has ended, it is {state}{why}",
            "call next_frame for what waits for you now",
            rule="a frame ends once",
        )
    if not inside:
        return deny(
            Code.INVALID_TRANSITION,
            f"you are not in frame {frame_id}",
            "call next_frame: it shows the frame you are in, or takes the oldest that waits",
            rule=FROM_INSIDE,
        )
    return Allow(FROM_INSIDE)


def can_cancel(frame_id: int, state: str) -> Decision:
    """Decide whether a frame may be cancelled: while it has not ended."""
    if state in UNENDED:
        return Allow("a frame is cancelled before it ends")
    return deny(
        Code.INVALID_TRANSITION,
        f"frame {frame_id} has ended, it is {state}",
        "there is nothing left to cancel",
        rule="a frame ends once",
    )


def narrowed(wanted: Collection[str] | None, below: Collection[str] | None) -> list[str] | None:
    """The tools of a frame, sorted: those it asks for that the frame below has too.

    None means no restriction.
    """
    if wanted is None:
        return None if below is None else sorted(set(below))
    return sorted(set(wanted) if below is None else set(wanted) & set(below))


def delegates_of(source: Agent, policy: Policy) -> tuple[str, ...]:
    """Addresses that an agent may delegate to now, sorted."""
    return tuple(
        sorted(
            other.address
            for other in policy.agents.values()
            if other.active and _rule_between(source, other, policy)
        )
    )


def delegators_of(target: Agent, policy: Policy) -> list[int]:
    """The ids of the agents that may delegate to an agent now (Spec: frames 15)."""
    return [source.id for source in policy.agents.values() if _rule_between(source, target, policy)]


def can_carry_result(opener: Agent | None, assignee: Agent, policy: Policy) -> Decision:
    """Decide whether a result reaches the opener: a skill's its own agent, else while the opener
    may delegate to the assignee (Spec: frames 15).
    """
    if opener is not None and opener.id == assignee.id:
        return Allow("an agent's own skill")
    rule = _rule_between(opener, assignee, policy) if opener is not None else ""
    if rule:
        return Allow(rule)
    return deny(
        Code.CONTACT_DENIED,
        "the agent that asked for it may no longer delegate to this agent",
        "nothing is left to do",
        rule="a frame carries text while its delegation is allowed (spec: frames 15)",
    )


def _rule_between(source: Agent, target: Agent, policy: Policy) -> str:
    if source.handle == target.handle or not source.group or not target.group:
        return ""
    if source.group != target.group:
        return "leader to leader (spec: groups 7)" if _both_lead(source, target) else ""
    if source.is_leader:
        return "leader to its member (spec: groups 5)"
    group = policy.groups[source.group]
    if group.member_delegation and not target.is_leader:
        return f"member_delegation of {group.slug}"
    return ""


def _both_lead(source: Agent, target: Agent) -> bool:
    return source.is_leader and target.is_leader


def _why_not(source: Agent, target: Agent) -> str:
    if source.handle == target.handle:
        return "an agent does not delegate to itself"
    if not source.group:
        return f"{source.handle} is in no group"
    if not target.group:
        return f"{target.handle} is in no group"
    if source.group == target.group:
        return "members return their results and do not delegate"
    return "only leaders delegate across groups, and only to leaders"


def _candidates(source: Agent, policy: Policy) -> str:
    names = delegates_of(source, policy)
    if names:
        return f"delegate to one of: {listed(names)}"
    return "do it yourself; inside a frame, say what is missing with return_result"


def can_wait_for(waiting: int, target: Agent) -> Allow | Deny:
    """Whether one more delegation may wait until an agent takes it (Spec: frames 16).

    Frames are taken in their order: else one opener's would be before all of everybody else.
    """
    if waiting < MOST_WAITING:
        return Allow("few enough wait (spec: frames 16)")
    return deny(
        Code.QUOTA_EXCEEDED,
        f"{MOST_WAITING} delegations of yours wait for {target.address} to take them",
        "wait until some are taken or fail; next_frame shows which have ended",
        rule="no opener fills the queue of an agent (spec: frames 16)",
    )


def _within_depth(stack: Stack) -> Allow | Deny:
    if stack.depth >= MAX_DEPTH:
        return deny(
            Code.INVALID_TRANSITION,
            f"this stack has {MAX_DEPTH} frames, and may have no more",
            "return the result of the frame you are in",
            rule=f"at most {MAX_DEPTH} frames",
        )
    return Allow(f"frame {stack.depth + 1} of {MAX_DEPTH}")
