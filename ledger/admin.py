"""The ledger as people read it: everything to look at, nothing to touch."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter
from unfold.decorators import display

from core.admin.browsing import (
    INSTALLATION,
    MomentFilter,
    PrefixFilter,
    ReadOnlyAdmin,
    RecentFilter,
    number,
)
from core.admin.refused import coded, reason_as_text, reason_of, shortened
from core.events import text
from core.people import signed_in
from ledger import keys
from ledger.models import Event, Seal
from ledger.searching import find_events
from ledger.verification import verify_ledger

VERIFY = "ledger_event_verify"

_organisations: Callable[[], Mapping[int, str]] = dict


# The organisations with events, found by skipping along the index from one to the next.
ORGANISATIONS = """
WITH RECURSIVE found AS (
    (SELECT organisation_id AS id FROM ledger_event
     WHERE organisation_id IS NOT NULL ORDER BY organisation_id LIMIT 1)
    UNION ALL
    SELECT (SELECT e.organisation_id FROM ledger_event e
            WHERE e.organisation_id > found.id ORDER BY e.organisation_id LIMIT 1)
    FROM found WHERE found.id IS NOT NULL
)
SELECT id FROM found WHERE id IS NOT NULL ORDER BY id
"""


def name_organisations(names: Callable[[], Mapping[int, str]]) -> None:
    """Tell the admin how organisations are called; a higher room knows, this one does not."""
    global _organisations  # noqa: PLW0603 -- set once, while Django starts
    _organisations = names


class ActionFilter(RecentFilter):
    """What happened."""

    title = _("action")
    parameter_name = "action"


class CodeFilter(RecentFilter):
    """Why it was denied."""

    title = _("code")
    parameter_name = "code"


class ToolFilter(RecentFilter):
    """With which tool."""

    title = _("tool")
    parameter_name = "tool"


class OrganisationFilter(DropdownFilter):
    """Whose event."""

    title = _("organisation")
    parameter_name = "organisation"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the person's organisations that have events, by name."""
        names, who = _organisations(), signed_in(request)
        with connection.cursor() as cursor:
            cursor.execute(ORGANISATIONS)
            found = [key for (key,) in cursor.fetchall() if who.is_member_of(key)]
        return [(str(key), names.get(key, str(key))) for key in found]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Event]) -> QuerySet[Event]:
        """Keep the events of the chosen organisation."""
        chosen = self.value()
        return queryset.filter(organisation_id=number(chosen)) if chosen else queryset


class ActorFilter(PrefixFilter):
    """Who."""

    title = _("actor")
    parameter_name = "actor"


LONG_ID = re.compile(r"(?:\w+:)?([A-Z]+-)\d{20}(-\w+)$")


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """Every effect and every denial."""

    list_display = (
        "seq",
        "at",
        "who",
        "action",
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
        "action",
        "verdict",
        "whole_reason",
        "tool",
        "subject",
        "details",
        "policy_version",
        "session_id",
        "request_id",
        "args_digest",
        "digest_hex",
        "sealed_by",
    )
    list_filter = (
        OrganisationFilter,
        ActionFilter,
        ("decision", ChoicesDropdownFilter),
        CodeFilter,
        ActorFilter,
        ToolFilter,
        ("at", MomentFilter),
    )
    list_filter_submit = True
    search_fields = ("subject",)
    search_help_text = _(
        "A name (backend_worker), a tool, a code, an id (MAIL-…, CON-…), an event's number, a day "
        "(today, yesterday, 2026-11-22); several words together narrow it"
    )
    export_actions = ((_("Verify the ledger"), VERIFY),)
    saved_searches = (
        (_("refusals today"), "q=today&decision__exact=deny"),
        (_("refusals yesterday"), "q=yesterday&decision__exact=deny"),
        (_("exports"), "q=list.exported"),
        (_("what people were refused"), "q=human.denied"),
    )
    ordering = ("-seq",)
    sortable_by = ()
    exclude = ("digest",)
    readonly_fields = ("organisation", "who", "verdict", "whole_reason", "digest_hex", "sealed_by")
    in_other_words = (
        "organisation_id", "actor", "decision", "code", "reason", "for_agent_id", "kind"
    )  # fmt: skip
    names: Mapping[int, str] = {}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Ask for the organisations' names once a page, not once a row."""
        self.names = _organisations()
        page: HttpResponse = super().changelist_view(request, extra_context)
        return page

    @display(description=_("organisation"))  # type: ignore[untyped-decorator]
    def organisation(self, event: Event) -> str:
        """The organisation's name, or its number."""
        number = event.organisation_id
        if number is None:
            return ""
        return self.names.get(number) or _organisations().get(number, str(number))

    @display(description=_("decision"))  # type: ignore[untyped-decorator]
    def verdict(self, event: Event) -> SafeString:
        """Allowed or denied, in colour; a denial with what its code means, and the code."""
        colour = "danger" if event.decision == "deny" else "success"
        label = format_html(
            '<span class="nx-label nx-label-{}">{}</span>', colour, event.get_decision_display()
        )
        return format_html("{} {}", label, coded(event.code)) if event.code else label

    @display(description=_("reason"))  # type: ignore[untyped-decorator]
    def short_reason(self, event: Event) -> SafeString | str:
        """The beginning of the reason."""
        return shortened(reason_as_text(event), 80)

    def get_fields(self, request: HttpRequest, obj: Event | None = None) -> Sequence[str]:
        """What the event has: most columns of most events are empty."""
        if obj is None:
            return self.fields
        named = {"organisation": obj.organisation_id, "who": obj.actor, "whole_reason": obj.reason}
        return [name for name in self.fields if named.get(name, getattr(obj, name, name))]

    @display(description=_("actor"))  # type: ignore[untyped-decorator]
    def who(self, event: Event) -> str:
        """Agents by their handles alone, as everywhere."""
        return event.actor.removeprefix("agent:")

    @display(description=_("subject"))  # type: ignore[untyped-decorator]
    def short_subject(self, event: Event) -> SafeString | str:
        """The subject; of a long id its beginning and its end."""
        short = LONG_ID.sub(r"\1…\2", event.subject)
        if short == event.subject:
            return event.subject
        return format_html('<span title="{}">{}</span>', event.subject, short)

    @display(description=_("reason"))  # type: ignore[untyped-decorator]
    def whole_reason(self, event: Event) -> SafeString | str:
        """Why, in the language of the page."""
        return reason_of(event) or "-"

    @display(description=_("digest"))  # type: ignore[untyped-decorator]
    def digest_hex(self, event: Event) -> str:
        """The digest as people compare it."""
        return bytes(event.digest).hex()

    @display(description=_("sealed by"))  # type: ignore[untyped-decorator]
    def sealed_by(self, event: Event) -> str:
        """The seal that covers the event."""
        seal = Seal.objects.filter(era=event.era, lo__lte=event.xid, hi__gt=event.xid).first()
        return (
            gettext("seal %(number)s") % {"number": seal.number}
            if seal
            else gettext("not sealed yet")
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Event], search_term: str
    ) -> tuple[QuerySet[Event], bool]:
        """Find by every word of the search, each by its form."""
        return find_events(queryset, text(search_term.strip()), now=timezone.now()), False

    @property
    def verify_address(self) -> str:
        """Where the ledger is verified."""
        return reverse(f"admin:{VERIFY}")

    def get_urls(self) -> list[URLPattern]:
        """With the page that verifies the ledger."""
        page = self.admin_site.admin_view(self.verify_view)
        return [path("verify/", page, name=VERIFY), *super().get_urls()]

    def verify_view(self, request: HttpRequest) -> HttpResponse:
        """Say what verifying is; on POST verify every event against its seal. Changes nothing."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Verify the ledger"),
            "opts": self.opts,
        }
        if request.method == "POST":
            context |= _verified()
        return TemplateResponse(request, "admin/nexus/verify.html", context)


def _verified() -> dict[str, Any]:
    """Whether the ledger is whole, as a sentence."""
    try:
        report = verify_ledger(trusted=keys.trusted(), now=timezone.now())
    except (keys.KeyMissing, OSError) as problem:
        return {
            "whole": False,
            "answer": gettext("It could not be verified: %(problem)s.") % {"problem": problem},
        }
    if report.finding:
        return {"whole": False, "answer": str(report.finding)}
    answer = gettext(
        "All %(events)s sealed events are as they were sealed, under %(seals)s seals; "
        "%(unsealed)s newer ones wait for the next seal."
    ) % {
        "events": f"{report.events:,}",
        "seals": f"{report.seals:,}",
        "unsealed": f"{report.unsealed:,}",
    }
    return {"whole": True, "answer": answer}


@admin.register(Seal)
class SealAdmin(ReadOnlyAdmin):
    """The signed roots."""

    organisation_path = INSTALLATION
    list_display = ("number", "at", "count", "lo", "hi", "key_id", "short_root")
    list_filter = (("at", MomentFilter),)
    list_filter_submit = True
    ordering = ("-number",)
    sortable_by = ("number",)
    exclude = ("root", "marks", "previous", "digest", "signature")
    readonly_fields = ("root_hex", "previous_hex", "digest_hex", "signature_hex")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Seal]:
        """Leave the marks where they are: they are long, and for verification."""
        rows: QuerySet[Seal] = super().get_queryset(request)
        return rows.defer("marks")

    @display(description=_("root"))  # type: ignore[untyped-decorator]
    def short_root(self, seal: Seal) -> str:
        """The beginning of the root."""
        return f"{bytes(seal.root).hex()[:16]}…"

    @display(description=_("root"))  # type: ignore[untyped-decorator]
    def root_hex(self, seal: Seal) -> str:
        """The Merkle root."""
        return bytes(seal.root).hex()

    @display(description=_("previous seal's digest"))  # type: ignore[untyped-decorator]
    def previous_hex(self, seal: Seal) -> str:
        """The link of the chain."""
        return bytes(seal.previous).hex()

    @display(description=_("reason"))  # type: ignore[untyped-decorator]
    def whole_reason(self, event: Event) -> SafeString | str:
        """Why, in the language of the page."""
        return reason_of(event) or "-"

    @display(description=_("digest"))  # type: ignore[untyped-decorator]
    def digest_hex(self, seal: Seal) -> str:
        """What was signed."""
        return bytes(seal.digest).hex()

    @display(description=_("signature"))  # type: ignore[untyped-decorator]
    def signature_hex(self, seal: Seal) -> str:
        """The Ed25519 signature."""
        return bytes(seal.signature).hex()
