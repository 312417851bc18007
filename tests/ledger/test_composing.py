"""PostgreSQL composes the same bytes as Python, for whatever an event says."""

from dataclasses import replace

import pytest
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from core.events import SHORT, Event
from ledger import keys, spans, sql
from ledger.canonical import canonical, digest, fields
from ledger.composing import (
    IS_PLAIN,
    SEPARATOR,
    WORDS,
    compose,
    copy_statement,
    has_known_shape,
)
from ledger.leaves import Details, DoubtfulEvent, LeafReader
from ledger.rules import SealFault
from ledger.seal_format import place_hash
from ledger.verification import Verification
from tests.ledger.strategies import events
from tests.ledger.world import NOW, make_event, verify

AWKWARD = "\"\\/\n\r\t\b\f\x01\x1f\x7f\x85\u2028\u2029\ufeffé可😀\U0010ffff'{}[]:,0 a"
awkward = st.text(st.sampled_from(AWKWARD), max_size=SHORT)


def storable(event: Event) -> Event:
    """With what the table's constraints ask for."""
    return replace(
        event, actor=event.actor or "a", action=event.action or "a", code=event.code or "C"
    )


everything = st.lists(
    (events | st.builds(make_event, reason=awkward, subject=awkward, tool=awkward, actor=awkward)
     | st.builds(make_event, details=st.dictionaries(awkward, awkward | st.floats(-1, 1)))
     ).map(storable),
    min_size=1,
    max_size=12,
)  # fmt: skip

FORMS = f"""
SELECT {IS_PLAIN}, {compose(escapes=False)}, {compose(escapes=True)}, details::text
FROM (SELECT *, {WORDS} AS words FROM ledger_event) AS e WHERE seq = ANY(%s) ORDER BY seq
"""
PLACE = "SELECT era, xid, seq FROM ledger_event WHERE seq = ANY(%s) ORDER BY seq"


def insert(found: list[Event]) -> list[int]:
    with connection.cursor() as cursor:
        seqs = []
        for event in found:
            cursor.execute(f"{sql.INSERT} RETURNING seq", sql.params(event))
            seqs.append(cursor.fetchone()[0])
        return seqs


def select(statement: str, *values: object) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


@pytest.fixture(scope="module")
def database(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        yield
        connection.close()


class TestForm:
    @given(everything)
    @settings(max_examples=300, deadline=None)
    def test_is_the_canonical_one_byte_for_byte(self, database, found):
        with transaction.atomic():
            rows = select(FORMS, insert(found))
            transaction.set_rollback(True)
        for event, (is_plain, plain, escaped, stored) in zip(found, rows, strict=True):
            expected = canonical(fields(event)).encode()
            for text in [escaped, *[plain] * is_plain]:
                before, said, after = text.encode().split(SEPARATOR)
                assert said == stored.encode()
                assert before + Details()[said] + after == expected

    @given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=9))
    @settings(max_examples=300, deadline=None)
    def test_calls_plain_exactly_what_json_leaves_as_it_is(self, database, text):
        (row,) = select(f"SELECT {IS_PLAIN} FROM (SELECT %s::text AS words) AS e", text)
        assert row[0] is (canonical(text) == f'"{text}"')

    @given(everything)
    @settings(max_examples=100, deadline=None)
    def test_gives_the_leaves_that_are_sealed(self, database, found):
        with transaction.atomic():
            places = select(PLACE, insert(found))
            era, xid, _ = places[0]
            statement = copy_statement(era=era, lo=xid, hi=xid + 1)
            with LeafReader(connection.connection.pgconn, statement, era, Details()) as reader:
                seqs, leaves = reader.take(len(found) + 5)
                assert not reader.has_more()
            transaction.set_rollback(True)
        assert seqs == [seq for _, _, seq in places]
        expected = zip(places, found, strict=True)
        assert leaves == [place_hash(*place, digest(event)) for place, event in expected]


class TestDetails:
    @pytest.mark.parametrize(
        "stored", ['{"n": 1e400}', '{"n": 0.10000000000000000000001}', '{"n": 9223372036854775808}']
    )
    def test_that_no_event_had_are_doubtful(self, stored):
        with pytest.raises(DoubtfulEvent):
            Details()[stored.encode()]


STRANGE = {
    "column": (
        "ALTER TABLE ledger_event ALTER COLUMN reason DROP NOT NULL",
        "UPDATE ledger_event SET reason = NULL WHERE seq = {}",
    ),
    "function": (
        """CREATE OR REPLACE FUNCTION pg_catalog.to_char(timestamp, text) RETURNS text
        LANGUAGE sql STABLE AS $$ SELECT '2026-11-21T10:30:00.000000+00:00' $$""",
        "UPDATE ledger_event SET at = at - interval '1 day' WHERE seq = {}",
    ),
}
"""What a superuser changes so that the composed form hides an edit, and the edit."""


class TestShape:
    def test_is_known(self, ledger_db):
        connection.ensure_connection()
        assert has_known_shape(connection.connection)

    @pytest.mark.parametrize("what", STRANGE)
    @pytest.mark.parametrize("is_checked", [True, False])
    def test_that_is_strange_hides_nothing(self, sealed, monkeypatch, what, is_checked):
        """Without the check, the form would hide it: what is composed is not what is stored."""
        if not is_checked:
            monkeypatch.setattr(spans, "has_known_shape", lambda _: True)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            for statement in STRANGE[what]:
                cursor.execute(statement.format(sealed[5]))
            finding = Verification(keys.trusted(), NOW).run().finding
            transaction.set_rollback(True)
        found = finding and (finding.fault, finding.seal, finding.seq)
        assert found == ((SealFault.EVENT_FIELDS, 2, sealed[5]) if is_checked else None)
        assert verify().finding is None
