"""Everything a superuser can do to the tables is found, and where."""

import re
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection, transaction

from ledger import keys, sealer
from ledger.canonical import digest_fields
from ledger.guards import check_guards
from ledger.merkle import root
from ledger.models import Event as EventRow
from ledger.models import Seal as SealRow
from ledger.rules import SealFault
from ledger.seal_format import index_keys, mark, place_hash, read_seal, write_public
from ledger.sealer import LEAVES, seal_events
from ledger.verification import COLUMNS, SEALED_BY, Verification, read_leaf, seals_over
from tests.ledger.world import (
    NOW,
    own_connection,
    record,
    record_many,
    seal_until_covered,
    tamper,
    verify,
)
from tests.plans import rows_touched


def found() -> tuple[str, int | None, int | None]:
    finding = verify().finding
    assert finding is not None, "nothing was found"
    return finding.fault, finding.seal, finding.seq


# One change of every column of an event, with its digest left as it was.
EDITS = {
    "id": "gen_random_uuid()",
    "action": "'mail.denied'",
    "actor": "'agent:nobody'",
    "at": "at + interval '1 microsecond'",
    "organisation_id": "2",
    "decision": "'deny', code = 'X'",
    "code": "'X'",
    "reason": "'because'",
    "tool": "'other'",
    "subject": "'mail:other'",
    "policy_version": "1",
    "args_digest": "'00'",
    "request_id": "'r'",
    "session_id": "'s'",
    "for_agent_id": "1",
    "kind": "'mail'",
    "details": """'{"a": 1}'""",
}


OUTSIDE_THE_CALENDAR = ["infinity", "-infinity", "0044-03-15 BC", "10000-01-01 00:00:00+00"]


@pytest.fixture
def without_calendar(sealed):
    """What a superuser does before a time that the tables refuse."""
    condition = "CHECK (at BETWEEN '0001-01-01 00:00Z' AND '9999-12-31 23:59:59.999999Z')"
    names = {table: f"{table}_in_the_calendar" for table in ("ledger_event", "ledger_seal")}
    tamper(*(f"ALTER TABLE {table} DROP CONSTRAINT {name}" for table, name in names.items()))
    yield
    tamper(
        "TRUNCATE ledger_event, ledger_seal",
        *(
            f"ALTER TABLE {table} ADD CONSTRAINT {name} {condition}"
            for table, name in names.items()
        ),
    )


