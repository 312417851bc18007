"""Threads: the escalations of one sender to one superior, until the superior answers.

Every change of a thread first locks its first escalation. Of two threads, the upper one is locked
first.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet, Sum

from core.actions import Action
from core.actors import Actor
from core.database import insert_with_free_id, needs_transaction, planned_for_values
from core.decision import Denied, stale
from core.events import Event
from core.machines import Swap, swap
from ledger.sql import event_cte
from mailroom.models import Escalation
from mailroom.vocabulary import ESCALATION_MACHINE, UNSETTLED


def rows_of(row: Escalation) -> QuerySet[Escalation]:
    """Every escalation of a row's thread, oldest first."""
    first = row.first_id or row.id
    return Escalation.objects.filter(Q(id=first) | Q(first_id=first)).order_by("id")


def version_of(row: Escalation) -> int:
    """The version of a row's thread: it grows with each step of one of its escalations, and with
    each that is new.
    """
    return int(rows_of(row).aggregate(all=Sum("version"))["all"])


@needs_transaction
def lock_thread_of(row: Escalation) -> Escalation:
    """The first escalation of a row's thread, locked until the transaction ends."""
    locked = Escalation.objects.select_for_update(of=("self",), no_key=True)
    return locked.get(id=row.first_id or row.id)


@needs_transaction
def insert_in_thread(
    new: Escalation, *, follows: Escalation | None, root_id: int | None
) -> Escalation:
    """Insert an escalation into the open thread of its sender and recipient, or as a new thread.

    The database allows one open thread for a pair: of two first escalations at once, the later
    joins the thread of the earlier. `root_id` begins the chain of a new thread.
    """

    def insert(_: int) -> Escalation:
        rows = Escalation.objects.select_for_update(of=("self",), no_key=True)
        rows = rows.filter(sender=new.sender_id, recipient=new.recipient_id, first=None)
        with planned_for_values():
            first = rows.filter(state__in=UNSETTLED).first()
        new.first = first
        new.root_id = root_id if first is None else first.root_id or first.id
        new.follows = follows
        new.save(force_insert=True)
        return new

    return insert_with_free_id(insert, unique="escalation_one_open_thread")


@needs_transaction
def settle_thread(
    row: Escalation, step: str, *, by: Actor, now: datetime, by_what: str, reason: str = ""
) -> bool:
    """Answer or pass on all of a row's thread that is unsettled (Spec: escalation 10).

    `by_what` is the id of the mail or contract that did it. Returns whether anything was unsettled.
    """
    rows = list(rows_of(lock_thread_of(row)).filter(state__in=UNSETTLED))
    for each in rows:
        before = each.state
        getattr(each, step)(by=by.actor, at=now)
        event = Event.by(
            by,
            Action(f"escalation.{ESCALATION_MACHINE.steps[step].target}"),
            at=now,
            subject=f"escalation:{each.id}",
            reason=reason,
            details={"by": by_what, "late": each.unanswered_at is not None},
        )
        save_step(each, before, event)
    return bool(rows)


def save_step(row: Escalation, before: str, event: Event) -> None:
    """Save the step that a row has just taken, with its event, as one statement.

    Raises Denied VERSION_MISMATCH where another step was faster.
    """
    change = Swap(
        model=Escalation,
        key=row.id,
        version=row.version,
        state=("state", before, row.state),
        values={
            "unanswered_at": row.unanswered_at,
            "answered_at": row.answered_at,
            "answered_by": row.answered_by,
        },
    )
    if not swap(change, [event_cte(event)]):
        raise Denied(stale(f"escalation {row.id}", "read it again before you answer"))
