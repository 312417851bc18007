"""Files of agents over the door: what is read and written where, and every way out that is shut."""

import contextlib
import hashlib
import os
import socket
import stat
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest
from django.db import connections, transaction

from core.actions import Action
from documents import disk, root
from documents.models import Artifact, DocumentKind
from documents.services import DocumentDraft, insert_document
from documents.tree import Missing, SafeTree, Unsafe
from ledger.models import Event
from orgchart.models import Agent
from orgchart.policy.vocabulary import ToolMode
from tests.concurrency import connect_apart, is_waiting_for_a_lock
from tests.disks import hanging
from tests.documents.world import NOW, caller_of
from tests.patience import wait_until
from toolbox import door
from toolbox.explaining import explain
from workspace.files import services
from workspace.files.places import place_of
from workspace.tree import agent_folder, organisation_folder, work_tree
from workspace.users import user_of


def coding(nexus, handle):
    caller = caller_of(nexus, handle)
    return replace(caller, session=replace(caller.session, mode=ToolMode.CODING))


def call(caller, tool, **params):
    return door.call(caller, tool, params, now=NOW).body


def code(caller, tool, **params):
    return call(caller, tool, **params).get("error_code", "OK")


@pytest.fixture
def backend(hired):
    return hired(
        "backend_worker", workspace_scope=["src/feature/"], assigned_branch="feature/login"
    )


@pytest.fixture
def clone(backend):
    """The backend worker's clone, with one file in it."""
    assert code(backend, "write_file", path="src/feature/a.py", content="A = 1\n") == "OK"
    return work_tree("nexus", "backend_worker")


class TestADiskThatHangs:
    """The company tree is on a file system of the network whose server does not answer."""

    def test_refuses_what_needs_it_and_no_other_call(
        self, backend, clone, settings, tmp_path, monkeypatch, django_capture_on_commit_callbacks
    ):
        """Spec: files 25."""
        settings.NEXUS_VAR = tmp_path
        root.know_root()
        monkeypatch.setattr(disk, "PATIENCE", 0.0)
        with hanging(settings.WORKSPACE_ROOT):
            written = {"path": "src/feature/b.py", "content": "B = 2\n"}
            assert code(backend, "write_file", **written) == "STORAGE_FULL"
            assert code(backend, "read_file", path="src/feature/a.py") == "STORAGE_FULL"
            assert code(backend, "git_branch", name="feature/login") == "STORAGE_FULL"
            with django_capture_on_commit_callbacks(execute=True):
                assert code(backend, "save_artifact", name="plan", content="p") == "OK"
            assert Artifact.objects.get().filed_at is None  # the job "files" writes it later
        assert code(backend, "write_file", **written) == "OK"
        root._known.cache_clear()


class TestAMissingDisk:
    """An empty folder is in the place of the company tree."""

    def test_refuses_what_would_be_written_or_read_there(self, backend, clone, settings, tmp_path):
        settings.NEXUS_VAR = tmp_path
        root.know_root()
        settings.WORKSPACE_ROOT.rename(tmp_path / "unmounted")
        settings.WORKSPACE_ROOT.mkdir()
        written = {"path": "src/feature/b.py", "content": "B = 2\n"}
        assert code(backend, "write_file", **written) == "STORAGE_FULL"
        assert code(backend, "read_file", path="src/feature/a.py") == "STORAGE_FULL"
        assert code(backend, "git_branch", name="feature/login") == "STORAGE_FULL"
        assert list(settings.WORKSPACE_ROOT.iterdir()) == []
        assert not Event.objects.filter(
            action="file.written", details__path=written["path"]
        ).exists()
        root._known.cache_clear()