class TestVerify:
    def test_finds_nothing_in_a_whole_ledger(self, sealed):
        record()
        report = verify()
        assert report.finding is None
        assert (report.seals, report.events, report.unsealed) == (3, 12, 1)

    def test_finds_nothing_in_an_empty_ledger(self, ledger_db):
        assert verify().finding is None

    def test_writes_nothing(self, sealed):
        before = SealRow.objects.count(), EventRow.objects.count()
        verify()
        assert before == (SealRow.objects.count(), EventRow.objects.count())

    @pytest.mark.parametrize("column", EDITS)
    def test_finds_an_edited_field(self, sealed, column):
        tamper(f"UPDATE ledger_event SET {column} = {EDITS[column]} WHERE seq = {sealed[5]}")
        assert found() == (SealFault.EVENT_FIELDS, 2, sealed[5])

    @pytest.mark.parametrize("column", ["reason", "details"])
    def test_finds_an_edited_field_before_it_is_sealed(self, sealed, column):
        seq = record()
        tamper(f"UPDATE ledger_event SET {column} = {EDITS[column]} WHERE seq = {seq}")
        assert found() == (SealFault.EVENT_FIELDS, None, seq)

    def test_finds_an_edited_digest(self, sealed):
        tamper(f"UPDATE ledger_event SET digest = sha256('x') WHERE seq = {sealed[0]}")
        assert found() == (SealFault.EVENT_DIGEST, 1, sealed[0])

    def test_finds_an_event_edited_together_with_its_digest(self, sealed):
        rewrite(sealed[6], reason="nothing to see")
        assert found() == (SealFault.EVENT_REWRITTEN, 2, sealed[6])

    def test_finds_details_that_no_event_had(self, sealed):
        tamper(f"UPDATE ledger_event SET details = '{{\"n\": 1e400}}' WHERE seq = {sealed[1]}")
        assert found() == (SealFault.EVENT_FIELDS, 1, sealed[1])

    @pytest.mark.parametrize("time", OUTSIDE_THE_CALENDAR)
    def test_finds_a_time_that_python_cannot_read(self, sealed, without_calendar, time):
        tamper(f"UPDATE ledger_event SET at = '{time}' WHERE seq = {sealed[5]}")
        assert found() == (SealFault.EVENT_FIELDS, 2, sealed[5])

    @pytest.mark.parametrize("time", OUTSIDE_THE_CALENDAR)
    def test_finds_such_a_time_of_a_seal(self, sealed, without_calendar, time):
        tamper(f"UPDATE ledger_seal SET at = '{time}' WHERE number = 2")
        assert found() == (SealFault.SEAL_FIELDS, 2, None)

    @pytest.mark.parametrize("time", OUTSIDE_THE_CALENDAR)
    def test_finds_such_a_time_before_it_is_sealed(self, sealed, without_calendar, time):
        seq = record()
        tamper(f"UPDATE ledger_event SET at = '{time}' WHERE seq = {seq}")
        assert found() == (SealFault.EVENT_FIELDS, None, seq)

    @pytest.mark.parametrize("place", range(12))
    def test_finds_a_deleted_event(self, sealed, place):
        tamper(f"DELETE FROM ledger_event WHERE seq = {sealed[place]}")
        assert found() == (SealFault.EVENT_MISSING, place // 4 + 1, sealed[place])

    def test_finds_that_everything_is_gone(self, sealed):
        tamper("TRUNCATE ledger_event")
        assert found() == (SealFault.EVENT_MISSING, 1, sealed[0])

    def test_finds_an_event_inserted_behind_a_seal(self, sealed):
        seq = record()
        xid = EventRow.objects.get(seq=sealed[4]).xid
        tamper(f"UPDATE ledger_event SET xid = {xid} WHERE seq = {seq}")
        assert found() == (SealFault.EVENT_INSERTED, 2, seq)

    def test_finds_an_insert_that_names_an_old_transaction(self, sealed):
        """What a role that may only insert can try; it needs no trigger off."""
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO ledger_event (id, at, actor, action, decision, digest, xid) "
                "VALUES (gen_random_uuid(), now(), 'x', 'x', 'allow', sha256('x'), 1) RETURNING seq"
            )
            seq = cursor.fetchone()[0]
        assert found() == (SealFault.EVENT_INSERTED, 1, seq)

    def test_finds_an_event_outside_every_transaction(self, sealed):
        seq = record()
        tamper(
            "ALTER TABLE ledger_event DROP CONSTRAINT ledger_event_in_a_transaction",
            f"UPDATE ledger_event SET xid = -1 WHERE seq = {seq}",
        )
        try:
            assert found() == (SealFault.EVENT_INSERTED, None, seq)
        finally:
            tamper(
                "UPDATE ledger_event SET xid = 1 WHERE xid < 0",
                "ALTER TABLE ledger_event "
                "ADD CONSTRAINT ledger_event_in_a_transaction CHECK (xid > 0)",
            )

    def test_finds_two_events_that_changed_places(self, sealed):
        a, b = sealed[1], sealed[2]
        tamper(
            f"UPDATE ledger_event SET seq = -1 WHERE seq = {a}",
            f"UPDATE ledger_event SET seq = {a} WHERE seq = {b}",
            f"UPDATE ledger_event SET seq = {b} WHERE seq = -1",
        )
        assert found() == (SealFault.EVENT_REWRITTEN, 1, a)

    def test_finds_an_event_moved_into_another_transaction(self, sealed):
        xid = EventRow.objects.get(seq=sealed[8]).xid
        tamper(f"UPDATE ledger_event SET xid = {xid} WHERE seq = {sealed[0]}")
        assert found() == (SealFault.EVENT_MISSING, 1, sealed[0])

    def test_finds_an_event_moved_into_another_era(self, sealed):
        tamper(f"UPDATE ledger_event SET era = 5 WHERE seq = {sealed[11]}")
        assert found() == (SealFault.EVENT_MISSING, 3, sealed[11])

    def test_says_the_first_of_several(self, sealed):
        tamper(
            f"DELETE FROM ledger_event WHERE seq = {sealed[9]}",
            f"UPDATE ledger_event SET actor = 'x' WHERE seq = {sealed[2]}",
        )
        assert found() == (SealFault.EVENT_FIELDS, 1, sealed[2])


