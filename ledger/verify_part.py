"""A process that verifies a part of the ledger: one JSON object in, one out (`ledger.parallel`)."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

import psycopg
from psycopg import sql

from ledger.spans import Part, Span, chain_before, verify_span

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"


def verify_part(task: dict[str, Any]) -> Span:
    """Verify the seals of a part as the snapshot shows them."""
    keys = {name: bytes.fromhex(public) for name, public in task["keys"].items()}
    with psycopg.connect(**task["connection"], client_encoding="UTF8", autocommit=True) as own:
        own.execute(BEGIN)
        own.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(task["snapshot"]))
        part = Part(first=task["first"], last=task["last"])
        return verify_span(own, part, chain_before(own, keys, part.first))


def main() -> None:
    """Answer the task on standard input."""
    sys.stdout.write(json.dumps(asdict(verify_part(json.load(sys.stdin)))))


if __name__ == "__main__":
    main()
