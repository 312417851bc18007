"""May this agent read or write this path? One pure decision for all that touches files."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from core.decision import NAMED, Allow, Code, Decision, Deny, deny, listed
from orgchart.policy.compiled import Agent, FileScopes
from orgchart.policy.protected import CLONE, HOME, HOMES, NOT_NAMED
from orgchart.policy.vocabulary import Access, ContractScope

AGENT, WORKER = "{agent}", "{worker}"
"""In a scope: the handle of the agent itself, and of each agent that it manages."""
MAX_PATH = 1024
MAX_PART = 255
MAX_PARTS = 64
"""Folders in each other: what walks through files opens each of them, or calls itself for each."""
"""Scope entries that a refusal names: who judges reads those of all that is in review."""
COMPANY = ("agents/", "backlog/", "company/", "docs/prd/", "equipment/", "logs/", "reports/")
"""What lies in the company tree; every other path is one of the repository."""
DOCUMENTS = "docs/"
"""The folder of the repository that holds no code."""


def normal_path(path: str) -> str | Deny:
    """The path as `a/b/c`, or why it is none: relative, no `..`, no control character, NFC only."""
    problem = _problem_of(path)
    if problem:
        return deny(
            Code.SCOPE_DENIED,
            f"the path is refused: {problem}",
            "give a plain relative path of the company tree, such as reports/tech/status.md",
            rule="path form",
        )
    return path


def _problem_of(path: str) -> str:
    if not path or len(path.encode("utf-8", "surrogatepass")) > MAX_PATH:
        return f"it must have 1 to {MAX_PATH} bytes"
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in path) or "\\" in path:
        return "it holds a control character or a backslash"
    if path.startswith(("/", "~")):
        return "it must be relative"
    if unicodedata.normalize("NFC", path) != path:
        return "it is not in Unicode normal form C"
    return _problem_of_parts(path.removesuffix("/").split("/"))


def _problem_of_parts(parts: Sequence[str]) -> str:
    if any(part in ("", ".", "..") for part in parts):
        return "it holds an empty, '.' or '..' part"
    if any(len(part.encode()) > MAX_PART for part in parts):
        return f"a part is longer than {MAX_PART} bytes"
    if len(parts) > MAX_PARTS:
        return f"it has more than {MAX_PARTS} parts"
    if any(part != part.strip(" ") for part in parts):
        return "a part begins or ends with a space"
    return ""


@lru_cache(maxsize=4096)
def problem_of_scope(scope: str) -> str:
    """Why an entry of a role's read or write scope is none, or ''."""
    filled = scope.replace(AGENT, "agent").replace(WORKER, "worker")
    if any(sign in filled for sign in "*?[]{}"):
        return (
            "a scope holds no pattern, only `{agent}` for the agent's handle and `{worker}` for "
            "those of the agents that it manages"
        )
    return _problem_of(filled)


@lru_cache(maxsize=4096)
def problem_of_deny(pattern: str) -> str:
    """Why an entry of a role's deny list is none, or ''."""
    filled = pattern.replace(AGENT, "agent")
    if "{" in filled or "}" in filled:
        return "the only placeholder is `{agent}`"
    if "/" in filled.rstrip("/") and any(sign in filled for sign in "*?["):
        return "a pattern with a folder is taken literally: deny the folder or the bare name"
    return _problem_of(filled)


def is_within(path: str, scope: str) -> bool:
    """Whether a normal path lies in a scope entry: a folder `a/b/`, or exactly the file `a/b`.

    Whole parts are compared, so `src-evil/x` is not within `src/`.
    """
    target = path.rstrip("/").split("/")
    wanted = scope.rstrip("/").split("/")
    if scope.endswith("/"):
        return target[: len(wanted)] == wanted
    return target == wanted


def without_inner(scopes: Iterable[str]) -> list[str]:
    """The scope entries that lie in no other one, sorted: a folder before what is in it."""
    found: list[str] = []
    names, folders = set[str](), set[str]()
    for scope in sorted(set(scopes)):
        parts = scope.rstrip("/").split("/")
        above = {"/".join(parts[:end]) for end in range(1, len(parts))}
        name = "/".join(parts)
        if name in names or not above.isdisjoint(folders):
            continue
        found.append(scope)
        names.add(name)
        if scope.endswith("/"):
            folders.add(name)
    return found


