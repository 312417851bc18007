"""The end of the chain of seals: whether this machine kept it, and may build on it.

A few rows are read, so this is asked before each seal and by who watches. `verification` reads all.
"""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple, cast

from django.db import connection, transaction
from psycopg import Connection

from core.asked import Asked
from ledger import keys
from ledger.models import Seal as SealRow
from ledger.rules import Chain, Finding, SealFault
from ledger.seal_format import GENESIS, read_seal
from ledger.spans import Part, read_seals

NO_SEAL = (0, GENESIS.hex())  # the head of a machine that is about to make the first seal
ADOPT = "If people restored or moved the ledger, they accept it with `manage.py ledger adopt`"
ask_folder = Asked(lambda: (keys.known_head(), keys.trusted()), seconds=2.0)
"""Raises TimeoutError where the disk of the ledger's folder hangs, and what reading it raises."""


class Head(NamedTuple):
    """The end of the chain, as far as the next seal needs it."""

    number: int
    digest: bytes


def last_seal() -> Head | None:
    """Return the newest seal's number and digest."""
    head = SealRow.objects.order_by("-number").values_list("number", "digest").first()
    return Head(head[0], bytes(head[1])) if head else None


def is_in_chain(number: int, digest: str) -> bool:
    """True if the chain holds this seal, which a machine kept as its head."""
    kept = SealRow.objects.filter(number=number).values_list("digest", flat=True)  # asked if needed
    return (number, digest) == NO_SEAL or any(each.hex() == digest for each in kept)


def check_head(known: keys.Seen | None, last: int | None) -> Finding | None:
    """Compare the chain, which ends with the seal `last`, with the seal that this machine kept."""
    if known is None:
        if last is None:
            return None
        message = f"this machine has not seen this chain. {ADOPT}"
        return Finding(fault=SealFault.SEAL_HEAD, seal=last, message=message)
    if is_in_chain(*known):
        return None
    message = (
        f"this machine has seen this seal; the chain ends before it or goes on otherwise. {ADOPT}"
    )
    return Finding(fault=SealFault.SEAL_HEAD, seal=known[0], message=message)


def check_end(known: keys.Seen | None, last: int) -> Finding | None:
    """Check the statement, signature and link of the seals from the one kept to the last.

    Where this machine kept none of this chain, of the last seal alone.
    """
    return _check_seals(max(known[0], 1) if known and is_in_chain(*known) else last)


def check_kept(known: keys.Seen | None, last: int | None) -> Finding | None:
    """Check that the chain holds the seal that this machine kept, and only our own since."""
    wrong = check_head(known, last)
    return wrong if wrong or known is None or last is None else _check_seals(max(known[0], 1))


def _check_seals(first: int) -> Finding | None:
    chain = Chain(keys.trusted(), first=first)
    with transaction.atomic():
        connection.ensure_connection()
        driver = cast("Connection", connection.connection)
        with closing(read_seals(driver, Part(first=first))) as rows:
            findings = (chain.check(read_seal(row)) for row in rows)
            return next((found for found in findings if found), None)


def is_whole() -> bool:
    """Whether the chain holds the seal that this machine kept, and only our own since.

    Not, too, where the ledger's folder does not answer (Spec: ledger 18).
    """
    try:
        (known, _), last = ask_folder(), last_seal()
        return check_kept(known, last.number if last else None) is None
    except (keys.KeyMissing, OSError, ValueError):  # a broken file of the ledger's folder
        return False


def folder_answers() -> bool:
    """Whether the disk of the ledger's folder answers (Spec: ledger 18)."""
    try:
        ask_folder()
    except TimeoutError:
        return False
    except (keys.KeyMissing, OSError, ValueError):
        pass
    return True
