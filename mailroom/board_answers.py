"""The Board answers the reports that the top agent sends it."""

from __future__ import annotations

from datetime import datetime

from core.actors import Person
from core.decision import Code, refuse
from core.deeds import Deed, require_deed
from mailroom.delivery import send_as
from mailroom.models import Mail
from orgchart.compiling import current_policy
from orgchart.policy.vocabulary import BOARD


def answer_report(*, mail_id: str, text: str, person: Person, now: datetime) -> str:
    """Send the sender of a mail to the Board an answer from the Board; returns its id.

    Raises Denied NOT_YOURS for a person of another group, NOT_FOUND for any other mail,
    RECIPIENT_INACTIVE where its sender is deactivated.
    """
    require_deed(person, Deed.ANSWER_REPORT)
    rows = Mail.objects.filter(organisation_id=person.organisation_id, to_agent=BOARD)
    row = rows.filter(id=mail_id, recipient=None, sender__isnull=False).first()
    sender = current_policy(person.organisation_id).by_id.get(row.sender_id or 0) if row else None
    if row is None or sender is None:
        raise refuse(Code.NOT_FOUND, "there is no such mail to the Board", "look at the list again")
    return send_as(
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
