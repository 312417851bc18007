"""What QA sees of work that it judges: the submitted commit, whatever its author writes now."""

import threading
from contextlib import suppress
from functools import partial

import pytest

from core.database import in_transaction
from tests.concurrency import at_once
from tests.contracts import world
from tests.workspace.git.world import SCOPE, needs_walls
from workspace.git import judged_commit
from workspace.models import Run
from workspace.runs import services
from workspace.tree import agent_folder

pytestmark = [needs_walls, pytest.mark.django_db(transaction=True)]
SOURCE, TEST = f"{SCOPE}adding.py", "tests/test_adding.py"
CHECK = f"""import sys

sys.path.insert(0, "/work/{SCOPE}")
from adding import add


def test_it():
    assert add(1, 2) == 3
"""


@pytest.fixture
def submitted(hands):
    """A contract whose code was pushed and submitted, and its commit; QA is in coding mode."""
    contract = hands.hire()
    hands.write(SOURCE, "def add(a, b):\n    return a + b\n")
    hands.write(TEST, CHECK)
    assert hands.commit(SOURCE, TEST).status == 200
    commit = hands.push().result["commit"]
    hands.submit(contract)
    hands.hire("qa_worker", assigned_branch="", workspace_scope=[SCOPE])
    hands.tree("qa_worker")
    return contract, commit


