"""Two at once on one branch: pushes, a push and a merge, two reviewers, two first uses."""

import time
from functools import partial

import pytest
from django.utils import timezone

from contracts.models import Contract
from core.budget import Budget
from ledger.models import Event
from orgchart.keys import revoke_key
from orgchart.models import Role
from orgchart.pauses.services import pause_agent
from orgchart.services import change_policy
from orgchart.staffing import deactivate_agent
from tests.company import load_company
from tests.contracts import world
from tests.patience import wait_until
from tests.workspace.git.world import BRANCH, Hands, needs_walls
from tests.workspace.watching import meanwhile
from workspace import outside_calls
from workspace.git import branches, pushing, reviews
from workspace.git.models import BranchMove, Repository

pytestmark = [needs_walls, pytest.mark.django_db(transaction=True)]
FILE = "src/search/index.py"


@pytest.fixture(autouse=True)
def places(monkeypatch):
    """So that calls of one agent meet."""
    monkeypatch.setattr(outside_calls, "PLACES", Budget(16))


@pytest.fixture
def nexus(transactional_db):
    return load_company("nexus")


def codes(answers):
    return sorted(each.code for each in answers)


class TestAtOnce:
    def test_two_first_uses_make_one_repository(self, nexus):
        hands = Hands(nexus)
        hands.hire()
        hands.hire("frontend_worker", assigned_branch="feat/page")
        calls = [hands.branch, lambda: hands.branch("frontend_worker", "feat/page")]
        assert codes(world.at_once(calls)) == ["OK", "OK"]
        assert Repository.objects.count() == 1

    def test_two_pushes_are_one_move(self, nexus):
        hands = Hands(nexus)
        hands.hire()
        hands.write(FILE)
        assert hands.commit(FILE).status == 200
        assert codes(world.at_once([hands.push, hands.push])) == ["OK", "OK"]
        assert BranchMove.objects.filter(kind="push").count() == 1
        assert hands.tip() == hands.draft.commit

    def test_two_reviewers_merge_once(self, nexus):
        hands = Hands(nexus)
        contract = hands.hire()
        hands.pushed()
        hands.submit(contract)
        hands.judge(contract)
        hands.lead()
        answers = world.at_once([lambda: hands.review(approve=True)] * 2)
        assert codes(answers) == ["OK", "OK"]
        assert len({each.result["merge_commit"] for each in answers}) == 1
        assert BranchMove.objects.filter(kind="merge").count() == 1
        assert hands.tip("main") == answers[0].result["merge_commit"]

    def test_a_push_and_a_submission_leave_a_verdict_on_what_is_there(self, nexus):
        hands = Hands(nexus)
        contract = hands.hire()
        hands.pushed()
        hands.write(FILE, "more = 1\n")
        assert hands.commit(FILE).status == 200
        world.at_once([hands.push, lambda: hands.submit(contract)])
        hands.judge(contract)
        hands.lead()
        answer = hands.review(approve=True)
        assert answer.code in ("OK", "APPROVAL_REQUIRED")
        passed = hands.review().result["judged_commit"]
        assert (answer.code == "OK") == (passed == hands.tip(BRANCH))

    def test_two_merges_of_two_branches_are_both_in_the_main_branch(self, nexus):
        hands = Hands(nexus)
        made = {"backend_worker": hands.hire()}
        hands.pushed()
        made["frontend_worker"] = hands.hire("frontend_worker", assigned_branch="feat/page")
        hands.write("src/search/page.js", handle="frontend_worker")
        assert hands.commit("src/search/page.js", handle="frontend_worker").status == 200
        assert hands.push("frontend_worker", "feat/page").status == 200
        for handle, contract in made.items():
            world.submit(nexus, contract, by=handle)
            hands.judge(contract)
        hands.lead()
        answers = world.at_once(
            [
                lambda: hands.review(approve=True),
                lambda: hands.review(approve=True, branch="feat/page"),
            ]
        )
        assert codes(answers) == ["OK", "OK"]
        hands.tip("main")
        listed = hands.git("ls-tree", "-r", "--name-only", "main").split()
        assert listed == [FILE, "src/search/page.js"]


def merge_while(nexus, monkeypatch, act, *, is_told=True):
    """Approve, and act while git merges; the code of the answer, and whether main moved."""
    hands = Hands(nexus)
    contract = hands.hire()
    hands.lead()
    hands.pushed()
    hands.submit(contract)
    hands.judge(contract)
    before, merge = hands.tip("main"), reviews._merge

    def then(*args):
        merged = merge(*args)
        act()
        return merged

    monkeypatch.setattr(reviews, "_merge", then)
    if not is_told:
        monkeypatch.setattr(reviews, "_telling", lambda *_: None)
    code = hands.review(approve=True).code
    return code, hands.tip("main") != before


