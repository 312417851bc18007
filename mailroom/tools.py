"""What agents can do with mail."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from core.params import (
    Description,
    MailBody,
    Name,
    Page,
    Params,
    Path,
    PriorityName,
    Reference,
    RowId,
    Title,
)
from mailroom import inbox, services
from mailroom.delivery import MailDraft
from mailroom.escalations import services as escalations
from mailroom.results import InboxPage, SentEscalation, SentMail, WholeMail
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool


class Attachment(Params):
    """A file of the company tree that the sender may read."""

    path: Path
    description: Description = ""


class SendMail(Params):
    """A mail to one contact (Spec: mail 2)."""

    to: Name = Field(description="handle, address or alias")
    type: Name = Field(description="one that you may send to this recipient")
    subject: Title
    body: MailBody
    priority: PriorityName = "medium"
    attachments: list[Attachment] = Field(default_factory=list, max_length=20)
    reply_to: Reference | None = Field(None, description="mail it answers")
    contract_ref: Reference | None = None
    submits: bool = Field(False, description="submits the work of contract_ref")


@tool("send_mail", group=ToolGroup.MAIL, modes=ANY_MODE)
def send_mail(caller: Caller, params: SendMail, now: datetime) -> SentMail:
    """Send a mail to one of your contacts."""
    draft = MailDraft(
        to=params.to,
        mail_type=params.type,
        subject=params.subject,
        body=params.body,
        priority=params.priority,
        attachments=[{"path": a.path, "description": a.description} for a in params.attachments],
        reply_to=params.reply_to,
        contract_ref=params.contract_ref,
        submits=params.submits,
    )
    return services.send_mail(caller=caller, draft=draft, now=now)


class Escalate(Params):
    """A problem for the direct superior (Spec: escalation 3)."""

    subject: Title
    body: MailBody
    contract_ref: Reference | None = None
    follows: RowId | None = Field(None, description="escalation_id that this repeats or passes on")


@tool("escalate", group=ToolGroup.MAIL, modes=ANY_MODE)
def escalate(caller: Caller, params: Escalate, now: datetime) -> SentEscalation:
    """Send a problem that you cannot solve one step up, to your direct superior."""
    return escalations.escalate(
        caller=caller,
        subject=params.subject,
        body=params.body,
        contract_ref=params.contract_ref,
        follows=int(params.follows) if params.follows else None,
        now=now,
    )


class ReadInbox(Page):
    """A page of the inbox."""

    status: Literal["unread", "read", "all"] = "unread"
    type: Name | None = None
    sent_by: Name | None = Field(None, alias="from", description="who sent it")
    left_by: Name | None = Field(None, description="unread mail of a deactivated agent below you")
    wait: int = Field(0, ge=0, le=30, description="seconds to wait for mail")


@tool(
    "read_inbox",
    source=Source.BUILTIN,
    group=ToolGroup.MAIL,
    modes=ANY_MODE,
    read_only=True,
    waits_for="mails",
)
def read_inbox(caller: Caller, params: ReadInbox, now: datetime) -> InboxPage:
    """List your mails, newest first. Looking marks nothing as read."""
    return inbox.read_inbox(
        caller=caller,
        status=params.status,
        mail_type=params.type,
        sent_by=params.sent_by,
        left_by=params.left_by,
        cursor=params.cursor,
        limit=params.limit,
    )


Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class ReadMail(Params):
    """One mail."""

    mail_id: Reference
    attachment: Digest | None = Field(
        None, description="sha256 of an attachment to read whole, however long it is"
    )


@tool("read_mail", source=Source.BUILTIN, group=ToolGroup.MAIL, modes=ANY_MODE, idempotent=True)
def read_mail(caller: Caller, params: ReadMail, now: datetime) -> WholeMail:
    """Read one mail whole, with its attachments and route log; marks it read for its recipient."""
    return inbox.read_mail(
        caller=caller, mail_id=params.mail_id, attachment=params.attachment, now=now
    )
