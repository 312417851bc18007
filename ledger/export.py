"""Writing sealed events into a file that anyone with the public key can verify."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from core.database import fetch_row
from core.files import place, plain_file
from ledger.canonical import canonical, stamp
from ledger.keys import PUBLIC, Signer, trusted
from ledger.merkle import levels, proof
from ledger.models import Seal as SealRow
from ledger.offline import END, FORMAT
from ledger.seal_format import Leaf, Seal, place_hash, read_seal, write_public
from ledger.sealer import LEAVES as PLACES
from ledger.sealer import stream
from ledger.verification import COLUMNS, read_leaf, snapshot

SKEW = timedelta(days=1)  # a seal is never this much older, by its clock, than an event in it

MATCH = """
    (%(organisation)s::bigint IS NULL OR organisation_id = %(organisation)s::bigint)
    AND (%(since)s::timestamptz IS NULL OR at >= %(since)s::timestamptz)
    AND (%(until)s::timestamptz IS NULL OR at < %(until)s::timestamptz)
"""
RANGE = "era = %(era)s AND xid >= %(lo)s AND xid < %(hi)s"
SHOWN = f"SELECT count(*) FROM ledger_event WHERE {RANGE} AND {MATCH}"
ROWS = f"""
SELECT era, xid, seq, digest, {COLUMNS} FROM ledger_event
WHERE {RANGE} AND {MATCH} ORDER BY xid, seq
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which events to show; nothing chosen means all."""

    organisation: int | None = None
    since: datetime | None = None
    until: datetime | None = None

    def values(self) -> dict[str, Any]:
        """Return what was chosen as JSON values."""
        chosen = {name: value for name, value in asdict(self).items() if value is not None}
        return {k: stamp(v) if isinstance(v, datetime) else v for k, v in chosen.items()}


def export_lines(*, selection: Selection, signer: Signer, now: datetime) -> Iterator[bytes]:
    """Yield the lines of an export, all from one snapshot, in constant memory.

    A whole export carries every event, so each root can be computed again. A selection carries
    with each event its proof of inclusion: what is not shown stays secret, the seals checkable.
    """
    state = sha256(END)
    with snapshot():
        for entry in _entries(selection, now):
            line = _line(entry)
            state.update(line)
            yield line
    end = {"key_id": signer.key_id, "signature": signer.sign(state.digest()).hex()}
    yield _line({"end": end})


def write_export(path: Path, *, selection: Selection, signer: Signer, now: datetime) -> Path:
    """Write an export to a file, or with the public keys into a folder; return the file."""
    if path.is_dir():
        keys = "".join(f"{write_public(public)}\n" for public in trusted().values())
        place(path / PUBLIC, keys.encode(), replace=True)
        path = path / f"ledger-{now:%Y%m%dT%H%M%S}.jsonl"
    path = plain_file(path)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            file.writelines(export_lines(selection=selection, signer=signer, now=now))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def _entries(selection: Selection, now: datetime) -> Iterator[dict[str, Any]]:
    seals = SealRow.objects.order_by("number")
    if selection.since:
        seals = seals.filter(at__gte=selection.since - SKEW)
    first = seals.values_list("number", flat=True).first() or 1
    yield {
        "ledger": FORMAT,
        "at": stamp(now),
        "first": first,
        "selection": selection.values(),
    }
    for row in seals.iterator(chunk_size=50):
        seal = read_seal(row)
        params = asdict(selection) | {"era": seal.era, "lo": seal.lo, "hi": seal.hi}
        shown = _shown(params) if selection.values() else seal.count
        yield {"seal": _seal(seal), "shown": shown}
        if selection.values():
            yield from _proven(seal, params) if shown else ()
        else:
            yield from _all(params)


def _shown(params: dict[str, Any]) -> int:
    (count,) = fetch_row(SHOWN, params)
    return int(count)


def _all(params: dict[str, Any]) -> Iterator[dict[str, Any]]:
    with stream(ROWS, params) as rows:
        for row in rows:
            yield _event(read_leaf(row))


def _proven(seal: Seal, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
    hashes: list[bytes] = []
    places: dict[int, int] = {}
    with stream(PLACES, params) as rows:
        for xid, seq, digest in rows:
            places[seq] = len(hashes)
            hashes.append(place_hash(seal.era, xid, seq, bytes(digest)))
    tree = levels(hashes)
    with stream(ROWS, params) as rows:
        for row in rows:
            leaf = read_leaf(row)
            index = places[leaf.seq]
            path = [step.hex() for step in proof(tree, index)]
            yield _event(leaf) | {"leaf": index, "proof": path}


def _event(leaf: Leaf) -> dict[str, Any]:
    return {
        "event": leaf.fields,
        "xid": leaf.xid,
        "seq": leaf.seq,
        "digest": leaf.digest.hex(),
    }


def _seal(seal: Seal) -> dict[str, Any]:
    return seal.statement() | {"digest": seal.digest.hex(), "signature": seal.signature.hex()}


def _line(entry: dict[str, Any]) -> bytes:
    return canonical(entry).encode() + b"\n"
