"""What PostgreSQL reads for a statement, from its own account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.db import connection

Answer = TypeVar("Answer")


def renew_statistics(table: str) -> None:
    """Let PostgreSQL look at a table as if it had never held other rows.

    What earlier tests wrote and took back leaves its indexes long: once the table itself is short
    again, reading it whole seems cheaper.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"REINDEX TABLE {table}")
        cursor.execute(f"ANALYZE {table}")


def rows_touched(statement: str, values: Mapping[str, Any]) -> int:
    """Rows that a statement reads from tables, however many it returns."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)
        return _count(cursor.fetchone()[0][0]["Plan"])


def most_of(work: Callable[[], Answer]) -> tuple[int, Answer]:
    """The most rows that a statement of this work touches, and what it returned."""
    found: list[tuple[str, Any]] = []

    def keep(execute: Callable[..., Any], sql: str, values: Any, many: bool, context: Any) -> Any:
        found.append((sql, values))
        return execute(sql, values, many, context)

    with connection.execute_wrapper(keep):
        answer = work()
    reads = [(sql, values) for sql, values in found if "SELECT" in sql]
    return max(rows_touched(sql, values) for sql, values in reads), answer


def _count(node: Mapping[str, Any]) -> int:
    own = 0
    if "Scan" in node["Node Type"] and "Relation Name" in node:
        read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        own = round(node["Actual Loops"] * read)
    return own + sum(_count(child) for child in node.get("Plans", []))
