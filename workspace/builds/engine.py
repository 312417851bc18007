"""Docker's or Podman's HTTP API, the part that is needed, over a unix socket or TCP.

httpx speaks it directly: Docker's own client library brings another HTTP stack for few requests.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import quote

import httpx
from django.conf import settings
from pydantic import TypeAdapter, ValidationError

from core.outgoing import FAILURES, Connection, Endless, close_after
from core.terminal import printable_lines
from workspace.builds import shapes
from workspace.sandbox.driver import Watch

CONNECT = 5.0
MOST_ANSWER = 4_000_000
"""Bytes of one answer that are read."""
ONE_EACH = httpx.Limits(max_keepalive_connections=0)
"""Each request has a connection of its own, which `close_after` has seen and can cut off."""
NOT_ITS_API = "it answered something that is not its API"
MOST_LOG = 8_000
"""Characters of an engine's or a container's words that are kept."""
LIMITED = {"memory": "MemoryLimit", "pids": "PidsLimit", "cpu": "CpuCfsQuota"}
"""What is limited of each container, and how engines say that they can."""
TICK = 0.5
"""Seconds after which the watcher of a silent engine is asked again."""

Take = Callable[[bytes], object]
Answer = tuple[int, bytes]


class EngineUnavailable(Exception):
    """The engine did not answer, or broke off. `asked` is False if it was not even reached."""

    def __init__(self, problem: str, *, asked: bool = True) -> None:
        super().__init__(problem)
        self.asked = asked


class AnswerTooLarge(EngineUnavailable):
    """The engine answered more than is read."""


class EngineRefused(Exception):
    """The engine answered that it cannot do this."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


