"""Agents at work in a real repository: files as their users write them, git as it answers."""

import os
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from core.actors import System
from orgchart.models import Organisation
from orgchart.organisation_settings import enabled_modes
from orgchart.policy.vocabulary import ToolMode
from tests.company import Answer, Company
from tests.contracts import world
from workspace.git.bare_repository import Signature
from workspace.git.models import Branch, Draft
from workspace.git.repositories import bare_of, drafts_of, ensure_repository
from workspace.sandbox import driver
from workspace.tree import work_tree
from workspace.users import user_of

WALLS = driver.strongest()
needs_walls = pytest.mark.skipif(isinstance(WALLS, str), reason=f"no sandbox here: {WALLS}")
BRANCH = "feat/indexer"
SCOPE = "src/search/"


@contextmanager
def a_root():
    """A folder that agents' users can pass through, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="nexus-git-") as root:
        Path(root).chmod(0o755)
        yield Path(root) / "company"


def ensure_repositories(*, now):
    """Create or import the repository of each organisation that enables coding and has none."""
    for organisation in Organisation.objects.order_by("id"):
        caller = System(name="git", organisation_id=organisation.id)
        if ToolMode.CODING in enabled_modes(organisation.settings):
            ensure_repository(organisation=organisation, caller=caller, now=now)


@dataclass
class Hands:
    """The company, with what tests ask of it."""

    company: Company

    def hire(self, handle: str = "backend_worker", **terms: Any) -> str:
        """A contract with a branch, in progress; its assignee's session is in coding mode."""
        terms = {"workspace_scope": [SCOPE], "assigned_branch": BRANCH, **terms}
        contract = world.issue(self.company, handle, coding=True, **terms)
        assert self.company.call(handle, "accept_contract", contract_id=contract).status == 200
        return contract

    def lead(self) -> None:
        """Open coding mode for the IT manager, by a contract of the CEO."""
        contract = world.issue(
            self.company, "it_manager", by="ceo", tool="generate_contract", coding=True
        )
        assert (
            self.company.call("it_manager", "accept_contract", contract_id=contract).status == 200
        )

    def call(self, handle: str, tool: str, **params: Any) -> Answer:
        return self.company.call(handle, tool, **params)

    def tree(self, handle: str = "backend_worker") -> Path:
        """The work tree, which belongs to the agent's user."""
        folder = work_tree(self.company.organisation.slug, handle)
        user = user_of(self.company.agent(handle).id)
        if not folder.exists():
            folder.mkdir(parents=True)
            if user:
                os.chown(folder.parent, user.uid, user.gid)
                os.chown(folder, user.uid, user.gid)
        return folder

    def write(self, path: str, text: str = "x = 1\n", handle: str = "backend_worker") -> Path:
        """A file in the agent's work tree, as its user."""
        tree = self.tree(handle)
        file = tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.give(handle)
        return file

    def give(self, handle: str = "backend_worker") -> None:
        """Everything in the work tree belongs to the agent's user."""
        user = user_of(self.company.agent(handle).id)
        if user:
            for path in [self.tree(handle), *self.tree(handle).rglob("*")]:
                os.chown(path, user.uid, user.gid, follow_symlinks=False)

    def branch(self, handle: str = "backend_worker", name: str = BRANCH, **params) -> Answer:
        self.tree(handle)
        return self.call(handle, "git_branch", name=name, **params)

    def commit(self, *paths: str, handle: str = "backend_worker", message: str = "Work") -> Answer:
        self.tree(handle)
        return self.call(handle, "git_commit", message=message, paths=list(paths or [SCOPE]))

    def push(self, handle: str = "backend_worker", branch: str = BRANCH) -> Answer:
        return self.call(handle, "git_push", branch=branch)

    def pushed(self, path: str = "src/search/index.py", text: str = "x = 1\n", **params) -> str:
        """Write, commit and push one file; the commit."""
        self.write(path, text)
        assert self.commit(path, **params).status == 200
        return self.push().result["commit"]

    def submit(self, contract: str) -> None:
        world.submit(self.company, contract)

    def judge(self, contract: str, finding: str = "PASS", **fields: Any):
        return world.judge(self.company, contract, finding, **fields)

    def review(self, by: str = "it_manager", **params: Any) -> Answer:
        params = {"branch": BRANCH, "comment": "Looks right.", **params}
        return self.call(by, "review_pr", **params)

    def git(self, *words: str) -> str:
        """What git says of the bare repository."""
        folder = bare_of(self.company.organisation).folder
        return run_git("--git-dir", str(folder), *words)

    def put_on_main(self, path: str, text: str) -> str:
        """Commit a tree of this one file to the main branch, as one who may; the commit."""
        ensure_repositories(now=now())
        bare = bare_of(self.company.organisation)
        blob = bare.run("hash-object", "-w", "--stdin", stdin=text.encode()).decode().strip()
        kind, made = "100644 blob", blob
        for name in reversed(path.split("/")):
            line = f"{kind} {made}\t{name}\n".encode()
            kind, made = "040000 tree", bare.run("mktree", stdin=line).decode().strip()
        author = Signature(name="x", email="x@x", at=now())
        moved = bare.commit(made, [self.tip("main")], "theirs", author)
        bare.run("update-ref", "refs/heads/main", moved)
        Branch.objects.filter(name="main").update(commit=moved)
        return moved

    def files_of(self, commit: str) -> list[str]:
        """The files that a commit of a draft changed."""
        words = ("show", "--name-only", "--format=", commit)
        return run_git("--git-dir", str(self.drafts), *words).split()

    def tip(self, name: str = BRANCH) -> str:
        """Where a branch is: the row and the ref agree."""
        row = Branch.objects.get(name=name)
        assert self.git("rev-parse", f"refs/heads/{name}") == row.commit
        return row.commit

    @property
    def draft(self) -> Draft:
        return Draft.objects.get(checked_out=True)

    @property
    def drafts(self) -> Path:
        return drafts_of(self.company.organisation).folder


def run_git(*words: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def now():
    return timezone.now()
