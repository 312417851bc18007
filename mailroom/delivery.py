"""The one way into a mailbox: a mail and its event are inserted in one statement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, NotRequired, TypedDict

from pydantic_core import to_json

from core.actions import Action
from core.actors import Actor, System
from core.database import ATTEMPTS, fetch_each, fetch_row
from core.decision import Code, refuse
from core.events import Event
from core.ids import timed_id
from core.limits import MAX_MAIL_BODY, MAX_SUBJECT
from ledger import sql as ledger_sql
from mailroom.models import SYSTEM
from orgchart.policy.compiled import Agent
from orgchart.policy.parties import Party
from orgchart.policy.vocabulary import BOARD
from toolbox.quoting import one_line
from toolbox.wake import wake

COLUMNS = (
    "id, organisation_id, sender_id, recipient_id, from_agent, to_agent, mail_type, subject, body, "
    "priority, attachments, reply_to_id, contract_ref, status, created_at, delivered_at, "
    "route_log, quoted"
)


def mail_sql(source: str) -> str:
    """The INSERT of one mail as text; `source` is a CTE that has one row if it may be delivered."""
    return f"""INSERT INTO mailroom_mail ({COLUMNS})
    SELECT %(m_id)s, %(m_organisation)s, %(m_sender)s::bigint, %(m_recipient)s::bigint,
           %(m_from)s, %(m_to)s, %(m_type)s, %(m_subject)s, %(m_body)s, %(m_priority)s,
           %(m_attachments)s::jsonb, %(m_reply_to)s, %(m_contract_ref)s, 'delivered',
           %(m_at)s, %(m_at)s, %(m_route_log)s::jsonb, %(m_quoted)s::bigint[]
    FROM {source} ON CONFLICT (id) DO NOTHING RETURNING id"""


INSERT_MAIL = f"""
WITH parties AS (
    SELECT 1 WHERE NOT EXISTS (
        SELECT 1 FROM orgchart_agent
        WHERE id IN (%(m_sender)s::bigint, %(m_recipient)s::bigint) AND NOT active)
), mail AS ({mail_sql("parties")}),
ev AS ({ledger_sql.insert("ev", "mail")})
SELECT (SELECT count(*) FROM parties), (SELECT count(*) FROM mail)
"""


class KeptAttachment(TypedDict):
    """A file that a mail names; with the digest of its content once that is kept."""

    path: str
    description: str
    sha256: NotRequired[str]
    bytes: NotRequired[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MailDraft:
    """A mail as its sender writes it: the one value that is decided and then inserted."""

    to: str
    mail_type: str
    subject: str
    body: str
    priority: str = "medium"
    attachments: Sequence[KeptAttachment] = ()
    reply_to: str | None = None
    contract_ref: str | None = None
    submits: bool = False
    quotes: Collection[int] | None = None


def insert_mail(
    draft: MailDraft,
    *,
    recipient: Party,
    route_log: Sequence[str],
    caller: Actor,
    now: datetime,
) -> str:
    """Insert a decided mail and its event in one statement; returns the mail's id.

    The sender is the calling agent, `system` or `board`. Raises Denied RECIPIENT_INACTIVE where
    sender or recipient was deactivated after the policy was read.
    """
    values = partial(_insert_values, draft, recipient, route_log, caller, now)
    mail_id = execute_with_free_id(INSERT_MAIL, values, now)
    wake(recipient.id)
    return mail_id


def _insert_values(
    draft: MailDraft,
    recipient: Party,
    route_log: Sequence[str],
    caller: Actor,
    now: datetime,
    mail_id: str,
) -> dict[str, Any]:
    """The parameters of INSERT_MAIL: the mail and its event."""
    mail = mail_params(draft, caller, recipient, route_log, now)
    details = {"from": mail["m_from"], "to": recipient.handle, "type": draft.mail_type}
    if draft.contract_ref:
        details["contract_ref"] = draft.contract_ref
    event = Event.by(
        caller,
        Action.MAIL_DELIVERED,
        at=now,
        subject=f"mail:{mail_id}",
        for_agent_id=recipient.id,
        kind="mail",
        details=details,
    )
    return mail | {"m_id": mail_id} | ledger_sql.params(event)


def mail_params(
    draft: MailDraft, caller: Actor, recipient: Party, route_log: Sequence[str], now: datetime
) -> dict[str, Any]:
    """The parameters of `mail_sql`, without the id."""
    sender: Agent | None = getattr(caller, "agent", None)
    people = SYSTEM if isinstance(caller, System) else BOARD
    return {
        "m_organisation": caller.organisation_id,
        "m_sender": sender.id if sender else None,
        "m_recipient": recipient.id,
        "m_from": sender.handle if sender else people,
        "m_to": recipient.handle,
        "m_type": draft.mail_type,
        "m_subject": draft.subject,
        "m_body": draft.body,
        "m_priority": draft.priority,
        "m_attachments": to_json(draft.attachments).decode() if draft.attachments else "[]",
        "m_reply_to": draft.reply_to or None,
        "m_contract_ref": draft.contract_ref or None,
        "m_at": now,
        "m_route_log": to_json(route_log).decode(),
        "m_quoted": None if draft.quotes is None else sorted(set(draft.quotes)),
    }


def execute_with_free_id(
    statement: str, values: Callable[[str], Mapping[str, Any]], now: datetime
) -> str:
    """Execute a statement that inserts a mail, with new ids until one is free; returns the id.

    The statement answers (parties that are active, mails inserted). Raises Denied
    RECIPIENT_INACTIVE where the first is 0.
    """
    for _ in range(ATTEMPTS):
        mail_id = timed_id("MAIL", now)
        parties, inserted = fetch_row(statement, values(mail_id))
        if inserted:
            return mail_id
        if not parties:
            raise refuse(
                Code.RECIPIENT_INACTIVE,
                "the sender or the recipient has just been deactivated",
                "look at your contacts again",
                rule="recipient is active (spec: mail 21)",
            )
    raise RuntimeError(f"no free mail id in {ATTEMPTS} attempts")


def send_as(  # noqa: PLR0913  a mail has these parts
    *,
    caller: Actor,
    recipient: Party,
    mail_type: str,
    subject: str,
    body: str,
    now: datetime,
    priority: str = "medium",
    contract_ref: str = "",
    reply_to: str | None = None,
    attachments: Sequence[KeptAttachment] = (),
    rule: str = "",
) -> str:
    """Send what a higher room has decided may be sent: a contract's notice, a report, a verdict.

    The sender is the calling agent; a person's mail comes from `board`. Returns the mail's id.
    """
    draft = MailDraft(
        to=recipient.handle,
        mail_type=mail_type,
        subject=subject[:MAX_SUBJECT],
        body=body[:MAX_MAIL_BODY],
        priority=priority,
        attachments=attachments,
        reply_to=reply_to,
        contract_ref=contract_ref,
    )
    route_log = [f"allowed: {rule}"] if rule else []
    return insert_mail(draft, recipient=recipient, route_log=route_log, caller=caller, now=now)


SYSTEM_ROUTE = ("system notice",)


class Letter(NamedTuple):
    """One of many mails of the system."""

    recipient: Agent
    subject: str
    body: str
    quotes: Collection[int]


def build_system_mail(
    *,
    recipient: Party,
    subject: str,
    body: str,
    quotes: Collection[int],
    contract_ref: str = "",
    reply_to: str | None = None,
) -> MailDraft:
    """A mail of the system itself, cut to the size of a mail; its subject is one line.

    A caller quotes what others wrote into the body by `one_line` and `as_lines` (Spec: mail 45),
    and names in `quotes` the ids of the agents among them (Spec: mail 34).
    """
    return MailDraft(
        to=recipient.handle,
        mail_type="info",
        subject=one_line(subject)[:MAX_SUBJECT],
        body=body[:MAX_MAIL_BODY],
        reply_to=reply_to,
        contract_ref=contract_ref,
        quotes=quotes,
    )


def send_system_mail(
    *,
    organisation_id: int,
    recipient: Agent,
    subject: str,
    body: str,
    quotes: Collection[int],
    now: datetime,
    contract_ref: str = "",
    reply_to: str | None = None,
    system: str = "mailroom",
) -> str:
    """Insert a mail of the system into an agent's inbox; returns its id."""
    draft = build_system_mail(
        recipient=recipient,
        subject=subject,
        body=body,
        quotes=quotes,
        contract_ref=contract_ref,
        reply_to=reply_to,
    )
    return insert_mail(
        draft,
        recipient=recipient,
        route_log=SYSTEM_ROUTE,
        caller=System(name=system, organisation_id=organisation_id),
        now=now,
    )


def send_system_mails(
    letters: Sequence[Letter], *, organisation_id: int, now: datetime
) -> Sequence[Agent]:
    """Insert many mails of the system at once; returns the recipients, but who has just left."""
    system = System(name="mailroom", organisation_id=organisation_id)
    values = [
        partial(
            _insert_values,
            build_system_mail(**letter._asdict()),
            letter.recipient,
            SYSTEM_ROUTE,
            system,
            now,
        )
        for letter in letters
    ]
    answers = fetch_each(INSERT_MAIL, [each(timed_id("MAIL", now)) for each in values])
    reached = []
    for letter, each, answer in zip(letters, values, answers, strict=True):
        parties, inserted = answer or (0, 0)
        if parties and not inserted:  # the id was taken
            inserted = bool(execute_with_free_id(INSERT_MAIL, each, now))
        if inserted:
            reached.append(letter.recipient)
    wake(*(agent.id for agent in reached))
    return reached
