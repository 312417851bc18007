"""What an organisation stores in all, in bytes and in rows; small calls count ahead."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.db.models import Sum

from core.database import fetch_row, hold_lock
from toolbox.models import Stored
from toolbox.quotas.limits import total_quotas

AHEAD_BYTES, AHEAD_ROWS = 64 * 1024, 100
"""Of an agent's small calls so many are counted before they are made."""


Counted = tuple[int, int, int]
"""An agent, and what its organisation's settings say of bytes and of rows in all."""


class CountedAhead:
    """The bytes and rows that this process has counted for the next small calls of each agent.

    They are used under the quotas under which they were counted, and under no others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[Counted, tuple[int, int]] = {}

    def take(self, counted: Counted, size: int) -> bool:
        """Use a row of this size; False where too little is left."""
        with self._lock:
            bytes_, rows = self._left.get(counted, (0, 0))
            if bytes_ < size or rows < 1:
                return False
            self._left[counted] = (bytes_ - size, rows - 1)
        return True

    def put(self, counted: Counted, size: int, more: int) -> None:
        """Add bytes and rows that were counted."""
        with self._lock:
            bytes_, rows = self._left.get(counted, (0, 0))
            self._left[counted] = (bytes_ + size, rows + more)

    def take_all(self) -> dict[Counted, tuple[int, int]]:
        """All that is left, which this process may no longer use."""
        with self._lock:
            left, self._left = self._left, {}
        return left


AHEAD = CountedAhead()

MARGIN = {"bytes_margin": 1024**3, "rows_margin": 10_000}
"""Where less than this is free, writers of an organisation count one after the other: calls under
way at once never store as much."""

STORE = """
WITH used AS (
    SELECT coalesce(sum(bytes), 0) AS b, coalesce(sum(rows), 0) AS r
    FROM toolbox_stored WHERE organisation_id = %(organisation)s
), stored AS (
    INSERT INTO toolbox_stored AS s (agent_id, organisation_id, bytes, rows)
    SELECT %(agent)s, %(organisation)s, %(size)s, %(rows)s FROM used
    WHERE b + %(size)s + %(bytes_margin)s <= %(all_bytes)s
      AND r + %(rows)s + %(rows_margin)s <= %(all_rows)s
    ON CONFLICT (agent_id) DO UPDATE
        SET bytes = s.bytes + EXCLUDED.bytes, rows = s.rows + EXCLUDED.rows
    RETURNING 1
)
SELECT b, r, EXISTS (SELECT FROM stored) FROM used
"""


GIVE_BACK = """
UPDATE toolbox_stored SET bytes = bytes - %s, rows = rows - %s WHERE agent_id = %s
"""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who stores something: an agent, or by minus its own id the organisation as such."""

    id: int
    organisation_id: int
    settings: Mapping[str, Any]


def count_ahead(writer: Writer, counted: Counted, *, size: int) -> bool:
    """Count an agent's small call with its next ones; False near a limit, where each counts alone.

    The next ones use what was counted once this transaction has ended well.
    """
    is_stored, *_ = _store(writer, size=AHEAD_BYTES, rows=AHEAD_ROWS, **MARGIN)
    if is_stored:
        # What is rolled back was not counted.
        transaction.on_commit(partial(AHEAD.put, counted, AHEAD_BYTES - size, AHEAD_ROWS - 1))
    return is_stored


def charge_total(writer: Writer, *, size: int, rows: int) -> None:
    """Count in what the organisation stores in all; near its limit one writer after the other."""
    if _store(writer, size=size, rows=rows, **MARGIN)[0]:
        return
    with transaction.atomic():
        hold_lock("stored", writer.organisation_id)
        is_stored, *used = _store(writer, size=size, rows=rows, bytes_margin=0, rows_margin=0)
    if not is_stored:
        quotas = total_quotas(writer.settings)
        for quota, have, more in zip(quotas, used, (size, rows), strict=True):
            if have + more > quota.limit:
                raise quota.exceeded_by(have)


def _store(writer: Writer, **counted: int) -> tuple[bool, int, int]:
    """Whether there was room outside of the margin; the bytes and rows that were used before."""
    all_bytes, all_rows = (quota.limit for quota in total_quotas(writer.settings))
    values = {"agent": writer.id, "organisation": writer.organisation_id}
    limits = {"all_bytes": all_bytes, "all_rows": all_rows}
    used_bytes, used_rows, is_stored = fetch_row(STORE, values | limits | counted)
    return is_stored, int(used_bytes), int(used_rows)


def stored_by(organisation_id: int) -> tuple[int, int]:
    """Bytes and rows that an organisation stores in all, as its quotas count them."""
    found = Stored.objects.filter(organisation_id=organisation_id).aggregate(
        bytes=Sum("bytes", default=0), rows=Sum("rows", default=0)
    )
    return int(found["bytes"]), int(found["rows"])


def give_back() -> None:
    """Count no more than was used; for the end of this process."""
    left = AHEAD.take_all()
    if not left:
        return
    with connection.cursor() as cursor:
        cursor.executemany(GIVE_BACK, [(*unused, agent) for (agent, *_), unused in left.items()])
