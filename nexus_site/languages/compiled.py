"""Compiled catalogues, kept under var/: made where they are missing or older than their source.

Imported by the settings: what it needs of Babel is imported only when something is compiled.
"""

import os
import tempfile
from hashlib import sha256
from pathlib import Path

from core.files import owner_in

SOURCE = "LC_MESSAGES/django.po"


def compiled_catalogues(source: Path, kept: Path) -> Path:
    """The folder with a `.mo` for every `.po` under `source`, compiled if they changed.

    Several processes may do so at once: each replaces whole files.
    """
    for po in sorted(source.glob(f"*/{SOURCE}")):
        mo = kept / po.relative_to(source).with_suffix(".mo")
        stamp = mo.with_suffix(".sha256")
        content = po.read_bytes()
        digest = sha256(content).hexdigest()
        if not (mo.exists() and stamp.exists() and stamp.read_text() == digest):
            _replace(mo, compiled(content))
            _replace(stamp, digest.encode())
    return kept


def compiled(po: bytes) -> bytes:
    """The catalogue as `gettext` reads it; entries without a translation are left out."""
    from io import BytesIO

    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    written = BytesIO()
    write_mo(written, read_po(BytesIO(po)))
    return written.getvalue()


def _replace(file: Path, content: bytes) -> None:
    _make_folder(file.parent)
    descriptor, name = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(descriptor, "wb") as written:
        os.fchown(descriptor, *owner_in(file.parent))
        os.fchmod(descriptor, 0o644)
        written.write(content)
    Path(name).replace(file)


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it; what is there already keeps its owner."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    os.chown(folder, *owner_in(folder.parent), follow_symlinks=False)
