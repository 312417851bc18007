"""A folder of the company tree as the tar that an engine builds from."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator

from django.conf import settings

from core.decision import Code, Denied, Deny, refuse
from documents.shared import shown
from documents.tree import Missing, TooLarge, Unsafe
from orgchart.policy.paths import can_touch
from orgchart.policy.vocabulary import Access
from toolbox.caller import Caller
from toolbox.scopes import active_scopes
from workspace.builds.containers import image_prefix
from workspace.builds.dockerfiles import BUILT_RULE, can_build_from
from workspace.files.places import FilePlace, place_of
from workspace.services import require_paths

DOCKERFILE = "Dockerfile"
MOST_FILES = 2_000
MOST_DOCKERFILE = 100_000
"""Bytes; it is read some six times before it is sent."""
MOST_BYTES = 64 * 1024 * 1024
DEEPEST = 20


def packed_folder(caller: Caller, path: str) -> bytes:
    """The folder as a tar: plain files that the caller may read, no links, no owner, no times.

    What another agent wrote and does not show to the caller is left out (Spec: files 22).

    Raises Denied SCOPE_DENIED, NOT_FOUND without a Dockerfile, INVALID_PARAMS, TOO_LARGE.
    """
    folder = path.rstrip("/") + "/"
    require_paths(caller, [folder], Access.READ)
    place = place_of(caller, folder)
    packed = io.BytesIO()
    try:
        _read(caller, place, folder, DOCKERFILE, MOST_BYTES)
        with tarfile.open(fileobj=packed, mode="w") as tar:
            left = MOST_BYTES
            for name in _files(caller, place, folder):
                _require_one_spelling(folder, name)
                data = _part(caller, place, folder, name, left)
                if data is None:
                    continue
                if name == DOCKERFILE:  # the very one that is sent: it may have changed meanwhile
                    _require_buildable(caller, data)
                left -= len(data)
                tar.addfile(_entry(name, data), io.BytesIO(data))
    except Missing as problem:
        raise refuse(
            Code.NOT_FOUND,
            f"{folder}{DOCKERFILE}: {problem}",
            "name a folder that holds a Dockerfile",
            rule=BUILT_RULE,
        ) from problem
    except Unsafe as problem:
        raise refuse(
            Code.SCOPE_DENIED, str(problem), "replace the link by a plain file", rule=BUILT_RULE
        ) from problem
    return packed.getvalue()


def _require_one_spelling(folder: str, name: str) -> None:
    if name != DOCKERFILE and name.lower() == DOCKERFILE.lower():
        raise refuse(
            Code.INVALID_PARAMS,
            f"{folder}{name} is another spelling of {DOCKERFILE}: engines may read either",
            f"keep one file, named {DOCKERFILE}",
            rule=BUILT_RULE,
            path="the folder holds a second Dockerfile",
        )


def _part(caller: Caller, place: FilePlace, folder: str, name: str, left: int) -> bytes | None:
    """A file of the folder; None where it is not shown to the caller, or gone meanwhile."""
    try:
        return _read(caller, place, folder, name, left)
    except Missing:
        if name == DOCKERFILE:
            raise
        return None


def _read(caller: Caller, place: FilePlace, folder: str, name: str, left: int) -> bytes:
    """A file of the folder. Raises Denied TOO_LARGE, Missing, Unsafe."""
    has_own_limit = name == DOCKERFILE and left >= MOST_DOCKERFILE
    limit = MOST_DOCKERFILE if has_own_limit else left
    try:
        with shown(caller, folder + name):
            return place.tree.read(place.path + name, limit=limit)
    except TooLarge as problem:
        if has_own_limit:
            raise refuse(
                Code.TOO_LARGE,
                f"{folder}{name} has more than {MOST_DOCKERFILE} bytes",
                "write a shorter Dockerfile: move long commands into scripts of the folder",
                rule=BUILT_RULE,
            ) from problem
        raise _too_large(folder, f"{MOST_BYTES} bytes") from problem


def _require_buildable(caller: Caller, dockerfile: bytes) -> None:
    text = dockerfile.decode("utf-8-sig", "replace")
    own = image_prefix(caller.organisation_id)
    caller.require(can_build_from(text, own, settings.CONTAINER_BASES))


def _files(caller: Caller, place: FilePlace, folder: str) -> Iterator[str]:
    """Every plain file below a folder that the caller may read, by its path in the folder."""
    scopes, waiting, found = active_scopes(caller), [""], 0
    while waiting:
        at = waiting.pop()
        if at.count("/") > DEEPEST:
            raise _too_large(folder, f"{DEEPEST} levels of folders")
        for entry in place.tree.entries(place.path + at):
            name = f"{at}{entry.name}"
            decision = can_touch(
                folder + name,
                Access.READ,
                agent=caller.agent,
                files=caller.role.files,
                contract_scope=scopes,
            )
            if isinstance(decision, Deny):
                continue  # a denied file, such as .env, is no part of an image
            if entry.is_folder:
                waiting.append(f"{name}/")
                continue
            found += 1
            if found > MOST_FILES:
                raise _too_large(folder, f"{MOST_FILES} files")
            yield name


def _entry(name: str, data: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    entry.mode = 0o755 if data.startswith(b"#!") else 0o644
    return entry


def _too_large(folder: str, limit: str) -> Denied:
    return refuse(
        Code.TOO_LARGE,
        f"{folder} holds more than {limit}",
        "build from a smaller folder",
        rule=BUILT_RULE,
    )
