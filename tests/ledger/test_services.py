"""Writing: only inside a transaction, whole or not at all, never changed again."""

from datetime import UTC, datetime

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings

from core.database import OutsideTransaction
from core.events import Event, EventOutcome, UnrecordableEvent
from ledger import services, sql
from ledger.canonical import FIELDS, digest
from ledger.models import Event as EventRow
from ledger.models import Seal
from ledger.verification import COLUMNS, read_leaf
from tests.ledger.strategies import events
from tests.ledger.world import insert_on, make_event, own_connection, record, tamper


def stored_leaf(seq: int):
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT era, xid, seq, digest, {COLUMNS} FROM ledger_event WHERE seq = %s", [seq]
        )
        return read_leaf(cursor.fetchone())


def insert(event: Event) -> int:
    """Insert an event in a transaction of its own."""
    with transaction.atomic():
        return services.insert_event(event)


class TestRecord:
    def test_writes_every_field(self, db):
        event = make_event(
            action="test.refused",
            decision=EventOutcome.DENY,
            code="MODE_DENIED",
            reason="not in chat_safe",
            tool="read_file",
            policy_version=3,
            args_digest="0" * 64,
            request_id="req-1",
            session_id="ses-1",
            for_agent_id=9,
            kind="tool_denied",
            details={"mode": "chat_safe", "half": 0.5},
        )
        seq = insert(event)
        row = EventRow.objects.get(seq=seq)
        assert {name: getattr(row, name) for name in FIELDS} == {
            name: getattr(event, name) for name in FIELDS
        }
        assert bytes(row.digest) == digest(event)

    def test_notes_its_transaction_and_its_cluster(self, db):
        row = EventRow.objects.get(seq=insert(make_event()))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_current_xact_id()::text::bigint, (pg_control_system()).system_identifier"
            )
            assert (row.xid, row.era) == cursor.fetchone()

    def test_costs_one_query(self, db, django_assert_num_queries):
        with transaction.atomic(), django_assert_num_queries(1):
            services.insert_event(make_event())

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(events)
    def test_stores_what_it_hashed(self, db, event):
        """A trip through PostgreSQL's own types changes no digest."""
        if not event.actor or not event.action or (event.decision == "deny" and not event.code):
            return
        leaf = stored_leaf(insert(event))
        assert leaf.digest == digest(event)
        assert leaf.fields["id"] == str(event.id)

    def test_refuses_to_write_outside_a_transaction(self, ledger_db):
        with pytest.raises(OutsideTransaction):
            services.insert_event(make_event())
        assert not EventRow.objects.exists()

    def test_leaves_nothing_after_a_rollback(self, ledger_db):
        with transaction.atomic():
            services.insert_event(make_event())
            transaction.set_rollback(True)
        assert not EventRow.objects.exists()

    def test_undoes_the_effect_where_the_event_cannot_be_written(self, ledger_db):
        def effect_and_event() -> None:
            with transaction.atomic():
                services.insert_event(make_event(subject="the effect"))
                services.insert_event(make_event(details={"x": float("nan")}))

        with pytest.raises(UnrecordableEvent):
            effect_and_event()
        assert not EventRow.objects.exists()

    @pytest.mark.parametrize(
        ("changes", "constraint"),
        [
            ({"decision": EventOutcome.DENY}, "ledger_event_denial_has_code"),
            ({"actor": ""}, "ledger_event_names_its_actor"),
            ({"action": ""}, "ledger_event_names_its_actor"),
            ({"decision": "maybe"}, "ledger_event_decision_known"),
        ],
        ids=str,
    )
    def test_is_held_to_what_an_event_must_say(self, ledger_db, changes, constraint):
        with pytest.raises(IntegrityError, match=constraint):
            record(**changes)

    def test_writes_hostile_text_all_the_same(self, db):
        hostile = "a\x00\ud800" + "x" * 5000
        seq = insert(
            make_event(
                tool=hostile,
                subject=hostile,
                reason=hostile,
                request_id="'; DROP TABLE ledger_event; --",
                details={"said": hostile},
            )
        )
        row = EventRow.objects.get(seq=seq)
        assert row.tool.startswith("a\ufffd\ufffdxxx")
        assert len(row.tool) == 255
        assert stored_leaf(seq).digest == bytes(row.digest)


