"""Bare repositories of the control plane, and what git answers about them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import IO

from core.decision import Code, Denied, refuse
from core.files import keep_names, keep_tree
from orgchart.policy.paths import MAX_PARTS
from toolbox.space import NO_ROOM, STORAGE_FULL, takes_files
from workspace.git import running
from workspace.git.rules import FileChange, parse_changes
from workspace.git.running import GitFailed, run_git, started

HOOK = Path(__file__).with_name("pre_receive.sh")
MOST_PATH = 4200
"""Bytes of a line that names a file of at most 4,095 bytes, as Linux takes it, and its size."""

MOST_NAME = 255
"""Bytes of the name of a file or folder, as Linux takes it."""
ESCAPED = re.compile(rb"\\(?:[0-7]{3}|.)")
"""How git writes a byte of a path that it does not print as it is."""

CREATING, QUARANTINE = ".repository-", ".quarantine-"
"""Folders of commands under way: a repository, and objects that may be refused."""

LOCKS = ("*.lock", "refs/**/*.lock", "logs/**/*.lock", "objects/info/**/*.lock")
"""Of a ref, its log, or what packing writes: each is a file of its own."""
LEFT_OBJECTS = ("pack/tmp_*", "pack/.tmp-*", "tmp_objdir-*", "??/tmp_obj_*")
"""What a killed command leaves under `objects`: git removes it late, and not where it prunes."""
LEFT = 5 * running.SECONDS
"""Seconds after which a lock, or half an object, is of no command that still works."""

NEWEST_KNOWN_TO_LACK = (2, 37)
"""`git merge-tree --write-tree` came after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Who made a commit, and when."""

    name: str
    email: str
    at: datetime

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which git takes author and committer."""
        moment = f"{int(self.at.timestamp())} +0000"
        return {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", self.name), ("EMAIL", self.email), ("DATE", moment))
        }


