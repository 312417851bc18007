"""Two database roles: the owner migrates, a lesser one serves and cannot undo what must hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import connection, connections
from psycopg import sql

from ledger.canonical import FIELDS
from nexus_site.run import cluster_lock
from nexus_site.run.postgres import Cluster

EMBEDDED = "nexus_serving"
IDLE = "60s"  # a transaction that does nothing for so long is ended: it would hold back sealing
LOCKED = "20s"  # that a statement waits for a lock, as an operator may hold one: then it is refused
GONE = "5s"  # between two looks whether who asked is still there: a statement keeps its locks
# After these the server gives up a machine that closed no connection: it may have held a lock.
SILENT = {
    "tcp_keepalives_idle": "20s",
    "tcp_keepalives_interval": "5s",
    "tcp_keepalives_count": "4",
    "tcp_user_timeout": "40s",
}

# What a table's own trigger refuses is not even granted. 8: delete, 16: update, 32: truncate.
GUARDED = """
SELECT tgrelid::regclass::text, (tgtype & 16) > 0, (tgtype & 8) > 0
FROM pg_trigger WHERE tgname = tgrelid::regclass::text || '_only_grows'
"""
# Of the role that signed in and of every role that it may become (SET ROLE): a superuser any. Who
# owns the schema or the database drops tables of others. A table of one's own, a temporary one too,
# stands in for the one that a trigger asks. session_replication_role switches triggers off; a
# trigger more swallows rows; who sets an event's number writes behind a seal. Any role may own
# large objects and privileges of what it creates: they undo nothing.
UNSAFE = """
SELECT bool_or(rolcreaterole OR rolreplication
    OR rolname IN (
        'pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')
    OR has_parameter_privilege(r.oid, 'session_replication_role', 'SET')
    OR EXISTS (
        SELECT 1 FROM pg_shdepend JOIN pg_database d ON datname = current_database()
        WHERE refobjid = r.oid AND deptype = 'o'
            AND classid NOT IN ('pg_largeobject'::regclass, 'pg_default_acl'::regclass)
            AND (dbid = d.oid OR (classid = 'pg_database'::regclass AND objid = d.oid)))
    OR EXISTS (SELECT 1 FROM pg_namespace n WHERE has_schema_privilege(r.oid, n.oid, 'CREATE'))
    OR EXISTS (
        SELECT 1 FROM pg_class c WHERE relnamespace = 'public'::regnamespace
            AND relkind IN ('r', 'p', 'v') AND has_table_privilege(r.oid, c.oid, 'TRIGGER'))
    OR EXISTS (
        SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('public.ledger_event')
            AND attname = 'seq' AND has_column_privilege(r.oid, attrelid, attnum, 'INSERT'))
    OR has_database_privilege(r.oid, current_database(), 'CREATE')
    OR has_database_privilege(r.oid, current_database(), 'TEMPORARY'))
FROM pg_roles r WHERE pg_has_role(session_user, r.oid, 'MEMBER')
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
    """The same work in a process that connects as the serving role.

    It leaves the start of the embedded database to its keeper. While there is none, a call is
    answered as soon as it has no connection, as with any other server.
    """

    def serve_as_lesser() -> int | None:
        if settings.DATABASE_URL:
            return run()
        _connect_as({"USER": EMBEDDED})
        return cluster_lock.hold(Cluster.under(settings.NEXUS_VAR), run)

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
            for statement in OWN_SETTINGS:
                cursor.execute(sql.SQL(statement).format(role=name, database=database))
        for statement in STATEMENTS:
            cursor.execute(sql.SQL(statement).format(role=name, database=database))
        cursor.execute(GUARDED)
        for table, updates, deletes in cursor.fetchall():
            refused = ["TRUNCATE", *["UPDATE"] * updates, *["DELETE"] * deletes]
            revoke = sql.SQL("REVOKE {} ON {} FROM {}").format(
                sql.SQL(", ".join(refused)), sql.SQL(table), name
            )
            cursor.execute(revoke)


# Any role may change what its sessions begin with, the time limits below too.
OWN_SETTINGS = ("ALTER ROLE {role} RESET ALL", "ALTER ROLE {role} IN DATABASE {database} RESET ALL")
STATEMENTS = (
    "REVOKE CONNECT, TEMPORARY ON DATABASE {database} FROM PUBLIC",
    "REVOKE TEMPORARY ON DATABASE {database} FROM {role}",  # earlier versions granted it
    "GRANT CONNECT ON DATABASE {database} TO {role}",
    "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC",
    "REVOKE TRUNCATE, REFERENCES, TRIGGER ON ALL TABLES IN SCHEMA public FROM {role}",
    "GRANT USAGE ON SCHEMA public TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}",
    (
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public "
        "GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}"
    ),
    "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {role}",
    "REVOKE INSERT, UPDATE, DELETE ON django_migrations FROM {role}",
    # The database alone says where an event is: its number, transaction and cluster. One statement,
    # as another machine may be serving.
    (
        "DO $$ BEGIN REVOKE INSERT ON ledger_event FROM {role}; "
        f"GRANT INSERT ({', '.join((*FIELDS, 'digest'))}) ON ledger_event TO {{role}}; END $$"
    ),
    f"ALTER DATABASE {{database}} SET idle_in_transaction_session_timeout = '{IDLE}'",
    f"ALTER DATABASE {{database}} SET lock_timeout = '{LOCKED}'",
    f"ALTER DATABASE {{database}} SET client_connection_check_interval = '{GONE}'",
    # Who waited for a row goes on with what it holds then, whatever the server begins with.
    "ALTER DATABASE {database} SET default_transaction_isolation = 'read committed'",
    *(f"ALTER DATABASE {{database}} SET {name} = '{value}'" for name, value in SILENT.items()),
)


def is_unsafe() -> bool:
    """True if the role of this connection could switch off what the database guards."""
    with connection.cursor() as cursor:
        cursor.execute(UNSAFE)
        return bool(cursor.fetchone()[0])


def _connect_as(changes: dict[str, Any]) -> None:
    connections.close_all()
    connections.settings["default"].update(changes)
