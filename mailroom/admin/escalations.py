"""The admin pages of escalations: each is one thread to the Board; the Board answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from core.admin.acts import Act, ActingAdmin, ActRequest, Answer
from core.admin.base import actor_column, choice_column, computed_column
from core.events import text
from core.permissions import Deed
from ledger.history import events_of
from mailroom.admin.mail import ReportAnswerForm, attached
from mailroom.admin.thread import MOST, thread_of
from mailroom.escalations.answers import answer_as_person
from mailroom.escalations.threads import rows_of, version_of
from mailroom.models import Escalation, OutgoingNotice
from mailroom.vocabulary import UNSETTLED

MOST_NAMED = 20
"""Other escalations of its thread that the page of an answer names."""


def _answer(call: ActRequest) -> Answer:
    mail_id = answer_as_person(
        escalation_id=call.row.id,
        text=str(call.data["reply"]),
        expected_version=call.version,
        person=call.person,
        now=call.now,
    )
    return gettext("Answered with %(mail)s.") % {"mail": mail_id}


def _facts(row: Escalation) -> list[tuple[str, str]]:
    return [
        (gettext("Subject"), row.mail.subject),
        (pgettext("sender", "From"), row.sender.handle),
        (pgettext("recipient", "To"), row.recipient.handle if row.recipient else "board"),
        (gettext("State"), row.get_state_display()),
        (gettext("Due"), f"{row.due_at:%Y-%m-%d %H:%M} UTC"),
        *attached(row.mail),
        *_others(row),
    ]


def _others(row: Escalation) -> list[tuple[str, str]]:
    """What else waits in the thread, and is answered with this one (Spec: escalation 21)."""
    rows = rows_of(row).filter(state__in=UNSETTLED).exclude(id=row.id)
    newest = rows.select_related("mail").order_by("-id")[:MOST_NAMED]
    more = rows.count() - MOST_NAMED
    name = gettext("It also answers")
    named = [(name, f"{text(each.mail.subject, 80)}: {text(each.mail.body)}") for each in newest]
    rest = (name, gettext("%(count)s more, on the page of the thread") % {"count": more})
    return [*named, rest] if more > 0 else named


def _chain(row: Escalation) -> list[Escalation]:
    """Every step of the thread, oldest first."""
    root = row.root_id or row.id
    rows = Escalation.objects.filter(Q(id=root) | Q(root_id=root))
    return list(rows.select_related("mail", "sender", "recipient").order_by("id")[:MOST])


def _notices_of(organisation_id: int, at: datetime) -> QuerySet[OutgoingNotice]:
    """The notices that the Board got at that time."""
    return OutgoingNotice.objects.filter(organisation_id=organisation_id, created_at=at)


ANSWER = Act(
    name="answer",
    title=_("Answer for the Board"),
    icon="reply",
    deed=Deed.ANSWER_ESCALATION,
    explanation=_(
        "The sender gets the answer as a mail from the Board, and the recipient of the escalation "
        "gets a system mail. All that waits in the thread is then answered."
    ),
    perform=_answer,
    form=ReportAnswerForm,
    possible=lambda row: row.state in UNSETTLED,
    version=version_of,
    facts=_facts,
    text=lambda row: row.mail.body,
)


@admin.register(Escalation)
class EscalationAdmin(ActingAdmin):
    """Escalations and their answers (Spec: escalation 1)."""

    acts = (ANSWER,)
    change_form_template = "admin/nexus/escalation.html"
    related = ("organisation", "mail", "sender", "recipient")
    list_display = (
        "what",
        "sender",
        "up_to",
        "state_label",
        "due_at",
        "answerer",
        "organisation",
    )
    list_filter = ("organisation", "state", "sender", "recipient", "due_at")
    dated_by = ""  # it has no such column
    in_other_words = ("answered_by",)
    answerer = actor_column("answered_by", _("answered by"))
    search_fields = ("mail__id__exact",)
    search_help_text = _("An escalation's mail (MAIL-…)")

    def row_context(self, request: HttpRequest, row: Escalation) -> dict[str, Any]:
        """The thread, its mails, and the events of this escalation."""
        chain = _chain(row)
        told_board_at = next((each.told_board_at for each in chain if each.told_board_at), None)
        return {
            "escalation": row,
            "chain": chain,
            "told_board_at": told_board_at,
            "board_waits": not told_board_at and any(each.is_notice_missing for each in chain),
            "notices": _notices_of(row.organisation_id, told_board_at) if told_board_at else (),
            "thread": thread_of(row.mail),
            "events": events_of(self.subject_of(row), row.organisation_id),
        }

    what = computed_column(_("about"), lambda row: text(row.mail.subject, 80))

    up_to = computed_column(_("to"), lambda row: str(row.recipient or "board"))

    state_label = choice_column(
        "state",
        _("state"),
        {
            "open": "warning",
            "answered": "success",
            "passed_on": "info",
            "unanswered": "danger",
        },
    )
