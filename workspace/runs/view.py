"""What a run sees of the caller's clone: what the caller may read, and nothing that is denied."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from core.decision import Code, refuse
from documents.tree import Missing, SafeTree, Unsafe
from orgchart.policy.compiled import FileScopes
from orgchart.policy.paths import denying_pattern, expand, is_of_company, without_inner
from orgchart.policy.vocabulary import ContractScope
from toolbox.caller import Caller
from toolbox.scopes import active_scopes
from workspace.files.places import Files, own_clone
from workspace.sandbox.programs import HIDDEN, Mount

WORK = "/work"
MAX_ENTRIES = 100_000
"""Names in a clone that are looked through for what is denied."""


def readable(caller: Caller) -> list[str]:
    """The paths of the repository that the caller may read, none of them within another."""
    files: FileScopes = caller.role.files
    scopes = [*expand(files.write, caller.agent), *expand(files.read, caller.agent)]
    if files.contract is not ContractScope.NONE:
        scopes += active_scopes(caller)
    return without_inner(scope for scope in scopes if not is_of_company(scope))


def mounts_of(caller: Caller, code: Files | None = None) -> tuple[Mount, ...]:
    """What of the caller's clone, or of other code, its programs see, read-only (Spec: hands 6).

    Denied names are hidden. Raises Denied SCOPE_DENIED where a link is in the way.
    """
    scopes = readable(caller)
    if not scopes:
        return ()
    code = code or own_clone(caller)
    denied = expand(caller.role.files.deny, caller.agent)
    mounts: list[Mount] = []
    for scope in scopes:
        path = scope.rstrip("/")
        kind = kind_of(code.tree, path)
        if kind is None or denying_pattern(path, denied):
            continue
        mounts.append(Mount(code.folder / path, f"{WORK}/{path}"))
        if kind == "folder":
            mounts += [
                Mount(HIDDEN, f"{WORK}/{name}") for name in _denied(code.folder, path, denied)
            ]
    return tuple(mounts)


def kind_of(tree: SafeTree, path: str) -> str | None:
    """Whether there is a folder or a file at a path; None for nothing. Raises Denied SCOPE_DENIED
    where a link is in the way.
    """
    try:
        return "folder" if tree.is_folder(path) else "file"
    except Missing:
        return None
    except Unsafe as problem:
        raise refuse(
            Code.SCOPE_DENIED,
            f"{path} is refused: {problem}",
            "replace the link by a plain folder",
            rule="links do not lead out (spec: files 6)",
        ) from None


def _denied(root: Path, folder: str, patterns: tuple[str, ...]) -> Iterator[str]:
    """The names below a folder of the code that are denied; what is below them is hidden too."""
    seen = 0
    for place, folders, files in os.walk(root / folder):
        here = os.path.relpath(place, root)
        seen += len(folders) + len(files)
        if seen > MAX_ENTRIES:
            raise refuse(
                Code.TOO_LARGE,
                f"{folder} holds more than {MAX_ENTRIES} names",
                "work under a contract with a narrower scope",
                rule="size of a clone",
            )
        for name in files:
            path = f"{here}/{name}"
            if denying_pattern(path, patterns) and not os.path.islink(f"{place}/{name}"):  # noqa: PTH114
                yield path
        hidden = {name for name in folders if denying_pattern(f"{here}/{name}/", patterns)}
        for name in folders:
            if name in hidden and not os.path.islink(f"{place}/{name}"):  # noqa: PTH114
                yield f"{here}/{name}/"
        folders[:] = [name for name in folders if name not in hidden]
