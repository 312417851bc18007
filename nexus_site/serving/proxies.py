"""Who really asks: what a proxy forwards is believed of the proxies that the operator names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

from django.http import HttpRequest

Network = IPv4Network | IPv6Network
Headers = list[tuple[bytes, bytes]]
ONE_HOLDER = 64
"""Bits of an IPv6 address that a provider gives: the rest is its holder's own."""

FORWARDED = frozenset(
    {
        b"forwarded",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-proto",
        b"x-real-ip",
    }
)


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies in front of this installation."""

    networks: Sequence[Network]

    def resolve(self, scope: dict[str, Any]) -> dict[str, Any]:
        """The request with its true client and scheme; forwarded headers go no further."""
        headers: Headers = scope["headers"]
        if FORWARDED.isdisjoint([name for name, _ in headers]):
            return scope
        kept = [pair for pair in headers if pair[0] not in FORWARDED]
        client = scope.get("client")
        if not client or not self.is_trusted(client[0]):
            return {**scope, "headers": kept}
        forwarded = {
            "client": (self._client(_items(headers, b"x-forwarded-for")) or client[0], 0),
            "scheme": self._scheme(_items(headers, b"x-forwarded-proto")) or scope["scheme"],
        }
        return {**scope, **forwarded, "headers": kept}

    def is_trusted(self, address: str) -> bool:
        """Whether this is the address of a named proxy."""
        try:
            found = ip_address(address)
        except ValueError:
            return False
        if found.version == 6:  # one socket for both, as HOST=:: opens, names an IPv4 address so
            found = found.ipv4_mapped or found
        return any(found in network for network in self.networks)

    def _client(self, hops: list[str]) -> str:
        """The nearest address that is no proxy of ours; what a client wrote itself is before it."""
        for hop in reversed(hops):
            try:
                address = str(ip_address(hop))
            except ValueError:
                return ""
            if not self.is_trusted(address):
                return address
        return ""

    def _scheme(self, schemes: list[str]) -> str:
        return schemes[-1] if schemes and schemes[-1] in {"http", "https"} else ""


def client_address(request: HttpRequest) -> str:
    """The address that a request comes from; empty where no client sent it."""
    return str(request.META.get("REMOTE_ADDR") or "")


def client_network(request: HttpRequest) -> str:
    """What failed sign-ins are counted by (django-axes): an address, or the network of an IPv6 one.

    Who holds one IPv6 address holds the 2^64 of its network. Spec: people 54.
    """
    address = client_address(request)
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    mapped = found.ipv4_mapped
    return str(mapped or ip_network((found, ONE_HOLDER), strict=False).network_address)


def _items(headers: Headers, name: bytes) -> list[str]:
    values = (value.decode("latin-1") for key, value in headers if key == name)
    return [item.strip() for value in values for item in value.split(",") if item.strip()]
