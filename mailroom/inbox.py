"""Reading mail: pages of the inbox in one query, whatever the mailbox holds; one mail whole."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any, cast

from django.db import connection

from core import paging
from core.actions import Action
from core.actors import Actor
from core.decision import Code, refuse
from core.events import Event
from core.machines import Swap, swap
from ledger.sql import event_cte
from mailroom.attachments import open_attachments
from mailroom.models import Mail
from mailroom.results import InboxPage, MailHeader, WholeMail
from mailroom.rules import may_read_left_mail
from mailroom.vocabulary import MailStatus
from orgchart.policy.compiled import Agent
from orgchart.policy.readership import readable_writers
from orgchart.policy.vocabulary import BOARD
from toolbox.caller import Caller

UNREAD_COUNTED = 1000
"""Unread mails are counted up to this many: a full inbox costs no more than an empty one."""

HEADER = (
    "id, from_agent, to_agent, mail_type, subject, priority, status, created_at, read_at, "
    "contract_ref, reply_to_id"
)
NAMES = (
    "mail_id",
    "from",
    "to",
    "type",
    "subject",
    "priority",
    "status",
    "created_at",
    "read_at",
    "contract_ref",
    "reply_to",
)


LEFT = (
    f"(sender_id = ANY(%(writers)s) OR from_agent = '{BOARD}' OR quoted <@ %(writers)s::bigint[])"
)
"""What the next agent above reads of the mail of one that left (Spec: mail 34)."""


@cache
def page_query(status: str, *, typed: bool, sent_by: bool, paged: bool, left: bool = False) -> str:
    """The inbox query for one combination of filters, each on an index of its own.

    Of mail that an agent `left`, only what `writers` wrote, people, and the system with no words of
    others than theirs.
    The filtered indexes hold read or unread mails; a page of both is merged from a page of each.
    """
    where = ["recipient_id = %(me)s"]
    where += ["mail_type = %(type)s"] if typed else []
    where += ["from_agent = %(from)s"] if sent_by else []
    where += ['id COLLATE "C" < %(before)s'] if paged else []
    readable = f" AND {LEFT}" if left else ""
    where += [LEFT] if left else []
    parts = {"unread": ["read_at IS NULL"], "read": ["read_at IS NOT NULL"]}
    parts["all"] = [*parts["unread"], *parts["read"]] if typed or sent_by else ["true"]
    pages = " UNION ALL ".join(
        f"""(SELECT {HEADER} FROM mailroom_mail WHERE {" AND ".join([*where, part])}
         ORDER BY id COLLATE "C" DESC LIMIT %(limit)s + 1)"""
        for part in parts[status]
    )
    return f"""
    WITH page AS MATERIALIZED (
        SELECT * FROM ({pages}) AS merged ORDER BY id COLLATE "C" DESC LIMIT %(limit)s + 1
    ), unread AS (
        SELECT count(*) AS n FROM (
            SELECT 1 FROM mailroom_mail WHERE recipient_id = %(me)s AND read_at IS NULL{readable}
            ORDER BY id COLLATE "C" DESC LIMIT {UNREAD_COUNTED}) AS counted
    )
    SELECT unread.n, page.* FROM unread LEFT JOIN page ON true ORDER BY page.id COLLATE "C" DESC
    """


def read_inbox(
    *,
    caller: Caller,
    status: str = "unread",
    mail_type: str | None = None,
    sent_by: str | None = None,
    left_by: str | None = None,
    cursor: str | None = None,
    limit: int = paging.DEFAULT_LIMIT,
) -> InboxPage:
    """One page of the caller's inbox, newest first. Looking consumes nothing.

    `left_by` names a deactivated agent whose unread mail is the caller's now. `unread` counts up
    to 1,000. Raises Denied INVALID_PARAMS for an unknown cursor, NOT_FOUND for the mail of any
    other agent.
    """
    before = paging.decode(cursor, prefix="MAIL-")
    holder = caller.agent if left_by is None else _find_leaver(caller, left_by)
    if left_by is not None:
        status = "unread"
    sender = caller.policy.resolve(sent_by) if sent_by is not None else None
    text = page_query(
        status,
        typed=mail_type is not None,
        sent_by=sent_by is not None,
        paged=before is not None,
        left=left_by is not None,
    )
    values: dict[str, Any] = {
        "writers": [] if left_by is None else readable_writers(caller.policy, caller.agent),
        "me": holder.id,
        "type": mail_type,
        "from": sender.handle if sender else sent_by,
        "before": before,
        "limit": limit,
    }
    with connection.cursor() as db:
        db.execute(text, values)
        rows = db.fetchall()
    unread = rows[0][0]
    mails = [
        cast("MailHeader", dict(zip(NAMES, row[1:], strict=True)))
        for row in rows
        if row[1] is not None
    ]
    shown, more = paging.cut(mails, limit, lambda mail: mail["mail_id"])
    return {"mails": shown, "next_cursor": more, "unread": unread}


def _find_leaver(caller: Caller, name: str) -> Agent:
    """A deactivated agent whose unread mail is the caller's now. Raises Denied NOT_FOUND."""
    leaver = caller.policy.resolve(name)
    if leaver is None or not may_read_left_mail(caller.agent, leaver):
        raise refuse(
            Code.NOT_FOUND,
            "no agent of that name has left you mail",
            "leave `left_by` out to read your own inbox",
            rule="unread mail of a deactivated agent is its superior's (spec: mail 34)",
        )
    return leaver


