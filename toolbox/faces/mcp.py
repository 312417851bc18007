"""The MCP face: the same tools, key and gates over the Model Context Protocol (streamable HTTP)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import mcp_types as types
import structlog
from django.conf import settings
from django.db import DatabaseError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic_core import from_json, to_json

from core.decision import Denied
from core.measures import measure
from core.strictjson import read_object
from toolbox import door
from toolbox.answers import Answer, answer_denial
from toolbox.authentication import authenticate, is_valid_key
from toolbox.caller import Caller, Face
from toolbox.faces import tool_list_changes
from toolbox.faces.bodies import TOO_LARGE_OF_A_STRANGER, BodyTooLarge, Disconnected, read_body
from toolbox.faces.exports import listing
from toolbox.faces.hosts import header_of
from toolbox.faces.long_poll import poll, seconds_to_wait
from toolbox.faces.mcp_calls import read_plain_call, require_head, write_result
from toolbox.faces.threads import Credentials, credentials_of, in_thread, send_denial, send_json
from toolbox.faults import fault_of
from toolbox.gate import require_size
from toolbox.registry import REGISTRY

Message = dict[str, Any]
log = structlog.get_logger(__name__)
Context = ServerRequestContext[Any, Any]

logging.getLogger("mcp").setLevel(logging.WARNING)  # it narrates every request

ROUTE = "mcp"
CALLER = "nexus.caller"
CREDENTIALS = "nexus.credentials"


def scope_of(context: Context) -> Message:
    """The HTTP request that carries this message, with its proven caller."""
    scope: Message = context.request.scope  # type: ignore[union-attr]  # always over HTTP here
    return scope


async def list_tools(
    context: Context, _: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    """The caller's tools, now."""
    caller: Caller = scope_of(context)[CALLER]
    return types.ListToolsResult(
        tools=[types.Tool.model_validate(tool) for tool in listing(caller.holder, "mcp")]
    )


async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    """One call through the door; a refusal carries the envelope, as an error the model can read."""
    try:
        return _result(dict((await _answer(context, params)).body))
    except Disconnected:  # no client reads this
        return types.CallToolResult(content=[], is_error=True)


async def _answer(context: Context, params: types.CallToolRequestParams) -> Answer:
    """The answer of the door; of a call that waits, once there is something or its time ends."""
    scope = scope_of(context)
    arguments = dict(params.arguments or {})
    tool = REGISTRY.get(params.name)
    seconds = seconds_to_wait(arguments) if tool is not None and tool.waits_for else 0
    first = ToolCall(
        name=params.name,
        arguments=arguments,
        key=header_of(scope, "idempotency-key"),
        last=not seconds,
    )
    credentials = scope[CREDENTIALS]
    found = await in_thread(lambda: _prove_and_call(credentials, first, is_counted=True))
    if seconds and door.is_empty(params.name, found):

        async def again(last: bool) -> Answer:  # noqa: FBT001  as `poll` calls it
            call = replace(first, last=last)
            return await in_thread(lambda: _prove_and_call(credentials, call))

        answer = await poll(
            agent_id=scope[CALLER].agent.id,
            organisation_id=scope[CALLER].organisation_id,
            seconds=seconds,
            ask=again,
            is_empty=lambda found: door.is_empty(params.name, found),
        )
        found = answer or found
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """What a message asks to be done, once per key; `last` where no look follows this one."""

    name: str
    arguments: dict[str, Any]
    key: str | None
    last: bool


def _prove_and_call(
    credentials: Credentials, call: ToolCall, *, is_counted: bool = False
) -> Answer:
    """One call through the door, by who is proven in the thread that makes it.

    Behind its message waits the SDK, and then others' calls for a thread: a right that ends
    meanwhile is gone (Spec: wire 3). `is_counted` where the proof of its message took of the rate.
    """
    try:
        caller = _prove(credentials, is_counted=is_counted)
    except Denied as refusal:
        return answer_denial(refusal.deny, tool=call.name)
    except DatabaseError as problem:
        log.exception("call_failed", tool=call.name[:64])
        return answer_denial(fault_of(problem), tool=call.name)
    return _call(caller, call)


def _call(caller: Caller, call: ToolCall) -> Answer:
    """One call through the door; measured as REST is, with the status that REST would have."""
    begun = perf_counter()
    answer = door.call(
        caller,
        call.name,
        call.arguments,
        now=caller.clock.now(),
        idempotency_key=call.key,
        last=call.last,
    )
    measure("POST", ROUTE, answer.status, perf_counter() - begun)
    return answer


def _result(body: dict[str, Any]) -> types.CallToolResult:
    """An answer, whatever it holds: what bounds a body does not bound what is read (Spec: wire 12).

    Several calls make one row, and programs, files and pages of the web have no such bounds.
    """
    text = to_json(body).decode()
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=from_json(text),
        is_error=not body["ok"],
    )


