"""A backup taken while agents work, restored into an empty database elsewhere."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Thread
from threading import Event as Signal
from types import SimpleNamespace
from urllib.parse import quote

import psycopg
import pytest
from django.conf import Settings
from django.conf import settings as django_settings
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from documents.root import know_root
from ledger.sealer import seal_events
from nexus_site.management.commands import up
from nexus_site.run import archives, backup, command, first_run, roles, safety
from nexus_site.run.alone import LOCK
from nexus_site.run.backup import CannotCopy, back_up, read_manifest
from nexus_site.run.fork import fork, status_of
from nexus_site.run.processes import lives
from tests.company import load_company
from tests.ledger.world import record, wait_until_all_ended_before, wait_until_ended
from tests.patience import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
RESTORED = "test_nexus_restored"


@pytest.fixture
def places(settings, tmp_path):
    """An installation with a company tree, keys and a ledger of its own."""
    settings.NEXUS_VAR = tmp_path / "var"
    settings.LEDGER_DIR = tmp_path / "ledger"
    settings.NEXUS_KEYS = tmp_path / "keys"
    settings.WORKSPACE_ROOT = tmp_path / "company"
    settings.DATABASE_URL = "postgresql://given"  # the programs of this machine or the wheel
    for folder in (settings.NEXUS_VAR, settings.NEXUS_KEYS, settings.WORKSPACE_ROOT):
        folder.mkdir()
    (settings.NEXUS_VAR / "secret_key").write_text("s" * 86)
    (settings.NEXUS_KEYS / "nexus.json").write_text('{"ceo": "nxs_secret"}')
    (settings.WORKSPACE_ROOT / "notes").mkdir()
    (settings.WORKSPACE_ROOT / "notes" / "plan.md").write_text("The plan.")
    return tmp_path


@pytest.fixture
def empty():
    """An empty database beside the test's own, and what reaches it."""
    given = connection.settings_dict
    owner = {"host": given["HOST"], "user": given["USER"], "dbname": "postgres"}
    with psycopg.connect(**owner, autocommit=True) as cluster:
        cluster.execute(f"DROP DATABASE IF EXISTS {RESTORED} WITH (FORCE)")
        cluster.execute(f"CREATE DATABASE {RESTORED}")
        yield {**owner, "dbname": RESTORED}
        cluster.execute(f"DROP DATABASE {RESTORED} WITH (FORCE)")


def unpack(path, places):
    with archives.unpacked(path, places):
        pass


def elsewhere(places, database):
    """The environment of another installation: its own folders, that database."""
    address = (
        f"postgresql://{database['user']}@/{database['dbname']}?host={quote(database['host'])}"
    )
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("NEXUS", "LEDGER", "DATABASE"))
    }
    folder = places / "elsewhere"
    own = {"NEXUS_VAR": folder, "LEDGER_DIR": folder / "ledger", "DATABASE_URL": address}
    return kept | {name: str(value) for name, value in own.items()}


def run_program(places, database, *words):
    """Run a command of another installation."""
    return subprocess.run(
        [sys.executable, "manage.py", *map(str, words)],
        cwd=django_settings.BASE_DIR,
        env=elsewhere(places, database),
        capture_output=True,
        text=True,
        check=False,
    )


