"""A server that speaks the engine's API over a unix socket, and keeps what it was asked."""

import hashlib
import io
import json
import socketserver
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit

from tests.patience import PATIENCE, drip


@dataclass
class Engine:
    """Its images by digest and name, its containers by name, and how it misbehaves."""

    socket: str = ""
    images: dict = field(default_factory=dict)
    containers: dict = field(default_factory=dict)
    networks: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)
    builds: list = field(default_factory=list)
    trouble: dict = field(default_factory=dict)
    """By the end of a path: a status, `hang up`, `slow`, `drip`, pieces or a function."""
    hung_up: list = field(default_factory=list)
    """Paths whose client went away while it got pieces."""
    over: threading.Event = field(default_factory=threading.Event)
    exits: int | None = None
    address: str = "127.0.0.1"

    size: int = 1000
    unpacked: int = 0
    """Bytes of an unpacked image, which only the list counts."""
    config: dict = field(default_factory=dict)
    """What images say that are built."""
    limits: dict = field(
        default_factory=lambda: {"MemoryLimit": True, "PidsLimit": True, "CpuCfsQuota": True}
    )
    controllers: list | None = None
    """What Podman names; None of an engine that is not Podman."""

    def image(self, digest="sha256:" + "a" * 64, name="app", **config):
        self.images[digest] = {
            "Id": digest, "RepoTags": [name], "Config": config, "Size": self.size
        }  # fmt: skip
        return digest

    def paths(self, method):
        return [path for asked, path in self.asked if asked == method]


