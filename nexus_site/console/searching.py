"""Search from any page: pages by name, and every table that the person may look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.contrib import admin
from django.db import DataError
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext
from unfold.dataclasses import SearchResult

from core.admin.actors import actor_name
from core.decision import Code
from core.events import text
from core.waiting import page_of
from toolbox.registry import REGISTRY

TABLES = (
    ("orgchart.agent", "smart_toy"),
    ("orgchart.role", "badge"),
    ("orgchart.group", "groups"),
    ("contracts.contract", "contract"),
    ("mailroom.mail", "mail"),
    ("tasks.task", "task_alt"),
    ("governance.case", "gavel"),
    ("documents.document", "description"),
    ("workspace.skill", "extension"),
    ("ledger.event", "receipt_long"),
)
"""The tables that are searched, in the order of the results, with their icons."""

MOST = 5
"""Results of one kind; the list behind them shows the rest."""


def search_everywhere(request: HttpRequest, asked: str) -> list[SearchResult]:
    """What the term finds, by kind. Each table's own page decides what this person sees of it."""
    term = text(asked.strip(), 200)
    if len(term) < 2 and not term.isdigit():
        return []
    found = [*_pages(request, term), *_tools(request, term), *_codes(request, term)]
    for label, icon in TABLES:
        found += _rows(request, label, icon, term)
    return found


def _pages(request: HttpRequest, term: str) -> Iterator[SearchResult]:
    """The lists whose name contains the term."""
    for app in admin.site.get_app_list(request):
        for model in app["models"]:
            if term.lower() in str(model["name"]).lower() and model["admin_url"]:
                yield SearchResult(
                    title=str(model["name"]), description=gettext("page"), link=model["admin_url"],
                    icon="list",
                )  # fmt: skip


def _rows(request: HttpRequest, label: str, icon: str, term: str) -> Iterator[SearchResult]:
    room, _, name = label.partition(".")
    model = apps.all_models[room].get(name)
    page = admin.site._registry.get(model) if model else None  # noqa: SLF001  Django's public name
    if page is None or not page.has_view_permission(request):
        return
    kind = str(page.opts.verbose_name)
    try:
        rows, _ = page.get_search_results(request, page.get_queryset(request), term)
        found: list[Any] = list(rows[:MOST])
    except (DataError, OverflowError, ValueError):  # a term that no column can hold
        return
    for row in found:
        yield SearchResult(
            title=_title(row), description=_described(kind, row), link=page_of(row), icon=icon
        )


def _title(row: Any) -> str:
    for name in ("subject", "title", "handle"):
        value = getattr(row, name, "")
        if value and not hasattr(row, "seq"):
            return text(str(value), 90)
    return text(str(row), 90)


def _described(kind: str, row: Any) -> str:
    """The kind, and what tells rows of one title apart."""
    if hasattr(row, "seq"):
        return (
            f"{kind}, {actor_name(row.actor)} {row.code} {row.subject} {row.at:%Y-%m-%d %H:%M} UTC"
        )
    key = row.pk if isinstance(row.pk, str) else ""
    return f"{kind} {key}".strip()


def _tools(request: HttpRequest, term: str) -> Iterator[SearchResult]:
    if not request.user.has_perm("orgchart.view_organisation"):
        return
    names = [tool.name for tool in REGISTRY.all() if term.lower() in tool.name]
    for name in sorted(names)[:MOST]:
        link = f"{reverse('admin:explain')}?{urlencode({'ask': 'tool', 'tool': name})}"
        yield SearchResult(
            title=name, description=gettext("tool: explain it"), link=link, icon="build"
        )


def _codes(request: HttpRequest, term: str) -> Iterator[SearchResult]:
    if not request.user.has_perm("ledger.view_event"):
        return
    for code in [each for each in Code if term.upper() in each.value][:MOST]:
        link = f"{reverse('admin:ledger_event_changelist')}?{urlencode({'code': code.value})}"
        yield SearchResult(
            title=code.value,
            description=gettext("code: every refusal with it"),
            link=link,
            icon="block",
        )
