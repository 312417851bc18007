"""What the first run makes, and that no later run makes it again."""

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
from contextlib import contextmanager
from urllib.parse import quote

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import connection
from django.utils import timezone

from ledger import keys as ledger_keys
from ledger.keys import HEAD
from nexus_site.run import first_run
from nexus_site.run.alone import LOCK, WAITS, alone_on_database
from orgchart.keys import digest_of
from orgchart.models import Agent, ApiKey, Organisation
from tests.patience import wait_until
from tests.rows import do_once
from workspace.git import importing

PACKS = settings.BASE_DIR / "packs"
NOW = timezone.now()

pytestmark = pytest.mark.django_db


@pytest.fixture
def founded():
    return do_once("founded", lambda: first_run.load_missing_packs(packs=PACKS, now=NOW))


def issue(tmp_path):
    return first_run.issue_missing_keys(folder=tmp_path / "keys", now=NOW)


def keys_of(tmp_path, organisation="nexus"):
    return json.loads((tmp_path / "keys" / f"{organisation}.json").read_text())


class TestLoadMissingPacks:
    def test_founds_the_four_organisations(self, founded):
        assert founded == ["constitution", "dev-team", "nexus", "soloqueue"]
        assert Organisation.objects.count() == 4

    def test_loads_nothing_twice_and_keeps_live_edits(self, founded):
        Organisation.objects.filter(slug="nexus").update(name="Edited")
        assert first_run.load_missing_packs(packs=PACKS, now=NOW) == []
        assert Organisation.objects.get(slug="nexus").name == "Edited"


class TestMissingRepositories:
    def test_are_no_reason_not_to_start_where_their_disk_is_full(
        self, founded, monkeypatch, tmp_path, settings
    ):
        settings.WORKSPACE_ROOT = tmp_path / "company"

        def full(*_, **__):
            raise OSError(errno.EROFS, "Read-only file system")

        with monkeypatch.context() as patched:
            patched.setattr(importing.Path, "mkdir", full)
            assert first_run.create_missing_repositories(now=NOW) == []
        assert first_run.create_missing_repositories(now=NOW)


class TestMigrate:
    def test_has_nothing_to_do_where_all_is_there(self):
        assert not first_run.migrate()

    def test_brings_rights_into_line_that_a_killed_one_left(self):
        board = Group.objects.get(name="Board")
        before = set(board.permissions.all())
        observer = Group.objects.get(name="Observer")
        observer.permissions.add(*before)
        board.permissions.clear()
        assert first_run.migrate()
        assert set(board.permissions.all()) == before
        assert not first_run.migrate()

    def test_makes_groups_that_a_killed_one_did_not_make(self):
        Group.objects.all().delete()
        assert first_run.migrate()
        assert Group.objects.filter(name__in=first_run.PEOPLE.values()).count() == 4


@contextmanager
def empty_database(options=""):
    """The address of an empty database beside the test's own, and a connection to it."""
    given = connection.settings_dict
    name, place = f"{given['NAME']}_fresh", quote(given["HOST"])
    owner = {"host": given["HOST"], "user": given["USER"], "autocommit": True}
    with psycopg.connect(**owner, dbname="postgres") as cluster:
        cluster.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        cluster.execute(f"CREATE DATABASE {name} {options}")
        with psycopg.connect(**owner, dbname=name) as made:
            yield f"postgresql://{given['USER']}@/{name}?host={place}", made
        cluster.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def fresh():
    """An empty database as the product makes its own."""
    with empty_database() as made:
        yield made


