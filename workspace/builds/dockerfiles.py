"""What a Dockerfile may say: it stays within its build, however engines read it; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, takewhile

from core.decision import Allow, Code, Decision, Deny, deny
from workspace.builds.expanding import expanded_length

BUILT_RULE = "images are built from their folder (spec: hands 8)"
IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*(\$[A-Za-z0-9._:${}+-]*)?")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd]")
"""No engine needs them in a Dockerfile. To some they are spaces or ends of lines, to others not.

The last one stands for bytes that are no UTF-8.
"""
SPACES = re.compile(r"[ \t\n]+")
"""What every engine takes for spaces, where there are no control characters."""
JOINTS = (
    re.compile(r"\\[ \t]*\n"),
    re.compile(r"(?<!\\)\\[ \t]*\n"),
    re.compile(r"`[ \t]*\n"),
    re.compile(r"(?<!`)`[ \t]*\n"),
)
"""What joins a line with the next one: for some engines also after one like it, for others not."""
HEXADECIMAL = re.compile(r"[0-9A-Fa-f]+")
"""A number is one too: some engines take that of a stage which there is not for such a piece."""
OURS = re.compile(r"nexus-[0-9a-f]{10}")
"""How the names of an installation's images begin."""
PLACES = frozenset(
    ["sha256", "containers-storage", "docker-archive", "docker-daemon", "oci", "oci-archive", "dir",
     "ostree", "sif", "tarball"]
)  # fmt: skip
"""What comes before a colon and a digest, or a place of the engine's machine, not before a tag."""
OFFICIAL = re.compile(r"[A-Za-z0-9._-]+|((docker\.io/)?library/)?[a-z0-9_-]+([:@][^/]*)?")
"""Docker's own images, and stages. With a variable, a name with a dot could become a registry's."""
FRONTEND = re.compile(
    r"\A\s*\{|^[^\S\n]*(#|//)[^\S\n]*syntax[^\S\n]*=", re.IGNORECASE | re.MULTILINE
)
"""It names a program that reads the file in place of the engine, to those that know it.

Looked for in each line by itself: over lines, a million empty ones would take hours.
"""
QUOTING = "\"'\\`"
OPTIONS = {
    "FROM": frozenset({"platform"}),
    "COPY": frozenset({"from", "chown", "chmod", "link", "parents", "exclude"}),
    "RUN": frozenset({"mount"}),
}
"""The options of instructions. With `RUN --network=host` a step has the network of its machine."""
MOUNTS = frozenset({"bind", "tmpfs"})
"""What a step may mount: one cache is for the builds of all organisations."""
ODD_HEREDOC = re.compile(
    r"""(?<!\S)[0-9]*<<(?![<\s]|$)(?!-?(["']?)[A-Za-z0-9_][^\s\\`$'"]*\1(?!\S))"""
)
"""A heredoc whose last line may be no plain word: one that ends with a backslash would hide from
this reader, but from no engine, what the next line begins."""

VERBS = frozenset(
    ["ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL",
     "MAINTAINER", "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"]
)  # fmt: skip
MOST_INSTRUCTIONS = 500
"""An engine keeps an image for each, which repeats those before it: thousands take it gigabytes."""
MOST_EXPANDED = 100_000
"""Characters of its instructions once their variables stand for their values."""


