"""A change of the caller's rights or mode announces itself, and to nobody else."""

import asyncio
import contextlib
import json
import subprocess
import threading
from types import SimpleNamespace

import httpx
import pytest
from django.utils import timezone
from mcp.shared.exceptions import MCPError

from core.decision import Denied
from core.key_form import PREFIX_LENGTH
from orgchart.keys import issue_key, revoke_key
from orgchart.policy.vocabulary import ToolMode
from tests.clients import installs
from tests.clients.listening import ENDED, listening
from tests.loops import run as run_loop
from tests.patience import PATIENCE, wait_until
from toolbox import modes, rates, wake
from toolbox.authentication import authenticate
from toolbox.faces import tool_list_changes
from toolbox.faces.sse import OpenStreams
from toolbox.models import Session

LISTENS = installs.HERE / "npm" / "listens.mjs"


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch):
    monkeypatch.setattr(tool_list_changes, "SPACING", 0.01)
    monkeypatch.setattr(tool_list_changes, "HEARTBEAT", 600)


def test_a_mode_that_opens_and_closes_with_a_contract_is_announced(stage, url):
    contract = stage.issue("it_manager", "backend_worker", mode="coding")
    with listening(url, stage.company.key("backend_worker")) as heard:
        stage.done("backend_worker", "accept_contract", contract_id=contract)
        assert "write_file" in heard.next()
        stage.close_as_board(contract, "cancelled")
        assert "write_file" not in heard.next()


def test_a_tightened_binding_is_announced_to_its_agent_only(stage, url):
    qa = {"agent": "qa_worker", "tool": "write_verdict"}
    mine = stage.issue("it_manager", "devops_worker", mode="coding")
    with (
        listening(url, stage.company.key("qa_worker")) as heard,
        listening(url, stage.company.key("devops_worker")) as other,
    ):
        stage.done("it_manager", "manage_tools", action="tighten", modes=[], reason="x", **qa)
        assert "write_verdict" not in heard.next()
        stage.done("it_manager", "manage_tools", action="restore", reason="x", **qa)
        assert "write_verdict" in heard.next()
        stage.done("devops_worker", "accept_contract", contract_id=mine)
        assert "write_file" in other.next()
        assert heard.told.empty()
        assert other.told.empty()


def test_the_stream_ends_with_its_key(stage, url):
    company = stage.company
    words = {"caller": company.system, "now": timezone.now()}
    key = issue_key(agent=company.agent("research_worker"), **words)
    with listening(url, key) as heard, listening(url, company.key("research_worker")) as other:
        revoke_key(prefix=key[:PREFIX_LENGTH], reason="lost", **words)
        assert heard.next() == ENDED
        assert other.told.empty()


def test_a_standing_get_ends_with_its_key(stage, url):
    agent = stage.company.agent("research_worker")
    words = {"caller": stage.company.system, "now": timezone.now()}
    key = issue_key(agent=agent, **words)
    proof = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    with httpx.stream("GET", f"{url}/mcp", headers=proof, timeout=60, trust_env=False) as stream:
        wait_until(lambda: agent.id in wake.WAITERS._waiting)
        revoke_key(prefix=key[:PREFIX_LENGTH], reason="lost", **words)
        assert "list_changed" not in "".join(stream.iter_text())


def test_a_standing_get_begins_anew_whatever_event_it_names(stage, url):
    key = stage.company.key("research_worker")
    proof = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream", "Last-Event-ID": "1"}
    with httpx.stream("GET", f"{url}/mcp", headers=proof, timeout=60, trust_env=False) as stream:
        assert stream.status_code == 200
        assert stream.headers["content-type"].startswith("text/event-stream")


def test_a_standing_get_begins_with_words_that_no_proxy_keeps(stage, url):
    key = stage.company.key("research_worker")
    proof = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    with httpx.stream("GET", f"{url}/mcp", headers=proof, timeout=60, trust_env=False) as stream:
        assert next(stream.iter_lines()) == ": watching"


