"""Web servers with a repository: of files, or of WebDAV and an object that has no end."""

import os
import threading
import zlib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import (
    BaseHTTPRequestHandler,
    SimpleHTTPRequestHandler,
    ThreadingHTTPServer,
)
from pathlib import Path

ENTRY = """<D:response><D:href>{}</D:href><D:propstat><D:prop><D:supportedlock><D:lockentry>
<D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockentry>
</D:supportedlock><D:resourcetype>{}</D:resourcetype></D:prop></D:propstat></D:response>"""
ENTRIES = '<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">{}</D:multistatus>'
LOCK = """<?xml version="1.0"?><D:prop xmlns:D="DAV:"><D:lockdiscovery><D:activelock><D:locktoken>
<D:href>opaquelocktoken:1</D:href></D:locktoken><D:timeout>Second-600</D:timeout></D:activelock>
</D:lockdiscovery></D:prop>"""
BY_HTTP = {
    "GIT_ALLOW_PROTOCOL": "http",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "protocol.http.allow",
    "GIT_CONFIG_VALUE_0": "always",
}
"""The variables by which git speaks with these servers, which have no certificate."""
UNKNOWN = "b" * 40
"""The commit of a branch that only this server has."""


class Handler(BaseHTTPRequestHandler):
    """Answers what git asks before it pushes."""

    server: "EndlessServer"

    def answer(self, status: int, text: str = "") -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text.encode())

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path in self.server.texts:
            self.answer(200, self.server.texts[path])
        elif path == f"/git/objects/{UNKNOWN[:2]}/{UNKNOWN[2:]}":
            self.give_without_end()
        else:
            self.answer(404)

    def give_without_end(self) -> None:
        self.send_response(200)
        self.end_headers()
        packing, noise = zlib.compressobj(0), os.urandom(1 << 20)
        self.wfile.write(packing.compress(b"blob 1000000000000\0"))
        while True:  # until git is gone
            self.wfile.write(packing.compress(noise))

    def do_PROPFIND(self):
        inside = {"/git/refs/": ["/git/refs/heads/"], "/git/refs/heads/": self.server.refs}
        named = [self.path, *inside.get(self.path, [])]
        kinds = ["<D:collection/>" if each.endswith("/") else "" for each in named]
        self.answer(207, ENTRIES.format("".join(map(ENTRY.format, named, kinds))))

    def do_LOCK(self):
        self.answer(200, LOCK)

    def do_PUT(self):
        self.answer(201)

    def log_message(self, *_):
        pass


Handler.do_HEAD = Handler.do_GET
for method in ("MOVE", "MKCOL", "UNLOCK", "OPTIONS"):
    setattr(Handler, f"do_{method}", Handler.do_PUT)


class EndlessServer(ThreadingHTTPServer):
    """The server of a repository whose branch is at a commit, and has another one."""

    def __init__(self, branch: str, commit: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.refs = {f"/git/refs/heads/{branch}": commit, "/git/refs/heads/other": UNKNOWN}
        self.texts = {
            "/git/info/refs": f"{commit}\trefs/heads/{branch}\n",
            "/git/HEAD": f"ref: refs/heads/{branch}\n",
            **{path: f"{at}\n" for path, at in self.refs.items()},
        }

    def handle_error(self, *_):
        pass  # git is gone


class PlainHandler(SimpleHTTPRequestHandler):
    """Answers with files, to who knows the password where there is one."""

    def __init__(self, *given, password: str = "", **named) -> None:
        self.password = password
        super().__init__(*given, **named)

    def do_GET(self):
        known = f"Basic {b64encode(self.password.encode()).decode()}"
        if self.password and self.headers.get("Authorization") != known:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *_):
        pass


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[str]:
    """The address of a server that works meanwhile."""
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@contextmanager
def plain_server(folder: Path, password: str = "") -> Iterator[str]:
    """The address of a web server that has the files of this folder, for `user:password` if any."""
    handler = partial(PlainHandler, directory=str(folder), password=password)
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as address:
        yield f"{address}/"


@contextmanager
def endless_server(branch: str, commit: str) -> Iterator[str]:
    """The address of a repository whose branch is at this commit."""
    with serving(EndlessServer(branch, commit)) as address:
        yield f"{address}/git"
