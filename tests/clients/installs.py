"""Clients of other people, installed once under var/ as their lock files say, and then reused."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nexus_site.run import env

HERE = Path(__file__).parent
PYTHON_LOCK = HERE / "python" / "requirements.txt"
NPM_LOCK = HERE / "npm" / "package-lock.json"
KEPT = env.ROOT / "var" / "clients"


class Unreachable(Exception):
    """An index did not give what a lock file names."""


def python() -> Path:
    """The interpreter of an environment with exactly the packages of `python/requirements.txt`."""

    def install(folder: Path) -> None:
        inside = folder / "bin" / "python"
        uv = (sys.executable, "-m", "uv")
        _run([*uv, "venv", "-q", "--python", sys.executable, str(folder)], PYTHON_LOCK)
        words = [*uv, "pip", "sync", "-q", "--require-hashes", "--python", str(inside)]
        _run([*words, str(PYTHON_LOCK)], PYTHON_LOCK)

    return installed("python", PYTHON_LOCK, install) / "bin" / "python"


def npm() -> Path:
    """The folder of programs that `npm/package-lock.json` names. Needs node and npm."""

    def install(folder: Path) -> None:
        folder.mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(NPM_LOCK.parent / name, folder)
        quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        _run(["npm", "ci", *quiet, "--prefix", str(folder)], NPM_LOCK)

    return installed("npm", NPM_LOCK, install) / "node_modules" / ".bin"


def installed(name: str, lock: Path, install: Callable[[Path], None]) -> Path:
    """The folder that `install` filled for this very lock file, by whoever came first."""
    there = f"{sys.version_info[:2]}{KEPT}".encode()
    folder = KEPT / f"{name}-{hashlib.sha256(lock.read_bytes() + there).hexdigest()[:16]}"
    whole = folder / "whole"
    with _alone(KEPT / f"{name}.lock"):
        if not whole.exists():
            for old in KEPT.glob(f"{name}-*"):  # half an installation, or that of an older lock
                shutil.rmtree(old)
            install(folder)
            whole.touch()
    return folder


def environment(home: Path, **more: str) -> dict[str, str]:
    """What a client's process may know: where programs are and a home of its own, no secrets."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "NO_PROXY": "127.0.0.1,localhost", **more}


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(command: list[str], lock: Path) -> None:
    settings = {
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_CACHE_DIR": str(env.CACHE / "uv"),
        "NPM_CONFIG_CACHE": str(env.CACHE / "npm"),
        **os.environ,
    }
    if "PIP_INDEX_URL" in os.environ:
        settings.setdefault("UV_DEFAULT_INDEX", os.environ["PIP_INDEX_URL"])
    done = subprocess.run(
        command,
        env=settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Unreachable(
            f"The clients that {lock.relative_to(env.ROOT)} names could not be installed; these "
            f"tests need their index in reach. {' '.join(command[:3])} said:\n{done.stdout[-2000:]}"
        )
