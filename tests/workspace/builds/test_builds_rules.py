"""Environments, digests, Dockerfiles, users, ports: pure tables."""

import pytest

from core.decision import Allow, Code, Deny
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


OWN, OTHER = "nexus-203599e651/o3", "nexus-203599e651/o5"


class TestADockerfile:
    @pytest.mark.parametrize(
        "text",
        ["FROM scratch\nADD http://169.254.169.254/ /x", "add . /", "  \tAdd x y",
         "ONBUILD ADD a b", "onbuild onbuild add a b",
         "A\\\nDD http://x /", "A\\ \n# note\n\nDD http://x /",
         "# escape=`\nA`\nDD http://x /", "FROM a\r\nADD b c\r\n", "ADD\tx y", "ADD --link x y",
         "A\\\r\nDD http://x /", "RUN x \\\\\nA\\\nDD http://x /", "RUN x ``\nA`\nDD http://x /",
         "RUN x \\\n\x1c\nA\\\nDD http://x /", "RUN x \\\n\x1f# y\nA\\\nDD http://x /"],
    )  # fmt: skip
    def test_fetches_nothing(self, text):
        assert isinstance(rules.can_build_from(text, OWN), Deny)

    @pytest.mark.parametrize(
        "text",
        ["FROM scratch\nCOPY . /", "# ADD nothing\nFROM app", "RUN useradd x", "ADDENDUM x",
         "LABEL a=ADD", "RUN echo \\\n  ADDED", ""],
    )  # fmt: skip
    def test_copies(self, text):
        assert isinstance(rules.can_build_from(text, OWN), Allow)

    @pytest.mark.parametrize(
        "image",
        [f"{OTHER}/api:1", f"docker.io/{OTHER}/api:1", f"index.docker.io/{OTHER}/api",
         f"{OWN}0/api", "9a", "12", "CAFE", "sha256:9a", "sha256:$X", "$BASE", "${BASE}:1",
         "py$X:1", "a/b$X", "containers-storage:9a", "docker-daemon:x:1", "dir:/etc",
         "oci-archive:/x", "docker://x", "'9a'", '"9a"', "9\\a", "'$X'", "x:$X/y"],
    )  # fmt: skip
    @pytest.mark.parametrize(
        "line",
        ["FROM {}", "from  --platform=linux/amd64 {} AS x", "ONBUILD FROM {}", "FROM \\\n# x\n {}",
         "FROM x AS y\nCOPY --chown=1:1 --from={} /x /y", "# escape=`\nCOPY --from=`\n{} a b",
         "RUN --mount=type=bind,from={},target=/x cat /x/y", "FROM\v{}", "FROM\f{} AS x",
         "FROM\r{}", "FROM --platform=linux/amd64\v{}", "FROM x\nCOPY\f--from={} /x /y",
         "RUN echo \\\\\nFROM \\\n{}", "# escape=`\nRUN echo ``\nFROM `\n{}"],
    )  # fmt: skip
    def test_names_no_image_of_somebody_else(self, line, image):
        """The engine knows them by their names and by each piece of their digests."""
        assert isinstance(rules.can_build_from(f"{line.format(image)}\n", OWN), Deny)

    @pytest.mark.parametrize(
        "text",
        ["RUN --network=host x", "RUN --mount=type=tmpfs,target=/x --network=none y",
         "ONBUILD RUN --network=host x", "RUN --network=$N x", "RUN --security=insecure x",
         "RUN --mount=type=cache,target=/x pip install a", "RUN --mount=Type=cache,target=/x y",
         "RUN --mount=type=bind,type=cache,target=/x y", "RUN --mount=type=$T,target=/x y",
         f"ARG M=from={OTHER}/api,target=/x\nRUN --mount=$M y", "RUN --mount=type=ssh x",
         f"RUN --mount=type=bind,From={OTHER}/api,target=/x y", "RUN --$X y", "RUN -- --x",
         f"ARG F=from={OTHER}/api\nCOPY --$F /x /y", "COPY --fr$O=9a /x /y", "FROM --$X scratch"],
    )  # fmt: skip
    def test_reaches_nothing_beyond_its_build(self, text):
        assert isinstance(rules.can_build_from(text, OWN), Deny)

    @pytest.mark.parametrize("option", ["--fr\\om=9a", "--fr'o'm=9a", '--"from"=9a', "--from='9a'"])
    def test_hides_no_option(self, option):
        assert isinstance(rules.can_build_from(f"COPY {option} /x /y", OWN), Deny)

    @pytest.mark.parametrize(
        "text",
        ["ARG V=3.13\nFROM python:${V}-slim AS build\nCOPY --from=build /a /b",
         "FROM \\\n  python:3", f"FROM {OWN}/base:1",
         "FROM localhost:5000/team/app@sha256:" + "a" * 64,
         "FROM docker:27-dind", "RUN --mount=type=bind,source=a,target=/x pip install 'a'",
         "RUN --mount=type=tmpfs,target=/x y", "FROM --platform=$BUILDPLATFORM python:3 AS build",
         "COPY --chown=$U:$G --chmod=644 --link a b", "RUN x --network=host", "FROM scratch",
         "FROM quay.io/org/app:$VERSION"],
    )  # fmt: skip
    def test_names_public_images_its_own_and_its_stages(self, text):
        assert isinstance(rules.can_build_from(text, OWN), Allow)


class TestAContainer:
    @pytest.mark.parametrize(
        "user",
        ["", None, "root", "0", "0:0", "root:root", "00", " 0", "0:12", "+0", "-0:0", "+00:1"],
    )
    def test_is_not_run_by_root(self, user):
        assert rules.user_of({"Config": {"User": user}}) == rules.UNPRIVILEGED

    @pytest.mark.parametrize("user", ["app", "1000", "1000:1000"])
    def test_is_run_by_its_images_user(self, user):
        assert rules.user_of({"Config": {"User": user}}) == user

    @pytest.mark.parametrize(
        ("ports", "port"),
        [({"8080/tcp": {}, "80/tcp": {}}, 80), ({"53/udp": {}}, None), ({}, None), (None, None),
         ({"x/tcp": {}}, None), ({"99999/tcp": {}}, None), ({"8000": {}}, 8000)],
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
