"""Branches, drafts, verdicts and merges: what each step allows and leaves behind."""

import pytest

from contracts.branches import NONE_TAKEN
from contracts.issuing import services as issuing
from contracts.models import Report, Verdict
from ledger.models import Event
from orgchart.models import ContactRule
from tests.contracts import world
from tests.mailroom.world import configure, move_backend_away
from tests.workspace.git.world import BRANCH, needs_walls, run_git
from workspace.git import reviews
from workspace.git.models import Branch, BranchMove
from workspace.git.repositories import bare_of

pytestmark = needs_walls
FILE = "src/search/index.py"


def in_the_way(hands):
    """A file of an agent's that takes over a branch which has it with another text."""
    first = hands.hire()
    hands.pushed(FILE, "one = 1\n")
    world.close(hands.company, first, "cancelled")
    hands.hire("frontend_worker")
    return hands.write(FILE, "mine = 1\n", "frontend_worker")


class TestGitBranch:
    def test_keeps_files_that_were_written_before_it(self, hands):
        hands.hire()
        file = hands.write(FILE, "mine = 1\n")
        assert hands.branch().status == 200
        assert file.read_text() == "mine = 1\n"

    def test_switches_between_contracts_only_without_changes(self, hands):
        first = hands.hire()
        hands.write(FILE)
        assert hands.commit(FILE).status == 200
        second = hands.hire(assigned_branch="feat/other")
        session = hands.company.post(
            "/api/v1/sessions", {"contract": second}, "backend_worker"
        ).body  # fmt: skip
        header = {"X-Nexus-Session": session.get("id") or session["result"]["id"]}
        hands.write(FILE, "changed = 1\n")
        other = {"name": "feat/other", "headers": header}
        refused = hands.call("backend_worker", "git_branch", **other)
        assert (refused.code, FILE in refused.body["message"]) == ("INVALID_TRANSITION", True)
        hands.write(FILE)
        assert hands.call("backend_worker", "git_branch", **other).status == 200
        assert not (hands.tree() / FILE).exists()
        back = hands.company.post("/api/v1/sessions", {"contract": first}, "backend_worker").body
        header = {"X-Nexus-Session": back.get("id") or back["result"]["id"]}
        assert hands.call("backend_worker", "git_branch", name=BRANCH, headers=header).status == 200
        assert (hands.tree() / FILE).exists()

    def test_gives_up_changes_where_the_contract_of_them_is_over(self, hands):
        """They can be committed no more, and no branch could be checked out over them."""
        first = hands.hire()
        hands.pushed(FILE, "one = 1\n")
        hands.write(FILE, "two = 2\n")
        new = hands.write("src/search/new.py", "new = 1\n")
        world.close(hands.company, first, "cancelled")
        hands.hire(assigned_branch="feat/other")
        for refused in (hands.branch(name="feat/other"), hands.commit()):
            assert refused.code == "INVALID_TRANSITION"
            assert "discard_changes" in refused.body["next_action"]
        assert hands.branch(name="feat/other", discard_changes=True).status == 200
        assert not (hands.tree() / FILE).exists()  # it is not on the new branch
        assert new.read_text() == "new = 1\n"  # no branch had it, so nothing takes its place
        assert (hands.commit().status, hands.push(branch="feat/other").status) == (200, 200)
        committed = hands.git("ls-tree", "-r", "--name-only", "feat/other")
        assert ("src/search/new.py" in committed, FILE in committed) == (True, False)

    def test_gives_up_changes_of_its_own_files(self, hands):
        hands.hire()
        gone = "src/search/gone.py"
        hands.write(gone)
        hands.write(FILE, "one = 1\n")
        commit = hands.commit().result["commit"]
        hands.write(FILE, "two = 2\n")
        (hands.tree() / gone).unlink()
        kept = hands.branch()
        assert (kept.status, (hands.tree() / FILE).read_text()) == (200, "two = 2\n")
        assert hands.branch(discard_changes=True).result == {"branch": BRANCH, "commit": commit}
        assert (hands.tree() / FILE).read_text() == "one = 1\n"
        assert (hands.tree() / gone).exists()
        assert hands.commit().code == "INVALID_TRANSITION"  # nothing changed

    def test_gives_up_what_is_in_the_way_of_its_files(self, hands):
        mine = in_the_way(hands)
        assert hands.branch("frontend_worker").status == 200
        assert mine.read_text() == "mine = 1\n"
        assert hands.branch("frontend_worker", discard_changes=True).status == 200
        assert mine.read_text() == "one = 1\n"

    def test_gives_up_at_its_first_checkout_what_was_written_before(self, hands):
        mine = in_the_way(hands)
        assert hands.branch("frontend_worker", discard_changes=True).status == 200
        assert mine.read_text() == "one = 1\n"

    def test_of_another_open_contract_is_refused(self, hands):
        hands.hire()
        hands.pushed()
        hands.hire("frontend_worker")
        assert hands.branch("frontend_worker").code == "BRANCH_DENIED"

    def test_is_continued_by_the_next_contract(self, hands):
        contract = hands.hire()
        commit = hands.pushed()
        world.close(hands.company, contract, "cancelled")
        hands.hire("frontend_worker")
        assert hands.branch("frontend_worker").result["commit"] == commit

    def test_brings_no_work_of_an_agent_that_its_issuer_neither_ordered_nor_manages(self, hands):
        """Spec: mail 38: a branch is no mailbox between workers of two managers."""
        contract = hands.hire()
        hands.pushed()
        world.close(hands.company, contract, "cancelled")
        hands.hire("frontend_worker", by="product_manager")
        assert hands.branch("frontend_worker").code == "BRANCH_DENIED"
        assert not (hands.tree("frontend_worker") / FILE).exists()

    @pytest.mark.parametrize("is_behind", [False, True])
    def test_takes_over_no_work_outside_of_its_own_scope(self, hands, is_behind):
        """What QA failed of one contract does not ride on the PASS of another."""
        mine = {"workspace_scope": ["src/page/"]}
        first = hands.hire()
        if is_behind:  # the other contract was there, with a draft, before the push
            hands.hire("frontend_worker", **mine)
            assert hands.branch("frontend_worker").status == 200
        hands.pushed()
        hands.submit(first)
        hands.judge(first, "FAIL")
        world.close(hands.company, first, "failed")
        if not is_behind:
            hands.hire("frontend_worker", **mine)
        refused = hands.branch("frontend_worker")
        assert (refused.code, "index.py" in str(refused.body)) == ("BRANCH_DENIED", False)
        page = "src/page/page.py"
        hands.write(page, handle="frontend_worker")
        assert hands.commit(page, handle="frontend_worker").code == "BRANCH_DENIED"
        assert hands.push("frontend_worker").code == "INVALID_TRANSITION"
        assert hands.tip() == Report.objects.get(contract=first).commit


