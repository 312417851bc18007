"""Where the sockets of embedded servers lie."""

import hashlib
import os
import re
import tempfile
from pathlib import Path

SOCKET_NAME = "/.s.PGSQL.5432"
SOCKET_PATH_LIMIT = 103  # the shortest limit among the systems we run on (macOS); Linux has 107
PLAIN_PATH = re.compile(r"[\w/.@+-]+", re.ASCII)


def socket_folder(folder: Path) -> Path:
    """Where a server's socket lies: in this folder, or in a private one if its path is long.

    A function of the folder alone, so that every process finds the same one.
    """
    if len(f"{folder}{SOCKET_NAME}") < SOCKET_PATH_LIMIT and PLAIN_PATH.fullmatch(str(folder)):
        return folder
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    if len(str(runtime)) > 60 or not runtime.is_dir():
        runtime = Path("/tmp")  # noqa: S108 - a private folder is made in it and its owner checked
    return runtime / f"nexus-{os.geteuid()}-{digest}"