class TestAReviewerThatLeaves:
    @pytest.mark.parametrize("is_told", [True, False])
    def test_while_git_merges_moves_nothing(self, nexus, monkeypatch, is_told):
        def leave():
            deactivate_agent(
                handle="it_manager", caller=nexus.system, now=timezone.now(), reason="r"
            )

        answer = merge_while(nexus, monkeypatch, leave, is_told=is_told)
        assert answer == ("AGENT_INACTIVE", False)


class TestAReviewerThatLosesItsRight:
    """What git merged for minutes moves no branch for an agent that may not do it by now."""

    def test_to_the_tool_merges_nothing(self, nexus, monkeypatch):
        def take_away(_):
            role = Role.objects.get(organisation=nexus.organisation, name="it_manager")
            role.tools.remove("review_pr")
            role.save()

        act = partial(
            change_policy, organisation_id=nexus.organisation.id, apply=take_away,
            caller=nexus.system, action="role.changed", now=timezone.now(),
        )  # fmt: skip
        assert merge_while(nexus, monkeypatch, act) == ("TOOL_NOT_BOUND", False)

    def test_to_coding_mode_merges_nothing(self, nexus, monkeypatch):
        def close():
            lead = Contract.objects.get(assignee__handle="it_manager")
            world.close(nexus, lead.id, "cancelled", by="ceo")

        assert merge_while(nexus, monkeypatch, close) == ("MODE_DENIED", False)

    def test_by_a_pause_ends_the_call_that_it_began(self, nexus, monkeypatch):
        act = partial(
            pause_agent, person=nexus.person("Board"), agent="it_manager", reason="r",
            now=timezone.now(),
        )  # fmt: skip
        assert merge_while(nexus, monkeypatch, act) == ("OK", True)


def take_away_tool(nexus, tool):
    def act(_):
        role = Role.objects.get(organisation=nexus.organisation, name="backend_worker")
        role.tools.remove(tool)
        role.save()

    change_policy(
        organisation_id=nexus.organisation.id, apply=act, caller=nexus.system,
        action="role.changed", now=timezone.now(),
    )  # fmt: skip


def revoke(nexus, _tool):
    key = nexus.key("backend_worker")
    revoke_key(prefix=key, caller=nexus.system, now=timezone.now(), reason="r")


@pytest.mark.parametrize(
    ("take", "code"), [(take_away_tool, "TOOL_NOT_BOUND"), (revoke, "UNAUTHENTICATED")]
)
class TestAMakerThatLosesItsRight:
    """While git works, or the call waits for another one, as a reviewer (Spec: hands 30)."""

    def test_commits_nothing(self, nexus, monkeypatch, take, code):
        hands = Hands(nexus)
        hands.hire()
        assert hands.branch().status == 200
        before, store = hands.draft.commit, branches._store
        hands.write(FILE)

        def then(*args):
            new = store(*args)
            take(nexus, "git_commit")
            return new

        monkeypatch.setattr(branches, "_store", then)
        assert hands.commit(FILE).code == code
        assert hands.draft.commit == before

    def test_pushes_nothing(self, nexus, monkeypatch, take, code):
        hands = Hands(nexus)
        hands.hire()
        hands.write(FILE)
        assert hands.commit(FILE).status == 200
        push = pushing._push

        def then(*args):
            push(*args)
            take(nexus, "git_push")

        monkeypatch.setattr(pushing, "_push", then)
        assert hands.push().code == code
        assert not BranchMove.objects.filter(kind="push").exists()


class TestARunMeanwhile:
    """A checkout brings files that the agent may not read while its program looks (hands 6)."""

    LOOK = (
        "import contextlib, time\n\n\ndef test_it():\n"
        "    for _ in range(60):\n"
        "        with contextlib.suppress(OSError), open('/work/src/search/.env') as file:\n"
        "            raise AssertionError(file.read())\n"
        "        time.sleep(0.1)\n"
    )

    @pytest.mark.parametrize("is_there_before", [False, True])
    def test_does_not_see_them(self, nexus, is_there_before):
        hands = Hands(nexus)
        hands.hire()
        hands.tree()
        if is_there_before:
            hands.put_on_main("src/search/.env", "FIRST")
        assert hands.branch().status == 200
        hands.write("src/search/test_look.py", self.LOOK)
        hands.put_on_main("src/search/.env", "SECRET")
        began = Event.objects.filter(action="run.started")

        def take_in_main():
            wait_until(began.exists)
            time.sleep(1)
            assert hands.branch(take_in_main=True).status == 200

        with meanwhile(take_in_main):
            done = hands.call("backend_worker", "run_test", paths=["src/search/test_look.py"])
        assert "SECRET" not in done.result["output"]
        assert done.result["exit_code"] == 0, done.result["output"]
        assert (hands.tree() / "src/search/.env").read_text() == "SECRET"
