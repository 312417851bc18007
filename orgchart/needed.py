"""What keeps a row from being deleted, found without reading all of it.

Django reads every row that needs another one before it refuses to delete it: agents write any
number of entries into the memory of their group.
"""

from __future__ import annotations

from itertools import islice

from django.db.models import PROTECT, ForeignObjectRel, Model, QuerySet

from core.database import planned_for_values


def rows_that_need(row: Model, most: int) -> list[Model]:
    """Some rows that name this one, and without which it is not deleted; `most` at most."""
    with planned_for_values():  # nearly all rows may be of others
        return list(islice((each for rows in _protected(row) for each in rows[:most]), most))


def _protected(row: Model) -> list[QuerySet[Model]]:
    """Those rows, one query for each column that names it."""
    fields = row._meta.get_fields(include_hidden=True)  # noqa: SLF001  Django's public name
    return [
        each.related_model._base_manager.filter(**{each.field.name: row.pk}).order_by("pk")  # noqa: SLF001  Django's public name
        for each in fields
        if isinstance(each, ForeignObjectRel) and each.on_delete is PROTECT
    ]
