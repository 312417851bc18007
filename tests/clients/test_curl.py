"""The lines of docs/clients/curl.md, run in a shell with the real curl."""

import json
import shutil
import subprocess

import pytest

from tests.clients import installs, snippets

PAGE = "curl.md"
SHOWN = "{"  # a block that begins so is what the server answers, not what a shell reads
END = "<END OF BLOCK>"
AGENTS = ("it_manager", "backend_worker", "qa_worker")
# The page's stream has no end of its own.
WATCH = (
    'curl() { case "$*" in *"/events "*) command curl -m 5 "$@";; *) command curl "$@";; esac; }'
)


@pytest.fixture(scope="module")
def printed(everybody, url, tmp_path_factory):
    """What each block of the page prints, given some words of it."""
    if shutil.which("curl") is None:
        pytest.skip("these lines need curl, not installed here")
    tmp_path = tmp_path_factory.mktemp("curl")
    keys = tmp_path / "var" / "keys" / "nexus.json"
    keys.parent.mkdir(parents=True)
    keys.write_text(json.dumps({handle: everybody.company.key(handle) for handle in AGENTS}))
    blocks = [block for block in snippets.indented(PAGE) if not block.startswith(SHOWN)]
    done = subprocess.run(
        ["bash", "-c", "\n".join(f"{block}\necho '{END}'" for block in [WATCH, *blocks])],
        env=installs.environment(tmp_path, NEXUS=url),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    _, *texts = done.stdout.split(f"{END}\n")[:-1]
    assert len(texts) == len(blocks), done.stderr
    return lambda words: dict(zip(blocks, texts, strict=True))[snippets.only(blocks, words)]


def answers(text: str) -> list[dict]:
    """The answers that a block printed, one after the other, on one line or on many."""
    found, decoder, text = [], json.JSONDecoder(), text.strip()
    while text:
        answer, end = decoder.raw_decode(text)
        found.append(answer)
        text = text[end:].strip()
    return found


def test_every_line_does_what_the_page_says(printed, stage):
    day = answers(printed("create_contract"))
    assert [(a["ok"], a["tool_name"]) for a in day] == [
        (True, "accept_contract"),
        (True, "submit_report"),
        (True, "write_verdict"),
        (True, "close_contract"),
    ]
    assert day[-1]["result"]["state"] == "passed"

    sent, unread, read = answers(printed("read_mail"))
    assert sent["ok"]
    assert unread["result"]["mails"][0]["subject"] == "Thanks"
    assert read["result"]["body"] == "Well done."

    looks, watching, _ = printed("/events").partition(": watching")
    me, tools, anthropic, prompt, explained = answers(looks)
    assert (me["agent"], me["session"]["mode"]) == ("backend_worker", "chat_safe")
    offered = stage.get("backend_worker", "/api/v1/tools")["tools"]
    assert tools["tools"] == offered
    assert [tool["name"] for tool in anthropic["tools"]] == [tool["name"] for tool in offered]
    assert prompt["prompt"] == stage.get("backend_worker", "/api/v1/prompt")["prompt"]
    assert explained["error_code"] == "CONTACT_DENIED"
    assert watching


def test_the_refusal_that_is_shown_is_the_refusal_that_is_given(printed):
    (refused,) = answers(printed("write_file"))
    (block,) = [block for block in snippets.indented(PAGE) if block.startswith(SHOWN)]
    shown = json.loads(block)
    start = shown["next_action"].removesuffix("…")
    assert refused["next_action"].startswith(start)
    assert {**refused, "next_action": shown["next_action"]} == shown
