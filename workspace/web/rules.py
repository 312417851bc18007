"""Which addresses of the web may be read, and what of an answer is text; pure."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import urljoin, urlsplit

from core.addresses import is_public, literal_address
from core.decision import Allow, Code, Decision, Deny, deny

RULE = "only public addresses are read (spec: hands 12)"
LOCAL_NAMES = re.compile(r"(^|\.)(localhost|local|localdomain|internal|intranet|lan|home|corp)\.?$")
MOST_HOST = 253
"""Characters of a host's name. Python encodes one in time that grows with the square of them."""
HTML = frozenset({"text/html", "application/xhtml+xml"})
TEXT = re.compile(r"text/[a-z0-9.+-]+|application/([a-z0-9.-]+\+)?(json|xml|yaml)|application/toml")
CHARSET = re.compile(
    r"utf-?8|us-ascii|utf-?16(le|be)?|iso-?8859-?[0-9]{1,2}|latin-?1|windows-125[0-8]"
    r"|gb(2312|k|18030)|big5|shift[_-]?jis|euc-(jp|kr|tw)|koi8-[ru]"
)
"""Encodings of texts. Python knows others that are no text, or slow."""


def can_fetch(url: str) -> Decision:
    """Decide whether an address may be read: http or https, outside this machine and network.

    Names are decided here by what they say; what they resolve to is checked when they are called.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        odd = parts.scheme not in ("http", "https") or not host or parts.username is not None
        odd = odd or len(host) > MOST_HOST
        _ = parts.port, host[:MOST_HOST].encode("idna")
    except ValueError:
        host, odd = "", True
    if odd or unicodedata.normalize("NFKC", host) != host or not url.isprintable():
        return deny(
            Code.INVALID_PARAMS,
            "url: must be a plain http or https address without a name and password",
            "give an address such as https://example.org/page",
            rule=RULE,
            url="must be a plain http or https address",
        )
    number = literal_address(host)
    named_inside = "." not in host.strip(".") or LOCAL_NAMES.search(host)
    if named_inside if number is None else not is_public(number):
        return inside(host)
    return Allow(RULE)


def inside(host: str) -> Deny:
    """The refusal of an address inside this machine or its network."""
    return deny(
        Code.SCOPE_DENIED,
        f"{host[:200]} is inside this machine or its network",
        "read a public address",
        rule=RULE,
    )


def redirect_target(url: str, status: int, location: str) -> str:
    """The address that an answer sends its reader to, or ''. A fragment is no part of it."""
    if status not in (301, 302, 303, 307, 308) or not location:
        return ""
    try:
        return urljoin(url, location.strip()).partition("#")[0]
    except ValueError:
        return location


def media_type(content_type: str) -> tuple[str, str]:
    """The media type of a Content-Type, and its charset where that is one of texts."""
    kind, _, rest = content_type.lower().partition(";")
    named = re.search(r"charset\s*=\s*[\"']?([a-z0-9_-]{1,40})", rest)
    charset = named[1] if named and CHARSET.fullmatch(named[1]) else ""
    return kind.strip(), charset


def can_read(kind: str, url: str) -> Decision:
    """Decide whether an answer of this media type is text that an agent can read."""
    if TEXT.fullmatch(kind):
        return Allow(f"{kind} is text")
    return deny(
        Code.INVALID_PARAMS,
        f"url: {url[:200]} is {kind[:80] or 'of no named type'}, not text",
        "read a page or a text; there is no tool for other files",
        rule="pages are text (spec: hands 13)",
        url="is not text",
    )