def denying_pattern(path: str, patterns: Sequence[str]) -> str:
    """The deny pattern that catches the path, or ''.

    A pattern with a slash is a path of the tree (a folder when it ends in one, which also catches
    what is below); a bare name or `*` pattern matches any part at any depth. Case is ignored, so
    that `.ENV` is no way around.
    """
    lowered = path.rstrip("/").casefold()
    parts = lowered.split("/")
    for pattern in patterns:
        want = pattern.casefold()
        bare = want.rstrip("/")
        if "/" in bare:
            inside = lowered == bare or lowered.startswith(bare + "/")
        elif want.endswith("/"):
            inside = bare in parts
        else:
            inside = any(fnmatchcase(part, bare) for part in parts)
        if inside:
            return pattern
    return ""


def expand(scopes: Sequence[str], agent: Agent) -> tuple[str, ...]:
    """Scope entries with `{agent}` filled in, and with `{worker}` once for each of its workers."""
    return tuple(
        entry.replace(AGENT, agent.handle).replace(WORKER, worker)
        for entry in scopes
        for worker in (agent.workers if WORKER in entry else ("",))
    )


def in_own_clone(path: str, handle: str) -> str:
    """The path in the repository, where a path names one's own clone by its place; else ''."""
    clone = _clone_of(handle)
    return path.removeprefix(clone) if path.startswith(clone) else ""


def _clone_of(handle: str) -> str:
    """The folder of an agent's own clone, in the company tree."""
    return f"{HOME.replace('{agent}', handle)}{CLONE}/"


def is_of_company(path: str) -> bool:
    """Whether a path is one of the company tree; else it is one of the repository.

    Spec: files 20.
    """
    return any(is_within(path, folder) for folder in COMPANY)


def is_code(path: str) -> bool:
    """Whether a path is one of the repository, in whichever clone, and no document in docs/."""
    parts = path.split("/")
    if is_within(path, HOMES) and parts[2:3] == [CLONE]:
        path = "/".join(parts[3:])
    elif is_of_company(path):
        return False
    return not is_within(path, DOCUMENTS)


def in_company_tree(path: str, handle: str) -> str:
    """Where a path of an agent lies in the company tree: one of the repository in its own clone."""
    return path if is_of_company(path) else f"{_clone_of(handle)}{path}"


def can_touch(
    path: str,
    access: Access,
    *,
    agent: Agent,
    files: FileScopes,
    contract_scope: Sequence[str] = (),
) -> Decision:
    """Decide whether the agent may touch the path (Spec: files 1, files 2, files 20).

    `contract_scope` is the workspace scope of the one contract that the agent works under. A path
    into its own clone is one of the repository, too, whatever its home allows.
    """
    found = _can_touch(path, access, agent, files, contract_scope)
    inner = in_own_clone(path, agent.handle)
    if isinstance(found, Deny) or not inner:
        return found
    return can_touch(inner, access, agent=agent, files=files, contract_scope=contract_scope)


def _can_touch(
    path: str, access: Access, agent: Agent, files: FileScopes, contract_scope: Sequence[str]
) -> Decision:
    """Prohibitions first; what no scope gives is refused. Write scope implies read."""
    normal = normal_path(path)
    if isinstance(normal, Deny):
        return normal
    denied = (*files.deny, *NOT_NAMED)
    denied += () if access is Access.READ else files.deny_write
    caught = denying_pattern(normal, expand(denied, agent))
    if caught:
        return deny(
            Code.SCOPE_DENIED,
            f"{normal} is denied to {agent.role} ({caught}), whatever else is allowed",
            "leave this file alone; ask your superior for what you need from it",
            rule=f"deny {caught}",
        )
    allowed = list(expand(files.write, agent))
    if access is Access.READ:
        allowed += expand(files.read, agent)
    if files.contract is ContractScope.WRITE or (
        files.contract is ContractScope.READ and access is Access.READ
    ):
        allowed += contract_scope
    for scope in allowed:
        if is_within(normal, scope):
            return Allow(f"{access} scope {scope}")
    scope_entries = sorted(set(allowed))  # two contracts may open one folder
    return deny(
        Code.SCOPE_DENIED,
        f"{normal} is outside the {access} scope of {agent.handle}",
        f"keep to: {listed(scope_entries)}" if scope_entries else "work without files",
        rule=f"{access} scope of {agent.role}",
        scope=scope_entries[:NAMED],
    )
