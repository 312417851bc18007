"""Provision, doctor, and what is said where the walls are weaker than they should be."""

import errno
import os
import stat
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from core.decision import Denied
from nexus_site.environment import FIRST_UID_RANGE, UIDS, first_uid
from nexus_site.serving.health import readiness
from orgchart.models import Agent, Role
from tests.company import load_company
from tests.concurrency import at_once
from workspace import homes
from workspace.homes import make_home
from workspace.models import UserNumber
from workspace.provisioning import provision
from workspace.sandbox import doctor, driver, weaknesses
from workspace.sandbox.programs import shell
from workspace.tree import agent_folder, organisation_folder, work_tree
from workspace.users import user_numbered, user_of

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="users of one's own need root")
needs_walls = pytest.mark.skipif(
    isinstance(driver.strongest(), str), reason=f"no sandbox here: {driver.strongest()}"
)


@pytest.fixture(autouse=True)
def asked_anew():
    weaknesses.found_last.forget()
    yield
    weaknesses.found_last.forget()


OPEN = Path("/proc/self/fd")
USER = user_numbered(7) if os.geteuid() == 0 else None


class TestUsers:
    def test_are_different_for_every_agent_and_far_from_those_of_people(
        self, monkeypatch, settings
    ):
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        found = [user_numbered(number).uid for number in range(1, 300)]
        assert len(set(found)) == len(found)
        assert min(found) > 0x1000_0000
        assert set(found) <= set(settings.WORKSPACE_UIDS)

    def test_end_with_the_range(self, monkeypatch, settings):
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        assert user_numbered(len(settings.WORKSPACE_UIDS) - 1)
        for number in (0, -1, len(settings.WORKSPACE_UIDS)):
            with pytest.raises(Denied, match="user numbers"):
                user_numbered(number)

    def test_are_none_without_root(self, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert user_of(1) is None

    @pytest.mark.django_db
    def test_are_not_used_up_by_hires_that_are_refused(self, monkeypatch):
        """One agent that hires in vain, again and again, would take those of all organisations."""
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        company = load_company("nexus").organisation
        role = Role.objects.get(organisation=company, name="backend_worker")

        def hire(handle):
            hired = Agent.objects.create(organisation=company, handle=handle, role=role)
            connection.check_constraints()
            return hired

        first = hire("first")
        for _ in range(5):
            with suppress(InterruptedError), transaction.atomic():
                hire("second")
                raise InterruptedError
        assert user_of(hire("second").id).uid == user_of(first.id).uid + 1

    @pytest.mark.django_db(transaction=True)
    def test_are_counted_when_the_change_is_done_that_others_may_hire_meanwhile(self):
        """A company of 2,000 agents that was loaded kept all others from hiring for seconds."""
        company = load_company("nexus").organisation
        role = Role.objects.get(organisation=company, name="backend_worker")
        with transaction.atomic():
            hired = Agent.objects.create(organisation=company, handle="new", role=role)
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM pg_locks "
                    "WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
                )
                assert cursor.fetchone() == (0,)
        assert UserNumber.objects.filter(agent=hired).exists()

    @pytest.mark.django_db(transaction=True)
    def test_are_not_counted_for_agents_that_are_gone_by_then(self):
        company = load_company("nexus").organisation
        role = Role.objects.get(organisation=company, name="backend_worker")
        with transaction.atomic():
            Agent.objects.create(organisation=company, handle="new", role=role).delete()
        assert UserNumber.objects.count() == company.agents.count()

    @pytest.mark.django_db(transaction=True)
    def test_are_different_for_agents_hired_at_once(self):
        company = load_company("nexus").organisation
        role = Role.objects.get(organisation=company, name="backend_worker")

        def hire(handle):
            with transaction.atomic():
                Agent.objects.create(organisation=company, handle=handle, role=role)
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_sleep(0.1)")

        at_once([partial(hire, f"new-{number}") for number in range(4)], raising=True)
        numbers = UserNumber.objects.values_list("number", flat=True)
        assert len(set(numbers)) == company.agents.count()

    def test_have_a_range_for_each_installation(self):
        places = [first_uid(Path(f"/srv/{n}/company")) for n in range(200)]
        assert len(set(places)) > 195
        assert all((place - FIRST_UID_RANGE) % UIDS == 0 for place in places)
        assert max(places) + UIDS < 2**31


