"""What may be built, deployed and configured: environments, digests, Dockerfiles; pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from itertools import takewhile
from typing import Any

from contracts.approvals.rules import ENVIRONMENT
from contracts.branches import visible_text
from core.decision import Allow, Code, Decision, Deny, deny
from workspace.builds.vocabulary import DeploymentState

FREE_ENVIRONMENTS = frozenset({"dev", "development", "test", "testing", "staging"})
"""Environments that need no approval; whatever is not among them is treated as production."""

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
CI_FILE = re.compile(r"\.github/workflows/[A-Za-z0-9_][A-Za-z0-9_.-]*\.ya?ml")
RULE = "docker_deploy deploys one artefact to one environment (spec: hands 9)"
BUILT_RULE = "images are built from their folder (spec: hands 8)"
IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*(\$[A-Za-z0-9._:${}+-]*)?")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""No engine needs them in a Dockerfile. To some they are spaces or ends of lines, to others not."""
JOINTS = (
    re.compile(r"\\[ \t]*\n"),
    re.compile(r"(?<!\\)\\[ \t]*\n"),
    re.compile(r"`[ \t]*\n"),
    re.compile(r"(?<!`)`[ \t]*\n"),
)
"""What joins a line with the next one: for some engines also after one like it, for others not."""
HEXADECIMAL = re.compile(r"[0-9A-Fa-f]+")
OURS = re.compile(r"nexus-[0-9a-f]{10}")
"""How the names of an installation's images begin."""
PLACES = frozenset(
    ["sha256", "containers-storage", "docker-archive", "docker-daemon", "oci", "oci-archive", "dir",
     "ostree", "sif", "tarball"]
)  # fmt: skip
"""What comes before a colon and a digest, or a place of the engine's machine, not before a tag."""
QUOTING = "\"'\\`"
OPTIONS = {
    "FROM": frozenset({"platform"}),
    "COPY": frozenset({"from", "chown", "chmod", "link", "parents", "exclude"}),
    "RUN": frozenset({"mount"}),
}
"""The options of instructions. With `RUN --network=host` a step has the network of its machine."""
MOUNTS = frozenset({"bind", "tmpfs"})
"""What a step may mount: one cache is for the builds of all organisations."""
UNPRIVILEGED = "65534:65534"
ZERO = re.compile(r"[+-]?0+")
"""Root by number, in every spelling that engines read."""


def needs_approval(environment: str) -> bool:
    """Whether a deployment there needs the IT manager's approval (Spec: contracts 16).

    Production does; so does every name that is not known to be something less, and every other
    spelling of one that is.
    """
    return visible_text(environment) not in FREE_ENVIRONMENTS


def can_settle(state: DeploymentState, *, is_replaced: bool) -> Decision:
    """Decide whether a person may settle a deployment: its end is unknown and it is the latest.

    Spec: hands 31.
    """
    if state is DeploymentState.UNKNOWN and not is_replaced:
        return Allow("people settle what ended unknown (spec: hands 31)")
    return deny(
        Code.INVALID_TRANSITION,
        "a later deployment took its place" if is_replaced else f"the deployment is {state}",
        "reload the page; only the latest deployment with an unknown end is settled",
        rule="people settle what ended unknown (spec: hands 31)",
    )


def can_name_environment(environment: str) -> Decision:
    """Decide whether this is an environment's one spelling (Spec: contracts 17)."""
    if ENVIRONMENT.fullmatch(environment):
        return Allow(RULE)
    return deny(
        Code.INVALID_PARAMS,
        "environment: must be lower-case letters, digits and '-', beginning with a letter",
        f"write {visible_text(environment)[:63]}",
        rule=RULE,
        environment="must be written in its one spelling",
    )


def can_name_artifact(artifact: str) -> Decision:
    """Decide whether this names exactly one image: by its digest, never by a tag that moves."""
    if DIGEST.fullmatch(artifact):
        return Allow(RULE)
    return deny(
        Code.INVALID_PARAMS,
        "artifact: must be a digest, sha256: and 64 hexadecimal digits",
        "use the digest that docker_build returned",
        rule=RULE,
        artifact="must be a digest",
    )


