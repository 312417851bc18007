"""Where an agent's work tree is, and as which user git runs in it."""

from __future__ import annotations

from pathlib import Path

from orgchart.models import Organisation
from toolbox.caller import Caller
from workspace.git.holding import lock_of
from workspace.git.repositories import bare_of, drafts_of
from workspace.git.worktree import AgentWorkTree
from workspace.homes import make_home
from workspace.tree import work_tree
from workspace.users import user_of


def place_of(caller: Caller, organisation: Organisation) -> AgentWorkTree:
    """The caller's work tree, with the objects of the repository and of the drafts."""
    user = user_of(caller.agent.id)
    make_home(organisation.slug, caller.handle, user)
    return AgentWorkTree(
        folder=work_tree(organisation.slug, caller.handle),
        user=user,
        objects=objects_of(organisation),
        turning=lock_of(caller).with_suffix(".turning"),
    )


def objects_of(organisation: Organisation) -> tuple[Path, ...]:
    """The folders of objects that git reads in an agent's sandbox."""
    folders = (bare_of(organisation).folder, drafts_of(organisation).folder)
    return tuple(folder / "objects" for folder in folders)
