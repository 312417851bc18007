"""A ledger that is verified by several processes: the same is found, at the same place."""

import os

import pytest
from django.db import connection

from ledger import parallel
from ledger.models import Seal as SealRow
from ledger.parallel import plan_parts
from ledger.rules import SealFault
from ledger.spans import HIGHEST, LOWEST, Part
from tests.ledger.world import own_connection, record, tamper, verify


@pytest.fixture
def processes(monkeypatch):
    """As many as there are seals, however small the ledger is."""
    monkeypatch.setattr(parallel, "MANY", 1)
    monkeypatch.setattr(parallel, "START_COST", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})


class TestPlan:
    def test_is_one_part_where_there_is_little(self, sealed):
        assert plan_parts() == [Part()]

    def test_is_one_part_where_there_is_nothing(self, ledger_db, processes):
        assert plan_parts() == [Part()]

    def test_is_a_part_for_each_processor_without_gaps(self, sealed, processes):
        first, second, third = plan_parts()
        assert (first.first, first.last + 1) == (LOWEST, second.first)
        assert (second.last + 1, third.last) == (third.first, HIGHEST)

    def test_gives_more_to_the_part_that_needs_no_process(self, sealed, processes, monkeypatch):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
        first, second = plan_parts()
        assert (first.last, second.first) == (1, 2)
        monkeypatch.setattr(parallel, "START_COST", 4 + parallel.SEAL_COST)
        first, second = plan_parts()
        assert (first.last, second.first) == (2, 3)


class TestVerifyInParts:
    def test_finds_nothing_in_a_whole_ledger(self, sealed, processes):
        record()
        report = verify()
        assert report.finding is None
        assert (report.seals, report.events, report.unsealed) == (3, 12, 1)
        assert report.reaches == SealRow.objects.get(number=3).at

    @pytest.mark.parametrize("place", [0, 5, 11])
    def test_finds_an_edited_event_in_each_part(self, sealed, processes, place):
        tamper(f"UPDATE ledger_event SET reason = 'x' WHERE seq = {sealed[place]}")
        finding = verify().finding
        found = (finding.fault, finding.seal, finding.seq)
        assert found == (SealFault.EVENT_FIELDS, place // 4 + 1, sealed[place])

    @pytest.mark.parametrize("number", [1, 2])
    def test_finds_a_seal_taken_out_between_parts(self, sealed, processes, number):
        tamper(f"DELETE FROM ledger_seal WHERE number = {number}")
        finding = verify().finding
        assert (finding.fault, finding.seal) == (SealFault.SEAL_MISSING, number)

    @pytest.mark.parametrize("column", ["lo = lo - 1", "previous = sha256('x')", "era = era + 1"])
    def test_finds_a_seal_that_does_not_follow_the_part_before(self, sealed, processes, column):
        tamper(f"UPDATE ledger_seal SET {column} WHERE number = 2")
        finding = verify().finding
        assert (finding.fault, finding.seal) == (SealFault.SEAL_FIELDS, 2)

    def test_says_the_first_of_several(self, sealed, processes):
        tamper(
            f"DELETE FROM ledger_event WHERE seq = {sealed[9]}",
            f"UPDATE ledger_event SET actor = 'x' WHERE seq = {sealed[2]}",
        )
        assert verify().finding.seq == sealed[2]

    def test_sees_the_moment_of_the_first_process(self, sealed, processes, monkeypatch):
        start = parallel._start

        def start_late():
            tamper_apart("DELETE FROM ledger_event")
            return start()

        def tamper_apart(statement):
            with own_connection() as other:
                other.execute("SET session_replication_role = replica")
                other.execute(statement)
                other.commit()

        monkeypatch.setattr(parallel, "_start", start_late)
        assert verify().finding is None
        assert verify().finding.fault is SealFault.EVENT_MISSING

    def test_does_the_part_of_a_process_that_failed_itself(self, sealed, processes, monkeypatch):
        monkeypatch.setattr(parallel, "_read", lambda *_: None)
        report = verify()
        assert (report.finding, report.seals, report.events) == (None, 3, 12)
        tamper(f"UPDATE ledger_event SET reason = 'x' WHERE seq = {sealed[7]}")
        assert verify().finding.seq == sealed[7]

    def test_waits_for_the_others_as_long_as_they_take(self, sealed, processes):
        """Its own transaction does nothing meanwhile, and the processes see what it sees."""
        with connection.cursor() as cursor:
            cursor.execute("SET idle_in_transaction_session_timeout = '50ms'")
            try:
                assert verify().finding is None
            finally:
                cursor.execute("RESET idle_in_transaction_session_timeout")

    def test_leaves_no_process_behind(self, sealed, processes, monkeypatch):
        start, started = parallel._start, []

        def keep():
            started.append(start())
            return started[-1]

        monkeypatch.setattr(parallel, "_start", keep)
        tamper(f"UPDATE ledger_event SET reason = 'x' WHERE seq = {sealed[0]}")
        assert verify().finding.seq == sealed[0]
        assert len(started) == 2
        assert all(process.returncode is not None for process in started)