def read_mail(
    *, caller: Caller, mail_id: str, now: datetime, attachment: str | None = None
) -> WholeMail:
    """One mail whole, for its sender or recipient; reading marks it for its recipient only.

    The next agent above a deactivated one reads its unread mail. `attachment` is the digest of one
    to read whole. Raises Denied NOT_FOUND for any other mail, and for an attachment that it lacks.
    """
    mails = Mail.objects.select_related("escalation")
    row = mails.filter(id=mail_id, organisation_id=caller.organisation_id).first()
    if row is None or not _may_read(row, caller):
        raise refuse(
            Code.NOT_FOUND,
            "you have no such mail",
            "list yours with read_inbox",
            rule="a mail is read by its sender and its recipient",
        )
    is_party = caller.agent.id in (row.sender_id, row.recipient_id)
    attachments = open_attachments(row, attachment, None if is_party else caller)
    if row.recipient_id == caller.agent.id and row.read_at is None:
        row = mark_read(caller, row, now)
    mail: WholeMail = {
        "mail_id": row.id,
        "from": row.from_agent,
        "to": row.to_agent,
        "type": row.mail_type,
        "subject": row.subject,
        "priority": row.priority,
        "status": MailStatus(row.status),
        "created_at": row.created_at,
        "read_at": row.read_at,
        "contract_ref": row.contract_ref,
        "reply_to": row.reply_to_id,
        "body": row.body,
        "attachments": attachments,
        "route_log": row.route_log,
    }
    escalation = getattr(row, "escalation", None)
    if escalation is not None:
        mail["escalation_id"] = str(escalation.id)
    return mail


def _may_read(row: Mail, caller: Caller) -> bool:
    if caller.agent.id in (row.sender_id, row.recipient_id):
        return True
    recipient = caller.policy.by_id.get(row.recipient_id or 0)
    if row.read_at is not None or not may_read_left_mail(caller.agent, recipient):
        return False
    is_known = bool(row.writers) or row.from_agent == BOARD or row.quoted is not None
    return is_known and set(row.writers) <= set(readable_writers(caller.policy, caller.agent))


def mark_read(caller: Actor, row: Mail, now: datetime) -> Mail:
    """Mark it once; of two readers at the same time, the first one's time is kept."""
    before = row.status
    row.mark_read(at=now)
    change = Swap(
        model=Mail,
        key=row.id,
        version=row.version,
        state=("status", before, row.status),
        values={"read_at": now},
    )
    event = Event.by(caller, Action.MAIL_READ, at=now, subject=f"mail:{row.id}")
    if swap(change, [event_cte(event)]):
        return row
    return Mail.objects.select_related("escalation").get(id=row.id)