class TestInsert:
    def test_is_a_part_of_another_statement(self, db):
        text = f"""
            WITH first AS ({sql.insert("a")} RETURNING seq),
            second AS ({sql.insert("b")} RETURNING seq)
            SELECT first.seq, second.seq FROM first, second
        """
        one, two = make_event(subject="one"), make_event(subject="two")
        with connection.cursor() as cursor:
            cursor.execute(text, sql.params(one, "a") | sql.params(two, "b"))
            first, second = cursor.fetchone()
        assert stored_leaf(first).digest == digest(one)
        assert stored_leaf(second).digest == digest(two)

    @pytest.mark.parametrize("found", [0, 1])
    def test_depends_on_a_row_of_its_effect(self, db, found):
        text = (
            f"WITH effect AS (SELECT 1 LIMIT {found}) {sql.insert(source='effect')} RETURNING seq"
        )
        with connection.cursor() as cursor:
            cursor.execute(text, sql.params(make_event()))
            assert len(cursor.fetchall()) == found

    def test_binds_on_the_server_too(self, ledger_db):
        with own_connection() as other:
            other.prepare_threshold = 0
            seq = insert_on(other, details={"a": [1]})
            other.commit()
        assert stored_leaf(seq).fields["details"] == {"a": [1]}


CHANGES = [
    "UPDATE {table} SET at = now()",
    "UPDATE {table} SET at = now() WHERE false",
    "DELETE FROM {table}",
    "DELETE FROM {table} WHERE false",
    "TRUNCATE {table}",
    "TRUNCATE {table} CASCADE",
    "MERGE INTO {table} t USING (SELECT 1 x) s ON true WHEN MATCHED THEN DELETE",
]


class TestTables:
    @pytest.mark.parametrize("statement", CHANGES)
    @pytest.mark.parametrize("table", ["ledger_event", "ledger_seal"])
    def test_refuse_every_change_even_by_their_owner(self, sealed, table, statement):
        with (
            pytest.raises(DatabaseError, match=f"{table} only grows"),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement.format(table=table))
        assert EventRow.objects.count() == 12
        assert Seal.objects.count() == 3

    def test_refuse_changes_through_the_orm(self, sealed):
        row = EventRow.objects.first()
        row.reason = "another"
        for change in (
            row.save,
            row.delete,
            EventRow.objects.all().delete,
            lambda: EventRow.objects.update(reason="another"),
            Seal.objects.first().delete,
            lambda: Seal.objects.update(count=7),
        ):
            with pytest.raises(IntegrityError, match="only grows"):
                change()

    def test_refuse_an_insert_that_overwrites(self, sealed):
        with pytest.raises(IntegrityError, match="only grows"), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO ledger_event (seq, id, at, actor, action, decision, digest) "
                "SELECT seq, id, at, 'x', action, decision, digest FROM ledger_event LIMIT 1 "
                "ON CONFLICT (seq) DO UPDATE SET actor = 'x'"
            )

    def test_give_an_application_role_nothing_but_writing_and_reading(self, sealed):
        """The role of docs/ledger.md: it can't even take the triggers away."""
        with own_connection() as other:
            other.execute("CREATE ROLE ledger_app_of_test")
            other.execute("GRANT SELECT, INSERT ON ledger_event, ledger_seal TO ledger_app_of_test")
            other.execute("SET ROLE ledger_app_of_test")
            assert insert_on(other)
            for statement in (
                *(change.format(table="ledger_event") for change in CHANGES[:6]),
                "ALTER TABLE ledger_event DISABLE TRIGGER ALL",
                "DROP TRIGGER ledger_event_only_grows ON ledger_event",
                "DROP TABLE ledger_event",
                "SET session_replication_role = replica",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege), other.transaction():
                    other.execute(statement)

    def test_come_and_go_with_their_migrations(self, ledger_db):
        from django.core.management import call_command  # migrations are slow to load

        call_command("migrate", "ledger", "0001", verbosity=0)
        try:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'ledger%only_grows'"
                )
                assert cursor.fetchone() == (0,)
        finally:
            call_command("migrate", "ledger", verbosity=0)
        with pytest.raises(IntegrityError, match="only grows"):
            EventRow.objects.all().delete()


class TestTime:
    def test_is_kept_to_the_microsecond_in_any_year(self, db):
        for year in (1, 1883, 9999):
            at = datetime(year, 12, 30, 23, 59, 59, 999_999, tzinfo=UTC)
            seq = insert(make_event(at=at))
            assert EventRow.objects.get(seq=seq).at == at


def test_a_tampering_superuser_is_not_stopped_by_triggers(sealed):
    """What the triggers can't do; `test_verification` shows that it is found."""
    tamper("DELETE FROM ledger_event")
    assert not EventRow.objects.exists()
