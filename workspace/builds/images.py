"""Building images from a folder of the company tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from contracts.session_contract import require_working_contract
from core.actions import Action
from core.database import database_now, hold_lock
from core.decision import Code, Denied, refuse, require
from ledger.services import record
from orgchart.policy.vocabulary import Access
from toolbox.caller import Caller
from workspace.builds import rules
from workspace.builds.containers import image_prefix, limits
from workspace.builds.context import packed_folder
from workspace.builds.engine import (
    MOST_ANSWER,
    AnswerTooLarge,
    Engine,
    EngineRefused,
    EngineStopped,
    EngineUnavailable,
    opened,
)
from workspace.builds.models import ImageBuild
from workspace.builds.results import BuiltImage
from workspace.runs.recording import RecordedRun, recorded_run
from workspace.services import require_paths, unavailable

DRIVER = "container engine"
RULE = "docker_build builds without privileges (spec: hands 8)"
OLDEST_KEPT = """
SELECT digest FROM workspace_imagebuild WHERE organisation_id = %s
GROUP BY digest ORDER BY max(id) DESC OFFSET %s LIMIT %s
"""
OLDER = """
SELECT digest FROM workspace_imagebuild WHERE organisation_id = %s AND digest = ANY(%s)
EXCEPT (SELECT digest FROM workspace_imagebuild WHERE organisation_id = %s
GROUP BY digest ORDER BY max(id) DESC LIMIT %s)
"""
AT_ONCE = 3
"""Images that a build lets the engine forget: one comes with each, and some may have stayed."""
MOST_NAMES = 20
"""Names of one image: the engine writes all names anew with each."""
WORKING = "build__"
FORGETS = 30.0
"""Seconds that the engine has to forget an image."""


def require_engine(caller: Caller) -> None:
    """Raise Denied DRIVER_UNAVAILABLE where this installation has no engine."""
    if not settings.CONTAINER_ENGINE:
        unavailable(caller, DRIVER)


def require_limits(engine: Engine) -> None:
    """Raise Denied DRIVER_UNAVAILABLE where the engine would run containers without limits."""
    missing = engine.without_limit()
    if missing:
        raise refuse(
            Code.DRIVER_UNAVAILABLE,
            f"the {DRIVER} of this installation cannot limit {', '.join(missing)} of a container",
            "tell your superior; the people who run the installation can let it do so",
            rule="containers run within limits (spec: hands 36)",
            driver=DRIVER,
        )


@contextmanager
def engine_answers() -> Iterator[None]:
    """Say that the engine does not answer, or cannot, in place of failing."""
    try:
        yield
    except EngineUnavailable as problem:
        raise _silent(str(problem)) from problem
    except EngineRefused as problem:
        raise _silent(f"status {problem.status}: {problem}") from problem


def _silent(problem: str) -> Denied:
    return refuse(
        Code.DRIVER_UNAVAILABLE,
        f"the {DRIVER} of this installation does not answer: {problem[:300]}",
        "try again later; if it stays, tell your superior",
        rule=f"{DRIVER} answers (spec: hands 15)",
        driver=DRIVER,
    )


def build(*, caller: Caller, path: str, tag: str, now: datetime) -> BuiltImage:
    """Build an image from a folder in the caller's scope; the digest is the engine's.

    It is a run, which people can stop. Raises Denied SCOPE_DENIED, NOT_FOUND, TOO_LARGE;
    INVALID_PARAMS for a folder that cannot be built, or an image of another service;
    DRIVER_UNAVAILABLE, RATE_LIMITED, INVALID_TRANSITION where it was stopped.
    """
    require_paths(caller, [path.rstrip("/") + "/"], Access.READ)
    require_engine(caller)
    service, _, version = tag.partition(":")
    name = f"{image_prefix(caller.organisation_id)}{service}:{version or 'latest'}"
    subject = f"image:{name}"
    seconds = settings.CONTAINER_BUILD_SECONDS
    with recorded_run(caller=caller, paths=[path], seconds=seconds, now=now) as run:
        context = packed_folder(caller, path)  # in its turn: what waits would hold memory
        record_started(caller, subject, path, now)
        with (
            engine_answers(),
            opened(seconds) as engine,
            _working_name(caller) as working_name,
        ):
            require_limits(engine)
            _make_room(engine, caller.organisation_id)
            digest, said = _build(engine, context, working_name, run)
            run.end(0)
            run.require_not_stopped()
            _record_built(caller, subject, digest=digest, service=service, tag=name, path=path)
            engine.name_image(digest, name)
    output = said.replace(working_name, name)
    return {"tag": tag, "digest": digest, "output": output, **run.log()}


@contextmanager
def _working_name(caller: Caller) -> Iterator[str]:
    """The name of the image that an agent builds, until it is known that it is kept.

    An image that is refused has no other name and is removed with it. No tag of an agent is like
    this one. Of one agent there is one build at a time: its next one takes the name of what could
    not be removed.
    """
    name = f"{image_prefix(caller.organisation_id)}{WORKING}{caller.agent.id}:latest"
    try:
        yield name
    finally:
        with suppress(EngineRefused, EngineUnavailable), opened(FORGETS) as engine:
            engine.forget_image(name)


def _record_built(caller: Caller, subject: str, **built: str) -> None:
    """Record an image. Raises Denied INVALID_PARAMS for one of another service."""
    contract = require_working_contract(caller)
    digest, path = built["digest"], built["path"]
    with transaction.atomic():
        hold_lock("image", caller.organisation_id, digest)
        same = ImageBuild.objects.filter(organisation_id=caller.organisation_id, digest=digest)
        services = same.values_list("service", flat=True)
        caller.require(rules.can_be_of(built["service"], services))
        ImageBuild.objects.create(
            organisation_id=caller.organisation_id,
            contract_ref=contract.id if contract else "",
            built_by_id=caller.agent.id,
            built_at=database_now(),
            **built,
        )
        details = {"digest": digest, "path": path}
        record(Action.IMAGE_BUILT, by=caller, at=database_now(), subject=subject, details=details)


def record_started(caller: Caller, subject: str, path: str, now: datetime) -> None:
    """Record that a build begins, so that a build that never ends leaves a trace."""
    with transaction.atomic():
        record(
            Action.IMAGE_BUILD_STARTED, by=caller, at=now, subject=subject, details={"path": path}
        )


def _make_room(engine: Engine, organisation_id: int) -> None:
    """Let the engine forget the oldest images: there is room for a new one (Spec: hands 35).

    What a container needs stays, and is asked for again by the next builds.
    """
    kept, prefix = settings.CONTAINER_IMAGES - 1, image_prefix(organisation_id)
    digests = _digests(OLDEST_KEPT, [organisation_id, kept, AT_ONCE])
    oldest = [image for digest in digests if (image := engine.image(digest)) is not None]
    for image in oldest:
        if not image.get("RepoTags"):  # their names are newer images' now
            _forget(engine, image["Id"])
    try:
        listed = engine.images_named(prefix)
    except AnswerTooLarge:
        listed = oldest
    named = _names_by_digest(listed, prefix)
    older = _digests(OLDER, [organisation_id, [*named], organisation_id, kept])
    forgotten = 0
    for digest, names in named.items():
        keep = 0 if digest in older else MOST_NAMES
        gone = [_forget(engine, name) for name in names[keep:]]
        forgotten += any(gone)
        if forgotten == AT_ONCE:
            return


def _digests(query: str, values: Sequence[Any]) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return {digest for (digest,) in cursor.fetchall()}


def _names_by_digest(listed: Iterable[Mapping[str, Any]], prefix: str) -> dict[str, list[str]]:
    """The names of an organisation's images, without those of builds that are under way."""
    found = {}
    for image in listed:
        # Podman puts the registry in front that it takes a short name for.
        names = [name.rpartition("/")[2] for name in image.get("RepoTags") or []]
        own = (name for name in names if name.startswith(prefix))
        found[image["Id"]] = [name for name in own if not name.startswith(f"{prefix}{WORKING}")]
    return found


