"""Filters of lists that people keep for themselves (Spec: people 47): their one writer."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from core.database import hold_lock
from core.decision import Code, refuse
from orgchart.people.models import SavedFilter

MOST = 30
"""Filters that a person keeps of one list."""
LONGEST_NAME, LONGEST_QUERY = 40, 1000


def filters_of(*, person_id: int, table: str) -> list[SavedFilter]:
    """What a person keeps of one list, by name."""
    rows = SavedFilter.objects.filter(person_id=person_id, table=table)
    return list(rows.order_by("name")[:MOST])


def save_filter(*, person_id: int, table: str, name: str, query: str, now: datetime) -> SavedFilter:
    """Keep the filters under this name, in place of those that had it.

    Raises Denied INVALID_PARAMS: without a name or a filter, too long, or one more than MOST.
    """
    name = name.strip()
    if not name or not query:
        raise refuse(Code.INVALID_PARAMS, "a filter and its name", "filter the list, then name it")
    if len(name) > LONGEST_NAME or len(query) > LONGEST_QUERY:
        raise refuse(
            Code.INVALID_PARAMS,
            f"a name has {LONGEST_NAME} characters at most, its filters {LONGEST_QUERY}",
            "choose a shorter name, or fewer filters",
        )
    with transaction.atomic():
        hold_lock("filters", person_id)
        kept = SavedFilter.objects.filter(person_id=person_id, table=table)
        if kept.exclude(name=name).count() >= MOST:
            raise refuse(
                Code.INVALID_PARAMS,
                f"you keep {MOST} filters of this list, which is the most",
                "remove one that you do not use any more",
            )
        row, _ = SavedFilter.objects.update_or_create(
            person_id=person_id,
            table=table,
            name=name,
            defaults={"query": query, "saved_at": now},
        )
    return row


def remove_filter(*, person_id: int, filter_id: int) -> SavedFilter | None:
    """Remove a filter of this person's; None if they keep no such filter."""
    row = SavedFilter.objects.filter(person_id=person_id, id=filter_id).first()
    if row is not None:
        row.delete()
    return row
