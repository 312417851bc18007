"""Escalations without an answer (seed 000 §4.5): notify the sender, the CEO, the Board."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet

from core.actions import Action
from core.actors import System
from core.events import Event
from ledger.services import record
from mailroom.delivery import send_system_mail
from mailroom.escalations.services import save_step
from mailroom.models import Escalation
from mailroom.outgoing import outbox
from mailroom.vocabulary import EscalationState
from orgchart.compiling import current_policy
from orgchart.policy.compiled import Agent, Policy
from toolbox.scheduler import sweep

BEFORE_THE_CEO = 3
"""Unanswered escalations of one thread after which the CEO is notified (seed 000 §4.5)."""


def sweep_due(*, now: datetime) -> int:
    """Time out every open escalation that is due, and send the Board the notices that had no
    channel before; returns how many.
    """
    due = Escalation.objects.filter(state=EscalationState.OPEN, due_at__lte=now).order_by("due_at")
    handled = sweep(due, lambda row: _time_out(row, now))
    return handled + sweep(_missing_notices(now), lambda row: _notify_board_late(row, now))


def _missing_notices(now: datetime) -> QuerySet[Escalation]:
    """Unanswered escalations that the Board got no notice of, where there is a channel now."""
    rows = Escalation.objects.filter(
        state=EscalationState.UNANSWERED, board_waits_since__lt=now
    ).order_by("id")
    waiting = rows.order_by().values_list("organisation_id", flat=True).distinct()
    reachable = [each for each in waiting if outbox.channels_of(current_policy(each))]
    return rows.filter(organisation_id__in=reachable)


def _notify_board_late(row: Escalation, now: datetime) -> None:
    Escalation.objects.filter(id=row.id).update(board_waits_since=None)
    _notify_board(row, _lock_root(row), current_policy(row.organisation_id), now)


def _time_out(row: Escalation, now: datetime) -> None:
    policy = current_policy(row.organisation_id)
    system = System(name="escalations", organisation_id=row.organisation_id)
    before = row.state
    row.time_out(at=now)
    event = Event.by(
        system,
        Action.ESCALATION_UNANSWERED,
        at=now,
        subject=f"escalation:{row.id}",
        details={"due_at": row.due_at.isoformat(), "mail": row.mail_id},
    )
    save_step(row, before, event)
    top = top_agent(policy)
    sender, recipient = policy.by_id.get(row.sender_id), policy.by_id.get(row.recipient_id or 0)
    _notify_sender(row, sender, recipient, now)
    root = _lock_root(row)
    if top is None or (recipient is not None and recipient.id == top.id):
        _notify_board(row, root, policy, now)
    elif root.told_ceo_at is None and _count_unanswered(root) >= BEFORE_THE_CEO:
        _notify_ceo(row, root, top, policy, now)


def top_agent(policy: Policy) -> Agent | None:
    """The agent right below the Board: active, of the lowest level number."""
    active = [a for a in policy.agents.values() if a.active and a.superior == "board"]
    return min(active, key=lambda a: (policy.level_of(a), a.handle), default=None)


def _lock_root(row: Escalation) -> Escalation:
    """The first of the thread, locked, so that CEO and Board are notified once for each thread."""
    return Escalation.objects.select_for_update(of=("self",)).get(id=row.root_id or row.id)


def _count_unanswered(root: Escalation) -> int:
    thread = Escalation.objects.filter(root=root, unanswered_at__isnull=False).count()
    return thread + (root.unanswered_at is not None)


def _notify_sender(
    row: Escalation, sender: Agent | None, recipient: Agent | None, now: datetime
) -> None:
    if sender is None or not sender.active:
        return
    who = recipient.handle if recipient else "the Board"
    send_system_mail(
        organisation_id=row.organisation_id,
        recipient=sender,
        subject=f"No answer from {who} to your escalation",
        body=(
            f"{who} has not answered {row.mail_id} in time. You may escalate again: "
            f"call escalate with follows={row.id}."
        ),
        now=now,
        reply_to=row.mail_id,
    )


def _notify_ceo(
    row: Escalation, root: Escalation, top: Agent, policy: Policy, now: datetime
) -> None:
    """Send the CEO, once for a thread, a system mail that waits for an answer as escalations do."""
    system = System(name="escalations", organisation_id=row.organisation_id)
    sender = policy.by_id[row.sender_id]
    mail_id = send_system_mail(
        organisation_id=row.organisation_id,
        recipient=top,
        subject=f"{sender.handle} has escalated {BEFORE_THE_CEO} times without an answer",
        body=(
            f"{sender.handle} -> {sender.superior}: {root.mail.subject}\n\n{root.mail.body}\n\n"
            f"The last of them is {row.mail_id}. Answer this mail with reply_to, or with a "
            "contract that names its escalation_id (read_mail says it) in answers."
        ),
        reply_to=row.mail_id,
        now=now,
        system=system.name,
    )
    Escalation.objects.create(
        mail_id=mail_id,
        organisation_id=row.organisation_id,
        sender_id=row.sender_id,
        recipient_id=top.id,
        follows=row,
        root=root,
        due_at=now + timedelta(seconds=policy.settings["ceo_timeout"]),
    )
    Escalation.objects.filter(id=root.id).update(told_ceo_at=now)
    record(
        Action.ESCALATION_CEO_TOLD,
        by=system,
        at=now,
        subject=f"escalation:{root.id}",
        for_agent_id=top.id,
        details={"mail": mail_id},
    )


def _notify_board(row: Escalation, root: Escalation, policy: Policy, now: datetime) -> None:
    """Send the Board a notice, once for a thread; without a channel it waits until there is one."""
    if root.told_board_at is not None:
        return
    system = System(name="escalations", organisation_id=row.organisation_id)
    if not outbox.channels_of(policy):
        Escalation.objects.filter(id=row.id).update(board_waits_since=now)
        record(
            Action.ESCALATION_BOARD_NOT_TOLD,
            by=system,
            at=now,
            subject=f"escalation:{root.id}",
            reason="neither board_webhook nor board_email is set",
            details={"mail": row.mail_id},
        )
        return
    sender = policy.by_id.get(row.sender_id)
    outbox.notify_board(
        policy=policy,
        event=Action.ESCALATION_UNANSWERED,
        subject=f"{policy.organisation}: an escalation has no answer",
        body=f"{root.mail.subject}\n\n{root.mail.body}",
        data={
            "escalation": str(root.id),
            "mail": row.mail_id,
            "from": sender.handle if sender else "",
        },
        caller=system,
        now=now,
    )
    Escalation.objects.filter(id=root.id).update(told_board_at=now)