class TestMakeHome:
    def test_is_closed_to_others_and_done_once(self, tmp_path, settings):
        assert make_home("nexus", "coder", USER)
        assert make_home("nexus", "coder", USER) == []
        home = agent_folder("nexus", "coder")
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert work_tree("nexus", "coder").is_dir()

    def test_closes_a_home_that_was_opened(self):
        make_home("nexus", "coder", USER)
        agent_folder("nexus", "coder").chmod(0o755)
        assert len(make_home("nexus", "coder", USER)) == 1
        assert stat.S_IMODE(agent_folder("nexus", "coder").stat().st_mode) == 0o700

    @root_only
    def test_gives_all_that_is_in_it_and_nothing_that_a_link_names(self, tmp_path):
        home = agent_folder("nexus", "coder")
        (home / "notes").mkdir(parents=True)
        (home / "notes/a.md").write_text("x")
        outside = tmp_path / "outside"
        outside.write_text("x")
        (home / "link").symlink_to(outside)
        os.link(outside, home / "hard")
        make_home("nexus", "coder", USER)
        for path in (home, home / "notes", home / "notes/a.md", home / "workspace"):
            assert path.stat().st_uid == USER.uid, path
        assert outside.stat().st_uid == 0


@pytest.mark.django_db
class TestProvision:
    def test_makes_every_folder_and_home_then_nothing(self):
        load_company("nexus")
        done = provision()
        tree = organisation_folder("nexus")
        assert {path.name for path in tree.iterdir()} >= {"agents", "reports", "docs", "logs"}
        assert {path.name for path in (tree / "agents").iterdir()} == set(
            Agent.objects.values_list("handle", flat=True)
        )
        assert len(done) > len(homes.FOLDERS)
        assert provision() == []

    @root_only
    def test_gives_each_home_to_another_user(self):
        load_company("nexus")
        provision()
        owners = [
            path.stat().st_uid for path in (organisation_folder("nexus") / "agents").iterdir()
        ]
        assert len(set(owners)) == len(owners) == 9

    def test_command_says_what_it_did(self):
        load_company("nexus")
        said = StringIO()
        call_command("workspace", "provision", stdout=said)
        assert "made " in said.getvalue()
        assert "changes; " in said.getvalue()
        again = StringIO()
        call_command("workspace", "provision", stdout=again)
        assert again.getvalue().startswith("0 changes")


@needs_walls
class TestDoctor:
    @root_only
    @pytest.mark.parametrize("way", ["bubblewrap", "namespaces"])
    def test_finds_every_wall_here(self, settings, way):
        settings.WORKSPACE_SANDBOX = way
        if isinstance(driver.strongest(), str):
            pytest.skip(f"no {way} here")
        findings = doctor.examine()
        assert [finding for finding in findings if not finding.holds] == []
        assert len(findings) == len(doctor.ATTEMPTS)

    @root_only
    @pytest.mark.parametrize("way", ["bubblewrap", "namespaces"])
    def test_finds_them_in_a_service_with_a_strict_umask(self, settings, monkeypatch, way):
        """As `deploy/systemd/nexus.service` has one: the launcher inherits it."""
        settings.WORKSPACE_SANDBOX = way
        monkeypatch.setattr(driver, "_proven", set())
        if isinstance(driver.strongest(), str):
            pytest.skip(f"no {way} here")
        before = os.umask(0o077)
        try:
            assert [driver.problem_of(each) for each in driver.find()] == [""]
            assert [each for each in doctor.examine() if not each.holds] == []
        finally:
            os.umask(before)

    def test_finds_the_walls_that_are_gone(self, monkeypatch):
        """A driver without any wall: each attempt that a wall stops succeeds."""
        monkeypatch.setattr(driver, "run", unwalled)
        monkeypatch.setenv("NEXUS_SECRET", "hidden")
        asked = {
            "other agents' homes are not there", "mounts pass no link", "no network",
            "no other processes", "no secrets in the environment", "no rights, calls filtered",
            "limited time", "each agent has its own user",
        }  # fmt: skip
        harmless = {wall: attempt for wall, attempt in doctor.ATTEMPTS.items() if wall in asked}
        monkeypatch.setattr(doctor, "ATTEMPTS", harmless)
        assert {finding.wall for finding in doctor.examine() if not finding.holds} == asked

    def test_leaves_nothing_behind(self, settings):
        doctor.examine()
        assert not list(Path(settings.WORKSPACE_ROOT).glob(".doctor-*"))

    def test_command_fails_where_a_wall_is_missing(self, monkeypatch):
        missing = [doctor.SandboxFinding("no network", False, "REACHED")]
        monkeypatch.setattr("workspace.management.commands.workspace.examine", lambda: missing)
        said = StringIO()
        with pytest.raises(CommandError, match="1 of 1 walls do not hold"):
            call_command("workspace", "doctor", stdout=said)
        assert "MISSING" in said.getvalue()