class EngineStopped(Exception):
    """The watcher broke the request off."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A connection to the engine that ends at a time of the process's clock."""

    client: httpx.Client
    ends: float

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """The JSON of one answer; None for an empty one. Raises EngineRefused, EngineUnavailable.

        `missing` as an option is what a 404 is answered with.
        """
        missing = options.pop("missing", EngineRefused)
        status, body = self.exchange(method, path, **options)
        if status == 404 and missing is not EngineRefused:
            return missing
        if status >= 400:
            raise EngineRefused(status, _problem_in(body))
        try:
            return json.loads(body) if body.strip() else None
        except (ValueError, RecursionError):
            raise EngineUnavailable(NOT_ITS_API) from None

    def exchange(
        self, method: str, path: str, *, watch: Watch | None = None, **options: Any
    ) -> Answer:
        """Status and body of one answer. Raises EngineUnavailable.

        A watcher gets the body as it comes, and b"" while the engine is silent; where it answers
        False the connection is closed. Raises EngineStopped then.
        """
        left = self.ends - time.monotonic()
        if left <= 0:
            raise EngineUnavailable("it took too long", asked=False)
        timeout = httpx.Timeout(left, connect=min(CONNECT, left))
        with close_after(left) as connection:
            request = partial(
                self.client.stream,
                method,
                path,
                timeout=timeout,
                extensions={"trace": connection},
                **options,
            )
            if watch is None:
                answer = self._answer(request, lambda _: None)
            else:
                answer = _watched(partial(self._answer, request), watch, connection)
        if time.monotonic() >= self.ends:
            raise EngineUnavailable("it took too long")
        return answer

    def _answer(self, request: Callable[[], Any], take: Take) -> Answer:
        """Send one request; `take` gets each piece of the answer's body."""
        try:
            with request() as response:
                return response.status_code, _read(response, take)
        except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
            raise EngineUnavailable(str(problem), asked=False) from problem
        except Endless as problem:
            raise AnswerTooLarge(str(problem)) from problem
        except FAILURES as problem:
            raise EngineUnavailable(str(problem) or type(problem).__name__) from problem

    def image(self, reference: str) -> Mapping[str, Any] | None:
        """What the engine knows of an image; None if it has none of this name or digest."""
        path = f"/images/{quote(reference, safe=':')}/json"
        found = self.ask("GET", path, missing=None)
        return None if found is None else _checked(shapes.IMAGE, found)

    def images_named(self, prefix: str) -> list[Mapping[str, Any]]:
        """The images with a name that begins like this."""
        wanted = json.dumps({"reference": [f"{prefix}*"]})
        rows = self.ask("GET", "/images/json", params={"filters": wanted})
        return _checked_rows(shapes.IMAGES, rows)

    def image_bytes(self, image: Mapping[str, Any], name: str) -> int:
        """The bytes that an image of this name has on the engine's disk.

        Docker 29 keeps an image packed and unpacked. It counts both in its list only: of the image
        itself it says the packed bytes, which are few for a large file of zeros.
        """
        return max(each.get("Size") or 0 for each in (image, *self.images_named(name)))

    def name_image(self, digest: str, name: str) -> None:
        """Give an image a name and a tag."""
        repository, _, tag = name.rpartition(":")
        params = {"repo": repository, "tag": tag}
        self.ask("POST", f"/images/{quote(digest, safe=':')}/tag", params=params)

    def forget_image(self, name: str) -> None:
        """Remove an image's name, and the image where it has no other and no container."""
        self.ask("DELETE", f"/images/{quote(name, safe=':')}", missing=None)

    def without_limit(self) -> list[str]:
        """What the engine can limit for no container: such a limit it drops without an error.

        Podman says of each that it can; it has these controllers of the kernel or has them not.
        """
        info = _checked(shapes.INFO, self.ask("GET", "/info"))
        podman = self._podman()
        if podman is None:
            return [name for name, field in LIMITED.items() if not info.get(field)]
        controllers = podman["host"].get("cgroupControllers")
        return [name for name in LIMITED if name not in (controllers or [])]

    def _podman(self) -> Mapping[str, Any] | None:
        """What Podman says of its machine; None of an engine that is not Podman."""
        found = self.ask("GET", "/v4.0.0/libpod/info", missing=None)
        return None if found is None else _checked(shapes.PODMAN_INFO, found)

    def require_network(self, name: str, labels: Mapping[str, str], *, is_closed: bool) -> None:
        """Make a network that is apart from others, where there is none of this name.

        From a closed one nothing outside is reached.
        """
        if self.ask("GET", f"/networks/{quote(name, safe='')}", missing=None) is not None:
            return
        config = {
            "Name": name,
            "Driver": "bridge",
            "Internal": is_closed,
            "CheckDuplicate": True,
            "Labels": labels,
        }
        try:
            self.ask("POST", "/networks/create", json=config)
        except EngineRefused as refusal:
            if refusal.status != 409:  # another deployment made it a moment ago
                raise

    def container(self, name: str) -> Mapping[str, Any] | None:
        """What the engine knows of a container; None if there is none of this name."""
        path = f"/containers/{quote(name, safe='')}/json"
        found = self.ask("GET", path, missing=None)
        return None if found is None else _checked(shapes.CONTAINER, found)

    def create(self, name: str, config: Mapping[str, Any]) -> str:
        """Create a container and return its id."""
        made = self.ask("POST", "/containers/create", params={"name": name}, json=config)
        return _id_of(made)

    def start(self, container: str) -> None:
        """Start a container."""
        self.ask("POST", f"/containers/{quote(container, safe='')}/start")

    def remove(self, container: str) -> None:
        """Stop and remove a container with its own volumes; nothing if it is gone."""
        path = f"/containers/{quote(container, safe='')}"
        self.ask("DELETE", path, params={"force": "true", "v": "true"}, missing=None)

    def labelled(
        self, labels: Mapping[str, str], *, prefix: str, ends: tuple[str, ...] = ("",)
    ) -> list[str]:
        """The ids of all containers with these labels whose name begins, and ends, like this.

        The containers of a build's steps have labels that its Dockerfile says.
        """
        wanted = json.dumps({"label": [f"{name}={value}" for name, value in labels.items()]})
        rows = self.ask("GET", "/containers/json", params={"all": "true", "filters": wanted})
        return [
            row["Id"]
            for row in _checked_rows(shapes.CONTAINERS, rows)
            if any(
                name.lstrip("/").startswith(prefix) and name.endswith(ends)
                for name in row.get("Names") or []
            )
        ]

    def last_words(self, container: str) -> str:
        """The end of what a container printed."""
        params = {"stdout": "true", "stderr": "true", "tail": "20"}
        path = f"/containers/{quote(container, safe='')}/logs"
        status, body = self.exchange("GET", path, params=params)
        return unframed(body)[-MOST_LOG:] if status == 200 else ""

    def build(
        self, context: bytes, params: Mapping[str, str], *, network: str, watch: Watch
    ) -> tuple[str, str]:
        """Build an image in a network or in `none`: the id that the engine names, and its words.

        It may name no id. The watcher gets what the build prints. Raises EngineRefused where a
        step of the build fails, with its last words; EngineStopped.
        """
        params = {**params, **self._network_of_build(network)}
        headers = {"Content-Type": "application/x-tar"}
        words = _BuildWords(watch)
        status, body = self.exchange(
            "POST", "/build", params=params, content=context, headers=headers, watch=words
        )
        words(b"\n")
        if 300 <= status < 400:  # it has built nothing
            raise EngineUnavailable(NOT_ITS_API)
        if status >= 400:
            raise EngineRefused(status, _problem_in(body))
        if words.problem:
            raise EngineRefused(400, f"{words.said[-1000:]}\n{words.problem[:1000]}".strip())
        return words.image, words.said

    def _network_of_build(self, network: str) -> dict[str, str]:
        """How an engine is told the network of a build.

        Where Podman is told as Docker is, a build has the network of the engine's own machine.
        """
        if self._podman() is None:
            return {"networkmode": network}
        if network == "none":
            return {"networkmode": "NetworkDisabled"}
        named = {"Name": "network", "Host": False, "Path": network}
        return {"networkmode": "NetworkEnabled", "nsoptions": json.dumps([named])}