def can_build_from(dockerfile: str, own: str, bases: Sequence[str] = ()) -> Decision:
    """Decide whether a Dockerfile stays inside its folder, and names no image of somebody else.

    ADD fetches addresses, COPY does not. The engine has the images of all organisations, also by a
    piece of their digests: an image has a plain name, and of this installation's images it is one
    of this organisation, whose names begin with `own` (Spec: hands 8). It is official, or `bases`
    names it or where it is from: others may bring instructions by ONBUILD, and an agent that names
    any registry reaches the network of the engine.

    Instructions are found as the engine finds them, after lines were joined by either of the two
    characters that can join them.
    """
    text = dockerfile.replace("\r\n", "\n")
    if refused := _refused_text(text):
        return refused
    readings = [*_readings(text)]
    if max(map(_expanded, readings)) > MOST_EXPANDED:
        return _unbuildable(
            f"the Dockerfile has over {MOST_EXPANDED} characters where its variables stand for "
            "their values",
            "use fewer variables whose values hold other variables",
            "its Dockerfile becomes too long by its variables",
        )
    if max(map(_instructions, readings)) > MOST_INSTRUCTIONS:
        return _unbuildable(
            f"the Dockerfile has over {MOST_INSTRUCTIONS} instructions",
            "put commands together with &&, or into scripts of the folder",
            "its Dockerfile has too many instructions",
        )
    lines = [line for reading in readings for line in reading]
    may_vary = not any(_verb(line.split()) == "ARG" and "/" in line for line in lines)
    for line in lines:
        words = _without_onbuild(line.split())
        if refused := _refused_instruction(words, line) or _refused_image(words, own, bases):
            return refused
        if not may_vary and any("$" in image for image in _images_in(words)):
            return _unbuildable(
                "the Dockerfile has a variable in the name of an image, and an ARG with a slash",
                "write the image's tag without a variable: with a slash in its tag an image would "
                "be another registry's",
                "a variable in its Dockerfile may name another registry",
            )
    return Allow(BUILT_RULE)


def _refused_text(text: str) -> Deny | None:
    """The refusal of what engines may read in another way than this reader."""
    if CONTROLS.search(text):
        return _unbuildable(
            "the Dockerfile has control characters, or bytes that are no UTF-8, which engines read "
            "in different ways",
            "write it in UTF-8, with spaces, tabs and newlines only",
            "its Dockerfile has control characters, or bytes that are no UTF-8",
        )
    if FRONTEND.search(text):
        return _unbuildable(
            "the Dockerfile names another program that reads it (syntax=)",
            "leave that line out",
            "its Dockerfile names a program of its own",
        )
    return None


def _refused_instruction(words: list[str], line: str) -> Deny | None:
    """The refusal of an instruction that fetches, or reaches beyond its build."""
    if _verb(words) in OPTIONS and ODD_HEREDOC.search(line):
        return _unbuildable(
            "the Dockerfile has a heredoc whose name is no plain word",
            "end its heredocs with a word such as EOF",
            "a heredoc in its Dockerfile has an odd name",
        )
    if _verb(words) == "ADD":
        return _unbuildable(
            "the Dockerfile has an ADD instruction, which can fetch addresses",
            "use COPY for files of the folder",
            "its Dockerfile uses ADD",
        )
    if odd := _foreign_option(line):
        return _unbuildable(
            f"the Dockerfile has the option {odd[:100]!r}, which engines read in different ways",
            "write options of FROM, COPY and RUN in ASCII: engines end an option within some other "
            "characters",
            "an option in its Dockerfile is not in ASCII",
        )
    if odd := _odd_option(words):
        return _unbuildable(
            f"the Dockerfile has the option {odd[:100]!r}, which may reach beyond its build",
            "leave it out: FROM takes --platform, RUN --mount of type bind or tmpfs without a "
            "variable, COPY --from, --chown, --chmod, --link, --parents and --exclude",
            "its Dockerfile has an option that may reach beyond its build",
        )
    return None


def _refused_image(words: list[str], own: str, bases: Sequence[str]) -> Deny | None:
    """The refusal of an image that an instruction names, and may not."""
    for image in _images_in(words):
        if not _is_public_or_own(image, own):
            return _unbuildable(
                f"the Dockerfile names the image or stage {image[:100]!r}",
                "write a public image's whole name before its tag, such as python:3.13, or "
                f"one of your own that begins with {own}; a stage's name is not hexadecimal",
                "its Dockerfile names an image that may be somebody else's",
            )
        if not _is_trusted(image, own, bases):
            return _unbuildable(
                f"the Dockerfile uses the image {image[:100]!r}, which is not trusted here",
                "use an official image such as python:3.13, or one of your own that begins with "
                + ", or with ".join((own, *bases[:10])),
                "its Dockerfile uses an image that is not trusted here",
            )
    return None


def _unbuildable(message: str, next_action: str, path: str) -> Deny:
    return deny(Code.INVALID_PARAMS, message, next_action, rule=BUILT_RULE, path=path)


def _verb(words: list[str]) -> str:
    """The instruction's name; engines compare small letters, and the dotted I becomes an i."""
    return words[0].replace("\u0130", "I").upper() if words else ""


