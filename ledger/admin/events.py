"""The events as people read them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.admin.actors import actor_shown
from core.admin.base import column, computed_column, in_hex, link, page_of_subject, shown_column
from core.admin.browsing import ReadOnlyAdmin
from core.admin.happened import facts_of, happened
from core.admin.refused import coded, reason_as_text, reason_of, shortened
from core.database import database_now
from ledger.admin.filters import (
    BY_ACTOR,
    BY_CODE,
    BY_TOOL,
    ActionFilter,
    OrganisationFilter,
    names_of_organisations,
)
from ledger.admin.verifying import VERIFY, verify_page
from ledger.models import Event
from ledger.searching import find_events
from ledger.verification import seals_over

LONG_ID = re.compile(r"(?:\w+:)?([A-Z]+-)\d{20}(-\w+)$")


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """Every effect and every denial."""

    list_display = (
        "seq",
        "at",
        "who",
        "what",
        "verdict",
        "tool",
        "short_subject",
        "short_reason",
        "organisation",
    )
    fields = (
        "seq",
        "at",
        "organisation",
        "who",
        "what",
        "verdict",
        "whole_reason",
        "tool",
        "about",
        "facts",
        "policy_version",
        "session_id",
        "request_id",
        "args_digest",
        "digest_hex",
        "sealed_by",
    )
    list_filter = (OrganisationFilter, ActionFilter, "decision", BY_CODE, BY_ACTOR, BY_TOOL, "at")
    list_filter_submit = True
    search_fields = ("subject",)
    search_help_text = _(
        "A name (backend_worker), a tool, a code, an id (MAIL-…, CON-…), an event's number, a day "
        "(today, yesterday, 2026-11-22); several words together narrow it"
    )
    own_pages = (("verify/", VERIFY, verify_page),)
    export_actions = ((_("Verify the ledger"), VERIFY),)
    saved_searches = (
        (_("refusals today"), "q=today&decision__exact=deny"),
        (_("refusals yesterday"), "q=yesterday&decision__exact=deny"),
        (_("exports"), "q=list.exported"),
        (_("what people were refused"), "q=human.denied"),
    )
    ordering = ("-seq",)
    sortable_by = ()
    in_other_words = (
        "action", "details", "subject", "organisation_id", "actor", "decision", "code", "reason",
        "for_agent_id", "kind",
    )  # fmt: skip
    names: Mapping[int, str] = {}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Ask for the organisations' names once a page, not once a row."""
        self.names = names_of_organisations()
        page: HttpResponse = super().changelist_view(request, extra_context)
        return page

    @column(_("organisation"))
    def organisation(self, event: Event) -> str:
        """The organisation's name, or its number."""
        number = event.organisation_id
        if number is None:
            return ""
        return self.names.get(number) or names_of_organisations().get(number, str(number))

    @column(_("decision"))
    def verdict(self, event: Event) -> SafeString:
        """Allowed or denied, in colour; a denial with what its code means, and the code."""
        colour = "danger" if event.decision == "deny" else "success"
        label = format_html(
            '<span class="nx-label nx-label-{}">{}</span>', colour, event.get_decision_display()
        )
        return format_html("{} {}", label, coded(event.code)) if event.code else label

    short_reason = computed_column(_("reason"), lambda event: shortened(reason_as_text(event), 80))

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Event | None:
        """With the person who looks: a link leads only where they may go."""
        event: Event | None = super().get_object(request, object_id, from_field)
        if event is not None:
            event.viewer = request  # type: ignore[attr-defined]  # read by `about`
        return event

    def get_fields(self, request: HttpRequest, obj: Event | None = None) -> Sequence[str]:
        """What the event has: most columns of most events are empty."""
        if obj is None:
            return self.fields
        named = {
            "organisation": obj.organisation_id,
            "who": obj.actor,
            "whole_reason": obj.reason,
            "about": obj.subject,
            "facts": obj.details,
        }
        return [name for name in self.fields if named.get(name, getattr(obj, name, name))]

    what = shown_column("action", _("what happened"), happened)

    @column(_("subject"))
    def about(self, event: Event) -> SafeString | str:
        """What it is about, with a link to its page."""
        address = page_of_subject(event.viewer, event.subject, event.organisation_id)  # type: ignore[attr-defined]  # get_object sets it
        return link(address, event.subject) if address else event.subject

    facts = shown_column("details", _("details"), facts_of)

    who = shown_column("actor", _("actor"), actor_shown)

    @column(_("subject"))
    def short_subject(self, event: Event) -> SafeString | str:
        """The subject; of a long id its beginning and its end."""
        short = LONG_ID.sub(r"\1…\2", event.subject)
        if short == event.subject:
            return event.subject
        return format_html('<span title="{}">{}</span>', event.subject, short)

    whole_reason = computed_column(_("reason"), lambda event: reason_of(event) or "-")

    digest_hex = shown_column("digest", _("digest"), in_hex)

    @column(_("sealed by"))
    def sealed_by(self, event: Event) -> str:
        """The seal that covers the event."""
        number = seals_over([event.seq])[event.seq]
        return (
            gettext("seal %(number)s") % {"number": number} if number else gettext("not sealed yet")
        )

    def find(self, request: HttpRequest, rows: QuerySet[Event], term: str) -> QuerySet[Event]:
        """By every word of the search, each by its form."""
        return find_events(rows, term, now=database_now())

    @property
    def verify_address(self) -> str:
        """Where the ledger is verified."""
        return reverse(f"admin:{VERIFY}")
