"""Which paths are paths, what a scope holds, and what no scope gives."""

import posixpath
import unicodedata
from pathlib import PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.decision import Allow, Code, Deny
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import policy_of
from orgchart.policy.compiled import Agent, FileScopes
from orgchart.policy.paths import (
    can_touch,
    denying_pattern,
    is_code,
    is_within,
    normal_path,
    problem_of_deny,
    problem_of_scope,
    without_inner,
)
from orgchart.policy.vocabulary import Access, ContractScope
from tests.oracle import files
from tests.orgchart import variants
from tests.orgchart.world import PACKS
from tests.steps import steps_of

NEXUS = policy_of(sound_pack(PACKS / "nexus"))
HAND = Agent(1, "hand", "hand", "Hand")


@pytest.mark.parametrize(
    ("role", "path", "scope", "cell"),
    files.table(),
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_the_shipped_company_reads_and_writes_what_is_specified(role, path, scope, cell):
    agent = NEXUS.agents[role]
    found = "".join(
        letter
        if isinstance(
            can_touch(
                path,
                access,
                agent=agent,
                files=NEXUS.role_of(agent).files,
                contract_scope=scope,
            ),
            Allow,
        )
        else "-"
        for letter, access in (("r", Access.READ), ("w", Access.WRITE))
    )
    assert found == cell


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/etc/passwd",
        "~root/x",
        "~",
        ".",
        "..",
        "./a",
        "../a",
        "a/..",
        "a/../b",
        "a/./b",
        "a//b",
        "a//",
        "//a",
        "a\\b",
        "..\\a",
        "a\0b",
        "a\nb",
        "a\rb",
        "a\tb",
        "a\x7fb",
        "a\x1bb",
        "a\u200bb",  # zero width
        "a\u202eb",  # right to left
        "a\ufeffb",
        "\ud800",
        "e\u0301.md",  # not in form C
        "a/" * 513,
        "/".join("a" * 65),
        " a",
        "src/.env ",
        "src /a",
        "a" * 256,
        "é" * 128,
        "b/" + "é" * 600,
    ],
    ids=ascii,
)
def test_no_path_is(path):
    found = normal_path(path)
    assert isinstance(found, Deny)
    assert found.code is Code.SCOPE_DENIED
    assert isinstance(
        can_touch(path, Access.READ, agent=HAND, files=FileScopes(read=("a/", "b/", "x"))), Deny
    )


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "a/b",
        "a/b/",
        "...",
        "a/...b",
        "a b/c",
        "-rf",
        "ünï/cödé.md",
        "a" * 255,
        "a:b",
        "/".join("a" * 64),
    ],
)
def test_a_path_is(path):
    assert normal_path(path) == path


parts = st.sampled_from(
    ["..", ".", "", "a", "src", "src-evil", "etc", "\\", "~", "\0", "%2e%2e", "..%2f", "．．", "‥"]
) | st.text(max_size=6)


@given(st.lists(parts, max_size=6).map("/".join))
@example("src/../../etc/passwd")
@example("src/..")
@example("src/a/")
def test_no_accepted_path_leaves_its_scope(path):
    """Resolved as a file system would, it is still below the folder, and still the same path."""
    scopes = FileScopes(write=("src/",))
    if isinstance(can_touch(path, Access.WRITE, agent=HAND, files=scopes), Allow):
        resolved = posixpath.normpath(posixpath.join("/company", path))
        assert resolved == "/company/" + path.rstrip("/")
        assert resolved == "/company/src" or resolved.startswith("/company/src/")
        assert unicodedata.normalize("NFC", path) == path
        assert len(path.encode()) <= 1024


plain = st.sampled_from(["src", "src-evil", "SRC", ".env", ".ENV.local", "deep", "a.py", "hand"])
folders = st.lists(plain, min_size=1, max_size=3).map(lambda each: "/".join(each) + "/")
scopes = st.lists(folders | folders.map(lambda each: each.rstrip("/")), max_size=3).map(tuple)
denials = st.lists(plain | plain.map(lambda each: each + "/") | folders, max_size=2).map(tuple)
any_path = st.lists(st.one_of(plain, parts), min_size=1, max_size=5).map("/".join)


def holds(path: PurePosixPath, scope: str) -> bool:
    """Whether a scope holds a path, said by another library."""
    return path.is_relative_to(scope) if scope.endswith("/") else path == PurePosixPath(scope)


def catches(path: PurePosixPath, denial: str) -> bool:
    """Whether a denial without a pattern catches a path, said by another library."""
    lowered, denied = PurePosixPath(str(path).casefold()), PurePosixPath(denial.casefold())
    if len(denied.parts) > 1:
        return lowered.is_relative_to(denied)
    return denied.name in lowered.parts


@given(any_path, scopes, scopes, denials, scopes, st.sampled_from(ContractScope),
       st.sampled_from(Access))  # fmt: skip
