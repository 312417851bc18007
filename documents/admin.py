"""The admin of documents, memories and artifacts, read only."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import (
    AutocompleteSelectFilter,
    BooleanRadioFilter,
    ChoicesDropdownFilter,
    RelatedDropdownFilter,
)

from core.admin.base import BrowseAdmin, block, column
from core.admin.browsing import MomentFilter
from core.events import text
from documents.models import Artifact, Document, Memory


@admin.register(Document)
class DocumentAdmin(BrowseAdmin):
    """Notes, reports and PRDs; their files are written from the rows."""

    list_display = (
        "headline",
        "kind_label",
        "report_type",
        "author",
        "department",
        "for_board",
        "created_at",
        "organisation",
    )
    list_filter = (
        ("organisation", RelatedDropdownFilter),
        ("kind", ChoicesDropdownFilter),
        ("report_type", ChoicesDropdownFilter),
        ("author", AutocompleteSelectFilter),
        ("for_board", BooleanRadioFilter),
        ("created_at", MomentFilter),
    )
    list_select_related = ("organisation", "author")
    search_fields = ("path",)
    search_help_text = "A contract (CON-…), or the beginning of a path"
    fields = (
        "title",
        "organisation",
        "kind",
        "report_type",
        "author",
        "department",
        "for_board",
        "path",
        "text",
        "sha256",
        "contract_ref",
        "created_at",
        "filed_at",
    )
    readonly_fields = ("text",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        """A list needs no bodies."""
        rows: QuerySet[Document] = super().get_queryset(request)
        match = request.resolver_match
        listing = match is not None and (match.url_name or "").endswith("_changelist")
        return rows.defer("body") if listing else rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Document], search_term: str
    ) -> tuple[QuerySet[Document], bool]:
        """By contract, or by the beginning of the path."""
        term = text(search_term.strip())
        if not term:
            return queryset, False
        if term.startswith("CON-"):
            return queryset.filter(contract_ref=term), False
        return queryset.filter(path__startswith=term), False

    @column("title")
    def headline(self, row: Document) -> str:
        """The title, cut where a list would break."""
        return text(row.title, 80)

    @column("kind", label={"note": "default", "report": "info", "prd": "primary"})
    def kind_label(self, row: Document) -> str:
        """Note, report or PRD, in colour."""
        return str(row.kind)

    @column("text")
    def text(self, row: Document) -> SafeString:
        """The whole text."""
        return block(row.body)


@admin.register(Memory)
class MemoryAdmin(BrowseAdmin):
    """Entries that agents added to memories."""

    list_display = ("beginning", "scope", "author", "agent", "group", "created_at", "organisation")
    list_filter = (
        ("organisation", RelatedDropdownFilter),
        ("scope", ChoicesDropdownFilter),
        ("author", AutocompleteSelectFilter),
        ("created_at", MomentFilter),
    )
    list_select_related = ("organisation", "author", "agent", "group")
    search_fields = ("=author__handle",)
    fields = ("organisation", "scope", "author", "agent", "group", "entry", "created_at")
    readonly_fields = ("entry",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Memory]:
        """The list needs no search index."""
        rows: QuerySet[Memory] = super().get_queryset(request)
        return rows.defer("words")

    @column("entry")
    def beginning(self, row: Memory) -> str:
        """The beginning of the text."""
        return text(row.text, 80)

    @column("text")
    def entry(self, row: Memory) -> SafeString:
        """The whole text."""
        return block(row.text)


@admin.register(Artifact)
class ArtifactAdmin(BrowseAdmin):
    """Files that agents saved, one row for each version."""

    list_display = ("name", "version", "agent", "path", "created_at", "organisation")
    list_filter = (
        ("organisation", RelatedDropdownFilter),
        ("agent", AutocompleteSelectFilter),
        ("created_at", MomentFilter),
    )
    list_select_related = ("organisation", "agent")
    search_fields = ("=name",)
    fields = (
        "organisation",
        "agent",
        "name",
        "version",
        "path",
        "description",
        "saved",
        "sha256",
        "created_at",
    )
    readonly_fields = ("saved",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Artifact]:
        """A list needs no contents."""
        rows: QuerySet[Artifact] = super().get_queryset(request)
        match = request.resolver_match
        listing = match is not None and (match.url_name or "").endswith("_changelist")
        return rows.defer("content") if listing else rows

    @column("content")
    def saved(self, row: Artifact) -> SafeString:
        """The whole content."""
        return block(row.content)