def begin(address, folder):
    """Begin a start of NEXUS on a database."""
    words = "from nexus_site.management.commands.up import Command; exit(Command().begin())"
    return subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", words],
        cwd=settings.BASE_DIR,
        env=os.environ | {"DATABASE_URL": address, "NEXUS_VAR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_keep_every_text_is_refused(tmp_path, encoding):
    options = f"ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
    with empty_database(options) as (address, database):
        started = begin(address, tmp_path)
        assert started.returncode == 1
        assert f"keeps texts as {encoding}" in started.stderr
        assert database.execute("SELECT to_regclass('auth_user')").fetchone() == (None,)


class TestADatabaseThatIsGone:
    def test_is_not_replaced_by_an_empty_one(self, fresh, tmp_path):
        """As where its disk was not mounted: the agents' keys would be replaced, too."""
        address, database = fresh
        ledger = tmp_path / "ledger"
        ledger.mkdir()
        (ledger / HEAD).write_text('{"number": 8, "digest": "00"}', encoding="ascii")
        started = begin(address, tmp_path)
        assert started.returncode == 1
        assert "The database is empty" in started.stderr
        assert database.execute("SELECT to_regclass('auth_user')").fetchone() == (None,)


class TestAKilledMigrate:
    def test_leaves_no_tables_without_the_row_that_says_so(self, fresh):
        """The next start would make them again, fail, and fail at each start after it."""
        address, database = fresh
        dying = (
            "import os; from django.core.management import call_command\n"
            "from django.db.migrations.recorder import MigrationRecorder as Recorder\n"
            "record = Recorder.record_applied\n"
            "def kill(self, app, name):\n"
            "    os.kill(os.getpid(), 9) if app == 'auth' else record(self, app, name)\n"
            "Recorder.record_applied = kill\n"
            "call_command('migrate', 'auth', '0001', verbosity=0)"
        )
        killed = subprocess.run(
            [sys.executable, "manage.py", "shell", "--no-imports", "-c", dying],
            cwd=settings.BASE_DIR,
            env=os.environ | {"DATABASE_URL": address},
            check=False,
        )
        assert killed.returncode == -9
        query = "SELECT to_regclass('django_content_type'), to_regclass('auth_user')"
        assert database.execute(query).fetchone() == ("django_content_type", None)


class TestTwoAtOnce:
    """As of two machines that start on one database after an upgrade (Spec: clocks 16)."""

    BEGIN = "from nexus_site.management.commands.up import Command; exit(Command().begin())"
    MIGRATE, START = ["migrate", "auth", "--verbosity=0"], ["shell", "--no-imports", "-c", BEGIN]
    TABLES = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    OTHERS = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> %s"
    )

    @pytest.fixture
    def said(self, tmp_path):
        """The file that keeps what the second one says of its trouble."""
        return tmp_path / "said"

    @pytest.fixture
    def second(self, fresh, said, tmp_path):
        """Start a command that finds another one at work; it has connected, and lives."""
        address, database = fresh
        database.execute(f"SELECT pg_advisory_lock({LOCK})")
        started = []

        def start(words):
            with said.open("w") as errors:
                started.append(
                    subprocess.Popen(
                        [sys.executable, "manage.py", *words],
                        cwd=settings.BASE_DIR,
                        env=os.environ | {"DATABASE_URL": address, "NEXUS_VAR": str(tmp_path)},
                        stderr=errors,
                    )
                )
            ours = [database.info.backend_pid]
            wait_until(lambda: database.execute(self.OTHERS, ours).fetchone()[0])
            return started[0]

        yield start
        for each in started:
            each.kill()
            each.wait()

    @pytest.mark.parametrize("words", [MIGRATE, START])
    def test_one_waits_for_the_other(self, fresh, second, words):
        with pytest.raises(subprocess.TimeoutExpired):
            second(words).wait(2)
        assert fresh[1].execute(self.TABLES).fetchone() == (0,)

    def test_one_goes_on_when_the_other_has_ended(self, fresh, second):
        waiting = second(self.MIGRATE)
        fresh[1].execute(f"SELECT pg_advisory_unlock({LOCK})")
        assert waiting.wait(60) == 0
        assert fresh[1].execute(self.TABLES).fetchone()[0]

    def test_one_says_why_it_waits(self, fresh, second, said):
        waiting = second(self.MIGRATE)
        wait_until(lambda: said.read_text() == WAITS)
        fresh[1].execute(f"SELECT pg_advisory_unlock({LOCK})")
        assert waiting.wait(60) == 0
        assert said.read_text() == WAITS

    def test_holds_the_lock_in_a_transaction(self):
        """A proxy that pools by transaction would keep a session's lock after its process."""
        holder = f"""
            SELECT state FROM pg_stat_activity JOIN pg_locks USING (pid)
            WHERE locktype = 'advisory' AND (classid::bigint << 32) + objid::bigint = {LOCK}
        """
        with alone_on_database(), alone_on_database(), connection.cursor() as cursor:
            cursor.execute(holder)
            assert cursor.fetchall() == [("idle in transaction",)]
        with connection.cursor() as cursor:
            cursor.execute(holder)
            assert cursor.fetchall() == []

    def test_hides_no_error_of_the_driver(self):
        with pytest.raises(psycopg.OperationalError), alone_on_database():
            raise psycopg.OperationalError


