"""Changes to confirm: what one person proposed, for another one to decide."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesDropdownFilter, RelatedDropdownFilter

from core.admin.acts import Act, ActingAdmin, ActRequest, Answer, ShownOnce
from core.admin.base import block, column, listed
from core.decision import Denied
from core.deeds import Deed
from core.people import SignedIn
from orgchart.admin.agents import KEY_REMARK
from orgchart.models import Agent, PendingChange
from orgchart.pending.edits import EditAct
from orgchart.pending.services import confirm_change, reject_change, withdraw_change
from orgchart.pending.vocabulary import PendingState
from orgchart.services import issue_key


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
    said = f"{call.row} took effect." + (f" Policy version {done.after.version}." if done else "")
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
    return ShownOnce(f"{said} The new key of {agent}", key, KEY_REMARK)


def _reject(call: ActRequest) -> Answer:
    reject_change(**_given(call))
    return f"{call.row} is rejected. Nothing was changed."


def _withdraw(call: ActRequest) -> Answer:
    withdraw_change(**_given(call))
    return f"{call.row} is withdrawn. Nothing was changed."


def _facts(row: PendingChange) -> list[tuple[str, str]]:
    changed = [(name, f"{before} → {after}") for name, before, after in row.shown]
    reason = [("Reason", row.reason)] if row.reason else []
    asked = [("Proposed by", row.proposed_by), *reason, ("Row", row.subject)]
    return [*asked, *changed]


def _sentences(row: PendingChange) -> str:
    allowed = [f"+ {sentence}" for sentence in row.allowed]
    forbidden = [f"- {sentence}" for sentence in row.forbidden]
    return "\n".join(["Newly allowed:", *allowed, "Newly forbidden:", *forbidden])


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
    title="Confirm",
    icon="how_to_reg",
    deed=Deed.CONFIRM_CHANGE,
    explanation=(
        "The change takes effect now, if it still does exactly what is shown here. The person who "
        "proposed it cannot confirm it."
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
    title="Reject",
    icon="block",
    danger=True,
    deed=Deed.REJECT_CHANGE,
    explanation="The change never takes effect. It can be proposed again.",
    perform=_reject,
    possible=_is_open,
    is_for=_is_others,
    version=_version,
    facts=_facts,
    text=_sentences,
)
WITHDRAW = Act(
    name="withdraw",
    title="Withdraw",
    icon="undo",
    deed=Deed.WITHDRAW_CHANGE,
    explanation="Only the person who proposed the change withdraws it.",
    perform=_withdraw,
    possible=_is_open,
    is_for=_is_own,
    version=_version,
    facts=_facts,
)


@admin.register(PendingChange)
class PendingChangeAdmin(ActingAdmin):
    """Proposed changes and what became of them."""

    acts = (CONFIRM, REJECT, WITHDRAW)
    list_display = ("id", "what", "organisation", "state_label", "proposed_by", "proposed_at")
    list_filter = (
        ("organisation", RelatedDropdownFilter),
        ("state", ChoicesDropdownFilter),
    )
    list_select_related = ("organisation",)
    search_fields = ("subject", "proposed_by")
    fieldsets = (
        (None, {"fields": ("organisation", "what", "state_label", "policy_version")}),
        ("Proposal", {"fields": ("proposed_by", "proposed_at", "why", "columns")}),
        ("Difference", {"fields": ("newly_allowed", "newly_forbidden")}),
        ("Decision", {"fields": ("decided_by", "decided_at", "decision_reason")}),
    )

    def rows_of(self, rows: QuerySet[PendingChange], who: SignedIn) -> QuerySet[PendingChange]:
        """Those of the person's organisations, and the users that their Boards decide about."""
        return rows.filter(pk__in=PendingChange.objects.seen_by(who.organisations).values("pk"))

    def organisation_id_of(self, row: PendingChange) -> int:
        """The organisation it changes, or the first whose Board decides about a user."""
        return row.organisation_id or row.boards[0]

    def subject_of(self, row: PendingChange) -> str:
        """How the ledger names the change."""
        return f"change:{row.pk}"

    @column("change")
    def what(self, row: PendingChange) -> str:
        """What is done to which row."""
        return f"{row.edit.get('act', '')} {row.subject}"

    @column(
        "state",
        label={
            "proposed": "warning",
            "confirmed": "success",
            "rejected": "danger",
            "withdrawn": "info",
            "stale": "info",
        },
    )
    def state_label(self, row: PendingChange) -> str:
        """The state, in colour."""
        return str(row.state)

    @column("reason")
    def why(self, row: PendingChange) -> SafeString:
        """Why it was proposed."""
        return block(row.reason)

    @column("columns")
    def columns(self, row: PendingChange) -> SafeString:
        """The columns it changes."""
        return listed(f"{name}: {before} → {after}" for name, before, after in row.shown)

    @column("newly allowed")
    def newly_allowed(self, row: PendingChange) -> SafeString:
        """The rights it gives."""
        return listed(row.allowed)

    @column("newly forbidden")
    def newly_forbidden(self, row: PendingChange) -> SafeString:
        """The rights it takes away."""
        return listed(row.forbidden)
