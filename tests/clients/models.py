"""The HTTP APIs of two model vendors, answered here from a script: no model, no network."""

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Turn = tuple[str, dict] | str


@dataclass
class Script:
    """What the model will do, turn by turn, and what it was asked.

    A turn is a call, as a pair of name and arguments, or a sentence that ends the run; or what
    decides between them by the names of the tools it is given. The last turn is taken again.
    """

    turns: list[Turn | Callable[[set[str]], Turn]]
    asked: list[dict] = field(default_factory=list)
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def call_id(self) -> str:
        """The id of this turn's call: the same one when the same script is played again."""
        return f"call_{self.name}_{len(self.asked)}"

    def next(self, asked: dict) -> Turn:
        """The next turn; a side question without tools is answered without taking one."""
        if not asked.get("tools"):
            return "Yes."
        self.asked.append(asked)
        turn = self.turns[min(len(self.asked), len(self.turns)) - 1]
        return turn({tool["name"] for tool in asked["tools"]}) if callable(turn) else turn


@contextmanager
def scripted_api(script: Script) -> Iterator[str]:
    """Both vendors' API at an address of this machine."""

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path = self.path.partition("?")[0]
            if path == "/v1/messages":
                told = message(script.next(asked), script)
                if asked.get("stream"):
                    self._send("text/event-stream", as_stream(streamed(told)))
                else:
                    self._send("application/json", json.dumps(told))
            elif path == "/v1/responses":
                self._send("application/json", json.dumps(responses(script.next(asked), script)))
            elif path == "/v1/chat/completions":
                self._send("application/json", json.dumps(completion(script.next(asked), script)))
            else:
                self.send_error(404)

        def _send(self, kind: str, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def as_stream(events: list[dict]) -> str:
    """Server-sent events, each named by its type."""
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)


def message(turn: Turn, script: Script) -> dict:
    """A turn as the Messages API answers it."""
    if isinstance(turn, str):
        block, stop = {"type": "text", "text": turn}, "end_turn"
    else:
        block = {"type": "tool_use", "id": script.call_id, "name": turn[0], "input": turn[1]}
        stop = "tool_use"
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [block],
        "stop_reason": stop,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def streamed(told: dict) -> list[dict]:
    """The same, in the parts of a stream."""
    (block,) = told["content"]
    if block["type"] == "text":
        empty, delta = {"text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty = {"input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    begun = {**told, "content": [], "stop_reason": None}
    end = {"delta": {"stop_reason": told["stop_reason"]}, "usage": told["usage"]}
    return [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {**block, **empty}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", **end},
        {"type": "message_stop"},
    ]


def responses(turn: Turn, script: Script) -> dict:
    """A turn as the Responses API answers it."""
    if isinstance(turn, str):
        content = [{"type": "output_text", "text": turn, "annotations": []}]
        item = {"type": "message", "role": "assistant", "content": content}
    else:
        name, arguments = turn
        item = {"type": "function_call", "call_id": script.call_id, "name": name}
        item["arguments"] = json.dumps(arguments)
    return {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "scripted",
        "output": [{"id": uuid.uuid4().hex, "status": "completed", **item}],
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
    }


def completion(turn: Turn, script: Script) -> dict:
    """A turn as the Chat Completions API answers it."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(turn, str):
        message["content"] = turn
    else:
        function = {"name": turn[0], "arguments": json.dumps(turn[1])}
        call = {"id": script.call_id, "type": "function", "function": function}
        message["tool_calls"] = [call]
    reason = "stop" if isinstance(turn, str) else "tool_calls"
    return {
        "id": uuid.uuid4().hex,
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }
