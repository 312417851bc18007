"""The humans' face of contracts: each with its whole history; the Board issues and ends."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from contracts.admin.issuing import ISSUE, issue_page
from contracts.closing import close_contract
from contracts.models import Contract, Deadline, Report, Verdict
from contracts.vocabulary import FINAL_STATES, ContractOutcome, ContractState
from core.admin.acts import Act, ActingAdmin, ActRequest, Answer
from core.admin.base import BrowseAdmin, choice_column, computed_column, link
from core.admin.browsing import ListButton
from core.events import text
from core.labels import Text
from core.people import signed_in
from core.permissions import Deed
from core.waiting import page_of
from ledger.history import events_of
from mailroom.admin.mail import attached
from orgchart.people.members import visible_agents

STATE_COLOURS = {
    "pending": "info",
    "in_progress": "primary",
    "review": "warning",
    "passed": "success",
    "failed": "danger",
    "cancelled": "default",
}


ENDED = {
    ContractOutcome.PASSED: _("%(contract)s is passed."),
    ContractOutcome.FAILED: _("%(contract)s is failed."),
    ContractOutcome.CANCELLED: _("%(contract)s is cancelled."),
    ContractOutcome.REWORK: _("%(contract)s is sent back for rework."),
}


def _ended(call: ActRequest, outcome: ContractOutcome) -> Answer:
    close_contract(
        contract_id=call.row.id,
        outcome=outcome,
        reason=call.reason,
        expected_version=call.version,
        caller=call.person,
        now=call.now,
    )
    return str(ENDED[outcome]) % {"contract": call.row.id}


def _facts(row: Contract) -> list[tuple[str, str]]:
    return [
        (gettext("Title"), row.title),
        (pgettext("sender", "From"), row.issuer_name),
        (pgettext("recipient", "To"), row.assignee.handle),
        (gettext("State"), row.get_state_display()),
    ]


def _submission(row: Contract) -> Report | None:
    reports = row.reports.filter(submission__isnull=False).select_related("mail")
    return reports.order_by("-submission").first()


def _work_facts(row: Contract) -> list[tuple[str, str]]:
    """The same with the files that came with the work that is decided on."""
    found = _submission(row)
    return [*_facts(row), *(attached(found.mail) if found else ())]


def _submitted(row: Contract) -> str:
    """The work that is decided on: what the assignee submitted last, and what QA found in it."""
    found = _submission(row)
    if found is None:
        return ""
    verdicts = Verdict.objects.filter(report_id=found.id).select_related("judge").order_by("id")
    said = [f"{each.finding} ({each.judge.handle}): {each.body}" for each in verdicts]
    return "\n\n".join(each for each in (found.title, found.body, found.commit, *said) if each)


def _act(outcome: ContractOutcome, title: Text, explanation: Text, **more: Any) -> Act:
    return Act(
        name=f"close-{outcome}",
        title=title,
        explanation=explanation,
        deed=Deed.CANCEL_CONTRACT,
        perform=lambda call: _ended(call, outcome),
        version=lambda row: int(row.version),
        **{"facts": _facts, **more},
    )


def _own_in_review(row: Contract) -> bool:
    """Only what the Board itself issued is the Board's to take, to refuse or to send back."""
    return row.issuer_id is None and row.state == ContractState.REVIEW


ON_WORK = {"possible": _own_in_review, "facts": _work_facts, "text": _submitted}

