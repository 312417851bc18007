"""Django's settings of the database: PostgreSQL by its address, or the embedded one."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from nexus_site.run.postgres import DATABASE, USER, Cluster

ENGINE = "nexus_site.run.database"
PATIENCE = 20  # seconds
IDLE = 60  # seconds until a pool closes connections that are not needed, all but one
GIVE_UP = {
    "connect_timeout": "10",  # seconds for each address; then the name is asked for again
    "tcp_user_timeout": f"{PATIENCE * 1000}",  # milliseconds until what was sent is acknowledged
    "keepalives_idle": "10",  # seconds of silence until the other machine is asked
    "keepalives_interval": "5",  # seconds between three questions
    "keepalives_count": "3",
}
"""What libpq is told of a machine that is gone and closed no connection. Spec: wire 41.

Without it the kernel waits for a quarter of an hour, and so does the thread of each call that was
given such a connection.
"""


def embedded_database(var: Path) -> dict[str, Any]:
    """The one under this folder; its first user starts it."""
    socket = str(Cluster.under(var).socket)
    return {"ENGINE": ENGINE, "NAME": DATABASE, "USER": USER, "HOST": socket, "OPTIONS": {}}


def database_from_url(url: str) -> dict[str, Any]:
    """Django's connection settings of `postgresql://user:password@host:port/name?option=value`."""
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured("DATABASE_URL must begin with postgresql://; no other database")
    options = GIVE_UP | dict(parse_qsl(parts.query))
    if not parts.path.strip("/") and "service" not in options:
        raise ImproperlyConfigured("DATABASE_URL names no database: postgresql://user@host/NAME")
    try:
        port = parts.port
    except ValueError as problem:
        raise ImproperlyConfigured(f"DATABASE_URL: {problem}") from None
    return {
        "ENGINE": ENGINE,
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": options.pop("user", unquote(parts.username or "")),
        "PASSWORD": options.pop("password", unquote(parts.password or "")),
        "HOST": options.pop("host", unquote(parts.hostname or "")),
        "PORT": options.pop("port", str(port or "")),
        "OPTIONS": options,
    }


def connection_as(url: str) -> dict[str, Any]:
    """The user and the place of a connection; nothing without an address."""
    found = database_from_url(url) if url else {}
    return {name: value for name, value in found.items() if name not in {"ENGINE", "OPTIONS"}}


def pooled(database: dict[str, Any], *, connections: int, prepared: bool) -> dict[str, Any]:
    """The same with a pool of so many connections, and statements prepared on the server."""
    pool = {
        "min_size": 1,
        "max_size": connections,
        "max_idle": IDLE,
        "timeout": PATIENCE,
        "reconnect_timeout": PATIENCE,  # as long as a request waits; then the next one tries again
    }
    options = {
        **database["OPTIONS"],
        "pool": pool,
        # Statements mean the same with and without: one that holds its values would order by a
        # number as by a column, for example.
        "server_side_binding": True,
        # PostgreSQL parses and plans a statement once for each connection, not at every call.
        "prepare_threshold": 1 if prepared else None,
    }
    return {**database, "CONN_MAX_AGE": 0, "OPTIONS": options}  # the pool keeps connections