def unwalled(program, *, watch=None):
    """Runs a program as a careless server would."""
    import subprocess

    home = next((str(m.source) for m in program.mounts if m.target == "/home"), "/")
    words = [word.replace("/seen", "/etc") for word in program.argv]
    ended = subprocess.run(
        ["timeout", "2", *words],
        cwd=home,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return driver.CommandOutcome(
        output=(ended.stdout + ended.stderr)[:99_999], status=ended.returncode
    )


@needs_walls
class TestTooManyOpenFiles:
    @pytest.mark.parametrize(("call", "works"), [("pipe", 0), ("pipe", 1), ("pipe", 2),
                                                 ("pipe", 3), ("memfd_create", 0)])  # fmt: skip
    def test_leave_none_open_that_was_to_start_a_program(self, monkeypatch, call, works):
        """Each try took some more, and the process got none back when others closed theirs."""
        open_one, calls = getattr(os, call), []

        def few(*given):
            calls.append(given)
            if len(calls) > works:
                raise OSError(errno.EMFILE, "Too many open files")
            return open_one(*given)

        program = shell("echo it ran")
        before = len(list(OPEN.iterdir()))
        with monkeypatch.context() as patched:
            patched.setattr(os, call, few)
            with pytest.raises(OSError, match="Too many"):
                driver.run(program)
        assert len(list(OPEN.iterdir())) == before
        assert driver.run(program).output == b"it ran\n"


class TestWeaknesses:
    def test_are_none_behind_the_full_wall(self, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(driver, "strongest", lambda: driver.Walls("namespaces"))
        assert weaknesses.find_weaknesses() == []
        assert weaknesses.status() == "full wall"

    def test_name_a_shared_user_and_a_missing_sandbox(self, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        monkeypatch.setattr(driver, "strongest", lambda: "none was found")
        found = weaknesses.find_weaknesses()
        assert len(found) == 2
        assert "none was found" in found[0]
        assert found[1] == weaknesses.SHARED_USER
        assert weaknesses.status().startswith("WEAKER")

    def test_are_refused_in_production(self, monkeypatch, settings):
        monkeypatch.setattr(driver, "strongest", lambda: driver.Walls("namespaces"))
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert driver.required()
        settings.PRODUCTION = True
        with pytest.raises(Denied, match="in production"):
            driver.run(shell("id"))
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        assert driver.required()

    @root_only
    def test_name_a_right_that_the_service_manager_took_from_root(self):
        ask = (
            "import django; django.setup(); "
            "from workspace.sandbox import driver; print(driver.strongest())"
        )
        words = ["setpriv", "--bounding-set=-setuid", sys.executable, "-c", ask]
        asked = subprocess.run(words, capture_output=True, text=True, check=True)
        assert "the server's root may not become another user" in asked.stdout

    @pytest.mark.django_db
    def test_are_named_on_every_page_of_the_admin(self, monkeypatch, admin_client):
        monkeypatch.setattr(weaknesses, "find_weaknesses", lambda: ["agents share one user"])
        monkeypatch.setattr("nexus_site.console.site.find_weaknesses", weaknesses.find_weaknesses)
        for page in ("/admin/", "/admin/orgchart/agent/", "/admin/explain/"):
            text = admin_client.get(page).content.decode()
            assert 'id="weaknesses"' in text, page
            assert "agents share one user" in text
        monkeypatch.setattr("nexus_site.console.site.find_weaknesses", list)
        assert 'id="weaknesses"' not in admin_client.get("/admin/").content.decode()

    @pytest.mark.django_db
    def test_are_named_in_readyz(self, client, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        readiness.forget()
        assert str(weaknesses.SHARED_USER) in client.get("/readyz").json()["hands"]


@needs_walls
@root_only
class TestTwoAgents:
    """On one machine, behind the same walls: they neither see, signal nor fill up each other."""

    @pytest.fixture
    def bench(self):
        with doctor._bench() as bench:
            yield bench

    def test_do_not_signal_each_other(self, bench):
        words = ["setpriv", f"--reuid={bench.second.uid}", "--clear-groups", "sleep", "30"]
        with subprocess.Popen(words) as other:
            outcome = bench.run(f"kill -9 {other.pid}; kill -9 -1; true")
            assert other.poll() is None, outcome
            other.kill()

    @pytest.fixture
    def other(self, bench):
        """The second agent's sandbox."""
        return doctor.Bench(bench.second, bench.first, bench.homes)

    def alone(self, agent, line, **limits):
        """A line of an agent that sees no home."""
        words = ("/bin/sh", "-c", line)
        few = doctor.ProgramLimits(**{"seconds": 10, **limits})
        return driver.run(doctor.Program(argv=words, user=agent.first, limits=few)).output

    @contextmanager
    def meanwhile(self, agent, line, **limits):
        """An agent's program that runs all the while."""
        running = threading.Thread(target=self.alone, args=(agent, line), kwargs=limits)
        running.start()
        time.sleep(1.0)
        yield
        running.join()

    def test_do_not_see_each_other(self, bench, other):
        shows = "echo SECRET > /tmp/SECRET; echo SECRET > /dev/shm/SECRET 2>/dev/null; "
        looks = (
            "ls -a /tmp /dev/shm; cat /tmp/* /dev/shm/* /proc/*/cmdline /proc/*/environ;"
            "ls -l /proc/*/fd /proc/*/cwd; cat /proc/net/unix /proc/sysvipc/*; true"
        )
        with self.meanwhile(other, shows + "export SECRET=1; exec sleep 5 # SECRET"):
            seen = self.alone(bench, looks)
            own = self.alone(bench, shows + looks)
        assert b"SECRET" not in seen
        assert b"SECRET" in own, "this would show what it looks for"

    def test_do_not_fill_up_each_others_scratch(self, bench, other):
        small = {"scratch": 2_000_000, "file": 10**9}
        fills = "cat /dev/zero > /tmp/full; wc -c < /tmp/full; sleep 4"
        with self.meanwhile(other, fills, **small):
            said = self.alone(
                bench, "head -c 1000000 /dev/zero > /tmp/x && wc -c < /tmp/x", **small
            )
        assert said.strip() == b"1000000"

    def test_do_not_use_up_each_others_memory(self, bench, other):
        eats = "sh -c 'tail /dev/zero'; sleep 4"
        with self.meanwhile(other, eats, memory=300_000_000, memory_of_all=300_000_000):
            said = self.alone(bench, "head -c 50000000 /dev/zero | tail -c 50000000 | wc -c")
        assert said.strip() == b"50000000"

    def test_do_not_use_up_each_others_processes(self, bench, other):
        bomb = "for i in $(seq 200); do sleep 5 & done; wait"
        with self.meanwhile(other, bomb, processes=60):
            line = "for i in 1 2 3; do sleep 0.1 & done; wait; echo well"
            assert self.alone(bench, line, processes=60) == b"well\n"
