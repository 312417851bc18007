"""What of the mailroom waits for people: escalations, reports to the Board, notices that failed."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.permissions import Deed
from core.waiting import Choice, Viewer, Waiting, WaitingKind
from mailroom.models import Escalation, Mail, OutgoingNotice
from mailroom.vocabulary import UNSETTLED, NoticeState


def _escalations(viewer: Viewer) -> QuerySet[Any]:
    """What has come up to the Board: addressed to it, or unanswered until it was notified."""
    at_board = (
        Q(recipient=None) | Q(told_board_at__isnull=False) | Q(board_waits_since__isnull=False)
    )
    rows = Escalation.objects.filter(at_board, state__in=UNSETTLED)
    return viewer.sees(rows).select_related("mail", "sender", "recipient", "organisation")


def _show_escalation(row: Escalation) -> Waiting:
    to = row.recipient.handle if row.recipient else "board"
    return Waiting(
        title=row.mail.subject,
        asked_by=row.sender.handle,
        since=row.mail.created_at,
        due=row.due_at,
        detail="" if to == "board" else gettext("%(agent)s did not answer") % {"agent": to},
    )


def _reports(viewer: Viewer) -> QuerySet[Any]:
    """Unread mail to the Board; an escalation waits as one."""
    rows = Mail.objects.filter(recipient=None, read_at=None, sender__isnull=False)
    # As an outer join PostgreSQL would read all escalations, where many mails are unread.
    rows = rows.exclude(Exists(Escalation.objects.filter(mail_id=OuterRef("id"))))
    return viewer.sees(rows).select_related("organisation").defer("body", "route_log")


def _show_report(row: Mail) -> Waiting:
    return Waiting(
        title=row.subject,
        asked_by=row.from_agent,
        since=row.created_at,
        detail=row.contract_ref or "",
    )


def _notices(viewer: Viewer) -> QuerySet[Any]:
    rows = OutgoingNotice.objects.filter(state=NoticeState.DEAD)
    return viewer.sees(rows).select_related("organisation")


def _show_notice(row: OutgoingNotice) -> Waiting:
    return Waiting(
        title=str(row.payload["data"]["subject"]),
        asked_by=gettext("%(channel)s to %(target)s")
        % {"channel": row.get_channel_display(), "target": row.place},
        since=row.settled_at or row.created_at,
        detail=row.last_problem[:120],
    )


KINDS = (
    WaitingKind(
        title=_("Escalation"),
        icon="escalator_warning",
        deed=Deed.ANSWER_ESCALATION,
        rows=_escalations,
        since="mail__created_at",
        show=_show_escalation,
        choices=(Choice(_("Answer"), "answer"),),
    ),
    WaitingKind(
        title=_("Report to the Board"),
        icon="mark_email_unread",
        deed=Deed.ANSWER_REPORT,
        rows=_reports,
        since="created_at",
        show=_show_report,
        choices=(
            Choice(_("Answer"), "answer"),
            Choice(_("No answer needed"), "mark-read"),
        ),
    ),
    WaitingKind(
        title=_("Notice that failed"),
        icon="outgoing_mail",
        deed=Deed.RESEND_NOTICE,
        rows=_notices,
        since="settled_at",
        show=_show_notice,
        choices=(Choice(_("Send again"), "resend"),),
    ),
)
