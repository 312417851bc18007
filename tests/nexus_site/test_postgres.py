"""The embedded PostgreSQL, each test with a cluster of its own."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import psycopg
import pytest

from nexus_site.run import cluster_lock, identity, postgres, sockets
from nexus_site.run.fork import fork, status_of
from nexus_site.run.postgres import Cluster, PostgresUnavailable
from nexus_site.run.processes import PROCESSES, lives
from nexus_site.run.supervisor import Child
from tests.disks import disk
from tests.patience import wait_until

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A cluster that was made and stopped, to copy from."""
    cluster = Cluster.under(tmp_path_factory.mktemp("made"))
    cluster.start()
    cluster.stop()
    return cluster.data


@pytest.fixture
def cluster(made, tmp_path):
    cluster = Cluster.under(tmp_path / "var")
    cluster.data.parent.mkdir()
    shutil.copytree(made, cluster.data)
    yield cluster
    cluster.stop()


def remembered(cluster):
    with cluster.connect(postgres.DATABASE) as connection:
        return [row[0] for row in connection.execute("SELECT word FROM memory")]


def remember(cluster, word):
    with cluster.connect(postgres.DATABASE) as connection:
        connection.execute("SET synchronous_commit = on")  # off in tests, see conftest.py
        connection.execute("CREATE TABLE IF NOT EXISTS memory (word text)")
        connection.execute("INSERT INTO memory VALUES (%s)", [word])


