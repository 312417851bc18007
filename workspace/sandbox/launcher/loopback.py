"""The network of a sandbox: a loopback of its own, whose sockets hold what they are counted for."""

from __future__ import annotations

import fcntl
import socket
import struct

from workspace.sandbox.launcher.memory_use import SOCKET

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
WAITING = {"tcp_rmem": f"4096 65536 {SOCKET // 2}", "tcp_wmem": f"4096 16384 {SOCKET // 2}"}
"""Bytes that may wait to be read, and to be sent: least, at first, most."""


def begin() -> None:
    """Prepare the network that this process has entered, before it gives up its rights."""
    _bound_sockets()
    _bring_up()


def _bound_sockets() -> None:
    """Keep the kernel from giving a TCP connection more memory the more it is used.

    It is a setting of this network alone. Raises OSError.
    """
    for name, sizes in WAITING.items():
        with open(f"/proc/sys/net/ipv4/{name}", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(sizes)


def _bring_up() -> None:
    """A network of one: programs may talk to themselves."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        asked = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(handle, SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))
