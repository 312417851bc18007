"""Whether the database still refuses changes of events and seals."""

from django.db import DatabaseError, connection, transaction

from core.database import fetch_row
from ledger.rules import Finding, SealFault

GUARDS = """
SELECT t.tgrelid::regclass::text FROM pg_trigger t
JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_language l ON l.oid = p.prolang
WHERE t.tgname IN ('ledger_event_only_grows', 'ledger_seal_only_grows')
  AND t.tgenabled IN ('O', 'A') AND t.tgtype = 58 AND t.tgqual IS NULL
  AND p.oid = to_regproc('ledger_refuse_change') AND l.lanname = 'plpgsql'
  AND p.proconfig IS NULL AND btrim(p.prosrc) = btrim(%(source)s)
"""  # 58: before, statement, update, delete, truncate
# What could swallow, change or hide rows: other triggers, rules, row security, child tables; and
# settings with which triggers are not asked.
STRANGE = """
SELECT 'the trigger ' || tgname FROM pg_trigger
WHERE tgrelid = %(table)s::regclass AND NOT tgisinternal AND tgname <> %(table)s || '_only_grows'
UNION ALL SELECT 'the rule ' || rulename FROM pg_rewrite WHERE ev_class = %(table)s::regclass
UNION ALL SELECT 'row security' FROM pg_class WHERE oid = %(table)s::regclass AND relrowsecurity
UNION ALL SELECT 'the table ' || inhrelid::regclass FROM pg_inherits
WHERE inhparent = %(table)s::regclass
UNION ALL SELECT 'a role or database whose sessions ask no trigger' FROM pg_db_role_setting
WHERE array_to_string(setconfig, ' ') ILIKE '%%session_replication_role%%'
LIMIT 1
"""
REFUSAL = """
BEGIN
    RAISE EXCEPTION '% only grows: % is refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation',
              HINT = 'What happened stays written; record a new event that corrects it.';
END
"""
"""The body of `ledger_refuse_change`, as its migration made it."""


def check_guards() -> Finding | None:
    """Check that the database refuses changes of both tables, by asking it to change nothing."""
    with connection.cursor() as cursor:
        cursor.execute(GUARDS, {"source": REFUSAL})
        standing = {table for (table,) in cursor.fetchall()}
    for table in ("ledger_event", "ledger_seal"):
        if table not in standing or not _refuses(table):
            message = f"the trigger that refuses changes of {table} is off, gone or altered"
            return Finding(fault=SealFault.GUARD, message=message)
        if strange := _strange(table):
            message = f"{table} has {strange}, which the ledger never made"
            return Finding(fault=SealFault.GUARD, message=message)
    return None


def _strange(table: str) -> str:
    found = fetch_row(STRANGE, {"table": table})
    return str(found[0]) if found else ""


def _refuses(table: str) -> bool:
    key = {"ledger_event": "seq", "ledger_seal": "number"}[table]
    update = f"UPDATE {table} SET {key} = {key} WHERE false"
    delete = f"DELETE FROM {table} WHERE false"
    for attempt in (update, delete):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(attempt)
        except DatabaseError:
            continue
        return False
    return True
