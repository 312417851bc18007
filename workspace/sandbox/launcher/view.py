"""What a program sees: a root of its own, of mounts that are chosen without following links."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from workspace.sandbox.launcher import kernel
from workspace.sandbox.launcher.plan import HIDES, Plan

BASE = "/tmp"  # noqa: S108  a place for the new root, in a mount namespace of our own
SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
DEVICES = {"null": "null", "zero": "full", "full": "full", "random": "random", "urandom": "urandom"}
"""What programs see, and what it is: /dev/full reads as /dev/zero does, but cannot be mapped, which
would be shared memory that no process is seen to hold."""
CONFIGURATION = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d")
SCRATCH, SHARED = "/tmp", "/dev/shm"  # noqa: S108  of the new root
OWN = "/scratch"
"""Where the scratch folders are below BASE, until bubblewrap puts them in their places."""
FILES = 20_000
"""Files in a scratch folder: the kernel keeps about a thousand bytes of each, besides its size."""
WRITABLE = (SCRATCH, "/dev")
PLACE = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW
QUIET = kernel.MS_NOSUID | kernel.MS_NODEV


class Refused(Exception):
    """A place passes a link, or is none."""


def open_place(path: str, *, root: int | None = None) -> int:
    """A descriptor of an absolute path, opened part by part; a link in any part is refused."""
    at = os.open("/", PLACE | os.O_DIRECTORY) if root is None else os.dup(root)
    for part in path.strip("/").split("/"):
        if part in ("", ".", ".."):
            raise Refused(f"{path!r} is no plain absolute path")
        below = os.open(part, PLACE, dir_fd=at)  # what fails ends the launcher, and closes all
        os.close(at)
        if stat.S_ISLNK(os.fstat(below).st_mode):
            raise Refused(f"{path} passes a link")
        at = below
    return at


def build(plan: Plan) -> None:
    """Make the root that the program sees, and enter it. Raises OSError, Refused."""
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    sources = [open_place(source) for source, _, _ in plan.mounts]
    system = list(_open_system())
    devices = [(name, os.open(f"/dev/{own}", os.O_PATH)) for name, own in DEVICES.items()]
    kernel.mount("tmpfs", BASE, "tmpfs", QUIET, "mode=0755,size=1m")
    base = os.open(BASE, os.O_PATH | os.O_DIRECTORY)
    _build_system(base, system)
    _build_devices(base, devices, plan.scratch)
    os.close(_make(base, "/proc", folder=True))
    kernel.mount("proc", f"{BASE}/proc", "proc", QUIET | kernel.MS_NOEXEC)
    make_scratch(base, SCRATCH, plan.scratch)
    for fd, (source, target, writable) in zip(sources, plan.mounts, strict=True):
        if source == HIDES:
            hide(base, target)
        else:
            bind(base, fd, target, writable=writable)
    os.close(_make(base, "/etc", folder=True))
    _write_users(plan)
    kernel.become_root_of(BASE)
    here = os.open("/", os.O_PATH | os.O_DIRECTORY)
    kernel.set_mount(here, kernel.MS_RDONLY | QUIET, recursive=False)
    os.close(here)


def _open_system() -> Iterable[tuple[str, int | str]]:
    """What every program needs of this machine, or where it points to."""
    yield "/usr", os.open("/usr", os.O_PATH)
    for name in SYSTEM:
        if os.path.islink(f"/{name}"):  # noqa: PTH114  the launcher imports little
            yield f"/{name}", os.readlink(f"/{name}")  # noqa: PTH115
        elif os.path.isdir(f"/{name}"):  # noqa: PTH112
            yield f"/{name}", os.open(f"/{name}", os.O_PATH)
    for name in CONFIGURATION:
        if os.path.exists(f"/etc/{name}"):  # noqa: PTH110
            yield f"/etc/{name}", os.open(f"/etc/{name}", os.O_PATH)


def _build_system(base: int, system: Iterable[tuple[str, int | str]]) -> None:
    for target, place in system:
        if isinstance(place, str):
            os.symlink(place, target.lstrip("/"), dir_fd=base)
        else:
            bind(base, place, target, writable=False)


def _build_devices(base: int, devices: Iterable[tuple[str, int]], scratch: int) -> None:
    for name, fd in devices:
        os.close(_make(base, f"/dev/{name}", folder=False))
        kernel.mount(f"/proc/self/fd/{fd}", f"{BASE}/dev/{name}", flags=kernel.MS_BIND)
    for name in ("fd", "stdin", "stdout", "stderr"):
        number = {"stdin": "/0", "stdout": "/1", "stderr": "/2"}.get(name, "")
        os.symlink(f"/proc/self/fd{number}", f"dev/{name}", dir_fd=base)
    make_scratch(base, SHARED, scratch)


def make_scratch(base: int, target: str, size: int) -> None:
    """Make a folder in memory for everybody, of so many bytes and files at most."""
    os.close(_make(base, target, folder=True))
    options = f"mode=1777,size={size},nr_inodes={FILES}"
    kernel.mount("tmpfs", f"{BASE}{target}", "tmpfs", QUIET, options)


def bind(base: int, source: int, target: str, *, writable: bool) -> None:
    """Show what a descriptor names at a path of the new root."""
    folder = stat.S_ISDIR(os.fstat(source).st_mode)
    place = _make(base, target, folder=folder)
    flags = kernel.MS_BIND | kernel.MS_REC
    kernel.mount(f"/proc/self/fd/{source}", f"/proc/self/fd/{place}", flags=flags)
    os.close(place)
    mounted = open_place(target, root=base)
    kernel.set_mount(mounted, QUIET | (0 if writable else kernel.MS_RDONLY))
    os.close(mounted)


def hide(base: int, target: str) -> None:
    """Show an empty file or folder, that no process can change, in the place of what is there."""
    place = open_place(target, root=base)
    if stat.S_ISDIR(os.fstat(place).st_mode):
        kernel.mount(
            "tmpfs", f"/proc/self/fd/{place}", "tmpfs", QUIET | kernel.MS_RDONLY, "size=4k"
        )
    else:
        kernel.mount(HIDES, f"/proc/self/fd/{place}", flags=kernel.MS_BIND)
    os.close(place)


def _make(base: int, target: str, *, folder: bool) -> int:
    """Make a place of the new root where it is missing; a descriptor of it."""
    parts = target.strip("/").split("/")
    for end in range(1, len(parts) + 1):
        path = "/".join(parts[:end])
        try:
            os.close(open_place(path, root=base))
        except FileNotFoundError:
            parent = open_place("/".join(parts[: end - 1]), root=base) if end > 1 else os.dup(base)
            if folder or end < len(parts):
                os.mkdir(parts[end - 1], 0o755, dir_fd=parent)
            else:
                flags = os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                os.close(os.open(parts[end - 1], flags, 0o644, dir_fd=parent))
            os.close(parent)
    return open_place(target, root=base)


def _write_users(plan: Plan) -> None:
    """The list of users that programs look their own name up in."""
    uid = os.getuid() if plan.uid is None else plan.uid
    gid = os.getgid() if plan.gid is None else plan.gid
    lists = {
        "passwd": f"agent:x:{uid}:{gid}::/tmp:/bin/sh\n",
        "group": f"agent:x:{gid}:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    }
    for name, text in lists.items():
        with open(f"{BASE}/etc/{name}", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(text)
