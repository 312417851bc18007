"""A repository that is not ours: what git is told, and asks, before it reads or writes one.

Spec: hands 22.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from django.conf import settings

from core.decision import Code, Denied, refuse
from workspace.git.running import GitFailed, run_git

ON_OTHER_SIDE = {
    "safe.directory": "'*'",  # of this one command: the repository may be somebody else's
    "core.hooksPath": "/dev/null",
    "core.alternateRefsCommand": "true",
    "core.fsmonitor": "false",
    "receive.autogc": "false",
    "receive.denyCurrentBranch": "refuse",  # else filters that it names would write its files
}
"""What a repository on this machine could name to be run, switched off for one command."""
NO_PROTOCOL = "none"
"""It fetches from no other one: that would run commands, too, which its configuration names."""
ALTERNATE = "alternate: "
ASKED = 3
"""Folders that git is asked for, each in a line."""
AT_ONCE = 2
"""How many threads of a process wait for other repositories at once: pages need the rest."""
SLOW = 5.0
"""Seconds after which a source that failed is left alone for as long as that took."""
_waiting: set[int] = set()
"""The organisations of these threads, each once: a slow repository takes no turns from others."""
_left_alone: dict[tuple[int, str], float] = {}
"""Until when (`time.monotonic`) an organisation does not ask its source again."""
_lock = Lock()


@contextmanager
def turn(organisation_id: int, source: str) -> Iterator[None]:
    """An organisation's one turn to speak with its source; what fails inside is a Denied.

    After a long wait in vain others have their turn for as long. Raises Denied DRIVER_UNAVAILABLE.
    """
    begun = time.monotonic()
    with _lock:
        for each in [each for each, until in _left_alone.items() if until <= begun]:
            del _left_alone[each]
        left = _left_alone.get((organisation_id, source), begun) - begun
        has_turn = not left and organisation_id not in _waiting and len(_waiting) < AT_ONCE
        if has_turn:
            _waiting.add(organisation_id)
    if left:
        raise _refused(
            "the repository was waited for in vain, and is not asked again at once",
            f"try again in {left:.0f} s; the people who run this installation see whether this "
            "machine reaches it",
        )
    if not has_turn:
        raise _refused(
            "others wait for their repositories at this moment", "try again in a few minutes"
        )
    try:
        yield
    except Denied:  # a GitFailed, or that no program starts: the other machine can say so, too
        ended = time.monotonic()
        if ended - begun > SLOW:
            with _lock:
                _left_alone[organisation_id, source] = ended + (ended - begun)
        raise
    finally:
        with _lock:
            _waiting.remove(organisation_id)


def _refused(problem: str, next_action: str) -> Denied:
    return refuse(
        Code.DRIVER_UNAVAILABLE,
        problem,
        next_action,
        rule="a repository that does not answer keeps no page from others (spec: hands 22)",
        driver="git repository",
    )


def other_side(source: str, verb: str) -> str:
    """The command that serves a repository on this machine: nothing that its owner named is run.

    Git takes neither our configuration nor our environment there, and our own repositories are
    not opened by it. An address elsewhere gets git's own command. Spec: hands 22.
    """
    if not source.startswith("/"):
        return f"git-{verb}"
    named = " ".join(f"-c {name}={value}" for name, value in ON_OTHER_SIDE.items())
    return f"GIT_ALLOW_PROTOCOL={NO_PROTOCOL} git {named} {verb}"


def environment_for(source: str) -> dict[str, str]:
    """What git needs to reach another host: the server's home for its keys, and the proxies.

    Raises GitFailed for a path that leads to files of this installation.
    """
    if source.startswith("/"):
        _require_outside(Path(source))
    proxies = {name: os.environ[name] for name in ("https_proxy", "HTTPS_PROXY", "no_proxy")
               if name in os.environ}  # fmt: skip
    return {
        **proxies,
        "HOME": os.environ.get("HOME", "/nonexistent"),
        "GIT_ALLOW_PROTOCOL": "file:https:ssh",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "protocol.https.allow",
        "GIT_CONFIG_VALUE_0": "always",
        "GIT_CONFIG_KEY_1": "protocol.ssh.allow",
        "GIT_CONFIG_VALUE_1": "always",
    }


def _require_outside(source: Path) -> None:
    """Nothing that the repository at this place consists of is a file of this installation.

    Agents could write there what git runs, and another organisation's objects lie there. Links,
    `gitdir:`, `commondir` and alternates are followed; inside, links lead nowhere else. Raises
    GitFailed.
    """
    place = source.resolve()
    _require_folders_outside([place])
    said = _asked(place, "rev-parse", "--path-format=absolute",
                     "--git-dir", "--git-common-dir", "--git-path", "objects")  # fmt: skip
    folders = _plain(said if len(said) == ASKED else [""])  # a line may end inside a path
    _require_folders_outside(folders)
    counted = _asked(place, "count-objects", "-v")
    lenders = _plain([line[len(ALTERNATE) :] for line in counted if line.startswith(ALTERNATE)])
    _require_folders_outside(lenders)
    _require_no_way_out([*folders, *lenders])


def _require_no_way_out(folders: list[Path]) -> None:
    """No link inside the folders leads to another place: its refs or packs could be ours."""
    inside = {folder.resolve() for folder in folders}
    for at, names, files in (each for folder in inside for each in os.walk(folder)):
        for link in (each for name in (*names, *files) if (each := Path(at, name)).is_symlink()):
            target = Path(os.path.realpath(link))
            if not any(target.is_relative_to(folder) for folder in inside):
                raise GitFailed("import", None, b"a link in it leads to another place")


def _plain(paths: list[str]) -> list[Path]:
    """Paths as git prints them, where they are what they seem: it quotes some signs of others."""
    if not all(path.startswith("/") and path.isprintable() for path in paths):
        raise GitFailed("import", None, b"the path of a part of it has odd signs")
    return [Path(path) for path in paths]


def _asked(place: Path, *words: str) -> list[str]:
    """The lines that git answers about the repository at this place itself. Raises GitFailed."""
    alone = {"GIT_CEILING_DIRECTORIES": str(place.parent), "GIT_ALLOW_PROTOCOL": NO_PROTOCOL}
    asked = ["-c", "safe.directory=*", "-c", "core.quotePath=false", "-C", str(place), *words]
    done = run_git(asked, environment=alone)
    if done.returncode != 0:
        raise GitFailed("import", done.returncode, done.stderr)
    return os.fsdecode(done.stdout).removesuffix("\n").split("\n")


def _require_folders_outside(folders: list[Path]) -> None:
    ours = [folder.resolve() for folder in (settings.WORKSPACE_ROOT, settings.NEXUS_VAR)]
    if any(folder.resolve().is_relative_to(each) for folder in folders for each in ours):
        raise GitFailed("import", None, b"it lies among the files of this installation")