def crash(cluster):
    """Kill the server as a power cut would, and wait until it is gone."""
    pid = cluster.pid()
    children = subprocess.run(
        ["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split()
    for number in [str(pid), *children]:
        os.kill(int(number), signal.SIGKILL)
    while cluster.pid() is not None or cluster.answers():
        time.sleep(0.01)


def is_stopped(pid):
    return ") T " in (PROCESSES / str(pid) / "stat").read_text()


class TestStart:
    def test_makes_a_database_that_only_its_owner_reaches(self, tmp_path):
        cluster = Cluster.under(tmp_path / "var")
        try:
            assert cluster.start()
            with cluster.connect(postgres.DATABASE) as connection:
                encoding, address = connection.execute(
                    "SELECT pg_encoding_to_char(encoding), inet_server_addr() FROM pg_database "
                    "WHERE datname = current_database()"
                ).fetchone()
                listening = connection.execute("SHOW listen_addresses").fetchone()[0]
            assert (encoding, address, listening) == ("UTF8", None, "")
            assert stat.S_IMODE(cluster.socket.stat().st_mode) == 0o700
            assert stat.S_IMODE(cluster.data.stat().st_mode) == 0o700
        finally:
            cluster.stop()

    def test_starts_nothing_when_it_serves_already(self, cluster):
        assert cluster.start()
        pid = cluster.pid()
        assert not cluster.start()
        assert cluster.pid() == pid

    def test_keeps_what_was_written_over_a_restart(self, cluster):
        cluster.start()
        remember(cluster, "kept")
        assert cluster.stop()
        assert cluster.pid() is None
        assert not cluster.answers()
        cluster.start()
        assert remembered(cluster) == ["kept"]

    def test_lets_one_of_many_starters_win(self, cluster):
        with ThreadPoolExecutor(8) as many:
            won = list(many.map(lambda _: Cluster(data=cluster.data).start(), range(8)))
        assert sorted(won) == [False] * 7 + [True]
        assert cluster.answers()

    def test_recovers_from_a_kill(self, cluster):
        cluster.start()
        remember(cluster, "committed")
        crash(cluster)
        assert (cluster.data / "postmaster.pid").exists()
        assert cluster.start()
        assert remembered(cluster) == ["committed"]

    def test_is_not_fooled_by_a_number_used_again(self, cluster):
        (cluster.data / "postmaster.pid").write_text(f"{os.getpid()}\n{cluster.data}\n")
        assert cluster.pid() is None
        assert cluster.start()

    def test_leaves_nothing_half_made_when_the_making_is_broken_off(self, tmp_path):
        cluster = Cluster.under(tmp_path / "var")
        half = cluster.data.with_name("postgres.new")
        half.mkdir(parents=True)
        (half / "PG_VERSION").write_text("18\n")
        try:
            assert cluster.start()
            assert not half.exists()
        finally:
            cluster.stop()

    def test_says_where_a_disk_of_its_own_belongs(self, tmp_path):
        """Its folder is made whole or not at all, by its name."""
        cluster = Cluster.under(tmp_path)
        with disk(cluster.data, 100), pytest.raises(PostgresUnavailable, match="mount it at"):
            cluster.start()

    def test_says_what_the_server_said_when_it_cannot_start(self, cluster):
        with (cluster.data / "postgresql.conf").open("a") as settings:
            settings.write("no_such_setting = 1\n")
        with pytest.raises(PostgresUnavailable, match="no_such_setting"):
            cluster.start()

    @pytest.mark.parametrize("name", ["d" * 90, "with space", 'quote\'s "and" $(more)', "数据"])
    def test_works_in_any_folder(self, made, tmp_path, name):
        cluster = Cluster.under(tmp_path / name)
        cluster.data.parent.mkdir()
        shutil.copytree(made, cluster.data)
        try:
            assert cluster.start()
            assert len(f"{cluster.socket}{sockets.SOCKET_NAME}") < 104
            assert stat.S_IMODE(cluster.socket.stat().st_mode) == 0o700
        finally:
            assert cluster.stop()
        assert not cluster.socket.exists()

    def test_says_in_which_folder_its_programs_cannot_be(self, tmp_path):
        """Their own shell would read a part of the path as a command."""
        programs = tmp_path / "a$(b)" / "bin"
        cluster = Cluster.under(tmp_path / "var")
        vars(cluster)["programs"] = programs
        with pytest.raises(PostgresUnavailable, match=r"no folder with \$ in its path"):
            cluster.start()

    def test_recovers_where_an_unlogged_table_was_being_made(self, cluster):
        """As by `migrate` or `restore`. PostgreSQL's first recovery finds a file in its way."""
        cluster.start()
        with cluster.connect(postgres.DATABASE) as connection, connection.transaction():
            connection.execute("CREATE UNLOGGED TABLE half (word text)")
            remember(cluster, "kept")  # brings the log to the disk
            os.kill(cluster.pid(), signal.SIGKILL)
            with suppress(psycopg.OperationalError):
                while True:
                    connection.execute("SELECT pg_sleep(0.05)")
        cluster.start()
        assert remembered(cluster) == ["kept"]

    def test_makes_the_database_where_an_earlier_start_was_killed_before(self, cluster):
        cluster.start()
        with cluster.connect() as connection:
            connection.execute(f"DROP DATABASE {postgres.DATABASE}")
        assert not cluster.start()
        remember(cluster, "there")
        assert remembered(cluster) == ["there"]

    def test_says_why_the_database_cannot_be_created(self, cluster, monkeypatch):
        cluster.start()
        monkeypatch.setattr(postgres, "DATABASE", "other TEMPLATE nowhere")
        with pytest.raises(postgres.PostgresUnavailable, match=r"cannot be created.*nowhere"):
            cluster.start()


class TestStop:
    def test_goes_on_without_a_process_that_does_not_end(self, cluster, monkeypatch):
        cluster.start()
        remember(cluster, "kept")
        with cluster.connect() as connection:
            os.kill(connection.info.backend_pid, signal.SIGSTOP)
            impatient = ((signal.SIGINT, 0.5), (signal.SIGQUIT, postgres.PATIENCE))
            monkeypatch.setattr(postgres, "STOPS", impatient)
            assert cluster.stop()
        assert cluster.pid() is None
        cluster.start()
        assert remembered(cluster) == ["kept"]


class TestKeep:
    @pytest.fixture
    def kept(self, cluster):
        cluster.start()
        remember(cluster, "kept")
        keeper = Child(name="keeper", run=cluster.keep)
        keeper.start(now=0.0)
        yield cluster
        keeper.kill_group()

    def wait_until_it_serves(self, cluster):
        deadline = time.monotonic() + 2 * postgres.PATIENCE
        while not cluster.answers():
            assert time.monotonic() < deadline, "nobody started it again"
            time.sleep(0.05)

    def test_starts_a_killed_server_again(self, kept):
        crash(kept)
        self.wait_until_it_serves(kept)
        assert remembered(kept) == ["kept"]

    def test_starts_a_server_again_that_was_asked_to_stop_and_waits_for_clients(self, kept):
        """As `kill PID` asks it to; a pool of connections never leaves."""
        asked = kept.pid()
        with kept.connect():
            os.kill(asked, signal.SIGTERM)
            while kept.answers():
                time.sleep(0.01)
            self.wait_until_it_serves(kept)
        assert kept.pid() != asked
        assert remembered(kept) == ["kept"]


class TestPrivateFolder:
    def test_refuses_a_link_somebody_left_there(self, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "socket").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(PostgresUnavailable, match="belongs to somebody else"):
            postgres.private_folder(tmp_path / "socket")


class TestIdentity:
    def test_needs_no_disguise_as_a_plain_user(self, monkeypatch, tmp_path):
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        monkeypatch.setattr(identity, "has_name", lambda uid: True)
        assert (
            identity.choose(program=Path("/bin/true"), home=tmp_path) == identity.ProcessIdentity()
        )

    @pytest.fixture
    def _no_namespaces(self, monkeypatch):
        works = identity._works

        def without_mapping(found, *commands):
            return "--map" not in found.arguments and works(found, *commands)

        monkeypatch.setattr(identity, "_works", without_mapping)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up root")
    @pytest.mark.usefixtures("_no_namespaces")
    def test_gives_up_root_where_namespaces_are_closed(self):
        chosen = identity.choose(program=Path("/bin/true"), home=Path("/tmp"))
        assert chosen.owner == identity.plain_user()
        seen = subprocess.run(
            chosen.command(["id", "-u"]), capture_output=True, text=True, check=True
        )
        assert int(seen.stdout) == chosen.owner[0] != 0

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up root")
    @pytest.mark.usefixtures("_no_namespaces")
    def test_serves_in_a_closed_home_without_opening_it(self, made, tmp_path):
        closed = tmp_path / "closed"
        cluster = Cluster.under(closed / "var")
        cluster.data.parent.mkdir(parents=True)
        shutil.copytree(made, cluster.data)
        for path in [cluster.data, *cluster.data.rglob("*")]:
            os.chown(path, *identity.plain_user())
        closed.chmod(0o700)
        try:
            assert cluster.start()
            assert cluster.identity.arguments[0] == "--drop-but-reach"
            assert (
                f"Uid:\t{identity.UNPRIVILEGED}"
                in Path(f"/proc/{cluster.pid()}/status").read_text()
            )
            assert stat.S_IMODE(closed.stat().st_mode) == 0o700
        finally:
            cluster.stop()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can start another's server")
    def test_leaves_nothing_of_root_next_to_the_data_of_another_user(self, made, tmp_path):
        """That user's next start would fail at the folder of the socket."""
        cluster = Cluster.under(tmp_path)
        shutil.copytree(made, cluster.data)
        os.chown(cluster.data, 54321, 54321)
        with pytest.raises(PostgresUnavailable, match="belongs to user 54321: run this as that"):
            cluster.start()
        assert [each.name for each in tmp_path.iterdir()] == ["postgres"]

    def test_says_what_to_do_when_nothing_works(self, monkeypatch, tmp_path):
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(identity, "_works", lambda found, *do: False)
        with pytest.raises(identity.NoIdentity, match="DATABASE_URL"):
            identity.choose(program=Path("/bin/true"), home=tmp_path)


class TestLease:
    USER = (
        "import sys; from pathlib import Path; from nexus_site.run import cluster_lock; "
        "from nexus_site.run.postgres import Cluster; "
        "cluster_lock.take(Cluster(data=Path(sys.argv[1]))); print('in', flush=True); "
        "sys.stdin.read()"
    )

    def user(self, cluster):
        """Another process that uses the cluster until its input is closed."""
        process = subprocess.Popen(
            [sys.executable, "-c", self.USER, str(cluster.data)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        assert process.stdout.readline() == "in\n"
        return process

    def leave(self, process):
        with process:
            process.stdin.close()

    def test_the_last_one_out_stops_the_server(self, cluster):
        first, second = self.user(cluster), self.user(cluster)
        self.leave(first)
        assert cluster.answers()
        self.leave(second)
        assert cluster.pid() is None

    def test_one_who_is_killed_counts_no_more(self, cluster):
        killed, last = self.user(cluster), self.user(cluster)
        killed.kill()
        self.leave(killed)
        assert cluster.answers()
        self.leave(last)
        assert cluster.pid() is None

    def test_waits_for_those_who_are_about_to_end(self, cluster):
        leaving, our_lock = self.user(cluster), cluster_lock.claim(cluster)
        threading.Timer(0.2, leaving.kill).start()
        assert our_lock.release(patience=10.0)
        self.leave(leaving)

    def test_leaves_the_server_to_those_who_stay(self, cluster):
        staying = self.user(cluster)
        assert not cluster_lock.claim(cluster).release(patience=0.1)
        assert cluster.answers()
        self.leave(staying)

    def test_leaves_a_server_running_that_was_asked_to_stay(self, cluster):
        cluster.start()
        cluster.kept.touch()
        assert not cluster_lock.claim(cluster).release()
        assert cluster.answers()

    def test_starts_a_server_that_stopped_meanwhile(self, cluster):
        cluster_lock.claim(cluster).release()
        assert cluster.pid() is None
        held = cluster_lock.claim(cluster)
        assert cluster.answers()
        assert held.release()

    def test_of_who_starts_nothing_counts_as_well(self, cluster):
        joined = cluster_lock.claim(cluster, starts=False)
        assert cluster.pid() is None
        assert not cluster_lock.claim(cluster).release()
        assert joined.release()
        assert cluster.pid() is None

    def test_stops_a_server_whose_start_was_interrupted(self, cluster, monkeypatch):
        def interrupt(_):
            assert cluster.pid()
            raise KeyboardInterrupt

        monkeypatch.setattr(Cluster, "_create_database", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cluster_lock.claim(cluster)
        assert cluster.pid() is None

    def test_is_held_no_more_when_the_server_cannot_start(self, cluster):
        (cluster.data / "postgresql.conf").write_text("no_such_setting = 1\n")
        with pytest.raises(PostgresUnavailable):
            cluster_lock.claim(cluster)
        (cluster.data / "postgresql.conf").write_text("")
        assert cluster_lock.claim(cluster).release()


class TestACommandThatIsAskedToEnd:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_stops_the_server_that_it_started(self, cluster, number):
        told = cluster.data.with_name("told")
        work = (
            "import time; from pathlib import Path; from django.db import connection;"
            f"connection.ensure_connection(); Path({str(told)!r}).touch(); time.sleep(600)"
        )
        with subprocess.Popen(
            [sys.executable, "manage.py", "shell", "--no-imports", "-c", work],
            cwd=REPOSITORY,
            env=os.environ | {"NEXUS_VAR": str(cluster.data.parent), "DATABASE_URL": ""},
        ) as command:
            wait_until(told.exists)
            command.send_signal(number)
        assert command.returncode == 128 + number
        assert cluster.pid() is None


class TestHold:
    """A forked process ends by `os._exit` or by a signal; nothing of Python runs after it."""

    @pytest.fixture
    def child(self, cluster):
        """A function that runs something in a child of a user of the cluster; that user is killed.

        Returns the child, which is asked to end at this moment and does not get to it yet.
        """
        left = []

        def start(run, *, held=True):
            told = cluster.data.with_name("child")

            def work():
                told.write_text(f"{os.getpid()}\n")
                os.kill(os.getpid(), signal.SIGSTOP)
                return run()

            def parent():
                cluster_lock.take(cluster)
                fork(partial(cluster_lock.hold, cluster, work) if held else work)
                time.sleep(600)

            killed = fork(parent)
            wait_until(lambda: told.exists() and told.read_text().endswith("\n"))
            left.append(int(told.read_text()))
            wait_until(lambda: is_stopped(left[-1]))
            os.kill(killed, signal.SIGKILL)
            status_of(killed, wait=True)
            return left[-1]

        yield start
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def end(self, child):
        os.kill(child, signal.SIGCONT)
        wait_until(lambda: not lives(child))

    def test_of_the_last_one_stops_the_server_when_its_parent_is_killed(self, cluster, child):
        last = child(lambda: time.sleep(600))
        assert cluster.answers()
        self.end(last)
        assert cluster.pid() is None

    def test_ends_with_the_work(self, cluster, child):
        """As Celery's does, which takes SIGTERM and ends by itself."""

        def work():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            wait_until(cluster.data.with_name("done").exists)

        last = child(work)
        os.kill(last, signal.SIGCONT)
        cluster.data.with_name("done").touch()
        wait_until(lambda: not lives(last))
        assert cluster.pid() is None

    def test_keeps_the_status_of_a_signal(self, cluster):
        def kill_oneself():
            os.kill(os.getpid(), signal.SIGTERM)

        ended = fork(partial(cluster_lock.hold, cluster, kill_oneself))
        assert status_of(ended, wait=True) == -signal.SIGTERM

    def test_is_not_interrupted_by_a_second_signal(self, cluster):
        cluster.start()

        def work():
            stop = Cluster.stop

            def stop_and_be_asked_again(stopped):
                os.kill(os.getpid(), signal.SIGTERM)
                return stop(stopped)

            Cluster.stop = stop_and_be_asked_again
            os.kill(os.getpid(), signal.SIGTERM)

        assert (
            status_of(fork(partial(cluster_lock.hold, cluster, work)), wait=True) == -signal.SIGTERM
        )
        assert cluster.pid() is None

    def test_is_not_inherited(self, cluster, child):
        """Else a child that uses nothing would keep the server after its last user."""
        child(lambda: None, held=False)
        assert cluster_lock.claim(cluster).release()


class TestConnection:
    def test_refuses_quickly_when_nothing_serves(self, cluster):
        with pytest.raises(psycopg.OperationalError):
            cluster.connect()
