"""The user that PostgreSQL runs as: it refuses root, so root runs it as a plain user."""

import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SHIM = Path(__file__).with_name("shim.py")
UNPRIVILEGED = 65534
WAYS_DOWN = ("--drop", "--drop-but-reach")  # where namespaces are closed, as in most containers


class NoIdentity(Exception):
    """PostgreSQL cannot run here as any user; the message says what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """The shim's arguments that make PostgreSQL willing, and who then owns its files."""

    arguments: tuple[str, ...] = ()
    owner: tuple[int, int] | None = None

    def command(self, program: Sequence[str | Path], *, detach: Path | None = None) -> list[str]:
        """The command line that runs `program` as this identity; detached, it writes to a log."""
        detached = ("--detach", str(detach)) if detach else ()
        words = [str(word) for word in program]
        return [sys.executable, "-I", "-S", str(SHIM), *self.arguments, *detached, "--", *words]


def plain_user() -> tuple[int, int]:
    """A user that exists here and is not root; initdb looks its name up."""
    users = {entry.pw_uid: entry.pw_gid for entry in pwd.getpwall() if entry.pw_uid != 0}
    if not users:
        raise NoIdentity("this system knows no user but root")
    uid = UNPRIVILEGED if UNPRIVILEGED in users else min(users)
    return uid, users[uid]


def has_name(uid: int) -> bool:
    """Whether this user is listed on this system (in containers it often is not)."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def choose(*, program: Path, home: Path) -> ProcessIdentity:
    """Find an identity that can run `program` and write in `home`, which it does not create.

    Raises NoIdentity when none can: no rights outside the checkout are changed to make it work.
    """
    if os.geteuid() != 0 and has_name(os.geteuid()):
        return ProcessIdentity()
    uid, gid = plain_user()
    mapped = ProcessIdentity(arguments=("--map", f"{uid}:{gid}"))
    if _works(mapped, [program, "--version"], ["test", "-w", home]):
        return mapped
    for way in WAYS_DOWN if os.geteuid() == 0 else ():
        dropped = ProcessIdentity(arguments=(way, f"{uid}:{gid}"), owner=(uid, gid))
        if _works(dropped, [program, "--version"], ["ls", "-d", home / "."]):
            return dropped
    raise NoIdentity(
        "PostgreSQL does not run as root, and here root can neither enter a user namespace nor "
        f"reach {home} and {program} as another user. Run this as a plain user, move the checkout "
        "to a folder that others may enter, or name a PostgreSQL server in DATABASE_URL."
    )


def _works(identity: ProcessIdentity, *commands: Sequence[str | Path]) -> bool:
    """Whether this identity can do all of this."""
    return all(
        subprocess.run(identity.command(command), capture_output=True, check=False).returncode == 0
        for command in commands
    )