def can_be_of(service: str, others: Collection[str]) -> Decision:
    """Decide whether an image may be one of this service; `others` have one of the same digest.

    An approval names a digest: under a second name it would replace another service than the
    approved one (Spec: hands 33).
    """
    other = next(iter(sorted(set(others) - {service})), "")
    if not other:
        return Allow("an image is of one service (spec: hands 33)")
    return deny(
        Code.INVALID_PARAMS,
        f"this image already belongs to the service {other}",
        f"build it as {other}, or let its Dockerfile have a LABEL that names {service}",
        rule="an image is of one service (spec: hands 33)",
        tag=f"the image is one of {other}",
    )


def can_approve_build(approver: int | None, builders: Collection[int]) -> Decision:
    """Decide whether an approval of this agent is one of an image that these agents built."""
    if approver not in builders:
        return Allow("no agent approves its own work (spec: organisation 28)")
    return deny(
        Code.APPROVAL_REQUIRED,
        "the approval is of the agent that built this image",
        "let another agent build it, and ask for an approval of that image",
        rule="no agent approves its own work (spec: organisation 28)",
    )


def can_be_approved(
    approval: str, approved_at: datetime, built_at: Collection[datetime]
) -> Decision:
    """Decide whether an approval names an image that was there: its first build says its service.

    An image that was never built is refused as unknown, whatever approves it.
    """
    if not built_at or min(built_at) <= approved_at:
        return Allow("an approval names an image that was built (spec: hands 33)")
    return deny(
        Code.APPROVAL_REQUIRED,
        f"{approval} approved this image before it was built",
        "let its issuer cancel it with close_contract and approve the image again",
        rule="an approval names an image that was built (spec: hands 33)",
    )


def can_build_from(dockerfile: str, own: str) -> Decision:
    """Decide whether a Dockerfile stays inside its folder, and names no image of somebody else.

    ADD fetches addresses, COPY does not. The engine has the images of all organisations, also by a
    piece of their digests: an image has a plain name, and of this installation's images it is one
    of this organisation, whose names begin with `own` (Spec: hands 8).

    Instructions are found as the engine finds them, after lines were joined by either of the two
    characters that can join them.
    """
    text = dockerfile.replace("\r\n", "\n")
    if CONTROLS.search(text):
        return _unbuildable(
            "the Dockerfile has control characters, which engines read in different ways",
            "write it with spaces, tabs and newlines only",
            "its Dockerfile has control characters",
        )
    for line in _instructions(text):
        words = line.split()
        while words and words[0].upper() == "ONBUILD":
            words = words[1:]
        if words and words[0].upper() == "ADD":
            return _unbuildable(
                "the Dockerfile has an ADD instruction, which can fetch addresses",
                "use COPY for files of the folder",
                "its Dockerfile uses ADD",
            )
        if odd := _odd_option(words):
            return _unbuildable(
                f"the Dockerfile has the option {odd[:100]!r}, which may reach beyond its build",
                "leave it out: FROM takes --platform, RUN --mount of type bind or tmpfs without a "
                "variable, COPY --from, --chown, --chmod, --link, --parents and --exclude",
                "its Dockerfile has an option that may reach beyond its build",
            )
        for image in _images_in(words):
            if not _is_public_or_own(image, own):
                return _unbuildable(
                    f"the Dockerfile names the image or stage {image[:100]!r}",
                    "write a public image's whole name before its tag, such as python:3.13, or "
                    f"one of your own that begins with {own}/; a stage's name is not hexadecimal",
                    "its Dockerfile names an image that may be somebody else's",
                )
    return Allow(BUILT_RULE)


def _unbuildable(message: str, next_action: str, path: str) -> Deny:
    return deny(Code.INVALID_PARAMS, message, next_action, rule=BUILT_RULE, path=path)


def _options_of(words: list[str]) -> list[str]:
    return list(takewhile(lambda word: word.startswith("--"), words[1:]))


