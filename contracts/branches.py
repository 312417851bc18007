"""Which branches a contract may assign and git may write to: one pure rule for both."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from core.decision import Allow, Code, Decision, deny

PROTECTED = frozenset({"main", "master", "production", "head"})
REF_FOLDERS = frozenset({"refs", "heads", "tags", "remotes", "origin"})
BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}\Z")


@dataclass(frozen=True, slots=True)
class TakenNames:
    """The name of a repository's main branch, and the names of other branches."""

    main: str = ""
    names: frozenset[str] = frozenset()


NONE_TAKEN = TakenNames()


def branch_problem(name: str, taken: TakenNames = NONE_TAKEN) -> str:
    """Why a name cannot be a contract's branch, or '' if it can.

    Protected by any spelling comes first; then every name that git could read as something other
    than a branch: an option, a refspec, a ref path, a character outside the plain ones. Git keeps
    no branch inside another: there is no `work/login` where there is a branch `work`.
    """
    is_main = bool(taken.main) and name.casefold() == taken.main.casefold()
    if is_main or _is_protected(name):
        return "it is protected"
    if not _is_plain(name):
        return "it is not a plain branch name"
    others = {taken.main, *taken.names}
    if not others.isdisjoint(folders_of(name)):
        return "it lies in another branch"
    if any(name in folders_of(other) for other in others):
        return "another branch lies in it"
    return ""


def folders_of(name: str) -> list[str]:
    """The folders that a branch's name lies in: `a` and `a/b` of `a/b/c`."""
    parts = name.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def can_assign_branch(name: str, taken: TakenNames = NONE_TAKEN) -> Decision:
    """Decide whether a contract may name this branch: its own, never a protected one.

    Spec: contracts 32.
    """
    problem = branch_problem(name, taken)
    if not problem:
        return Allow("assigned_branch")
    return deny(
        Code.BRANCH_DENIED,
        f"{name[:200]!r} cannot be a contract's branch: {problem}",
        "name a feature branch of its own, such as feature/login",
        rule="a contract has a branch of its own (spec: contracts 32)",
    )


def visible_text(name: str) -> str:
    """A name in one spelling: without case, width, spaces, control and format characters."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(c for c in folded if unicodedata.category(c)[0] not in "CZ")


def _is_protected(name: str) -> bool:
    """Whether the name, or the target of a refspec, is a protected branch or a path of refs."""
    target = visible_text(name).rpartition(":")[2]
    parts = [part for each in target.split("/") if (part := each.lstrip("+"))]
    if not parts:
        return False
    return parts[0] in REF_FOLDERS or parts[-1] == "head" or "/".join(parts) in PROTECTED


def _is_plain(name: str) -> bool:
    parts = name.casefold().split("/")
    return (
        BRANCH.match(name) is not None
        and ".." not in name
        and all(p and not p.startswith(".") and not p.endswith((".", ".lock")) for p in parts)
    )
