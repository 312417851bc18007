"""What may be built, deployed and configured: environments, digests, Dockerfiles; pure."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from contracts.approvals.rules import ENVIRONMENT
from contracts.branches import visible_text
from core.decision import Allow, Code, Decision, Deny, deny
from workspace.builds.vocabulary import MAY_RUN, DeploymentState

FREE_ENVIRONMENTS = frozenset({"dev", "development", "test", "testing", "staging"})
"""Environments that need no approval; whatever is not among them is treated as production."""

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
CI_FILE = re.compile(r"\.github/workflows/[A-Za-z0-9_][A-Za-z0-9_.-]*\.ya?ml")
RULE = "docker_deploy deploys one artefact to one environment (spec: hands 9)"
UNPRIVILEGED = "65534:65534"
ZERO = re.compile(r"[+-]?0+")
"""Root by number, in every spelling that engines read."""
NUMBERS = re.compile(r"([0-9]{1,10})(:[0-9]{1,10})?")
LAST_UID = 2**31 - 1
"""Engines take no larger number; one that takes it may count from 0 again."""

MOST_DESCRIPTION = 16_384
"""Bytes that an image says of itself: engines repeat it in each list and in each step of a build.
Official images have 5,000 at most."""
CALMEST = 10 * 10**9
"""Billionths of a second between two health checks of a container at least: each is some work of
the engine itself, which no limit of the container holds."""
ENGINES_OWN = 30 * 10**9
"""What engines take for an interval that is not said."""


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


def can_take_down(state: DeploymentState, *, is_current: bool) -> Decision:
    """Decide whether a person may take a service down by this deployment: it runs, or may run.

    Spec: hands 37.
    """
    rule = "people take down what runs (spec: hands 37)"
    if state in MAY_RUN and is_current:
        return Allow(rule)
    problem = f"the deployment is {state}" if is_current else "a later deployment took its place"
    return deny(
        Code.INVALID_TRANSITION,
        problem,
        "reload the page; the latest deployment that did not fail is taken down",
        rule=rule,
    )


def can_find_all(others: Collection[str]) -> Decision:
    """Decide whether a service can be taken down whole: `others` are containers of it that this
    installation does not know by its SECRET_KEY.

    Spec: hands 37.
    """
    rule = "people take down what runs (spec: hands 37)"
    if not others:
        return Allow(rule)
    return deny(
        Code.INVALID_TRANSITION,
        f"it runs in a container that was named under another SECRET_KEY: {min(others)[:12]}",
        "remove that container on the engine's machine, then take the service down again",
        rule=rule,
    )


def can_have_place(used: int, most: int, *, takes_one_over: bool) -> Decision:
    """Decide whether an organisation with so many containers may have that of another service.

    Spec: hands 37.
    """
    rule = "an organisation has a number of services (spec: hands 37)"
    if takes_one_over or used < most:
        return Allow(rule)
    return deny(
        Code.QUOTA_EXCEEDED,
        f"services that an organisation runs: {used} of {most} are used",
        "deploy a service that runs already, or tell your superior: a person of the Board takes "
        "one down, and the people who run NEXUS set the limit",
        rule=rule,
        what="services that an organisation runs",
        used=used,
        limit=most,
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
    approved one (Spec: hands 33). The refusal does not name the other service: its name is text of
    the agent that built it (Spec: mail 38).
    """
    if set(others) <= {service}:
        return Allow("an image is of one service (spec: hands 33)")
    return deny(
        Code.INVALID_PARAMS,
        "this image already belongs to another service",
        f"build it as that service, or let its Dockerfile have a LABEL that names {service}",
        rule="an image is of one service (spec: hands 33)",
        tag="the image is one of another service",
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


def user_of(image: Mapping[str, Any]) -> str:
    """The user that a container of this image runs as: never root by number or name."""
    named = str((image.get("Config") or {}).get("User") or "")
    first = named.partition(":")[0].strip()
    if first in ("", "root") or ZERO.fullmatch(first):
        return UNPRIVILEGED
    return named


def can_run_as(image: Mapping[str, Any]) -> Decision:
    """Decide whether a container of this image is not run by root: its user is a number.

    Which number a name has is a line of a file in the image (Spec: hands 24).
    """
    user = user_of(image)
    found = NUMBERS.fullmatch(user)
    if found and int(found[1]) <= LAST_UID:
        return Allow("a container is not run by root (spec: hands 24)")
    return deny(
        Code.INVALID_PARAMS,
        f"the image names the user {user[:100]!r}, who may be root by a file of the image",
        "write the number in the Dockerfile, such as USER 1000:1000, and build the image again",
        rule="a container is not run by root (spec: hands 24)",
        artifact="its image names a user by no number",
    )


def can_keep(size: int, most: int) -> Decision:
    """Decide whether an image of so many bytes is kept on the engine (Spec: hands 35)."""
    if size <= most:
        return Allow("images have a limit (spec: hands 35)")
    return deny(
        Code.TOO_LARGE,
        f"the image has {size} bytes, and at most {most} are kept",
        "begin with a smaller image, or copy less into it, and build again",
        rule="images have a limit (spec: hands 35)",
    )


def can_describe(image: Mapping[str, Any]) -> Decision:
    """Decide whether an image says so little of itself that engines can repeat it."""
    if len(json.dumps(image.get("Config") or {})) <= MOST_DESCRIPTION:
        return Allow("images have a limit (spec: hands 35)")
    return describes_too_much()


def describes_too_much() -> Deny:
    """The refusal of an image with a long description."""
    return deny(
        Code.TOO_LARGE,
        f"the image says over {MOST_DESCRIPTION} bytes of itself",
        "write fewer or shorter ENV, LABEL, EXPOSE, VOLUME and CMD instructions, and build again",
        rule="images have a limit (spec: hands 35)",
    )


def health_check_of(image: Mapping[str, Any]) -> dict[str, Any] | None:
    """The health check of an image, not more often than engines bear; None where it has none."""
    own = (image.get("Config") or {}).get("Healthcheck") or {}
    if not own.get("Test"):
        return None
    calm = {"Interval": max(own.get("Interval") or ENGINES_OWN, CALMEST)}
    if own.get("StartInterval"):
        calm["StartInterval"] = max(own["StartInterval"], CALMEST)
    return {**own, **calm}


def emptied_labels_of(image: Mapping[str, Any]) -> dict[str, str]:
    """The labels of an image, without their values: an engine gives a container those that are not
    said for it, and programs next to the engine, such as proxies, do what labels say.
    """
    return dict.fromkeys((image.get("Config") or {}).get("Labels") or {}, "")


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
    named = [re.fullmatch(r"([0-9]{1,5})(/tcp|/?)", name) for name in exposed]
    ports = [port for found in named if found and 0 < (port := int(found[1])) < 65536]
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
