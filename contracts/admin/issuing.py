"""The page on which the Board issues a contract to the top agent (Spec: people 17)."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminSplitDateTimeWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_for_board
from contracts.models import Contract
from core.admin.contexts import admin_context
from core.admin.once import OnceForm, SentBefore, make_once
from core.admin.refused import refuse_on_form
from core.database import database_now
from core.decision import Denied
from core.limits import MAX_SUBJECT
from core.people import person
from core.permissions import Deed
from mailroom.models import Priority
from orgchart.admin.choosing import (
    choose_organisation,
    chosen_organisation,
    redirect_to_organisation,
)
from orgchart.models import Organisation
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import BOARD, ToolMode
from orgchart.policy_cache import current_policy

ISSUE = Deed.ISSUE_CONTRACT.permission


def _priorities() -> list[tuple[str, Any]]:
    """The priorities of a contract, with their names in the language of the page."""
    return list(Contract._meta.get_field("priority").choices or ())  # noqa: SLF001  Django's public name


class IssueForm(OnceForm):
    """What the Board orders."""

    to = forms.ChoiceField(
        label=pgettext_lazy("recipient", "To"),
        widget=UnfoldAdminSelectWidget(),
        help_text=_("Who reports to the Board."),
    )
    title = forms.CharField(
        label=_("Title"), max_length=MAX_SUBJECT, widget=UnfoldAdminTextInputWidget()
    )
    body = forms.CharField(
        label=_("Body"),
        max_length=8000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 10}),
        help_text=_("What is to be done, and how it is known to be done."),
    )
    priority = forms.ChoiceField(
        label=_("Priority"),
        choices=_priorities,
        initial=Priority.MEDIUM,
        widget=UnfoldAdminSelectWidget(),
    )
    deadline = forms.SplitDateTimeField(
        label=_("Deadline"),
        required=False,
        widget=UnfoldAdminSplitDateTimeWidget(),
        help_text=_("UTC; may stay empty."),
    )
    mode = forms.ChoiceField(
        label=_("Mode"),
        widget=UnfoldAdminSelectWidget(),
        initial=ToolMode.CHAT_SAFE.value,
        help_text=_("coding: accepting the contract opens that mode for the agent's session."),
    )

    def __init__(self, *args: Any, policy: Policy, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        top = [a.handle for a in policy.agents.values() if a.active and a.superior == BOARD]
        self._offer("to", top)
        self._offer("mode", [m.value for m in ToolMode if m in policy.enabled_modes])

    def _offer(self, name: str, values: list[str]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  narrows the type
        field.choices = [(v, v) for v in values]

    def draft(self) -> ContractDraft:
        """The contract as it was written."""
        data = self.cleaned_data
        return ContractDraft(
            to=data["to"],
            title=data["title"],
            body=data["body"],
            priority=data["priority"],
            deadline=data["deadline"],
            mode=ToolMode(data["mode"]),
        )


def issue_page(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Ask for the terms; on POST issue, and show the contract."""
    if not request.user.has_perm(ISSUE):
        raise PermissionDenied(ISSUE)
    context = admin_context(model_admin, request, gettext("Issue a contract"))
    organisation = chosen_organisation(request)
    if organisation is None:
        return choose_organisation(request, context)
    if (there := redirect_to_organisation(request, organisation)) is not None:
        return there
    form = IssueForm(
        request.POST if request.method == "POST" else None,
        policy=current_policy(organisation.id),
    )
    if request.method == "POST" and form.is_valid():
        try:
            contract_id = make_once(request, form, lambda: _issued(request, organisation, form))
        except SentBefore:
            return HttpResponseRedirect(reverse("admin:contracts_contract_changelist"))
        if contract_id:
            model_admin.message_user(
                request,
                gettext("%(contract)s is issued to %(agent)s.")
                % {"contract": contract_id, "agent": form.cleaned_data["to"]},
                messages.SUCCESS,
            )
            address = reverse("admin:contracts_contract_change", args=[contract_id])
            return HttpResponseRedirect(address)
    context |= {
        "form": form,
        "organisation": organisation,
        "media": model_admin.media + form.media,
        "subtitle": organisation.name,
        "back": reverse("admin:contracts_contract_changelist"),
    }
    return TemplateResponse(request, "admin/nexus/issue.html", context)


def _issued(request: HttpRequest, organisation: Organisation, form: IssueForm) -> str:
    """The contract's id, or '' with the refusal on the form and in the ledger."""
    now = database_now()
    try:
        found = issue_for_board(
            person=person(request, organisation.id), draft=form.draft(), now=now
        )
    except Denied as refusal:
        refuse_on_form(
            request,
            form,
            refusal.deny,
            subject=f"organisation:{organisation.slug}",
            organisation_id=organisation.id,
            now=now,
        )
        return ""
    return str(found["contract_id"])