def _odd_option(words: list[str]) -> str:
    """An option that an instruction does not take here, or that a variable stands for; or ''."""
    known = OPTIONS.get(words[0].upper()) if words else None
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
    verb = words[0].upper() if words else ""
    if verb not in ("FROM", "COPY", "RUN"):
        return
    options = _options_of(words)
    for option in options:
        if any(sign in option for sign in QUOTING):
            yield option  # the engine takes the quotes out
        for part in option.removeprefix("--").removeprefix("mount=").split(","):
            name, _, image = part.partition("=")
            if (
                name.lower() == "from"
            ):  # a number without a stage is a piece of a digest to some engines
                yield image
    named = words[1 + len(options) :]
    if verb == "FROM" and named and named[0] not in ("\\", "`"):  # its name is in the next line
        yield named[0]


def _is_public_or_own(image: str, own: str) -> bool:
    """Whether a name is no other organisation's image: plain, in place of a digest or its piece."""
    plain, variable, _ = image.partition("$")
    if not IMAGE.fullmatch(image) or "//" in image or HEXADECIMAL.fullmatch(image):
        return False
    if variable and ":" not in plain.rpartition("/")[2]:
        return False  # it stands for the name, not for the tag
    if plain.partition(":")[0].lower() in PLACES:
        return False
    return not OURS.search(image) or image.startswith(f"{own}/")


def _instructions(text: str) -> Iterator[str]:
    """Every line that an engine may take for an instruction."""
    lines = [
        line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")
    ]
    yield from lines
    for joint in JOINTS:
        yield from joint.sub("", "\n".join(lines)).split("\n")


def user_of(image: Mapping[str, Any]) -> str:
    """The user that a container of this image runs as: never root by number or name."""
    named = str((image.get("Config") or {}).get("User") or "")
    first = named.partition(":")[0].strip()
    if first in ("", "root") or ZERO.fullmatch(first):
        return UNPRIVILEGED
    return named


def volumes_of(image: Mapping[str, Any]) -> list[str]:
    """The folders that an image declares as volumes."""
    declared = (image.get("Config") or {}).get("Volumes") or {}
    return sorted({posixpath.normpath(path) for path in declared})


def can_hold_volumes(image: Mapping[str, Any]) -> Decision:
    """Decide whether what an image declares as volumes can be scratch space of its container.

    An engine's own volume would be room on the machine's disk, without a limit (Spec: hands 24).
    """
    odd = [path for path in volumes_of(image) if not re.match(r"/[^/]", path)]
    if not odd:
        return Allow("a container writes to scratch space only (spec: hands 24)")
    return deny(
        Code.INVALID_PARAMS,
        f"the image declares the volume {odd[0][:100]!r}, which is no absolute path of a folder",
        "declare volumes as absolute paths in the Dockerfile and build the image again",
        rule="a container writes to scratch space only (spec: hands 24)",
        artifact="its image declares a volume that is no absolute path",
    )


def port_of(image: Mapping[str, Any]) -> int | None:
    """The lowest TCP port that an image says it serves."""
    exposed = (image.get("Config") or {}).get("ExposedPorts") or {}
    ports = [int(port) for port, _, kind in (name.partition("/") for name in exposed)
             if port.isdigit() and kind in ("", "tcp") and 0 < int(port) < 65536]  # fmt: skip
    return min(ports, default=None)


def health_path_of(image: Mapping[str, Any]) -> str:
    """The path of an image's health check, from its label `nexus.health`."""
    path = str(((image.get("Config") or {}).get("Labels") or {}).get("nexus.health", "/"))
    return path if re.fullmatch(r"/[A-Za-z0-9._~/-]{0,200}", path) else "/"


def can_write_ci(path: str) -> Decision:
    """Decide whether a path is a file of the CI/CD configuration (Spec: hands 10)."""
    if CI_FILE.fullmatch(path):
        return Allow("manage_ci_config changes CI files only (spec: hands 10)")
    return deny(
        Code.SCOPE_DENIED,
        f"{path[:200]} is no file of the CI configuration",
        "name a YAML file in .github/workflows/",
        rule="manage_ci_config changes CI files only (spec: hands 10)",
    )
