"""A small internet on this machine: 127.0.0.2 counts as public, 127.0.0.1 as what it is."""

import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from core import addresses, outgoing
from tests.patience import PATIENCE

PUBLIC, INSIDE = "127.0.0.2", "127.0.0.1"
Script = Callable[["Handler"], None]


@dataclass
class Server:
    """A web server: what it was asked, and what it answers by path."""

    port: int = 0
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    pages: dict[str, Script] = field(default_factory=dict)


class Handler(BaseHTTPRequestHandler):
    site: Server

    def do_GET(self):
        self.site.asked.append((self.path, dict(self.headers)))
        self.close_connection = True
        try:
            self.site.pages.get(self.path.partition("?")[0], not_found)(self)
        except OSError:
            pass  # the reader has left

    def log_message(self, *args):
        pass


def answer(body, kind="text/html; charset=utf-8", status=200, **headers):
    def script(handler):
        data = body.encode() if isinstance(body, str) else body
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return script


def redirect(target, status=302):
    return answer("", status=status, Location=target)


not_found = answer("<p>There is nothing here.</p>", status=404)


@contextmanager
def server(address: str = PUBLIC, context=None) -> Iterator[Server]:
    site, http = bound(address)
    with serving(site, http, context):
        yield site


@contextmanager
def two_servers() -> Iterator[tuple[Server, Server]]:
    """One of the public address and one of the inside, at the same port."""
    site, http = bound(PUBLIC)
    while True:
        try:
            within, inside = bound(INSIDE, site.port)
            break
        except OSError:  # another program has this port of the other address
            http.server_close()
            site, http = bound(PUBLIC)
    with serving(site, http), serving(within, inside):
        yield site, within


def bound(address: str, port: int = 0) -> tuple[Server, ThreadingHTTPServer]:
    site = Server()
    http = ThreadingHTTPServer((address, port), type("Site", (Handler,), {"site": site}))
    site.port = http.server_address[1]
    return site, http


@contextmanager
def serving(site: Server, http: ThreadingHTTPServer, context=None) -> Iterator[None]:
    http.daemon_threads = True
    if context is not None:
        http.socket = context.wrap_socket(http.socket, server_side=True)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        http.shutdown()
        http.server_close()
        thread.join(PATIENCE)


def install(monkeypatch, names: dict[str, list[str]]) -> list[str]:
    """Names that resolve to these addresses, one list entry after the other; who was asked for."""
    asked, real = [], socket.getaddrinfo
    answers = {name: iter(found) for name, found in names.items()}
    last: dict[str, str] = {}

    def resolve(host, port, *args, **kwargs):
        asked.append(host)
        if host not in names:
            return real(host, port, *args, **kwargs)
        last[host] = next(answers[host], last.get(host, ""))
        return [(2, 1, 6, "", (each, port)) for each in last[host].split()]

    def is_public(address):
        return address == ipaddress.ip_address(PUBLIC) or addresses.is_public(address)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(outgoing, "is_public", is_public)
    monkeypatch.setattr(outgoing, "is_own", lambda _: False)
    return asked
