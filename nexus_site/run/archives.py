"""Folders as archives: packed while agents change them, unpacked on the disk of their place."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from core.files import owner_in
from orgchart.policy.paths import MAX_PATH

AS_IT_IS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
UNFINISHED = ".restored"
"""In a place that is being restored: the folder of what is not there yet."""
OF_DISKS = frozenset({"lost+found"})
LAST = ("packed-refs", "objects")
"""Names in a git repository that are packed after `refs`: branches move from there to the first."""
LOOKS = 5
"""How often a folder is looked at, at most: an agent may make names in it without end."""
WALKS = 2
"""How often a place is walked through: what is moved to a folder that was left is there then."""
DOTS = frozenset({"", ".", ".."})
LONGEST_NAME = MAX_PATH + 256
"""Bytes of a name in an archive: what agents may write, in a home with a long name.

A longer one, as programs can make them in many folders, could not be unpacked everywhere.
"""


def pack(path: Path, places: Mapping[str, Path]) -> None:
    """Write an archive that only its owner reads: whole and on the disk, or not at all.

    What vanishes meanwhile is left out, and so are devices, pipes and names that are too long. No
    link is followed, also where it takes the place of a file at this moment. Spec: files 21.
    """
    part = path.with_name(f"{path.name}.part")  # of a backup that was killed there is no more
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            with tarfile.open(fileobj=file, mode="w") as archive:
                packed = Packed(archive)
                for name, place in WALKS * list(places.items()):
                    packed.add(name, str(place.resolve()), None)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)


class Packed:
    """An archive with what was put into it: each name once, and a file with two names once."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._folders, self._others = set[str](), set[str]()
        self._first_names: dict[tuple[int, ...], str] = {}

    def add(self, name: str, path: str, folder: int | None) -> None:
        """Add what is at a path, or at a name in an open folder, with all that is in it."""
        if len(os.fsencode(name)) > LONGEST_NAME or name in self._others:
            return
        try:
            here = os.open(path, AS_IT_IS, dir_fd=folder)
        except FileNotFoundError:
            return
        except OSError as problem:
            if problem.errno == errno.ELOOP:
                self._add_link(name, path, folder)
            elif problem.errno != errno.ENXIO:  # a socket
                raise
            return
        try:
            found = os.fstat(here)
            if stat.S_ISDIR(found.st_mode):
                if name not in self._folders:
                    self._folders.add(name)
                    self._archive.addfile(_entry(name, found, tarfile.DIRTYPE))
                for each in _names_in(here):
                    self.add(f"{name}/{each}", each, here)
            elif stat.S_ISREG(found.st_mode) and name not in self._folders:
                self._add_file(name, here, found)
        finally:
            os.close(here)

    def _add_file(self, name: str, here: int, found: os.stat_result) -> None:
        """A file, or the name that it was packed with before.

        Its number alone does not say that: the disk gives that of a deleted file to the next one,
        which may be of another agent.
        """
        self._others.add(name)
        entry = _entry(name, found, tarfile.REGTYPE)
        if found.st_nlink > 1:
            same = (found.st_dev, found.st_ino, found.st_uid, found.st_size, found.st_mtime_ns)
            entry.linkname = self._first_names.setdefault(same, name)
            if entry.linkname != name:
                entry.type = tarfile.LNKTYPE
                self._archive.addfile(entry)
                return
            entry.linkname = ""
        entry.size = found.st_size
        with open(here, "rb", closefd=False) as file:
            self._archive.addfile(entry, Whole(file))

    def _add_link(self, name: str, path: str, folder: int | None) -> None:
        try:
            found = os.stat(path, dir_fd=folder, follow_symlinks=False)
            target = os.readlink(path, dir_fd=folder)
        except OSError:
            return  # it is no link any more
        if name not in self._folders:
            self._others.add(name)
            self._archive.addfile(_entry(name, found, tarfile.SYMTYPE, target))


