"""Sealing: every committed event once, none too early, by one sealer at a time."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_all
from errno import ENOSPC
from unittest.mock import Mock

import pytest
from django.db import IntegrityError, connection, connections

from ledger import chain_end, keys, sealer
from ledger.models import Seal
from ledger.sealer import LOCK, TransactionsWentBack, seal_events, seal_next
from tests.concurrency import at_once
from tests.ledger.world import (
    NOW,
    insert_on,
    own_connection,
    record,
    record_many,
    seal_until_covered,
    sealed_seqs,
    tamper,
    verify,
    wait_until_ended,
)


class TestSealEvents:
    def test_covers_every_event_exactly_once(self, sealed):
        assert sorted(sealed_seqs()) == sorted(sealed)
        assert [s.count for s in Seal.objects.order_by("number")] == [4, 4, 4]
        assert verify().finding is None

    def test_chains_and_signs(self, sealed):
        first, second, third = Seal.objects.order_by("number")
        assert bytes(first.previous) == bytes(32)
        assert bytes(second.previous) == bytes(first.digest)
        assert bytes(third.previous) == bytes(second.digest)
        assert {first.key_id, second.key_id, third.key_id} == set(keys.trusted())
        assert (first.lo, first.hi, second.hi) == (0, second.lo, third.lo)

    def test_makes_no_seal_of_nothing(self, sealed):
        assert seal_events(now=NOW) == 0
        assert Seal.objects.count() == 3

    def test_leaves_what_commits_meanwhile_to_the_next_run(self, ledger_db, monkeypatch):
        """Under constant traffic a run would else make a seal for every few events."""
        record(subject="before")
        meanwhile = iter(["meanwhile"])

        def be_busy():
            if not Seal.objects.exists():
                return
            for subject in meanwhile:
                record(subject=subject)
                wait_until_ended()

        monkeypatch.setattr(sealer, "_keep_head", be_busy)
        wait_until_ended()
        assert seal_events(now=NOW) == 1
        assert Seal.objects.get().count == 1
        assert seal_until_covered() == 1

    def test_does_not_skip_an_event_that_commits_late(self, ledger_db):
        """A began first and committed last: between them, B and a seal."""
        with own_connection() as a:
            late = insert_on(a, subject="late")
            early = record(subject="early")
            seal_events(now=NOW)
            assert late not in sealed_seqs()
            assert early not in sealed_seqs(), "a seal must not pass a transaction still open"
            a.commit()
        seal_until_covered([late, early])
        assert set(sealed_seqs()) == {late, early}
        assert verify().finding is None

    def test_seals_what_ended_before_the_oldest_open_transaction(self, ledger_db):
        before = record(subject="before")
        with own_connection() as a:
            late = insert_on(a, subject="open")
            after = record(subject="after")
            seal_until_covered([before])
            assert sealed_seqs() == [before]
            a.commit()
        seal_until_covered()
        assert sealed_seqs() == [before, late, after]
        assert verify().finding is None

    def test_is_not_confused_by_what_rolled_back(self, ledger_db):
        with own_connection() as a:
            insert_on(a)
            a.rollback()
        kept = record()
        seal_until_covered()
        assert sealed_seqs() == [kept]
        assert verify().finding is None

    def test_cuts_large_batches_between_transactions(self, ledger_db):
        small = [record() for _ in range(5)]
        large = record_many(10)
        rest = [record() for _ in range(3)]
        wait_until_ended()
        assert seal_events(now=NOW, batch=4) == 4
        assert [s.count for s in Seal.objects.order_by("number")] == [4, 1, 10, 3]
        assert sealed_seqs() == [*small, *large, *rest]
        assert verify().finding is None

    def test_asks_little_however_much_there_is(self, ledger_db, django_assert_max_num_queries):
        record_many(500)
        wait_until_ended()
        with django_assert_max_num_queries(25):
            assert seal_events(now=NOW) == 1


class TestWhoHoldsSealingBack:
    def test_is_a_transaction_that_is_as_old_as_the_delay(self, ledger_db, monkeypatch):
        record()
        with own_connection() as other:
            insert_on(other)
            backlog = sealer.read_backlog(now=NOW)
            assert backlog.holder is None or backlog.holder.pid != other.info.backend_pid
            monkeypatch.setattr(sealer, "LATEST", 0.0)
            assert sealer.read_backlog(now=NOW).holder is not None

    def test_is_never_one_of_the_processes_of_the_database_itself(self, ledger_db, monkeypatch):
        """They have no role; `pg_stat_activity` is read through a copy of it."""
        record()
        monkeypatch.setattr(sealer, "LATEST", 0.0)
        with own_connection() as other:
            insert_on(other)
            with connection.cursor() as cursor:
                cursor.execute(
                    "CREATE TEMPORARY VIEW pg_stat_activity AS "
                    "SELECT pid, NULL::name AS usename, datname, backend_xid, xact_start "
                    "FROM pg_catalog.pg_stat_activity"
                )
            monkeypatch.setattr(
                sealer,
                "HOLDER",
                sealer.HOLDER.replace("pg_stat_activity", "pg_temp.pg_stat_activity"),
            )
            try:
                assert sealer.read_backlog(now=NOW).holder is None
            finally:
                with connection.cursor() as cursor:
                    cursor.execute("DROP VIEW pg_temp.pg_stat_activity")


class TestSealers:
    def test_leave_at_once_where_another_is_at_work(self, ledger_db):
        record()
        wait_until_ended()
        with own_connection() as other:
            other.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
            assert seal_next(now=NOW) is None
        assert not Seal.objects.exists()
        assert seal_next(now=NOW) is not None

    def test_at_once_seal_everything_once(self, ledger_db):
        record_many(3)
        wait_until_ended()
        made = at_once([lambda: seal_events(now=NOW)] * 8)
        assert sum(made) == 1
        assert verify().finding is None

    def test_that_slip_past_the_lock_cannot_both_write(self, sealed):
        """The constraint behind the lock."""
        seal = Seal.objects.first()
        seal.number += 1
        with pytest.raises(IntegrityError, match="ledger_seal_range_once"):
            seal.save(force_insert=True)

    def test_keep_up_with_eight_writers(self, ledger_db):
        stop = threading.Event()

        def write(worker: int) -> list[int]:
            return [record(actor=f"agent:{worker}", subject=f"{i}") for i in range(40)]

        def keep_sealing(_: int) -> list[int]:
            while not stop.is_set():
                seal_events(now=NOW, batch=16)
            return []

        with ThreadPoolExecutor(10) as pool:
            sealers = [pool.submit(in_thread(keep_sealing), i) for i in range(2)]
            writers = [pool.submit(in_thread(write), i) for i in range(8)]
            wait_all(writers)
            stop.set()
            written = {seq for future in writers for seq in future.result()}
            for future in sealers:
                future.result()
        wait_until_ended()
        seal_events(now=NOW, batch=16)  # what other transactions on this server held back
        assert len(written) == 320
        assert len(sealed_seqs()) == 320
        assert set(sealed_seqs()) == written
        report = verify()
        assert report.finding is None
        assert (report.events, report.unsealed) == (320, 0)
        assert report.seals > 1


def in_thread(work):
    """Run in a thread and give its connection back."""

    def run(number: int):
        try:
            return work(number)
        finally:
            connections.close_all()

    return run


class TestKeyOfTheSealer:
    def test_that_is_lost_is_not_replaced_in_silence(self, sealed, ledger_dir):
        (ledger_dir / keys.PRIVATE).unlink()
        record()
        wait_until_ended()
        with pytest.raises(keys.KeyMissing):
            seal_events(now=NOW)
        assert Seal.objects.count() == 3

    def test_is_not_made_up_in_production(self, ledger_db, settings):
        settings.PRODUCTION = True
        record()
        wait_until_ended()
        with pytest.raises(keys.KeyMissing):
            seal_events(now=NOW)
        keys.make_key()
        assert seal_events(now=NOW) == 1


class TestTheHead:
    def test_that_cannot_be_kept_stops_sealing(self, sealed, monkeypatch):
        """As on a full disk: a chain that goes on could be cut unseen; what waits is seen."""

        def run():
            record()
            wait_until_ended()
            seal_events(now=NOW)

        with monkeypatch.context() as full:
            full.setattr(keys, "place", Mock(side_effect=OSError(ENOSPC, "full")))
            for _ in range(2):
                with pytest.raises(OSError, match="full"):
                    run()
        assert (keys.known_head()[0], Seal.objects.count()) == (3, 4)
        run()
        assert (keys.known_head()[0], Seal.objects.count()) == (5, 5)

    def test_follows_what_another_machine_sealed(self, sealed, ledger_dir, settings, tmp_path):
        settings.LEDGER_DIR = shutil.copytree(ledger_dir, tmp_path / "another")
        seal_until_covered(record_many(1))
        settings.LEDGER_DIR = ledger_dir
        assert keys.known_head()[0] == 3
        assert seal_events(now=NOW) == 0
        assert keys.known_head()[0] == 4

    @pytest.mark.parametrize("seals", [1, 2])
    def test_that_is_missing_stays_missing(self, ledger_db, ledger_dir, seals):
        """Only people accept a chain that this machine never saw."""
        for _ in range(seals):
            seal_until_covered(record_many(1))
        (ledger_dir / keys.HEAD).unlink()
        seal_events(now=NOW)
        assert keys.known_head() is None


class TestEras:
    @pytest.mark.parametrize("foreign", [77, 2**63 - 1])
    def test_go_on_in_a_new_cluster_after_a_restore(self, ledger_db, foreign):
        """A dump brings sealed and unsealed events, whose transactions here are still to come."""
        first = in_foreign_cluster(foreign, xid=5_000_000_000_000)
        second = in_foreign_cluster(foreign, xid=5_000_000_000_001)
        assert seal_events(now=NOW) == 1
        third = in_foreign_cluster(foreign, xid=5_000_000_000_002)
        here = record(subject="written after the restore")
        seal_until_covered()
        assert set(sealed_seqs()) == {first, second, third, here}
        assert [(s.era == foreign, s.count) for s in Seal.objects.order_by("number")] == [
            (True, 2),
            (True, 1),
            (False, 1),
        ]
        report = verify()
        assert report.finding is None
        assert report.unsealed == 0

    def test_may_come_back_to_a_cluster_they_left(self, sealed):
        elsewhere = in_foreign_cluster(99, xid=3)
        seal_until_covered([elsewhere])
        again = record()
        seal_until_covered([again])
        assert verify().finding is None
        assert Seal.objects.count() == 5

    def test_that_lost_their_place_are_not_sealed_over(self, sealed):
        """A cluster set back behind its own seals: old numbers look like new ones."""
        tamper("UPDATE ledger_seal SET hi = 9000000000000000 WHERE number = 3")
        record()
        with pytest.raises(TransactionsWentBack):
            seal_events(now=NOW)
        assert chain_end.last_seal().number == 3


def in_foreign_cluster(era: int, xid: int) -> int:
    seq = record(subject=f"of {era}")
    tamper(f"UPDATE ledger_event SET era = {era}, xid = {xid} WHERE seq = {seq}")
    return seq
