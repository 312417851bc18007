"""Git in an agent's work tree: inside the sandbox, as the agent's user, with a folder of its own.

No git folder is kept between two commands and none is in the work tree: each command makes one in
the sandbox, reads objects of the control plane's repositories, and answers with the objects that
are new. So there is no hook, filter, alias or configuration that an agent could have written.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from core.decision import Code, Denied, refuse
from core.files import place
from documents.tree import DIGITS, TEMPORARY
from toolbox.space import room_beyond_reserve
from workspace.git.rules import COMMIT_ID
from workspace.sandbox.driver import run
from workspace.sandbox.programs import CommandOutcome, Mount, Program, ProgramLimits
from workspace.users import AgentUser

MEBIBYTE = 1024 * 1024
LIMITS = ProgramLimits(
    seconds=120,
    output=64 * MEBIBYTE,
    memory=2048 * MEBIBYTE,
    memory_of_all=2048 * MEBIBYTE,
    file=256 * MEBIBYTE,
    scratch=256 * MEBIBYTE,
    open_files=1024,
)
WORK = "/work"
OBJECTS = "/objects"
REFUSED, UNCHANGED, NOT_WRITTEN, HALF_WRITTEN = 41, 42, 43, 44
"""Exit statuses of the scripts: git refused, with its words; there is nothing to commit; files
could not be written, and are as they were, or are not yet."""

TURN = re.compile("(?P<old>[0-9a-f]{40,64}) (?P<new>[0-9a-f]{40,64})\n")

ENVIRONMENT = {
    "GIT_DIR": "/tmp/git",  # noqa: S108  inside the sandbox
    "GIT_INDEX_FILE": "/tmp/git/index",  # noqa: S108  inside the sandbox
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_COUNT": "5",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": "/dev/null",
    "GIT_CONFIG_KEY_2": "core.fsmonitor",
    "GIT_CONFIG_VALUE_2": "false",
    "GIT_CONFIG_KEY_3": "core.attributesFile",
    "GIT_CONFIG_VALUE_3": "/dev/null",
    "GIT_CONFIG_KEY_4": "submodule.recurse",
    "GIT_CONFIG_VALUE_4": "false",
    "BLOCK": "4096",  # bytes that a file of one byte takes
    # What a call is writing, or was when it was killed, is no file of the agent.
    "BEING_WRITTEN": TEMPORARY + "[0-9a-f]" * DIGITS,
}

BEGIN = """
set -eu
git() { command git "$@" 2>>/tmp/said; }
fail() { cat /tmp/said; exit 41; }
not_written() { cat /tmp/said; exit 43; }
half_written() { cat /tmp/said; exit 44; }
require_room() {
    git cat-file --batch-check='%(objectsize)' </tmp/objects >/tmp/sizes || fail
    while read -r size; do
        case $size in *[!0-9]*) continue ;; esac
        ROOM_BYTES=$((ROOM_BYTES - size - BLOCK)) ROOM_NAMES=$((ROOM_NAMES - 1))
    done </tmp/sizes
    [ "$ROOM_BYTES" -lt 0 ] || [ "$ROOM_NAMES" -lt 0 ] || return 0
    echo "its disk has no room for them" >>/tmp/said
    not_written
}
go_back() {
    rm -f /tmp/git/index.lock
    git read-tree "$new" && git read-tree --reset -u "$new" "$old"
}
: >/tmp/said
git init --quiet --bare --template= /tmp/git || fail
mkdir -p /tmp/git/info
echo '* -text -ident -filter -working-tree-encoding' >/tmp/git/info/attributes
echo "$BEING_WRITTEN" >/tmp/git/info/exclude
git config core.bare false
export GIT_WORK_TREE=/work
git config core.autocrlf false
git config core.safecrlf false
old=$1 new=$2
shift 2
"""

CHECK_OUT = (
    BEGIN
    + """