class _BuildWords:
    """The lines of a build's answer: its watcher gets what they print."""

    def __init__(self, watch: Watch) -> None:
        self.image = self.said = self.problem = ""
        self._watch, self._unread = watch, b""

    def __call__(self, piece: bytes) -> bool:
        *lines, self._unread = (self._unread + piece).split(b"\n")
        printed = "".join(map(self._printed, lines))
        self.said = (self.said + printed)[-MOST_LOG:]
        return self._watch(printed.encode())

    def _printed(self, line: bytes) -> str:
        word = _line(line)
        aux = word.get("aux")
        self.problem = printable_lines(str(word.get("error") or "")) or self.problem
        self.image = str((isinstance(aux, dict) and aux.get("ID")) or "") or self.image
        return printable_lines(str(word.get("stream") or ""))


def _ask(watch: Watch, pieces: SimpleQueue[bytes]) -> None:
    """Give the watcher the next piece, or nothing where none comes. Raises EngineStopped."""
    try:
        piece = pieces.get(timeout=TICK)
    except Empty:
        piece = b""
    if not watch(piece):
        raise EngineStopped


def _watched(work: Callable[[Take], Answer], watch: Watch, connection: Connection) -> Answer:
    """Wait for an answer in a thread of its own, and ask the watcher in this one."""
    pieces: SimpleQueue[bytes] = SimpleQueue()
    with ThreadPoolExecutor(max_workers=1) as thread:
        answer = thread.submit(work, pieces.put)
        answer.add_done_callback(lambda _: pieces.put(b""))
        try:
            while not (answer.done() and pieces.empty()):
                _ask(watch, pieces)
        except BaseException:
            connection.cut()
            raise
        return answer.result()


@contextmanager
def opened(seconds: float) -> Iterator[Engine]:
    """The engine of CONTAINER_ENGINE, for so many seconds.

    Raises EngineUnavailable where none is configured.
    """
    address = settings.CONTAINER_ENGINE
    kind, _, place = address.partition("://")
    if not place:
        raise EngineUnavailable("none is configured", asked=False)
    ends = time.monotonic() + seconds
    if kind == "unix":
        transport, base = httpx.HTTPTransport(uds=place, limits=ONE_EACH), "http://engine"
    elif kind == "https":
        transport, base = httpx.HTTPTransport(verify=_certificates(), limits=ONE_EACH), address
    else:
        transport, base = httpx.HTTPTransport(limits=ONE_EACH), f"http://{place}"
    with httpx.Client(base_url=base, transport=transport, trust_env=False) as client:
        yield Engine(client, ends)


def _certificates() -> ssl.SSLContext:
    """What the engine proves itself by, and this installation to it: `docker --tlsverify`'s."""
    folder = settings.CONTAINER_ENGINE_CERTS
    try:
        context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    except (OSError, ssl.SSLError) as problem:
        raise EngineUnavailable(f"its certificates: {problem}", asked=False) from problem
    return context


def _read(response: httpx.Response, take: Take) -> bytes:
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        take(chunk)
        if len(body) > MOST_ANSWER:
            raise AnswerTooLarge("its answer is too large")
    return bytes(body)


def _checked(shape: TypeAdapter[Any], found: Any) -> Mapping[str, Any]:
    try:
        checked: Mapping[str, Any] = shape.validate_python(found)
    except ValidationError:
        raise EngineUnavailable(NOT_ITS_API) from None
    return checked


def _checked_rows(shape: TypeAdapter[Any], found: Any) -> list[Mapping[str, Any]]:
    try:
        rows: list[Mapping[str, Any]] = shape.validate_python(found or [])
    except ValidationError:
        raise EngineUnavailable(NOT_ITS_API) from None
    return rows


def _id_of(found: Any) -> str:
    named: str = _checked(shapes.NAMED, found)["Id"]
    return named


def _problem_in(body: bytes) -> str:
    said = _line(body).get("message") or body.decode("utf-8", "replace")
    return printable_lines(str(said))[:1000]


def _line(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def unframed(body: bytes) -> str:
    """A container's output, printable, without the eight bytes before each piece."""
    said, at = bytearray(), 0
    while body[at : at + 1] in (b"\0", b"\1", b"\2") and body[at + 1 : at + 4] == b"\0\0\0":
        length = int.from_bytes(body[at + 4 : at + 8], "big")
        said += body[at + 8 : at + 8 + length]
        at += 8 + length
    return printable_lines(bytes(said or body).decode("utf-8", "replace"))
