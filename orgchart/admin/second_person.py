"""Changes to confirm: what one person proposed, for another one to decide."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.admin.acts import Act, ActingAdmin, ActRequest, Answer, ShownOnce
from core.admin.base import block, choice_column, computed_column, listed, shown_column
from core.decision import Denied
from core.people import SignedIn
from core.permissions import Deed
from orgchart.admin.agents import KEY_REMARK
from orgchart.admin.preview import changed_in_language
from orgchart.difference_words import all_in_language
from orgchart.keys import issue_key
from orgchart.models import Agent, PendingChange
from orgchart.second_person.edits import EditAct
from orgchart.second_person.services import confirm_change, reject_change, withdraw_change
from orgchart.second_person.vocabulary import PendingState

CODE_REMARK = _(
    "Hand it over to this person yourself, and only to them. With it they choose a password of "
    "their own after signing in, before any page. The person who proposed the change does not know "
    "it, and so cannot act as this user."
)


def _given(call: ActRequest) -> dict[str, Any]:
    return {
        "change_id": call.row.pk,
        "expected_version": call.version,
        "caller": call.person,
        "now": call.now,
        "reason": call.reason,
    }


def _confirm(call: ActRequest) -> Answer:
    done = confirm_change(**_given(call))
    said = gettext("%(change)s took effect.") % {"change": call.row}
    if done.policy:
        said += " " + gettext("Policy version %(version)s.") % {
            "version": done.policy.after.version
        }
    if done.code:
        title = gettext("The code for %(user)s") % {"user": call.row.subject.partition(" ")[2]}
        return ShownOnce(f"{said} {title}", done.code, CODE_REMARK)
    return _with_key(call, said)


def _with_key(call: ActRequest, said: str) -> Answer:
    """The first key of an agent that was hired or activated, where this person may issue it."""
    edit: dict[str, Any] = call.row.edit
    is_back = edit.get("act") == EditAct.ACTIVATE
    if edit.get("table") != "Agent" or not (is_back or edit.get("key") is None):
        return said
    handle = call.row.subject.partition(":")[2]
    agent = Agent.objects.get(organisation_id=call.person.organisation_id, handle=handle)
    try:
        key = issue_key(agent=agent, caller=call.person, now=call.now, reason=call.reason)
    except Denied:
        return said
    return ShownOnce(
        f"{said} {gettext('The new key of %(agent)s') % {'agent': agent}}",
        key,
        KEY_REMARK,
    )


def _reject(call: ActRequest) -> Answer:
    reject_change(**_given(call))
    return gettext("%(change)s is rejected. Nothing was changed.") % {"change": call.row}


def _withdraw(call: ActRequest) -> Answer:
    withdraw_change(**_given(call))
    return gettext("%(change)s is withdrawn. Nothing was changed.") % {"change": call.row}


def _facts(row: PendingChange) -> list[tuple[str, str]]:
    changed = [
        (name, f"{before} → {after}") for name, before, after in changed_in_language(row.shown)
    ]
    reason = [(gettext("Reason"), row.reason)] if row.reason else []
    asked = [(gettext("Proposed by"), row.proposed_by), *reason, (gettext("Row"), row.subject)]
    return [*asked, *changed]


def _sentences(row: PendingChange) -> str:
    allowed = [f"+ {sentence}" for sentence in all_in_language(row.allowed)]
    forbidden = [f"- {sentence}" for sentence in all_in_language(row.forbidden)]
    return "\n".join([gettext("Newly allowed:"), *allowed, gettext("Newly forbidden:"), *forbidden])


def _is_open(row: PendingChange) -> bool:
    return bool(row.state == PendingState.PROPOSED)


def _is_others(username: str, row: PendingChange) -> bool:
    return username != row.proposed_by


def _is_own(username: str, row: PendingChange) -> bool:
    return username == row.proposed_by


def _version(row: PendingChange) -> int:
    return row.version


CONFIRM = Act(
    name="confirm",
    title=_("Confirm"),
    icon="how_to_reg",
    deed=Deed.CONFIRM_CHANGE,
    explanation=(
        _(
            "The change takes effect now, if it still does exactly what is shown here. The "
            "person who "
            "proposed it cannot confirm it."
        )
    ),
    perform=_confirm,
    possible=_is_open,
    is_for=_is_others,
    version=_version,
    facts=_facts,
    text=_sentences,
)
REJECT = Act(
    name="reject",
    title=_("Reject"),
    icon="block",
    danger=True,
    deed=Deed.REJECT_CHANGE,
    explanation=_("The change never takes effect. It can be proposed again."),
    perform=_reject,
    possible=_is_open,
    is_for=_is_others,
    version=_version,
    facts=_facts,
    text=_sentences,
)
WITHDRAW = Act(
    name="withdraw",
    title=_("Withdraw"),
    icon="undo",
    deed=Deed.WITHDRAW_CHANGE,
    explanation=_("Only the person who proposed the change withdraws it."),
    perform=_withdraw,
    possible=_is_open,
    is_for=_is_own,
    version=_version,
    facts=_facts,
)


@admin.register(PendingChange)
class PendingChangeAdmin(ActingAdmin):
    """Proposed changes and what became of them."""

    subject = "change:{row.pk}"
    acts = (CONFIRM, REJECT, WITHDRAW)
    list_display = ("id", "what", "organisation", "state_label", "proposed_by", "proposed_at")
    list_filter = ("organisation", "state")
    list_select_related = ("organisation",)
    search_fields = ("subject", "proposed_by")
    fieldsets = (
        (None, {"fields": ("organisation", "what", "state_label", "policy_version")}),
        (_("Proposal"), {"fields": ("proposed_by", "proposed_at", "why", "columns")}),
        (_("Difference"), {"fields": ("newly_allowed", "newly_forbidden")}),
        (_("Decision"), {"fields": ("decided_by", "decided_at", "decision_reason")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[PendingChange]:
        """Without those about users, for who may not look at users."""
        rows: QuerySet[PendingChange] = super().get_queryset(request)
        may_look = request.user.has_perm("auth.view_user")
        return rows if may_look else rows.exclude(organisation=None)

    def rows_of(self, rows: QuerySet[PendingChange], who: SignedIn) -> QuerySet[PendingChange]:
        """Those of the person's organisations, and the users that their Boards decide about."""
        return rows.filter(pk__in=PendingChange.objects.seen_by(who.organisations).values("pk"))

    def organisation_id_of(self, row: PendingChange) -> int:
        """The organisation it changes, or the first whose Board decides about a user."""
        return row.organisation_id or row.boards[0]

    what = computed_column(
        _("change"), lambda row: f"{gettext(row.edit.get('act') or '–')} {row.subject}"
    )

    state_label = choice_column(
        "state",
        _("state"),
        {
            "proposed": "warning",
            "confirmed": "success",
            "rejected": "danger",
            "withdrawn": "info",
            "stale": "info",
        },
    )

    why = shown_column("reason", _("reason"), block)

    columns = computed_column(
        _("columns"),
        lambda row: listed(
            f"{name}: {before} → {after}" for name, before, after in changed_in_language(row.shown)
        ),
    )

    newly_allowed = computed_column(
        _("newly allowed"), lambda row: listed(all_in_language(row.allowed))
    )

    newly_forbidden = computed_column(
        _("newly forbidden"), lambda row: listed(all_in_language(row.forbidden))
    )