def manage(places, database, *words):
    """The same in a copy of this process, which has imported everything."""
    said, problems = places / "said", places / "problems"

    def run():
        for number, path in ((1, said), (2, problems)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        os.environ.clear()
        os.environ |= elsewhere(places, database)
        del sys.modules["nexus_site.settings"]
        django_settings._wrapped = Settings("nexus_site.settings")
        del connections["default"]
        connections.settings = connections.configure_settings(None)
        return command.manage(["manage.py", *map(str, words)])

    connection.close()
    connection.close_pool()  # no two processes may speak on one connection
    status = status_of(fork(run), wait=True)
    return SimpleNamespace(returncode=status, stdout=said.read_text(), stderr=problems.read_text())


def copy_sealed(places, *, keys):
    """Back up a company whose events are sealed, as `places / "copy"`."""
    load_company("nexus")
    wait_until_ended()
    seal_events(now=timezone.now())
    back_up(places / "copy", keys=keys, now=timezone.now())


def has_statistics(database):
    """Whether PostgreSQL looked at what the tables hold."""
    with psycopg.connect(**database) as copy:
        query = "SELECT count(*) FROM pg_stats WHERE tablename = 'orgchart_organisation'"
        return copy.execute(query).fetchone()[0] > 0


class Work:
    """Agents that send mail until they are told to stop; what was acknowledged, in order."""

    def __init__(self, company):
        self.company, self.sent, self.enough = company, [], Signal()
        self.threads = [Thread(target=self._send) for _ in range(2)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        while len(self.sent) < 10:
            self.enough.wait(0.01)
        return self

    def __exit__(self, *_):
        self.enough.set()
        for thread in self.threads:
            thread.join()

    def _send(self):
        try:
            while not self.enough.is_set():
                answer = self.company.call(
                    "backend_worker",
                    "send_mail",
                    to="it_manager",
                    type="question",
                    subject="?",
                    body=".",
                )
                if answer.status == 200:
                    self.sent.append(answer.result["mail_id"])
        finally:
            connections.close_all()


class TestABackup:
    def test_taken_under_load_is_restored_whole(self, places, empty):
        company = load_company("nexus")
        company.key("backend_worker")
        folder, keys = places / "copy", places / "apart" / "keys.tar"
        keys.parent.mkdir()
        with Work(company) as work:
            seal_events(now=timezone.now())
            before = list(work.sent)
            back_up(folder, keys=keys, now=timezone.now())
        done = run_program(places, empty, "restore", folder, "--keys", keys)
        assert done.returncode == 0, done.stderr
        assert "Ledger: " in done.stdout
        with psycopg.connect(**empty) as copy:
            mails = {row[0] for row in copy.execute("SELECT id FROM mailroom_mail")}
            events = {
                row[0].removeprefix("mail:")
                for row in copy.execute(
                    "SELECT subject FROM ledger_event WHERE action = 'mail.delivered'"
                )
            }
        assert set(before) <= mails
        assert mails == events  # no effect without its event, no event without its effect
        assert mails <= set(work.sent)
        elsewhere = places / "elsewhere"
        assert (elsewhere / "company" / "notes" / "plan.md").read_text() == "The plan."
        assert json.loads((elsewhere / "keys" / "nexus.json").read_text())["ceo"] == "nxs_secret"
        assert (elsewhere / "secret_key").read_text() == "s" * 86
        assert manage(places, empty, "ledger", "seal").returncode == 0
        verdict = manage(places, empty, "ledger", "verify")
        assert verdict.returncode == 0, verdict.stderr
        assert "it reaches seal" in verdict.stdout
        again = manage(places, empty, "restore", folder)
        assert again.returncode == 1
        assert "restore into an empty one" in again.stderr
        assert "nothing is left to do" in again.stderr

    def test_restored_hours_later_is_verified(self, places, empty):
        """What waited for its seal when the backup was made is late for no reason of its own."""
        load_company("nexus")
        wait_until_ended()
        seal_events(now=timezone.now())
        then = timezone.now() - timedelta(hours=3)
        record(at=then)
        back_up(places / "copy", keys=places / "keys.tar", now=then)
        done = manage(places, empty, "restore", places / "copy", "--keys", places / "keys.tar")
        assert (done.returncode, "1 not yet" in done.stdout) == (0, True), done.stderr

    def test_whose_ledger_went_on_while_it_was_made_is_whole(self, places, empty, monkeypatch):
        """Its keys knew a later seal than its database: each restore called the copy wrong."""
        company = load_company("nexus")
        mail = {"to": "it_manager", "type": "info", "subject": "s", "body": "b"}
        wait_until_ended()
        seal_events(now=timezone.now())
        run = backup._run

        def run_and_go_on(*words):
            run(*words)
            company.call("backend_worker", "send_mail", **mail)
            wait_until_ended()
            seal_events(now=timezone.now())

        with monkeypatch.context() as patch:
            patch.setattr(backup, "_run", run_and_go_on)
            back_up(places / "copy", keys=places / "keys.tar", now=timezone.now())
        done = manage(places, empty, "restore", places / "copy", "--keys", places / "keys.tar")
        assert (done.returncode, "Ledger: OK 1 seals" in done.stdout) == (0, True), done.stdout
        assert manage(places, empty, "ledger", "verify").returncode == 0

    def test_older_than_the_last_seal_seen_says_how_far_it_reaches(self, places, empty):
        company = load_company("nexus")
        wait_until_ended()
        seal_events(now=timezone.now())
        folder, keys = places / "copy", places / "keys.tar"
        back_up(folder, keys=None, now=timezone.now())
        company.call("backend_worker", "read_inbox")
        company.call(
            "backend_worker", "send_mail", to="it_manager", type="info", subject="s", body="b"
        )
        wait_until_ended()
        seal_events(now=timezone.now())
        archives.pack(keys, backup._key_places())  # keys that have seen the later seal
        done = manage(places, empty, "restore", folder, "--keys", keys)
        assert done.returncode == 0, done.stderr
        assert "WRONG seal 2" in done.stdout
        assert "it reaches seal 1 of" in done.stdout
        assert manage(places, empty, "ledger", "verify").returncode == 1
        adopted = manage(places, empty, "ledger", "adopt", "--reason", "restored on purpose")
        assert adopted.returncode == 0, adopted.stderr
        assert manage(places, empty, "ledger", "verify").returncode == 0

    def test_whose_connection_ends_before_the_verdict_is_restored(self, places, empty):
        copy_sealed(places, keys=places / "keys.tar")
        where = f"{str(places / 'copy')!r}, keys=Path({str(places / 'keys.tar')!r})"
        ending = (
            "from pathlib import Path; from django.core.management import call_command;"
            "from django.db import connection; from nexus_site.management.commands import restore;"
            "end = 'SELECT pg_terminate_backend(pg_backend_pid())';"
            "restore.is_earlier = lambda _: connection.cursor().execute(end);"
            f"call_command('restore', {where})"
        )
        done = manage(places, empty, "shell", "--no-imports", "-c", ending)
        assert (done.returncode, "Traceback" in done.stderr) == (1, False)
        assert "restored, but not verified: terminating connection" in done.stderr
        assert manage(places, empty, "ledger", "verify").returncode == 0

    def test_without_the_keys_is_not_signed_anew(self, places, empty):
        copy_sealed(places, keys=None)
        done = manage(places, empty, "restore", places / "copy")
        assert done.returncode == 1
        assert "restored, but not verified" in done.stderr

    def test_holds_no_key(self, places):
        load_company("nexus")
        back_up(places / "copy", keys=None, now=timezone.now())
        held = b"".join(path.read_bytes() for path in (places / "copy").iterdir())
        assert b"nxs_secret" not in held
        assert {path.name for path in (places / "copy").iterdir()} == {
            "database.dump",
            "company.tar",
            "manifest.json",
        }

    def test_holds_no_session_of_a_person(self, places, empty):
        """Who has the copy would be signed in as them where it was taken."""
        Session.objects.create(session_key="k" * 32, session_data="", expire_date=timezone.now())
        copy_sealed(places, keys=places / "keys.tar")
        done = manage(places, empty, "restore", places / "copy", "--keys", places / "keys.tar")
        assert done.returncode == 0, done.stderr
        with psycopg.connect(**empty) as copy:
            assert copy.execute("SELECT count(*) FROM django_session").fetchone() == (0,)

    def test_names_the_public_keys_with_which_another_goes_on(self, places, empty):
        """The key and its folder are lost: without the public key nothing was ever sealed again."""
        copy_sealed(places, keys=None)
        done = manage(places, empty, "restore", places / "copy")
        assert "not trusted here" in done.stderr
        assert manage(places, empty, "ledger", "new-key").returncode == 0
        pinned = places / "elsewhere" / "ledger" / "ed25519.pub"
        lost = read_manifest(places / "copy").public_keys
        pinned.write_text("\n".join([*lost, *pinned.read_text().split()]))
        assert manage(places, empty, "ledger", "adopt", "--reason", "Lost.").returncode == 0
        with psycopg.connect(**empty) as copy:
            (newest,) = copy.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()
        wait_until_all_ended_before(newest)
        for words in (["seal"], ["verify"]):
            done = manage(places, empty, "ledger", *words)
            assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("OK 2 seals")

    def test_is_made_where_no_key_can_be_read(self, places, settings):
        settings.LEDGER_SIGNING_KEY = "no key"
        assert back_up(places / "copy", keys=None, now=timezone.now()).public_keys == []
        assert read_manifest(places / "copy").public_keys == []

    def test_is_restored_with_the_statistics_that_lists_need(self, places, empty):
        """PostgreSQL's own work looks at no table of one row."""
        copy_sealed(places, keys=places / "keys.tar")
        done = manage(places, empty, "restore", places / "copy", "--keys", places / "keys.tar")
        assert done.returncode == 0, done.stderr
        assert has_statistics(empty)

    def test_has_the_time_of_the_database(self, places, monkeypatch):
        """By the time of a machine that is ahead, what waits for a seal would be called late."""
        ahead = timezone.now() + timedelta(hours=2)
        monkeypatch.setattr(timezone, "now", lambda: ahead)
        call_command("backup", places / "copy", stdout=StringIO())
        made = datetime.fromisoformat(read_manifest(places / "copy").at)
        assert timedelta(hours=1) < ahead - made < timedelta(hours=3)

    def test_is_private(self, places):
        back_up(places / "copy", keys=places / "keys.tar", now=timezone.now())
        copied = [places / "copy", *(places / "copy").iterdir()]
        assert len(copied) == 4
        assert [each.stat().st_mode & 0o077 for each in copied] == [0, 0, 0, 0]
        assert (places / "keys.tar").stat().st_mode & 0o077 == 0

    def test_waits_for_another_into_the_same_folder(self, places, monkeypatch):
        """Both wrote into one folder, and one said that all was well of a copy that was not."""
        both, run, answers = Barrier(2), backup._run, []

        def meet(*words):
            run(*words)
            with suppress(BrokenBarrierError):
                both.wait(2)  # where none waits for the other, both are here

        def back_up_once():
            try:
                answers.append(back_up(places / "copy", keys=None, now=timezone.now()).format)
            except (CannotCopy, OSError) as problem:
                answers.append(str(problem))
            finally:
                connections.close_all()

        monkeypatch.setattr(backup, "_run", meet)
        threads = [Thread(target=back_up_once) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        refused = f"{places / 'copy'} exists: name a folder that does not"
        assert set(answers) == {backup.FORMAT, refused}
        assert read_manifest(places / "copy").format == backup.FORMAT


class TestTwoInstallations:
    """Their backups may have one name; each has a lock of its own under NEXUS_VAR."""

    def test_never_write_one_folder(self, places, monkeypatch, settings):
        run, refused = backup._run, []

        def meet(*words):
            monkeypatch.setattr(backup, "_run", run)
            settings.NEXUS_VAR = places / "other"
            with pytest.raises(CannotCopy, match="wait until it ends, or name another") as problem:
                back_up(places / "copy", keys=None, now=timezone.now())
            refused.append(problem)
            run(*words)

        monkeypatch.setattr(backup, "_run", meet)
        made = back_up(places / "copy", keys=None, now=timezone.now())
        assert len(refused) == 1
        assert read_manifest(places / "copy") == made

    def test_never_write_where_the_manifest_was_removed(self, places, monkeypatch):
        """By the other one, which took this one's empty folder for one of a killed backup."""
        flock = backup.fcntl.flock

        def lose(file, how):
            flock(file, how)
            (places / "copy.part" / "manifest.json").unlink(missing_ok=True)

        with monkeypatch.context() as losing:
            losing.setattr(backup.fcntl, "flock", lose)
            with pytest.raises(CannotCopy, match="another backup writes"):
                back_up(places / "copy", keys=None, now=timezone.now())
        back_up(places / "copy", keys=None, now=timezone.now())  # the next one goes on


class TestAKilledBackup:
    STEPS = ("_run", "pack", "digest_of", "asdict", "os.fsync", "keep_names", "Path.rename")

    @pytest.mark.parametrize("step", STEPS)
    def test_is_no_backup_and_gives_way_to_the_next(self, places, monkeypatch, step):
        with monkeypatch.context() as killed:

            def kill(*_):
                raise KeyboardInterrupt

            killed.setattr(f"nexus_site.run.backup.{step}", kill)
            killed.setattr(backup.shutil, "rmtree", lambda *_, **__: None)  # it ended at once
            with pytest.raises(KeyboardInterrupt):
                back_up(places / "copy", keys=None, now=timezone.now())
        assert (places / "copy.part").exists()
        with pytest.raises(CannotCopy):
            read_manifest(places / "copy")
        made = back_up(places / "copy", keys=None, now=timezone.now())
        assert read_manifest(places / "copy") == made
        assert not (places / "copy.part").exists()

    def test_of_a_machine_without_power_has_its_name_only_if_it_is_whole(self, places, monkeypatch):
        kept, fsync, rename = [], os.fsync, Path.rename

        def note_fsync(descriptor):
            kept.append(Path(f"/proc/self/fd/{descriptor}").readlink())
            fsync(descriptor)

        def note_rename(path, to):
            kept.append(to)
            return rename(path, to)

        monkeypatch.setattr(os, "fsync", note_fsync)
        monkeypatch.setattr(Path, "rename", note_rename)
        back_up(places / "copy", keys=None, now=timezone.now())
        part = places / "copy.part"
        whole = [part / "manifest.json", part, places / "copy", places]
        assert [path for path in kept if path in whole] == whole


class TestARestore:
    def test_that_fails_leaves_nothing_behind(self, places, empty):
        """As where the disk is full: it can be done again, and nobody serves half of it."""
        back_up(places / "copy", keys=places / "keys.tar", now=timezone.now())
        (places / "copy" / "database.dump").write_bytes(b"PGDMP no dump")
        says = json.loads((places / "copy" / "manifest.json").read_text())
        says["files"]["database.dump"] = backup.digest_of(places / "copy" / "database.dump")
        (places / "copy" / "manifest.json").write_text(json.dumps(says))
        done = manage(places, empty, "restore", places / "copy", "--keys", places / "keys.tar")
        assert (done.returncode, "pg_restore failed" in done.stderr) == (1, True)
        left = {path.name for path in (places / "elsewhere").iterdir()}
        assert not {
            each for each in left if "company" in each or "keys" in each or "ledger" in each
        }

    def test_that_fails_leaves_the_secret_that_is_in_use(self, places, empty):
        back_up(places / "copy", keys=None, now=timezone.now())
        secret = places / "elsewhere" / "secret_key"
        secret.parent.mkdir()
        secret.write_text("u" * 86)
        done = manage(places, empty, "restore", places / "copy", "--keys", places / "mistyped.tar")
        assert (done.returncode, "mistyped.tar" in done.stderr) == (1, True)
        assert secret.read_text() == "u" * 86

    def test_of_a_damaged_dump_leaves_no_mark(self, places, empty):
        """What PostgreSQL quotes of it is no text: nothing would start until it is restored."""
        copy_sealed(places, keys=None)
        quoting = places / "pg_restore"
        quoting.write_text("#!/bin/sh\nprintf 'no table \\363' >&2\nexit 1\n")
        quoting.chmod(0o755)
        damaged = (
            "from pathlib import Path; from nexus_site.run import backup;"
            "found, mark = backup._program, backup.settings.NEXUS_VAR / backup.BEGUN;"
            f"backup._program = lambda name: {str(quoting)!r} if mark.exists() else found(name);"
            f"backup.restore(Path({str(places / 'copy')!r}), keys=None)"
        )
        done = manage(places, empty, "shell", "--no-imports", "-c", damaged)
        assert "CannotCopy: pg_restore failed: no table" in done.stderr
        assert not (places / "elsewhere" / backup.BEGUN).exists()

    def test_of_a_machine_without_power_goes_on_until_its_files_are_on_the_disk(
        self, places, empty
    ):
        copy_sealed(places, keys=None)
        noting = (
            "import os; from pathlib import Path; from nexus_site.run import backup;"
            "mark, tree = backup.settings.NEXUS_VAR / backup.BEGUN, backup.settings.WORKSPACE_ROOT;"
            "os.sync = lambda: print('brought to the disk', mark.exists(), tree.exists());"
            f"backup.restore(Path({str(places / 'copy')!r}), keys=None)"
        )
        done = manage(places, empty, "shell", "--no-imports", "-c", noting)
        assert "brought to the disk True True" in done.stdout
        assert not (places / "elsewhere" / backup.BEGUN).exists()

    def test_waits_for_a_start_that_founds_a_company(self, places, empty):
        """It would fill the tables that are founded meanwhile, or leave the mark of a begun one."""
        back_up(places / "copy", keys=None, now=timezone.now())

        def found():
            with psycopg.connect(**empty) as starting:
                starting.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
                is_held.set()
                is_held_for.wait(4)
                starting.execute("CREATE TABLE founded ()")

        is_held, is_held_for = Signal(), Signal()
        start = Thread(target=found)
        start.start()
        assert is_held.wait(5)
        done = manage(places, empty, "restore", places / "copy")
        is_held_for.set()
        start.join()
        assert "restore into an empty one" in done.stderr
        assert not (places / "elsewhere" / backup.BEGUN).exists()

    def test_without_its_company_tree_does_not_touch_the_database(self, places, empty):
        load_company("nexus")
        back_up(places / "copy", keys=None, now=timezone.now())
        (places / "copy" / "company.tar").write_bytes(b"no archive")
        says = json.loads((places / "copy" / "manifest.json").read_text())
        says["files"]["company.tar"] = backup.digest_of(places / "copy" / "company.tar")
        (places / "copy" / "manifest.json").write_text(json.dumps(says))
        done = manage(places, empty, "restore", places / "copy")
        assert (done.returncode, "Traceback" in done.stderr) == (1, False)
        with psycopg.connect(**empty) as copy:
            assert (
                copy.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").fetchall() == []
            )


class TestAKilledRestore:
    """Killed where the database was filled and its files were not there yet."""

    @pytest.fixture
    def killed(self, places, empty):
        copy_sealed(places, keys=places / "keys.tar")

        def kill_at(step):
            where = f"Path({str(places / 'copy')!r}), keys=Path({str(places / 'keys.tar')!r})"
            dying = (
                "import os, sys; from pathlib import Path; from django.db import connection;"
                "from nexus_site.run import archives, backup, roles;"
                f"{step} = lambda *_: os.kill(os.getpid(), 9);"
                f"backup.restore({where})"
            )
            assert manage(places, empty, "shell", "--no-imports", "-c", dying).returncode == -9

        return kill_at

    @pytest.mark.parametrize("step", ["Path.rename", "roles.grant_serving"])
    def test_is_finished_by_the_same_command(self, places, empty, killed, step):
        killed(step)
        done = manage(places, empty, "restore", places / "copy", "--keys", places / "keys.tar")
        assert done.returncode == 0, done.stderr
        assert has_statistics(empty)
        elsewhere = places / "elsewhere"
        assert (elsewhere / "company" / "notes" / "plan.md").read_text() == "The plan."
        assert (elsewhere / "keys" / "nexus.json").exists()
        assert (elsewhere / "secret_key").read_text() == "s" * 86
        again = manage(places, empty, "restore", places / "copy")
        assert "restore into an empty one" in again.stderr

    def test_is_finished_where_the_connection_was_lost_at_the_commit(self, places, empty):
        """The program of PostgreSQL fails then, and nobody knows whether the tables are there."""
        copy_sealed(places, keys=places / "keys.tar")
        where = f"Path({str(places / 'copy')!r}), keys=Path({str(places / 'keys.tar')!r})"
        losing = (
            "from pathlib import Path; from nexus_site.run import backup\n"
            "run = backup._run\n"
            "def lose(*words):\n"
            "    run(*words)\n"
            "    raise backup.CannotCopy('server closed the connection unexpectedly')\n"
            f"backup._run = lose; backup.restore({where})"
        )
        lost = manage(places, empty, "shell", "--no-imports", "-c", losing)
        assert "closed the connection" in lost.stderr
        done = manage(places, empty, "restore", places / "copy", "--keys", places / "keys.tar")
        assert done.returncode == 0, done.stderr
        plan = places / "elsewhere" / "company" / "notes" / "plan.md"
        assert plan.read_text() == "The plan."

    def test_lets_nothing_serve_a_database_without_its_files(self, places, killed, settings):
        killed("Path.rename")
        settings.NEXUS_VAR, said = places / "elsewhere", StringIO()
        assert up.Command(stderr=said).begin() == 1
        assert "run the same `manage.py restore` again" in said.getvalue()
        assert "run the same `manage.py restore` again" in safety.problem_of_start()

    def test_lets_no_backup_be_made_of_half_an_installation(self, places, empty, killed):
        """It would call itself whole, without the company tree."""
        killed("Path.rename")
        refused = manage(places, empty, "backup", places / "half")
        assert "run the same `manage.py restore` again" in refused.stderr
        assert not (places / "half").exists()

    def test_lets_no_start_go_on_that_waited_for_it(self, places, settings, monkeypatch):
        @contextmanager
        def waiting():
            (settings.NEXUS_VAR / backup.BEGUN).write_text("x")
            yield

        said, founded = StringIO(), []
        monkeypatch.setattr(up, "alone_on_database", waiting)
        monkeypatch.setattr(roles, "become_owner", lambda: None)
        monkeypatch.setattr(first_run, "migrate", lambda: founded.append(1))
        assert (up.Command(stderr=said, stdout=StringIO()).begin(), founded) == (1, [])
        assert "run the same `manage.py restore` again" in said.getvalue()

    def test_is_not_finished_by_another_backup(self, places, empty, killed):
        killed("Path.rename")
        back_up(places / "other", keys=None, now=timezone.now())
        refused = manage(places, empty, "restore", places / "other")
        assert "restore into an empty one" in refused.stderr
        assert "nothing is left to do" not in refused.stderr


class TestRefused:
    def test_are_keys_of_a_backup_that_was_killed(self, places):
        (places / "keys.tar").touch()
        with pytest.raises(CannotCopy, match="remove it if the backup"):
            back_up(places / "copy", keys=places / "keys.tar", now=timezone.now())

    def test_is_a_company_tree_whose_disk_is_missing(self, places, settings):
        know_root()
        settings.WORKSPACE_ROOT.rename(places / "unmounted")
        settings.WORKSPACE_ROOT.mkdir()
        with pytest.raises(OSError, match="Is its disk mounted"):
            back_up(places / "copy", keys=None, now=timezone.now())
        assert not (places / "copy").exists()

    def test_is_a_folder_that_exists(self, places):
        with pytest.raises(CannotCopy, match="exists"):
            back_up(places, keys=None, now=timezone.now())

    def test_are_keys_beside_what_they_protect(self, places):
        with pytest.raises(CannotCopy, match="apart"):
            back_up(places / "copy", keys=places / "copy" / "keys", now=timezone.now())

    @pytest.mark.parametrize("name", ["database.dump", "company.tar", "manifest.json"])
    def test_is_a_copy_that_was_changed(self, places, name):
        back_up(places / "copy", keys=None, now=timezone.now())
        path = places / "copy" / name
        path.write_bytes(path.read_bytes()[:-7] + b"changed")
        with pytest.raises(CannotCopy):
            read_manifest(places / "copy")

    @pytest.mark.parametrize("name", [".", "manifest.json", "database.dump", "company.tar"])
    @pytest.mark.parametrize("mode", [0o020, 0o002])
    def test_is_a_copy_that_others_can_write_to(self, places, name, mode):
        back_up(places / "copy", keys=None, now=timezone.now())
        path = places / "copy" / name
        path.chmod(path.stat().st_mode | mode)
        with pytest.raises(CannotCopy, match="if you trust it, make it your own: "):
            read_manifest(places / "copy")
        path.chmod(path.stat().st_mode & ~mode)
        assert read_manifest(places / "copy")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
    @pytest.mark.parametrize("name", ["", "database.dump"])
    def test_is_a_copy_of_another_user(self, places, name):
        """Who owns a file can always write to it."""
        back_up(places / "copy", keys=None, now=timezone.now())
        os.chown(places / "copy" / name, 65534, -1)
        with pytest.raises(CannotCopy, match="other users can write"):
            read_manifest(places / "copy")

    @pytest.mark.parametrize(
        "odd",
        [
            {"files": []},
            {"files": None},
            {"files": {"database.dump": 5}},
            {"seal": 5},
            {"seal": []},
            {"seal": ["one", "two"]},
            {"seal": [1, "00", 2]},
            {"at": None},
            {"format": "new"},
            {"format": 2},
            [],
            "[" * 100_000,
            None,
        ],
    )
    def test_is_a_manifest_that_no_backup_wrote(self, places, odd):
        back_up(places / "copy", keys=None, now=timezone.now())
        path = places / "copy" / "manifest.json"
        if isinstance(odd, dict):
            odd = {**json.loads(path.read_text()), **odd}
        path.write_text(odd if isinstance(odd, str) else json.dumps(odd))
        with pytest.raises(CannotCopy, match=r"is no backup|has format 2"):
            read_manifest(places / "copy")

    def test_is_a_manifest_that_is_no_file(self, places):
        back_up(places / "copy", keys=None, now=timezone.now())
        (places / "copy" / "manifest.json").unlink()
        os.mkfifo(places / "copy" / "manifest.json")
        with pytest.raises(CannotCopy, match=r"manifest\.json is no file"):
            read_manifest(places / "copy")

    def test_is_the_database_of_another_program(self, places, empty):
        back_up(places / "copy", keys=None, now=timezone.now())
        with psycopg.connect(**empty) as other:
            other.execute("CREATE TABLE django_migrations (id int, app text, name text, at text)")
            other.execute("INSERT INTO django_migrations VALUES (1, 'shop', '0001_initial', '')")
        dump, owner = places / "copy" / "database.dump", (empty["host"], empty["user"])
        program = [backup._program("pg_dump"), "--format=custom", f"--file={dump}", RESTORED]
        subprocess.run([*program, f"--host={owner[0]}", f"--username={owner[1]}"], check=True)
        with psycopg.connect(**empty) as other:
            other.execute("DROP TABLE django_migrations")
        says = json.loads((places / "copy" / "manifest.json").read_text())
        says["files"]["database.dump"] = backup.digest_of(dump)
        (places / "copy" / "manifest.json").write_text(json.dumps(says))
        self.is_refused(places, empty, "is no database of NEXUS")

    def test_is_a_copy_of_a_later_version(self, places, empty):
        """Its rows would be served by a program that does not know all of their columns."""
        tomorrow = ("mailroom", "0999_of_tomorrow")
        recorder = MigrationRecorder(connection)
        recorder.record_applied(*tomorrow)
        try:
            back_up(places / "copy", keys=None, now=timezone.now())
            with pytest.raises(first_run.DatabaseOfLaterVersion, match=tomorrow[1]):
                first_run.migrate()
        finally:
            recorder.record_unapplied(*tomorrow)
        self.is_refused(places, empty, "a later version of NEXUS, which has mailroom 0999_of_tom")

    def is_refused(self, places, empty, why):
        done = manage(places, empty, "restore", places / "copy")
        assert (done.returncode, done.stderr.startswith("CommandError: ")) == (1, True)
        assert why in done.stderr
        with psycopg.connect(**empty) as copy:
            assert not copy.execute(
                "SELECT 1 FROM pg_tables WHERE schemaname = 'public'"
            ).fetchone()

    def test_is_a_company_tree_with_files(self, places, empty):
        back_up(places / "copy", keys=None, now=timezone.now())
        tree = places / "elsewhere" / "company"
        tree.mkdir(parents=True)
        (tree / "plan.md").write_text("Another plan.")
        done = manage(places, empty, "restore", places / "copy")
        assert done.returncode == 1
        assert "is not empty" in done.stderr
        assert [path.name for path in tree.iterdir()] == ["plan.md"]
        with psycopg.connect(**empty) as database:
            assert not database.execute(
                "SELECT 1 FROM pg_tables WHERE schemaname = 'public'"
            ).fetchall()

    def test_is_a_link_out_of_the_tree(self, places):
        """What an archive made by others would put elsewhere; the rest is restored."""
        tree = django_settings.WORKSPACE_ROOT
        (tree / "out").symlink_to("/etc/passwd")
        archives.pack(places / "tree.tar", {"company": tree})
        unpack(places / "tree.tar", {"company": places / "new"})
        assert not (places / "new" / "out").is_symlink()
        assert (places / "new" / "notes" / "plan.md").exists()

    @pytest.mark.parametrize("before", ["pg_dump: detail: Query was: ", "Command was: "])
    def test_says_why_without_the_sql_that_hides_it(self, places, monkeypatch, before):
        program = places / "pg_dump"
        program.write_text(
            "#!/bin/sh\necho 'pg_dump: error: query failed: FATAL:  the server ends this' >&2\n"
            f"echo '{before}SELECT {'1, ' * 1000}1' >&2\nexit 1\n"
        )
        program.chmod(0o755)
        monkeypatch.setattr(backup, "_program", lambda name: str(program))
        with pytest.raises(CannotCopy) as refused:
            back_up(places / "copy", keys=None, now=timezone.now())
        why = "pg_dump: error: query failed: FATAL:  the server ends this"
        assert str(refused.value) == f"pg_dump failed: {why}"

    def test_whose_connection_the_server_ends_says_so_in_one_line(self, places, empty):
        """And leaves nothing behind."""
        ending = (
            "from pathlib import Path; from django.core.management import call_command;"
            "from django.db import connection; from nexus_site.run import backup;"
            "end = 'SELECT pg_terminate_backend(pg_backend_pid())';"
            "backup.last_seal = lambda: connection.cursor().execute(end);"
            f"call_command('backup', {str(places / 'copy')!r})"
        )
        done = manage(places, empty, "shell", "--no-imports", "-c", ending)
        assert done.returncode == 1
        assert "The database cannot be used: terminating connection" in done.stderr
        assert "Traceback" not in done.stderr
        assert not list(places.glob("copy*"))

    def test_leaves_nothing_half_done(self, places, monkeypatch):
        monkeypatch.setattr(backup, "_program", lambda name: "false")
        with pytest.raises(CannotCopy, match="pg_dump failed"):
            back_up(places / "copy", keys=None, now=timezone.now())
        assert not list(places.glob("copy*"))


def test_a_database_without_tables_is_told_in_one_line(places, empty):
    done = manage(places, empty, "ledger", "verify")
    assert done.returncode == 1
    assert done.stderr.startswith("The database lacks tables of this version: start NEXUS once")
    assert done.stderr.count("\n") == 1


def test_what_was_closed_to_others_is_closed_after_a_restore(places):
    """Homes of agents, the repository and the keys: who else is on the machine enters none."""
    closed = {"company/home": 0o700, "company/notes": 0o750, "keys": 0o700, "company": 0o750}
    (places / "company" / "home").mkdir()
    for name, mode in closed.items():
        (places / name).chmod(mode)
    (places / "company" / "notes" / "plan.md").chmod(0o640)
    archive, fresh = places / "all.tar", places / "fresh"
    archives.pack(archive, {"company": places / "company", "keys": places / "keys"})
    before = os.umask(0)
    try:
        unpack(archive, {"company": fresh / "company", "keys": fresh / "keys"})
    finally:
        os.umask(before)
    modes = {name: (fresh / name).stat().st_mode & 0o777 for name in closed}
    assert modes == closed
    assert (fresh / "company" / "notes" / "plan.md").stat().st_mode & 0o777 == 0o640


def test_what_a_backup_says_moves_no_cursor(settings, tmp_path):
    """Its programs quote names that a stranger may have written."""
    settings.NEXUS_VAR = tmp_path
    with pytest.raises(CommandError) as refused:
        call_command("restore", str(tmp_path / "\x1b[2J"))
    assert "[2J is no backup" in str(refused.value)
    assert "\x1b" not in str(refused.value)


def test_a_killed_restore_goes_on_nowhere(tmp_path):
    """`pg_restore` alone would fill the database, and the files would not be there."""
    program = tmp_path / "pg_restore"
    program.write_text(
        f"#!/bin/sh\necho $$ > {tmp_path}/new\nmv {tmp_path}/new {tmp_path}/pid\nexec sleep 600\n"
    )
    program.chmod(0o755)
    restoring = (
        "import pathlib, sys, django; django.setup(); from nexus_site.run import backup;"
        f"backup._program = lambda name: {str(program)!r};"
        "backup._run('pg_restore', [], pathlib.Path(sys.argv[1]))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", restoring, str(tmp_path)],
        cwd=django_settings.BASE_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "nexus_site.settings"},
    ) as process:
        wait_until((tmp_path / "pid").exists)
        process.kill()
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not lives(pid))