class TestBranchesInEachOther:
    """Git keeps `feat` and `feat/indexer` in one repository as little as a file and a folder."""

    @pytest.fixture
    def unchecked(self, monkeypatch):
        """Contracts as they were issued before, or at the same moment."""
        monkeypatch.setattr(issuing, "names_in_the_way", lambda *_: NONE_TAKEN)

    def issue(self, hands, branch):
        return hands.call(
            "it_manager", "create_contract", to="frontend_worker", title="Page", body="Build it.",
            mode="coding", workspace_scope=["src/page/"], assigned_branch=branch,
        )  # fmt: skip

    @pytest.mark.parametrize("name", ["feat", f"{BRANCH}/page", "main/page"])
    @pytest.mark.parametrize("is_pushed", [False, True])
    def test_are_refused_when_a_contract_is_issued(self, hands, name, is_pushed):
        contract = hands.hire()
        if is_pushed:
            hands.pushed()
            world.close(hands.company, contract, "cancelled")
        elif name == "main/page":
            assert hands.branch().status == 200  # the repository is there
        refused = self.issue(hands, name)
        assert (refused.code, BRANCH in refused.body["message"].replace(name, "")) == (
            "BRANCH_DENIED", False
        )  # fmt: skip

    def test_are_free_again_where_nothing_was_pushed(self, hands):
        world.close(hands.company, hands.hire(), "cancelled")
        assert self.issue(hands, "feat").status == 200

    @pytest.mark.parametrize("name", ["feat", f"{BRANCH}/page"])
    @pytest.mark.usefixtures("unchecked")
    def test_are_refused_by_git_without_the_name_of_the_other(self, hands, name):
        hands.hire()
        hands.pushed()
        hands.hire("frontend_worker", assigned_branch=name, workspace_scope=["src/page/"])
        hands.write("src/page/page.py", handle="frontend_worker")
        for refused in (
            hands.branch("frontend_worker", name),
            hands.commit("src/page/page.py", handle="frontend_worker"),
        ):
            assert refused.code == "BRANCH_DENIED"
            assert BRANCH not in str(refused.body).replace(name, "")

    @pytest.mark.usefixtures("unchecked")
    def test_are_refused_at_the_push_of_the_later_one(self, hands):
        hands.hire("frontend_worker", assigned_branch="feat", workspace_scope=["src/page/"])
        hands.write("src/page/page.py", handle="frontend_worker")
        assert hands.commit("src/page/page.py", handle="frontend_worker").status == 200
        hands.hire()
        hands.pushed()
        refused = hands.push("frontend_worker", "feat")
        assert refused.code == "BRANCH_DENIED"
        assert BRANCH not in str(refused.body)


