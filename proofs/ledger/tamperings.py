"""Ten thousand things a superuser can do to the ledger, each with where it must be found."""

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger import keys
from ledger.canonical import stamp
from ledger.rules import SealFault
from proofs.ledger import guards
from proofs.ledger.world import (
    SEALS,
    Place,
    Tampering,
    World,
    edit,
    edit_seal,
    literal,
    redigested,
    resealed,
    write_seal,
)

SEED = 20261122
Made = tuple[tuple[str, ...], set[SealFault], int | None, set[int | None]]
TEXTS = ("action", "actor", "reason", "tool", "subject", "args_digest", "request_id", "session_id")
NUMBERS = ("organisation_id", "policy_version", "for_agent_id")
WHOLE = "era, xid, digest, id, action, actor, at, decision, reason, subject, details"
CUT = "DELETE FROM ledger_seal WHERE number > {}"


def other_values(chance: Random, fields: dict) -> dict[str, object]:
    """Another value of one field."""
    kind = chance.choice(["text"] * 8 + ["number"] * 3 + ["id", "at", "decision", "details"])
    match kind:
        case "text":
            name = chance.choice(TEXTS)
            place = chance.randrange(len(fields[name]) + 1)
            letter = chance.choice("aZ0 é\u202e'\"\\%\n")
            return {name: fields[name][:place] + letter + fields[name][place:]}
        case "number":
            name = chance.choice(NUMBERS)
            return {name: (fields[name] or 0) + chance.choice([1, -1, 7, 2**40])}
        case "id":
            return {"id": str(UUID(int=chance.getrandbits(128)))}
        case "at":
            return {"at": backdate(chance, fields["at"])}
        case "decision":
            return {"decision": "deny", "code": chance.choice(["X", "DENIED", "é"])}
        case _:
            return {"details": {chance.choice("abc"): chance.randrange(10**6)}}


def backdate(chance: Random, at: str) -> str:
    back = timedelta(microseconds=1) * chance.choice([1, 10**6, 10**9, 10**13])
    return stamp(datetime.fromisoformat(at) - chance.randint(1, 9) * back)


def minute_before(at: str) -> str:
    return stamp(datetime.fromisoformat(at) - timedelta(minutes=1))


def stored(values: dict[str, object]) -> dict[str, object]:
    """As columns hold them."""
    return {k: json.dumps(v) if k == "details" else v for k, v in values.items()}


def edited(chance: Random, world: World) -> Made:
    one = chance.choice(world.places)
    change = edit(one.seq, stored(other_values(chance, one.leaf.fields)))
    return (change,), {SealFault.EVENT_FIELDS}, one.seal, {one.seq}


def backdated(chance: Random, world: World) -> Made:
    one = chance.choice(world.places)
    fresh = redigested(one.leaf, {"at": backdate(chance, one.leaf.fields["at"])})
    with_digest = chance.random() < 0.5
    values = {"at": fresh.fields["at"], **({"digest": fresh.digest} if with_digest else {})}
    fault = SealFault.EVENT_REWRITTEN if with_digest else SealFault.EVENT_FIELDS
    return (edit(one.seq, values),), {fault}, one.seal, {one.seq}


def edited_digest(chance: Random, world: World) -> Made:
    one = chance.choice(world.places)
    return (
        (edit(one.seq, {"digest": chance.randbytes(32)}),),
        {SealFault.EVENT_DIGEST},
        one.seal,
        {one.seq},
    )


def rewritten(chance: Random, world: World) -> Made:
    """Fields and digest fit each other again; sometimes the seal's marks and root, too."""
    one = chance.choice(world.places)
    values = other_values(chance, one.leaf.fields)
    fresh = redigested(one.leaf, values)
    change = edit(one.seq, {**stored(values), "digest": fresh.digest})
    if chance.random() < 0.5:
        return (change,), {SealFault.EVENT_REWRITTEN}, one.seal, {one.seq}
    leaves = [fresh if leaf.seq == one.seq else leaf for leaf in world.by_seal[one.seal]]
    seal, marks = resealed(world.seals[one.seal], leaves)
    statements = (change, write_seal(seal, marks))
    return statements, {SealFault.SEAL_SIGNATURE}, one.seal, {None}