class TestWriteFile:
    def test_answers_digest_and_size_and_read_gives_it_back(self, backend):
        text = "Grüße, 世界\n"
        written = call(backend, "write_file", path="src/feature/a.py", content=text)["result"]
        digest = hashlib.sha256(text.encode()).hexdigest()
        assert written == {"sha256": digest, "bytes": len(text.encode())}
        read = call(backend, "read_file", path="src/feature/a.py")["result"]
        assert read == {"content": text, "sha256": digest}

    def test_leaves_one_event_with_path_and_digest(self, backend, clone):
        event = Event.objects.get(action="file.written")
        assert event.actor == "agent:backend_worker"
        assert event.details["path"] == "src/feature/a.py"
        assert event.details["sha256"] == hashlib.sha256(b"A = 1\n").hexdigest()

    def test_puts_code_into_the_writers_own_clone(self, clone):
        assert (clone / "src/feature/a.py").read_text() == "A = 1\n"

    def test_puts_company_files_into_the_company_tree(self, nexus):
        qa = coding(nexus, "qa_worker")
        assert code(qa, "write_file", path="reports/qa/week.md", content="x") == "OK"
        assert (organisation_folder("nexus") / "reports/qa/week.md").read_text() == "x"

    def test_gives_the_home_to_its_agent_alone(self, backend, clone):
        home = agent_folder("nexus", "backend_worker").stat()
        assert stat.S_IMODE(home.st_mode) == 0o700
        user = user_of(backend.agent.id)
        if os.geteuid() == 0:
            for path in (
                agent_folder("nexus", "backend_worker"),
                clone,
                clone / "src/feature/a.py",
            ):
                assert (path.stat().st_uid, path.stat().st_gid) == (user.uid, user.gid), path

    def test_keeps_the_right_to_run_a_file(self, backend, clone):
        (clone / "src/feature/a.py").chmod(0o750)
        assert code(backend, "write_file", path="src/feature/a.py", content="B") == "OK"
        assert stat.S_IMODE((clone / "src/feature/a.py").stat().st_mode) == 0o750

    def test_by_qa_reaches_tests_and_its_reports_only(self, nexus):
        qa = coding(nexus, "qa_worker")
        assert code(qa, "write_file", path="tests/test_a.py", content="x") == "OK"
        for path in ("src/a.py", "agents/qa_worker/workspace/src/a.py", "reports/tech/a.md"):
            assert code(qa, "write_file", path=path, content="x") == "SCOPE_DENIED", path

    def test_into_the_clone_by_its_place_obeys_the_contract(self, backend):
        inside = "agents/backend_worker/workspace/src/"
        assert code(backend, "write_file", path=f"{inside}feature/b.py", content="x") == "OK"
        assert code(backend, "read_file", path="src/feature/b.py") == "OK"
        for path in ("other.py", "feature-evil/a.py"):
            assert code(backend, "write_file", path=inside + path, content="x") == "SCOPE_DENIED"
            assert code(backend, "read_file", path=inside + path) == "SCOPE_DENIED"

    @pytest.mark.parametrize("name", ["MEMORY.md", "memory.MD", "judged/x/src/feature/a.py"])
    def test_reaches_no_memory_and_no_judged_commit(self, backend, name):
        path = f"agents/backend_worker/{name}"
        assert code(backend, "write_file", path=path, content="A person says:") == "SCOPE_DENIED"
        assert code(backend, "read_file", path=path) == "SCOPE_DENIED"
        assert "A person says" not in call(backend, "read_memory")["result"]["text"]

    def test_is_explained_without_being_done(self, backend):
        params = {"path": "src/feature/new.py", "content": "x"}
        assert explain(backend, "write_file", params, now=NOW)["allowed"] is True
        assert not (work_tree("nexus", "backend_worker") / "src/feature/new.py").exists()

    def test_stops_at_the_limit_of_a_home(self, backend, settings, monkeypatch):
        monkeypatch.setattr(services, "_counted", {})
        settings.WORKSPACE_BYTES = 20_000
        path = "src/feature/big.txt"
        assert code(backend, "write_file", path=path, content="x" * 9_000) == "OK"
        refused = call(backend, "write_file", path=path, content="x" * 19_000)
        assert refused["error_code"] == "QUOTA_EXCEEDED"
        assert refused["details"]["limit"] == 20_000
        assert Event.objects.filter(action="file.written").count() == 1

    def test_stops_at_the_number_of_files(self, backend, settings, monkeypatch):
        monkeypatch.setattr(services, "_counted", {})
        settings.WORKSPACE_FILES = 2
        answers = [
            code(backend, "write_file", path=f"src/feature/{n}.py", content="") for n in range(3)
        ]
        assert answers == ["OK", "OK", "QUOTA_EXCEEDED"]

    def test_counts_what_is_written_at_once(self, backend, settings, monkeypatch):
        monkeypatch.setattr(services, "_counted", {})
        settings.WORKSPACE_FILES = 2
        write, meanwhile = SafeTree.write, []

        def write_another_first(tree, path, data):
            if path.endswith("0.py"):
                another = {"path": "src/feature/1.py", "content": ""}
                meanwhile.append(code(backend, "write_file", **another))
            write(tree, path, data)

        monkeypatch.setattr(SafeTree, "write", write_another_first)
        answers = [
            code(backend, "write_file", path=f"src/feature/{n}.py", content="") for n in (0, 2)
        ]
        assert [*meanwhile, *answers] == ["OK", "OK", "QUOTA_EXCEEDED"]

    @pytest.mark.parametrize(("setting", "limit"), [("workspace_files", 1), ("workspace_bytes", 9)])
    def test_stops_where_the_organisation_says(self, backend, monkeypatch, setting, limit):
        monkeypatch.setattr(services, "_counted", {})
        policy = replace(backend.policy, settings={**backend.policy.settings, setting: limit})
        strict = replace(backend, policy=policy)
        answers = [
            code(strict, "write_file", path=f"src/feature/{n}.py", content="12345")
            for n in range(2)
        ]
        assert answers[-1] == "QUOTA_EXCEEDED"


