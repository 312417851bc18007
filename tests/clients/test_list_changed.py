"""A change of the caller's rights or mode announces itself, and to nobody else."""

import json
import subprocess

import pytest
from django.utils import timezone

from orgchart.services import PREFIX_LENGTH, issue_key, revoke_key
from tests.clients import installs
from tests.clients.listening import ENDED, listening, wait_until
from toolbox import wake
from toolbox.faces import changes

LISTENS = installs.HERE / "npm" / "listens.mjs"


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch):
    monkeypatch.setattr(changes, "SPACING", 0.01)
    monkeypatch.setattr(changes, "HEARTBEAT", 600)


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
        revoke_key(prefix=key[:PREFIX_LENGTH], **words)
        assert heard.next() == ENDED
        assert other.told.empty()


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
            wait_until(lambda: agent in wake.BELL._waiting)
            stage.done("backend_worker", "accept_contract", contract_id=contract)
            assert "write_file" in json.loads(process.stdout.readline())
            process.stdin.close()
            assert process.wait(60) == 0
            wait_until(lambda: agent not in wake.BELL._waiting)
        finally:
            process.kill()
