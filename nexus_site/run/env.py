"""Makes `.venv` what requirements.txt says. Run by the system's Python, standard library only.

Does nothing in milliseconds when nothing changed. Everything it writes lies in the checkout.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "installed.sha256"
LOCK = ROOT / "requirements.txt"
LOCKED = re.compile(r"^(?P<name>[\w.-]+)==.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
"""A package of the lock file, with its hashes."""
CACHE = ROOT / "var" / "cache"
OLDEST = (3, 11)
OTHERS = ("python3.13", "python3.12", "python3.11", "python3.14")


def main() -> int:
    """Bring the environment up to date; 0 if it is."""
    if up_to_date():
        return 0
    if sys.version_info < OLDEST:
        return with_newer_python()
    CACHE.mkdir(parents=True, exist_ok=True)
    with (ROOT / "var" / "env.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # somebody else's `make` may be at it
        if not up_to_date():
            make_venv()
            install()
            STAMP.write_text(wanted())
    return 0


def wanted() -> str:
    """What the stamp says of an environment that fits: these requirements, at this place."""
    return hashlib.sha256(LOCK.read_bytes() + os.fsencode(str(ROOT))).hexdigest()


def up_to_date() -> bool:
    """Whether the environment is there, whole, and of these requirements."""
    return PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted()


def with_newer_python() -> int:
    """Start again under a Python that is new enough."""
    for name in OTHERS:
        found = shutil.which(name)
        if found and run([found, "-c", "pass"]):
            return subprocess.call([found, __file__])
    print("NEXUS needs Python 3.11 or newer; this is", sys.version.split()[0])
    print("Install one, or name one: make PYTHON=/path/to/python3.12 up")
    return 1


def make_venv() -> None:
    """Create the environment if there is none, or the one there no longer runs."""
    if PYTHON.exists() and run([PYTHON, "-c", "import pip"]):
        return
    print("Creating .venv", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    if run([sys.executable, "-m", "venv", VENV]):
        return
    # Debian splits pip's half of venv into a package of its own; the system's pip can stand in.
    shutil.rmtree(VENV, ignore_errors=True)
    outer = [sys.executable, "-m", "pip", "--python", PYTHON]
    if run([sys.executable, "-m", "venv", "--without-pip", VENV]) and install_locked("pip", outer):
        return
    sys.exit("This Python can make no virtual environment: install python3-venv (or python3-pip).")


def install() -> None:
    """Install exactly the locked packages: by uv, which takes seconds, or else by pip."""
    print("Installing the locked packages into .venv", flush=True)
    if install_uv() and run([PYTHON, "-m", "uv", "pip", "sync", "-q", "--python", PYTHON, LOCK]):
        return
    print("uv is not to be had here; pip takes a little longer", flush=True)
    pip = [PYTHON, "-m", "pip", "install", "-q", "--require-hashes", "-r", LOCK]
    if not run(pip, quiet=False):
        sys.exit("The packages of requirements.txt could not be installed: is an index in reach?")


def install_uv() -> bool:
    """Install the locked uv, its hashes checked."""
    if run([PYTHON, "-m", "uv", "--version"]):
        return True
    return install_locked("uv", [PYTHON, "-m", "pip"])


def install_locked(package: str, pip: list[object]) -> bool:
    """Install one locked package by this pip, its hashes checked."""
    locked = {found["name"]: found[0] for found in LOCKED.finditer(LOCK.read_text())}
    if package not in locked:
        return False
    with tempfile.NamedTemporaryFile("w", suffix=".txt", dir=str(CACHE)) as file:
        file.write(locked[package])
        file.flush()
        return run([*pip, "install", "-q", "--require-hashes", "-r", file.name])


def run(command: Iterable[object], *, quiet: bool = True) -> bool:
    """Run to the end; whether it succeeded. Its caches stay in the checkout."""
    environment = dict(
        os.environ,
        UV_PYTHON_DOWNLOADS="never",
        UV_CACHE_DIR=os.environ.get("UV_CACHE_DIR") or str(CACHE / "uv"),
        PIP_CACHE_DIR=os.environ.get("PIP_CACHE_DIR") or str(CACHE / "pip"),
        PIP_DISABLE_PIP_VERSION_CHECK="1",
    )
    if "PIP_INDEX_URL" in environment:
        environment.setdefault("UV_DEFAULT_INDEX", environment["PIP_INDEX_URL"])
    output = subprocess.DEVNULL if quiet else None
    words = [str(word) for word in command]
    return subprocess.call(words, env=environment, stdout=output, stderr=output) == 0


if __name__ == "__main__":
    sys.exit(main())