class TestASharedFolder:
    """Spec: files 22: two judges both write to reports/qa/, and no rule lets one tell the other."""

    PATH = "reports/qa/week.md"

    @pytest.fixture
    def judges(self, nexus):
        first = Agent.objects.get(organisation=nexus, handle="qa_worker")
        Agent.objects.create(
            organisation=nexus, handle="qa_2", role=first.role, reports_to=first.reports_to
        )
        return coding(nexus, "qa_worker"), coding(nexus, "qa_2")

    def test_hides_from_a_worker_what_another_worker_wrote(self, judges):
        first, second = judges
        assert code(first, "write_file", path=self.PATH, content="for you") == "OK"
        absent = call(second, "read_file", path="reports/qa/none.md")
        assert absent["error_code"] == "NOT_FOUND"
        hidden = call(second, "read_file", path=self.PATH)
        assert hidden["message"] == absent["message"].replace("none.md", "week.md")
        assert explain(second, "read_file", {"path": self.PATH}, now=NOW)["allowed"] is False
        mail = {"to": "it_manager", "type": "info", "subject": "s", "body": "b"}
        attached = [{"path": self.PATH, "description": "d"}]
        assert code(second, "send_mail", **mail, attachments=attached) == "NOT_FOUND"
        assert code(first, "send_mail", **mail, attachments=attached) == "OK"

    @pytest.mark.django_db(transaction=True)
    def test_hides_it_from_its_first_moment_on(self, judges, monkeypatch):
        """The file is in its place before the event that names its writer is committed."""
        first, second = judges
        mail = {"to": "it_manager", "type": "info", "subject": "s", "body": "b"}
        attached = [{"path": self.PATH, "description": "d"}]
        write, answers = SafeTree.write, []

        def ask(tool, params):
            connect_apart()
            try:
                return code(second, tool, **params)
            finally:
                connections.close_all()

        def write_and_let_others_read(tree, path, data):
            write(tree, path, data)
            calls = [
                ("read_file", {"path": self.PATH}),
                ("send_mail", {**mail, "attachments": attached}),
            ]
            answers.extend(pool.submit(ask, *each) for each in calls)
            wait_until(lambda: all(each.done() for each in answers) or is_waiting_for_a_lock())

        monkeypatch.setattr(SafeTree, "write", write_and_let_others_read)
        with ThreadPoolExecutor(2) as pool:
            assert code(first, "write_file", path=self.PATH, content="for you") == "OK"
            assert [each.result() for each in answers] == ["NOT_FOUND", "NOT_FOUND"]

    def test_lets_no_worker_write_over_it(self, judges):
        first, second = judges
        assert code(first, "write_file", path=self.PATH, content="mine") == "OK"
        assert code(second, "write_file", path=self.PATH, content="yours") == "SCOPE_DENIED"
        assert call(first, "read_file", path=self.PATH)["result"]["content"] == "mine"
        assert code(first, "write_file", path=self.PATH, content="mine again") == "OK"
        long = f"reports/qa/{'x' * 200}"
        assert code(first, "write_file", path=f"{long}1", content="mine") == "OK"
        assert code(second, "write_file", path=f"{long}2", content="yours") == "OK"
        assert code(first, "read_file", path=f"{long}1") == "OK"

    def test_keeps_each_document_as_it_was_filed(
        self, judges, nexus, django_capture_on_commit_callbacks
    ):
        """A manager's report there is for both judges; what one wrote over it would be, too."""
        first, second = judges
        draft = DocumentDraft(
            kind=DocumentKind.REPORT, folder="reports/qa/", title="t", body="for both",
            report_type="status", department="qa",
        )  # fmt: skip
        with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
            manager = caller_of(nexus, "it_manager")
            report = insert_document(manager, draft, Action.REPORT_FILED, NOW)
        message = {"path": report.path, "content": "for you"}
        assert explain(first, "write_file", message, now=NOW)["error_code"] == "SCOPE_DENIED"
        assert code(first, "write_file", **message) == "SCOPE_DENIED"
        assert services.read_file(caller=second, path=report.path)["content"] == "for both"

    def test_is_explained_as_it_is_decided(self, judges):
        first, second = judges
        assert code(first, "write_file", path=self.PATH, content="mine") == "OK"
        yours = {"path": self.PATH, "content": "yours"}
        assert explain(second, "write_file", yours, now=NOW)["error_code"] == "SCOPE_DENIED"
        assert explain(first, "write_file", yours, now=NOW)["allowed"] is True

    def test_is_read_by_those_above(self, judges, nexus):
        assert code(judges[0], "write_file", path=self.PATH, content="mine") == "OK"
        mail = {"to": "it_manager", "type": "info", "subject": "s", "body": "b"}
        attached = [{"path": self.PATH, "description": "d"}]
        assert code(caller_of(nexus, "ceo"), "send_mail", **mail, attachments=attached) == "OK"