def _forget(engine: Engine, name: str) -> bool:
    """Let the engine forget a name; False where its image is in use."""
    try:
        engine.forget_image(name)
    except EngineRefused as refusal:
        if refusal.status != 409:
            raise
        return False
    return True


def _build(engine: Engine, context: bytes, name: str, run: RecordedRun) -> tuple[str, str]:
    """The image's digest and what its build printed; nothing of both where it was stopped."""
    used = limits()
    params = {
        "t": name,
        "memory": str(used["Memory"]),
        "memswap": str(used["MemorySwap"]),
        "cpuperiod": "100000",
        "cpuquota": str(settings.CONTAINER_MILLICPUS * 100),
        "cgroupparent": settings.CONTAINER_BUILD_CGROUP,
        "nocache": "true",  # the engine's is one for all organisations
        "rm": "true",
        "forcerm": "true",
    }
    try:
        image, said = engine.build(
            context, params, network=settings.CONTAINER_BUILD_NETWORK, watch=run
        )
    except EngineStopped:
        return "", ""
    except AnswerTooLarge:
        raise refuse(
            Code.TOO_LARGE,
            f"the build prints more than {MOST_ANSWER} bytes, and was broken off",
            "let its commands print less, such as into a file, and build again",
            rule=RULE,
        ) from None
    except EngineRefused as refusal:
        run(str(refusal).encode())
        if refusal.status >= 500:
            raise
        raise refuse(
            Code.INVALID_PARAMS,
            f"the image could not be built: {str(refusal)[-1500:]}",
            "correct the files of the folder and build again",
            rule=RULE,
            path="its build fails",
        ) from refusal
    found = _found(engine, image if rules.DIGEST.fullmatch(image) else name)
    require(rules.can_describe(found))
    require(rules.can_keep(engine.image_bytes(found, name), settings.CONTAINER_IMAGE_BYTES))
    return str(found["Id"]), said


def _found(engine: Engine, reference: str) -> Mapping[str, Any]:
    """The image that was built. Raises Denied TOO_LARGE where it says too much of itself."""
    try:
        found = engine.image(reference) or {}
    except AnswerTooLarge:
        raise Denied(rules.describes_too_much()) from None
    if not rules.DIGEST.fullmatch(str(found.get("Id") or "")):
        raise EngineUnavailable("it does not know the image that it built")
    return found
