"""Which Dockerfiles are built: none that reaches beyond its build, however it is written."""

import pytest

from core.decision import Allow, Deny
from workspace.builds import dockerfiles

OWN, OTHER = "nexus-203599e651-o3-", "nexus-203599e651-o5-"
BASES = ["quay.io/org/", "ghcr.io/o/app", "localhost:5000", "team"]


class TestADockerfile:
    @pytest.mark.parametrize(
        "text",
        ["FROM scratch\nADD http://169.254.169.254/ /x", "add . /", "  \tAdd x y",
         "ONBUILD ADD a b", "onbuild onbuild add a b", "ONBU\u0130LD ADD a b",
         "A\\\nDD http://x /", "A\\ \n# note\n\nDD http://x /",
         "# escape=`\nA`\nDD http://x /", "FROM a\r\nADD b c\r\n", "ADD\tx y", "ADD --link x y",
         "A\\\r\nDD http://x /", "RUN x \\\\\nA\\\nDD http://x /", "RUN x ``\nA`\nDD http://x /",
         "RUN x \\\n\x1c\nA\\\nDD http://x /", "RUN x \\\n\x1f# y\nA\\\nDD http://x /"],
    )  # fmt: skip
    def test_fetches_nothing(self, text):
        assert isinstance(dockerfiles.can_build_from(text, OWN), Deny)

    @pytest.mark.parametrize(
        "text",
        ["FROM scratch\nCOPY . /", "# ADD nothing\nFROM app", "RUN useradd x", "ADDENDUM x",
         "LABEL a=ADD", "RUN echo \\\n  ADDED", ""],
    )  # fmt: skip
    def test_copies(self, text):
        assert isinstance(dockerfiles.can_build_from(text, OWN), Allow)

    @pytest.mark.parametrize(
        "image",
        [f"{OTHER}api:1", f"docker.io/{OTHER}api:1", f"index.docker.io/{OTHER}api",
         "nexus-203599e651/o5/api:1", "nexus-203599e651/o3/api:1",
         f"{OWN[:-1]}0-api", f"{OWN}x.evil.example/api:1", f"{OWN}x:5000/api", f"{OWN}x/api",
         "9a", "12", "CAFE", "sha256:9a", "sha256:$X", "$BASE", "${BASE}:1",
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
        assert isinstance(dockerfiles.can_build_from(f"{line.format(image)}\n", OWN), Deny)

    @pytest.mark.parametrize(
        "text",
        ["RUN --network=host x", "RUN --mount=type=tmpfs,target=/x --network=none y",
         "ONBUILD RUN --network=host x", "RUN --network=$N x", "RUN --security=insecure x",
         "RUN --mount=type=cache,target=/x pip install a", "RUN --mount=Type=cache,target=/x y",
         "RUN --mount=type=bind,type=cache,target=/x y", "RUN --mount=type=$T,target=/x y",
         f"ARG M=from={OTHER}api,target=/x\nRUN --mount=$M y", "RUN --mount=type=ssh x",
         f"RUN --mount=type=bind,From={OTHER}api,target=/x y", "RUN --$X y", "RUN -- --x",
         f"ARG F=from={OTHER}api\nCOPY --$F /x /y", "COPY --fr$O=9a /x /y", "FROM --$X scratch"],
    )  # fmt: skip
    def test_reaches_nothing_beyond_its_build(self, text):
        assert isinstance(dockerfiles.can_build_from(text, OWN), Deny)

    @pytest.mark.parametrize(
        ("name", "end"),
        [("'x\\'", "x\\"), ('"x\\\\"', "x\\"), ("-'x\\'", "\tx\\"), ("x\\\\", "x\\"), ("x`", "x`"),
         ("'a b\\'", "a b\\"), ("'#x'", "#x"), ("''", ""), ("${A:-x\\\\}", "x\\"), ("'\\'", "\\")],
    )  # fmt: skip
    @pytest.mark.parametrize("line", ["RUN cat <<{}", "RUN cat \\\n  3<<{}", "COPY <<{} /x"])
    def test_hides_no_instruction_behind_a_heredoc(self, line, name, end):
        sign = "`" if "`" in name else "\\"
        text = f"{line.format(name)}\ny {sign}\n{end}\nRUN {sign}\n--network=host x\n"
        assert isinstance(dockerfiles.can_build_from(text, OWN), Deny)

    @pytest.mark.parametrize("option", ["--fr\\om=9a", "--fr'o'm=9a", '--"from"=9a', "--from='9a'"])
    def test_hides_no_option(self, option):
        assert isinstance(dockerfiles.can_build_from(f"COPY {option} /x /y", OWN), Deny)

    @pytest.mark.parametrize(
        "text",
        ["ARG X\u00c3=linux/amd64\nFROM --platform=$X\u00e0{} AS x",
         "COPY --chown=\u00e0--from={} /x /y", "ONBUILD COPY --chown=\u0120--from={} /x /y",
         "COPY --chown=1\u00c5 --from={} /x /y", "COPY --chown=1\u2003x --from={} /x /y",
         "\u3000COPY --chown=\\\n\u00e0--from={} /x /y", "COPY \ufffd--from={} /x /y",
         "RUN --mount=type=tmpfs,target=/\u00e0--mount=type=bind,from={},target=/x y"],
    )  # fmt: skip
    def test_begins_no_option_within_a_character(self, text):
        """Engines read options byte by byte, and take 0x85 and 0xA0 for spaces."""
        assert isinstance(dockerfiles.can_build_from(text.format("9a"), OWN), Deny)

    @pytest.mark.parametrize(
        "text",
        ["ARG V=3.13\nFROM python:${V}-slim AS build\nCOPY --from=build /a /b",
         "FROM \\\n  python:3", f"FROM {OWN}base:1",
         "FROM docker.io/library/python@sha256:" + "a" * 64, "FROM library/python:$V",
         "FROM x AS Build.2\nFROM Build.2", "FROM python@sha256:" + "a" * 64,
         "FROM x\nCOPY --from=quay.io/org/tool:$V /a /b", "FROM x\nCOPY --from=busybox /a /b",
         "ARG V=3\nFROM python:$V\nARG W=3.1\nRUN x /y",
         "FROM python:3\nARG U=https://x.example/y\nRUN z $U", "FROM x\n# of syntax: a=b\nRUN y",
         "FROM docker:27-dind", "RUN --mount=type=bind,source=a,target=/x pip install 'a'",
         "RUN --mount=type=tmpfs,target=/x y", "FROM --platform=$BUILDPLATFORM python:3 AS build",
         "COPY --chown=$U:$G --chmod=644 --link a b", "RUN x --network=host", "FROM scratch",
         "FROM quay.io/org/app:$VERSION", "FROM ghcr.io/o/app", "FROM ghcr.io/o/app@sha256:a",
         "FROM team/x:1",
         "FROM localhost:5000/a:1", "COPY --chown=1:1 \u00e0 /\u00e0", "RUN echo \u00e0 --x",
         "LABEL a=\u00e0", "RUN cat <<EOF > x\n# \\\nEOF\nRUN x",
         "RUN <<-'E.1' sh\n\tE.1", 'COPY <<"A" <<B /x/\nA\nB', "RUN echo $((1 << 2)) <<< a\\b"],
    )  # fmt: skip
    def test_names_public_images_its_own_and_its_stages(self, text):
        assert isinstance(dockerfiles.can_build_from(text, OWN, BASES), Allow)

    @pytest.mark.parametrize(
        "base",
        ["evil/x", "team:5000/x", "team:5000/x@sha256:a", "docker.io/evil/x:1",
         "quay.io/evil/x", "quay.io/organ/x", "quay.io/org",
         "a.b:1", "ghcr.io/o/apple", "ghcr.io/o", "evil.example:$P", "localhost:$P",
         "library/evil/x",
         "docker.io/x", "docker.io/library/evil/x", "evil:443/x/y", "localhost:443/x",
         "localhost:5001/x"],
    )  # fmt: skip
    @pytest.mark.parametrize(
        "line",
        ["FROM {}", "FROM --platform=$P \\\n {} AS x", "RUN x\nfrom {}", "COPY --from={} /a /b",
         "RUN --mount=type=bind,from={},target=/x y"],
    )  # fmt: skip
    def test_uses_no_image_that_is_not_trusted(self, line, base):
        """What ONBUILD says in an image runs in each build that begins with it, unseen; and an
        engine that is asked for `10.0.0.5:80/x` says who answers there.
        """
        text = f"{line.format(base)}\n"
        assert isinstance(dockerfiles.can_build_from(text, OWN, BASES), Deny)

    @pytest.mark.parametrize(
        "argument",
        ["ARG V=5000/evil/base", "arg V='5000/evil'", "ARG A=1 V=5000\\/x", "ARG V=5000\\\n/evil",
         "FROM x\nARG V=1/x"],
    )  # fmt: skip
    @pytest.mark.parametrize(
        "image", ["python:$V", "registry:5000$V", f"{OWN}api:${{V}}", "ghcr.io/o/app:$V"]
    )
    def test_lets_no_variable_name_another_registry(self, argument, image):
        """The image `python:5000/evil` is one of a registry: its host is `python`."""
        text = f"{argument}\nFROM {image}\n"
        assert isinstance(dockerfiles.can_build_from(text, OWN, BASES), Deny)

    @pytest.mark.parametrize(
        "text",
        [
            "ENV A=xxxxxxxxxx\n" + "ENV A=$A$A\n" * 14,
            "ENV A xxxxxxxxxx\n" + "ENV A ${A}$A\n" * 14,
            "ENV A xxxxxxxxxx\n" + "ENV A x=$A$A\n" * 14,
            "ENV A xxxxxxxxxx\n" + 'ENV "A" x=$A$A\n' * 14,
            "ARG A=xxxxxxxxxx\n" + "ARG \\\nA=$A$A\n" * 14,
            "ENV A=xxxxxxxxxx\n" + 'ENV "A"=$A$A\n' * 14,
            "ENV A=xxxxxxxxxx N=A\n" + "ENV $N=$A$A\n" * 14,
            "ONBUILD ENV A=xxxxxxxxxx\n" + "ONBUILD ENV A=${A:-$A}$A\n" * 14,
            "ENV A=xxxxxxxxxx\nENV A=${A//x/" + "y" * 10_000 + "}\n",
            "ENV A=" + "x" * 10_000 + "\nLABEL " + "$A" * 10 + "\n",
            "LABEL " + "$PATH" * 100 + "\n",
        ],
    )
    def test_doubles_no_variable_without_end(self, text):
        decision = dockerfiles.can_build_from(f"FROM python:3\n{text}", OWN)
        assert isinstance(decision, Deny)
        assert "variables stand for" in decision.message

    @pytest.mark.parametrize(
        "line", ["USER 1", "user\t1", "ONBUILD USER 1", "U\\\nSER 1", "\u3000LABEL a=\u00e0"]
    )
    def test_has_a_limited_number_of_instructions(self, line):
        """An engine keeps an image for each, with all that was before."""
        many = [line] * dockerfiles.MOST_INSTRUCTIONS
        assert isinstance(dockerfiles.can_build_from("\n".join(many), OWN), Allow)
        assert isinstance(dockerfiles.can_build_from("\n".join([*many, line]), OWN), Deny)

    def test_counts_no_lines_of_an_instruction(self):
        text = "RUN x " + "\\\n y " * 1000 + "\n# FROM z" * 1000
        assert isinstance(dockerfiles.can_build_from(text, OWN), Allow)

    @pytest.mark.parametrize(
        "text",
        [
            "ENV A=1 B=2\n" + "ENV PATH=/opt/$A/bin:$PATH\n" * 5,
            "ARG V=1.2\n" + "LABEL version=$V of=${V}\nCOPY app-$V /srv/$V\n" * 200,
            "RUN " + "echo $A$B; " * 2_000 + "\n",
            "ENV JAVA_HOME=/opt/java PATH=$PATH:/opt/java/bin\nWORKDIR $JAVA_HOME\n",
        ],
    )
    def test_uses_variables(self, text):
        assert isinstance(dockerfiles.can_build_from(f"FROM python:3\n{text}", OWN), Allow)

    @pytest.mark.parametrize(
        "line",
        ["# syntax=evil/x", "#SYNTAX = evil/x:1", "// syntax=evil/x", '{"syntax": "evil/x"}',
         "#!/bin/sh\n# syntax=evil/x", "\n # escape=`\n #  syntax=evil/x"],
    )  # fmt: skip
    def test_names_no_program_that_reads_it(self, line):
        assert isinstance(dockerfiles.can_build_from(f"{line}\nFROM x\n", OWN, BASES), Deny)
