"""What rooms above know of code: a contract's commit, its judge's runs, names of branches."""

from __future__ import annotations

from contracts.branches import TakenNames
from contracts.models import Contract
from core.hooks import Hook
from toolbox.caller import Caller

commits = Hook[[Contract], str]("the commit that a contract's branch is at now, or ''")
runs = Hook[[Caller, str], str]("the digest of the log of the caller's last run on a commit, or ''")
branches = Hook[[int, str], TakenNames]("what an organisation's branches leave free of a name")


def submitted_commit(contract: Contract) -> str:
    """The commit that a submission of this contract names, or '' without a pushed branch."""
    if not contract.assigned_branch:
        return ""
    return next(filter(None, commits(contract)), "")


def run_digest(caller: Caller, commit: str) -> str:
    """The digest of the run that a verdict of the caller on this commit names, or ''."""
    return next(filter(None, runs(caller, commit)), "") if commit else ""
