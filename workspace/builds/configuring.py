"""Writing a file of the CI configuration: YAML, checked before anything is built from it."""

from __future__ import annotations

from datetime import datetime

from core.decision import Code, refuse
from orgchart.packs.problems import Notes
from orgchart.packs.source import mapping_of
from orgchart.policy.vocabulary import Access
from toolbox.caller import Caller
from workspace.builds.rules import can_write_ci
from workspace.files.services import write_file
from workspace.results import WrittenFile
from workspace.services import require_paths


def write_ci_config(*, caller: Caller, path: str, content: str, now: datetime) -> WrittenFile:
    """Write a file of the CI configuration into the caller's clone, whole.

    Raises Denied SCOPE_DENIED for another path, INVALID_PARAMS for what is no YAML mapping,
    QUOTA_EXCEEDED. Spec: hands 10.
    """
    require_configurable(caller=caller, path=path, content=content)
    return write_file(caller=caller, path=path, content=content, now=now)


def require_configurable(*, caller: Caller, path: str, content: str) -> None:
    """Raise Denied where the file would be refused."""
    require_paths(caller, [path], Access.WRITE)
    caller.require(can_write_ci(path))
    notes = Notes()
    if mapping_of(content, path, notes) is None:
        problem = "; ".join(str(each) for each in notes.all())[:1000]
        raise refuse(
            Code.INVALID_PARAMS,
            f"content: {problem}",
            "send one YAML mapping without anchors, aliases and tags",
            rule="manage_ci_config changes CI files only (spec: hands 10)",
            content=problem,
        )
