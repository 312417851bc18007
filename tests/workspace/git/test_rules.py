"""What git may do: pure tables."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from types import SimpleNamespace

import pytest

from contracts.judging import SubmissionFacts
from contracts.rules import ContractFacts
from contracts.vocabulary import ContractKind, ContractState, VerdictFinding
from core.addresses import repository_problem
from core.decision import Allow, Code, Deny
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of
from orgchart.policy.compiled import BOARD_PARTY, FileScopes
from orgchart.policy.vocabulary import ContractScope
from tests.orgchart.world import PACKS
from workspace.git import rules
from workspace.git.rules import FileChange

TIP, OTHER = "a" * 40, "b" * 40
AT = datetime(2026, 2, 19, tzinfo=UTC)
FILES = FileScopes(
    read=(), write=("agents/{agent}/", "tests/"), deny=(".env", ".github/"),
    contract=ContractScope.WRITE,
)  # fmt: skip
NEXUS = policy_of(sound_pack(PACKS / "nexus"))
BACKEND = SimpleNamespace(id=1, handle="backend_worker", role="backend_worker", managers=("it",))


AGENTS = list(NEXUS.by_id.values())


def contract(state=ContractState.REVIEW, **fields):
    return ContractFacts(
        id="CON-1", kind=ContractKind.WORK, state=state, version=1,
        assigned_branch="feat/x", department="tech",
        **{"issuer": SimpleNamespace(id=2, handle="it"), "assignee": BACKEND} | fields,
    )  # fmt: skip


def managers_of(agent):
    """The handles of all agents above one."""
    found, left = set(), [agent]
    while left:
        for handle in left.pop().managers:
            if handle not in found and handle != "board":
                found.add(handle)
                left.append(NEXUS.agents[handle])
    return found


class TestAReview:
    @pytest.mark.parametrize(
        ("who", "code"),
        [
            ("it_manager", None), ("ceo", None), ("backend_worker", Code.NOT_YOURS),
            ("frontend_worker", Code.NOT_FOUND), ("qa_worker", Code.NOT_FOUND),
            ("hr_manager", Code.NOT_FOUND), ("product_manager", Code.NOT_FOUND),
        ],
    )  # fmt: skip
    def test_is_of_the_issuer_and_the_managers(self, who, code):
        given = replace(
            contract(),
            issuer=NEXUS.agents["it_manager"],
            assignee=NEXUS.agents["backend_worker"],
        )
        found = rules.can_review(given, NEXUS.agents[who], NEXUS)
        assert (found.code if isinstance(found, Deny) else type(found)) == (code or Allow)

    def test_is_of_an_issuer_that_manages_nobody_of_them(self):
        issuer, assignee = NEXUS.agents["product_manager"], NEXUS.agents["backend_worker"]
        given = contract(issuer=issuer, assignee=assignee)
        assert isinstance(rules.can_review(given, issuer, NEXUS), Allow)

    def test_is_not_of_who_worked_on_the_branch_before(self):
        it = NEXUS.agents["it_manager"]
        given = replace(
            contract(),
            issuer=it,
            assignee=NEXUS.agents["backend_worker"],
            makers=frozenset({it.id}),
        )
        found = rules.can_review(given, it, NEXUS)
        assert isinstance(found, Deny)
        assert found.code is Code.NOT_YOURS


class TestACommit:
    @pytest.mark.parametrize(
        "path", ["src/search/a.py", "tests/a.py", "src/search/deep/b.py", "src/search/naïve.py"]
    )
    def test_contains_plain_files_in_scope(self, path):
        found = rules.can_commit_changes(
            [FileChange("100644", path)], BACKEND, FILES, ("src/search/",)
        )
        assert isinstance(found, Allow)

    @pytest.mark.parametrize("mode", ["000000", "100755"])
    def test_may_delete_and_make_executable(self, mode):
        found = rules.can_commit_changes([FileChange(mode, "tests/a.sh")], BACKEND, FILES, ())
        assert isinstance(found, Allow)

    @pytest.mark.parametrize(
        ("mode", "path"),
        [
            ("100644", "src/billing/a.py"), ("100644", "src/search-evil/a.py"),
            ("100644", "src/search/.env"), ("100644", "src/search/.ENV"),
            ("100644", ".github/workflows/ci.yml"), ("000000", "src/main.py"),
            ("120000", "src/search/link"), ("160000", "src/search/module"),
            ("100644", "src/search/.gitmodules"), ("100644", "src/search/.GitModules"),
            ("100644", "agents/backend_worker/a.py"), ("100644", "reports/tech/x.md"),
            ("100644", "docs/prd/x.md"), ("100644", "src/search/\udcff"),
            ("040000", "src/search/tree"), ("100644", "src/search/../main.py"),
        ],
    )  # fmt: skip
    def test_contains_nothing_else(self, mode, path):
        found = rules.can_commit_changes(
            [FileChange("100644", "tests/ok.py"), FileChange(mode, path)],
            BACKEND,
            FILES,
            ("src/search/",),
        )
        assert isinstance(found, Deny)
        assert found.code is Code.SCOPE_DENIED
        found.message.encode()

    def test_is_read_from_what_git_lists(self):
        raw = b":100644 000000 1 2 D\0a b\0:000000 120000 1 2 A\0c\nd\0"
        assert rules.parse_changes(raw) == [
            FileChange("000000", "a b"),
            FileChange("120000", "c\nd"),
        ]
        assert rules.parse_changes(b"") == []


def submission(*findings):
    return SubmissionFacts(1, frozenset(findings))


PASSED = submission(VerdictFinding.PASS)
FAILED = submission(VerdictFinding.PASS, VerdictFinding.FAIL)
MERGES = [
    (ContractState.REVIEW, PASSED, TIP, None, None),
    (ContractState.PASSED, PASSED, TIP, TIP, None),
    (ContractState.REVIEW, PASSED, TIP, OTHER, Code.VERSION_MISMATCH),
    (ContractState.REVIEW, PASSED, OTHER, None, Code.APPROVAL_REQUIRED),
    (ContractState.REVIEW, PASSED, "", None, Code.APPROVAL_REQUIRED),
    (ContractState.REVIEW, FAILED, TIP, None, Code.APPROVAL_REQUIRED),
    (ContractState.REVIEW, submission(), TIP, None, Code.APPROVAL_REQUIRED),
    (ContractState.REVIEW, None, TIP, None, Code.APPROVAL_REQUIRED),
    (ContractState.PENDING, PASSED, TIP, None, Code.INVALID_TRANSITION),
    (ContractState.IN_PROGRESS, PASSED, TIP, None, Code.INVALID_TRANSITION),
    (ContractState.FAILED, PASSED, TIP, None, Code.INVALID_TRANSITION),
    (ContractState.CANCELLED, PASSED, TIP, None, Code.INVALID_TRANSITION),
]


class TestAMerge:
    @pytest.mark.parametrize(("state", "submitted", "judged", "wanted", "code"), MERGES)
    def test_needs_the_pass_on_that_very_commit(self, state, submitted, judged, wanted, code):
        found = rules.can_merge(
            contract(state), submission=submitted, judged=judged, tip=TIP, wanted=wanted
        )
        assert getattr(found, "code", None) is code

    @pytest.mark.parametrize(
        ("findings", "said"),
        [((), "QA has given no verdict"), ((VerdictFinding.FAIL,), "QA's verdict is FAIL")],
    )
    def test_says_what_qa_found(self, findings, said):
        submitted = SubmissionFacts(1, frozenset(findings))
        found = rules.can_merge(contract(), submission=submitted, judged=TIP, tip=TIP, wanted=None)
        assert said in found.message

    @pytest.mark.parametrize(("judged", "said"), [("", "no commit"), (OTHER, OTHER)])
    def test_says_which_commit_qa_passed(self, judged, said):
        found = rules.can_merge(contract(), submission=PASSED, judged=judged, tip=TIP, wanted=None)
        assert f"QA's PASS is about {said}" in found.message

    @pytest.mark.parametrize(
        ("state", "step"),
        [(ContractState.REVIEW, "close_contract"), (ContractState.PASSED, "supersedes")],
    )
    def test_that_waits_for_qa_has_a_next_step(self, state, step):
        """What passed is not sent back: the rest is a contract of its own."""
        found = rules.can_merge(contract(state), submission=None, judged="", tip=TIP, wanted=None)
        assert step in found.next_action

    def test_that_conflicts_names_the_files(self):
        assert "changed the same lines in a.py" in rules.conflicted("b", "main", ["a.py"]).message
        assert "in the same files" in rules.conflicted("b", "main", []).message

    def test_ends_only_without_conflicts(self):
        assert isinstance(rules.can_end_merge([]), Allow)
        assert rules.can_end_merge(["a.py"]).details["conflicts"] == ["a.py"]


class TestABranch:
    @pytest.mark.parametrize("state", list(ContractState))
    def test_belongs_to_one_open_contract(self, state):
        found = rules.can_continue_branch("feat/x", contract(state), "CON-2")
        final = state in (ContractState.PASSED, ContractState.FAILED, ContractState.CANCELLED)
        assert isinstance(found, Allow) is final

    def test_is_free_without_one_and_for_its_own(self):
        assert isinstance(rules.can_continue_branch("feat/x", None, "CON-2"), Allow)
        assert isinstance(rules.can_continue_branch("feat/x", contract(), "CON-1"), Allow)

    def test_of_another_contract_is_refused_by_name_and_state(self):
        open_one = contract(ContractState.IN_PROGRESS)
        found = rules.can_continue_branch("feat/x", open_one, "CON-2")
        assert (found.code, "is in_progress" in found.message) == (Code.BRANCH_DENIED, True)

    def test_is_gone_on_with_where_all_that_was_pushed_is_in_scope(self):
        allowed = Allow("in scope")
        assert rules.can_take_over("feat/x", allowed) is allowed
        secret = Deny(Code.SCOPE_DENIED, "an agent's words.py is out of scope", "", rule="")
        found = rules.can_take_over("feat/x", secret)
        assert found.code is Code.BRANCH_DENIED
        assert "words.py" not in found.message  # a name is text of another agent

    @pytest.mark.parametrize("issuer", [*AGENTS, BOARD_PARTY], ids=lambda who: who.handle)
    def test_is_handed_over_by_who_ordered_the_work_or_is_above_who_did_it(self, issuer):
        for ordered, did, does in product([*AGENTS, BOARD_PARTY], AGENTS, AGENTS):
            before = contract(issuer=ordered, assignee=did)
            now = contract(issuer=issuer, assignee=does)
            above = issuer.handle in managers_of(did)
            wanted = did is does or issuer is ordered or above
            found = rules.can_hand_over("feat/x", before, now, NEXUS)
            assert isinstance(found, Allow) is wanted, (ordered.handle, did.handle, does.handle)
            assert wanted or found.code is Code.BRANCH_DENIED


class TestAnAddress:
    @pytest.mark.parametrize(
        "source",
        ["https://example.org/a/b.git", "ssh://git@example.org/a.git", "/srv/git/app.git",
         "https://example.org:8443/a", "ssh://git@example.org:22/~me/a.git"],
    )  # fmt: skip
    def test_is_https_ssh_or_a_path(self, source):
        assert repository_problem(source) == ""

    @pytest.mark.parametrize(
        "source",
        ["ext::sh -c id", "ext::sh", "fd::17/x", "file:///srv/a.git", "git://example.org/a",
         "http://example.org/a.git", "--upload-pack=id", "-u", "git@example.org:a.git",
         "ssh://-oProxyCommand=id/a", "ssh://git@-oProxyCommand=id/a", "ssh://-x@host/a",
         "https://user:pw@example.org/a", "https://", "https://example.org", "a/b.git", "../a",
         "/srv/../etc", "https://example.org/a b", "https://example.org/\na", "\\\\host\\a",
         "https::https://example.org/a", "ssh://host/-a", "ext::/x", "https://[::1", "~/a",
         "https://ex ample.org/a", "transport::https://example.org/a", "x" * 600],
    )  # fmt: skip
    def test_is_nothing_that_could_start_a_program(self, source):
        assert repository_problem(source)
