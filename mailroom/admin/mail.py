"""The admin pages of mail: to read only."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Q, QuerySet
from django.db.models.expressions import OrderBy
from django.http import HttpRequest
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import DropdownFilter
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldBooleanSwitchWidget

from core.admin.acts import SEEN_IS_MISSING, Act, ActingAdmin, ActRequest, Answer
from core.admin.base import choice_column, computed_column
from core.admin.bounded import newest, newest_first
from core.admin.once import OnceForm
from core.events import text
from core.people import signed_in
from core.permissions import Deed
from mailroom.admin.thread import thread_of
from mailroom.board_answers import answer_report, mark_report_read
from mailroom.models import NEWEST, Mail
from orgchart.models import MailTypeRule
from orgchart.people.members import visible_agents, visible_organisations


class TypeFilter(DropdownFilter):
    """By mail type, of all that any organisation knows."""

    title = _("type")
    parameter_name = "mail_type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the names of the types; a small table, whatever the mail table holds."""
        mine = visible_organisations(signed_in(request))
        rows = MailTypeRule.objects.filter(organisation__in=mine)
        names = rows.order_by("name").values_list("name", flat=True).distinct()
        return [(name, name) for name in names]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the mails of the chosen type."""
        chosen = self.value()
        return queryset.filter(mail_type=text(chosen)) if chosen else queryset


class ReadFilter(DropdownFilter):
    """Whether its recipient has read it."""

    title = _("reading")
    parameter_name = "reading"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the two states."""
        return [("unread", gettext("unread")), ("read", gettext("read"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the mails in that state."""
        if self.value() not in ("unread", "read"):
            return queryset
        return queryset.filter(read_at__isnull=self.value() == "unread")


class ReportAnswerForm(OnceForm):
    """The Board's answer, and the version that was read."""

    version = forms.IntegerField(widget=forms.HiddenInput, error_messages=SEEN_IS_MISSING)

    reply = forms.CharField(
        label=_("Reply"),
        max_length=8000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 8}),
        help_text=_("It reaches the sender as a mail from the Board, in this thread."),
    )


def _answer(call: ActRequest) -> Answer:
    mail_id = answer_report(
        mail_id=call.row.id,
        text=str(call.data["reply"]),
        person=call.person,
        now=call.now,
        expected_version=call.version,
    )
    return gettext("Answered with %(mail)s.") % {"mail": mail_id}


class MarkReadForm(forms.Form):
    """What is marked as read."""

    with_earlier = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget(),
        label=_("And all that its sender sent the Board before"),
        help_text=_("Escalations keep waiting for an answer."),
    )


def _mark_read(call: ActRequest) -> Answer:
    count = mark_report_read(
        mail_id=call.row.id,
        person=call.person,
        now=call.now,
        with_earlier=bool(call.data["with_earlier"]),
    )
    if count > 1:
        return gettext("%(count)s mails are marked as read.") % {"count": count}
    if not count:
        return gettext("It was answered, or marked as read, before.")
    return gettext("Marked as read: no answer is needed.")


def _facts(row: Mail) -> list[tuple[str, str]]:
    return [
        (gettext("Subject"), row.subject),
        (pgettext("sender", "From"), row.from_agent),
        *attached(row),
    ]


def attached(row: Mail) -> list[tuple[str, str]]:
    """The files that a mail brings, for the page on which a person decides on it."""
    name = gettext("Attachment")
    return [(name, f"{each['path']} {each.get('description') or ''}") for each in row.attachments]


MARK_READ = Act(
    name="mark-read",
    title=_("No answer needed"),
    icon="mark_email_read",
    deed=Deed.ANSWER_REPORT,
    explanation=_("The mail is marked as read by the Board. Its sender gets no answer."),
    perform=_mark_read,
    form=MarkReadForm,
    possible=lambda row: row.recipient_id is None and row.sender_id and row.read_at is None,
    facts=_facts,
    text=lambda row: row.body,
)
ANSWER = Act(
    name="answer",
    title=_("Answer for the Board"),
    icon="reply",
    deed=Deed.ANSWER_REPORT,
    explanation=_("The sender gets the answer as a mail from the Board."),
    perform=_answer,
    form=ReportAnswerForm,
    possible=lambda row: row.recipient_id is None and row.sender_id is not None,
    version=lambda row: int(row.version),
    facts=_facts,
    text=lambda row: row.body,
)


@admin.register(Mail)
class MailAdmin(ActingAdmin):
    """Every delivered mail, shown in its thread with the route it took."""

    acts = (ANSWER, MARK_READ)
    list_without = ("body", "attachments", "route_log")
    list_display = (
        "subject_line",
        "from_agent",
        "to_agent",
        "type_label",
        "urgency",
        "reading",
        "created_at",
        "organisation",
    )
    list_display_links = ("subject_line",)
    list_filter = (
        "organisation",
        "sender",
        "recipient",
        "priority",
        "created_at",
        TypeFilter,
        ReadFilter,
    )
    served = ("priority",)
    list_select_related = ("organisation",)
    ordering = ("-id",)
    search_fields = ("id",)
    search_help_text = _(
        "A mail (MAIL-…), a contract (CON-…), an agent's handle, or words of a recent subject"
    )
    change_form_template = "admin/nexus/mail.html"

    def get_ordering(self, request: HttpRequest) -> list[Any]:
        """Newest first."""
        return [self.newest_first(request)]

    def find(self, request: HttpRequest, rows: QuerySet[Mail], term: str) -> QuerySet[Mail]:
        """Find by one column, chosen by the term's form, so that an index can serve."""
        if term.startswith("MAIL-"):
            return rows.filter(id__startswith=term)
        if term.startswith("CON-"):
            return rows.filter(contract_ref=term)
        agents = visible_agents(signed_in(request), term)
        if agents:
            return rows.filter(Q(sender__in=agents) | Q(recipient__in=agents))
        few = newest(rows, request, self)
        return few.filter(subject__icontains=term)

    def newest_first(self, request: HttpRequest) -> OrderBy:
        """For one recipient as the index of its inbox is ordered."""
        return NEWEST if request.GET.get("recipient__id__exact") else newest_first()

    def row_context(self, request: HttpRequest, mail: Mail) -> dict[str, Any]:
        """The mail in its thread."""
        return {"thread": thread_of(mail)}

    subject_line = computed_column(
        _("subject"), lambda mail: text(mail.subject, 80) or gettext("(no subject)")
    )

    type_label = computed_column(
        _("type"),
        lambda mail: mail.mail_type,
        label={
            "escalation": "danger",
            "contract": "primary",
            "verdict": "warning",
            "report": "info",
        },
    )

    urgency = choice_column(
        "priority",
        _("priority"),
        {"critical": "danger", "high": "warning", "medium": "default", "low": "default"},
    )

    reading = computed_column(
        _("reading"),
        lambda mail: ("read", gettext("read")) if mail.read_at else ("unread", gettext("unread")),
        label={"read": "success", "unread": "warning"},
    )