class TestGitCommit:
    def test_without_changes_is_refused(self, hands):
        hands.hire()
        hands.write(FILE)
        assert hands.commit(FILE).status == 200
        assert hands.commit(FILE).code == "INVALID_TRANSITION"

    def test_of_a_file_that_is_not_there_names_it(self, hands):
        hands.hire()
        answer = hands.commit("src/search/none.py")
        assert (answer.code, "none.py" in answer.body["message"]) == ("INVALID_PARAMS", True)

    def test_leaves_out_what_was_not_named(self, hands):
        hands.hire()
        hands.write(FILE)
        hands.write("src/search/other.py")
        commit = hands.commit(FILE).result["commit"]
        listed = run_git("--git-dir", str(hands.drafts), "ls-tree", "-r", "--name-only", commit)
        assert listed == FILE

    def test_keeps_deletions(self, hands):
        hands.hire()
        file = hands.write(FILE)
        assert hands.commit(FILE).status == 200
        file.unlink()
        assert hands.commit(FILE).status == 200
        listed = run_git("--git-dir", str(hands.drafts), "ls-tree", "-r", hands.draft.commit)
        assert listed == ""


class TestGitPush:
    def test_needs_a_commit(self, hands):
        hands.hire()
        assert hands.push().code == "INVALID_TRANSITION"

    def test_twice_is_one_move(self, hands):
        hands.hire()
        hands.pushed()
        assert hands.push().status == 200
        assert BranchMove.objects.filter(kind="push").count() == 1
        assert Event.objects.filter(action="branch.pushed").count() == 1

    def test_after_the_submission_is_refused(self, hands):
        contract = hands.hire()
        tip = hands.pushed()
        hands.write(FILE, "more = 1\n")
        assert hands.commit(FILE).status == 200
        hands.submit(contract)
        assert hands.push().code == "MODE_DENIED"
        assert hands.tip() == tip

    def test_that_was_broken_off_is_undone_by_the_next_call(self, hands):
        hands.hire()
        tip = hands.pushed()
        bare = bare_of(hands.company.organisation)
        bare.set_ref(f"refs/heads/{BRANCH}", bare.commit_at("refs/heads/main"))
        hands.write(FILE, "more = 1\n")
        assert hands.commit(FILE).status == 200
        answer = hands.push().result
        assert (hands.tip(), answer["commit"] == tip) == (answer["commit"], False)


class TestAVerdict:
    def test_names_the_commit_that_was_submitted(self, hands):
        contract = hands.hire()
        tip = hands.pushed()
        hands.submit(contract)
        given = hands.judge(contract)
        assert given["commit"] == tip == Report.objects.get(submission=1).commit
        read = hands.call("it_manager", "list_contracts", contract_id=contract).result
        assert read["verdicts"][0]["commit"] == read["reports"][0]["commit"] == tip
        event = Event.objects.get(action="verdict.given")
        assert event.details["commit"] == tip

    def test_on_work_without_a_push_names_none_and_merges_nothing(self, hands):
        contract = hands.hire()
        hands.submit(contract)
        assert hands.judge(contract)["commit"] is None
        hands.lead()
        assert hands.review(approve=True).code == "NOT_FOUND"


