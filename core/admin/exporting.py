"""Lists as files: CSV or JSON of exactly what a list shows, streamed, bounded and recorded."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import flatten
from django.contrib.admin.views.main import ERROR_FLAG
from django.contrib.auth import get_user
from django.core.exceptions import PermissionDenied
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection
from django.db.models import BinaryField, Field, QuerySet
from django.http import (
    HttpRequest,
    HttpResponseBase,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext

from core.actions import Action
from core.admin.bounded import cut, is_cut, part_of, several_organisations
from core.admin.contexts import admin_context
from core.control_characters import show_in_text
from core.database import database_now, give_back_connection, retry_broken
from core.events import Event, record_event
from core.labels import Text
from core.people import ADMIN_TOOL, groups_of, organisations_of, signed_in

MOST = 50_000
"""Rows of one file, the newest; the file says when there are more."""
PAGE = 100
"""Rows that are held at once: an agent can make each of them 400,000 characters long."""
FORMATS = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
RISKY = (*SIGNS, "\t", "\r", "\n")
"""A spreadsheet takes a cell that begins so for a formula; in Chinese or Japanese wide ones too."""
RISKY_WITHIN = re.compile(rf"""([;\t\r\n]"*)(?=[{re.escape(SIGNS)}])""")
"""Where one that splits cells at semicolons, as in most of Europe, or at tabs begins such a cell:
it knows no quotes around a cell that begins after a comma.
"""


class ExportingAdmin:
    """A list that can be saved as a file by every person who may look at it."""

    list_before_template = "admin/nexus/list_tools.html"
    in_other_words: Sequence[str] = ()
    """Columns of the table that pages show by a method; a file has them as they are."""
    seen_with: Mapping[str, str] = {}
    """Columns that the row's own page shows only with a permission: their names, and which."""
    export_actions: Sequence[tuple[Text, str]] = ()
    """More buttons of the export page: what each says, and the name of its page."""

    def get_urls(self) -> list[URLPattern]:
        """With the page of the export."""
        page = self.admin_site.admin_view(self.export_view)  # type: ignore[attr-defined]
        return [path("export/", page, name=self.export_name), *super().get_urls()]  # type: ignore[misc]

    @property
    def export_name(self) -> str:
        """The name of that page."""
        opts = self.opts  # type: ignore[attr-defined]
        return f"{opts.app_label}_{opts.model_name}_export"

    @property
    def export_address(self) -> str:
        """Where that page is; the list adds its filters."""
        return reverse(f"admin:{self.export_name}")

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Say how much it is; on POST record the export and stream the file.

        Where a filter has a value that is none, show the list, which says so.
        """
        if not self.has_view_permission(request):  # type: ignore[attr-defined]
            raise PermissionDenied
        listed = request.path.removesuffix("export/")
        try:
            shown = self.get_changelist_instance(request)  # type: ignore[attr-defined]
        except IncorrectLookupParameters:
            return HttpResponseRedirect(f"{listed}?{ERROR_FLAG}=1")
        rows: QuerySet[Any] = shown.queryset
        kind = request.POST.get("format", "")
        if request.method == "POST" and kind in FORMATS:
            return self._file(request, rows, kind)
        context = admin_context(
            self,
            request,
            gettext("Export: %(table)s") % {"table": self.opts.verbose_name_plural},  # type: ignore[attr-defined]
            count=rows.order_by()[: MOST + 1].count(),
            most=MOST,
            cut=cut() if is_cut(request) else "",
            filters=sorted((k, v) for k, v in request.GET.items() if v and k != "p"),
            back=f"{listed}?{request.GET.urlencode()}",
            more=[(label, reverse(f"admin:{name}")) for label, name in self.export_actions],
        )
        return TemplateResponse(request, "admin/nexus/export.html", context)

    def _columns(self, request: HttpRequest) -> Sequence[Field[Any, Any]]:
        """The columns that the row's own page or the list shows: never a secret."""
        page: Any = self
        shown = {*page.get_list_display(request), *flatten(page.get_fields(request))}
        shown |= {*self.in_other_words}
        hidden = set(page.get_exclude(request) or ())
        may = request.user.has_perm
        hidden |= {name for name, right in self.seen_with.items() if not may(right)}
        return [
            field
            for field in page.opts.concrete_fields
            if not isinstance(field, BinaryField)
            and (field.primary_key or field.name in shown)
            and field.name not in hidden
        ]

    def _file(self, request: HttpRequest, rows: QuerySet[Any], kind: str) -> StreamingHttpResponse:
        opts = self.opts  # type: ignore[attr-defined]
        now = database_now()
        record_event(
            Event(
                action=Action.LIST_EXPORTED,
                actor=f"human:{signed_in(request).username}",
                at=now,
                tool=ADMIN_TOOL,
                subject=f"table:{opts.label_lower}",
                request_id=getattr(request, "request_id", ""),
                details={"format": kind, "filters": dict(list(request.GET.items())[:20])},
            )
        )
        fields = self._columns(request)
        several = several_organisations(request, self)
        pages = _pages(rows, several, fields, lambda: self._may_still_look(request))
        parts = _as_csv(pages, fields) if kind == "csv" else _as_json(pages, fields)
        response = StreamingHttpResponse(parts, content_type=FORMATS[kind])
        name = f"{opts.model_name}-{now:%Y%m%d-%H%M%S}.{kind}"
        response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
        response.headers["Cache-Control"] = "no-store"
        return response

    def _may_still_look(self, request: HttpRequest) -> bool:
        """Whether session, staff, groups and organisations of the person hold (Spec: people 35).

        A client that reads slowly makes a file last for hours. Groups say which columns and rows
        are in it: who has another right to look reads less.
        """
        again = copy(request)
        again.session = type(request.session)(request.session.session_key)
        again.user = get_user(again)
        page: Any = self
        if not (page.admin_site.has_permission(again) and page.has_view_permission(again)):
            return False
        if not signed_in(request).groups <= groups_of(again.user):
            return False
        before, now = signed_in(request).organisations, organisations_of(again.user)
        return now is None or (before is not None and before <= now)


