"""The MCP Inspector's command line, from npm, on our server."""

import json
import subprocess

import pytest

from tests.clients import installs


@pytest.fixture
def inspect(url, stage, their_programs, tmp_path):
    """Run one method of the protocol as an agent; the exit code and what was printed."""

    def inspecting(handle: str, method: str, *more: str) -> tuple[int, dict]:
        proof = f"Authorization: Bearer {stage.company.key(handle)}"
        done = subprocess.run(
            [
                *(their_programs / "mcp-inspector", "--cli", f"{url}/mcp", "--transport", "http"),
                *("--header", proof, "--method", method, *more),
            ],
            env=installs.environment(tmp_path),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, json.loads(done.stdout)

    return inspecting


@pytest.mark.parametrize("handle", ["ceo", "backend_worker"])
def test_lists_what_rest_lists(stage, inspect, handle):
    code, answer = inspect(handle, "tools/list")
    assert code == 0
    assert answer["tools"] == stage.get(handle, "/api/v1/tools?format=mcp")["tools"]


def test_calls_a_tool(inspect):
    code, answer = inspect("backend_worker", "tools/call", "--tool-name", "current_time")
    assert (code, answer.get("isError", False)) == (0, False)
    assert answer["structuredContent"]["ok"]


def test_shows_the_envelope_of_a_refusal(stage, inspect):
    letter = {"to": "ceo", "type": "info", "subject": "Hello", "body": "A word."}
    words = [word for name, value in letter.items() for word in ("--tool-arg", f"{name}={value}")]
    _, answer = inspect("backend_worker", "tools/call", "--tool-name", "send_mail", *words)
    assert answer["isError"]
    refusal = stage.call("backend_worker", "send_mail", **letter).body
    assert answer["structuredContent"] == refusal
    assert json.loads(answer["content"][0]["text"]) == refusal
    assert refusal["error_code"] == "CONTACT_DENIED"
