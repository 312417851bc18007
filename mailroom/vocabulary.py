"""The states of mails, escalations and outgoing notices, and the steps between them."""

from __future__ import annotations

from enum import StrEnum

from core.machines import Machine, Step


class MailStatus(StrEnum):
    """Where a mail is (Spec: mail 2). Delivery is one statement that inserts it as `delivered`.

    Mail that waits as `sent` may become `failed` or `rejected`. What `send_mail` refuses is no
    mail: it is kept as a mail rejection.
    """

    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"
    REJECTED = "rejected"


MAIL_MACHINE = Machine(
    name="mail",
    states=MailStatus,
    initial=MailStatus.SENT,
    steps={
        "deliver": Step((MailStatus.SENT,), MailStatus.DELIVERED, by="system"),
        "mark_read": Step((MailStatus.DELIVERED,), MailStatus.READ, by="recipient"),
        "fail": Step((MailStatus.SENT,), MailStatus.FAILED, by="system"),
        "reject": Step((MailStatus.SENT,), MailStatus.REJECTED, by="system"),
    },
)


class EscalationState(StrEnum):
    """What became of an escalation (Spec: escalation 17)."""

    OPEN = "open"
    ANSWERED = "answered"
    PASSED_ON = "passed_on"
    UNANSWERED = "unanswered"


UNSETTLED = (EscalationState.OPEN, EscalationState.UNANSWERED)
"""An answer settles these, in time or late."""

ESCALATION_MACHINE = Machine(
    name="escalation",
    states=EscalationState,
    initial=EscalationState.OPEN,
    steps={
        "answer": Step(UNSETTLED, EscalationState.ANSWERED, by="recipient or Board"),
        "pass_on": Step(UNSETTLED, EscalationState.PASSED_ON, by="recipient or schedule"),
        "time_out": Step((EscalationState.OPEN,), EscalationState.UNANSWERED, by="schedule"),
    },
)


class NoticeState(StrEnum):
    """Where an outgoing notice is."""

    PENDING = "pending"
    SENT = "sent"
    DEAD = "dead"


NOTICE_MACHINE = Machine(
    name="outgoing_notice",
    states=NoticeState,
    initial=NoticeState.PENDING,
    steps={
        "mark_sent": Step((NoticeState.PENDING,), NoticeState.SENT, by="schedule"),
        "give_up": Step((NoticeState.PENDING,), NoticeState.DEAD, by="schedule"),
        "resend": Step((NoticeState.DEAD,), NoticeState.PENDING, by="Board"),
    },
)
