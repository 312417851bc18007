"""Where the folders of an organisation and of its agents are; the one place that knows."""

from __future__ import annotations

from pathlib import Path

from documents.root import root
from orgchart.policy.protected import CLONE

AGENTS = "agents"
WORK_TREE = CLONE
REPOSITORY = "repository.git"


def organisation_folder(organisation: str) -> Path:
    """The company tree of an organisation, by its slug; the documents' files are in it too.

    Raises OSError where its disk is missing.
    """
    return root() / organisation


def agent_folder(organisation: str, handle: str) -> Path:
    """The home of an agent: its own user's, mode 0700 (Spec: files 8)."""
    return organisation_folder(organisation) / AGENTS / handle


def work_tree(organisation: str, handle: str) -> Path:
    """The agent's own clone of the repository, which belongs to the agent's user."""
    return agent_folder(organisation, handle) / WORK_TREE


def repository_folder(organisation: str) -> Path:
    """The organisation's bare repository, which belongs to the control plane alone."""
    return organisation_folder(organisation) / REPOSITORY