@dataclass(frozen=True, slots=True)
class BareRepository:
    """A bare repository of the control plane; `others` lend it their objects."""

    folder: Path
    others: tuple[Path, ...] = ()
    quarantine: Path | None = None

    def run(
        self,
        verb: str,
        *words: str,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        may_fail: bool = False,
    ) -> bytes:
        """What a command of git prints. Raises GitFailed, unless it may end with 1.

        Raises Denied STORAGE_FULL where the disk of the company tree takes nothing more,
        and as `run_git`.
        """
        done = self._run((verb, *words), stdin, environment)
        if done.returncode != 0 and not (may_fail and done.returncode == 1):
            raise self._failure(verb, done)
        return done.stdout

    def succeeds(self, verb: str, *words: str) -> bool:
        """Whether a question is answered with yes (0) and not with no (1). Raises GitFailed."""
        done = self._run((verb, *words), b"", None)
        if done.returncode != 0 and (done.returncode != 1 or done.stderr):
            raise self._failure(verb, done)
        return done.returncode == 0

    def _failure(self, verb: str, done: subprocess.CompletedProcess[bytes]) -> Denied:
        """What git failed for: itself, or a disk that has no room for what it would write."""
        said, folders = done.stderr or done.stdout, (self.folder, *self.others)
        for folder in folders:
            said = said.replace(os.fsencode(folder), b"the repository")
        problem = GitFailed(verb, done.returncode, said)
        is_full = any(os.strerror(number) in problem.said for number in NO_ROOM)
        is_full = is_full or any(not takes_files(each) for each in folders if each.is_dir())
        if not is_full:
            return problem
        refusal = Denied(STORAGE_FULL)
        refusal.__cause__ = problem  # names the disk in the log
        return refusal

    def _run(
        self, words: Sequence[str], stdin: bytes, environment: Mapping[str, str] | None
    ) -> subprocess.CompletedProcess[bytes]:
        everything = {**self.objects, **(environment or {})}
        words = [f"--git-dir={self.folder}", *words]
        done = run_git(words, stdin, everything)
        # A question that is answered with no ends with 1 as well, and says nothing.
        if done.returncode != 0 and done.stderr and self._remove_left_locks():
            return run_git(words, stdin, everything)
        return done

    def _remove_left_locks(self) -> bool:
        """Remove the locks of commands that were killed; whether there were any.

        Git waits for no lock and removes none but its own: the ref could never be moved again, or
        the repository never packed.
        """
        folders = [self.folder, *self.others]
        left = _left_behind(lock for each in folders for p in LOCKS for lock in each.glob(p))
        for lock in left:
            lock.unlink(missing_ok=True)
        return bool(left)

    def remove_left_objects(self) -> None:
        """Remove what killed commands wrote by half; it can be as large as the repository."""
        objects = self.folder / "objects"
        for left in _left_behind(each for p in LEFT_OBJECTS for each in objects.glob(p)):
            with suppress(FileNotFoundError):  # its command ended, and removed it
                if left.is_dir():
                    shutil.rmtree(left)
                else:
                    left.unlink()

    @property
    def objects(self) -> dict[str, str]:
        """The variables by which git finds objects, and stores new ones."""
        lent = [each / "objects" for each in self.others]
        if self.quarantine is None:
            stored: dict[str, str] = {}
        else:
            lent.append(self.folder / "objects")
            stored = {"GIT_OBJECT_DIRECTORY": str(self.quarantine)}
        return stored | {"GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(map(_quoted, lent))}

    @contextmanager
    def quarantined(self) -> Iterator[BareRepository]:
        """The same repository, whose new objects are thrown away at the end."""
        with tempfile.TemporaryDirectory(
            prefix=QUARANTINE, dir=self.folder, ignore_cleanup_errors=True
        ) as objects:
            yield replace(self, quarantine=Path(objects))

    def commit_at(self, ref: str) -> str:
        """The commit that a full ref names, or ''; not those of refs that lie in a folder of it."""
        found = self.run("for-each-ref", "--format=%(refname) %(objectname)", "--", ref)
        refs = dict(line.rsplit(" ", 1) for line in os.fsdecode(found).split("\n") if line)
        return refs.get(ref, "")

    def set_ref(self, ref: str, new: str, old: str | None = None) -> None:
        """Move a ref; if `old` is given, only from there. Raises GitFailed."""
        words = [ref, new] if old is None else [ref, new, old or "0" * len(new)]
        self.run("update-ref", "-m", "NEXUS", "--", *words)

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether one commit is the other one or comes before it."""
        return self.succeeds("merge-base", "--is-ancestor", older, newer)

    def merge_base(self, one: str, other: str) -> str:
        """The newest commit that two commits have in common. Raises GitFailed without one."""
        return self.run("merge-base", one, other).decode("ascii").strip()

    def changes(self, old: str, new: str) -> list[FileChange]:
        """The files that differ between two commits or trees."""
        return parse_changes(
            self.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", old, new)
        )

    def difference(self, old: str, new: str, limit: int) -> tuple[str, bool]:
        """What changed from one commit to another as text, and whether something was left out.

        What git cannot compare in its time and memory is left out, too.
        """
        words = ["diff-tree", "-r", "-p", "-M", "--no-color", "--no-ext-diff", "--no-textconv"]
        with self._printing(*words, old, new) as (process, printed):
            found = printed.read(limit + 1)
            is_cut = len(found) > limit or process.wait() != 0
        text = found[:limit].decode("utf-8", "replace")
        return text.replace("\0", "\N{REPLACEMENT CHARACTER}"), is_cut

    def size(self, commit: str, most_bytes: int, most_files: int, largest: int) -> tuple[int, int]:
        """Bytes and number of a commit's files and folders, counted until one is over its limit.

        A small repository may name one file, or an empty folder, a million times. Raises
        GitFailed, also for a file over `largest` bytes, a path or a name that no file system
        takes, or a path that has too many parts (Spec: files 4).
        """
        found = files = 0
        words = ("ls-tree", "-r", "-t", "--format=%(objectsize) %(path)")
        with self._printing("-c", "core.quotePath=false", *words, commit) as (process, printed):
            while found <= most_bytes and files <= most_files:
                line = printed.readline(MOST_PATH)
                if line and not line.endswith(b"\n"):
                    raise GitFailed("ls-tree", 0, b"the path of a file is too long")
                if not line and process.wait() != 0:
                    raise GitFailed("ls-tree", process.returncode, b"it was not counted to its end")
                if not line:
                    break
                size, _, path = line.partition(b" ")
                _require_possible(path)
                own = int(size) if size.isdigit() else 0  # a folder and a submodule have none
                if own > largest:
                    raise GitFailed("ls-tree", 0, b"one of its files is over %d bytes" % largest)
                found += own
                files += 1
        return found, files

    @contextmanager
    def _printing(self, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
        """A command of git whose output is read while it comes; it is killed where it is late."""
        everything = [f"--git-dir={self.folder}", *words]
        with started(everything, self.objects, errors=subprocess.DEVNULL) as process:
            assert process.stdout is not None  # noqa: S101  a pipe was asked for
            late = threading.Timer(running.SECONDS, process.kill)
            late.start()
            try:
                yield process, process.stdout
            finally:
                late.cancel()

    def merge(self, main: str, branch: str) -> tuple[str, list[str]]:
        """The tree of a merge of two commits, and the paths in conflict; no ref moves.

        Raises Denied DRIVER_UNAVAILABLE where this git is too old for it, or cannot do it in its
        time and memory.
        """
        require_merging()
        try:
            said = self.run(
                "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", main, branch,
                may_fail=True,
            )  # fmt: skip
        except GitFailed as problem:
            raise refuse(
                Code.DRIVER_UNAVAILABLE,
                f"git cannot merge these commits: {problem.said[:500]}",
                "if files are very large, have them delivered in smaller ones",
                rule="git has limited time and memory (spec: hands 34)",
                driver="git",
            ) from problem
        tree, *paths = [word.decode("utf-8", "replace") for word in said.split(b"\0") if word]
        return tree, paths

    def commit(self, tree: str, parents: Sequence[str], message: str, who: Signature) -> str:
        """Write a commit of a tree; it is on no branch yet."""
        words = [word for parent in parents for word in ("-p", parent)]
        made = self.run(
            "commit-tree",
            *words,
            "-F",
            "-",
            tree,
            stdin=message.encode("utf-8", "replace"),
            environment=who.environment,
        )
        return made.decode("ascii").strip()

    def take_pack(self, pack: bytes) -> None:
        """Check every object of a pack and store it. Raises GitFailed for a broken one."""
        self.run("index-pack", "--stdin", "--fix-thin", "--strict", stdin=pack)


def _require_possible(path: bytes) -> None:
    """Raise GitFailed for a path, as git prints it, of which no agent can have the file."""
    parts = ESCAPED.sub(b"_", path.strip(b'"\n')).split(b"/")
    if max(map(len, parts)) > MOST_NAME:
        raise GitFailed("ls-tree", 0, b"the name of a file is too long")
    if len(parts) > MAX_PARTS:
        raise GitFailed("ls-tree", 0, b"a file lies in too many folders")


def _quoted(path: Path) -> str:
    """A path as git reads it in a list, which a colon would end."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _left_behind(paths: Iterable[Path]) -> list[Path]:
    """Those of the paths that no command which still works has written."""
    before, left = time.time() - LEFT, []
    for path in paths:
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                left.append(path)
    return left


def require_merging() -> None:
    """Raises Denied DRIVER_UNAVAILABLE where git is too old to merge without a work tree."""
    said = run_git(["--version"]).stdout.decode("ascii", "replace").split()
    version = tuple(int(part) for part in said[2].split(".")[:2]) if len(said) > 2 else (0, 0)
    if version <= NEWEST_KNOWN_TO_LACK:
        raise refuse(
            Code.DRIVER_UNAVAILABLE,
            f"git {'.'.join(map(str, version))} cannot merge in a bare repository",
            "ask the people who run this installation to install git 2.38 or newer",
            rule="git is 2.38 or newer",
            driver="git",
        )


def create_bare(folder: Path, main: str) -> BareRepository:
    """Create an empty bare repository, whole and on the disk, or not at all.

    Others may read its objects only.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=CREATING, dir=folder.parent))
    words = ["--bare", "--quiet", "--template=", "--shared=0644", f"--initial-branch={main}"]
    BareRepository(made).run("init", *words)
    install(BareRepository(made))
    keep_tree(made)
    made.rename(folder)
    keep_names(folder.parent)
    return BareRepository(folder)


def install(repository: BareRepository) -> None:
    """Make a folder that git created the control plane's: its hook, and what agents may read."""
    hooks = repository.folder / "hooks"
    hooks.mkdir(exist_ok=True)
    shutil.copyfile(HOOK, hooks / "pre-receive")
    (hooks / "pre-receive").chmod(0o755)
    repository.folder.chmod(0o711)
