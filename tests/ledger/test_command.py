"""`manage.py ledger` as a person runs it."""

import base64
import json
import os
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.utils import timezone

from core.database import database_now
from core.people import operator
from ledger import keys, offline
from ledger.models import Event, Seal
from ledger.seal_format import write_public
from tests.ledger.world import record, record_many, tamper, wait_until_ended


def ledger(*words: str) -> str:
    out = StringIO()
    call_command("ledger", *words, stdout=out)
    return out.getvalue().strip()


class TestSeal:
    def test_says_how_many_seals_it_made(self, ledger_db):
        record_many(2)
        wait_until_ended()
        assert ledger("seal") == "1 seals made"
        assert ledger("seal") == "0 seals made"

    def test_says_what_to_do_without_a_key(self, sealed, ledger_dir):
        (ledger_dir / keys.PRIVATE).unlink()
        record()
        wait_until_ended()
        with pytest.raises(CommandError, match="new-key"):
            ledger("seal")


class TestAFirstSealThatIsKilled:
    @pytest.fixture
    def killed(self, ledger_db, monkeypatch):
        """Seal once, and let the process end where it puts this file in place."""
        record_many(2)
        wait_until_ended()
        place = keys.place

        def kill_at(name):
            def die(path, content, *, replace):
                if path.name == name and b'"number": 0,' not in content:
                    raise KeyboardInterrupt
                place(path, content, replace=replace)

            with monkeypatch.context() as patch:
                patch.setattr(keys, "place", die)
                with pytest.raises(KeyboardInterrupt):
                    ledger("seal")

        return kill_at

    @pytest.mark.parametrize("name", [keys.PRIVATE, keys.PUBLIC, keys.HEAD])
    def test_is_followed_by_one_that_verifies(self, killed, name):
        """Spec: ledger 10. Its key is trusted, and the machine knows the chain that it began."""
        killed(name)
        ledger("seal")
        assert ledger("verify").startswith("OK 1 seals")


class TestAdopt:
    def test_accepts_a_restored_chain_and_keeps_the_decision(self, sealed, ledger_dir):
        (ledger_dir / keys.HEAD).unlink()
        with pytest.raises(CommandError, match="ledger adopt"):
            ledger("verify")
        assert ledger("adopt", "--reason", "moved to a new disk").endswith("seal 3 here")
        assert ledger("verify").startswith("OK 3 seals")
        event = Event.objects.get(action="ledger.adopted")
        assert event.reason == "moved to a new disk"
        assert event.actor == operator().actor
        assert event.details["before"] is None
        assert event.details["now"][0] == 3

    def test_is_not_accepted_without_its_event(self, sealed, ledger_dir, monkeypatch):
        """Spec: ledger 2."""
        (ledger_dir / keys.HEAD).unlink()

        def fail(*_, **fields):
            raise OSError("the database fell")

        monkeypatch.setattr("ledger.management.commands.ledger.record", fail)
        with pytest.raises(CommandError, match="fell"):
            ledger("adopt", "--reason", "moved")
        assert not (ledger_dir / keys.HEAD).exists()

    def test_needs_a_reason(self, sealed):
        with pytest.raises(CommandError, match="--reason"):
            ledger("adopt")

    @pytest.mark.parametrize("reason", ["", " ", "\u200b"])
    def test_needs_a_reason_that_shows(self, sealed, reason):
        """Spec: people 6."""
        with pytest.raises(CommandError, match="is blank"):
            ledger("adopt", "--reason", reason)
        assert not Event.objects.filter(action="ledger.adopted").exists()


