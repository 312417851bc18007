"""The leaves of events, computed again from what the events say, as fast as Python can."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from hashlib import sha256
from itertools import chain, islice, repeat
from typing import Self

from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn

from core.events import UnrecordableEvent
from ledger.canonical import DOMAIN, canonical, parse
from ledger.composing import SEPARATOR

HEADER = len(b"PGCOPY\n\xff\r\n\0") + 8
END = b"\xff\xff"
ROW = struct.Struct(">2xiqiqi32si")
"""A row of the binary COPY up to its text: each value behind its length."""
TEXT = ROW.size
LEAF = struct.Struct(">Bqqq32s")
"""What the hash of a leaf is taken of: a zero, the place, the digest."""
KNOWN = 10_000  # different details whose canonical form is kept


class DoubtfulEvent(Exception):
    """What an event says does not give the digest that is stored with it, or no digest at all."""


class Details(dict[bytes, bytes]):
    """The canonical form of details by their stored text: most come again and again."""

    def __missing__(self, stored: bytes) -> bytes:
        try:
            form = canonical(parse(stored.decode())).encode()
        except UnrecordableEvent as error:
            raise DoubtfulEvent from error
        if len(self) >= KNOWN:
            self.clear()
        self[stored] = form
        return form


class LeafReader:
    """Reads the events of one era that a `copy_statement` sends, in its order.

    A context: no other statement can use the connection meanwhile.
    """

    def __init__(self, connection: PGconn, statement: bytes, era: int, details: Details) -> None:
        self._connection = connection
        self._statement = statement
        self._era = era
        self._details = details
        self._messages: Iterator[tuple[int, memoryview]] = iter(())
        self._ended = False

    def __enter__(self) -> Self:
        result = self._connection.exec_(self._statement)
        if result.status != ExecStatus.COPY_OUT:
            raise error_from_result(result)
        size, first = self._connection.get_copy_data(0)
        if size < 0:
            self._ended = True
        else:
            rest = map(self._connection.get_copy_data, repeat(0))
            self._messages = chain([(size - HEADER, first[HEADER:])], rest)
        return self

    def __exit__(self, *_: object) -> None:
        """Read the rest, so that the connection is free again."""
        while not self._ended:
            self._ended = self._connection.get_copy_data(0)[0] < 0
        failed = None
        while (result := self._connection.get_result()) is not None:
            if result.status != ExecStatus.COMMAND_OK:
                failed = result
        if failed is not None:
            raise error_from_result(failed)

    def take(self, count: int) -> tuple[list[int], list[bytes]]:
        """The sequence numbers and leaves of the next events: `count`, or all that are left.

        Raises DoubtfulEvent for one whose fields do not give its stored digest.
        """
        seqs: list[int] = []
        leaves: list[bytes] = []
        if self._ended:
            return seqs, leaves
        era, details, unpack, pack = self._era, self._details, ROW.unpack_from, LEAF.pack
        for size, data in islice(self._messages, count):
            if size <= len(END):
                self._ended = size < 0
                break
            _, xid, _, seq, _, stored, _ = unpack(data)
            before, said, after = bytes(data[TEXT:]).split(SEPARATOR)
            digest = sha256(b"".join((DOMAIN, before, details[said], after))).digest()
            if digest != stored:
                raise DoubtfulEvent
            seqs.append(seq)
            leaves.append(sha256(pack(0, era, xid, seq, digest)).digest())
        return seqs, leaves

    def has_more(self) -> bool:
        """Whether there is an event that was not taken."""
        if self._ended:
            return False
        size, _ = next(self._messages)
        self._ended = size < 0
        return size > len(END)
