"""The key that signs seals, the public keys trusted, and the last seal this machine knows."""

import base64
import binascii
import json
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings

from core.files import place
from ledger.seal_format import SIGNED, index_keys, key_id, read_public, write_public

PRIVATE = "ed25519.key"
PUBLIC = "ed25519.pub"
HEAD = "head.json"
Seen = tuple[int, str]  # number and digest of a seal


FEWEST_BYTES = 16  # different ones among the 32 of a key: random ones have more


class KeyMissing(RuntimeError):
    """There is no signing key, or none may be made here; or another file of it is broken."""


class Signer:
    """An Ed25519 private key that signs digests of seals and exports."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = key.public_key().public_bytes_raw()
        self.key_id = key_id(self.public)

    def sign(self, digest: bytes) -> bytes:
        """Return the signature over a digest."""
        return self._key.sign(SIGNED + digest)


def signer(*, may_create: bool) -> Signer:
    """Return the signer from LEDGER_SIGNING_KEY, else from the key file.

    Without either a key is made if `may_create`, outside production; raises KeyMissing otherwise:
    seals by a key that is not pinned would prove nothing. So a maker that was killed before it
    pinned its key is finished here.
    """
    if settings.LEDGER_SIGNING_KEY:
        return Signer(read_private(settings.LEDGER_SIGNING_KEY))
    path = folder() / PRIVATE
    if may_create and not settings.PRODUCTION:
        return make_key()
    if not path.exists():
        raise KeyMissing(
            f"no signing key: put {path} back, set LEDGER_SIGNING_KEY, "
            "or make a new key with `manage.py ledger new-key`"
        )
    return Signer(read_key_file(path))


def check_key_file() -> None:
    """Raise KeyMissing where the key file is there and holds no key."""
    path = folder() / PRIVATE
    if path.exists() and not settings.LEDGER_SIGNING_KEY:
        read_key_file(path)


def read_key_file(path: Path) -> Ed25519PrivateKey:
    """Read the key file. Raises KeyMissing, which names it."""
    try:
        return read_private(path.read_text("ascii"))
    except (KeyMissing, UnicodeDecodeError) as problem:
        raise KeyMissing(
            f"{path} cannot be used ({problem}): put it back, or move it away and make a new key "
            "with `manage.py ledger new-key`"
        ) from None


def make_key() -> Signer:
    """Make the key file, mode 0600, and trust its public key in addition to those trusted before.

    A key that is there stays: of two makers at once both return the same key.
    """
    path = folder() / PRIVATE
    pem = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    place(path, pem, replace=False)
    made = Signer(read_key_file(path))
    pinned = _lines(folder() / PUBLIC)
    line = write_public(made.public)
    if line not in pinned:
        place(folder() / PUBLIC, "\n".join([*pinned, line, ""]).encode(), replace=True)
    return made


def trusted() -> dict[str, bytes]:
    """Return the pinned public keys by key id: LEDGER_TRUSTED_KEYS, else the file.

    The key of LEDGER_SIGNING_KEY is one of them and stands for the file: who names it pins it.
    Raises KeyMissing, which names the place of a line that is no key.
    """
    lines, source = list(settings.LEDGER_TRUSTED_KEYS), "LEDGER_TRUSTED_KEYS"
    if not lines and not settings.LEDGER_SIGNING_KEY:
        lines, source = _lines(folder() / PUBLIC), str(folder() / PUBLIC)
    try:
        known = [read_public(line) for line in lines]
    except ValueError as problem:
        raise KeyMissing(f"{source} names what is no public key: {problem}") from None
    own = [signer(may_create=False).public] if settings.LEDGER_SIGNING_KEY else []
    return index_keys([*known, *own])


def read_private(text: str) -> Ed25519PrivateKey:
    """Read a private key: PEM, or base64 of its 32 bytes. Raises KeyMissing, for a guess too."""
    key: object = None
    try:
        if text.lstrip().startswith("-----BEGIN"):
            key = serialization.load_pem_private_key(text.encode(), password=None)
        else:
            key = Ed25519PrivateKey.from_private_bytes(base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error):
        pass
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyMissing("the signing key is neither an Ed25519 key in PEM nor base64 of 32 bytes")
    if len(set(key.private_bytes_raw())) < FEWEST_BYTES:
        raise KeyMissing(
            "the signing key is not random; `openssl rand -base64 32` makes one that is"
        )
    return key


def known_head() -> Seen | None:
    """Return number and digest of the last seal of the chain that this machine keeps.

    Raises KeyMissing where the file is broken: what it said decides whether the chain was cut.
    """
    path = folder() / HEAD
    if not path.exists():
        return None
    try:
        head = json.loads(path.read_text("ascii") if path.is_file() else "")
        return int(head["number"]), str(head["digest"])
    except FileNotFoundError:  # forgotten a moment ago
        return None
    except (ValueError, KeyError, TypeError):
        raise KeyMissing(
            f"{path} does not name a seal: put it back, or move it away and accept the chain with "
            "`manage.py ledger adopt`"
        ) from None


def remember_head(number: int, digest: str) -> None:
    """Keep the last seal outside the database, so that cutting the end of the chain shows.

    It belongs to the chain, in whatever database that lies: a copy of the ledger that was cut and
    restored elsewhere does not begin anew.
    """
    head = json.dumps({"number": number, "digest": digest}).encode()
    place(folder() / HEAD, head, replace=True)


def forget_head() -> None:
    """Forget the chain that this machine kept."""
    (folder() / HEAD).unlink(missing_ok=True)


def folder() -> Path:
    """Return the ledger's own folder, mode 0700."""
    path = Path(settings.LEDGER_DIR)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    return [line.strip() for line in path.read_text("ascii").splitlines() if line.strip()]
