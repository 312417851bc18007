"""Branches: pure tables."""

import pytest

from contracts.branches import TakenNames
from core.decision import Allow, Code, Deny
from workspace import rules
from workspace.runs import rules as run_rules

MINE = "feature/login"


class TestBranch:
    def test_is_the_contracts_own(self):
        assert isinstance(rules.can_use_branch("feature/login", MINE), Allow)

    @pytest.mark.parametrize(
        "name",
        ["main", "master", "production", "MAIN", "Main ", " main", "ma\u200bin", "ｍａｉｎ",
         "refs/heads/main", "heads/main", "origin/main", "refs/remotes/origin/master", "main\n",
         "feature/login:main", "feature/login:refs/heads/main", "+feature/login:production",
         "HEAD", "HEAD:main", "+main", ":main", "/main", "refs//heads/main", "main/"],
    )  # fmt: skip
    def test_is_never_a_protected_one_by_any_spelling(self, name):
        decision = rules.can_use_branch(name, name)
        assert isinstance(decision, Deny)
        assert decision.code is Code.BRANCH_DENIED
        assert "protected" in decision.message

    @pytest.mark.parametrize(
        "name",
        ["--force", "-d", "--receive-pack=evil", "a..b", "a b", "a\x00b", "a\nb", "a:b", "a~1",
         "a^", "a*", "a?", "a[", "a\\b", "@{-1}", "a//b", "/a", "a/", "a.lock", ".a", "a/.b", "",
         "a.", "é", "refs/heads/feature/login", "x" * 300, "+feature/login"],
    )  # fmt: skip
    def test_is_never_an_odd_one(self, name):
        decision = rules.can_use_branch(name, name)
        assert isinstance(decision, Deny)
        assert decision.code is Code.BRANCH_DENIED

    @pytest.mark.parametrize(
        "name", ["feature/logout", "Feature/login", "feature/login2", "feature", "mainline"]
    )
    def test_is_never_another_one(self, name):
        decision = rules.can_use_branch(name, MINE)
        assert isinstance(decision, Deny)
        assert "feature/login" in decision.next_action

    def test_that_is_the_contracts_own_and_taken_is_replaced_by_the_superior(self):
        taken = TakenNames(main="trunk", names=frozenset({"feature"}))
        own = rules.can_use_branch(MINE, MINE, taken)
        other = rules.can_use_branch("feature/logout", MINE, taken)
        assert own.next_action == "ask your superior for a contract with a branch of its own"
        assert other.next_action == f"work on {MINE}"

    def test_is_none_without_a_contract(self):
        decision = rules.can_use_branch("feature/login", ())
        assert isinstance(decision, Deny)
        assert "list_contracts" in decision.next_action


class TestCommit:
    def test_needs_an_assigned_branch(self):
        assert isinstance(rules.can_commit(MINE), Allow)
        assert isinstance(rules.can_commit(""), Deny)


class TestCommitting:
    """Spec: hands 1."""

    def test_is_on_the_branch_that_a_contract_assigns(self):
        assert isinstance(rules.can_commit(MINE), Allow)
        found = rules.can_commit("")
        assert (found.code, found.details["assigned"]) == (Code.BRANCH_DENIED, [])
        assert found.next_action.startswith("accept a contract that assigns a branch")

    def test_elsewhere_sends_to_that_branch(self):
        found = rules.can_use_branch("feature/other", MINE)
        assert (found.next_action, found.details["assigned"]) == (f"work on {MINE}", [MINE])


class TestStoppingARun:
    """Spec: hands 29."""

    @pytest.mark.parametrize(
        ("has_ended", "stopped_for", "can"),
        [(False, "", True), (True, "", False), (False, "Too long.", False), (True, "x", False)],
    )
    def test_is_done_once_and_before_its_end(self, has_ended, stopped_for, can):
        found = run_rules.can_stop(7, has_ended=has_ended, stopped_for=stopped_for)
        assert isinstance(found, Allow) is can
