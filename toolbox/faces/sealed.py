"""What a client keeps for us and cannot read: encrypted, and taken from this installation only."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from django.conf import settings


def seal(text: str, *, purpose: str) -> str:
    """The text for a client: letters, digits, `-` and `_`; the same text is sealed alike."""
    sealed = _cipher(settings.SECRET_KEY, purpose).encrypt(text.encode(), None)
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def unseal(sealed: str, *, purpose: str) -> str:
    """The text that was sealed for this purpose. Raises ValueError for anything else."""
    try:
        found = base64.b64decode(sealed + "=" * (-len(sealed) % 4), altchars=b"-_", validate=True)
        return _cipher(settings.SECRET_KEY, purpose).decrypt(found, None).decode()
    except (binascii.Error, InvalidTag) as problem:
        raise ValueError("not sealed here") from problem


@lru_cache(maxsize=8)
def _cipher(secret: str, purpose: str) -> AESSIV:
    key = hmac.digest(secret.encode(), f"sealed:{purpose}".encode(), hashlib.sha512)
    return AESSIV(key)
