"""How frames end: returned, cancelled, timed out, left; what was opened inside ends with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q

from core.actions import Action
from core.actors import Actor, System
from core.database import needs_transaction, rows_of_array
from core.decision import Code, Deny, refuse
from core.events import Event
from core.interventions import record_intervention
from core.permissions import Deed, require_deed
from ledger.services import insert_event
from orgchart.pauses.services import Resumed, is_paused, resumed
from orgchart.policy_cache import current_policy
from orgchart.services import agents_activated
from toolbox.caller import Caller
from toolbox.frames import rules
from toolbox.frames.services import frame_number, no_such_frame, require_small
from toolbox.frames.stack import frame_taken_by, save_frame
from toolbox.frames.vocabulary import UNENDED, FrameKind, FrameState
from toolbox.models import Frame
from toolbox.scheduler import sweep
from toolbox.wake import wake

ENDED = ("result", "reason", "ended_at")
LONG = ("instruction", "context")
MOST_AT_ONCE = 1000
"""Frames that end in one transaction with the one below them; the job ends the rest."""


def return_result(
    *, caller: Caller, frame_id: str | None, result: Any, failed: bool, now: datetime
) -> Frame:
    """End the frame that the agent is in and give its result to the opener.

    Without `frame_id` that frame is meant: an agent that a person put into a frame does not know
    the id. Unfinished work that was delegated from inside it is cancelled. An opener that may no
    longer delegate to the caller gets a failure without the result. Raises Denied:
    NOT_FOUND for another agent's frame, INVALID_TRANSITION for one that ended or that the agent
    is not in, TOO_LARGE.
    """
    require_small("result", result)
    number = caller.frame_id if frame_id is None else frame_number(frame_id)
    if number is None:
        raise refuse(
            Code.INVALID_TRANSITION,
            "you are in no frame",
            "call next_frame for what waits for you",
            rule=rules.FROM_INSIDE,
        )
    with transaction.atomic():
        frame = (
            Frame.objects.select_for_update().filter(id=number, assignee_id=caller.agent.id).first()
        )
        if frame is None:
            raise no_such_frame()
        inside = frame_taken_by(caller.agent.id) == frame
        caller.require(rules.can_return(frame.id, frame.state, frame.reason, inside=inside))
        before = FrameState(frame.state)
        opener = caller.policy.by_id.get(frame.opener_id)
        carried = rules.can_carry_result(opener, caller.agent, caller.policy)
        if isinstance(carried, Deny):  # the frame ends all the same: its agent can always leave it
            closed = {"error": "closed", "message": carried.message}
            frame.fail(closed, reason=carried.message, at=now)
        elif failed:
            frame.fail(result, at=now)
        else:
            frame.return_result(result, at=now)
        end_frame(frame=frame, before=before, actor=caller, now=now)
    return frame


def cancel_frame(*, frame_id: int, caller: Actor, reason: str, now: datetime) -> Frame:
    """Fail a frame for the Board, and cancel everything that was opened inside it.

    The opener gets a failure, the assignee is notified. Raises Denied: NOT_FOUND for another
    organisation's frame, INVALID_TRANSITION for an ended one, INVALID_PARAMS for an empty reason.
    """
    require_deed(caller, Deed.CANCEL_FRAME, reason=reason)
    with transaction.atomic():
        frame = (
            Frame.objects.select_for_update()
            .filter(id=frame_id, organisation_id=caller.organisation_id)
            .first()
        )
        if frame is None:
            raise no_such_frame()
        caller.require(rules.can_cancel(frame.id, frame.state))
        before = FrameState(frame.state)
        frame.fail({"error": "cancelled", "message": reason}, reason=reason, at=now)
        end_frame(frame=frame, before=before, actor=caller, now=now)
        record_intervention(
            caller,
            deed=Deed.CANCEL_FRAME,
            subject=f"frame:{frame.id}",
            trigger_condition=f"frame {before}",
            action_taken="cancel_frame",
            reason=reason,
            now=now,
        )
        if frame.assignee_id != frame.opener_id:
            insert_event(_event(frame, Action.FRAME_CANCELLED, caller, now, frame.assignee_id))
    return frame


def end_due_frames(now: datetime) -> int:
    """End every frame that timed out, those of deactivated agents, and those of which the one below
    has ended; returns how many rows were handled (Spec: frames 9, frames 12, frames 17). The time
    of a paused agent's frame does not end.
    """
    unended = Frame.objects.filter(state__in=UNENDED).defer(*LONG).order_by("due_at", "id")
    late = unended.filter(~is_paused("assignee_id"), due_at__lte=now)
    left = unended.filter(Q(assignee__active=False) | Q(opener__active=False))
    above = unended.exclude(parent=None).exclude(parent__state__in=UNENDED)
    return sum(
        sweep(rows, partial(_end_by_clock, end=end, now=now), of="organisation")
        for rows, end in ((late, _time_out), (left, _leave), (above, _end_with_below))
    )


@resumed.join
def begin_time_anew(done: Resumed) -> None:
    """Give the frames of resumed agents their whole time: paused, they could not work in them."""
    seconds = current_policy(done.organisation_id).settings["frame_timeout"]
    due_at = done.now + timedelta(seconds=seconds)
    rows = Frame.objects.filter(
        organisation_id=done.organisation_id, state__in=UNENDED, due_at__lt=due_at
    )
    if done.agent_id is not None:
        rows = rows.filter(assignee_id=done.agent_id)
    locked = rows.select_for_update(no_key=True).order_by("id").values_list("id", flat=True)
    Frame.objects.filter(id__in=rows_of_array(list(locked), "bigint")).update(due_at=due_at)


def _end_by_clock(due: Frame, *, end: Callable[[Frame, datetime], None], now: datetime) -> None:
    """End a frame that the scheduler found, unless one below it ended it in this very sweep."""
    frame = Frame.objects.select_related("opener").get(id=due.id)
    if frame.state not in UNENDED:
        return
    before = FrameState(frame.state)
    end(frame, now)
    system = System(name="frames", organisation_id=frame.organisation_id)
    end_frame(frame=frame, before=before, actor=system, now=now)


@agents_activated.join
def end_frames_left(agent_ids: Sequence[int], caller: Actor, now: datetime) -> None:
    """End what agents that are activated again left, where the scheduler has not yet."""
    ids = rows_of_array(agent_ids, "bigint")
    theirs = Q(assignee_id__in=ids) | Q(opener_id__in=ids)
    rows = Frame.objects.filter(theirs, state__in=UNENDED).select_for_update().order_by("id")
    for row in rows.defer(*LONG):
        is_cancelled = row.opener_id in agent_ids
        _end_by_clock(row, end=partial(_leave, is_cancelled=is_cancelled), now=now)


def _time_out(frame: Frame, now: datetime) -> None:
    result = {"error": "timeout", "message": "no result came in time"}
    frame.fail(result, reason="its time was over", at=now)


def _leave(frame: Frame, now: datetime, *, is_cancelled: bool = False) -> None:
    """End a frame whose opener no longer waits for it, or whose agent no longer works on it.

    The opener is not told that the agent was deactivated (Spec: tasks 61).
    """
    if frame.opener.active and not is_cancelled:
        reason = "its agent no longer works on it"
        frame.fail({"error": "closed", "message": reason}, reason=reason, at=now)
    else:
        frame.cancel(reason="the agent that asked for it no longer waits for it", at=now)


def _end_with_below(frame: Frame, now: datetime) -> None:
    frame.cancel(reason="the frame that asked for it has ended", at=now)


@needs_transaction
def end_frame(*, frame: Frame, before: FrameState, actor: Actor, now: datetime) -> None:
    """Save the end of a locked frame and cancel what was opened inside it, at once MOST_AT_ONCE.

    The opener of a returned or failed frame is notified, the assignee of a cancelled one.
    """
    above = _lock_above(frame)
    _save_end(frame, before, actor, now)
    for child in above:
        state = FrameState(child.state)
        _end_with_below(child, now)
        _save_end(child, state, actor, now)


def _save_end(frame: Frame, before: FrameState, actor: Actor, now: datetime) -> None:
    cancelled = frame.state == FrameState.CANCELLED
    notified: int | None = frame.assignee_id if cancelled else frame.opener_id
    if frame.kind == FrameKind.SKILL and actor.actor.startswith("agent:"):
        notified = None  # the agent itself ended its own skill
    event = _event(frame, Action(f"frame.{frame.state}"), actor, now, notified)
    save_frame(frame, before=before, event=event, columns=ENDED)
    wake(frame.opener_id, frame.assignee_id)


def _event(
    frame: Frame, action: Action, actor: Actor, now: datetime, notified: int | None
) -> Event:
    return Event.by(
        actor,
        action,
        at=now,
        subject=f"frame:{frame.id}",
        reason=frame.reason,
        kind="frame" if notified else "",
        for_agent_id=notified,
        details={"frame_id": str(frame.id), "state": frame.state},
    )


def _lock_above(frame: Frame) -> list[Frame]:
    """The first unended frames above this one, locked from the bottom up.

    Without the long texts: an agent can have opened more than the memory takes.
    """
    found: list[Frame] = []
    level = [frame.id]
    while level:
        rows = Frame.objects.select_for_update().filter(
            parent_id__in=rows_of_array(level, "bigint"), state__in=UNENDED
        )
        next_level = list(rows.defer(*LONG).order_by("id")[: MOST_AT_ONCE - len(found)])
        found += next_level
        level = [row.id for row in next_level]
    return found
