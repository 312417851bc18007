"""Claude Code itself, from npm, by docs/clients/claude-code.md; the model behind it is a script."""

import json
import subprocess

import pytest

from tests.clients import installs, snippets
from tests.clients.models import Script, Turn, scripted_api

PAGE = "claude-code.md"
HERE = "http://127.0.0.1:8000"
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
}


@pytest.fixture
def shell(url, stage, their_programs, tmp_path):
    """Run a page's lines in a shell that has `claude`, as an agent, in a folder of its own."""
    programs = tmp_path / "bin"
    programs.mkdir()
    claude = programs / "claude"
    package = their_programs.parent / "@anthropic-ai" / "claude-code"
    claude.write_text(f'#!/bin/sh\nexec node "{package}/cli-wrapper.cjs" "$@"\n')
    claude.chmod(0o755)

    def run(lines: str, handle: str, api: str = "http://127.0.0.1:1") -> str:
        known = installs.environment(
            tmp_path,
            NEXUS_KEY=stage.company.key(handle),
            ANTHROPIC_BASE_URL=api,
            ANTHROPIC_API_KEY="scripted",
            **QUIET,
        )
        known["PATH"] = f"{programs}:{known['PATH']}"
        done = subprocess.run(
            ["sh", "-c", lines.replace(HERE, url)],
            env=known,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done
        return done.stdout

    return run


def test_the_command_of_the_page_adds_a_server_that_connects(shell):
    shell(snippets.only(snippets.indented(PAGE), containing="claude mcp add"), "backend_worker")
    assert "✔ Connected" in shell("claude mcp list", "backend_worker")


@pytest.fixture
def claude(shell, url, tmp_path):
    """The page's run with its .mcp.json, by a script; the last words."""
    (config,) = snippets.fenced(PAGE, "json")
    (tmp_path / ".mcp.json").write_text(config.replace(HERE, url))

    def run(handle: str, script: Script) -> str:
        with scripted_api(script) as api:
            lines = snippets.only(snippets.indented(PAGE), containing="claude -p")
            return shell(lines, handle, api).strip()

    return run


def ours(asked: dict) -> set[str]:
    """The tools of NEXUS among those that the model was given."""
    mark = "mcp__nexus__"
    return {t["name"].removeprefix(mark) for t in asked["tools"] if t["name"].startswith(mark)}


def heard(asked: dict) -> dict:
    """The answer to the last call, as the model was given it."""
    (block,) = [b for b in asked["messages"][-1]["content"] if b["type"] == "tool_result"]
    return {"is_error": block.get("is_error", False), **json.loads(block["content"])}


def test_the_run_of_the_page_hands_over_the_role_and_exactly_its_tools(stage, claude):
    letter = {"to": "ceo", "type": "info", "subject": "Hello", "body": "A word."}
    calls = [("mcp__nexus__read_inbox", {}), ("mcp__nexus__send_mail", letter)]
    script = Script([*calls, "That is refused."])
    assert claude("backend_worker", script) == "That is refused."
    first, second, last = script.asked
    listed = stage.get("backend_worker", "/api/v1/tools")["tools"]
    assert ours(first) == {tool["name"] for tool in listed}
    prompt = stage.get("backend_worker", "/api/v1/prompt")["prompt"]
    assert prompt in "\n".join(block["text"] for block in first["system"])
    assert (heard(second)["ok"], heard(second)["tool_name"]) == (True, "read_inbox")
    refused = stage.call("backend_worker", "send_mail", **letter).body
    assert heard(last) == {"is_error": True, **refused}


def test_a_mode_that_opens_reaches_the_model_within_the_run(stage, claude):
    contract = stage.issue("it_manager", "backend_worker", mode="coding")

    def wait_for_it(tools: set[str]) -> Turn:
        if "mcp__nexus__write_file" in tools:
            return "Now I can write."
        return "mcp__nexus__read_inbox", {"wait": 1}

    accept = ("mcp__nexus__accept_contract", {"contract_id": contract})
    script = Script([accept, wait_for_it])
    assert claude("backend_worker", script) == "Now I can write."
    listed = stage.get("backend_worker", "/api/v1/tools")["tools"]
    assert ours(script.asked[-1]) == {tool["name"] for tool in listed}
