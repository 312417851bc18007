"""OpenAI's clients by docs/clients/openai-agents.md; the API behind them is a script."""

import json
import subprocess

import pytest

from tests.clients import installs, snippets
from tests.clients.models import Script, scripted_api

AGENTS, BARE = "Runner.run(", "chat.completions"


@pytest.fixture
def run(url, stage, their_python, tmp_path):
    """Run the page's block as it is, as an agent, by a script; the last words."""

    def running(containing: str, handle: str, script: Script) -> str:
        program = tmp_path / "program.py"
        blocks = snippets.fenced("openai-agents.md", "python")
        program.write_text(snippets.only(blocks, containing=containing))
        with scripted_api(script) as api:
            known = installs.environment(
                tmp_path,
                NEXUS_URL=url,
                NEXUS_KEY=stage.company.key(handle),
                OPENAI_BASE_URL=f"{api}/v1",
                OPENAI_API_KEY="scripted",
                OPENAI_AGENTS_DISABLE_TRACING="1",
            )
            done = subprocess.run(
                [their_python, program],
                env=known,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return running


def names(asked: dict) -> list[str]:
    """The tools that the model was given, in either of the two APIs' shapes."""
    return [tool.get("function", tool)["name"] for tool in asked["tools"]]


def heard(asked: dict) -> dict:
    """The envelope that the model was given for its last call."""
    last = (asked.get("input") or asked["messages"])[-1]
    said = last["output"] if "output" in last else last["content"]
    return json.loads(said if isinstance(said, str) else said[0]["text"])


def told(asked: dict) -> str:
    return asked["instructions"] if "instructions" in asked else asked["messages"][0]["content"]


@pytest.mark.parametrize("block", [AGENTS, BARE])
def test_the_page_gives_the_model_the_role_and_exactly_its_tools_at_every_turn(stage, run, block):
    contract = stage.issue("it_manager", "backend_worker", mode="coding")
    letter = {"to": "ceo", "type": "info", "subject": "Hello", "body": "A word."}
    before = [tool["name"] for tool in stage.get("backend_worker", "/api/v1/tools")["tools"]]
    prompt = stage.get("backend_worker", "/api/v1/prompt")["prompt"]
    turns = [("send_mail", letter), ("accept_contract", {"contract_id": contract}), "Accepted."]
    script = Script(turns)
    assert run(block, "backend_worker", script) == "Accepted."
    first, second, last = script.asked
    assert names(first) == names(second) == before
    assert told(first) == prompt
    refused = heard(second)
    assert refused["error_code"] == "CONTACT_DENIED"
    assert refused["next_action"]
    assert heard(last)["result"]["state"] == "in_progress"
    after = [tool["name"] for tool in stage.get("backend_worker", "/api/v1/tools")["tools"]]
    assert names(last) == after
    assert set(after) - set(before) >= {"write_file"}


def test_a_repeated_call_of_the_page_is_answered_and_not_done_again(stage, run):
    """The bare client's `Idempotency-Key` is the tool call's id."""
    letter = {"to": "it_manager", "type": "info", "subject": "Once", "body": "A word."}
    script = Script([("send_mail", letter), "Sent."])
    for _ in range(2):
        script.asked.clear()
        assert run(BARE, "backend_worker", script) == "Sent."
        assert heard(script.asked[-1])["ok"]
    inbox = stage.done("it_manager", "read_inbox")["mails"]
    assert [mail["subject"] for mail in inbox].count("Once") == 1