def _names_in(folder: int) -> Iterator[str]:
    """The names in an open folder, then those that came while these were packed.

    Git removes packs once their objects are in a new one, which would be in none of the two.
    """
    seen: set[str] = set()
    for _ in range(LOOKS):
        new = set(os.listdir(folder)) - seen
        yield from sorted(new, key=_turn)
        if not new:
            return
        seen.update(new, LAST)  # branches that come after the objects may name others


def _turn(name: str) -> tuple[int, str]:
    """When a name's turn is in its folder: of a git repository the branches, then their objects.

    Git writes a branch once its objects are there, so whatever commit it names is packed as well.
    """
    return (LAST.index(name) if name in LAST else -1, name)


def _entry(name: str, found: os.stat_result, kind: bytes, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    entry.mode, entry.mtime = stat.S_IMODE(found.st_mode), int(found.st_mtime)
    entry.uid, entry.gid = found.st_uid, found.st_gid
    return entry


@dataclass(frozen=True, slots=True)
class Whole:
    """A file that is as long as was said: one that is cut off meanwhile ends in zeros, as tar's."""

    file: BinaryIO

    def read(self, size: int = 0, /) -> bytes:
        """As many bytes as are asked for."""
        return self.file.read(size).ljust(size, b"\0")


@contextmanager
def unpacked(path: Path, places: Mapping[str, Path]) -> Iterator[None]:
    """Unpack each place of an archive in it or next to it, and put it there at the end.

    A place that is not empty is left alone. If what is done meanwhile fails, nothing changes. A
    place that is filled by half, by this call or one before, keeps the mark by which the next call
    fills it. An archive is as `pack` writes it: not compressed, and of what is strange in it
    nothing is kept. Raises tarfile.ReadError for one that is damaged or cut off.
    """
    fresh: dict[str, Path] = {}
    try:
        with tarfile.open(path, "r:") as archive:
            _require_end(archive)
            for name, place in places.items():
                _require_no_foreign_link(place)
                members = list(_packed(archive.getmembers(), name))
                if not members or not is_empty(place):
                    continue
                fresh[name] = _fresh_folder(place)
                _extract(archive, members, fresh[name])
        yield
        for name, folder in list(fresh.items()):
            _put(folder / name, places[name])
            shutil.rmtree(folder, ignore_errors=True)
            del fresh[name]
    finally:
        for folder in fresh.values():
            if not _has_other_names(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _require_no_foreign_link(place: Path) -> None:
    """Raise PermissionError for root where another user's link would choose the place for it.

    What root unpacks belongs to who owns the place, and would be theirs in a folder of root's.
    """
    if os.geteuid() == 0 and place.is_symlink() and place.lstat().st_uid != 0:
        raise PermissionError(errno.EPERM, "it is a link that another user made", str(place))


def _require_end(archive: tarfile.TarFile) -> None:
    """Raise ReadError where something else follows the last entry than the end of an archive.

    The library takes a damaged head of an entry for the end, and would leave out what follows.
    """
    archive.getmembers()
    file: Any = archive.fileobj
    file.seek(archive.offset)
    rest = file.read(2 * tarfile.RECORDSIZE)
    if any(rest) or not tarfile.BLOCKSIZE <= len(rest) <= tarfile.RECORDSIZE + tarfile.BLOCKSIZE:
        raise tarfile.ReadError(f"it is damaged or cut off at byte {archive.offset}")


def is_empty(place: Path) -> bool:
    """Whether a place has nothing but what a killed restore put there, or what its disk came with.

    What a killed restore put in its place is whole: it was moved there by its name.
    """
    if not place.is_dir():
        return not place.exists()
    names = {each.name for each in place.iterdir()}
    return UNFINISHED in names or names <= OF_DISKS


def _has_other_names(fresh: Path) -> bool:
    """Whether its place holds other names: some of what it has was moved there already."""
    names = {each.name for each in fresh.parent.iterdir()}
    return fresh.name == UNFINISHED and not names <= {UNFINISHED, *OF_DISKS}


def _fresh_folder(place: Path) -> Path:
    """Make a folder on the disk of a place: a place that exists may be a disk of its own."""
    fresh = place / UNFINISHED if place.is_dir() else place.with_name(f".{place.name}{UNFINISHED}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700, parents=True)
    return fresh


def _put(whole: Path, place: Path) -> None:
    if not place.is_dir():
        whole.rename(place)
        return
    shutil.copymode(whole, place)
    for each in whole.iterdir():
        if not os.path.lexists(place / each.name):
            each.rename(place / each.name)


def _packed(members: Iterable[tarfile.TarInfo], place: str) -> Iterator[tarfile.TarInfo]:
    """What `pack` can have written of a place: each name once, in a folder that came before it.

    So no link is ever on the way to a file or folder.
    """
    folders, files, seen = {""}, set(), set()
    for member in members:
        folder, _, name = member.name.rpartition("/")
        is_inside = folder in folders and (folder or name == place) and name not in DOTS
        if (
            not is_inside
            or member.name in seen
            or (member.islnk() and member.linkname not in files)
        ):
            continue
        seen.add(member.name)
        if member.isdir():
            folders.add(member.name)
        elif member.type == tarfile.REGTYPE and not member.issparse():
            files.add(member.name)
        elif not folder or not (member.issym() or member.islnk()):
            continue
        yield member


def _extract(archive: tarfile.TarFile, members: Sequence[tarfile.TarInfo], fresh: Path) -> None:
    """Make what was packed in a folder: plain files and folders, and links that stay inside.

    Not by the library: it does this safely from 3.11.4 on, and systems have older ones. What root
    makes belongs to who owns the place, as its service must read and write it (Spec: files 24).
    That owner can put another folder in the place of the one that is filled, so it is named by its
    descriptor; a folder in it is given away when all in it is done. Raises PermissionError where
    that happened.
    """
    owner = owner_in(fresh.parent)
    base = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        folders = []
        for member in members:
            name = member.name
            if member.isdir():
                os.mkdir(name, 0o700, dir_fd=base)
                folders.append(member)
            elif member.issym():
                if _is_inside(fresh / name, member.linkname, fresh):
                    os.symlink(member.linkname, name, dir_fd=base)
                    os.chown(name, *owner, dir_fd=base, follow_symlinks=False)
            elif member.islnk():
                os.link(member.linkname, name, src_dir_fd=base, dst_dir_fd=base)
            else:
                _write(archive, member, base, owner)
        for member in reversed(folders):
            made = os.open(member.name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=base)
            try:
                _finish(made, member, owner)
            finally:
                os.close(made)
        if not os.path.samestat(fresh.lstat(), os.fstat(base)):
            raise PermissionError(errno.EPERM, "another folder took its place", str(fresh))
    finally:
        os.close(base)


def _is_inside(link: Path, target: str, fresh: Path) -> bool:
    """Whether a link leads to a place in the folder that is unpacked; one in a circle does."""
    leads_to = os.path.realpath(link.parent / target)  # `resolve` raises for a circle
    return Path(leads_to).is_relative_to(fresh.resolve())


def _write(
    archive: tarfile.TarFile, member: tarfile.TarInfo, base: int, owner: tuple[int, int]
) -> None:
    packed = archive.extractfile(member)
    assert packed is not None  # noqa: S101  of a plain file there is one
    made = os.open(member.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=base)
    with packed, os.fdopen(made, "wb") as file:
        shutil.copyfileobj(packed, file)
        file.flush()
        _finish(made, member, owner)


def _finish(made: int, member: tarfile.TarInfo, owner: tuple[int, int]) -> None:
    """Give a file or folder its mode, its time and its owner.

    Only the owner may write. Folders keep their modes, so what was closed stays closed.
    """
    if member.isdir():
        mode = member.mode & 0o755
    else:
        mode = (member.mode & (0o755 if member.mode & 0o100 else 0o644)) | 0o600
    os.fchmod(made, mode)
    os.utime(made, (member.mtime, member.mtime))
    os.fchown(made, *owner)
