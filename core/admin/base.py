"""The base of every page of the admin: read-only, fast on any size of table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Self, TypeVar

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from unfold.decorators import display

from core.admin.actors import actor_shown
from core.admin.browsing import ReadOnlyAdmin
from core.admin.contexts import admin_context
from core.hooks import Hook
from core.labels import Text
from core.waiting import page_of

history_of = Hook[[str, int | None], list[Any]]("the newest events about a subject")
"""Subject and organisation to rows with `at`, `actor`, `action`, …; the ledger joins it."""

Shown = TypeVar("Shown", bound=Callable[..., Any])


class _Named(str):
    """A value as people read it, and the code that its colour goes by."""

    __slots__ = ("code",)
    code: str

    def __new__(cls, code: str, text: str) -> Self:
        made = super().__new__(cls, text)
        made.code = code
        return made


class _Colours(dict[str, str]):
    """The colour of each value, found by its code."""

    def __contains__(self, value: object) -> bool:
        return super().__contains__(getattr(value, "code", value))

    def __getitem__(self, value: str) -> str:
        return super().__getitem__(getattr(value, "code", value))


def column(
    description: Text,
    *,
    label: str | Mapping[str, str] | None = None,
    boolean: bool | None = None,
    ordering: str | None = None,
) -> Callable[[Shown], Shown]:
    """A computed column: its heading; with `label`, coloured by its value. The theme's, typed.

    A coloured column answers the value, or the value with the text that people read for it.
    """
    colours = label if label is None or isinstance(label, str) else _Colours(label)

    def made(answer: Shown) -> Shown:
        @wraps(answer)
        def shown(page: Any, row: Any) -> Any:
            value = answer(page, row)
            return _Named(*value) if isinstance(value, tuple) else value

        found: Shown = display(
            description=description, label=colours, boolean=boolean, ordering=ordering
        )(shown)
        return found

    return made


def computed_column(
    description: Text, show: Callable[[Any], Any], **look: Any
) -> Callable[[Any, Any], Any]:
    """A column for what `show` makes of a row; `look` is what `column` takes besides."""

    @column(description, **look)
    def shown(page: Any, row: Any) -> Any:
        return show(row)

    return shown


def choice_column(
    field: str, description: Text, colours: Mapping[str, str]
) -> Callable[[Any, Any], tuple[str, str]]:
    """A column for a field with choices: the words of the choice, in its colour."""
    return computed_column(
        description,
        lambda row: (getattr(row, field), getattr(row, f"get_{field}_display")()),
        label=colours,
    )


def actor_column(field: str, description: Text) -> Callable[[Any, Any], SafeString | str]:
    """A column that names the actor kept in a field of the row."""
    return shown_column(field, description, lambda actor: actor_shown(actor) or "–")


def shown_column(
    field: str, description: Text, show: Callable[[Any], SafeString | str]
) -> Callable[[Any, Any], SafeString | str]:
    """A column for a field as `show` shows it, such as `block` or `chips`."""
    return computed_column(description, lambda row: show(getattr(row, field)))


def yes_no_column(field: str, description: Text) -> Callable[[Any, Any], str]:
    """A column for a plain yes or no, which is neither good nor bad."""
    return shown_column(
        field, description, lambda value: gettext("yes") if value else gettext("no")
    )


class BrowseAdmin(ReadOnlyAdmin):
    """A table to look at, with the trace that each row left in the ledger as its history."""

    list_filter_submit = True
    subject_key = "pk"
    """The column whose value the ledger names a row by."""
    subject: str | None = None
    """How the ledger names a row, such as `tool:{row.tool}`; '' where it never does."""

    def organisation_id_of(self, row: Any) -> int:
        """Whose row it is; 0 for a row of the installation."""
        value = row
        for part in (self.organisation_path or "").split("."):
            value = getattr(value, part) if part else 0
        return int(value or 0)

    def subject_of(self, row: Any) -> str:
        """How the ledger names the row; '' where it never does."""
        if self.subject is None:
            return f"{self.opts.model_name}:{row.pk}"
        return self.subject.format(row=row)

    def address_of_subject(
        self, request: HttpRequest, key: str, organisation_id: int | None
    ) -> str:
        """The page of the row that the ledger names so; '' if this person sees no such row."""
        if not self.has_view_permission(request):
            return ""
        rows = self.get_queryset(request).filter(**{self.subject_key: key})
        if self.organisation_path and organisation_id is not None:
            rows = rows.filter(**{self.organisation_path.replace(".", "__"): organisation_id})
        row = rows.first()
        return page_of(row) if row else ""

    def gone(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The page that says that nothing is here: no such row that this person sees."""
        answer: HttpResponse = self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        return answer

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The row's events, from the ledger rather than from a log of this admin's own."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            return self.gone(request, object_id)
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        found = history_of(self.subject_of(row), self.organisation_id_of(row) or None)
        context = admin_context(
            self,
            request,
            gettext("History: %(row)s") % {"row": row},
            events=[event for events in found for event in events],
            object=row,
            **(extra_context or {}),
        )
        return TemplateResponse(request, "admin/nexus/history.html", context)


def page_of_subject(request: HttpRequest, subject: str, organisation_id: int | None) -> str:
    """The page of what an event is about; '' where it has none that this person may open."""
    noun, _, key = subject.partition(":")
    for model, page in admin.site._registry.items():  # noqa: SLF001  Django's public name
        if isinstance(page, BrowseAdmin) and model._meta.model_name == noun:  # noqa: SLF001  as above
            try:
                return page.address_of_subject(request, key, organisation_id)
            except (ValueError, ValidationError, DataError):  # no key of this table
                return ""
    return ""


def link(address: str, text: object) -> SafeString:
    """A link to another page, its text escaped."""
    return format_html('<a class="nx-link" href="{}">{}</a>', address, text)


def listed(items: Any) -> SafeString:
    """A list of agent-given texts, one to a line, escaped."""
    found = [(str(item),) for item in items or ()]
    if not found:
        return format_html('<span class="nx-none">{}</span>', gettext("none"))
    return format_html('<ul class="nx-list">{}</ul>', format_html_join("", "<li>{}</li>", found))


def chips(items: Any, empty: str = "") -> SafeString:
    """Short names in a row, escaped; `empty` is what an empty row says."""
    found = [(str(item),) for item in items or ()]
    if not found:
        return format_html('<span class="nx-none">{}</span>', empty or gettext("none"))
    inner = format_html_join(" ", '<code class="nx-chip">{}</code>', found)
    return format_html('<div class="nx-chips">{}</div>', inner)


def block(text: str) -> SafeString:
    """A long agent-given text with its own line breaks, escaped."""
    return format_html('<div class="nx-block">{}</div>', text) if text else SafeString("–")


def in_hex(value: bytes) -> str:
    """Bytes as people compare them."""
    return bytes(value).hex()


def printed(text: str) -> SafeString:
    """What a program wrote, in columns as it wrote it, escaped."""
    if not text:
        return SafeString("–")
    return format_html('<pre class="nx-file" translate="no">{}</pre>', text)
