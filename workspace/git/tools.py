"""The agents' face of git: branches, commits, pushes and reviews."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from core.params import Params, Reference
from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller
from toolbox.registry import CODING_ONLY, tool
from workspace.git import branches, pushing, reviews
from workspace.param_types import Paths
from workspace.results import BranchResult, ReviewComment
from workspace.services import require_branch, require_commit

Branch = Annotated[str, StringConstraints(min_length=1, max_length=255)]
Commit = Annotated[str, StringConstraints(min_length=4, max_length=64)]
Message = Annotated[str, StringConstraints(min_length=1, max_length=10_000, pattern=r"\S")]


class GitBranch(Params):
    """A branch of one's own."""

    name: Branch = Field(description="the branch that your contract assigns")
    take_in_main: bool = Field(False, description="merge the main branch into your files")
    discard_changes: bool = Field(
        False, description="give up changes of files that you have not committed"
    )


def _check_branch(caller: Caller, params: GitBranch, now: datetime) -> BranchResult:
    branches.check_branch(caller=caller, contract=require_branch(caller, params.name))
    return {"branch": params.name, "commit": ""}


@tool(
    "git_branch",
    group=ToolGroup.CODE,
    modes=CODING_ONLY,
    acts_outside=True,
    idempotent=True,
    dry_run=_check_branch,
)
def git_branch(caller: Caller, params: GitBranch, now: datetime) -> BranchResult:
    """Make or switch to the branch that your contract assigns."""
    return branches.check_out(
        caller=caller,
        name=params.name,
        take_in_main=params.take_in_main,
        discard_changes=params.discard_changes,
        now=now,
    )


class GitCommit(Params):
    """A commit of some files."""

    message: Message
    paths: Paths


def _check_commit(caller: Caller, params: GitCommit, now: datetime) -> BranchResult:
    contract = require_commit(caller, params.paths)
    branches.check_branch(caller=caller, contract=contract)
    return {"branch": contract.assigned_branch, "commit": ""}


@tool(
    "git_commit", group=ToolGroup.CODE, modes=CODING_ONLY, acts_outside=True, dry_run=_check_commit
)
def git_commit(caller: Caller, params: GitCommit, now: datetime) -> BranchResult:
    """Commit files of your scope on your contract's branch."""
    return branches.commit(caller=caller, message=params.message, paths=params.paths, now=now)


class GitPush(Params):
    """A branch to push."""

    branch: Branch = Field(description="the branch that your contract assigns")


def _check_push(caller: Caller, params: GitPush, now: datetime) -> BranchResult:
    pushing.check_push(caller=caller, name=params.branch)
    return {"branch": params.branch, "commit": ""}


@tool(
    "git_push",
    group=ToolGroup.CODE,
    modes=CODING_ONLY,
    acts_outside=True,
    idempotent=True,
    dry_run=_check_push,
)
def git_push(caller: Caller, params: GitPush, now: datetime) -> BranchResult:
    """Push your contract's branch. Protected branches are refused."""
    return pushing.push(caller=caller, name=params.branch, now=now)


class ReviewPr(Params):
    """A review of a worker's branch."""

    branch: Branch
    comment: Message
    contract_id: Reference | None = None
    approve: bool = Field(False, description="merge it")
    commit: Commit | None = None

    @property
    def draft(self) -> reviews.ReviewDraft:
        """The review as the service takes it."""
        return reviews.ReviewDraft(**self.model_dump())


def _check_review(caller: Caller, params: ReviewPr, now: datetime) -> dict[str, str]:
    reviews.check_review(caller=caller, draft=params.draft)
    return {"branch": params.branch}


@tool(
    "review_pr", group=ToolGroup.CODE, modes=CODING_ONLY, acts_outside=True, dry_run=_check_review
)
def review_pr(caller: Caller, params: ReviewPr, now: datetime) -> ReviewComment:
    """Read and comment on a worker's branch; approving merges it after QA's PASS."""
    return reviews.review(caller=caller, draft=params.draft, now=now)
