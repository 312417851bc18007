"""Which tree a path of a tool is in: the company's, or the caller's own clone of the repository."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from documents.files import tree_of
from documents.tree import SafeTree
from orgchart.policy.paths import in_own_clone, is_of_company
from toolbox.caller import Caller
from workspace.git.judged_commit import submitted_tree
from workspace.homes import make_home
from workspace.tree import AGENTS, WORK_TREE, agent_folder, work_tree
from workspace.users import user_of


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A path in the tree that holds it."""

    tree: SafeTree
    path: str


def place_of(caller: Caller, path: str) -> FilePlace:
    """Where a path that the caller may touch is (Spec: files 20).

    The caller's home is its user's; what is written there belongs to that user.
    """
    inner = in_own_clone(path, caller.handle) or path
    if not is_of_company(inner):
        return FilePlace(own_tree(caller, WORK_TREE), inner)
    own = f"{AGENTS}/{caller.handle}/"
    if inner.startswith(own):
        return FilePlace(own_tree(caller), inner.removeprefix(own))
    return FilePlace(tree_of(caller.policy.organisation), inner)


@dataclass(frozen=True, slots=True)
class Files:
    """Files of the repository that programs see: a tree, where it lies, and its commit, if one."""

    tree: SafeTree
    folder: Path
    commit: str = ""


def own_clone(caller: Caller) -> Files:
    """The caller's own clone, with what it changed."""
    return Files(own_tree(caller, WORK_TREE), work_tree(caller.policy.organisation, caller.handle))


def judged_tree(caller: Caller) -> Files | None:
    """The commit that the caller judges now; None where there is none (Spec: hands 27)."""
    found = submitted_tree(caller)
    if found is None:
        return None
    return Files(own_tree(caller, found.inside), found.folder, found.commit)


def own_tree(caller: Caller, inside: str = "") -> SafeTree:
    """The caller's home, or a folder in it, made where it is missing."""
    user = user_of(caller.agent.id)
    organisation = caller.policy.organisation
    make_home(organisation, caller.handle, user)
    owner = (user.uid, user.gid) if user else None
    return SafeTree(agent_folder(organisation, caller.handle), inside, owner)
