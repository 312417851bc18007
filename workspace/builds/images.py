"""Building images from a folder of the company tree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.conf import settings
from django.db import connection, transaction

from contracts.session_contract import require_working_contract
from core.actions import Action
from core.database import database_now, hold_lock
from core.decision import Code, Denied, Deny, refuse
from ledger.services import record
from orgchart.policy.vocabulary import Access
from toolbox.caller import Caller
from workspace.builds import rules
from workspace.builds.containers import image_prefix, limits
from workspace.builds.context import packed_folder
from workspace.builds.engine import (
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
SELECT digest, array_agg(DISTINCT tag) FROM workspace_imagebuild WHERE organisation_id = %s
GROUP BY digest ORDER BY max(id) DESC OFFSET %s LIMIT %s
"""
AT_ONCE = 3
"""Images that a build lets the engine forget: one comes with each, and some may have stayed."""
MOST_TAGS = 20


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
        with engine_answers(), opened(seconds) as engine:
            require_limits(engine)
            _make_room(engine, caller.organisation_id)
            digest, said = _build(engine, context, name, run)
        run.end(0)
    run.require_not_stopped()
    contract = require_working_contract(caller)
    with transaction.atomic():
        hold_lock("image", caller.organisation_id, digest)
        same = ImageBuild.objects.filter(organisation_id=caller.organisation_id, digest=digest)
        caller.require(rules.can_be_of(service, same.values_list("service", flat=True)))
        ImageBuild.objects.create(
            organisation_id=caller.organisation_id,
            digest=digest,
            service=service,
            tag=name,
            path=path,
            contract_ref=contract.id if contract else "",
            built_by_id=caller.agent.id,
            built_at=database_now(),
        )
        details = {"digest": digest, "path": path}
        record(Action.IMAGE_BUILT, by=caller, at=database_now(), subject=subject, details=details)
    return {"tag": tag, "digest": digest, "output": said, **run.log()}


def record_started(caller: Caller, subject: str, path: str, now: datetime) -> None:
    """Record that a build begins, so that a build that never ends leaves a trace."""
    with transaction.atomic():
        record(
            Action.IMAGE_BUILD_STARTED, by=caller, at=now, subject=subject, details={"path": path}
        )


def _make_room(engine: Engine, organisation_id: int) -> None:
    """Let the engine forget the oldest images: there is room for a new one (Spec: hands 35).

    What a container or another image needs stays, and is asked for again by the next builds.
    """
    with connection.cursor() as cursor:
        cursor.execute(OLDEST_KEPT, [organisation_id, settings.CONTAINER_IMAGES - 1, AT_ONCE])
        oldest = cursor.fetchall()
    for digest, tags in oldest:
        for tag in tags[:MOST_TAGS]:
            image = engine.image(tag)
            if image is not None and image.get("Id") == digest:  # no newer one has this name
                _forget(engine, tag)
        image = engine.image(digest)
        if image is not None and not image.get("RepoTags"):  # else another organisation's as well
            _forget(engine, digest)


def _forget(engine: Engine, name: str) -> None:
    try:
        engine.forget_image(name)
    except EngineRefused as refusal:
        if refusal.status != 409:  # it is in use
            raise


def _build(engine: Engine, context: bytes, name: str, run: RecordedRun) -> tuple[str, str]:
    """The image's digest and what its build printed; nothing of both where it was stopped."""
    used = limits()
    params = {
        "t": name,
        "networkmode": settings.CONTAINER_BUILD_NETWORK,
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
        image, said = engine.build(context, params, run)
    except EngineStopped:
        return "", ""
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
    found = engine.image(image if rules.DIGEST.fullmatch(image) else name) or {}
    digest = str(found.get("Id") or "")
    if not rules.DIGEST.fullmatch(digest):
        raise EngineUnavailable("it does not know the image that it built")
    kept = rules.can_keep(found.get("Size") or 0, settings.CONTAINER_IMAGE_BYTES)
    if isinstance(kept, Deny):
        engine.forget_image(name)
        raise Denied(kept)
    return digest, said
