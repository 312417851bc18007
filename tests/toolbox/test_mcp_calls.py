"""Which MCP messages are answered without the SDK, and that the answer is the SDK's own."""

import json

import mcp_types as types
import pytest

from toolbox.faces.mcp_calls import PlainCall, read_plain_call, write_result

HEADERS = {
    b"accept": b"application/json, text/event-stream",
    b"content-type": b"application/json; charset=utf-8",
}
MESSAGE = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "tools/call",
    "params": {"name": "send_mail", "arguments": {"to": "ceo"}},
}


def read(message, **headers: bytes):
    changed = HEADERS | {name.replace("_", "-").encode(): value for name, value in headers.items()}
    return read_plain_call(changed, message)


def with_params(**params):
    return MESSAGE | {"params": params}


class TestAPlainCall:
    def test_is_one_call_of_a_tool(self):
        assert read(MESSAGE) == PlainCall(7, "send_mail", {"to": "ceo"})

    @pytest.mark.parametrize("number", [0, "seven"])
    def test_has_a_number_or_a_name(self, number):
        assert read(MESSAGE | {"id": number}).id == number

    @pytest.mark.parametrize("arguments", [{}, {"arguments": None}, {"arguments": {}}])
    def test_may_have_no_arguments(self, arguments):
        assert read(with_params(name="send_mail", **arguments)).arguments == {}

    def test_may_look_at_once_with_a_tool_that_can_wait(self):
        assert read(with_params(name="read_inbox", arguments={})) is not None

    @pytest.mark.parametrize(
        "message",
        [
            {},
            MESSAGE | {"jsonrpc": "1.0"},
            MESSAGE | {"method": "tools/list"},
            MESSAGE | {"more": 1},
            {name: MESSAGE[name] for name in ("jsonrpc", "method", "params")},
            MESSAGE | {"params": ["send_mail"]},
            with_params(arguments={}),
            with_params(name=["send_mail"]),
            with_params(name="send_mail", arguments="to"),
            with_params(name="send_mail", arguments={}, task={}),
            with_params(name="send_mail", arguments={}, _meta={"progressToken": 1}),
            with_params(name="no_such_tool", arguments={}),
            with_params(name="read_inbox", arguments={"wait": 5}),
        ],
        ids=str,
    )
    def test_is_nothing_else(self, message):
        assert read(message) is None

    @pytest.mark.parametrize(
        "headers",
        [{"accept": b"text/event-stream"}, {"accept": b""}, {"content_type": b"text/plain"}],
        ids=str,
    )
    def test_takes_json_and_sends_it(self, headers):
        assert read(MESSAGE, **headers) is None


class TestTheAnswer:
    @pytest.mark.parametrize("number", [7, 'seven "7"'])
    @pytest.mark.parametrize("body", [{"ok": True, "result": {"a": "ü\n"}}, {"ok": False}], ids=str)
    def test_is_what_the_sdk_would_send(self, number, body):
        answer = json.loads(write_result(PlainCall(number, "send_mail", {}), body))
        result = types.CallToolResult.model_validate(answer["result"])
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", number)
        assert result.structured_content == body
        assert json.loads(result.content[0].text) == body
        assert result.is_error is not body["ok"]
