"""The canonical form of an event as PostgreSQL composes it, byte for byte that of `canonical`.

Only the details are left to Python, because jsonb orders keys otherwise. Text without quotes,
backslashes and control characters is taken as it is; any other is escaped as JSON does it.
"""

from __future__ import annotations

from psycopg import Connection
from psycopg.types.json import Jsonb

from ledger.canonical import FIELDS

SEPARATOR = b"\x01"
"""On both sides of the details. Escaped text never holds a control character."""

SHAPE = {
    "seq": "bigint",
    "id": "uuid",
    "at": "timestamp with time zone",
    "organisation_id": "bigint",
    "actor": "character varying",
    "action": "character varying",
    "decision": "character varying",
    "code": "character varying",
    "reason": "text",
    "tool": "character varying",
    "subject": "character varying",
    "policy_version": "bigint",
    "args_digest": "character varying",
    "request_id": "character varying",
    "session_id": "character varying",
    "for_agent_id": "bigint",
    "kind": "character varying",
    "details": "jsonb",
    "xid": "bigint",
    "era": "bigint",
    "digest": "bytea",
}
MAYBE_NULL = {name for name in FIELDS if SHAPE[name] == "bigint"}
TEXTS = sorted(name for name in FIELDS if SHAPE[name] in {"text", "character varying"})

FUNCTIONS = {
    'pg_catalog.concat("any")': "text_concat",
    "pg_catalog.octet_length(text)": "textoctetlen",
    "pg_catalog.timezone(text, timestamptz)": "timestamptz_zone",
    "pg_catalog.to_char(timestamp, text)": "timestamp_to_char",
    "pg_catalog.to_json(anyelement)": "to_json",
}
"""What the form is composed with, and the code in the server's own program that does it."""

KNOWN_SHAPE = """
SELECT (SELECT jsonb_object_agg(attname, format_type(atttypid, NULL)) FROM pg_attribute
        WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) = %(shape)s::jsonb
   AND (SELECT array_agg(attname::text ORDER BY attname) FROM pg_attribute
        WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND NOT attnotnull) = %(null)s
   AND (SELECT bool_and(l.lanname = 'internal' AND p.prosrc = f.code)
        FROM unnest(%(names)s::text[], %(codes)s::text[]) AS f(name, code)
        LEFT JOIN pg_proc p ON p.oid = to_regprocedure(f.name)
        LEFT JOIN pg_language l ON l.oid = p.prolang)
   AND getdatabaseencoding() = 'UTF8' AND c.relkind = 'r'
FROM pg_class c WHERE c.oid = 'ledger_event'::regclass
"""


def has_known_shape(connection: Connection) -> bool:
    """Whether columns and functions are those that the form was proven for.

    A superuser could have replaced a function, or let a column hold what its form does not show.
    """
    values = {
        "shape": Jsonb(SHAPE),
        "null": sorted(MAYBE_NULL),
        "names": list(FUNCTIONS),
        "codes": list(FUNCTIONS.values()),
    }
    found = connection.execute(KNOWN_SHAPE, values).fetchone()
    return found is not None and bool(found[0])


# What is outside Python's calendar cannot be read and has no form: NULL takes its place.
AT = """CASE WHEN at >= '0001-01-01 00:00:00+00' AND at < '10000-01-01 00:00:00+00' THEN at END"""
MOMENT = f"""pg_catalog.to_char(
    pg_catalog.timezone('UTC', {AT}), 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')"""


def compose(*, escapes: bool) -> str:
    """The SQL of the canonical form; the details are as they are stored, between separators.

    Without `escapes` text is taken as it is.
    """
    text = ""  # constants, with each value as a name in braces
    values: list[str] = []
    for name in sorted(FIELDS):
        text += f',"{name}":' if values else f'{{"{name}":'
        if name == "details":
            values.append(name)
            text += f"{SEPARATOR.decode()}\0{SEPARATOR.decode()}"
        elif name in MAYBE_NULL:
            values.append(f"coalesce({name}::text, 'null')")
            text += "\0"
        elif name in TEXTS and escapes:
            values.append(f"pg_catalog.to_json({name})")
            text += "\0"
        else:
            values.append(MOMENT if name == "at" else name)
            text += '"\0"'
    constants = f"{text}}}".split("\0")
    parts = [f"'{constants[0]}'"]
    for value, constant in zip(values, constants[1:], strict=True):
        parts += [value, f"'{constant}'"]
    return f"pg_catalog.concat({', '.join(parts)})"


WORDS = f"pg_catalog.concat({', '.join(TEXTS)})"
IS_PLAIN = (
    "pg_catalog.octet_length(pg_catalog.to_json(words)::text) = pg_catalog.octet_length(words) + 2"
)
EVENTS = f"""
SELECT xid, seq, digest,
       CASE WHEN {IS_PLAIN} THEN {compose(escapes=False)} ELSE {compose(escapes=True)} END
FROM (SELECT *, {WORDS} AS words FROM ledger_event WHERE %s ORDER BY era, xid, seq OFFSET 0) AS e
"""  # OFFSET 0: the words are put together once


def copy_statement(*, era: int, lo: int, hi: int) -> bytes:
    """The COPY of the events of the transactions `lo <= xid < hi`: place, digest and text."""
    where = f"era = {int(era)} AND xid >= {int(lo)} AND xid < {int(hi)}"
    return f"COPY ({EVENTS.replace('%s', where)}) TO STDOUT (FORMAT binary)".encode()
