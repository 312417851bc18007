"""Which network addresses are public: the one check for everything that leaves the building."""

from __future__ import annotations

import ipaddress
import socket

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
UNICAST = ipaddress.IPv6Network("2000::/3")
PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")


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
    elif address in PROTOCOLS:
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def address_of(host: str) -> Address | None:
    """The address that a host is, in any notation that systems accept; None for a name."""
    bare = host.partition("%")[0].rstrip(".")
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(bare))
        except OSError:
            return None