def test_every_path_is_decided_as_another_library_says(
    path, write, read, deny, contract, uses, access
):
    files = FileScopes(write=write, read=read, deny=deny, contract=uses)
    decision = can_touch(path, access, agent=HAND, files=files, contract_scope=contract)
    given_to = [*write, *(read if access is Access.READ else ())]
    if uses is ContractScope.WRITE or (uses is ContractScope.READ and access is Access.READ):
        given_to += contract
    pure = PurePosixPath(path)
    expected = (
        not isinstance(normal_path(path), Deny)
        and any(holds(pure, scope) for scope in given_to)
        and not any(catches(pure, denial) for denial in deny)
    )
    assert isinstance(decision, Allow) == expected


@given(st.text(max_size=30), st.sampled_from(Access))
def test_nothing_is_given_where_no_scope_is(path, access):
    nothing = FileScopes()
    assert isinstance(can_touch(path, access, agent=HAND, files=nothing), Deny)


class TestAScope:
    @pytest.mark.parametrize(
        ("path", "scope", "inside"),
        [
            ("src/a", "src/", True),
            ("src/a/b", "src/", True),
            ("src", "src/", True),
            ("src-evil/a", "src/", False),
            ("srcs", "src/", False),
            ("SRC/a", "src/", False),
            ("a/src/b", "src/", False),
            ("docker-compose.yml", "docker-compose.yml", True),
            ("docker-compose.yml.bak", "docker-compose.yml", False),
            ("docker-compose.yml/x", "docker-compose.yml", False),
            ("a/docker-compose.yml", "docker-compose.yml", False),
        ],
    )
    def test_holds_whole_parts(self, path, scope, inside):
        assert is_within(path, scope) is inside

    @pytest.mark.parametrize(
        "scope", ["", "/", "/src/", "../", "a/../b", "*.md", "a?", "[a]/", "{x}/", "a//", "~"]
    )
    def test_is_none(self, scope):
        assert problem_of_scope(scope)

    @pytest.mark.parametrize("scope", ["src/", "agents/{agent}/", "a/b.md", "README.md"])
    def test_is_one(self, scope):
        assert not problem_of_scope(scope)

    def test_names_its_agent(self):
        own = FileScopes(write=("agents/{agent}/",))
        assert isinstance(can_touch("agents/hand/x", Access.WRITE, agent=HAND, files=own), Allow)
        for other in ("agents/handy/x", "agents/{agent}/x", "agents/boss/x"):
            assert isinstance(can_touch(other, Access.WRITE, agent=HAND, files=own), Deny)

    def test_for_writing_is_one_for_reading(self):
        own = FileScopes(write=("src/",), read=("docs/",))
        for path, access, answer in (
            ("src/a", Access.READ, Allow),
            ("src/a", Access.WRITE, Allow),
            ("docs/a", Access.READ, Allow),
            ("docs/a", Access.WRITE, Deny),
        ):
            assert isinstance(can_touch(path, access, agent=HAND, files=own), answer)


class TestADenial:
    @pytest.mark.parametrize(
        ("path", "patterns", "caught"),
        [
            ("a/.env", [".env"], ".env"),
            ("a/.ENV", [".env"], ".env"),
            (".env/x", [".env"], ".env"),
            ("a/.envrc", [".env"], ""),
            ("a/b.pem", ["*.pem"], "*.pem"),
            ("a/b.PEM", ["*.pem"], "*.pem"),
            ("b.pem/c", ["*.pem"], "*.pem"),
            ("a/id_rsa.pub", ["id_rsa*"], "id_rsa*"),
            ("secret/place/x", ["secret/place/"], "secret/place/"),
            ("secret/place", ["secret/place/"], "secret/place/"),
            ("secret/placebo", ["secret/place/"], ""),
            ("a/secret/place", ["secret/place/"], ""),
            ("Secret/Place/x", ["secret/place/"], "secret/place/"),
            ("company/org.yaml", ["company/org.yaml"], "company/org.yaml"),
            ("company/org.yaml/x", ["company/org.yaml"], "company/org.yaml"),
            ("deep/docker/x", ["docker/"], "docker/"),
            ("straße/x", ["STRASSE"], "STRASSE"),
            ("a/.git/config", [".git"], ".git"),
            (".gitignore", [".git"], ""),
        ],
    )
    def test_catches(self, path, patterns, caught):
        assert denying_pattern(path, patterns) == caught

    def test_wins_over_every_allowance(self):
        scopes = FileScopes(
            read=("src/",), write=("src/",), deny=(".env",), contract=ContractScope.WRITE
        )
        for access in Access:
            found = can_touch(
                "src/.env", access, agent=HAND, files=scopes, contract_scope=("src/.env", "src/")
            )
            assert isinstance(found, Deny)
            assert found.rule == "deny .env"

    @pytest.mark.parametrize("pattern", ["", "/", "/etc", "a/../b", "a/*.md", "{x}", "a\nb", "~"])
    def test_is_none(self, pattern):
        assert problem_of_deny(pattern)

    @pytest.mark.parametrize("pattern", [".env", "*.pem", "a/", "a/b/", "agents/{agent}/x", "id_*"])
    def test_is_one(self, pattern):
        assert not problem_of_deny(pattern)


