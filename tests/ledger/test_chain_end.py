"""The end of the chain: the sealer builds on its own seals only, and who watches is told."""

import threading
from dataclasses import replace

import pytest
from django.utils import timezone

from ledger import chain_end, keys
from ledger.models import Seal as SealRow
from ledger.rules import SealFault
from ledger.seal_format import Seal, read_seal
from ledger.sealer import ForeignEnd, seal_events
from tests.ledger.world import (
    NOW,
    record,
    record_many,
    seal_until_covered,
    tamper,
    verify,
    wait_until_all_ended_before,
    wait_until_ended,
)
from tests.patience import PATIENCE, wait_until


def append(*, signed: bool) -> Seal:
    """Put a seal behind the last one, as somebody does who has the database and perhaps the key.

    Its range has ended then, whatever the tests of other workers keep open.
    """
    row = SealRow.objects.order_by("-number")[0]
    last = read_seal(row)
    made = replace(
        last, number=last.number + 1, lo=last.hi, hi=last.hi + 1, previous=last.digest
    )  # fmt: skip
    made = replace(made, digest=made.compute_digest())
    if signed:
        made = replace(made, signature=keys.signer(may_create=False).sign(made.digest))
    columns = {name: getattr(made, name) for name in Seal.__slots__ if name != "marks"}
    SealRow.objects.create(**columns, marks=bytes(row.marks))
    wait_until_all_ended_before(made.hi)
    return made


def write_and_seal() -> None:
    record()
    wait_until_ended()
    seal_events(now=NOW)


class TestAForeignSeal:
    """What is built on it would vouch for it, and a head behind it shows no cut of ours."""

    @pytest.fixture
    def foreign(self, sealed):
        append(signed=False)

    def test_is_not_followed(self, foreign):
        assert seal_events(now=NOW) == 0
        assert keys.known_head()[0] == 3
        assert verify().finding.fault == SealFault.SEAL_SIGNATURE

    def test_is_not_built_on(self, foreign):
        with pytest.raises(ForeignEnd, match="seal 4: its signature is not by key"):
            write_and_seal()
        assert (keys.known_head()[0], SealRow.objects.count()) == (3, 4)

    def test_is_not_built_on_by_a_machine_that_kept_no_head(self, foreign, ledger_dir):
        (ledger_dir / keys.HEAD).unlink()
        with pytest.raises(ForeignEnd):
            write_and_seal()

    def test_is_found_before_one_of_ours(self, foreign):
        append(signed=True)
        with pytest.raises(ForeignEnd, match="seal 4"):
            write_and_seal()
        assert keys.known_head()[0] == 3

    def test_is_said_until_it_is_taken_away(self, foreign):
        assert not chain_end.is_whole()
        tamper("DELETE FROM ledger_seal WHERE number = 4")
        assert chain_end.is_whole()
        seal_until_covered(record_many(1))
        assert (keys.known_head()[0], verify().finding) == (4, None)


class TestAFolderThatHangs:
    """Spec: ledger 18."""

    @pytest.fixture
    def hanging(self, monkeypatch):
        freed, answer = threading.Event(), chain_end.ask_folder._find
        monkeypatch.setattr(chain_end.ask_folder, "_find", lambda: freed.wait() and answer())
        monkeypatch.setattr(chain_end.ask_folder, "_seconds", 0.01)
        yield freed
        freed.set()

    def test_keeps_neither_who_asks_nor_the_job(self, sealed, hanging, monkeypatch):
        waiting = record_many(1)
        assert not chain_end.folder_answers()
        assert not chain_end.is_whole()
        with pytest.raises(TimeoutError, match="no answer"):
            seal_events(timezone.now())
        assert SealRow.objects.count() == 3
        hanging.set()
        monkeypatch.setattr(chain_end.ask_folder, "_seconds", PATIENCE)
        wait_until(chain_end.folder_answers)
        seal_until_covered(waiting)
        assert chain_end.is_whole()

    def test_is_none_that_is_broken(self, sealed, ledger_dir):
        (ledger_dir / keys.HEAD).write_text("{}")
        assert chain_end.folder_answers()
        assert not chain_end.is_whole()


class TestTheEnd:
    def test_whose_range_was_changed_is_not_built_on(self, sealed):
        """No seal would cover the events in between: they could be deleted unseen."""
        tamper("UPDATE ledger_seal SET hi = hi + 1 WHERE number = 3")
        with pytest.raises(ForeignEnd, match="fields do not match"):
            write_and_seal()

    def test_is_whole_before_the_first_seal_and_after_each(self, ledger_db):
        assert chain_end.is_whole()
        for _ in range(2):
            seal_until_covered(record_many(1))
            assert chain_end.is_whole()

    def test_that_was_cut_is_said(self, sealed):
        tamper("DELETE FROM ledger_seal WHERE number = 3")
        assert not chain_end.is_whole()

    def test_that_this_machine_never_saw_is_said(self, sealed, ledger_dir):
        (ledger_dir / keys.HEAD).unlink()
        assert not chain_end.is_whole()

    @pytest.mark.parametrize("content", ["", "{}", "[1]", '{"number": 3, "digest": "00"}'])
    def test_that_a_broken_file_names_is_said(self, sealed, ledger_dir, content):
        (ledger_dir / keys.HEAD).write_text(content)
        assert not chain_end.is_whole()
