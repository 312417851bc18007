"""Escalations whose sender has another superior now go to it (Spec: escalation 16)."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from core.actions import Action
from core.actors import System
from ledger.services import record
from mailroom.delivery import send_system_mail
from mailroom.escalations.models import OPEN_THREADS
from mailroom.escalations.threads import insert_in_thread, rows_of, settle_thread
from mailroom.escalations.waits import seconds_to_answer
from mailroom.models import Escalation
from mailroom.vocabulary import UNSETTLED
from orgchart.policy.compiled import Agent, Policy
from toolbox.quoting import as_lines, one_line

SYSTEM = "escalations"


def threads_astray() -> QuerySet[Escalation]:
    """Open threads to an agent, deactivated or not, that is no longer the superior of their sender.

    A notice to the top agent, which replies to what it tells of, stays: it was not sent to it as
    the superior. Of who has only the Board above, those that the Board was not told of.
    """
    rows = Escalation.objects.filter(
        first=None, state__in=UNSETTLED, sender__active=True, recipient__isnull=False
    ).exclude(mail__sender=None, mail__reply_to__isnull=False, recipient__reports_to=None)
    untold = Q(told_board_at=None, board_waits_since=None)
    elsewhere = Q(sender__reports_to__active=True) & ~Q(recipient=F("sender__reports_to"))
    return rows.filter(elsewhere | Q(sender__reports_to=None) & untold).order_by(*OPEN_THREADS)


def pass_on_to_superior(first: Escalation, policy: Policy, now: datetime) -> Agent | None:
    """Let a locked thread wait for its sender's superior of now, which gets its text.

    Returns that superior; None where only the Board is above the sender: nothing has changed then.
    """
    sender = policy.by_id[first.sender_id]
    superior = policy.agents.get(sender.superior)
    if superior is None or superior.id == first.recipient_id:
        return superior
    system = System(name=SYSTEM, organisation_id=first.organisation_id)
    unsettled = list(rows_of(first).filter(state__in=UNSETTLED))
    mail_ids = [_notify(row.origin, sender, superior, now) for row in unsettled]
    settle_thread(
        first,
        "pass_on",
        by=system,
        now=now,
        by_what=mail_ids[-1],
        reason=f"{sender.handle} reports to {superior.handle} now",
    )
    due_at = now + timedelta(seconds=seconds_to_answer(superior, policy))
    for row, mail_id in zip(unsettled, mail_ids, strict=True):
        new = insert_in_thread(
            Escalation(
                mail_id=mail_id,
                organisation_id=first.organisation_id,
                sender_id=sender.id,
                recipient_id=superior.id,
                due_at=due_at,
            ),
            follows=row,
            root_id=first.root_id or first.id,
        )
        details = {"mail": mail_id, "to": superior.handle, "due_at": due_at.isoformat()}
        subject = f"escalation:{new.id}"
        record(Action.ESCALATION_OPENED, by=system, at=now, subject=subject, details=details)
    _notify_sender(first, sender, superior, now)
    return superior


def _notify(own: Escalation, sender: Agent, superior: Agent, now: datetime) -> str:
    """Send the superior what the sender wrote, as a mail that waits for its answer."""
    return send_system_mail(
        organisation_id=own.organisation_id,
        recipient=superior,
        subject=f"{sender.handle}, which reports to you now, waits for an answer",
        body=(
            f"{sender.handle} has escalated: {one_line(own.mail.subject)}\n\n"
            f"{as_lines(own.mail.body)}\n\n"
            f"It was sent to {own.recipient}, its superior at that time. Answer {sender.handle} "
            "with reply_to this mail, or with a contract that names its escalation_id (read_mail "
            "says it) in answers."
        ),
        quotes=own.mail.writers,
        now=now,
        system=SYSTEM,
    )


def _notify_sender(first: Escalation, sender: Agent, superior: Agent, now: datetime) -> None:
    send_system_mail(
        organisation_id=first.organisation_id,
        recipient=sender,
        subject=f"Your escalation waits for {superior.handle} now",
        body=f"You report to {superior.handle} now, which has got what you escalated.",
        quotes=[],
        now=now,
        reply_to=first.own_mail_id,
        system=SYSTEM,
    )
