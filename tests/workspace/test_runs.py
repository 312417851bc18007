"""Tests and linter of agents: what a run sees, how it ends, who waits for whom."""

import hashlib
import os
import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.db.models import F
from django.utils import timezone

from core.database import database_now
from core.decision import Denied
from ledger.models import Event
from orgchart.models import Agent, Organisation
from tests.documents.world import NOW
from tests.patience import PATIENCE, wait_until
from tests.workspace.calls import call
from toolbox.explaining import explain
from toolbox.models import Stored, Usage
from workspace.models import Run
from workspace.runs import queue, services
from workspace.runs.rules import KEPT
from workspace.sandbox import driver
from workspace.tree import agent_folder, work_tree

pytestmark = pytest.mark.skipif(
    isinstance(driver.strongest(), str), reason=f"no sandbox here: {driver.strongest()}"
)

GOOD = "def test_adds():\n    assert 1 + 1 == 2\n"


@pytest.mark.django_db(transaction=True)
class TestRunTest:
    def test_runs_the_tests_of_the_clone(self, backend, write):
        write("src/feature/adding.py", "def add(a, b):\n    return a + b\n")
        write("tests/test_add.py", "from src.feature.adding import add\n\n\ndef test_it():\n"
              "    assert add(1, 2) == 3\n")  # fmt: skip
        result = call(backend, "run_test", paths=["tests/"])["result"]
        assert result["exit_code"] == 0, result["output"]
        assert "1 passed" in result["output"]

    def test_counts_what_it_printed(self, backend, write):
        """Spec: settings 6. A test may print a mebibyte, and a call asks for it in 40 bytes."""
        write("tests/test_prints.py", "def test_it():\n    print('x' * 200_000)\n    assert 0\n")
        before = Stored.objects.get().bytes
        result = call(backend, "run_test", paths=["tests/test_prints.py"])["result"]
        (log,) = agent_folder("nexus", "backend_worker").joinpath("runs").iterdir()
        assert result["exit_code"] == 1
        assert log.stat().st_size > 200_000
        pieces = Event.objects.filter(action="run.printed").count()  # of a run of over a second
        size = log.stat().st_size + 512 * pieces
        assert Usage.objects.get().bytes == size
        assert Stored.objects.get().bytes == before + size

    def test_does_not_begin_where_its_log_has_no_room(self, backend, write, settings):
        write("tests/test_a.py", GOOD)
        settings.NEXUS_BYTES_PER_DAY = KEPT - 1
        refused = call(backend, "run_test", paths=["tests/test_a.py"])
        assert refused["error_code"] == "QUOTA_EXCEEDED"
        assert not Run.objects.exists()
        settings.NEXUS_BYTES_PER_DAY = 3 * KEPT
        assert call(backend, "run_test", paths=["tests/test_a.py"])["ok"]

    def test_says_how_a_failure_looks(self, backend, write):
        write("tests/test_bad.py", "def test_it():\n    assert 'left' == 'right'\n")
        result = call(backend, "run_test", paths=["tests/test_bad.py"])["result"]
        assert result["exit_code"] == 1
        assert "'left' == 'right'" in result["output"]

    def test_keeps_the_log_whose_digest_it_answers(self, backend, write):
        write("tests/test_a.py", GOOD)
        result = call(backend, "run_test", paths=["tests/test_a.py"])["result"]
        log = call(backend, "read_file", path=result["log"])["result"]
        assert log["content"] == result["output"]
        assert log["sha256"] == result["output_sha256"]
        row = Run.objects.get()
        assert row.output_sha256 == hashlib.sha256(row.output.encode()).hexdigest()
        ended = Event.objects.get(action="run.ended")
        assert Event.objects.get(action="run.started").seq < ended.seq
        assert ended.details["output_sha256"] == result["output_sha256"]

    def test_sees_only_what_the_agent_may_read(self, backend, write):
        write("tests/test_see.py", "import os\ndef test_it():\n    print(sorted("
              "os.path.join(p, f) for p, _, fs in os.walk('/work') for f in fs))\n"
              "    print(open('/work/src/feature/.env').read()); assert 0\n")  # fmt: skip
        write("src/feature/a.py", "")
        clone = work_tree("nexus", "backend_worker")
        (clone / "src/other").mkdir()
        (clone / "src/other/b.py").write_text("SECRET")
        (clone / "src/feature/.env").write_text("SECRET")
        (clone / "src/feature/.env").chmod(0o644)
        (clone / "src/feature/.git").mkdir()
        (clone / "src/feature/.git/config").write_text("SECRET")
        (clone / ".git").mkdir()
        (clone / ".git/config").write_text("SECRET")
        output = call(backend, "run_test", paths=["tests/"])["result"]["output"]
        assert "SECRET" not in output
        assert "/work/src/feature/a.py" in output
        assert "/work/src/other" not in output
        assert "config" not in output

    def test_changes_nothing(self, backend, write):
        write("tests/test_write.py", "def test_it():\n    open('/work/tests/new.py', 'w')\n")
        result = call(backend, "run_test", paths=["tests/"])["result"]
        assert "Read-only file system" in result["output"]
        left = (work_tree("nexus", "backend_worker") / "tests").iterdir()
        assert [path.name for path in left] == ["test_write.py"]

    def test_is_its_agents_user(self, backend, write):
        write("tests/test_id.py", "import os\ndef test_it():\n    print(os.getuid()); assert 0\n")
        output = call(backend, "run_test", paths=["tests/"])["result"]["output"]
        uid = agent_folder("nexus", "backend_worker").stat().st_uid
        assert f"\n{uid}\n" in output
        assert os.geteuid() != 0 or uid > 0x1000_0000

    def test_passes_no_planted_link(self, backend, write, tmp_path):
        write("src/feature/a.py", "")
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside/test_x.py").write_text(GOOD)
        (work_tree("nexus", "backend_worker") / "tests").symlink_to(tmp_path / "outside")
        answer = call(backend, "run_test", paths=["tests/"])
        assert answer["error_code"] == "SCOPE_DENIED"
        assert not Run.objects.exists()

    @pytest.mark.parametrize("name", ["there", "none"])
    def test_says_nothing_of_what_lies_behind_a_link(self, backend, write, tmp_path, name):
        """A repository may hold links; what they name on this machine is not the agent's."""
        write("tests/test_a.py", GOOD)
        (tmp_path / "there").write_text("")
        (work_tree("nexus", "backend_worker") / "tests" / "link").symlink_to(tmp_path)
        answer = call(backend, "run_test", paths=[f"tests/link/{name}"])
        assert answer["error_code"] == "SCOPE_DENIED"
        assert not Run.objects.exists()

    @pytest.mark.parametrize(
        ("path", "code"),
        [
            ("src/", "SCOPE_DENIED"), ("agents/backend_worker/x.py", "SCOPE_DENIED"),
            ("tests/none.py", "NOT_FOUND"), ("--help", "SCOPE_DENIED"),
        ],
    )  # fmt: skip
    def test_refuses_what_is_not_the_agents_to_run(self, backend, write, path, code):
        write("tests/test_a.py", GOOD)
        assert call(backend, "run_test", paths=[path])["error_code"] == code
        assert not Run.objects.exists()

    def test_ends_at_its_time(self, backend, write, monkeypatch):
        monkeypatch.setattr(services, "LIMITS", replace(services.LIMITS, seconds=6))
        write("tests/test_long.py", "import time\n\n\ndef test_it():\n    time.sleep(600)\n")
        result = call(backend, "run_test", paths=["tests/"])["result"]
        assert (result["exit_code"], result["timed_out"]) == (124, True)

    def test_ends_with_its_agents_right_to_it(self, backend, write):
        write("tests/test_long.py", "import time\n\n\ndef test_it():\n    time.sleep(600)\n")
        begun = time.monotonic()

        def deactivate():
            wait_until(lambda: Run.objects.exclude(started_at=None).exists())
            Agent.objects.filter(id=backend.agent.id).update(active=False)
            Organisation.objects.update(policy_version=F("policy_version") + 1)
            connection.close()

        ending = threading.Thread(target=deactivate)
        ending.start()
        result = call(backend, "run_test", paths=["tests/"])["result"]
        ending.join()
        assert result["exit_code"] == 137
        assert Run.objects.get().stopped_for == "backend_worker is deactivated"
        assert time.monotonic() - begun < 2 * PATIENCE

    def test_is_explained_without_being_done(self, backend, write):
        write("tests/test_a.py", GOOD)
        found = explain(backend, "run_test", {"paths": ["tests/"]}, now=NOW)
        assert found["allowed"] is True
        assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
