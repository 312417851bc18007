"""Which network addresses are public, and which name a repository: checks for what goes outside."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
UNICAST = ipaddress.IPv6Network("2000::/3")
NOT_PUBLIC: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network] = (
    ipaddress.IPv4Network("192.0.0.0/24"),  # protocols
    ipaddress.IPv4Network("192.88.99.0/24"),  # relays of 6to4
    ipaddress.IPv6Network("3fff::/20"),  # documentation (RFC 9637)
)
"""Special networks that versions of Python count as global."""
REPOSITORY_SCHEMES = ("https", "ssh")
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")


def is_public(address: Address) -> bool:
    """Whether an address lies outside this machine and its network, whatever it is wrapped in.

    A NAT64 address counts as the IPv4 address that it carries. Mapped addresses and tunnels (6to4,
    Teredo) are refused: no public host is addressed like that.
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address in NAT64:
            return is_public(ipaddress.IPv4Address(address.packed[-4:]))
        if address not in UNICAST or address.sixtofour or address.teredo:
            return False
    if any(address in network for network in NOT_PUBLIC):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def literal_address(host: str) -> Address | None:
    """The address that a host is, in any notation that systems accept; None for a name."""
    bare = host.partition("%")[0].rstrip(".")
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(bare))
        except OSError:
            return None


def repository_problem(source: str) -> str:
    """Why a repository cannot be imported from here, or ''.

    An `https` or `ssh` address, or an absolute path; git gets it as data after `--`, and no other
    transport is allowed. Spec: hands 20.
    """
    if len(source) > 500 or not source.isprintable() or "\\" in source:
        return "must be one line of 500 printable characters at most"
    if source.startswith("/"):
        parts = source.split("/")
        return "must be an absolute path without '..'" if ".." in parts else ""
    try:
        parts_of_url = urlsplit(source)
        host, _ = parts_of_url.hostname or "", parts_of_url.port
    except ValueError:
        return "must be an https or ssh address, or an absolute path"
    plain = parts_of_url.scheme in REPOSITORY_SCHEMES and "://" in source and PLAIN_NAME.match(host)
    if not plain or parts_of_url.password is not None or " " in source or "::" in source:
        return "must be an https or ssh address without a password, or an absolute path"
    if parts_of_url.path in ("", "/") or "/-" in parts_of_url.path:
        return "must name a repository on its host"
    user = parts_of_url.username or ""
    return "" if not user or PLAIN_NAME.match(user) else "must have a plain user name"
