"""The page on which the Board adds user feedback: one report, or a file of reports."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminFileFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminSplitDateTimeWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from core.admin.once import OnceForm, SentBefore, make_once
from core.admin.refused import refuse_on_form
from core.database import database_now
from core.decision import Denied
from core.people import person
from core.permissions import Deed
from orgchart.admin.choosing import choose_organisation, redirect_to_organisation
from orgchart.models import Organisation
from tasks.intake.feedback import (
    MAX_AUTHOR,
    MAX_CATEGORY,
    MAX_REPORT,
    FeedbackItem,
    add_feedback,
    read_file,
    read_items,
)
from tasks.pages.common import page_context

TAKE_IN = Deed.TAKE_IN_FEEDBACK.permission
DEFAULT_SOURCE = "admin"
"""The source of a report that was typed without one."""
RATINGS = [("", _("none")), *((str(stars), str(stars)) for stars in range(1, 6))]


class ReportForm(OnceForm):
    """One report, typed by a person."""

    body = forms.CharField(
        label=_("Body"),
        max_length=MAX_REPORT,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 6}),
        help_text=_("What the user said."),
    )
    author = forms.CharField(
        label=_("Author"),
        max_length=MAX_AUTHOR,
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text=_("Who said it."),
    )
    category = forms.CharField(
        label=_("Category"),
        max_length=MAX_CATEGORY,
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text=_("E.g. bug."),
    )
    rating = forms.ChoiceField(
        label=_("Rating"),
        choices=RATINGS,
        required=False,
        widget=UnfoldAdminSelectWidget(),
        help_text=_("5 is best."),
    )
    source = forms.CharField(
        label=_("Source"),
        max_length=64,
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text=format_lazy(_("Where it comes from; default: {source}."), source=DEFAULT_SOURCE),
    )
    received_at = forms.SplitDateTimeField(
        label=_("Received at"),
        required=False,
        widget=UnfoldAdminSplitDateTimeWidget(),
        help_text=_("UTC; default: now."),
    )

    def read(self) -> tuple[str, list[FeedbackItem]]:
        """The source and the report. Raises Denied INVALID_PARAMS."""
        given = {name: value for name, value in self.cleaned_data.items() if value}
        given.pop("number", None)
        return DEFAULT_SOURCE, read_items(given, "feedback")


class UploadForm(OnceForm):
    """A file of reports: all of them are added, or none."""

    file = forms.FileField(
        label=_("File"),
        widget=UnfoldAdminFileFieldWidget(attrs={"accept": ".csv,.json"}),
        help_text=_(
            "CSV with a header line, or JSON: one object or a list. Each needs a body; "
            "author, category, source, rating (1-5), id and received_at are optional. "
            "A report with a known id is not added again."
        ),
    )

    def clean_file(self) -> Any:
        """Refuse a file that is too large to be read at once."""
        file = self.cleaned_data["file"]
        if file.size > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 1024
            message = gettext("The file has more than %(most)s KiB: send it in parts.")
            raise forms.ValidationError(message % {"most": most})
        return file

    def read(self) -> tuple[str, list[FeedbackItem]]:
        """The file's name as the source, and what it holds. Raises Denied INVALID_PARAMS."""
        file = self.cleaned_data["file"]
        return file.name[:64], read_file(file.name, file.read())


def intake_page(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Ask for a report or a file; on POST add it, and show the list."""
    if not request.user.has_perm(TAKE_IN):
        raise PermissionDenied(TAKE_IN)
    organisation, context = page_context(model_admin, request, gettext("Add feedback"))
    if organisation is None:
        return choose_organisation(request, context)
    if (there := redirect_to_organisation(request, organisation)) is not None:
        return there
    sent = request.POST if request.method == "POST" else None
    by_file = sent is not None and "_file" in sent
    report = ReportForm(None if by_file else sent)
    file = UploadForm(sent, request.FILES) if by_file else UploadForm()
    chosen = file if by_file else report
    back = reverse("admin:tasks_feedback_changelist")
    if chosen.is_valid():
        try:
            said = make_once(request, chosen, lambda: _add(request, organisation, chosen))
        except SentBefore:
            return HttpResponseRedirect(back)
        if said:
            model_admin.message_user(request, said, messages.SUCCESS)
            return HttpResponseRedirect(back)
    context |= {
        "forms": (
            (report, "report", gettext("One report")),
            (file, "file", gettext("A file of reports")),
        ),
        "media": model_admin.media + report.media + file.media,
        "back": back,
    }
    return TemplateResponse(request, "admin/nexus/feedback_intake.html", context)


def _add(request: HttpRequest, organisation: Organisation, form: ReportForm | UploadForm) -> str:
    """Add the reports and say how many; '' for a refusal, shown on the form and recorded."""
    now = database_now()
    try:
        source, items = form.read()
        kept, known = add_feedback(
            caller=person(request, organisation.id), items=items, source=source, now=now
        )
    except Denied as refusal:
        refuse_on_form(
            request,
            form,
            refusal.deny,
            subject="feedback:admin",
            organisation_id=organisation.id,
            now=now,
        )
        return ""
    return gettext("%(added)s added, %(known)s already known.") % {"added": kept, "known": known}