class TestRunLinter:
    def test_is_not_for_who_writes_the_code(self, backend, write):
        write("src/feature/a.py", "import os\n")
        answer = call(backend, "run_linter", paths=["src/feature/a.py"])
        assert answer["error_code"] == "TOOL_NOT_BOUND"

    def test_by_qa_reads_and_reports(self, hired):
        qa = hired("qa_worker", workspace_scope=["src/feature/"])
        assert call(qa, "write_file", path="tests/test_a.py", content="import os\n")["ok"]
        result = call(qa, "run_linter", paths=["tests/"])["result"]
        assert result["exit_code"] == 1
        assert "F401" in result["output"]


@pytest.mark.django_db(transaction=True)
class TestQueue:
    def started(self, caller):
        return queue.take_turn(
            caller=replace(caller, tool="run_test"),
            paths=["tests/"],
            commit="",
            seconds=services.LIMITS.seconds,
            now=NOW,
        )

    @pytest.mark.parametrize("wrong", [timedelta(hours=1), timedelta(hours=-1)], ids=str)
    def test_is_kept_by_the_database(self, backend, monkeypatch, wrong):
        """Spec: clocks 3. Machines with other clocks start no second run, nor wait for an hour."""
        machine = timezone.now()
        monkeypatch.setattr(timezone, "now", lambda: machine + wrong)
        row = self.started(backend)
        row.refresh_from_db()
        assert abs(row.started_at - database_now()) < timedelta(minutes=30)
        assert abs(row.ends_by - database_now()) < timedelta(minutes=30)

    def test_gives_each_agent_one_run_at_a_time(self, backend, monkeypatch):
        monkeypatch.setattr(queue, "PATIENCE", 0.6)
        first = self.started(backend)
        with pytest.raises(Denied, match="queue"):
            self.started(backend)
        assert list(Run.objects.values_list("id", flat=True)) == [first.id]
        Run.objects.filter(id=first.id).update(ended_at=NOW, output_sha256="a" * 64)
        assert self.started(backend).started_at is not None

    def test_gives_an_organisation_so_many_at_once(self, hired, settings, monkeypatch):
        monkeypatch.setattr(queue, "PATIENCE", 0.6)
        settings.WORKSPACE_RUNS = 2
        for handle in ("backend_worker", "frontend_worker"):
            self.started(hired(handle))
        with pytest.raises(Denied, match="queue"):
            self.started(hired("qa_worker"))

    def test_forgets_a_run_that_was_interrupted(self, backend, monkeypatch):
        monkeypatch.setattr(queue, "PATIENCE", 0.6)
        first = self.started(backend)
        Run.objects.filter(id=first.id).update(ends_by=timezone.now() - timedelta(seconds=1))
        assert self.started(backend).id != first.id

    def test_forgets_a_run_that_the_database_did_not_let_start(self, backend, monkeypatch):
        """As where somebody holds a lock on a table. Its agent's next run need not wait for it."""

        def record(*_, **__):
            raise OperationalError("canceling statement due to lock timeout")

        monkeypatch.setattr(queue, "record", record)
        with pytest.raises(OperationalError):
            self.started(backend)
        assert not Run.objects.exists()

    def test_starts_no_two_of_one_agent_however_many_ask(self, backend, monkeypatch):
        monkeypatch.setattr(queue, "PATIENCE", 1.0)
        answers = []

        def ask():
            try:
                answers.append(self.started(backend).id)
            except Denied:
                answers.append(None)
            finally:
                connection.close()

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len([answer for answer in answers if answer]) == 1
