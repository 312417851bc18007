"""The admin pages of blocked mail and temporary contact permissions."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.admin.base import BrowseAdmin, chips, column, computed_column, link, shown_column
from core.admin.refused import coded, said, said_as_text, shortened
from ledger.models import Event
from mailroom.models import ContactGrant, MailRejection


def contract_url(contract_ref: str | None) -> str:
    """Where a contract's page is, by name: this room does not know contracts."""
    if not contract_ref:
        return ""
    try:
        return reverse("admin:contracts_contract_change", args=[contract_ref])
    except NoReverseMatch:
        return ""


def refusal_event(row: MailRejection) -> int | None:
    """The number of the event that the ledger holds of a blocked mail: both have one moment."""
    rows = Event.objects.filter(
        organisation_id=row.organisation_id,
        actor=f"agent:{row.from_agent}",
        code=row.code,
        at=row.attempted_at,
    )
    return rows.order_by("seq").values_list("seq", flat=True).first()


@admin.register(MailRejection)
class MailRejectionAdmin(BrowseAdmin):
    """Every blocked mail (Spec: mail 18)."""

    subject = ""
    list_display = (
        "attempted_at",
        "from_agent",
        "to_agent",
        "mail_type",
        "why_refused",
        "short_reason",
        "organisation",
    )
    list_filter = ("organisation", "attempted_at")
    dated_by = "attempted_at"
    list_select_related = ("organisation",)
    ordering = ("-id",)
    search_fields = ("from_agent",)
    search_help_text = _("The sender's handle, or a reason code")
    fields = (
        "organisation",
        "attempted_at",
        "from_agent",
        "to_agent",
        "mail_type",
        "why_refused",
        "whole_reason",
        "why",
    )
    in_other_words = ("code", "reason")

    @column(_("to see why"))
    def why(self, row: MailRejection) -> SafeString:
        """The rule of the pair, the same question to Explain, and the event."""
        asked = {
            "ask": "mail",
            "organisation": row.organisation_id,
            "agent": row.from_agent,
            "recipient": row.to_agent,
            "type": row.mail_type or "info",
            "contract": "",
        }
        pair = {
            "of": "agents",
            "organisation": row.organisation_id,
            "from": row.from_agent,
            "to": row.to_agent,
        }
        links = [(f"{reverse('admin:explain')}?{urlencode(asked)}", gettext("Explain"))]
        links.append(
            (f"{reverse('admin:matrix')}?{urlencode(pair)}#cell", gettext("The rule of this pair"))
        )
        event = refusal_event(row)
        if event is not None:
            links.append(
                (
                    reverse("admin:ledger_event_change", args=[event]),
                    gettext("Event %(number)s") % {"number": event},
                )
            )
        return format_html_join(" · ", "{}", ((link(*each),) for each in links))

    def find(
        self, request: HttpRequest, rows: QuerySet[MailRejection], term: str
    ) -> QuerySet[MailRejection]:
        """By code when it is written like one, else by sender."""
        if term.isupper():
            return rows.filter(code=term)
        return rows.filter(from_agent=term)

    why_refused = shown_column("code", _("why"), coded)

    short_reason = computed_column(_("reason"), lambda row: shortened(said_as_text(row.reason), 90))

    whole_reason = shown_column("reason", _("reason"), said)


@admin.register(ContactGrant)
class ContactGrantAdmin(BrowseAdmin):
    """Contacts that contracts permit, and until when."""

    subject = "contract:{row.contract_ref}"
    list_display = ("sender", "recipient", "passing", "contract", "state", "opened_at", "closed_at")
    list_filter = ("organisation", "sender", "recipient", "opened_at")
    list_select_related = ("sender", "recipient")
    dated_by = "opened_at"
    ordering = ("-id",)
    search_fields = ("contract_ref__exact",)
    search_help_text = _("A contract (CON-…)")
    fields = (
        "organisation",
        "contract",
        "sender",
        "recipient",
        "passing",
        "opened_at",
        "closed_at",
    )

    passing = shown_column("types", _("types"), chips)

    contract = shown_column("contract_ref", _("contract"), lambda ref: link(contract_url(ref), ref))

    @column(_("state"), label={"open": "success", "closed": "default"})
    def state(self, row: ContactGrant) -> tuple[str, str]:
        """Open or closed, in colour."""
        if row.closed_at:
            return "closed", gettext("closed")
        return "open", gettext("open")
