"""What people look at every day costs the same after years: what has ended is not read."""

import pytest
from django.contrib import admin
from django.db import connection
from django.urls import reverse

from contracts.models import Contract, Deadline
from documents.models import Document
from ledger.models import Event
from mailroom.models import Escalation
from nexus_site.company import agent_page
from nexus_site.console import counting
from tests.admin.places import list_page
from tests.plans import rows_touched
from tests.settled import fill

SEARCHES = {
    Contract: "nobody",
    Deadline: "CON-1",
    Document: "CON-1",
    Escalation: "MAIL-1",
    Event: "CON-1",
}
"""Of each list a search that finds nothing, and so might read everything."""
MOST = 10_500
"""Rows that one statement may touch: a list counts up to 10,000."""


@pytest.mark.django_db
def test_pages_read_what_is_open_or_a_page(company, board, monkeypatch):
    monkeypatch.setattr(counting, "SCANNED", 1000)
    monkeypatch.setattr(agent_page, "LOOKED_AT", 1000)
    fill(company.organisation)
    read = {}

    def keep(execute, sql, values, many, context):
        read.setdefault(sql, (page, values))
        return execute(sql, values, many, context)

    agent = company.agent("extra_1")
    pages = [
        reverse("admin:index"),
        reverse("admin:orgchart_agent_change", args=[agent.id]),
        reverse("admin:orgchart_organisation_change", args=[agent.organisation_id]),
        *(list_page(model) for model in admin.site._registry),
        *(f"{list_page(model)}?q={term}" for model, term in SEARCHES.items()),
    ]
    for page in pages:
        with connection.execute_wrapper(keep):
            assert board.get(page).status_code in (200, 403)
    asked = {sql: at for sql, at in read.items() if sql.lstrip("(").startswith(("SELECT", "WITH"))}
    assert len(asked) > len(pages)
    touched = {sql: rows_touched(sql, values) for sql, (_, values) in asked.items()}
    assert [(read[sql][0], rows, sql) for sql, rows in touched.items() if rows > MOST] == []
