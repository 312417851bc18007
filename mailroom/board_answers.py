"""The Board answers the reports that the top agent sends it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from core.actors import Person
from core.database import planned_for_values
from core.decision import Code, refuse, require_version
from core.people import require_still
from core.permissions import Deed, require_deed
from mailroom.delivery import send_as
from mailroom.inbox import mark_read
from mailroom.models import Mail
from orgchart.policy.vocabulary import BOARD
from orgchart.policy_cache import current_policy

NO_SUCH_MAIL = "there is no such mail to the Board"
MOST_MARKED = 1000
"""Mails that are marked as read at once: a second or two."""


def answer_report(
    *,
    mail_id: str,
    text: str,
    person: Person,
    now: datetime,
    expected_version: int | None = None,
) -> str:
    """Send the sender of a mail to the Board an answer from the Board; returns its id.

    Raises Denied NOT_YOURS for a person of another group, NOT_FOUND for any other mail,
    RECIPIENT_INACTIVE where its sender is deactivated, VERSION_MISMATCH where another person
    answered it or marked it as read since.
    """
    require_deed(person, Deed.ANSWER_REPORT)
    row = _report(mail_id, person)
    sender = current_policy(person.organisation_id).by_id.get(row.sender_id or 0)
    if sender is None:
        raise refuse(Code.NOT_FOUND, NO_SUCH_MAIL, "look at the list again")
    with transaction.atomic():
        row = Mail.objects.select_for_update(of=("self",)).get(id=row.id)
        require_still(person)
        require_version(
            f"mail {row.id}",
            "look at its thread: another person answered it, or marked it as read",
            expected=expected_version,
            current=row.version,
        )
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


def mark_report_read(
    *, mail_id: str, person: Person, now: datetime, with_earlier: bool = False
) -> int:
    """Record that the Board has read a mail to it, and `with_earlier` those that its sender had
    sent it before, MOST_MARKED at most; returns how many were unread.

    Raises Denied NOT_YOURS for a person of another group, NOT_FOUND for any other mail.
    """
    require_deed(person, Deed.ANSWER_REPORT)
    row = _report(mail_id, person)
    with transaction.atomic():
        # In the order of their ids, as another person may do at the same time.
        earlier = _read_earlier(row, person, now) if with_earlier else 0
        row = Mail.objects.select_for_update(of=("self",)).get(id=row.id)
        require_still(person)
        return earlier + _read_once(row, person, now)


def _read_earlier(row: Mail, person: Person, now: datetime) -> int:
    """Mark what the sender of a mail had sent the Board before it; the oldest MOST_MARKED."""
    unread = Mail.objects.filter(
        organisation_id=row.organisation_id, recipient=None, read_at=None, escalation=None
    )
    earlier = unread.filter(sender_id=row.sender_id, id__lt=row.id).order_by("id")
    with planned_for_values():
        rows = list(earlier.select_for_update(of=("self",))[:MOST_MARKED])
    for each in rows:
        mark_read(person, each, now)
    return len(rows)


def _report(mail_id: str, person: Person) -> Mail:
    rows = Mail.objects.filter(organisation_id=person.organisation_id, to_agent=BOARD)
    row = rows.filter(id=mail_id, recipient=None, sender__isnull=False).first()
    if row is None:
        raise refuse(Code.NOT_FOUND, NO_SUCH_MAIL, "look at the list again")
    return row


def _read_once(row: Mail, person: Person, now: datetime) -> bool:
    """Mark a locked mail that is unread; whether it was."""
    if row.read_at is not None:
        return False
    mark_read(person, row, now)
    return True