class TestVerify:
    def test_says_that_all_is_well(self, sealed):
        record(at=timezone.now())
        assert ledger("verify").startswith(
            "OK 3 seals, 12 events sealed, 1 not yet; it reaches seal 3 "
        )

    @pytest.mark.parametrize("wrong", [timedelta(days=1), timedelta(days=-1)], ids=str)
    def test_judges_what_waits_by_the_database(self, sealed, monkeypatch, wrong):
        """Spec: clocks 3. The machine's clock hides nothing that waits, and alarms for nothing."""
        machine = timezone.now()
        monkeypatch.setattr(timezone, "now", lambda: machine + wrong)
        record(at=database_now())
        assert ledger("verify").startswith("OK 3 seals")
        wait_until_ended()
        ledger("seal")
        record(at=database_now() - timedelta(hours=1))
        with pytest.raises(CommandError, match="not sealed after 36"):
            ledger("verify")

    def test_exits_with_1_and_the_position(self, sealed):
        tamper(f"UPDATE ledger_event SET actor = 'x' WHERE seq = {sealed[5]}")
        with pytest.raises(CommandError, match=rf"WRONG seal 2, event {sealed[5]}: ") as caught:
            ledger("verify")
        assert caught.value.returncode == 1

    def test_takes_another_public_key(self, sealed):
        with pytest.raises(CommandError, match="not trusted"):
            ledger("verify", "--public-key", base64.b64encode(bytes(32)).decode())

    @pytest.mark.parametrize("wrong", ["x", "AAAA"])
    def test_refuses_what_is_no_key(self, sealed, wrong):
        with pytest.raises(CommandError, match="public-key"):
            ledger("verify", "--public-key", wrong)

    def test_says_that_a_file_is_not_there(self, db, tmp_path):
        with pytest.raises(CommandError, match="No such file"):
            ledger("verify", "--file", str(tmp_path / "missing"))


class TestExport:
    def test_writes_what_verify_reads_without_the_database(self, sealed, tmp_path, monkeypatch):
        record(organisation_id=2)
        wait_until_ended()
        path = tmp_path / "export.jsonl"
        assert ledger("export", str(path)) == str(path)
        key = write_public(keys.signer(may_create=False).public)
        with monkeypatch.context() as patch:
            patch.setattr(type(connections["default"]), "cursor", None)
            answer = ledger("verify", "--file", str(path), "--public-key", key)
        assert answer == "OK 4 seals, 13 events, 0 not shown; complete"

    def test_takes_a_selection(self, sealed, tmp_path):
        record(organisation_id=2)
        wait_until_ended()
        path = tmp_path / "export.jsonl"
        ledger("export", str(path), "--organisation", "2", "--since", "2026-01-01")
        assert "1 events, 12 not shown; a part" in ledger("verify", "--file", str(path))

    @pytest.mark.parametrize("number", ["99", "0", "99999999999999999999"])
    def test_refuses_an_organisation_that_no_event_names(self, sealed, tmp_path, number):
        with pytest.raises(
            CommandError, match=f"no event is of an organisation with the id {number}"
        ):
            ledger("export", str(tmp_path / "export.jsonl"), "--organisation", number)
        assert not list(tmp_path.glob("*export*"))

    @pytest.mark.parametrize("word", ["--since", "--until"])
    @pytest.mark.parametrize("moment", ["0001-01-01", "9999-12-31", "soon"])
    def test_refuses_a_time_that_it_cannot_calculate_with(self, sealed, tmp_path, word, moment):
        with pytest.raises(CommandError, match=f"invalid moment value: '{moment}'"):
            ledger("export", str(tmp_path / "export.jsonl"), word, moment)

    def test_takes_the_place_of_no_pipe_or_device(self, sealed, tmp_path):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with pytest.raises(CommandError, match="no plain file"):
            ledger("export", str(pipe))
        assert pipe.is_fifo()

    def test_follows_a_link_as_that_of_standard_output(self, sealed, tmp_path):
        (tmp_path / "out").write_text("earlier")
        (tmp_path / "link").symlink_to("out")
        ledger("export", str(tmp_path / "link"))
        assert (tmp_path / "link").is_symlink()
        assert ledger("verify", "--file", str(tmp_path / "out")).startswith("OK")

    def test_is_verified_though_a_line_has_no_end(self, sealed, monkeypatch):
        monkeypatch.setattr(offline, "LONGEST", 1000)
        with pytest.raises(CommandError, match="unreadable"):
            ledger("verify", "--file", "/dev/zero")

    def test_tells_a_tampered_file(self, sealed, tmp_path):
        path = tmp_path / "export.jsonl"
        ledger("export", str(path))
        lines = path.read_text().splitlines(keepends=True)
        entry = json.loads(lines[3])
        entry["event"]["actor"] = "agent:somebody_else"
        lines[3] = json.dumps(entry) + "\n"
        path.write_text("".join(lines))
        with pytest.raises(CommandError, match=rf"WRONG seal 1, event {sealed[1]}: "):
            ledger("verify", "--file", str(path))


class TestKeys:
    def test_are_made_once_and_printed(self, db):
        made = ledger("new-key")
        assert ledger("new-key") == made
        assert ledger("public-key") == made

    def test_do_not_touch_the_chain(self, sealed):
        ledger("new-key")
        assert Seal.objects.count() == 3
        assert ledger("verify").startswith("OK")