if [ -z "$old" ]; then
    git read-tree "$new" || fail
    git update-index -q --refresh >/dev/null || :
    # What is only the beginning of its file is of an earlier call that was broken off.
    git diff-files --name-only --diff-filter=M | while IFS= read -r path; do
        [ -f "$path" ] && [ ! -L "$path" ] || continue
        size=$(stat -c %s -- "$path")
        git cat-file blob ":$path" | head -c "$size" | cmp -s - "$path" && rm -f -- "$path" || :
    done
    if [ "$1" = discard ]; then
        git diff-files -z --name-only | xargs -0 rm -f --
    fi
    git ls-files -z --deleted >/tmp/missing || fail
    git diff-files --raw --diff-filter=D | cut -d ' ' -f 3 >/tmp/objects
    require_room
    if ! git checkout-index --quiet -z --stdin </tmp/missing; then
        xargs -0 rm -f -- </tmp/missing
        not_written
    fi
    exit 0
fi
git read-tree "$old" || fail
git update-index -q --refresh >/dev/null || :
if ! git diff-files --quiet; then
    git diff-files --name-only >/tmp/changed
    git read-tree "$new" || fail
    git update-index -q --refresh >/dev/null || :
    if git diff-files --quiet && git diff-tree -r --name-only --diff-filter=D "$old" "$new" |
        while read -r gone; do [ ! -e "/work/$gone" ] || exit 1; done
    then exit 0; fi
    if [ "$1" = discard ]; then
        git read-tree "$old" || fail
        git diff-files -z --name-only >/tmp/changed || fail
        git diff-files --raw | cut -d ' ' -f 3 >/tmp/objects
        require_room
        if ! git checkout-index --force --quiet -z --stdin </tmp/changed; then
            xargs -0 rm -f -- </tmp/changed
            not_written
        fi
    elif [ "$1" = refuse ]; then
        echo "these files have changes that are not committed:" >>/tmp/said
        cat /tmp/changed >>/tmp/said
        fail
    fi
    git read-tree "$old" || fail
    git update-index -q --refresh >/dev/null || :
fi
git diff-tree -r --raw --no-renames "$old" "$new" | cut -d ' ' -f 4 >/tmp/objects
require_room
if [ "$1" = discard ]; then
    git read-tree --reset -u "$old" "$new" || { go_back || half_written; not_written; }
    exit 0
fi
git read-tree -m -u --dry-run "$old" "$new" || fail
git read-tree -m -u "$old" "$new" || {
    # A file that came since: git has looked again, and written nothing.
    if grep -qE 'would be overwritten|not uptodate' /tmp/said; then fail; fi
    go_back || half_written
    not_written
}
"""
)

GO_BACK = BEGIN + "go_back || half_written"

COMMIT = (
    BEGIN
    + """
