"""Rows that are in a table but not in its index, as where a disk gave back an old page of it.

Such a page has the right checksum. What is read in order is read by an index, and would miss them.
"""

from dataclasses import replace

from core.database import fetch_row
from ledger.rules import Finding, SealFault
from ledger.seal_format import Seal

# A row's place is in no index: PostgreSQL reads the table itself. So it does for an expression.
ROWS = "SELECT count(ctid) FROM {table}"
EVENT = """
SELECT count(ctid) FROM ledger_event
WHERE seq + 0 = %(seq)s AND era + 0 = %(era)s AND xid + 0 >= %(lo)s AND xid + 0 < %(hi)s
"""
MEND = "`REINDEX TABLE {table}` shows it whole (docs/operations.md, A damaged file of PostgreSQL)"


def count_rows(table: str, read: int) -> Finding | None:
    """Compare how many rows the table has with how many were read by its index."""
    (rows,) = fetch_row(ROWS.format(table=table))
    if rows == read:
        return None
    message = f"{table} has {rows} rows, but its index shows {read}"
    return Finding(fault=SealFault.INDEX, message=f"{message}. {MEND.format(table=table)}")


def is_hidden(seal: Seal, seq: int | None) -> bool:
    """Whether an event that its index does not show under a seal is there in the table."""
    (count,) = fetch_row(EVENT, {"era": seal.era, "lo": seal.lo, "hi": seal.hi, "seq": seq})
    return bool(count)


def name_hidden(finding: Finding) -> Finding:
    """What to say of such an event, instead of that it is gone."""
    message = "this sealed event is in its table, but the index does not show it"
    mend = MEND.format(table="ledger_event")
    return replace(finding, fault=SealFault.INDEX, message=f"{message}. {mend}")
