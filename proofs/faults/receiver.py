"""Receives webhooks as a board's own server would: slow, failing a third of the time, counting."""

import random
import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver:
    """What arrived, by its id; a notice that was answered with an error did not arrive."""

    def __init__(self) -> None:
        self.arrived: Counter[str] = Counter()
        self.bodies: dict[str, set[bytes]] = {}
        self.attempts = 0
        self.url = ""
        self._chance = random.Random(3)
        self._lock = threading.Lock()

    def take(self, name: str, body: bytes) -> int:
        with self._lock:
            self.attempts += 1
            fails = self._chance.random() < 0.3
            self.bodies.setdefault(name, set()).add(body)
            if not fails:
                self.arrived[name] += 1
        time.sleep(0.05 if fails else 0)
        return 500 if fails else 204


@contextmanager
def receiving():
    """Listen on a port of its own until told to stop."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:  # its sender was killed
                return
            status = receiver.take(self.headers["webhook-id"], body)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