class TestTheCommandMigrate:
    @pytest.fixture
    def serving(self, fresh):
        """The name of a role that may create nothing in the empty database."""
        fresh[1].execute("CREATE ROLE plain_serving LOGIN")
        yield "plain_serving"
        fresh[1].execute("DROP ROLE plain_serving")

    def test_is_done_by_the_owner(self, fresh, serving, tmp_path):
        """At the command line, too: back to an earlier version as docs/production.md says."""
        address, database = fresh
        place = address.partition("@")[2]
        migrated = subprocess.run(
            [sys.executable, "manage.py", "migrate", "contenttypes", "--verbosity=0"],
            cwd=settings.BASE_DIR,
            env=os.environ
            | {
                "DATABASE_URL": f"postgresql://{serving}@{place}",
                "DATABASE_OWNER_URL": address,
                "NEXUS_VAR": str(tmp_path),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert migrated.returncode == 0, migrated.stderr
        assert database.execute("SELECT to_regclass('django_content_type')").fetchone()[0]


class TestIssueMissingKeys:
    def test_gives_every_agent_one_that_only_the_owner_reads(self, founded, tmp_path):
        assert len(issue(tmp_path)) == 4
        keys = keys_of(tmp_path)
        assert set(keys) == set(
            Agent.objects.filter(organisation__slug="nexus").values_list("handle", flat=True)
        )
        stored = {bytes(digest) for digest in ApiKey.objects.values_list("digest", flat=True)}
        assert all(digest_of(key) in stored for key in keys.values())
        assert stat.S_IMODE((tmp_path / "keys" / "nexus.json").stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700

    def test_issues_nothing_twice(self, founded, tmp_path):
        issue(tmp_path)
        before = keys_of(tmp_path)
        assert issue(tmp_path) == []
        assert keys_of(tmp_path) == before
        assert ApiKey.objects.count() == Agent.objects.count()

    def test_leaves_a_revoked_key_revoked(self, founded, tmp_path):
        issue(tmp_path)
        ApiKey.objects.update(revoked_at=NOW, revoked_by="human:board")
        assert issue(tmp_path) == []

    def test_gives_none_to_a_deactivated_agent(self, founded, tmp_path):
        Agent.objects.filter(handle="hr_manager").update(active=False)
        issue(tmp_path)
        assert "hr_manager" not in keys_of(tmp_path)

    def test_adds_a_newcomer_and_keeps_the_others(self, founded, tmp_path):
        issue(tmp_path)
        before = keys_of(tmp_path)
        ApiKey.objects.filter(agent__handle="ceo").delete()
        issue(tmp_path)
        after = keys_of(tmp_path)
        assert {handle: key for handle, key in after.items() if before[handle] != key} == {
            "ceo": after["ceo"]
        }

    @pytest.mark.parametrize("content", ["", "null", '{"ceo": "nxs_'])
    def test_adds_to_no_file_that_is_damaged(self, founded, tmp_path, content):
        (tmp_path / "nexus.json").write_text(content)
        with pytest.raises(first_run.UnreadableKeys, match="cannot be read as keys"):
            first_run.write_keys(tmp_path / "nexus.json", {"newcomer": "nxs_key"})
        assert (tmp_path / "nexus.json").read_text() == content

    def test_makes_no_key_valid_that_it_could_not_write_down(self, founded, tmp_path, monkeypatch):
        def full(path, keys):
            raise OSError("no space left on device")

        monkeypatch.setattr(first_run, "write_keys", full)
        with pytest.raises(OSError, match="no space"):
            issue(tmp_path)
        assert not ApiKey.objects.exists()


class TestCreateFirstPeople:
    @pytest.fixture(autouse=True)
    def _groups(self):
        for desk in first_run.PEOPLE.values():
            Group.objects.get_or_create(name=desk)

    @pytest.fixture
    def shown(self):
        return {}

    def create(self, shown):
        first_run.create_first_people(show=shown.update, now=timezone.now())

    def test_seats_one_at_each_desk(self, shown):
        self.create(shown)
        assert set(shown) == {"board", "hr", "reviewer", "observer"}
        board = User.objects.get(username="board")
        assert board.check_password(shown["board"])
        assert [group.name for group in board.groups.all()] == ["Board"]
        assert (board.is_staff, board.is_superuser) == (True, False)

    def test_seats_nobody_where_somebody_sits(self, shown):
        User.objects.create_user("alice")
        self.create(shown)
        assert shown == {}
        assert User.objects.count() == 1

    def test_makes_no_password_valid_that_it_could_not_show(self, shown):
        def broken(passwords):
            raise BrokenPipeError

        with pytest.raises(BrokenPipeError):
            first_run.create_first_people(show=broken, now=timezone.now())
        assert not User.objects.exists()
        self.create(shown)
        assert len(shown) == 4

    def test_makes_passwords_nobody_guesses(self, shown):
        self.create(shown)
        passwords = shown.values()
        assert len(set(passwords)) == 4
        assert all(len(password) >= 16 for password in passwords)


class TestDamagedFiles:
    """As of a disk that lost what was on it: the start names them."""

    @pytest.fixture
    def places(self, settings, tmp_path):
        settings.NEXUS_KEYS, settings.LEDGER_DIR = tmp_path / "keys", tmp_path / "ledger"
        settings.NEXUS_KEYS.mkdir()
        first_run.write_keys(settings.NEXUS_KEYS / "nexus.json", {"ceo": "nxs_key"})
        ledger_keys.make_key()
        ledger_keys.remember_head(1, "aa")
        return tmp_path

    def test_are_none_where_all_can_be_read(self, places):
        assert list(first_run.damaged_files()) == []

    def test_are_none_before_there_are_any(self, places):
        shutil.rmtree(places / "keys")
        shutil.rmtree(places / "ledger")
        assert list(first_run.damaged_files()) == []

    @pytest.mark.parametrize(
        ("name", "way_out"),
        [
            ("keys/nexus.json", "issue_key"),
            ("ledger/head.json", "ledger adopt"),
            ("ledger/ed25519.key", "ledger new-key"),
        ],
    )
    def test_are_named_with_what_to_do(self, places, name, way_out):
        (places / name).write_text("")
        (said,) = first_run.damaged_files()
        assert str(places / name) in said
        assert way_out in said