git read-tree "$old" || fail
# Else git would write each file of these paths anew, changed or not: what it knows is only read.
command git add --refresh -- "$@" 2>/dev/null || :
git add --all -- "$@" || fail
tree=$(git write-tree) || fail
[ "$tree" != "$(git rev-parse "$old^{tree}")" ] || [ -n "$new" ] || exit 42
printf '%s\\n' "$tree"
# The tree of the commit: by the commit itself git would leave nothing out.
printf '%s\\n^%s\\n' "$tree" "$old^{tree}" | git pack-objects --revs --stdout --thin -q || fail
"""
)


class Uncommitted(StrEnum):
    """What becomes of files that the agent changed and did not commit, when others come."""

    KEEP = "keep"
    REFUSE = "refuse"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWorkTree:
    """An agent's work tree, the user that git runs as, and the object folders that it reads.

    `turning` is a file that says from what to what it is turned.
    """

    folder: Path
    user: AgentUser | None
    objects: tuple[Path, ...]
    turning: Path | None = None

    def check_out(self, old: str, new: str, uncommitted: Uncommitted) -> None:
        """Turn the work tree from one commit or tree to another; '' for `old` the first time.

        Nothing is done where files that the agent changed are in the way, and it did not say that
        it gives them up. Raises Denied INVALID_TRANSITION with what git said, also where another
        call wrote a file meanwhile, and STORAGE_FULL where files could not be written: they are as
        they were, or missing where it gave them up.
        """
        if self.turning and old:
            place(self.turning, f"{old} {new}\n".encode(), replace=True)
        outcome = self._outcome(CHECK_OUT, old, new, uncommitted)
        if self.turning and outcome.status in (REFUSED, NOT_WRITTEN):
            self.turning.unlink(missing_ok=True)  # what the agent changed is its own
        _output(outcome)

    @contextmanager
    def turned(self, old: str, new: str, uncommitted: Uncommitted) -> Iterator[None]:
        """Check out, and turn back where what is recorded meanwhile is refused."""
        self.check_out(old, new, uncommitted)
        try:
            yield
        except Denied:
            self.settle(old)
            raise

    def settle(self, base: str) -> None:
        """Turn the files back where an earlier call was broken off before `base` was changed.

        What it was turning is not taken for changes of the agent. Raises Denied STORAGE_FULL.
        """
        turning = self.turning
        if turning is None or not turning.exists():
            return
        found = TURN.fullmatch(turning.read_text("ascii"))
        if found and found["old"] == base != found["new"]:
            _output(self._outcome(GO_BACK, found["old"], found["new"]))
        turning.unlink()

    def stage(self, parent: str, paths: Sequence[str], *, may_be_empty: bool) -> tuple[str, bytes]:
        """The tree of a commit of these paths on top of `parent`, and a pack of its new objects.

        Raises Denied INVALID_TRANSITION where nothing changed, INVALID_PARAMS for paths that git
        does not find, TOO_LARGE.
        """
        said = _output(self._outcome(COMMIT, parent, "merge" if may_be_empty else "", *paths))
        tree, _, pack = said.partition(b"\n")
        name = tree.decode("ascii", "replace")
        if not COMMIT_ID.match(name):
            raise refuse(
                Code.INVALID_TRANSITION,
                "git gave no tree for these paths",
                "try again; tell your superior if it happens again",
                rule="a commit is a tree",
            )
        return name, pack

    def _outcome(self, script: str, *words: str) -> CommandOutcome:
        mounts = [Mount(self.folder, WORK, writable=True)]
        mounts += [Mount(each, f"{OBJECTS}/{at}") for at, each in enumerate(self.objects)]
        lent = ":".join(mount.target for mount in mounts[1:])
        most_bytes, most_names = room_beyond_reserve(self.folder)
        room = {"ROOM_BYTES": str(most_bytes), "ROOM_NAMES": str(most_names)}
        return run(
            Program(
                argv=("/bin/sh", "-c", script, "nexus", *words),
                mounts=tuple(mounts),
                folder=WORK,
                user=self.user,
                environment={**ENVIRONMENT, **room, "GIT_ALTERNATE_OBJECT_DIRECTORIES": lent},
                limits=LIMITS,
            )
        )


def _output(outcome: CommandOutcome) -> bytes:
    """What a script printed. Raises Denied where it failed."""
    if outcome.status == 0:
        return outcome.output
    if outcome.cut or outcome.timed_out:
        raise refuse(
            Code.TOO_LARGE,
            "the change is too large for one commit: git needed more than "
            f"{LIMITS.seconds:g} seconds or {LIMITS.output // MEBIBYTE} MiB",
            "commit fewer files at a time",
            rule="runs have limits (spec: hands 16)",
        )
    raise _refused(outcome.status, outcome.output.decode("utf-8", "replace").strip()[:2000])


def _refused(status: int | None, said: str) -> Exception:
    if status in (NOT_WRITTEN, HALF_WRITTEN):
        if os.strerror(errno.EEXIST) in said:
            return refuse(
                Code.INVALID_TRANSITION,
                f"files came into the work tree while git turned it: {said[:500]}",
                "wait until your other calls have ended, call git_branch again, then look whether "
                "what they wrote is there",
                rule="git works on the files of the work tree",
            )
        return refuse(
            Code.STORAGE_FULL,
            f"git could not write the files of the work tree: {said[:500]}",
            "call again later; the people who run NEXUS make room on the disk of the company tree",
            rule="disk",
        )
    if status == UNCHANGED:
        return refuse(
            Code.INVALID_TRANSITION,
            "these paths have no changes since the last commit",
            "write the files first, then commit them",
            rule="a commit changes something",
        )
    unknown = "did not match any file" in said
    return refuse(
        Code.INVALID_PARAMS if unknown else Code.INVALID_TRANSITION,
        f"git refused: {said or status}",
        "name files that exist in your work tree"
        if unknown
        else "commit your changes first (git_commit), or give them up (git_branch with "
        "discard_changes), then try again",
        rule="git works on the files of the work tree",
        **({"paths": "not in the work tree"} if unknown else {}),
    )
