"""The short way of MCP's most frequent message: a tool call as one JSON request and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from core.decision import Code, refuse
from toolbox.faces.long_poll import seconds_to_wait
from toolbox.registry import REGISTRY

CALL = ("2.0", "tools/call")
KEYS = frozenset({"jsonrpc", "id", "method", "params"})
LONGEST_METHOD = 100
PARAMS = frozenset({"name", "arguments", "_meta"})


@dataclass(frozen=True, slots=True)
class PlainCall:
    """A `tools/call` that needs nothing of the protocol but its answer."""

    id: str | int
    name: str
    arguments: dict[str, Any]


def read_plain_call(headers: Mapping[bytes, bytes], message: Mapping[str, Any]) -> PlainCall | None:
    """The call in a message that passed `require_head`, or None: then the SDK answers it.

    Plain is a single request of revisions with a handshake, whose client takes JSON, that asks for
    no progress and does not wait for something to happen.
    """
    if b"application/json" not in headers.get(b"accept", b""):
        return None
    if headers.get(b"content-type", b"").partition(b";")[0].strip() != b"application/json":
        return None
    params = message.get("params")
    asked = message.keys() == KEYS and (message["jsonrpc"], message["method"]) == CALL
    if not (asked and isinstance(params, dict) and _is_plain(params)):
        return None
    return PlainCall(message["id"], params["name"], params.get("arguments") or {})


def require_head(message: Mapping[str, Any]) -> None:
    """Raise Denied INVALID_PARAMS for an id that no answer can carry (Spec: wire 18), and for a
    method longer than any name (Spec: wire 36).

    The SDK would take such a request for a notification and answer nothing, and repeat the method
    as a whole.
    """
    number = message.get("id", "")
    if isinstance(number, bool) or not isinstance(number, str | int):
        raise refuse(
            Code.INVALID_PARAMS,
            "id: the id of a message is a text or a whole number",
            "send the message again with such an id",
        )
    if "id" not in message and message.get("method") == CALL[1]:  # no call fails silently
        raise refuse(
            Code.INVALID_PARAMS,
            "id: a call without an id is a notification, which calls no tool",
            "send the message again with an id",
        )
    if len(str(message.get("method", ""))) > LONGEST_METHOD:
        raise refuse(
            Code.INVALID_PARAMS,
            f"method: a method has at most {LONGEST_METHOD} characters",
            "send the message again with a method of the protocol",
        )


def _is_plain(params: Mapping[str, Any]) -> bool:
    """Whether a call's parameters have their form, and ask for nothing further."""
    name, arguments = params.get("name"), params.get("arguments")
    if not (params.keys() <= PARAMS and isinstance(name, str)):
        return False
    if not (arguments is None or isinstance(arguments, dict)) or params.get("_meta"):
        return False
    tool = REGISTRY.get(name)
    return tool is not None and not (tool.waits_for and seconds_to_wait(arguments or {}))


def write_result(call: PlainCall, body: Mapping[str, Any]) -> bytes:
    """The message that answers a plain call: the envelope as text and as structured content."""
    text = to_json(body)
    quoted = to_json(text.decode())
    return b"".join(
        (
            b'{"jsonrpc":"2.0","id":',
            to_json(call.id),
            b',"result":{"content":[{"type":"text","text":',
            quoted,
            b'}],"structuredContent":',
            text,
            b',"isError":',
            b"false" if body["ok"] else b"true",
            b"}}",
        )
    )
