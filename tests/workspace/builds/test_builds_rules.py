"""Environments, digests, Dockerfiles, users, ports: pure tables."""

from datetime import timedelta

import pytest

from core.decision import Allow, Code, Deny
from tests.documents.world import NOW
from workspace.builds import rules
from workspace.builds.engine import unframed
from workspace.builds.vocabulary import DeploymentState


class TestEnvironment:
    @pytest.mark.parametrize(
        "name",
        ["production", "Production", "PRODUCTION ", "production\n", "produc\ttion",
         "pro\u200bduction",         "prod", "live", "prod-eu", "production!", "", "stage2"],
    )  # fmt: skip
    def test_needs_approval_unless_it_is_known_to_be_less(self, name):
        assert rules.needs_approval(name)

    @pytest.mark.parametrize("name", sorted(rules.FREE_ENVIRONMENTS))
    def test_needs_none_where_it_is_less(self, name):
        assert not rules.needs_approval(name)
        assert isinstance(rules.can_name_environment(name), Allow)

    @pytest.mark.parametrize(
        "name", ["Staging", "staging ", "staging\n", "1st", "", "ｔest", "a_b"]
    )
    def test_has_one_spelling(self, name):
        decision = rules.can_name_environment(name)
        assert isinstance(decision, Deny)
        assert decision.code is Code.INVALID_PARAMS


class TestAContainer:
    @pytest.mark.parametrize(
        "user",
        ["", None, "root", "0", "0:0", "root:root", "00", " 0", "0:12", "+0", "-0:0", "+00:1"],
    )
    def test_is_not_run_by_root(self, user):
        assert rules.user_of({"Config": {"User": user}}) == rules.UNPRIVILEGED

    @pytest.mark.parametrize("user", ["1000", "1000:1000", "0100", "2147483647", "1:0"])
    def test_is_run_by_its_images_user(self, user):
        image = {"Config": {"User": user}}
        assert rules.user_of(image) == user
        assert isinstance(rules.can_run_as(image), Allow)

    @pytest.mark.parametrize(
        "user",
        ["app", "toor", "1000:root", "1000:", "2147483648", "4294967296", "1e3", "0x0",
         "\u0660", "\u0661", "1 ", "1\n", "-1"],
    )  # fmt: skip
    def test_is_run_by_no_user_whose_number_is_not_known(self, user):
        assert isinstance(rules.can_run_as({"Config": {"User": user}}), Deny)

    @pytest.mark.parametrize(
        ("ports", "port"),
        [({"8080/tcp": {}, "80/tcp": {}}, 80), ({"53/udp": {}}, None), ({}, None), (None, None),
         ({"x/tcp": {}}, None), ({"99999/tcp": {}}, None), ({"8000": {}}, 8000),
         ({"\u00b2/tcp": {}}, None), ({"9" * 5000: {}}, None)],
    )  # fmt: skip
    def test_serves_its_lowest_port(self, ports, port):
        assert rules.port_of({"Config": {"ExposedPorts": ports}}) == port

    @pytest.mark.parametrize(
        ("label", "path"),
        [("/healthz", "/healthz"), ("@evil.example/", "/"), ("/a\r\nHost: x", "/"), ("//x", "//x"),
         ("/a?b", "/"), ("", "/")],
    )  # fmt: skip
    def test_names_the_path_of_its_health_check(self, label, path):
        assert rules.health_path_of({"Config": {"Labels": {"nexus.health": label}}}) == path

    def test_says_its_words_without_frames(self):
        assert unframed(b"\x01\0\0\0\0\0\0\x02ab\x02\0\0\0\0\0\0\x01c") == "abc"
        assert unframed(b"plain") == "plain"
        assert unframed(b"") == ""

    @pytest.mark.parametrize(
        ("declared", "said"),
        [
            (None, ""), ({}, ""), ({"/data": {}, "/data/../var/": {}}, ""),
            ({"data": {}}, "'data'"), ({"/": {}}, "'/'"), ({"/a/..": {}}, "'/'"),
            ({"//data": {}}, "'//data'"), ({"/fine": {}, "odd": {}}, "'odd'"),
        ],
    )  # fmt: skip
    def test_declares_volumes_as_absolute_paths_of_folders(self, declared, said):
        found = rules.can_hold_volumes({"Config": {"Volumes": declared}})
        assert isinstance(found, Allow) is (not said)
        assert not said or (found.code is Code.INVALID_PARAMS and said in found.message)

    def test_has_each_of_its_volumes_once(self):
        image = {"Config": {"Volumes": {"/b/": {}, "/b": {}, "/a/./c": {}}}}
        assert rules.volumes_of(image) == ["/a/c", "/b"]
        assert rules.volumes_of({}) == rules.volumes_of({"Config": None}) == []


