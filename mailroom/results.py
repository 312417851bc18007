"""What the mailroom's tools return."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from core.params import wire_result
from mailroom.vocabulary import MailStatus

_FromAndTo = TypedDict("_FromAndTo", {"from": str, "to": str})


@wire_result
class MailHeader(_FromAndTo):
    """One mail of a list, without its body."""

    mail_id: str
    type: str
    subject: str
    priority: str
    status: MailStatus
    created_at: datetime
    read_at: datetime | None
    contract_ref: str | None
    reply_to: str | None


@wire_result
class AttachedFile(TypedDict):
    """A file as it was when it was attached."""

    path: str
    description: str
    sha256: NotRequired[str]
    bytes: NotRequired[int]
    text: NotRequired[
        Annotated[str, Field(description="its content; of a long one only if it was asked for")]
    ]
    base64: NotRequired[
        Annotated[str, Field(description="its content where it is no text; only if asked for")]
    ]


@wire_result
class WholeMail(MailHeader):
    """One mail with its body, attachments and route."""

    body: str
    attachments: list[AttachedFile]
    route_log: Annotated[
        list[str] | None, Field(description="who sent it and the rule that allowed it")
    ]
    escalation_id: NotRequired[
        Annotated[str, Field(description="names the escalation in `answers` and `follows`")]
    ]


@wire_result
class InboxPage(TypedDict):
    """One page of an inbox, newest first."""

    mails: list[MailHeader]
    next_cursor: str | None
    unread: Annotated[int, Field(description="unread mails, counted up to 1,000")]


@wire_result
class SentMail(TypedDict):
    """A mail that was delivered."""

    mail_id: str
    status: Literal["delivered"]
    created_at: datetime


@wire_result
class SentEscalation(TypedDict):
    """An escalation that was delivered and waits for an answer."""

    mail_id: str
    escalation_id: str
    to: Annotated[str, Field(description="the superior it was sent to")]
