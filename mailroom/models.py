"""Mails, blocked mails, contact grants, escalations, outgoing notices (Spec: mail 2, mail 36)."""

from __future__ import annotations

from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Collate, Now
from django.utils.translation import gettext

from core.closed_sets import one_of
from core.limits import MAX_SUBJECT
from mailroom.escalations.models import Escalation
from mailroom.outgoing.models import OutgoingNotice
from mailroom.rules import Channel
from mailroom.vocabulary import MAIL_MACHINE, MailStatus
from orgchart.models import Agent, Organisation
from orgchart.policy.vocabulary import BOARD

__all__ = ["ContactGrant", "Escalation", "Mail", "MailRejection", "OutgoingNotice", "Priority"]

NEWEST = Collate("id", "C").desc()
"""Newest first, in an order that the primary key does not have: PostgreSQL then always reads an
inbox page from an index that begins with the recipient."""

SYSTEM = "system"
"""The sender of system mail; no agent may take the name."""

UNREAD = Q(read_at=None)


def inbox_of(name: str, condition: Q) -> list[models.Index]:
    """An index for each way to filter the read, or the unread, mails of an inbox."""
    ways = {"": (), "_type": ("mail_type",), "_from": ("from_agent",)}
    ways["_from_type"] = ("from_agent", "mail_type")
    return [
        models.Index("recipient", *columns, NEWEST, condition=condition, name=name + way)
        for way, columns in ways.items()
    ]


class Priority(models.TextChoices):
    """How urgent a mail or contract is (Spec: mail 2)."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class Mail(models.Model):
    """One delivered mail. Its id begins with its time, so an inbox is a range of its index."""

    id = models.CharField(primary_key=True, max_length=32)
    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    sender = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="+", db_index=False)
    recipient = models.ForeignKey(
        Agent, models.PROTECT, null=True, related_name="+", db_index=False
    )
    from_agent = models.CharField(max_length=64)
    to_agent = models.CharField(max_length=64)
    mail_type = models.CharField(max_length=32)
    subject = models.CharField(max_length=MAX_SUBJECT)
    body = models.TextField()
    priority = models.CharField(
        max_length=8, choices=Priority.choices, default=Priority.MEDIUM, db_default=Priority.MEDIUM
    )
    attachments = models.JSONField(default=list, db_default=[])
    reply_to = models.ForeignKey(
        "self", models.PROTECT, null=True, related_name="replies", db_index=False
    )
    contract_ref = models.CharField(max_length=32, null=True)  # noqa: DJ001  absent is not ''
    status = MAIL_MACHINE.field(max_length=16)
    version = models.PositiveSmallIntegerField(default=1, db_default=1)
    created_at = models.DateTimeField(db_default=Now())
    delivered_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(null=True)
    rejected_reason = models.TextField(null=True)  # noqa: DJ001  Spec: mail 2
    route_log = models.JSONField(null=True)
    quoted = ArrayField(models.BigIntegerField(), null=True)
    """The agents whose words a system mail quotes; null for mail of agents and people."""

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index("recipient", NEWEST, name="mail_inbox"),
            *inbox_of("mail_unread", UNREAD),
            *inbox_of("mail_read", ~UNREAD),
            models.Index(
                fields=["organisation", "id"],
                condition=Q(recipient=None, read_at=None),
                name="mail_board_unread",
            ),
            models.Index(fields=["sender", "-id"], name="mail_sent"),
            models.Index(fields=["organisation", "-id"], name="mail_organisation"),
            models.Index(
                fields=["contract_ref"],
                condition=Q(contract_ref__isnull=False),
                name="mail_contract",
            ),
            models.Index(
                fields=["reply_to"], condition=Q(reply_to__isnull=False), name="mail_replies"
            ),
            models.Index(
                fields=["priority", "-id"], condition=~Q(priority="medium"), name="mail_urgency"
            ),
        ]
        constraints = [
            one_of("priority", Priority, name="mail_priority_known"),
            one_of("status", MailStatus, name="mail_status_known"),
            models.CheckConstraint(
                condition=Q(read_at=None) | Q(status=MailStatus.READ), name="mail_read_is_marked"
            ),
            models.CheckConstraint(
                condition=Q(sender__isnull=False) | Q(from_agent__in=[SYSTEM, BOARD]),
                name="mail_has_a_sender",
            ),
            models.CheckConstraint(
                condition=Q(recipient__isnull=False) | Q(to_agent=BOARD),
                name="mail_has_a_recipient",
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def writers(self) -> list[int]:
        """The ids of the agents whose words it holds."""
        return [self.sender_id] if self.sender_id is not None else self.quoted or []

    @MAIL_MACHINE.step("deliver", status)
    def deliver(self, *, at: datetime) -> None:
        """It is in its recipient's inbox."""
        self.delivered_at = at

    @MAIL_MACHINE.step("fail", status)
    def fail(self, *, reason: str) -> None:
        """It could not be delivered."""
        self.rejected_reason = reason

    @MAIL_MACHINE.step("reject", status)
    def reject(self, *, reason: str) -> None:
        """A rule refused it."""
        self.rejected_reason = reason

    @MAIL_MACHINE.step("mark_read", status)
    def mark_read(self, *, at: datetime) -> None:
        """Its recipient has read it."""
        self.read_at = at


class MailRejection(models.Model):
    """One blocked mail (Spec: mail 18). Insert-only."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    from_agent = models.CharField(max_length=64)
    to_agent = models.CharField(max_length=64)
    mail_type = models.CharField(max_length=32, null=True)  # noqa: DJ001  Spec: mail 2
    code = models.CharField(max_length=32)
    reason = models.TextField()
    attempted_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-id"]
        verbose_name = "blocked mail"
        indexes = [
            models.Index(fields=["organisation", "-id"], name="rejection_organisation"),
            models.Index(fields=["from_agent", "-id"], name="rejection_from"),
            models.Index(fields=["code", "-id"], name="rejection_code"),
        ]

    def __str__(self) -> str:
        return f"{self.from_agent} -> {self.to_agent}: {self.code}"


class ContactGrant(models.Model):
    """A contact that a contract permits between two agents, for some types, until it ends."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+", db_index=False)
    contract_ref = models.CharField(max_length=32)
    sender = models.ForeignKey(Agent, models.CASCADE, related_name="+")
    recipient = models.ForeignKey(Agent, models.CASCADE, related_name="+", db_index=False)
    types = models.JSONField(default=list)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-opened_at"]
        verbose_name = "temporary contact permission"
        indexes = [
            models.Index(fields=["organisation", "-id"], name="grant_organisation"),
            models.Index(
                fields=["contract_ref"], condition=Q(closed_at=None), name="grant_contract_open"
            ),
            models.Index(fields=["recipient", "-id"], name="grant_recipient"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["contract_ref", "sender", "recipient"], name="grant_once"
            ),
            models.CheckConstraint(condition=~Q(sender=F("recipient")), name="grant_between_two"),
        ]

    def __str__(self) -> str:
        return gettext("%(sender)s -> %(recipient)s under %(contract)s") % {
            "sender": self.sender,
            "recipient": self.recipient,
            "contract": self.contract_ref,
        }

    @property
    def channel(self) -> Channel:
        """The grant as the rules read it."""
        return Channel(self.contract_ref, self.sender_id, self.recipient_id, frozenset(self.types))
