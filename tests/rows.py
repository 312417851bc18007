"""Rows of the test's database: put back instead of made again, and deleted where there are any."""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache

from django.apps import apps
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

_made: dict[str, tuple[Policy, Rows]] = {}
"""What this process has made under each name: the policy, and the rows that it was made of."""


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
    before = _highest_keys()
    made = make()
    if made.id > before["orgchart_organisation"]:
        _made[name] = (compile_policy(made.id), _rows_above(before))
    return made


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
    """The tables that an organisation is made of, with the column of their keys: they only rise."""
    return {
        model._meta.db_table: model._meta.pk.column
        for model in apps.get_models(include_auto_created=True)
        if model._meta.app_label in ("orgchart", "ledger")
    }


def _highest_keys() -> dict[str, int]:
    parts = (
        f"SELECT '{table}', coalesce(max({k}), 0) FROM {table}" for table, k in _keys().items()
    )
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts))
        return dict(cursor.fetchall())


def _rows_above(before: Mapping[str, int]) -> Rows:
    return read({table: f"WHERE {_keys()[table]} > {key}" for table, key in before.items()})


def read(tables: Mapping[str, str]) -> Rows:
    """The rows of these tables, each with its condition."""
    found = {}
    with connection.cursor() as cursor:
        for table, where in tables.items():
            cursor.execute(f"SELECT json_agg(t ORDER BY t)::text FROM {table} t {where}")
            (rows,) = cursor.fetchone()
            if rows is not None:
                found[table] = rows
    return found


def put_back(rows: Rows) -> None:
    """Insert rows as they were read."""
    inserts = ", ".join(
        f"{table}_rows AS (INSERT INTO {table} "
        f"SELECT * FROM json_populate_recordset(NULL::{table}, %({table})s::json))"
        for table in rows
    )
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {inserts} SELECT 1", rows)


def written_by_migrate() -> Rows:
    """The rows of the tables that `migrate` itself fills."""
    return read(dict.fromkeys(WRITTEN_BY_MIGRATE, ""))


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