CANCEL = _act(
    ContractOutcome.CANCELLED,
    _("Cancel the contract"),
    _(
        "The contract ends: its coding mode and its channels close, and its assignee is notified. "
        "Contracts that the assignee issued to others for this work go on."
    ),
    icon="cancel",
    danger=True,
    possible=lambda row: row.state not in FINAL_STATES,
)
PASS = _act(
    ContractOutcome.PASSED,
    _("Take the work"),
    _("The Board takes what it ordered. The contract is final from then on."),
    icon="check_circle",
    **ON_WORK,
)
FAIL = _act(
    ContractOutcome.FAILED,
    _("Refuse the work"),
    _("The Board refuses what it ordered. The contract is final; a new one may follow it."),
    icon="thumb_down",
    danger=True,
    **ON_WORK,
)
REWORK = _act(
    ContractOutcome.REWORK,
    _("Send the work back"),
    _("The assignee works on it again and submits it once more; the reason says what is missing."),
    icon="undo",
    **ON_WORK,
)


@admin.register(Contract)
class ContractAdmin(ActingAdmin):
    """Contracts with their terms, reports, verdicts and what the ledger holds about each."""

    acts = (PASS, REWORK, FAIL, CANCEL)
    list_buttons = (
        ListButton(
            title=_("Issue a contract"),
            icon="add",
            page="contracts_contract_issue",
            may=lambda request: request.user.has_perm(ISSUE),
        ),
    )
    own_pages = (("issue/", "contracts_contract_issue", issue_page),)
    related = ("organisation", "assignee", "issuer", "supersedes")
    list_display = (
        "headline",
        "issuer_name",
        "assignee",
        "kind",
        "state_label",
        "deadline",
        "created_at",
        "organisation",
    )
    list_filter = ("organisation", "state", "kind", "assignee", "issuer", "priority", "created_at")
    ordering = ("-id",)
    search_fields = ("id",)
    search_help_text = _("A contract (CON-…), or the handle of its assignee or issuer")
    change_form_template = "admin/nexus/contract.html"

    def find(self, request: HttpRequest, rows: QuerySet[Contract], term: str) -> QuerySet[Contract]:
        """By id, or by a party."""
        if term.startswith("CON-"):
            return rows.filter(id__startswith=term)
        agents = visible_agents(signed_in(request), term)
        return rows.filter(Q(assignee__in=agents) | Q(issuer__in=agents))

    def row_context(self, request: HttpRequest, row: Contract) -> dict[str, Any]:
        """The contract with everything that happened to it."""
        return {
            "contract": row,
            "state_colour": STATE_COLOURS[row.state],
            "reports": row.reports.select_related("author")[:50],
            "verdicts": row.verdicts.select_related("judge")[:50],
            "changes": row.changes.all(),
            "successors": row.successors.all()[:20],
            "events": events_of(self.subject_of(row), row.organisation_id),
        }

    headline = computed_column(_("contract"), lambda row: text(row.title, 70))

    state_label = choice_column("state", _("state"), STATE_COLOURS)


class _OfAContract(BrowseAdmin):
    """A row about one contract."""

    subject = "contract:{row.contract_id}"
    list_select_related: tuple[str, ...] = ("contract",)
    search_fields = ("contract__id__exact",)
    search_help_text = _("A contract (CON-…)")
    ordering = ("-id",)

    of_contract = computed_column(
        _("contract"), lambda row: link(page_of(row.contract), row.contract.title)
    )


@admin.register(Report)
class ReportAdmin(_OfAContract):
    """What assignees reported."""

    list_display = ("title", "kind", "report_type", "author", "of_contract", "created_at")
    list_filter = ("organisation", "author", "kind", "report_type", "created_at")
    list_select_related = ("contract", "author")


@admin.register(Verdict)
class VerdictAdmin(_OfAContract):
    """What QA found."""

    list_display = ("verdict", "judge", "of_contract", "created_at")
    list_filter = ("organisation", "judge", "finding", "created_at")
    list_select_related = ("contract", "judge")

    verdict = choice_column("finding", _("finding"), {"PASS": "success", "FAIL": "danger"})


@admin.register(Deadline)
class DeadlineAdmin(_OfAContract):
    """When a party is notified of a deadline, and whether that was done."""

    list_display = ("of_contract", "stage", "due_at", "done_at")
    list_filter = ("organisation", "stage", "due_at")
