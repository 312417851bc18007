"""Which submitted commit a judge sees, of however many that are in review."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from contracts import services
from tests.contracts import world
from workspace.git.judged_commit import _commit_to_judge

pytestmark = pytest.mark.django_db


@pytest.fixture
def in_review(nexus, monkeypatch):
    """Contracts whose submissions name these commits, oldest first."""

    def submitted(*commits):
        made = []
        for commit in commits:
            monkeypatch.setattr(services, "submitted_commit", lambda _, name=commit: name)
            contract = world.issue(
                nexus, coding=True, workspace_scope=["src/"], assigned_branch=f"feature/x{commit}"
            )
            world.accept(nexus, contract)
            world.submit(nexus, contract)
            made.append(contract)
        return made

    return submitted


class TestTheCommitToJudge:
    def test_is_the_newest_that_the_judge_has_not_judged(self, nexus, in_review):
        contracts = in_review("aaaa", "bbbb", "cccc")
        judge = nexus.caller("qa_worker")
        assert _commit_to_judge(judge) == "cccc"
        world.judge(nexus, contracts[2])
        assert _commit_to_judge(judge) == "bbbb"
        world.judge(nexus, contracts[0])
        world.judge(nexus, contracts[1])
        assert _commit_to_judge(judge) == "cccc"

    def test_is_that_of_a_new_submission(self, nexus, in_review, monkeypatch):
        (contract,) = in_review("aaaa")
        world.judge(nexus, contract, "FAIL")
        newer = in_review("bbbb")
        world.judge(nexus, *newer)
        world.close(nexus, contract, "rework")
        monkeypatch.setattr(services, "submitted_commit", lambda _: "cccc")
        world.submit(nexus, contract)
        assert _commit_to_judge(nexus.caller("qa_worker")) == "cccc"

    def test_is_none_without_a_pushed_commit(self, nexus, in_review):
        in_review("")
        assert _commit_to_judge(nexus.caller("qa_worker")) == ""
        assert _commit_to_judge(nexus.caller("backend_worker")) == ""

    def test_is_asked_for_in_one_statement_however_many_there_are(self, nexus, in_review):
        asked = []
        judge = nexus.caller("qa_worker")
        for commits in (("aaaa",), ("bbbb", "cccc", "dddd")):
            for contract in in_review(*commits):
                world.judge(nexus, contract)
            with CaptureQueriesContext(connection) as queries:
                _commit_to_judge(judge)
            asked.append(len(queries))
        assert asked == [1, 1]