class TestReviewPr:
    @pytest.fixture
    def judged(self, hands):
        contract = hands.hire()
        hands.pushed()
        hands.submit(contract)
        hands.judge(contract)
        hands.lead()
        return contract

    def test_merges_what_qa_passed(self, hands, judged):
        answer = hands.review(approve=True).result
        assert (answer["merged"], hands.tip("main")) == (True, answer["merge_commit"])
        move = BranchMove.objects.get(kind="merge")
        assert (move.verdict, move.merged) == (Verdict.objects.get(), hands.tip())
        mail = hands.call("backend_worker", "read_inbox", status="all").result["mails"][0]
        assert (mail["from"], mail["subject"]) == ("it_manager", f"{BRANCH} is merged")

    def test_tells_the_comment_to_no_assignee_that_was_moved_away(self, hands, judged):
        """Spec: mail 43."""
        move_backend_away(hands.company)
        assert hands.review(comment="For your eyes.").status == 200
        event = Event.objects.get(action="branch.reviewed")
        assert (event.reason, event.for_agent_id) == (
            "For your eyes.",
            hands.company.agent("it_manager").id,
        )
        mail = hands.call("backend_worker", "read_inbox", status="all").result["mails"][0]
        assert (mail["from"], mail["subject"]) == ("system", f"{BRANCH} is reviewed")

    def test_tells_the_comment_where_the_rules_carry_no_info(self, hands, judged):
        """What is said of an act follows its contract, as the reason of a closed one does."""
        rules = ContactRule.objects.filter(
            organisation=hands.company.organisation, sender__name="it_manager"
        )
        rules.filter(recipient__name="backend_worker").update(types=["report", "contract"])
        configure(hands.company)
        assert hands.review(comment="For your eyes.").status == 200
        mails = hands.call("backend_worker", "read_inbox", status="all").result["mails"]
        assert (mails[0]["from"], mails[0]["subject"]) == ("it_manager", f"{BRANCH} is reviewed")

    def test_merges_once(self, hands, judged):
        first = hands.review(approve=True).result
        again = hands.review(approve=True).result
        assert again["merge_commit"] == first["merge_commit"]
        assert BranchMove.objects.filter(kind="merge").count() == 1
        assert Event.objects.filter(action="branch.merged").count() == 1

    def test_refuses_a_commit_that_qa_has_not_seen(self, hands, judged):
        bare = bare_of(hands.company.organisation)
        tip, main = hands.tip(), hands.tip("main")
        tree = bare.run("rev-parse", f"{main}^{{tree}}").decode().strip()
        author = reviews.Signature(name="x", email="x@x", at=world.now())
        later = bare.commit(tree, [tip], "later", author)
        Branch.objects.filter(name=BRANCH).update(commit=later)
        assert hands.review(approve=True).code == "APPROVAL_REQUIRED"
        assert hands.tip("main") == main

    def test_refuses_another_commit_than_the_one_that_was_read(self, hands, judged):
        assert hands.review(approve=True, commit="f" * 40).code == "VERSION_MISMATCH"

    @pytest.mark.parametrize("finding", ["FAIL", None])
    def test_refuses_without_a_pass(self, hands, finding):
        contract = hands.hire()
        hands.pushed()
        hands.submit(contract)
        if finding:
            hands.judge(contract, finding)
        hands.lead()
        main = hands.tip("main")
        assert hands.review(approve=True).code == "APPROVAL_REQUIRED"
        assert hands.tip("main") == main
        assert not BranchMove.objects.filter(kind="merge").exists()

    def test_asks_for_a_new_verdict_after_rework(self, hands, judged):
        world.close(hands.company, judged, "rework")
        hands.pushed(text="better = 1\n")
        assert hands.review(approve=True).code == "INVALID_TRANSITION"
        hands.submit(judged)
        assert hands.review(approve=True).code == "APPROVAL_REQUIRED"
        hands.judge(judged)
        assert hands.review(approve=True).status == 200
        assert hands.git("show", f"main:{FILE}") == "better = 1"

    def test_says_where_both_sides_changed_the_same_lines(self, hands, judged):
        moved = hands.put_on_main(FILE, "theirs\n")
        answer = hands.review(approve=True)
        assert (answer.code, answer.body["details"]["conflicts"]) == ("INVALID_TRANSITION", [FILE])
        assert hands.tip("main") == moved
        world.close(hands.company, judged, "rework")
        assert hands.branch(take_in_main=True).status == 200
        assert "<<<<<<<" in (hands.tree() / FILE).read_text()
        hands.write("src/search/other.py")
        assert hands.commit("src/search/other.py").code == "INVALID_TRANSITION"
        hands.write(FILE, "both = 1\n")
        assert hands.commit(FILE).status == 200
        assert hands.push().status == 200
        hands.submit(judged)
        hands.judge(judged)
        assert hands.review(approve=True).result["merged"]
        assert hands.git("show", f"main:{FILE}") == "both = 1"

    @pytest.mark.parametrize("who", ["qa_worker", "backend_worker", "ceo"])
    def test_is_the_it_managers_tool(self, hands, who):
        hands.hire()
        assert hands.review(who).code == "TOOL_NOT_BOUND"

    def test_finds_no_branch_of_another_department(self, hands):
        hands.lead()
        assert hands.review(branch="feat/none").code == "NOT_FOUND"
        assert hands.review(branch="main").code == "NOT_FOUND"

    def test_of_one_of_several_contracts_names_it(self, hands):
        first = hands.hire()
        hands.pushed()
        hands.hire("frontend_worker")
        hands.lead()
        assert hands.review().code == "INVALID_PARAMS"
        assert hands.review(contract_id=first).result["contract_id"] == first