SEAL_EDITS = {
    "at": "at + interval '1 hour'",
    "lo": "lo - 1",
    "hi": "hi + 1",
    "count": "count + 1",
    "root": "sha256('x')",
    "marks": "substr(marks, 17)",
    "previous": "sha256('x')",
    "era": "era + 1",
    "key_id": "'0000000000000000'",
    "digest": "sha256('x')",
}


class TestVerifyOfSeals:
    @pytest.mark.parametrize("column", SEAL_EDITS)
    def test_finds_an_edited_seal(self, sealed, column):
        tamper(f"UPDATE ledger_seal SET {column} = {SEAL_EDITS[column]} WHERE number = 2")
        assert found() == (SealFault.SEAL_FIELDS, 2, None)

    def test_finds_another_signature(self, sealed):
        tamper("UPDATE ledger_seal SET signature = sha512('x') WHERE number = 2")
        assert found() == (SealFault.SEAL_SIGNATURE, 2, None)

    @pytest.mark.parametrize("number", [1, 2])
    def test_finds_a_seal_taken_out(self, sealed, number):
        tamper(f"DELETE FROM ledger_seal WHERE number = {number}")
        assert found() == (SealFault.SEAL_MISSING, number, None)

    def test_finds_the_end_cut_off(self, sealed):
        """The chain before it is whole; this machine remembers where it ended."""
        tamper(
            "DELETE FROM ledger_seal WHERE number = 3",
            f"DELETE FROM ledger_event WHERE seq >= {sealed[8]}",
        )
        assert found() == (SealFault.SEAL_HEAD, 3, None)

    @pytest.mark.parametrize("kept", [0, 1, 2])
    def test_finds_a_copy_that_was_cut_and_restored_elsewhere(self, sealed, kept):
        """Another cluster, another database: the head belongs to the chain."""
        last = sealed[4 * kept] if kept < 3 else 0
        tamper(
            f"DELETE FROM ledger_seal WHERE number > {kept}",
            f"DELETE FROM ledger_event WHERE seq >= {last}",
            "UPDATE ledger_event SET era = 77",
        )
        assert verify().finding is not None
        tamper("TRUNCATE ledger_event, ledger_seal")
        assert found() == (SealFault.SEAL_HEAD, 3, None)

    def test_lets_the_sealer_go_on_meanwhile(self, sealed, monkeypatch):
        """The seal that it makes is this machine's last one, and is not in the snapshot."""
        read_seals = Verification._seals

        def seal():
            try:
                assert seal_until_covered(record_many(1)) == 1
            finally:
                connection.close()

        def read_while_sealing(verification, parts):
            finding = read_seals(verification, parts)
            with ThreadPoolExecutor(1) as threads:
                threads.submit(seal).result()
            return finding

        monkeypatch.setattr(Verification, "_seals", read_while_sealing)
        assert verify().finding is None
        assert keys.known_head()[0] == 4

    def test_finds_a_chain_that_this_machine_never_saw(self, sealed, ledger_dir):
        (ledger_dir / keys.HEAD).unlink()
        assert found() == (SealFault.SEAL_HEAD, 3, None)
        seal_until_covered(record_many(1))
        assert found() == (SealFault.SEAL_HEAD, 4, None)

    def test_finds_an_event_that_is_kept_from_its_seal(self, sealed, monkeypatch):
        with own_connection() as other:
            other.execute("SELECT pg_current_xact_id()")
            seq = record(at=NOW - timedelta(seconds=61))
            assert seal_events(now=NOW) == 0
            finding = verify().finding
            assert (finding.fault, finding.seq) == (SealFault.EVENT_UNSEALED, seq)
            monkeypatch.setattr(sealer, "LATEST", 0.0)  # the transaction is young
            finding = verify().finding
            role = other.info.user
            assert re.search(rf"process \d+ \(role {role}", finding.message)
        seal_until_covered([seq])
        assert verify().finding is None

    @pytest.mark.parametrize("count", [1, 201])
    def test_finds_it_behind_those_of_a_machine_whose_clock_is_ahead(self, sealed, count):
        with own_connection() as other:
            other.execute("SELECT pg_current_xact_id()")
            ahead = [record(at=NOW + timedelta(days=1)) for _ in range(count)]
            seq = record(at=NOW - timedelta(seconds=61))
            assert (verify().finding.fault, verify().finding.seq) == (SealFault.EVENT_UNSEALED, seq)
        seal_until_covered([*ahead, seq])

    def test_lets_a_fresh_event_wait(self, sealed):
        record(at=NOW - timedelta(seconds=59))
        assert verify().finding is None

    def test_finds_the_end_cut_off_and_grown_again(self, sealed):
        tamper(
            "DELETE FROM ledger_seal WHERE number >= 2",
            f"DELETE FROM ledger_event WHERE seq >= {sealed[4]}",
        )
        for _ in range(3):
            seal_until_covered(record_many(1))
        assert SealRow.objects.count() == 4
        assert found() == (SealFault.SEAL_HEAD, 3, None)

    def test_finds_an_event_edited_and_its_seal_made_to_match(self, sealed):
        rewrite(sealed[4], reason="nothing to see")
        forge(2, signature=None, root=bytes(32))
        assert found() == (SealFault.SEAL_SIGNATURE, 2, None)

    def test_finds_a_chain_made_again_with_another_key(self, sealed):
        """The superuser has everything but the key: all is consistent, and none of it is signed."""
        rewrite(sealed[0], reason="nothing to see")
        rechain(keys.Signer(Ed25519PrivateKey.generate()))
        assert found() == (SealFault.SEAL_KEY, 1, None)

    def test_finds_another_key_that_takes_the_trusted_ones_name(self, sealed):
        rewrite(sealed[0], reason="nothing to see")
        impostor = keys.Signer(Ed25519PrivateKey.generate())
        impostor.key_id = next(iter(keys.trusted()))
        rechain(impostor)
        assert found() == (SealFault.SEAL_SIGNATURE, 1, None)

    def test_finds_a_seal_chained_elsewhere_though_rightly_signed(self, sealed):
        """What only the key's holder can do: the links themselves are checked, too."""
        forge(2, signature=keys.signer(may_create=False), previous=bytes(32))
        assert found() == (SealFault.SEAL_CHAIN, 2, None)

    def test_finds_a_gap_between_seals_though_rightly_signed(self, sealed):
        second = read_seal(SealRow.objects.get(number=2))
        forge(2, signature=keys.signer(may_create=False), lo=second.lo + 1)
        assert found() == (SealFault.SEAL_RANGE, 2, None)

    def test_finds_a_root_of_something_else_though_rightly_signed(self, sealed):
        forge(3, signature=keys.signer(may_create=False), root=bytes(32))
        assert found() == (SealFault.SEAL_ROOT, 3, None)

    def test_finds_marks_of_something_else_though_rightly_signed(self, sealed):
        tamper("UPDATE ledger_seal SET marks = substr(marks, 17) WHERE number = 3")
        marks = bytes(SealRow.objects.get(number=3).marks)
        forge(3, signature=keys.signer(may_create=False), marks=sha256(marks).digest())
        assert found()[:2] == (SealFault.EVENT_INSERTED, 3)

    def test_trusts_every_pinned_key(self, sealed, settings):
        """A key is rotated by pinning the new one beside the old."""
        old = keys.signer(may_create=False)
        settings.LEDGER_SIGNING_KEY = b64encode(bytes(range(32))).decode()
        settings.LEDGER_TRUSTED_KEYS = [write_public(old.public)]
        seal_until_covered(record_many(1))
        new = keys.signer(may_create=False)
        assert verify(index_keys([old.public, new.public])).finding is None
        assert verify(index_keys([old.public])).finding.seal == 4
        assert verify(index_keys([new.public])).finding.seal == 1

    def test_trusts_no_key_by_default(self, sealed):
        assert verify({}).finding.fault == SealFault.SEAL_KEY


