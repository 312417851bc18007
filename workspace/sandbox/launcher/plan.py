"""What the launcher is told to run: the program, its user, what it sees and what it may use."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

BUBBLEWRAP, NAMESPACES = "bubblewrap", "namespaces"
HIDES = "/dev/null"
"""A mount of this hides what is at its target, a file or a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A program behind walls; `uid` and `gid` are None where the launcher's own user stays.

    `mounts` are (source, target, writable). `limits` are resource limits by their number.
    """

    way: str
    argv: list[str]
    environment: dict[str, str]
    folder: str
    uid: int | None
    gid: int | None
    mounts: list[tuple[str, str, bool]]
    limits: list[tuple[int, int]]
    scratch: int
    memory: int
    bubblewrap: str = ""

    def to_bytes(self) -> bytes:
        """The plan as it is given to the launcher."""
        return json.dumps(asdict(self)).encode()


def read_plan(data: bytes) -> Plan:
    """The plan that the launcher was given."""
    return Plan(**json.loads(data))