def deleted(chance: Random, world: World) -> Made:
    gone = chance.sample(world.places, chance.choice([1, 1, 2, 5, 20]))
    if chance.random() < 0.3:
        start = chance.randrange(len(world.places))
        gone = list(world.places[start : start + chance.randint(1, 12)])
    first = min(gone, key=world.places.index)
    seqs = ", ".join(str(one.seq) for one in gone)
    statement = f"DELETE FROM ledger_event WHERE seq IN ({seqs})"
    return (statement,), {SealFault.EVENT_MISSING}, first.seal, {first.seq}


def swapped(chance: Random, world: World) -> Made:
    a, b = sorted(chance.sample(world.places, 2), key=world.places.index)
    statements = (
        f"UPDATE ledger_event SET seq = -1 WHERE seq = {a.seq}",
        f"UPDATE ledger_event SET seq = {a.seq} WHERE seq = {b.seq}",
        f"UPDATE ledger_event SET seq = {b.seq} WHERE seq = -1",
    )
    faults = {SealFault.EVENT_REWRITTEN, SealFault.EVENT_MISSING, SealFault.EVENT_INSERTED}
    return statements, faults, a.seal, {a.seq, b.seq}


def copied(chance: Random, world: World) -> Made:
    """One event says what another says, digest and all."""
    a, b = chance.sample(world.places, 2)
    columns = WHOLE.replace("era, xid, ", "")
    copy = f"UPDATE ledger_event SET ({columns}) = (SELECT {columns} FROM ledger_event "
    statement = f"{copy} WHERE seq = {b.seq}) WHERE seq = {a.seq}"
    return (statement,), {SealFault.EVENT_REWRITTEN}, a.seal, {a.seq}


def moved(chance: Random, world: World) -> Made:
    """Into another transaction, sealed or not yet, or another cluster."""
    one: Place = chance.choice(world.places)
    if chance.random() < 0.3:
        era = chance.randrange(1, 2**62)
        statement = f"UPDATE ledger_event SET era = {era} WHERE seq = {one.seq}"
        return (statement,), {SealFault.EVENT_MISSING}, one.seal, {one.seq}
    if chance.random() < 0.3:
        statement = f"UPDATE ledger_event SET xid = xid + {2**50} WHERE seq = {one.seq}"
        return (statement,), {SealFault.EVENT_MISSING}, one.seal, {one.seq}
    other = chance.choice([p for p in world.places if p.leaf.xid != one.leaf.xid])
    statement = f"UPDATE ledger_event SET xid = {other.leaf.xid} WHERE seq = {one.seq}"
    took = {p.seq for p in world.places if p.leaf.xid in {one.leaf.xid, other.leaf.xid}}
    faults = {SealFault.EVENT_REWRITTEN, SealFault.EVENT_MISSING, SealFault.EVENT_INSERTED}
    seqs = took if one.seal == other.seal else {one.seq}
    return (statement,), faults, min(one.seal, other.seal), seqs


def inserted(chance: Random, world: World) -> Made:
    """A copy of an event, or one of a past transaction, behind a seal."""
    one = chance.choice(world.places)
    seq = chance.choice([-1, 1]) * (10**12 + chance.randrange(10**9))
    statement = (
        f"INSERT INTO ledger_event (seq, {WHOLE}) SELECT {seq}, {WHOLE} FROM ledger_event "
        f"WHERE seq = {one.seq}"
    )
    return (statement,), {SealFault.EVENT_INSERTED}, one.seal, {seq}


