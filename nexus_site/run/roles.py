"""Two database roles: the owner migrates, a lesser one serves and cannot undo what must hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import connection, connections
from psycopg import sql

EMBEDDED = "nexus_serving"
IDLE = "60s"  # a transaction that does nothing for so long is ended: it would hold back sealing

# What a table's own trigger refuses is not even granted. 8: delete, 16: update, 32: truncate.
GUARDED = """
SELECT tgrelid::regclass::text, (tgtype & 16) > 0, (tgtype & 8) > 0
FROM pg_trigger WHERE tgname = tgrelid::regclass::text || '_only_grows'
"""
# Who owns the schema or the database drops tables of others. A table of one's own, a temporary one
# too, stands in for the one that a trigger asks.
UNSAFE = """
SELECT rolsuper OR rolcreaterole OR rolreplication
    OR pg_has_role(oid, 'pg_execute_server_program', 'USAGE')
    OR pg_has_role(oid, 'pg_write_server_files', 'USAGE')
    OR EXISTS (
        SELECT 1 FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
        WHERE t.oid = 'ledger_event'::regclass
            AND (pg_has_role(r.oid, relowner, 'USAGE') OR pg_has_role(r.oid, nspowner, 'USAGE')))
    OR has_schema_privilege(oid, 'public', 'CREATE')
    OR has_database_privilege(oid, current_database(), 'CREATE')
    OR has_database_privilege(oid, current_database(), 'TEMPORARY')
FROM pg_roles r WHERE rolname = current_user
"""


def serving_role() -> str:
    """The role that serves; empty where one role does everything (development, by a URL)."""
    if not settings.DATABASE_URL:
        return EMBEDDED
    return str(settings.SERVING_ROLE) if settings.DATABASE_OWNER_URL else ""


def become_owner() -> None:
    """Let this process connect as the owner; before its first connection."""
    if settings.DATABASE_OWNER_URL:
        _connect_as(settings.OWNER)


def serve(run: Callable[[], int | None]) -> Callable[[], int | None]:
    """The same work in a process that connects as the serving role."""

    def serve_as_lesser() -> int | None:
        if not settings.DATABASE_URL:
            _connect_as({"USER": EMBEDDED})
        return run()

    return serve_as_lesser


def grant_serving() -> None:
    """Give the serving role what serving needs, and no more; repeatable, by the owner."""
    role = serving_role()
    if not role:
        return
    name, database = sql.Identifier(role), sql.Identifier(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        if not settings.DATABASE_URL:
            cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
            if cursor.fetchone() is None:
                cursor.execute(sql.SQL("CREATE ROLE {} LOGIN").format(name))
        for statement in STATEMENTS:
            cursor.execute(sql.SQL(statement).format(role=name, database=database))
        cursor.execute(GUARDED)
        for table, updates, deletes in cursor.fetchall():
            refused = ["TRUNCATE", *["UPDATE"] * updates, *["DELETE"] * deletes]
            revoke = sql.SQL("REVOKE {} ON {} FROM {}").format(
                sql.SQL(", ".join(refused)), sql.SQL(table), name
            )
            cursor.execute(revoke)


STATEMENTS = (
    "REVOKE CONNECT, TEMPORARY ON DATABASE {database} FROM PUBLIC",
    "REVOKE TEMPORARY ON DATABASE {database} FROM {role}",  # earlier versions granted it
    "GRANT CONNECT ON DATABASE {database} TO {role}",
    "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    "GRANT USAGE ON SCHEMA public TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}",
    (
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public "
        "GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}"
    ),
    "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {role}",
    "REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {role}",
    (
        "ALTER ROLE {role} IN DATABASE {database} "
        f"SET idle_in_transaction_session_timeout = '{IDLE}'"
    ),
)


def is_unsafe() -> bool:
    """True if the role of this connection could switch off what the database guards."""
    with connection.cursor() as cursor:
        cursor.execute(UNSAFE)
        return bool(cursor.fetchone()[0])


def _connect_as(changes: dict[str, Any]) -> None:
    connections.close_all()
    connections.settings["default"].update(changes)