class TestSealsOver:
    def test_name_the_seal_of_each_event(self, sealed):
        waiting = record(subject="waits")
        found = seals_over([sealed[0], sealed[5], sealed[11], waiting])
        assert found == {sealed[0]: 1, sealed[5]: 2, sealed[11]: 3, waiting: None}

    def test_are_found_among_many_without_reading_them(self, sealed):
        waiting = record(subject="waits")
        tamper(
            "INSERT INTO ledger_seal (number, at, era, lo, hi, count, root, marks, previous, "
            "key_id, digest, signature) SELECT n + 3, at, era, n - 20000, n - 19999, 1, root, "
            "marks, previous, key_id, digest, signature "
            "FROM ledger_seal, generate_series(1, 10000) AS n WHERE number = 1",
            "ANALYZE ledger_seal",
        )
        assert rows_touched(SEALED_BY, {"seqs": [*sealed, waiting]}) <= 3 * (len(sealed) + 1)


class TestVerifyOfGuards:
    @pytest.mark.parametrize("table", ["ledger_event", "ledger_seal"])
    @pytest.mark.parametrize(
        "off", ["DISABLE TRIGGER USER", "ENABLE REPLICA TRIGGER {table}_only_grows"]
    )
    def test_finds_a_trigger_that_is_off(self, sealed, table, off):
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} {off.format(table=table)}")
        try:
            assert found() == (SealFault.GUARD, None, None)
        finally:
            tamper()
            enable(table)
        assert verify().finding is None

    def test_finds_a_trigger_that_was_hollowed_out(self, sealed):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_get_functiondef('ledger_refuse_change'::regproc)")
            (genuine,) = cursor.fetchone()
            cursor.execute(
                "CREATE OR REPLACE FUNCTION ledger_refuse_change() RETURNS trigger "
                "LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
            )
        try:
            assert found() == (SealFault.GUARD, None, None)
        finally:
            with connection.cursor() as cursor:
                cursor.execute(genuine)

    def test_finds_a_trigger_function_that_spares_some(self, sealed):
        """It still refuses what verification tries."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_get_functiondef('ledger_refuse_change'::regproc)")
            (genuine,) = cursor.fetchone()
            cursor.execute(
                genuine.replace(
                    "BEGIN", "BEGIN IF current_setting('x.y', true) = 'z' THEN RETURN OLD; END IF;"
                )
            )
        try:
            assert found() == (SealFault.GUARD, None, None)
        finally:
            with connection.cursor() as cursor:
                cursor.execute(genuine)

    @pytest.mark.parametrize("table", ["ledger_event", "ledger_seal"])
    @pytest.mark.parametrize(
        ("make", "end"),
        [
            (
                "CREATE RULE swallow AS ON INSERT TO {} WHERE false DO INSTEAD NOTHING",
                "DROP RULE swallow ON {}",
            ),
            (
                "CREATE TRIGGER e BEFORE INSERT ON {} EXECUTE FUNCTION ledger_refuse_change()",
                "DROP TRIGGER e ON {}",
            ),
            (
                "ALTER TABLE {} ENABLE ROW LEVEL SECURITY",
                "ALTER TABLE {} DISABLE ROW LEVEL SECURITY",
            ),
            ("CREATE TABLE aside () INHERITS ({})", "DROP TABLE aside"),
        ],
    )
    def test_finds_what_could_swallow_or_hide_rows(self, sealed, table, make, end):
        with connection.cursor() as cursor:
            cursor.execute(make.format(table))
        try:
            assert found() == (SealFault.GUARD, None, None)
        finally:
            with connection.cursor() as cursor:
                cursor.execute(end.format(table))
        assert verify().finding is None

    def test_finds_a_session_that_asks_no_trigger(self, sealed):
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
        try:
            assert found() == (SealFault.GUARD, None, None)
        finally:
            with connection.cursor() as cursor:
                cursor.execute("RESET session_replication_role")

    @pytest.mark.parametrize("whose", ["ROLE {role}", "ROLE {role} IN DATABASE {db}"])
    def test_finds_a_role_whose_sessions_ask_no_trigger(self, sealed, whose):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT quote_ident(current_user), quote_ident(current_database())")
            words = dict(zip(("role", "db"), cursor.fetchone(), strict=True))
            cursor.execute(f"ALTER {whose.format(**words)} SET session_replication_role = replica")
            assert check_guards().fault == SealFault.GUARD
            transaction.set_rollback(True)

    def test_finds_a_trigger_that_no_longer_minds_truncate(self, sealed):
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER ledger_seal_only_grows ON ledger_seal")
            cursor.execute(
                "CREATE TRIGGER ledger_seal_only_grows BEFORE UPDATE OR DELETE ON ledger_seal "
                "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_change()"
            )
        try:
            assert found() == (SealFault.GUARD, None, None)
        finally:
            with connection.cursor() as cursor:
                cursor.execute("DROP TRIGGER ledger_seal_only_grows ON ledger_seal")
                cursor.execute(
                    "CREATE TRIGGER ledger_seal_only_grows "
                    "BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_seal "
                    "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_change()"
                )


def enable(table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER {table}_only_grows")


def rewrite(seq: int, **changes: str) -> None:
    """Edit an event and give it the digest of what it says now."""
    for column, value in changes.items():
        tamper(f"UPDATE ledger_event SET {column} = '{value}' WHERE seq = {seq}")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT era, xid, seq, digest, {COLUMNS} FROM ledger_event WHERE seq = %s", [seq]
        )
        fresh = digest_fields(read_leaf(cursor.fetchone()).fields).hex()
    tamper(f"UPDATE ledger_event SET digest = '\\x{fresh}' WHERE seq = {seq}")


def forge(number: int, *, signature: keys.Signer | None, **changes) -> None:
    """Change a seal, give it the digest of what it says now, and sign it if there is a key."""
    seal = replace(read_seal(SealRow.objects.get(number=number)), **changes)
    sets = [
        f"{k} = '\\x{v.hex()}'" if isinstance(v, bytes) else f"{k} = {v}"
        for k, v in changes.items()
        if k != "marks"
    ]
    fresh = seal.compute_digest()
    sets.append(f"digest = '\\x{fresh.hex()}'")
    if signature:
        sets.append(f"signature = '\\x{signature.sign(fresh).hex()}'")
    tamper(f"UPDATE ledger_seal SET {', '.join(sets)} WHERE number = {number}")


def rechain(signer: keys.Signer) -> None:
    """Make every seal again over the events as they are now, chained and signed by this key."""
    previous = bytes(32)
    for row in SealRow.objects.order_by("number"):
        seal, leaves, marks = read_seal(row), [], b""
        with connection.cursor() as cursor:
            cursor.execute(LEAVES, {"era": seal.era, "lo": seal.lo, "hi": seal.hi})
            for xid, seq, digest in cursor.fetchall():
                leaves.append(place_hash(seal.era, xid, seq, bytes(digest)))
                marks += mark(seq, leaves[-1])
        tamper(
            f"UPDATE ledger_seal SET marks = '\\x{marks.hex()}', key_id = '{signer.key_id}' "
            f"WHERE number = {row.number}"
        )
        forge(
            row.number,
            signature=signer,
            previous=previous,
            root=root(leaves),
            marks=sha256(marks).digest(),
        )
        previous = bytes(SealRow.objects.get(number=row.number).digest)


@contextmanager
def hidden_from(index: str) -> Iterator[None]:
    """What is written meanwhile has no entry in this index, as if the disk lost those writes.

    Afterwards PostgreSQL reads by indexes, as it does where a table is large.
    """
    ready = f"UPDATE pg_index SET indisready = %s WHERE indexrelid = '{index}'::regclass"
    with connection.cursor() as cursor:
        cursor.execute("SET enable_indexscan = off; SET enable_indexonlyscan = off")
        cursor.execute("SET enable_bitmapscan = off; DISCARD PLANS")
        cursor.execute(ready, [False])
        yield
        cursor.execute(ready, [True])
        cursor.execute("SET enable_indexscan = on; SET enable_indexonlyscan = on")
        cursor.execute("SET enable_seqscan = off; DISCARD PLANS")


@pytest.fixture
def stale(sealed):
    """Indexes are made whole, and PostgreSQL plans as ever, after a test."""
    yield
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("REINDEX TABLE ledger_event; REINDEX TABLE ledger_seal")


def test_events_that_their_index_does_not_show_are_missed(stale):
    """Spec: ledger 9."""
    with hidden_from("ledger_event_sealing"):
        record_many(2)
    finding = verify().finding
    assert finding is not None
    assert finding.fault is SealFault.INDEX
    assert "ledger_event has 14 rows, but its index shows 12" in finding.message


def test_a_sealed_event_that_its_index_does_not_show_is_not_called_gone(stale):
    """Spec: ledger 9."""
    with hidden_from("ledger_event_sealing"):
        (hidden,) = record_many(1)
        seal_until_covered([hidden])
    assert found() == (SealFault.INDEX, 4, hidden)
    with connection.cursor() as cursor:
        cursor.execute("REINDEX TABLE ledger_event")
    assert verify().finding is None


def test_a_seal_that_its_index_does_not_show_is_not_called_a_cut_end(stale):
    """Spec: ledger 10."""
    with hidden_from("ledger_seal_pkey"):
        seal_until_covered(record_many(1))
    finding = verify().finding
    assert finding is not None
    assert finding.fault is SealFault.INDEX
    assert "ledger_seal has 4 rows, but its index shows 3" in finding.message