def edited_seal(chance: Random, world: World) -> Made:
    number = chance.randint(1, SEALS)
    seal, more = world.seals[number], chance.randint(1, 10**6)
    values = {
        "at": stamp(seal.at - timedelta(seconds=more)),
        "lo": seal.lo - more,
        "hi": seal.hi + more,
        "count": seal.count + more,
        "root": chance.randbytes(32),
        "marks": chance.randbytes(16 * seal.count),
        "previous": chance.randbytes(32),
        "era": chance.randrange(1, 2**62),
        "key_id": f"{chance.getrandbits(64):016x}",
        "digest": chance.randbytes(32),
    }
    name = chance.choice([*values, "signature"])
    if name == "signature":
        change = edit_seal(number, {name: chance.randbytes(64)})
        return (change,), {SealFault.SEAL_SIGNATURE}, number, {None}
    fault = SealFault.SEAL_FIELDS
    change = {name: values[name]}
    if name in {"at", "lo", "hi", "count", "root", "previous"} and chance.random() < 0.5:
        value = seal.at - timedelta(seconds=more) if name == "at" else values[name]
        change["digest"] = replace(seal, **{name: value}).compute_digest()
        fault = SealFault.SEAL_SIGNATURE
    return (edit_seal(number, change),), {fault}, number, {None}


def seals_deleted(chance: Random, _: World) -> Made:
    gone = sorted(chance.sample(range(1, SEALS), chance.randint(1, SEALS - 1)))
    where = f"number IN ({', '.join(map(str, gone))})"
    if chance.random() < 0.3:
        statement = f"UPDATE ledger_seal SET number = number + {chance.randint(10, 10**9)}"
        return (f"{statement} WHERE {where}",), {SealFault.SEAL_MISSING}, gone[0], {None}
    return (f"DELETE FROM ledger_seal WHERE {where}",), {SealFault.SEAL_MISSING}, gone[0], {None}


def cut(chance: Random, world: World) -> Made:
    """The end is gone: of the seals, or with the events they sealed, and what waited."""
    kept = chance.randint(0, SEALS - 1)
    hi = world.seals[kept].hi if kept else 0
    statements = [CUT.format(kept)]
    if chance.random() < 0.7:
        statements.append(f"DELETE FROM ledger_event WHERE xid >= {hi}")
    if kept and len(statements) > 1 and chance.random() < 0.5:  # it grew again, in other words
        later = WHOLE.replace("xid", f"xid + {2**40}")
        rows = f"SELECT {10**9} + seq, {later} FROM ledger_event LIMIT {chance.randint(1, 9)}"
        statements.append(f"INSERT INTO ledger_event (seq, {WHOLE}) {rows}")
    return tuple(statements), {SealFault.SEAL_HEAD}, SEALS, {None}


def emptied(chance: Random, world: World) -> Made:
    how = chance.choice(["TRUNCATE {}", "DELETE FROM {}"])
    first = world.places[0]
    match chance.randrange(3):
        case 0:
            return (how.format("ledger_event"),), {SealFault.EVENT_MISSING}, 1, {first.seq}
        case 1:
            return (how.format("ledger_seal"),), {SealFault.SEAL_HEAD}, SEALS, {None}
        case _:
            both = (how.format("ledger_event"), how.format("ledger_seal"))
            return both, {SealFault.SEAL_HEAD}, SEALS, {None}


def restored(chance: Random, world: World) -> Made:
    """A copy under another cluster's id: as it was, or cut before."""
    era = chance.randrange(1, 2**62)
    kept = chance.randint(0, SEALS)
    events = f"UPDATE ledger_event SET era = {era}"
    match chance.randrange(3):
        case 0:
            return (events,), {SealFault.EVENT_MISSING}, 1, {world.places[0].seq}
        case 1:
            both = (events, f"UPDATE ledger_seal SET era = {era}")
            return both, {SealFault.SEAL_FIELDS}, 1, {None}
        case 2 if kept in {0, SEALS}:
            return (events, CUT.format(0)), {SealFault.SEAL_HEAD}, SEALS, {None}
        case _:
            hi = world.seals[kept].hi
            return (
                (CUT.format(kept), f"UPDATE ledger_event SET era = {era} WHERE xid >= {hi}"),
                {SealFault.SEAL_HEAD},
                SEALS,
                {None},
            )


