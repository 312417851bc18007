"""Django's synchronous world under ASGI: the body is read first, then a thread answers.

One hop to a thread and back for each request. A bridge that carries WSGI's conversation (`a2wsgi`)
hops for every part of an answer: half as many calls of an empty view a second (2,500 against 5,700
at 8 clients). Django's own ASGI handler runs the whole middleware as coroutines, and is slower yet.
"""

import asyncio
import io
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

import structlog
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.http import parse_header_parameters

from nexus_site.serving import body_limits, errors
from nexus_site.serving.handlers import ApiHandler, PeopleHandler
from toolbox.faces.bodies import BodyTooLarge, Disconnected, read_body
from toolbox.faces.threads import in_turn

Message = dict[str, Any]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Response = HttpResponse | StreamingHttpResponse

log = structlog.get_logger(__name__)


class TextRequest(ASGIRequest):
    """A request whose texts are UTF-8, whatever charset it names.

    Django would read address and form by that charset, and fails for some before any view begins.
    """

    def _set_content_type_params(self, meta: dict[str, str]) -> None:
        parsed = parse_header_parameters(meta.get("CONTENT_TYPE", ""))
        self.content_type, self.content_params = parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """An ASGI application that answers with a Django handler in a pool of threads."""

    handler: PeopleHandler | ApiHandler
    threads: ThreadPoolExecutor
    limit: int  # bytes of a body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        body = await self.read(scope, receive, send)
        if body is None:
            return
        response = await in_turn(self.threads, self.answer, scope, body)
        if not response.streaming:
            await self.send(cast("HttpResponse", response), send)
            return
        await send(start_of(response))
        parts = iter(cast("Iterator[bytes]", response))
        try:
            while (part := await in_turn(self.threads, next, parts, None)) is not None:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        finally:
            await asyncio.get_running_loop().run_in_executor(self.threads, response.close)
        await send({"type": "http.response.body"})

    async def read(self, scope: Scope, receive: Receive, send: Send) -> bytes | None:
        """The body of a request; None if the client left, or was refused."""

        async def is_known() -> bool:
            return await in_turn(self.threads, body_limits.is_known, scope)

        try:
            return await read_body(receive, limit=self.limit, is_known=is_known)
        except Disconnected:
            return None
        except BodyTooLarge:
            await self.send(errors.too_large(scope["path"]), send)
            return None

    async def send(self, response: HttpResponse, send: Send) -> None:
        """Send an answer that is whole."""
        content = response.content
        await send(start_of(response, length=len(content)))
        await send({"type": "http.response.body", "body": content})

    def answer(self, scope: Scope, body: bytes) -> Response:
        """Let Django answer in this thread; a whole answer is closed here, a stream later."""
        try:
            request: HttpRequest = TextRequest(scope, io.BytesIO(body))
            request.META["CONTENT_LENGTH"] = str(len(body))
            response = cast("Response", self.handler.get_response(request))
        except UnicodeDecodeError:
            response = errors.malformed()
        except Exception:
            log.exception("request_failed", path=scope["path"])
            response = errors.broken(scope["path"])
        response._handler_class = type(self.handler)  # type: ignore[union-attr]  # noqa: SLF001 - Django reads it in close()
        if not response.streaming:
            self.handler.end(response)
        return response


def start_of(response: Response, length: int | None = None) -> Message:
    """The status line and headers of an answer; with its length in bytes, where it is whole."""
    named = response.headers._store  # noqa: SLF001  its own methods ask for each name twice
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in named.values()]
    if length is not None and "content-length" not in named:
        headers.append((b"Content-Length", str(length).encode()))
    headers += [
        (b"Set-Cookie", cookie.OutputString().encode("latin-1"))
        for cookie in response.cookies.values()
    ]
    return {"type": "http.response.start", "status": response.status_code, "headers": headers}
