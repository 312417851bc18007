"""The admin of documents, memories and artifacts; people correct memories."""

from __future__ import annotations

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminTextareaWidget

from core.admin.actors import actor_name
from core.admin.acts import Act, ActingAdmin, ActRequest, Answer, ReasonForm
from core.admin.base import BrowseAdmin, block, choice_column, computed_column, shown_column
from core.admin.once import OnceForm
from core.events import text
from core.people import signed_in
from core.permissions import Deed
from documents.memory.entries import MAX_ENTRY
from documents.memory.owners import owner_of_row
from documents.memory.services import add_as_person, correct_memory, withdraw_memory
from documents.models import NAMES_CONTRACT, Artifact, Document, Memory
from orgchart.people.members import visible_agents


@admin.register(Document)
class DocumentAdmin(BrowseAdmin):
    """Notes, reports and PRDs; their files are written from the rows."""

    list_without = ("body",)
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
    list_filter = ("organisation", "kind", "report_type", "author", "for_board", "created_at")
    list_select_related = ("organisation", "author")
    ordering = ("-id",)
    search_fields = ("path",)
    search_help_text = _("A contract (CON-…), or the beginning of a path")
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

    def find(self, request: HttpRequest, rows: QuerySet[Document], term: str) -> QuerySet[Document]:
        """By contract, or by the beginning of the path."""
        if term.startswith("CON-"):
            return rows.filter(NAMES_CONTRACT, contract_ref=term)
        return rows.filter(path__startswith=term)

    headline = computed_column(_("title"), lambda row: text(row.title, 80))

    kind_label = choice_column(
        "kind", _("kind"), {"note": "default", "report": "info", "prd": "primary"}
    )

    text = shown_column("body", _("text"), block)


class MemoryForm(OnceForm):
    """The text of an entry."""

    text = forms.CharField(
        label=_("Text"), max_length=MAX_ENTRY, widget=UnfoldAdminTextareaWidget(attrs={"rows": 8})
    )


class CorrectionForm(ReasonForm, MemoryForm):
    """The text that takes the place of an entry, and why."""

    field_order = ("text", "reason")


def _add(call: ActRequest) -> Answer:
    number = add_as_person(
        memory_id=call.row.id, text=str(call.data["text"]), person=call.person, now=call.now
    )
    return gettext("Added as memory %(number)s.") % {"number": number}


def _correct(call: ActRequest) -> Answer:
    number = correct_memory(
        memory_id=call.row.id,
        text=str(call.data["text"]),
        reason=call.reason,
        person=call.person,
        now=call.now,
    )
    return gettext("Corrected by memory %(number)s.") % {"number": number}


def _withdraw(call: ActRequest) -> Answer:
    withdraw_memory(memory_id=call.row.id, reason=call.reason, person=call.person, now=call.now)
    return gettext("Withdrawn. Agents no longer read it.")


def _owner_facts(row: Memory) -> list[tuple[str, str]]:
    return [
        (gettext("Organisation"), row.organisation.name),
        (gettext("Memory"), owner_of_row(row).path),
    ]


def _facts(row: Memory) -> list[tuple[str, str]]:
    """Whose memory it is, and who wrote the entry."""
    by = actor_name(f"human:{row.person}") if row.person else str(row.author)
    return [*_owner_facts(row), (gettext("Entry by"), by)]


MEMORY_ACTS = (
    Act(
        name="add",
        title=_("Add to this memory"),
        icon="add_notes",
        deed=Deed.KEEP_MEMORY,
        explanation=_("The agents that read this memory read the new entry with your name."),
        perform=_add,
        form=MemoryForm,
        facts=_owner_facts,
    ),
    Act(
        name="correct",
        title=_("Correct entry"),
        icon="edit_note",
        deed=Deed.KEEP_MEMORY,
        explanation=_(
            "Agents read your text instead of this entry. Everyone whose memory it is reads it, "
            "also agents that do not read what the writer of the entry writes. The entry stays in "
            "the history."
        ),
        perform=_correct,
        form=CorrectionForm,
        initial=lambda row: {"text": row.text},
        facts=_facts,
        possible=lambda row: row.is_current,
        text=lambda row: row.text,
    ),
    Act(
        name="withdraw",
        title=_("Withdraw entry"),
        icon="delete_history",
        danger=True,
        deed=Deed.KEEP_MEMORY,
        explanation=_("Agents no longer read this entry. It stays in the history."),
        perform=_withdraw,
        facts=_facts,
        possible=lambda row: row.is_current,
        text=lambda row: row.text,
    ),
)


@admin.register(Memory)
class MemoryAdmin(ActingAdmin):
    """Entries of memories; people add, correct and withdraw them."""

    acts = MEMORY_ACTS
    list_display = (
        "beginning",
        "scope",
        "author",
        "person",
        "agent",
        "group",
        "created_at",
        "organisation",
    )
    list_filter = ("organisation", "scope", "author", "created_at")
    list_select_related = ("organisation", "author", "agent", "group")
    search_fields = ("text",)
    search_help_text = _("The handle of a writer, or words of a recent entry")
    fields = (
        "organisation",
        "scope",
        "author",
        "person",
        "agent",
        "group",
        "replaces",
        "entry",
        "created_at",
    )

    def find(
        self, request: HttpRequest, rows: QuerySet[Memory], term: str
    ) -> QuerySet[Memory] | None:
        """By writer; else by words, among the newest."""
        agents = visible_agents(signed_in(request), term)
        return rows.filter(author__in=agents) if agents else None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Memory]:
        """The list needs no search index."""
        return super().get_queryset(request).defer("words")

    beginning = computed_column(_("text"), lambda row: text(row.text, 80))

    entry = shown_column("text", _("text"), block)


@admin.register(Artifact)
class ArtifactAdmin(BrowseAdmin):
    """Files that agents saved, one row for each version."""

    list_without = ("content",)
    list_display = ("name", "version", "agent", "path", "created_at", "organisation")
    list_filter = ("organisation", "agent", "created_at")
    list_select_related = ("organisation", "agent")
    search_fields = ("name",)
    search_help_text = _("An agent's handle, or a part of a recent file's name")
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

    def find(
        self, request: HttpRequest, rows: QuerySet[Artifact], term: str
    ) -> QuerySet[Artifact] | None:
        """By agent; else by name, among the newest."""
        agents = visible_agents(signed_in(request), term)
        return rows.filter(agent__in=agents) if agents else None

    saved = shown_column("content", _("content"), block)