def test_a_watch_outlasts_a_rate_that_is_used_up(stage, url, settings, monkeypatch):
    limited, looking = threading.Event(), threading.Lock()

    def prove(**credentials):
        try:
            with looking:
                return authenticate(**credentials)
        except Denied:
            limited.set()
            raise

    monkeypatch.setattr(tool_list_changes, "authenticate", prove)
    burst = settings.NEXUS_RATE_BURST
    company = stage.company
    agent = company.agent("devops_worker")
    with listening(url, company.key("devops_worker")) as heard:
        stage.get("devops_worker", "/api/v1/me")
        session = Session.objects.get(agent_id=agent.id, standing=True)
        opened = {"session_id": str(session.id), "caller": stage.board, "now": timezone.now()}
        with looking:
            settings.NEXUS_RATE_BURST = 0
            rates.AHEAD.forget()
            modes.open_mode(mode=ToolMode.CODING, reason="An outage.", **opened)
        assert limited.wait(60)
        assert heard.told.empty()
        settings.NEXUS_RATE_BURST = burst
        settings.NEXUS_RATE_PER_MINUTE = 1_000_000
        assert "write_file" in heard.next()
        modes.close_mode(reason="It is over.", **opened)
        assert "write_file" not in heard.next()


def test_one_stream_too_many_is_refused_until_another_ends(stage, url, monkeypatch):
    monkeypatch.setattr(tool_list_changes, "_STREAMS", OpenStreams(2))
    key = stage.company.key("product_manager")
    proof = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    standing = {"method": "GET", "url": f"{url}/mcp", "headers": proof}
    with httpx.Client(timeout=60, trust_env=False) as http, contextlib.ExitStack() as last:
        with http.stream(**standing) as stream:
            assert stream.status_code == 200
            last.enter_context(listening(url, key))
            refused = http.request(**standing)
            assert (refused.status_code, refused.json()["error_code"]) == (429, "RATE_LIMITED")
            with pytest.raises(MCPError, match="as many streams of changes"), listening(url, key):
                pass
        agent = stage.company.agent("product_manager").id
        wait_until(lambda: tool_list_changes._STREAMS._open[agent] < 2)
        with http.stream(**standing) as stream:
            assert stream.status_code == 200


@pytest.mark.parametrize("turns", range(8))
def test_no_watch_outlives_its_stream_even_if_the_bell_rings_as_it_ends(monkeypatch, turns):
    agent = SimpleNamespace(agent=SimpleNamespace(id=-1), organisation_id=-1)
    monkeypatch.setattr(wake, "listen", lambda: None)
    monkeypatch.setattr(tool_list_changes, "authenticate", lambda: agent)
    looks = []
    monkeypatch.setattr(tool_list_changes, "tools_of", lambda _: looks.append(1) or ())

    async def watch():
        async for _ in tool_list_changes.changes(tool_list_changes.ToolListWatcher(agent, {})):
            pass

    async def end_as_it_rings():
        task = asyncio.create_task(watch())
        await asyncio.to_thread(wait_until, lambda: len(looks) == 2)
        await asyncio.sleep(0.1)  # it waits
        wake.WAITERS.wake([-1])
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE)
        return task.cancelled()

    assert run_loop(end_as_it_rings())


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_client_for_javascript_is_told_in_both_revisions(
    stage, url, their_programs, tmp_path, mode
):
    """Claude Code is built on it. Where revisions begin with a handshake, it listens by a GET."""
    contract = stage.issue("it_manager", "backend_worker", mode="coding")
    agent = stage.company.agent("backend_worker").id
    known = installs.environment(
        tmp_path, NEXUS_URL=url, NEXUS_KEY=stage.company.key("backend_worker"), MODE=mode
    )
    with subprocess.Popen(
        ["node", "--input-type=module", "-e", LISTENS.read_text()],
        cwd=their_programs,
        env=known,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        try:
            assert "write_file" not in json.loads(process.stdout.readline())
            wait_until(lambda: agent in wake.WAITERS._waiting)
            stage.done("backend_worker", "accept_contract", contract_id=contract)
            assert "write_file" in json.loads(process.stdout.readline())
            process.stdin.close()
            assert process.wait(60) == 0
            wait_until(lambda: agent not in wake.WAITERS._waiting)
        finally:
            process.kill()