def _options_of(words: list[str]) -> list[str]:
    return list(takewhile(lambda word: word.startswith("--"), words[1:]))


def _foreign_option(line: str) -> str:
    """An option that is not in ASCII, or ''.

    Engines look for its end byte by byte, and take 0x85 and 0xA0 for spaces: to them `à--from=x`
    ends one option and begins another. What is a space in Unicode alone ends none.
    """
    words = _without_onbuild(SPACES.split(line.strip()))
    options = _options_of(words) if _verb(words) in OPTIONS else []
    return next((option for option in options if not option.isascii()), "")


def _odd_option(words: list[str]) -> str:
    """An option that an instruction does not take here, or that a variable stands for; or ''."""
    known = OPTIONS.get(_verb(words))
    for option in _options_of(words) if known else ():
        name, _, value = option.removeprefix("--").partition("=")
        if name not in (known or ()) or (name == "mount" and not _is_within_build(value)):
            return option
    return ""


def _is_within_build(mount: str) -> bool:
    """Whether a mount is a folder of the build: of its files, its stages, or of nothing yet."""
    fields = [field.partition("=") for field in mount.split(",")]
    kinds = {value for name, _, value in fields if name.lower() == "type"}
    return "$" not in mount and kinds <= MOUNTS


def _images_in(words: list[str]) -> Iterator[str]:
    """The images and stages that an instruction names: after FROM, and by `from=` in an option."""
    verb = _verb(words)
    if verb not in OPTIONS:
        return
    options = _options_of(words)
    for option in options:
        if any(sign in option for sign in QUOTING):
            yield option  # the engine takes the quotes out
        for part in option.removeprefix("--").removeprefix("mount=").split(","):
            name, _, image = part.partition("=")
            if name.lower() == "from":
                yield image
    if base := _base_in(words):
        yield base


def _base_in(words: list[str]) -> str:
    """The image or stage that FROM names; '' where its name is in the next line."""
    named = words[1 + len(_options_of(words)) :] if _verb(words) == "FROM" else []
    return named[0] if named and named[0] not in ("\\", "`") else ""


def _is_trusted(base: str, own: str, bases: Sequence[str]) -> bool:
    """Whether an image brings no instructions that were not checked."""
    if OFFICIAL.fullmatch(base) and not base.startswith("localhost"):
        return True
    return _is_own(base, own) or base in bases or any(_is_of(base, each) for each in bases)


def _is_own(image: str, own: str) -> bool:
    """Whether it is an image of this organisation, which has no slash.

    What is before a slash could be a registry whose host begins like such an image:
    `nexus-…-o1-x.example.org/app`.
    """
    return image.startswith(own) and "/" not in image


def _is_of(image: str, place: str) -> bool:
    """Whether an image lies below a place, or is what it names by some tag or digest.

    `team:5000/x` is not of the place `team`: what is before its slash is the host of a registry.
    """
    name = place.rstrip("/")
    rest = image[len(name) :] if image.startswith(name) else ""
    return rest.startswith("/") or (rest.startswith((":", "@")) and "/" not in rest)


def _is_public_or_own(image: str, own: str) -> bool:
    """Whether a name is no other organisation's image: plain, in place of a digest or its piece."""
    plain, variable, _ = image.partition("$")
    if not IMAGE.fullmatch(image) or "//" in image or HEXADECIMAL.fullmatch(image):
        return False
    if variable and ":" not in plain.rpartition("/")[2]:
        return False  # it stands for the name, not for the tag
    if plain.partition(":")[0].lower() in PLACES:
        return False
    return not OURS.search(image) or _is_own(image, own)


def _readings(text: str) -> Iterator[list[str]]:
    """The lines that an engine may take for instructions, in each way to join them."""
    lines = [
        line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")
    ]
    yield lines
    for joint in JOINTS:
        yield joint.sub("", "\n".join(lines)).split("\n")


def _instructions(lines: list[str]) -> int:
    return sum(_verb(line.split(None, 1)) in VERBS for line in lines)


def _expanded(lines: list[str]) -> int:
    bare = (_without_onbuild(line.split()) for line in lines)
    return expanded_length((_verb(words), " ".join(words[1:])) for words in bare)


def _without_onbuild(words: list[str]) -> list[str]:
    return [*dropwhile(lambda word: _verb([word]) == "ONBUILD", words)]