class TestTheScopeOfAContract:
    @pytest.mark.parametrize(
        ("contract", "read", "write"),
        [
            (ContractScope.NONE, Deny, Deny),
            (ContractScope.READ, Allow, Deny),
            (ContractScope.WRITE, Allow, Allow),
        ],
    )
    def test_adds_what_the_role_lets_it(self, contract, read, write):
        scopes = FileScopes(contract=contract)
        for access, answer in ((Access.READ, read), (Access.WRITE, write)):
            found = can_touch(
                "src/a", access, agent=HAND, files=scopes, contract_scope=("src/", "lib/")
            )
            assert isinstance(found, answer)


class TestARefusal:
    def test_names_what_is_open_and_the_rule(self):
        found = can_touch(
            "etc/passwd", Access.READ, agent=HAND, files=FileScopes(read=("b/",), write=("a/",))
        )
        assert isinstance(found, Deny)
        assert found.code is Code.SCOPE_DENIED
        assert found.rule == "read scope of hand"
        assert found.next_action == "keep to: a/, b/"
        assert found.details == {"scope": ["a/", "b/"]}

    def test_names_a_folder_once_that_two_contracts_open(self):
        files = FileScopes(write=("a/",), contract=ContractScope.WRITE)
        found = can_touch(
            "b", Access.WRITE, agent=HAND, files=files, contract_scope=("a/", "src/", "src/")
        )
        assert found.next_action == "keep to: a/, src/"

    def test_names_no_more_than_can_be_read(self):
        opened = tuple(f"src/{number:03}/" for number in range(100))
        files = FileScopes(contract=ContractScope.READ)
        found = can_touch("b", Access.READ, agent=HAND, files=files, contract_scope=opened)
        assert found.details == {"scope": [*opened[:30]]}
        assert found.next_action.endswith("src/028/, src/029/ and 70 more")


class TestScopesWithoutInnerOnes:
    @given(
        st.lists(
            st.tuples(
                st.lists(st.sampled_from(["a", "b", "a-b"]), min_size=1, max_size=3),
                st.sampled_from(["", "/"]),
            )
        )
    )
    def test_are_those_that_lie_in_no_other(self, given_scopes):
        scopes = ["/".join(parts) + end for parts, end in given_scopes]
        kept: list[str] = []
        for scope in sorted(set(scopes)):
            if not any(is_within(scope, wider) for wider in kept):
                kept.append(scope)
        assert without_inner(scopes) == kept

    def test_take_steps_for_each_not_for_each_pair(self):
        taken = [
            steps_of(lambda count=count: without_inner(f"src/{n}/" for n in range(count)))
            for count in (200, 400)
        ]
        assert taken[1] < 2.2 * taken[0]


class TestTheWorkspacesOfWorkers:
    """Spec: tools 26."""

    def read_by(self, pack, manager):
        policy = policy_of(pack)
        reader = policy.agents[manager]
        files = policy.role_of(reader).files
        return {
            handle
            for handle in policy.agents
            if isinstance(
                can_touch(
                    f"agents/{handle}/workspace/a.py", Access.READ, agent=reader, files=files
                ),
                Allow,
            )
        }

    def test_follow_the_chain_of_command(self):
        technical = {"backend_worker", "frontend_worker", "devops_worker", "qa_worker"}
        assert self.read_by(variants.NEXUS, "it_manager") == technical
        assert self.read_by(variants.NEXUS, "product_manager") == set()
        hired = variants.hired("backend_2", "backend_worker", "it_manager")
        assert self.read_by(hired, "it_manager") == {*technical, "backend_2"}
        moved = variants.with_agent("frontend_worker", reports_to="product_manager", co_managers=())
        assert self.read_by(moved, "it_manager") == technical - {"frontend_worker"}

    def test_are_named_by_the_only_other_placeholder(self):
        assert problem_of_scope("agents/{worker}/workspace/") == ""
        assert problem_of_scope("agents/{workers}/workspace/")
        assert problem_of_deny("agents/{worker}/")


class TestCode:
    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("src/a.py", True),
            ("agents/bob/workspace/src/a.py", True),
            ("agents/bob/workspace/reports/a.py", True),
            ("docs/a.md", False),
            ("agents/bob/workspace/docs/a.md", False),
            ("agents/bob/plan.md", False),
            ("reports/tech/a.md", False),
            ("docs-evil/a.py", True),
            ("src/a/workspace/docs/a.py", True),
            ("docs/a/workspace/a.py", False),
        ],
    )
    def test_is_every_file_of_the_repository_outside_docs(self, path, expected):
        """Spec: mail 44."""
        assert is_code(path) is expected
