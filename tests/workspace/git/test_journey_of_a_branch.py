"""A branch from its first checkout to its merge, with real git."""

from ledger.models import Event
from tests.workspace.git.world import BRANCH, needs_walls
from workspace.git.models import BranchMove

pytestmark = needs_walls


class TestABranch:
    def test_is_checked_out_committed_pushed_judged_and_merged(self, hands):
        contract = hands.hire()
        began = hands.branch().result
        assert began["branch"] == BRANCH
        hands.write("src/search/index.py", "INDEX = {}\n")
        made = hands.commit("src/search/index.py").result
        assert made["commit"] != began["commit"]
        assert hands.push().result == made
        assert hands.tip() == made["commit"]
        assert hands.git("log", "-1", "--format=%an <%ae>", BRANCH) == (
            "backend_worker <backend_worker@nexus.invalid>"
        )
        hands.submit(contract)
        hands.lead()
        seen = hands.review().result
        assert "+INDEX = {}" in seen["difference"]
        assert (seen["files"], seen["merged"]) == (["src/search/index.py"], False)
        assert hands.review(approve=True).code == "APPROVAL_REQUIRED"
        assert hands.judge(contract)["commit"] == made["commit"]
        merged = hands.review(approve=True, commit=made["commit"]).result
        assert merged["merged"]
        assert hands.tip("main") == merged["merge_commit"]
        assert hands.git("show", "main:src/search/index.py") == "INDEX = {}"
        assert list(BranchMove.objects.order_by("id").values_list("kind", flat=True)) == [
            "create", "push", "merge",
        ]  # fmt: skip
        actions = Event.objects.filter(action__startswith="branch.").order_by("seq")
        assert [event.action for event in actions] == [
            "branch.checked_out", "branch.committed", "branch.pushed", "branch.reviewed",
            "branch.merged",
        ]  # fmt: skip
