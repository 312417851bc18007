"""`manage.py up` as a person runs it, on a port and in folders of its own."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from io import StringIO
from pathlib import Path

import httpx
import psycopg
import pytest
from django.core.management.base import CommandError
from django.db import OperationalError

from nexus_site.management.commands.up import Command
from nexus_site.run import broker, cluster_lock, roles, up
from nexus_site.run.fork import fork, status_of
from nexus_site.run.identity import plain_user
from nexus_site.run.postgres import Cluster, locked
from nexus_site.run.processes import PROCESSES, holders, lives
from tests.patience import PATIENCE, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(var, port, *program):
    """Start the company, as `make up` does if no other program is named."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"PGOPTIONS", "DATABASE_URL", "REDIS_URL"}
    }
    return subprocess.Popen(
        [sys.executable, *(program or ("-m", "nexus_site.run", "up"))],
        cwd=REPOSITORY,
        env=environment | {"NEXUS_VAR": str(var), "PORT": str(port), "WEB_WORKERS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def said_until_serving(process):
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "Ctrl-C" in line:
            return "".join(lines)
    pytest.fail(f"it ended: {''.join(lines)}")


def processes_of(var):
    """Every process that was told of this folder, by its environment or its command line."""
    found = []
    for process in PROCESSES.glob("[0-9]*"):
        try:
            told = (
                process.joinpath("environ").read_bytes() + process.joinpath("cmdline").read_bytes()
            )
        except OSError:
            continue
        if os.fsencode(var) in told:
            found.append(process.name)
    return found


def child_of(parent, name):
    """The process id of a child of this name; none if there is none yet."""
    for child in Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split():
        with suppress(FileNotFoundError, ProcessLookupError):  # it ends while it is looked at
            if (PROCESSES / child / "comm").read_text().strip() == name[:15]:
                return int(child)
    return None


@pytest.fixture(scope="module")
def founding(tmp_path_factory):
    """A company whose first start was killed and whose second ended: where, and what that said."""
    var, port = tmp_path_factory.mktemp("founded") / "var", free_port()
    killed = start(var, port)
    wait_until(lambda: child_of(killed, "nexus first run"))
    killed.kill()
    killed.wait()
    wait_until(lambda: processes_of(var) == [], "left by a killed first run")
    first = start(var, port, "manage.py", "up")
    said = said_until_serving(first)
    password = re.search(r"board +password: (\S+)", said).group(1)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        assert client.get("/readyz").json()["status"] == "ready"
        sign_in(client, password)
        call(client, keys_under(var)["ceo"])
    first.send_signal(signal.SIGINT)
    assert first.wait(PATIENCE) == 0
    assert processes_of(var) == []
    return var, said + first.stdout.read()


def keys_under(var):
    return json.loads((var / "keys" / "nexus.json").read_text())


def sign_in(client, password):
    client.get("/admin/login/")
    form = {
        "username": "board",
        "password": password,
        "csrfmiddlewaretoken": client.cookies["nexus_csrf"],
        "next": "/admin/",
    }
    assert client.post("/admin/login/", data=form).status_code == 302
    assert client.get("/admin/").status_code == 200


def call(client, key):
    me = client.get("/api/v1/me", headers={"Authorization": f"Bearer {key}"})
    assert me.status_code == 200
    assert me.json()["agent"] == "ceo"


@pytest.mark.slow
class TestUp:
    def test_founds_a_company_once_and_leaves_nothing_running(self, founding):
        var, said = founding
        assert said.count("shown once") == 4
        assert "Cannot connect" not in said
        assert "Traceback" not in said

        keys, port = keys_under(var), free_port()
        second = start(var, port)
        again = said_until_serving(second)
        assert "password" not in again
        assert "New agent keys" not in again
        assert keys_under(var) == keys
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            call(client, keys["ceo"])
        second.send_signal(signal.SIGTERM)
        assert second.wait(PATIENCE) == 0
        assert processes_of(var) == []

    def test_leaves_nothing_running_when_it_is_killed(self, founding):
        """Whichever of its processes ends last; the database ends with it."""
        (var, _), port = founding, free_port()
        names = ("nexus web 1", "nexus worker", "nexus beat")
        for last in names:
            killed = start(var, port)
            said_until_serving(killed)
            lock = var / "postgres.users.lock"
            wait_until(lambda: len(holders(lock)) == 1 + len(names))  # noqa: B023 - at once
            users, pid = {child_of(killed, name) for name in names}, child_of(killed, last)
            os.kill(pid, signal.SIGSTOP)
            killed.kill()
            killed.wait()
            wait_until(lambda: not any(map(lives, users - {pid})))  # noqa: B023
            assert Cluster.under(var).answers()
            os.kill(pid, signal.SIGCONT)
            wait_until(lambda: processes_of(var) == [], f"left after {last}")


class TestASignalThatStops:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_ends_a_start_before_there_is_a_supervisor(
        self, tmp_path, settings, monkeypatch, number
    ):
        """In the middle of the start of the database, which must be stopped again."""
        settings.NEXUS_VAR, settings.DATABASE_URL = tmp_path, ""
        monkeypatch.setitem(os.environ, "PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
        monkeypatch.setattr(up, "reserve", lambda plan: socket.socket())
        monkeypatch.setattr(cluster_lock, "take", lambda cluster: os.kill(os.getpid(), number))

        def start():
            try:
                Command().handle(pid_file=None)
            except CommandError as error:
                return 77 if "Stopped before" in str(error) else 1

        assert status_of(fork(start), wait=True) == 77


class TestListen:
    def test_says_which_port_is_taken_and_what_to_do(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            plan = up.StartPlan(host="127.0.0.1", port=port, workers=1, var=Path("/v"))
            with pytest.raises(up.CannotStart, match=f"PORT={port + 1} make up"):
                up.reserve(plan)

    @pytest.mark.parametrize(
        ("host", "port", "way"),
        [
            ("127.0.0.1", 99999, "the last one is 65535"),
            ("192.0.2.1", 8000, "HOST must be an address of this machine"),
            ("no.such.invalid", 8000, "HOST must be an address of this machine"),
        ],
    )
    def test_says_what_is_wrong_with_an_address(self, host, port, way):
        with pytest.raises(up.CannotStart, match=way):
            up.reserve(up.StartPlan(host=host, port=port, workers=1, var=Path("/v")))


class TestWhatIsMissing:
    """One sentence that says what to do, and no traceback."""

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("DATABASE_URL", "mysql://host/nexus", "DATABASE_URL must begin with postgresql://"),
            ("REDIS_URL", "amqp://broker", "REDIS_URL must begin with redis://"),
            ("PORT", "web", "PORT='web' is not a whole number"),
            ("NEXUS_VAR", "/dev/null/var", "name another folder in NEXUS_VAR"),
        ],
    )
    @pytest.mark.parametrize(
        "words", [["-m", "nexus_site.run", "up"], ["manage.py", "backup", "x"]]
    )
    def test_is_said_before_anything_starts(self, tmp_path, name, value, said, words):
        environment = os.environ | {"NEXUS_VAR": str(tmp_path), name: value}
        ended = subprocess.run(
            [sys.executable, *words],
            cwd=REPOSITORY,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert ended.returncode == 1
        assert said in ended.stderr
        assert ended.stderr.count("\n") == 1

    def test_is_the_brokers_program(self, tmp_path, monkeypatch):
        monkeypatch.setattr(broker, "WHEEL", "no_such_wheel")
        plan = up.StartPlan(host="::1", port=8000, workers=1, var=tmp_path, embedded_broker=True)
        with pytest.raises(up.CannotStart, match="run `make env`, or name a REDIS_URL"):
            up.prepare(plan)

    @pytest.mark.parametrize(
        ("cause", "said_next"),
        [
            (psycopg.OperationalError(), "Look at DATABASE_URL"),
            (psycopg.errors.LockNotAvailable(), "Somebody holds a lock on a table"),
        ],
    )
    def test_is_the_database(self, settings, monkeypatch, cause, said_next):
        def fail():
            raise OperationalError("couldn't get a connection after 20.00 sec") from cause

        settings.DATABASE_URL, said = "postgresql://elsewhere/nexus", StringIO()
        monkeypatch.setattr("nexus_site.management.commands.up.alone_on_database", fail)
        monkeypatch.setattr(roles, "become_owner", lambda: None)
        assert Command(stderr=said).begin() == 1
        assert "The database cannot be used: couldn't get" in said.getvalue()
        assert said_next in said.getvalue()

    def test_is_a_company_of_more_agents_than_there_may_be(self, db, settings, monkeypatch):
        settings.NEXUS_ORGANISATION_AGENTS, said = 1, StringIO()
        monkeypatch.setattr("nexus_site.management.commands.up.alone_on_database", nullcontext)
        monkeypatch.setattr(roles, "become_owner", lambda: None)
        assert Command(stderr=said, stdout=StringIO()).begin() == 1
        assert "agents of an organisation: 0 of 1 are there" in said.getvalue()


class TestOnlyOne:
    def test_refuses_a_second_and_names_the_first(self, tmp_path):
        with (
            up.only_one(tmp_path, say=print),
            pytest.raises(up.CannotStart, match=f"process {os.getpid()}"),
            up.only_one(tmp_path, say=print),
        ):
            pass

    def test_admits_another_after_the_first_has_ended(self, tmp_path):
        with up.only_one(tmp_path, say=print):
            pass
        with up.only_one(tmp_path, say=print):
            pass


class TestWhatAKilledOneLeft:
    """A child that was stopped, or hangs, holds the lock on."""

    @pytest.fixture
    def leave(self, tmp_path):
        """A function that starts a child under an `up` of this folder and kills that `up`."""
        left, told = [], tmp_path / "child"

        def start(run):
            def stubborn():
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                told.write_text(f"{os.getpid()}\n")
                run()

            def first():
                with up.only_one(tmp_path, say=print):
                    fork(stubborn)
                    time.sleep(600)

            killed = fork(first)
            wait_until(lambda: told.exists() and told.read_text().endswith("\n"))
            left.append(int(told.read_text()))
            os.kill(killed, signal.SIGKILL)
            status_of(killed, wait=True)
            return left[-1]

        yield start
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @pytest.fixture
    def said(self):
        return []

    @pytest.mark.parametrize(
        "run",
        [
            pytest.param(lambda: time.sleep(600), id="hangs"),
            pytest.param(lambda: os.kill(os.getpid(), signal.SIGSTOP), id="stopped"),
            pytest.param(lambda: os.execv("/bin/sleep", ["sleep", "600"]), id="another program"),
        ],
    )
    def test_is_killed_after_its_grace(self, tmp_path, monkeypatch, leave, said, run):
        monkeypatch.setattr(up, "GRACE", 0.5)
        child = leave(run)
        with up.only_one(tmp_path, say=said.append):
            # the lock is free a moment before it has ended
            wait_until(lambda: not lives(child))
        assert said == [f"Killing processes that an earlier start left: [{child}]."]

    def test_may_end_by_itself_before(self, tmp_path, monkeypatch, leave, said):
        monkeypatch.setattr(up, "GRACE", PATIENCE)
        go = tmp_path / "go"
        child = leave(lambda: wait_until(go.exists))
        with monkeypatch.context() as waiting:
            waiting.setattr(up.time, "sleep", lambda seconds: go.touch())  # while it waits
            with up.only_one(tmp_path, say=said.append):
                pass
        wait_until(lambda: not lives(child))  # the lock is free a moment before it has ended
        assert said == []

    def test_is_named_where_it_cannot_be_found(self, tmp_path, monkeypatch, leave):
        """As on a Mac, which has no /proc, and where it is another user's."""
        monkeypatch.setattr(up, "GRACE", 0.2)
        monkeypatch.setattr(up, "holders", lambda lock: set())
        child = leave(lambda: time.sleep(600))
        with (
            pytest.raises(up.CannotStart, match=r"lsof .*up\.lock"),
            up.only_one(tmp_path, say=print),
        ):
            pass
        assert lives(child)

    def test_is_held_by_its_owner_alone(self, tmp_path):
        """Who can read a lock file can hold it, and keep the company from starting."""
        cluster = Cluster.under(tmp_path)
        with (
            up.only_one(tmp_path, say=print),
            locked(tmp_path / "postgres.start.lock"),
            cluster_lock.claim(cluster, starts=False).file,
        ):
            locks = [*tmp_path.glob("*.lock")]
            assert [stat.S_IMODE(lock.stat().st_mode) for lock in locks] == [0o600] * 3

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files in another's folder")
    def test_that_root_makes_belongs_to_who_owns_the_folder(self, tmp_path):
        """As after a backup by root of a service that runs as a user of its own."""
        os.chown(tmp_path, *plain_user())
        with locked(tmp_path / "copy.lock"):
            found = (tmp_path / "copy.lock").stat()
            assert (found.st_uid, found.st_gid) == plain_user()

    def test_follows_no_link_and_cuts_no_file_off(self, tmp_path):
        """Who owns the folder is not who takes the lock."""
        roots, lock = tmp_path / "shadow", tmp_path / "copy.lock"
        roots.write_text("of root")
        lock.symlink_to(roots)
        with pytest.raises(OSError, match=r"copy\.lock"), locked(lock):
            pass
        lock.unlink()
        lock.hardlink_to(roots)
        with locked(lock):
            assert roots.read_text() == "of root"
            assert roots.stat().st_uid == os.geteuid()

    def test_is_not_another_start_that_waits_as_well(self, tmp_path, leave):
        child = leave(lambda: time.sleep(600))
        with (tmp_path / "up.lock").open("a+"):
            assert holders(tmp_path / "up.lock") == {child}


class TestWantedBy:
    def test_ends_with_the_file(self, tmp_path):
        file = tmp_path / "up.pid"
        file.touch()
        wanted = up.wanted_by(file)
        assert wanted()
        file.unlink()
        assert not wanted()

    def test_ends_with_the_parent(self, tmp_path, monkeypatch):
        file = tmp_path / "up.pid"
        file.touch()
        wanted = up.wanted_by(file)
        monkeypatch.setattr(os, "getppid", lambda: 0)  # nobody
        assert not wanted()


class TestPrepare:
    def test_clears_what_an_earlier_run_left(self, tmp_path):
        plan = up.StartPlan(host="::1", port=8000, workers=1, var=tmp_path)
        (tmp_path / "metrics").mkdir()
        (tmp_path / "metrics" / "counter_1.db").touch()
        up.prepare(plan)
        assert list((tmp_path / "metrics").iterdir()) == []

    def test_keeps_a_folder_that_lies_elsewhere(self, tmp_path):
        """As on a disk in memory: where the folder was made again, no start succeeded."""
        plan = up.StartPlan(host="::1", port=8000, workers=1, var=tmp_path / "var")
        (tmp_path / "memory").mkdir(mode=0o755)
        (tmp_path / "memory" / "counter_1.db").touch()
        plan.var.mkdir()
        plan.metrics.symlink_to(tmp_path / "memory")
        up.prepare(plan)
        assert list(plan.metrics.iterdir()) == []
        assert plan.metrics.stat().st_mode & 0o777 == 0o700


class TestOutput:
    """Of a log on a full disk; who is told of a fallen process may not end all others."""

    @pytest.fixture
    def full(self):
        with pytest.raises(OSError, match="No space left"), Path("/dev/full").open("w") as nowhere:
            yield Command(stdout=nowhere)

    def test_that_cannot_be_written_ends_nothing(self, full):
        full.say("web 1 ended with status -9; starting it again in 1 s.")

    def test_shows_first_passwords_or_fails(self, full):
        with pytest.raises(OSError, match="No space left"):
            full.introduce({"board": "secret"})


class TestPlan:
    @pytest.mark.parametrize(
        ("host", "url"),
        [
            ("127.0.0.1", "http://127.0.0.1:80"),
            ("0.0.0.0", "http://127.0.0.1:80"),
            ("::1", "http://[::1]:80"),
        ],
    )
    def test_names_an_address_that_works_here(self, host, url):
        plan = up.StartPlan(host=host, port=80, workers=1, var=Path("/v"))
        assert plan.url == url

    def test_runs_the_web_processes_one_worker_and_one_beat(self):
        plan = up.StartPlan(host="127.0.0.1", port=0, workers=3, var=Path("/v"))
        with up.reserve(plan) as reserved:
            children = up.children(plan, reserved=reserved, on_ready=lambda: None)
        assert [child.name for child in children] == ["web 1", "web 2", "web 3", "worker", "beat"]

    def test_watches_the_pulse_of_web_processes_and_never_that_of_the_database(self, tmp_path):
        plan = up.StartPlan(
            host="127.0.0.1", port=0, workers=2, var=tmp_path, cluster=Cluster.under(tmp_path)
        )
        with up.reserve(plan) as reserved:
            children = up.children(plan, reserved=reserved, on_ready=lambda: None)
        watched = {child.name: child.pulse for child in children if child.pulse}
        assert list(watched) == ["web 1", "web 2"]
        assert watched["web 1"] is not watched["web 2"]

    def test_keeps_the_embedded_database_and_broker_and_no_others(self, tmp_path):
        cluster = Cluster.under(tmp_path)
        plan = up.StartPlan(
            host="127.0.0.1",
            port=0,
            workers=1,
            var=tmp_path,
            cluster=cluster,
            embedded_broker=True,
        )
        with up.reserve(plan) as reserved:
            children = up.children(plan, reserved=reserved, on_ready=lambda: None)
        assert children[-1].run == cluster.keep
        assert [child.name for child in children][:2] == ["broker", "web 1"]
        assert [child.name for child in children if child.is_needed] == ["broker"]