def _pages(
    rows: QuerySet[Any],
    several: Sequence[int],
    fields: Sequence[Field[Any, Any]],
    may_look: Callable[[], bool],
) -> Iterator[list[Any]]:
    """The newest rows, a page at a time: no cursor and no transaction stays open meanwhile.

    Raises PermissionDenied where the person may look no more: the file ends unfinished.
    """
    names = ["pk", *(field.attname for field in fields)]
    last: Any = None
    left = MOST

    def read() -> list[Any]:
        if last is not None and not may_look():
            raise PermissionDenied
        part = rows.order_by("-pk") if last is None else rows.order_by("-pk").filter(pk__lt=last)
        some = part_of(part, several, begin=0, end=min(PAGE, left))
        return list(some.values_list(*names))

    while left > 0:
        page = retry_broken(read, is_repeatable=True)
        if not connection.in_atomic_block:  # the next page may be read in another thread
            give_back_connection()
        if not page:
            return
        yield [each[1:] for each in page]
        last, left = page[-1][0], left - len(page)


class _Line:
    """What `csv` writes to: it hands the line back."""

    def write(self, line: str) -> str:
        return line


def _as_csv(pages: Iterator[list[Any]], fields: Sequence[Field[Any, Any]]) -> Iterator[bytes]:
    writer = csv.writer(_Line())
    yield str(writer.writerow([field.attname for field in fields])).encode()
    for page in pages:
        yield "".join(str(writer.writerow([_cell(v) for v in row])) for row in page).encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    is_json = isinstance(value, dict | list)
    words = json.dumps(value, cls=DjangoJSONEncoder) if is_json else show_in_text(_moment(value))
    if isinstance(value, int):
        return words
    words = RISKY_WITHIN.sub(r"\1'", words)
    return f"'{words}" if words.startswith(RISKY) else words


def _moment(value: Any) -> str:
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _as_json(pages: Iterator[list[Any]], fields: Sequence[Field[Any, Any]]) -> Iterator[bytes]:
    names = [field.attname for field in fields]
    before = "["
    for page in pages:
        for row in page:
            line = json.dumps(dict(zip(names, row, strict=True)), cls=DjangoJSONEncoder)
            yield f"{before}\n{line}".encode()
            before = ","
    yield (b"[]\n" if before == "[" else b"\n]\n")