def replaced_key(chance: Random, world: World) -> Made:
    """History from one seal on is made again and signed by a key of the superuser's own."""
    signer = keys.Signer(Ed25519PrivateKey.from_private_bytes(chance.randbytes(32)))
    claims_trusted = chance.random() < 0.5
    first = chance.choice(world.places)
    values = other_values(chance, first.leaf.fields)
    fresh = redigested(first.leaf, values)
    statements = [edit(first.seq, {**stored(values), "digest": fresh.digest})]
    previous = world.seals[first.seal].previous
    for number in range(first.seal, SEALS + 1):
        old = world.seals[number]
        leaves = [fresh if leaf.seq == fresh.seq else leaf for leaf in world.by_seal[number]]
        key_id = old.key_id if claims_trusted else signer.key_id
        seal, marks = resealed(old, leaves, previous=previous, key_id=key_id)
        statements.append(write_seal(seal, marks, signer))
        previous = seal.digest
    fault = SealFault.SEAL_SIGNATURE if claims_trusted else SealFault.SEAL_KEY
    return tuple(statements), {fault}, first.seal, {None}


def edited_while_waiting(chance: Random, world: World) -> Made:
    leaf = chance.choice(world.waiting)
    change = edit(leaf.seq, stored(other_values(chance, leaf.fields)))
    return (change,), {SealFault.EVENT_FIELDS}, None, {leaf.seq}


def limit_of_what_waits(chance: Random, world: World) -> Made:
    """Until its seal, an event can be deleted, or made again with its digest.

    One that is made older than a minute looks as if sealing had stopped.
    """
    leaf = chance.choice(world.waiting)
    if chance.random() < 0.5:
        return (f"DELETE FROM ledger_event WHERE seq = {literal(leaf.seq)}",), set(), None, {None}
    values = other_values(chance, leaf.fields)
    digest = redigested(leaf, values).digest
    is_late = str(values.get("at", leaf.fields["at"])) < minute_before(leaf.fields["at"])
    faults, seqs = ({SealFault.EVENT_UNSEALED}, {leaf.seq}) if is_late else (set(), {None})
    return (edit(leaf.seq, {**stored(values), "digest": digest}),), faults, None, seqs


def guard(chance: Random, _: World) -> Made:
    return guards.weakened(chance), {SealFault.GUARD}, None, {None}


FAMILIES: dict[str, tuple[int, Callable[[Random, World], Made]]] = {
    "edited event": (2000, edited),
    "event edited with its digest": (1400, rewritten),
    "back-dated event": (800, backdated),
    "edited digest": (300, edited_digest),
    "deleted events": (1000, deleted),
    "swapped events": (800, swapped),
    "event copied over another": (300, copied),
    "event moved": (500, moved),
    "event inserted behind a seal": (300, inserted),
    "edited seal": (800, edited_seal),
    "deleted seals": (200, seals_deleted),
    "end cut off": (300, cut),
    "emptied": (100, emptied),
    "restored elsewhere": (200, restored),
    "replaced key": (300, replaced_key),
    "edited while it waits for its seal": (200, edited_while_waiting),
    "guard weakened": (400, guard),
    "limit: deleted or made again before its seal": (100, limit_of_what_waits),
}


def tamperings(
    world: World, *, families: Collection[str] = FAMILIES, most: int = 10_000
) -> Iterator[Tampering]:
    """Each of these families as often as it says, or as often as this."""
    for family in families:
        count, make = FAMILIES[family]
        chance = Random(f"{SEED} {family}")
        for _ in range(min(count, most)):
            statements, faults, seal, seqs = make(chance, world)
            yield Tampering(family, statements, frozenset(faults), seal, frozenset(seqs))
