"""The Board answers the reports that the top agent sends it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from core.actors import Person
from core.decision import Code, refuse
from core.permissions import Deed, require_deed
from mailroom.delivery import send_as
from mailroom.inbox import mark_read
from mailroom.models import Mail
from orgchart.policy.vocabulary import BOARD
from orgchart.policy_cache import current_policy

NO_SUCH_MAIL = "there is no such mail to the Board"


def answer_report(*, mail_id: str, text: str, person: Person, now: datetime) -> str:
    """Send the sender of a mail to the Board an answer from the Board; returns its id.

    Raises Denied NOT_YOURS for a person of another group, NOT_FOUND for any other mail,
    RECIPIENT_INACTIVE where its sender is deactivated.
    """
    require_deed(person, Deed.ANSWER_REPORT)
    row = _report(mail_id, person)
    sender = current_policy(person.organisation_id).by_id.get(row.sender_id or 0)
    if sender is None:
        raise refuse(Code.NOT_FOUND, NO_SUCH_MAIL, "look at the list again")
    with transaction.atomic():
        answer = send_as(
            caller=person,
            recipient=sender,
            mail_type="info",
            subject=f"Re: {row.subject}",
            body=text,
            contract_ref=row.contract_ref or "",
            reply_to=row.id,
            now=now,
            rule="the Board answers a report",
        )
        _read_once(row, person, now)
    return answer


def mark_report_read(*, mail_id: str, person: Person, now: datetime) -> None:
    """Record that the Board has read a mail to it.

    Raises Denied NOT_YOURS for a person of another group, NOT_FOUND for any other mail.
    """
    require_deed(person, Deed.ANSWER_REPORT)
    _read_once(_report(mail_id, person), person, now)


def _report(mail_id: str, person: Person) -> Mail:
    rows = Mail.objects.filter(organisation_id=person.organisation_id, to_agent=BOARD)
    row = rows.filter(id=mail_id, recipient=None, sender__isnull=False).first()
    if row is None:
        raise refuse(Code.NOT_FOUND, NO_SUCH_MAIL, "look at the list again")
    return row


def _read_once(row: Mail, person: Person, now: datetime) -> None:
    if row.read_at is None:
        mark_read(person, row, now)
