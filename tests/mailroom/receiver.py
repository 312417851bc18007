"""A receiver of webhooks on this machine: it takes, refuses, stalls, stutters, as it is told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.patience import PATIENCE, drip


@dataclass
class Receiver:
    """What arrived, and what is answered next: a status (with headers: a pair), `late`, `twice`,
    `drop by drop` or `hang up`.
    """

    url: str = ""
    script: Iterator[Any] = field(default_factory=lambda: iter(()))
    arrived: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    cut_off: threading.Event = field(default_factory=threading.Event)

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.arrived]

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.arrived]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver at a port of its own."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.arrived.append(({k.lower(): v for k, v in self.headers.items()}, body))
            answer = next(receiver.script, 200)
            if answer == "hang up":
                self.close_connection = True
                self.connection.close()
                return
            if answer == "late":
                receiver.over.wait(PATIENCE)
                return
            if answer == "drop by drop":
                self.close_connection = True
                if drip(self.wfile.write, receiver.over):
                    receiver.cut_off.set()
                return
            if answer == "twice":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                answer = 500
            answer, more = answer if isinstance(answer, tuple) else (answer, {})
            self.send_response(answer)
            for name, value in more.items():
                self.send_header(name, value)
            if answer in (301, 302, 307):
                self.send_header("Location", "http://127.0.0.1:1/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook?org=nexus"
    try:
        yield receiver
    finally:
        receiver.over.set()
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)