class TestTheProgramsOfPostgres:
    """A copy that no program can put back is none: `pg_restore` 17 fails before version 17."""

    @pytest.fixture
    def machine(self, settings, tmp_path, monkeypatch):
        """The program chosen on a machine with this server, a program of its own and a wheel."""
        settings.DATABASE_URL = "postgresql://elsewhere"

        def choose(*, server, own, wheel):
            def put(folder, version):
                folder.mkdir()
                program = folder / "pg_restore"
                program.write_text(f"#!/bin/sh\necho 'pg_restore (PostgreSQL) {version}.2'\n")
                program.chmod(0o755)
                return folder

            places = [put(tmp_path / f"wheel{version}", version) for version in wheel]
            found = put(tmp_path / "own", own) / "pg_restore" if own else None
            monkeypatch.setattr(backup.shutil, "which", lambda _: found and str(found))
            monkeypatch.setattr(backup, "all_binaries", lambda: places)
            cursor = nullcontext(
                SimpleNamespace(execute=print, fetchone=lambda: (f"{server * 10_000 + 2}",))
            )
            monkeypatch.setattr(backup, "connection", SimpleNamespace(cursor=lambda: cursor))
            return Path(backup._program("pg_restore")).parent.name

        return choose

    @pytest.mark.parametrize(
        ("server", "own", "wheel", "chosen"),
        [
            (15, 15, (16, 18), "own"),
            (16, 15, (16, 18), "wheel16"),
            (17, 15, (16, 18), "wheel18"),
            (18, 18, (16,), "own"),
            (17, 18, (17,), "wheel17"),
            (19, 19, (16, 18), "own"),
        ],
    )
    def test_are_of_the_servers_version_or_the_next(self, machine, server, own, wheel, chosen):
        assert machine(server=server, own=own, wheel=wheel) == chosen

    @pytest.mark.parametrize(
        ("server", "own", "wheel"),
        [(16, 15, (18,)), (15, None, (16, 18)), (19, 15, (16, 18)), (16, 17, ())],
    )
    def test_are_asked_for_where_they_could_not_restore(self, machine, server, own, wheel):
        with pytest.raises(CannotCopy, match=f"is PostgreSQL {server}: install its"):
            machine(server=server, own=own, wheel=wheel)
