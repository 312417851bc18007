"""What PostgreSQL reads for a statement, from its own account."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import psycopg
from django.db import connection
from psycopg import adapters
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer

from core.database import PLANNED

Answer = TypeVar("Answer")

PLANNED_FOR_VALUES = 5
"""Executions of a statement that PostgreSQL plans for their values, before it compares."""


def renew_statistics(table: str) -> None:
    """Let PostgreSQL look at a table as if it had never held other rows.

    What earlier tests wrote and took back leaves its indexes long: once the table itself is short
    again, reading it whole seems cheaper.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"REINDEX TABLE {table}")
        cursor.execute(f"ANALYZE {table}")


def rows_touched(
    statement: str,
    values: Mapping[str, Any] | Sequence[Any] | None,
    *,
    kept: bool = True,
    after_others: bool = False,
) -> int:
    """Rows that a statement reads from tables, however many it returns.

    Of a statement that the server keeps, whichever is more: by the plan for these values, or by the
    one that it goes on with after many executions, which may be for no values in particular. That
    it surely is `after_others`, whose values took so long that any plan seemed better.
    """
    with connection.cursor() as cursor:
        query = PostgresQuery(Transformer.from_context(cursor.cursor))
        query.convert(statement, values)
        given = values if values is None or not query._order else [values[k] for k in query._order]
        types = [_name_of(oid) for oid in query.types or ()]
        written = psycopg.ClientCursor(connection.connection)
        literals = [written.mogrify("%s", [value]) for value in given or ()]
        execute = f"EXECUTE asked ({', '.join(literals)})" if literals else "EXECUTE asked"
        declared = f"({', '.join(types)})" if types else ""
        written.execute(f"PREPARE asked {declared} AS ".encode() + query.query)
        found = [_explain(written, execute)]
        if kept and after_others:
            written.execute("SET plan_cache_mode = force_generic_plan")
            found.append(_explain(written, execute))
            written.execute("RESET plan_cache_mode")
        elif kept:
            for _ in range(PLANNED_FOR_VALUES):
                written.execute(f"EXPLAIN {execute}".encode())
            found.append(_explain(written, execute))
        written.execute("DEALLOCATE asked")
    return max(found)


def _name_of(oid: int) -> str:
    known = adapters.types.get(oid)
    if known is None:
        return "unknown"
    return f"{known.name}[]" if oid == known.array_oid else known.name


def _explain(cursor: psycopg.ClientCursor, execute: str) -> int:
    cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {execute}".encode())
    return _count(cursor.fetchone()[0][0]["Plan"])


def most_of(work: Callable[[], Answer], *, after_others: bool = False) -> tuple[int, Answer]:
    """The most rows that a statement of this work touches, and what it returned."""
    found: list[tuple[str, Any, bool]] = []

    def keep(execute: Callable[..., Any], sql: str, values: Any, many: bool, context: Any) -> Any:
        found.append((sql, values, not PLANNED.get()))
        return execute(sql, values, many, context)

    with connection.execute_wrapper(keep):
        answer = work()
    reads = [each for each in found if "SELECT" in each[0]]
    touched = [
        rows_touched(sql, values, kept=kept, after_others=after_others)
        for sql, values, kept in reads
    ]
    return max(touched), answer


def _count(node: Mapping[str, Any]) -> int:
    own = 0
    if "Scan" in node["Node Type"] and "Relation Name" in node:
        read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        own = round(node["Actual Loops"] * read)
    return own + sum(_count(child) for child in node.get("Plans", []))
