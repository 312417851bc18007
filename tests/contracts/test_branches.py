"""The one rule of branch names, for contracts and for git: its whole table."""

import itertools

import pytest

from contracts.branches import TakenNames, branch_problem, can_assign_branch
from core.decision import Allow, Code
from workspace import rules as git_rules

OWN = ["feature/login", "fix-1", "a", "release/1.2", "mainline", "feature/main-menu", "X_1",
       "main2", "production-like", "heads-up", "feature/refs", "a" * 200]  # fmt: skip
PROTECTED = ["main", "master", "production", "Main", "MASTER", "PRODUCTION", "HEAD", "head",
             "refs/heads/main", "refs/heads/x", "heads/main", "origin/main", "Origin/x", "tags/v1",
             "remotes/origin/main", "feature/HEAD", "Main ", " main", "ma\u200bin", "ｍａｉｎ",
             "main\n", "feature/login:main", "feature/login:refs/heads/main", "refs//heads/main",
             "+feature/login:production", "HEAD:main", "+main", ":main", "/main", "main/",
             "refs/heads/feature/login", "refs/remotes/origin/master"]  # fmt: skip
ODD = ["", " ", "a b", "a..b", "a/", "/a", "a//b", "-x", "--force", "-d", "--receive-pack=evil",
       ".a", "a/.b", "a.lock", "a/b.lock/c", "a.", "a~1", "a^", "a:b", "a?", "a*", "a[b", "a[",
       "a\\b", "@", "a@{1}", "@{-1}", "a\nb", "a\x00", "a\x00b", "mаin", "é", "x" * 201,
       "+feature/login"]  # fmt: skip
SPELLINGS = {
    "case": str.upper,
    "width": lambda name: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in name),
    "space": lambda name: f" {name}\t",
    "invisible": "\u200b".join,
    "force": lambda name: f"+{name}",
    "refspec": lambda name: f"feature/login:{name}",
    "path": lambda name: f"refs/heads/{name}",
    "slashes": lambda name: f"//{name}/",
}


@pytest.mark.parametrize("name", OWN)
def test_a_plain_name_can_be_a_contracts_branch(name):
    assert branch_problem(name) == ""
    assert isinstance(can_assign_branch(name), Allow)
    assert isinstance(git_rules.can_use_branch(name, name), Allow)


@pytest.mark.parametrize(
    ("name", "word"), [(n, "protected") for n in PROTECTED] + [(n, "plain") for n in ODD]
)
def test_no_other_name_is_assigned_or_written_to(name, word):
    assert word in branch_problem(name)
    for found in (can_assign_branch(name), git_rules.can_use_branch(name, name)):
        assert found.code is Code.BRANCH_DENIED
        assert word in found.message


@pytest.mark.parametrize("branch", ["main", "master", "production", "head"])
def test_a_protected_branch_is_refused_in_every_pair_of_spellings(branch):
    for one, other in itertools.product(SPELLINGS.values(), repeat=2):
        assert "protected" in branch_problem(other(one(branch))), (one, other)


TAKEN = TakenNames(main="trunk", names=frozenset({"work", "fix/deep/er"}))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("trunk", "protected"),
        ("Trunk", "protected"),
        ("trunk/login", "lies in another branch"),
        ("work/login", "lies in another branch"),
        ("work/login/page", "lies in another branch"),
        ("fix", "another branch lies in it"),
        ("fix/deep", "another branch lies in it"),
        ("work", ""),
        ("workshop", ""),
        ("fix/other", ""),
        ("fix/deep/er", ""),
    ],
)
def test_no_branch_lies_in_another_or_is_the_main_branch(name, words):
    problem = branch_problem(name, TAKEN)
    assert problem.endswith(words)
    assert bool(problem) == bool(words)
    for found in (can_assign_branch(name, TAKEN), git_rules.can_use_branch(name, name, TAKEN)):
        assert isinstance(found, Allow) is not bool(words)
