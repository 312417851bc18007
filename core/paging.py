"""Opaque cursors: the place in a list where the next page begins."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import QuerySet

from core.decision import Code, Denied, refuse
from core.ids import row_id

Row = TypeVar("Row")

MAX_LIMIT = 200
DEFAULT_LIMIT = 50
LOOKED_THROUGH = 1000
"""Rows among which a page looks for those that its reader may read; the next page looks further."""


def encode(place: str) -> str:
    """A cursor for the last row's key."""
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def decode(cursor: str | None, *, prefix: str = "") -> str | None:
    """The key in a cursor; None for the first page.

    Raises Denied INVALID_PARAMS for one that no list gave, or a list of other things than these.
    """
    if cursor is None:
        return None
    try:
        place = base64.b64decode(
            cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True
        ).decode()
    except (binascii.Error, ValueError):
        place = ""
    if not place or not place.isprintable() or not place.startswith(prefix):
        raise unknown_cursor()
    return place


def number(cursor: str | None) -> int | None:
    """The row's number in a cursor; None for the first page. Raises Denied INVALID_PARAMS."""
    place = decode(cursor)
    found = None if place is None else row_id(place)
    if place is not None and found is None:
        raise unknown_cursor()
    return found


def cut(
    rows: list[Row], limit: int, place: Callable[[Row], object]
) -> tuple[list[Row], str | None]:
    """One page of rows that were read one past its limit, and the cursor of the next page."""
    page = rows[:limit]
    return page, encode(str(place(page[-1]))) if len(rows) > limit else None


def floor_of(rows: QuerySet[Any]) -> int | None:
    """The id of the last row, newest first, that a page looks at; None where it looks at all.

    A page ends there, full or not, and has a cursor.
    """
    last = list(rows.values_list("id", flat=True)[LOOKED_THROUGH - 1 : LOOKED_THROUGH + 1])
    return last[0] if len(last) > 1 else None


def unknown_cursor() -> Denied:
    """The refusal of a cursor that names no row of the list."""
    return refuse(
        Code.INVALID_PARAMS,
        "cursor: no list gave you this cursor",
        "use next_cursor as it was returned, or leave cursor out",
        rule="paging",
        cursor="not one that a list gave you",
    )
