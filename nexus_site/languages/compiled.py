"""Compiled catalogues, kept under var/: made where they are missing or older than their source.

Imported by the settings: what it needs of Babel is imported only when something is compiled.
"""

import os
import tempfile
from hashlib import sha256
from pathlib import Path

SOURCE = "LC_MESSAGES/django.po"


def compiled_catalogues(source: Path, kept: Path) -> Path:
    """The folder with a `.mo` for every `.po` under `source`, compiled if they changed.

    Several processes may do so at once: each replaces whole files. What a command of root's makes
    belongs to who owns the folder above, whose service compiles them anew (Spec: files 24).
    """
    made = False
    for po in sorted(source.glob(f"*/{SOURCE}")):
        mo = kept / po.relative_to(source).with_suffix(".mo")
        stamp = mo.with_suffix(".sha256")
        content = po.read_bytes()
        digest = sha256(content).hexdigest()
        if not (mo.exists() and stamp.exists() and stamp.read_text() == digest):
            _replace(mo, compiled(content))
            _replace(stamp, digest.encode())
            made = True
    if made and os.geteuid() == 0:
        owner = kept.parent.stat()
        for path in (kept, *kept.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
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
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(descriptor, "wb") as written:
        written.write(content)
    Path(name).chmod(0o644)
    Path(name).replace(file)