class TestAnImage:
    @pytest.mark.parametrize(
        ("name", "code"),
        [
            ("sha256:" + "a" * 64, None), ("sha256:" + "a" * 63, Code.INVALID_PARAMS),
            ("sha256:" + "A" * 64, Code.INVALID_PARAMS), ("api:1", Code.INVALID_PARAMS),
            ("sha256:" + "a" * 64 + "\n", Code.INVALID_PARAMS), ("", Code.INVALID_PARAMS),
        ],
    )  # fmt: skip
    def test_is_named_by_its_digest(self, name, code):
        assert code_of(rules.can_name_artifact(name)) == code

    @pytest.mark.parametrize(
        ("others", "code"),
        [((), None), (("api",), None), (("web",), Code.INVALID_PARAMS),
         (("api", "web"), Code.INVALID_PARAMS), (("web", "app"), Code.INVALID_PARAMS)],
    )  # fmt: skip
    def test_is_of_one_service_and_names_no_other(self, others, code):
        found = rules.can_be_of("api", others)
        assert code_of(found) == code
        assert not any(other in str(found) for other in others if other != "api")

    @pytest.mark.parametrize(
        ("approver", "builders", "code"),
        [
            (1, [], None), (1, [2], None), (1, [1], Code.APPROVAL_REQUIRED),
            (1, [2, 1], Code.APPROVAL_REQUIRED), (None, [1], None),
        ],
    )  # fmt: skip
    def test_is_approved_by_no_agent_that_built_it(self, approver, builders, code):
        assert code_of(rules.can_approve_build(approver, builders)) == code

    @pytest.mark.parametrize(
        ("built", "code"),
        [([], None), ([-1], None), ([0], None), ([1], Code.APPROVAL_REQUIRED),
         ([1, -1], None), ([2, 1], Code.APPROVAL_REQUIRED)],
    )  # fmt: skip
    def test_is_approved_once_it_was_built(self, built, code):
        """`built` in seconds after the approval; its first build counts."""
        moments = [NOW + timedelta(seconds=each) for each in built]
        assert code_of(rules.can_be_approved("CON-1", NOW, moments)) == code

    @pytest.mark.parametrize(("size", "code"), [(0, None), (9, None), (10, Code.TOO_LARGE)])
    def test_is_kept_up_to_a_size(self, size, code):
        assert code_of(rules.can_keep(size, 9)) == code


def code_of(decision):
    """The code of a refusal; None where it is allowed."""
    return None if isinstance(decision, Allow) else decision.code


class TestACiFile:
    @pytest.mark.parametrize("path", [".github/workflows/ci.yml", ".github/workflows/a_b-c.1.yaml"])
    def test_is_a_yaml_file_of_the_workflows(self, path):
        assert isinstance(rules.can_write_ci(path), Allow)

    @pytest.mark.parametrize(
        "path",
        [".github/workflows/", ".github/workflows/ci.sh", ".github/workflows/a/b.yml", "ci.yml",
         ".github/CODEOWNERS", ".github/workflows-evil/ci.yml", ".github/workflows/.yml",
         ".github/workflows/../x.yml", ".GitHub/workflows/ci.yml", ".github/workflows/ci.yml\n"],
    )  # fmt: skip
    def test_is_nothing_else(self, path):
        assert isinstance(rules.can_write_ci(path), Deny)


class TestSettling:
    """Spec: hands 31."""

    @pytest.mark.parametrize("state", DeploymentState)
    @pytest.mark.parametrize("is_replaced", [True, False])
    def test_is_of_the_latest_whose_end_is_unknown(self, state, is_replaced):
        found = rules.can_settle(state, is_replaced=is_replaced)
        is_allowed = state is DeploymentState.UNKNOWN and not is_replaced
        assert isinstance(found, Allow) is is_allowed
        said = "a later deployment took its place" if is_replaced else f"the deployment is {state}"
        assert is_allowed or found.message == said


class TestServices:
    """Spec: hands 37."""

    @pytest.mark.parametrize("state", DeploymentState)
    @pytest.mark.parametrize("is_current", [True, False])
    def test_are_taken_down_by_the_latest_that_may_run(self, state, is_current):
        found = rules.can_take_down(state, is_current=is_current)
        is_allowed = state in {"succeeded", "unknown"} and is_current
        assert isinstance(found, Allow) is is_allowed
        said = f"the deployment is {state}" if is_current else "a later deployment took its place"
        assert is_allowed or found.message == said

    @pytest.mark.parametrize("used", [0, 1, 2, 3])
    @pytest.mark.parametrize("takes_one_over", [True, False])
    def test_have_a_number(self, used, takes_one_over):
        found = rules.can_have_place(used, 2, takes_one_over=takes_one_over)
        expected = None if takes_one_over or used < 2 else Code.QUOTA_EXCEEDED
        assert code_of(found) is expected
