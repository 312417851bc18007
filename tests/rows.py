"""Rows of the test's database: put back instead of made again, and deleted where there are any."""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connection, transaction

from ledger.models import Event
from orgchart.compiling import compile_policy
from orgchart.models import Organisation
from orgchart.policy.compiled import Policy
from orgchart.policy_cache import POLICIES

Rows = Mapping[str, str]
"""Of each table that has some: its rows, as JSON."""

WRITTEN_BY_MIGRATE = (
    "django_content_type",
    "auth_permission",
    "auth_group",
    "auth_group_permissions",
)

NUMBER_AGENTS = """
INSERT INTO workspace_usernumber (agent_id, number)
SELECT id, last + row_number() OVER (ORDER BY id) FROM orgchart_agent,
    (SELECT coalesce(max(number), 0) AS last FROM workspace_usernumber) AS numbered
WHERE id NOT IN (SELECT agent_id FROM workspace_usernumber)
"""

_made: dict[str, tuple[Policy, Rows]] = {}
"""What this process has made under each name: the policy, and the rows that it was made of."""

_done: dict[str, tuple[Any, Rows]] = {}
"""What this process has done under each name: what it returned, and the rows that it added."""


def make_once(name: str, make: Callable[[], Organisation]) -> Organisation:
    """Make an organisation, or put back the rows of when it was made earlier in this process.

    They are the same rows with the same ids, so their policy is not compiled again. An organisation
    that is there already, under that id or slug, is left to `make`.
    """
    POLICIES.clear()
    if name in _made and not _is_there(_made[name][0]):
        policy, rows = _made[name]
        put_back(rows)
        POLICIES._keep(policy)
        return Organisation.objects.get(id=policy.organisation_id)
    before = _present_keys()
    made = make()
    connection.check_constraints()  # what is done at the end of a transaction: a test's has none
    if str(made.id) not in before["orgchart_organisation"]:
        _made[name] = (compile_policy(made.id), read(before))
    return made


def do_once(name: str, do: Callable[[], Any]) -> Any:
    """Do what only adds rows, or put them back where it was done earlier in this process.

    What it needs is there again under the same ids. Returns what it returned the first time.
    """
    if name in _done:
        result, rows = _done[name]
        put_back(rows)
    else:
        before = _present_keys()
        result = do()
        _done[name] = (result, read(before))
    return result


def present_policy(organisation: Organisation) -> Policy:
    """The policy of the rows as they are now, whether or not their change was counted.

    The same rows are compiled once.
    """
    parts = (
        f"SELECT json_agg(t ORDER BY t)::text AS rows FROM {table} t"
        for table in _keys()
        if table.startswith("orgchart_")
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT md5(string_agg(rows, '|')) FROM ({' UNION ALL '.join(parts)}) AS p")
        return _compiled(organisation.id, cursor.fetchone()[0])


@lru_cache(maxsize=16)
def _compiled(organisation_id: int, _digest_of_rows: str) -> Policy:
    return compile_policy(organisation_id)


def newest_event() -> Event:
    return Event.objects.latest("seq")


def _is_there(policy: Policy) -> bool:
    same = {"id": policy.organisation_id}, {"slug": policy.organisation}
    return any(Organisation.objects.filter(**each).exists() for each in same)


@cache
def _keys() -> Mapping[str, str]:
    """The tables of our rooms, with the column of their keys."""
    return {
        model._meta.db_table: model._meta.pk.column
        for model in apps.get_models(include_auto_created=True)
        if model._meta.app_label in settings.ROOMS
    }


def _present_keys() -> dict[str, list[str]]:
    """The keys of the rows that our tables have now."""
    parts = (
        f"SELECT '{table}', coalesce(array_agg({k}::text), '{{}}') FROM {table}"
        for table, k in _keys().items()
    )
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts))
        return dict(cursor.fetchall())


def read(tables: Mapping[str, list[str]]) -> Rows:
    """The rows of these tables, without those that have one of the keys."""
    found = {}
    with connection.cursor() as cursor:
        for table, keys in tables.items():
            key = _keys().get(table, "id")
            cursor.execute(
                f"SELECT json_agg(t ORDER BY t)::text FROM {table} t WHERE {key}::text <> ALL(%s)",
                [keys],
            )
            (rows,) = cursor.fetchone()
            if rows is not None:
                found[table] = rows
    return found


def put_back(rows: Rows) -> None:
    """Insert rows as they were read. Triggers stay out of it, for what begins must begin new.

    Of the agents' user numbers the next ones: others may have taken those that were read.
    """
    inserts = ", ".join(
        f"{table}_rows AS (INSERT INTO {table} "
        f"SELECT * FROM json_populate_recordset(NULL::{table}, %({table})s::json))"
        for table in rows
        if table != "workspace_usernumber"
    )
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(f"WITH {inserts} SELECT 1", rows)
        if "workspace_usernumber" in rows:
            cursor.execute(NUMBER_AGENTS)
        cursor.execute("SET session_replication_role = origin")


def written_by_migrate() -> Rows:
    """The rows of the tables that `migrate` itself fills."""
    return read({table: [] for table in WRITTEN_BY_MIGRATE})


def delete_all(kept: Rows) -> None:
    """Delete every row except what `migrate` wrote, which is as it was again.

    Waits for those who write. Most tables are empty: to truncate all of them takes forty times as
    long. Triggers stay out of it, for what only grows may not be deleted.
    """
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    own = [table for table in tables if table not in WRITTEN_BY_MIGRATE]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {', '.join(own)} IN SHARE ROW EXCLUSIVE MODE")
        cursor.execute(
            " UNION ALL ".join(f"SELECT '{t}' WHERE EXISTS (SELECT 1 FROM {t})" for t in own)
        )
        filled = [table for (table,) in cursor.fetchall()]
        is_changed = written_by_migrate() != kept
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table in [*filled, *(WRITTEN_BY_MIGRATE if is_changed else ())]:
            cursor.execute(f"DELETE FROM {table}")
        if is_changed:
            put_back(kept)
