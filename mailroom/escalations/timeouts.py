"""Escalations whose time ran out (seed 000 §4.5): the sender, then the CEO, then the Board."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F, QuerySet

from core.actions import Action
from core.actors import System
from ledger.services import record
from mailroom.delivery import notice, post, post_notice
from mailroom.models import Escalation, EscalationState
from mailroom.outgoing import outbox
from orgchart.compiling import current_policy
from orgchart.policy.compiled import Agent, Policy
from toolbox.scheduler import sweep

BEFORE_THE_CEO = 3
"""Unanswered escalations of one thread after which the CEO is told (seed 000 §4.5)."""


def sweep_due(*, now: datetime) -> int:
    """Handle every open escalation that is due, and tell the Board of those that it could not be
    told of before; returns how many.
    """
    due = Escalation.objects.filter(state=EscalationState.OPEN, due_at__lte=now).order_by("due_at")
    handled = sweep(due, lambda row: _unanswered(row, now))
    return handled + sweep(_now_tellable(now), lambda row: _tell_board_late(row, now))


def _now_tellable(now: datetime) -> QuerySet[Escalation]:
    """Unanswered ones that wait for a way out to the Board, where by now there is one."""
    rows = Escalation.objects.filter(
        state=EscalationState.UNANSWERED, board_waits_since__lt=now
    ).order_by("id")
    waiting = rows.order_by().values_list("organisation_id", flat=True).distinct()
    heard = [each for each in waiting if outbox.channels_of(current_policy(each))]
    return rows.filter(organisation_id__in=heard)


def _tell_board_late(row: Escalation, now: datetime) -> None:
    Escalation.objects.filter(id=row.id).update(board_waits_since=None)
    _tell_board(row, _locked_root(row), current_policy(row.organisation_id), now)


def _unanswered(row: Escalation, now: datetime) -> None:
    policy = current_policy(row.organisation_id)
    system = System(name="escalations", organisation_id=row.organisation_id)
    Escalation.objects.filter(id=row.id).update(
        state=EscalationState.UNANSWERED, unanswered_at=now, version=F("version") + 1
    )
    record(
        Action.ESCALATION_UNANSWERED,
        by=system,
        at=now,
        subject=f"escalation:{row.id}",
        details={"due_at": row.due_at.isoformat(), "mail": row.mail_id},
    )
    top = top_agent(policy)
    sender, recipient = policy.by_id.get(row.sender_id), policy.by_id.get(row.recipient_id or 0)
    _tell_sender(row, sender, recipient, now)
    root = _locked_root(row)
    if top is None or (recipient is not None and recipient.id == top.id):
        _tell_board(row, root, policy, now)
    elif root.told_ceo_at is None and _silences(root) >= BEFORE_THE_CEO:
        _tell_ceo(row, root, top, policy, now)


def top_agent(policy: Policy) -> Agent | None:
    """The agent right below the Board: active, of the lowest level number."""
    active = [a for a in policy.agents.values() if a.active and a.superior == "board"]
    return min(active, key=lambda a: (policy.level_of(a), a.handle), default=None)


def _locked_root(row: Escalation) -> Escalation:
    """The first of the thread, locked: whoever tells CEO or Board of a thread tells it once."""
    return Escalation.objects.select_for_update(of=("self",)).get(id=row.root_id or row.id)


def _silences(root: Escalation) -> int:
    thread = Escalation.objects.filter(root=root, unanswered_at__isnull=False).count()
    return thread + (root.unanswered_at is not None)


def _tell_sender(
    row: Escalation, sender: Agent | None, recipient: Agent | None, now: datetime
) -> None:
    if sender is None or not sender.active:
        return
    who = recipient.handle if recipient else "the Board"
    post_notice(
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


def _tell_ceo(row: Escalation, root: Escalation, top: Agent, policy: Policy, now: datetime) -> None:
    """Once for a thread: a notice to the CEO that waits for an answer like any escalation."""
    system = System(name="escalations", organisation_id=row.organisation_id)
    sender = policy.by_id[row.sender_id]
    letter = notice(
        organisation_id=row.organisation_id,
        recipient=top,
        subject=f"{sender.handle} has escalated {BEFORE_THE_CEO} times without an answer",
        body=(
            f"{sender.handle} -> {sender.superior}: {root.mail.subject}\n\n{root.mail.body}\n\n"
            f"The last of them is {row.mail_id}. Answer this mail with reply_to, or with a "
            "contract that names its escalation_id (read_mail says it) in answers."
        ),
        reply_to=row.mail_id,
    )
    mail_id = post(letter, caller=system, now=now)
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


def _tell_board(row: Escalation, root: Escalation, policy: Policy, now: datetime) -> None:
    """Once for a thread: out of the building, by mail and webhook; else it waits until it can."""
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