async def listen(
    context: Context, params: types.SubscriptionsListenRequestParams
) -> types.SubscriptionsListenResult:
    """A watcher's stream of changes (protocol 2026-07-28)."""
    scope = scope_of(context)
    watcher = tool_list_changes.ToolListWatcher(scope[CALLER], scope[CREDENTIALS])
    return await tool_list_changes.listen(context, params, watcher=watcher)


class Nexus(Server[Any]):
    """Says in every revision that its list of tools can change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """What the revisions with a handshake are told; later ones see that `listen` is served."""
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True),
            experimental_capabilities,
            extensions,
        )


SERVER = Nexus(
    "nexus",
    title="NEXUS",
    version="1",
    instructions="These are your tools, now. A refusal names its rule and a next step.",
    get_tool_input_schema=lambda _: None,  # no parameter of ours travels in a header as well
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_subscriptions_listen=listen,
)
_running: StreamableHTTPSessionManager | None = None


@asynccontextmanager
async def lifespan() -> AsyncIterator[None]:
    """Keep the protocol's manager alive as long as the process; it keeps no sessions."""
    global _running  # noqa: PLW0603  one manager for each run of the server, as the SDK asks
    manager = StreamableHTTPSessionManager(
        SERVER,
        stateless=True,
        max_request_body_size=settings.NEXUS_MAX_BODY,
    )
    async with manager.run():
        _running = manager
        try:
            yield
        finally:
            _running = None


async def application(scope: Message, receive: Any, send: Any) -> None:
    """Prove the caller once for the request, then answer it, or let the protocol's manager do so.

    A message is read before: its client may send it slowly, and a right that ends meanwhile is gone
    (Spec: organisation 25).
    """
    credentials = credentials_of(scope)
    try:
        if scope["method"] == "POST":
            body = await _read(receive, credentials["authorization"])
            found = await in_thread(lambda: _prove_and_answer(scope, credentials, body))
            if isinstance(found, bytes):
                await send_json(found, send)
                return
            caller, receive = found, _once_more(body, receive)
        else:
            caller = await in_thread(lambda: _prove(credentials))
            if scope["method"] == "GET" and _begins_with_a_handshake(scope):
                watcher = tool_list_changes.ToolListWatcher(caller, credentials)
                await tool_list_changes.serve_stream(scope, receive, send, watcher=watcher)
                return
    except Disconnected:
        return
    except Denied as refusal:
        await send_denial(refusal.deny, send)
        return
    manager = _running
    if manager is None:
        raise RuntimeError("the MCP face is used outside of its lifespan")
    await manager.handle_request({**scope, CALLER: caller, CREDENTIALS: credentials}, receive, send)


async def _read(receive: Any, authorization: str) -> bytes:
    """The message; of a too long one, the beginning. Raises Disconnected, Denied TOO_LARGE."""

    async def is_known() -> bool:
        return await in_thread(lambda: is_valid_key(authorization))

    try:
        return await read_body(receive, limit=settings.NEXUS_MAX_BODY, is_known=is_known)
    except BodyTooLarge:
        raise Denied(TOO_LARGE_OF_A_STRANGER) from None


def _prove(credentials: Credentials, *, is_counted: bool = False) -> Caller:
    return replace(authenticate(**credentials, is_counted=is_counted), face=Face.MCP)


def _prove_and_answer(scope: Message, credentials: Credentials, body: bytes) -> bytes | Caller:
    """Prove the caller in a thread, and answer a plain call there; of other messages, the caller.

    The SDK would open a stream for the answer. Raises Denied: without a valid key, and for what
    cannot be read, which is recorded.
    """
    caller = _prove(credentials)
    try:
        require_size(len(body), settings.NEXUS_MAX_BODY)
        message = read_object(body)  # strictly, before anything of the protocol is built
        require_head(message)
    except Denied as refusal:
        door.refuse_call(caller, "mcp", refusal, now=caller.clock.now())
        raise
    if not _begins_with_a_handshake(scope):
        return caller
    call = read_plain_call(dict(scope["headers"]), message)
    if call is None:
        return caller
    key = header_of(scope, "idempotency-key")
    once = ToolCall(name=call.name, arguments=call.arguments, key=key, last=True)
    return write_result(call, _call(caller, once).body)


def _once_more(body: bytes, receive: Any) -> Any:
    """A `receive` that gives the body that was read, and then what comes."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


def _begins_with_a_handshake(scope: Message) -> bool:
    """Whether the request is of a revision before 2026-07-28, where GET opens a standing stream."""
    revision = header_of(scope, MCP_PROTOCOL_VERSION_HEADER)
    return not revision or revision in HANDSHAKE_PROTOCOL_VERSIONS