class TestAJudge:
    def test_reads_the_submitted_commit_not_what_its_author_writes_now(self, hands, submitted):
        hands.write(SOURCE, "def add(a, b):\n    return 0\n")
        read = hands.call("qa_worker", "read_file", path=SOURCE)
        assert read.result["content"] == "def add(a, b):\n    return a + b\n"

    @pytest.mark.parametrize(
        "attributes", ["*.py ident", "*.py eol=crlf", "*.py working-tree-encoding=UTF-16LE"]
    )
    def test_reads_the_bytes_of_the_commit_whatever_its_attributes_say(self, hands, attributes):
        contract, text = hands.hire(), "# $Id$\n"
        hands.write(f"{SCOPE}.gitattributes", f"{attributes}\n")
        hands.write(SOURCE, text)
        assert hands.commit(SOURCE, f"{SCOPE}.gitattributes").status == 200
        commit = hands.push().result["commit"]
        hands.submit(contract)
        hands.hire("qa_worker", assigned_branch="", workspace_scope=[SCOPE])
        hands.tree("qa_worker")
        assert hands.git("cat-file", "blob", f"{commit}:{SOURCE}") == text.strip()
        assert hands.call("qa_worker", "read_file", path=SOURCE).result["content"] == text

    @pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "once"}])
    @pytest.mark.parametrize("tool", ["read_file", "run_test"])
    def test_has_it_checked_out_without_a_transaction(
        self, hands, submitted, monkeypatch, tool, headers
    ):
        original, open_meanwhile = judged_commit._check_out, []

        def watched(*place):
            open_meanwhile.append(in_transaction())
            original(*place)

        monkeypatch.setattr(judged_commit, "_check_out", watched)
        params = {"path": SOURCE} if tool == "read_file" else {"paths": [TEST]}
        for _ in range(2):
            assert hands.company.call("qa_worker", tool, headers, **params).status == 200
        assert open_meanwhile == [False]

    def test_has_it_checked_out_once_by_calls_at_once(self, hands, submitted, monkeypatch):
        original, meeting, made = judged_commit._check_out, threading.Barrier(2), []

        def together(*place):
            with suppress(threading.BrokenBarrierError):
                meeting.wait(1)
            original(*place)
            made.append(place)

        monkeypatch.setattr(judged_commit, "_check_out", together)
        read = partial(hands.call, "qa_worker", "read_file", path=SOURCE)
        assert [answer.status for answer in at_once([read, read])] == [200, 200]
        assert len(made) == 1

    def test_is_told_before_what_it_may_read_and_nothing_is_checked_out(self, hands, submitted):
        def asked(path):
            answer = hands.company.post(
                "/api/v1/explain", {"tool": "read_file", "params": {"path": path}}, "qa_worker"
            )
            return answer.body["allowed"] or answer.body["error_code"]

        assert asked(SOURCE) is True
        assert asked(f"{SCOPE}none.py") == "NOT_FOUND"
        assert asked(f"{SCOPE}.env") == "SCOPE_DENIED"
        assert not (agent_folder(hands.company.organisation.slug, "qa_worker") / "judged").exists()

    def test_runs_it_and_the_verdict_names_commit_and_run(self, hands, submitted):
        contract, commit = submitted
        hands.write(SOURCE, "def add(a, b):\n    return 0\n")
        ran = hands.call("qa_worker", "run_test", paths=[TEST]).result
        assert (ran["exit_code"], ran["commit"]) == (0, commit), ran["output"]
        verdict = hands.judge(contract)
        assert (verdict["commit"], verdict["run_digest"]) == (commit, ran["output_sha256"])
        assert Run.objects.get().commit == commit

    def test_adds_tests_of_its_own(self, hands, submitted):
        own = "def test_more():\n    assert False\n"
        wrote = hands.call("qa_worker", "write_file", path="tests/test_more.py", content=own)
        assert wrote.status == 200
        assert hands.call("qa_worker", "run_test", paths=["tests/test_more.py"]).result[
            "exit_code"
        ] == 1  # fmt: skip
        read = hands.call("qa_worker", "read_file", path="tests/test_more.py")
        assert read.result["content"] == own

    def test_writes_none_of_it(self, hands, submitted):
        wrote = hands.call("qa_worker", "write_file", path=SOURCE, content="x")
        assert wrote.code == "SCOPE_DENIED"

    def test_sees_the_next_submission_and_keeps_no_earlier_one(self, hands, submitted):
        contract, first = submitted
        assert hands.call("qa_worker", "read_file", path=SOURCE).status == 200
        hands.judge(contract, "FAIL")
        hands.lead()
        closed = hands.call("it_manager", "close_contract", contract_id=contract,
                            outcome="rework", reason="Again.")  # fmt: skip
        assert closed.status == 200, closed
        hands.write(SOURCE, "def add(a, b):\n    return b + a\n")
        assert hands.commit(SOURCE).status == 200
        second = hands.push().result["commit"]
        hands.submit(contract)
        read = hands.call("qa_worker", "read_file", path=SOURCE)
        assert read.result["content"] == "def add(a, b):\n    return b + a\n"
        kept = agent_folder(hands.company.organisation.slug, "qa_worker") / "judged"
        assert [path.name for path in kept.iterdir()] == [second] != [first]

    def test_runs_one_to_the_end_though_it_reads_another_meanwhile(
        self, hands, submitted, monkeypatch
    ):
        """Else its files vanish below the run, which is evidence for the verdict on it."""
        other, run = "src/page/page.py", services.driver.run

        def meanwhile(program, **options):
            contract = hands.hire(
                "frontend_worker", workspace_scope=["src/page/"], assigned_branch="feat/page"
            )
            hands.write(other, "page = 1\n", handle="frontend_worker")
            assert hands.commit(other, handle="frontend_worker").status == 200
            hands.push("frontend_worker", "feat/page")
            world.submit(hands.company, contract, by="frontend_worker")
            hands.judge(submitted[0])
            assert hands.call("qa_worker", "read_file", path=other).status == 200
            return run(program, **options)

        with monkeypatch.context() as patched:
            patched.setattr(services.driver, "run", meanwhile)
            ran = hands.call("qa_worker", "run_test", paths=[TEST]).result
        assert ran["exit_code"] == 0, ran["output"]

    def test_keeps_nothing_of_a_check_out_that_was_killed(self, hands, submitted):
        """It would count in QA's home for ever, and no path names it."""
        _, commit = submitted
        kept = agent_folder(hands.company.organisation.slug, "qa_worker") / "judged"
        half = kept / ".new-0123456789abcdef" / "src"
        half.mkdir(parents=True)
        (half / "half").write_text("half")
        assert hands.call("qa_worker", "read_file", path=SOURCE).status == 200
        assert [path.name for path in kept.iterdir()] == [commit]

    def test_reads_it_by_no_other_path(self, hands, submitted):
        _, commit = submitted
        assert hands.call("qa_worker", "read_file", path=SOURCE).status == 200
        copy = f"agents/qa_worker/judged/{commit}/{SOURCE}"
        assert hands.call("qa_worker", "read_file", path=copy).code == "SCOPE_DENIED"
        mail = {"to": "it_manager", "type": "info", "subject": "S", "body": "B"}
        sent = hands.call("qa_worker", "send_mail", attachments=[{"path": copy}], **mail)
        assert sent.code == "SCOPE_DENIED"

    def test_sees_each_of_two_submissions(self, hands, submitted):
        first, _ = submitted
        other = "src/page/page.py"
        second = hands.hire(
            "frontend_worker", workspace_scope=["src/page/"], assigned_branch="feat/page"
        )
        hands.write(other, "page = 1\n", handle="frontend_worker")
        assert hands.commit(other, handle="frontend_worker").status == 200
        commit = hands.push("frontend_worker", "feat/page").result["commit"]
        world.submit(hands.company, second, by="frontend_worker")
        assert hands.call("qa_worker", "read_file", path=other).status == 200
        assert hands.judge(second)["commit"] == commit
        assert hands.call("qa_worker", "read_file", path=SOURCE).status == 200
        ran = hands.call("qa_worker", "run_test", paths=[TEST]).result
        assert hands.judge(first)["run_digest"] == ran["output_sha256"]
        assert hands.call("qa_worker", "read_file", path=other).status == 200


class TestEverybodyElse:
    def test_sees_nothing_of_it(self, hands, submitted):
        hands.hire("frontend_worker", assigned_branch="feat/page")
        hands.tree("frontend_worker")
        read = hands.call("frontend_worker", "read_file", path=SOURCE)
        assert read.code == "NOT_FOUND"
