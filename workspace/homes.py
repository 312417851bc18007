"""Making the folders of an organisation and of its agents, with their owners and modes."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from core.decision import Code, refuse
from workspace.tree import WORK_TREE, agent_folder, organisation_folder
from workspace.users import AgentUser

FOLDERS = (
    "agents", "backlog", "company", "docs/prd", "equipment", "logs", "reports",
)  # fmt: skip
"""The folders of a company tree (Spec: files 20)."""
FOLDER_MODE = 0o750
HOME_MODE = 0o700


def make_company(organisation: str) -> list[str]:
    """Make the folders of a company tree that are missing; what was done, in words."""
    root = organisation_folder(organisation)
    done = []
    for name in FOLDERS:
        if not (root / name).is_dir():
            (root / name).mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            done.append(f"made {root / name}")
    return done


def make_home(organisation: str, handle: str, user: AgentUser | None) -> list[str]:
    """Make an agent's home, closed to others, with its work tree; what was done, in words.

    A home that gets another owner, as when a server first runs as root, changes with all it holds.
    Raises Denied ISOLATION_UNAVAILABLE where a link or a file has its place, or where it belongs to
    another user and this process, which is not root, could not enter it.
    """
    home = agent_folder(organisation, handle)
    done = []
    if not home.is_dir():
        with suppress(FileExistsError):  # there is something else
            home.mkdir(mode=HOME_MODE, parents=True, exist_ok=True)  # two first calls at once
        done.append(f"made {home}")
    found = home.stat(follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode):  # what a link leads to is not ours to give or to close
        raise refuse(
            Code.ISOLATION_UNAVAILABLE,
            f"the home of {handle} is a link or a file, not a folder",
            "go on without it; ask the people who run this installation to put the folder back",
            rule="an operating-system user for each agent (spec: files 8)",
        )
    if user is None and found.st_uid != os.geteuid():
        raise refuse(
            Code.ISOLATION_UNAVAILABLE,
            f"the home of {handle} belongs to the user {found.st_uid}, and this server is the user "
            f"{os.geteuid()}, not root",
            "go on without it; ask the people who run this installation to start the server as "
            "root, as when it was provisioned",
            rule="an operating-system user for each agent (spec: files 8)",
        )
    try:
        (home / WORK_TREE).mkdir(mode=FOLDER_MODE)
    except FileExistsError:
        pass
    else:
        if user is not None:
            os.chown(home / WORK_TREE, user.uid, user.gid, follow_symlinks=False)
    if user is not None and (found.st_uid, found.st_gid) != (user.uid, user.gid):
        _give(home, user)
        done.append(f"gave {home} to user {user.uid}")
    if stat.S_IMODE(found.st_mode) != HOME_MODE:
        home.chmod(HOME_MODE)
        done.append(f"closed {home} to others")
    return done


def _give(home: Path, user: AgentUser) -> None:
    """Give a folder and all below it to a user, following no link; the folder itself last."""
    for _, folders, files, fd in os.fwalk(home, follow_symlinks=False):
        for name in (*folders, *files):
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
                continue  # its other name may be anywhere
            os.chown(name, user.uid, user.gid, dir_fd=fd, follow_symlinks=False)
    os.chown(home, user.uid, user.gid, follow_symlinks=False)


def usage_of(folder: Path) -> tuple[int, int]:
    """The bytes and the number of files below a folder; links are not followed."""
    total = count = 0
    if not folder.is_dir():
        return 0, 0
    for _, _, names, fd in os.fwalk(folder, follow_symlinks=False):
        for name in names:
            try:
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except FileNotFoundError:
                continue
            total += found.st_blocks * 512
            count += 1
    return total, count
