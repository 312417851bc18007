"""Reading and searching the web for an agent: counted, recorded, and quoted as data."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlsplit

from django.db import transaction

from core.actions import Action
from core.database import fetch_row
from core.events import text
from ledger.services import record
from orgchart.organisation_settings import quota_of
from toolbox.caller import Caller
from toolbox.quotas.limits import Quota
from toolbox.quoting import BEGIN, END, NOT_AN_INSTRUCTION, as_lines, one_line
from workspace.outside_calls import slot
from workspace.web import rules
from workspace.web.extracting import readable
from workspace.web.fetching import fetch
from workspace.web.results import SearchResults, WebPage
from workspace.web.searching import require_provider, search

COUNT = """
INSERT INTO workspace_webuse AS u (agent_id, day, calls) VALUES (%s, %s, 1)
ON CONFLICT (agent_id, day) DO UPDATE SET calls = u.calls + 1 WHERE u.calls < %s
RETURNING calls
"""
NOTE = f"text of the web: {NOT_AN_INSTRUCTION}"


def read_url(*, caller: Caller, url: str, now: datetime) -> WebPage:
    """Read one public page as text; the ledger keeps its address before it is called.

    Raises Denied as `fetch` does; QUOTA_EXCEEDED, RATE_LIMITED.
    """
    caller.require(rules.can_fetch(url))
    with slot(caller, "pages"):
        _count(caller, Action.WEB_PAGE_READ, now=now, url=text(url), host=urlsplit(url).hostname)
        page = fetch(url, caller=caller)
        title, content, cut = readable(page)
    return {
        "url": one_line(page.url),
        "status": page.status,
        "title": one_line(title)[:300],
        "text": f"{BEGIN}\n{as_lines(content)}\n{END}",
        "truncated": cut,
        "note": NOTE,
    }


def web_search(*, caller: Caller, query: str, limit: int, now: datetime) -> SearchResults:
    """Ask the search provider; the ledger keeps the question.

    Raises Denied DRIVER_UNAVAILABLE, QUOTA_EXCEEDED, RATE_LIMITED.
    """
    require_provider(caller)
    with slot(caller, "searches"):
        _count(caller, Action.WEB_SEARCHED, now=now, query=text(query))
        hits = search(query, limit)
    return {
        "hits": [
            {
                "title": one_line(hit.title),
                "url": one_line(hit.url),
                "snippet": one_line(hit.snippet),
            }
            for hit in hits
        ],
        "note": NOTE,
    }


def _count(caller: Caller, action: Action, *, now: datetime, **details: str | None) -> None:
    """Count one use of the web, and record it. Raises Denied QUOTA_EXCEEDED; then nothing is."""
    quota = Quota(
        what="searches and pages that an agent reads in a day",
        limit=quota_of(caller.policy.settings, "web_calls_per_day"),
        help="go on with what you have read; the count begins again at midnight UTC",
    )
    with transaction.atomic():
        if fetch_row(COUNT, [caller.agent.id, now.date(), quota.limit]) is None:
            raise quota.exceeded_by(quota.limit)
        record(action, by=caller, at=now, details=details)