class TestReadFile:
    def test_says_what_is_missing(self, backend):
        assert code(backend, "read_file", path="src/feature/none.py") == "NOT_FOUND"

    def test_refuses_what_is_too_large_without_reading_it(self, backend, clone):
        with (clone / "src/feature/huge").open("wb") as file:
            file.truncate(10 * 1024**3)  # sparse
        assert code(backend, "read_file", path="src/feature/huge") == "TOO_LARGE"

    def test_refuses_what_is_no_text(self, backend, clone):
        (clone / "src/feature/bin").write_bytes(b"\xff\xfe\x00")
        assert code(backend, "read_file", path="src/feature/bin") == "INVALID_PARAMS"

    @pytest.mark.parametrize(
        "path",
        [
            "src/feature/../../../../etc/passwd", "/etc/passwd", "src//feature/a.py",
            "src/feature/%2e%2e/x/../a", "src/feature\\a.py", "src/feature/a\x00.py", "~/x",
            "src/feature-evil/a.py", "src/feature/.env", "src/feature/deep/id_rsa",
            "src/feature/" + "x" * 300, "src/feature/.git/config", "src/feature/x.pem",
            ".git/config",
        ],
    )  # fmt: skip
    def test_refuses_every_other_form(self, backend, clone, path):
        assert code(backend, "read_file", path=path) in {"SCOPE_DENIED", "INVALID_PARAMS"}
        assert code(backend, "write_file", path=path, content="x") in {
            "SCOPE_DENIED",
            "INVALID_PARAMS",
        }

    @pytest.fixture
    def traps(self, backend, clone, tmp_path):
        """Every way out that a folder can hold."""
        secret = tmp_path / "secret"
        secret.write_text("SECRET")
        folder = clone / "src/feature"
        (folder / "link").symlink_to(secret)
        (folder / "chain").symlink_to(folder / "link")
        (folder / "up").symlink_to("../../../..")
        (folder / "self").symlink_to("/proc/self/root")
        os.link(secret, folder / "hard")
        os.mkfifo(folder / "fifo")
        with socket.socket(socket.AF_UNIX) as listening, contextlib.chdir(folder):
            listening.bind("socket")
        if os.geteuid() == 0:
            os.mknod(folder / "device", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
        return folder

    NAMES = ["link", "chain", "up/secret", "self/etc/passwd", "hard", "fifo", "socket", "."]
    AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device files")
    DEVICE = pytest.param("device", marks=AS_ROOT)

    @pytest.mark.parametrize("name", [*NAMES, "up", DEVICE])
    def test_follows_no_way_out(self, backend, traps, name):
        answer = call(backend, "read_file", path=f"src/feature/{name}")
        assert answer["error_code"] == "SCOPE_DENIED", answer

    def test_writes_through_no_way_out(self, backend, traps, tmp_path):
        for name in ("up/new", "self/tmp/new"):
            answer = call(backend, "write_file", path=f"src/feature/{name}", content="x")
            assert answer["error_code"] == "SCOPE_DENIED", name
        for name in ("link", "hard", "fifo"):  # replaced, not followed
            assert code(backend, "write_file", path=f"src/feature/{name}", content="x") == "OK"
        assert (tmp_path / "secret").read_text() == "SECRET"

    def test_by_qa_writes_no_source_through_a_link_in_tests(self, nexus):
        qa = coding(nexus, "qa_worker")
        assert code(qa, "write_file", path="tests/a.py", content="x") == "OK"
        clone = work_tree("nexus", "qa_worker")
        (clone / "src").mkdir()
        (clone / "tests/src").symlink_to(clone / "src")
        assert code(qa, "write_file", path="tests/src/a.py", content="x") == "SCOPE_DENIED"
        assert not (clone / "src/a.py").exists()

    def test_leaks_nothing_while_folders_are_swapped_for_links(self, backend, clone, tmp_path):
        seen = Counter()
        with swapped(clone / "src/feature", tmp_path):
            while seen.total() < 3000 or min(seen["mine"], seen["refused"]) < 50:
                seen[self.seen(backend)] += 1
                assert seen["SECRET"] == 0
                assert seen.total() < 300_000, seen  # the thread never swaps

    def seen(self, caller):
        try:
            found = place_of(caller, "src/feature/d/a.py")
            return found.tree.read(found.path).decode()
        except (Missing, Unsafe):
            return "refused"


@contextmanager
def swapped(folder, tmp_path):
    """A folder `d` that a thread swaps, all the time, for a link to a folder outside."""
    outside, inside, aside, trap = tmp_path / "outside", folder / "d", folder / "e", folder / "t"
    for place, text in [(outside, "SECRET"), (inside, "mine")]:
        place.mkdir()
        (place / "a.py").write_text(text)
    trap.symlink_to(outside)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            inside.rename(aside)
            trap.rename(inside)
            inside.rename(trap)
            aside.rename(inside)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        yield
    finally:
        stop.set()
        swapping.join()


class TestReadCode:
    def test_lets_the_manager_read_a_workers_clone_and_write_nothing(self, nexus, clone):
        manager = coding(nexus, "it_manager")
        path = "agents/backend_worker/workspace/src/feature/a.py"
        assert call(manager, "read_code", path=path)["result"]["content"] == "A = 1\n"
        other = path.replace("backend_worker", "hr_manager")
        assert code(manager, "read_code", path=other) == "SCOPE_DENIED"


class TestReadLogs:
    def test_gives_the_end_of_a_log(self, nexus):
        logs = organisation_folder("nexus") / "logs"
        logs.mkdir(parents=True)
        (logs / "app.log").write_text("".join(f"line {n}\n" for n in range(300_000)))
        devops = coding(nexus, "devops_worker")
        lines = call(devops, "read_logs", path="logs/app.log", lines=2)["result"]["lines"]
        assert lines == ["line 299998", "line 299999"]

    def test_follows_no_link(self, nexus):
        logs = organisation_folder("nexus") / "logs"
        logs.mkdir(parents=True)
        (logs / "app.log").symlink_to("/etc/passwd")
        devops = coding(nexus, "devops_worker")
        assert code(devops, "read_logs", path="logs/app.log") == "SCOPE_DENIED"