class Handler(BaseHTTPRequestHandler):
    engine: Engine
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "client"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self._act("GET")

    def do_POST(self):
        self._act("POST")

    def do_DELETE(self):
        self._act("DELETE")

    def _act(self, method):
        self.body = self._body()
        path = unquote(urlsplit(self.path).path)
        self.query = {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()}
        self.engine.asked.append((method, path))
        for end, trouble in list(self.engine.trouble.items()):
            if f"{method} {path}".endswith(end):
                if callable(trouble):
                    trouble()
                else:
                    return self._misbehave(trouble)
        words = [word for word in path.removeprefix("/v4.0.0").split("/") if word]
        try:
            getattr(self, f"{method.lower()}_{words[0]}")(words[1:])
        except OSError:
            self.close_connection = True
        return None

    def _body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _misbehave(self, how):
        self.close_connection = True
        if how == "slow":
            self.engine.over.wait(PATIENCE)
        elif how == "drip":
            drip(self.wfile.write, self.engine.over)
        elif isinstance(how, list):
            self._send_pieces(how)
        elif isinstance(how, bytes):
            self._send(200, how)
        elif isinstance(how, tuple):
            self._send(*how)
        elif isinstance(how, int):
            self._send(how, {"message": f"trouble {how}"})

    def _send(self, status, body=None):
        data = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _send_pieces(self, pieces):
        """Each piece as a chunk, with a moment before it."""
        try:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in [*pieces, b""]:
                time.sleep(0.3)
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        except OSError:
            self.engine.hung_up.append(self.path)

    def post_build(self, _):
        files = {}
        with tarfile.open(fileobj=io.BytesIO(self.body)) as tar:
            for entry in tar:
                files[entry.name] = tar.extractfile(entry).read()
        self.engine.builds.append((self.query, files))
        if b"RUN false" in files["Dockerfile"]:
            said = [{"stream": "Step 1\n"}, {"error": "returned a non-zero code: 1"}]
        else:
            for image in self.engine.images.values():  # the name moves to the new one
                image["RepoTags"] = [tag for tag in image["RepoTags"] if tag != self.query["t"]]
            digest = "sha256:" + hashlib.sha256(self.body).hexdigest()
            if digest in self.engine.images:
                self.engine.images[digest]["RepoTags"].append(self.query["t"])
            else:
                self.engine.image(digest, self.query["t"], **self.engine.config)
            said = [{"stream": "Step 1\n"}, {"aux": {"ID": digest}}]
        self._send(200, b"".join(json.dumps(line).encode() + b"\r\n" for line in said))

    def get_images(self, words):
        if words == ["json"]:
            (prefix,) = json.loads(self.query["filters"])["reference"]
            prefix = prefix.removesuffix("*")
            rows = [
                {
                    "Id": digest,
                    "RepoTags": image["RepoTags"],
                    "Size": image["Size"] + self.engine.unpacked,
                }
                for digest, image in self.engine.images.items()
                if any(tag.startswith(prefix) for tag in image["RepoTags"])
            ]
            return self._send(200, rows)
        wanted = "/".join(words[:-1])
        for digest, image in self.engine.images.items():
            if wanted == digest or wanted in image["RepoTags"]:
                return self._send(200, image)
        return self._send(404, {"message": "no such image"})

    def post_images(self, words):
        digest, name = words[0], f"{self.query['repo']}:{self.query['tag']}"
        for image in self.engine.images.values():  # the name moves
            image["RepoTags"] = [tag for tag in image["RepoTags"] if tag != name]
        self.engine.images[digest]["RepoTags"].append(name)
        return self._send(201)

    def delete_images(self, words):
        name = "/".join(words)
        for digest, image in list(self.engine.images.items()):
            tags = image["RepoTags"]
            if name == digest and len(tags) > 1:
                return self._send(409, {"message": "it is referenced in several repositories"})
            if name == digest or name in tags:
                if name in tags:
                    tags.remove(name)
                if name == digest or not tags:
                    del self.engine.images[digest]
                return self._send(200, [{"Deleted": digest}])
        return self._send(404, {"message": "no such image"})

    def get_info(self, _):
        self._send(200, self.engine.limits | {"Name": "engine"})

    def get_libpod(self, _):
        if self.engine.controllers is None:
            return self._send(404, {"message": "page not found"})
        return self._send(200, {"host": {"cgroupControllers": self.engine.controllers}})

    def get_networks(self, words):
        found = self.engine.networks.get(words[0])
        return self._send(200, found) if found else self._send(404, {"message": "not found"})

    def post_networks(self, _):
        config = json.loads(self.body)
        if config["Name"] in self.engine.networks:
            return self._send(409, {"message": "already exists"})
        self.engine.networks[config["Name"]] = config
        return self._send(201, {"Id": "n1", "Warning": ""})

    def post_containers(self, words):
        if words == ["create"]:
            name = self.query["name"]
            if name in self.engine.containers:
                return self._send(409, {"message": "the name is in use"})
            config = json.loads(self.body)
            made = {
                "Id": hashlib.sha256(name.encode()).hexdigest(),
                "Config": config,
                "State": {"Running": False},
                "NetworkSettings": {"Networks": {"bridge": {"IPAddress": self.engine.address}}},
            }
            self.engine.containers[name] = made
            return self._send(201, {"Id": made["Id"], "Warnings": []})
        found = self._container(words[0])
        if found is None:
            return self._send(404, {"message": "no such container"})
        code = self.engine.exits
        found["State"] = {"Running": True} if code is None else {"Running": False, "ExitCode": code}
        return self._send(204)

    def get_containers(self, words):
        if words == ["json"]:
            wanted = dict(each.split("=", 1) for each in json.loads(self.query["filters"])["label"])
            rows = [
                {"Id": each["Id"], "Names": [f"/{name}"]}
                for name, each in self.engine.containers.items()
                if wanted.items() <= each["Config"]["Labels"].items()
            ]
            return self._send(200, rows)
        found = self._container(words[0])
        if found is None:
            return self._send(404, {"message": "no such container"})
        if words[1] == "logs":
            text = b"cannot open the database\n"
            return self._send(200, b"\x02\0\0\0" + len(text).to_bytes(4, "big") + text)
        return self._send(200, found)

    def delete_containers(self, words):
        found = self._container(words[0])
        if found is None:
            return self._send(404, {"message": "no such container"})
        self.engine.containers = {
            name: each for name, each in self.engine.containers.items() if each is not found
        }
        return self._send(204)

    def _container(self, name):
        for each, found in self.engine.containers.items():
            if name in (each, found["Id"]):
                return found
        return None


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def get_request(self):
        request, _ = super().get_request()
        return request, ("client", 0)


@contextmanager
def engine_at(path) -> Iterator[Engine]:
    engine = Engine(socket=str(path))
    server = UnixServer(str(path), type("Answering", (Handler,), {"engine": engine}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield engine
    finally:
        engine.over.set()
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)
