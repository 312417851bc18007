"""LangGraph and langchain-mcp-adapters, as docs/clients/langgraph.md shows them, on our server."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.clients import installs, snippets
from tests.clients.models import Script, scripted_api

MCP, REST = "over_mcp.py", "over_rest.py"
BLOCK = {MCP: "def graph_of(", REST: "def agent_of("}
BLOCKS = snippets.fenced("langgraph.md", "python")


class Run:
    """One run of a graph: its model's turns, each shown to us and answered by us."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.turn = self._next()

    @property
    def bound(self) -> list[dict]:
        """The tools that the model is bound to at this turn."""
        return self.turn["bound"]

    @property
    def names(self) -> set[str]:
        """Their names."""
        return {tool["name"] for tool in self.bound}

    @property
    def heard(self) -> dict:
        """The last message that the model was given."""
        return self.turn["messages"][-1]

    def call(self, tool: str, **args) -> dict:
        """Let the model call a tool; what it then hears, read as the envelope."""
        self._answer({"calls": [{"name": tool, "args": args}]})
        self.turn = self._next()
        assert self.heard["type"] == "tool"
        return json.loads(self.heard["text"])

    def end(self) -> None:
        self._answer({"says": "Done."})
        assert self._process.wait(60) == 0, self._process.stderr.read()

    def _answer(self, order: dict) -> None:
        print(json.dumps(order), file=self._process.stdin, flush=True)

    def _next(self) -> dict:
        line = self._process.stdout.readline()
        assert line, self._process.stderr.read()
        return json.loads(line)


@pytest.fixture
def run(url, stage, their_python, tmp_path):
    """Start a page's code in the clients' Python, with an agent's key and the scripted model."""

    @contextmanager
    def running(script: str, handle: str) -> Iterator[Run]:
        snippet = tmp_path / "snippet.py"
        snippet.write_text(snippets.only(BLOCKS, containing=BLOCK[script]))
        known = installs.environment(
            tmp_path, NEXUS_URL=url, NEXUS_KEY=stage.company.key(handle), SNIPPET=str(snippet)
        )
        with subprocess.Popen(
            [their_python, installs.HERE / "python" / script],
            env=known,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                run = Run(process)
                yield run
                run.end()
            finally:
                process.kill()

    return running


def shown(stage, handle: str) -> list[dict]:
    """What GET /api/v1/tools shows of the agent's tools, as a model is bound to it."""
    tools = stage.get(handle, "/api/v1/tools")["tools"]
    return [
        {name: tool[name] for name in ("name", "description", "input_schema")} for tool in tools
    ]


class TestTheModelIsBoundTo:
    @pytest.mark.parametrize(
        ("script", "handle"),
        [(MCP, "ceo"), (MCP, "hr_manager"), (MCP, "qa_worker"), (REST, "product_manager")],
    )
    def test_exactly_the_callers_tools(self, stage, run, script, handle):
        with run(script, handle) as running:
            assert running.bound == shown(stage, handle)

    def test_more_once_a_contract_has_opened_coding_and_no_more_after_it(self, stage, run):
        contract = stage.issue("it_manager", "backend_worker", mode="coding")
        with run(MCP, "backend_worker") as running:
            before = running.bound
            assert "write_file" not in running.names
            running.call("accept_contract", contract_id=contract)
            assert "write_file" in running.names
            assert running.bound == shown(stage, "backend_worker")
            stage.close_as_board(contract, "cancelled")
            running.call("read_inbox")
            assert running.bound == before

    def test_less_once_its_manager_has_tightened_a_binding(self, stage, run):
        with run(MCP, "qa_worker") as running:
            assert "write_verdict" in running.names
            stage.done(
                "it_manager",
                "manage_tools",
                action="tighten",
                agent="qa_worker",
                tool="write_verdict",
                modes=[],
                reason="Another judges this week.",
            )
            running.call("read_inbox")
            assert "write_verdict" not in running.names
            assert running.bound == shown(stage, "qa_worker")


@pytest.mark.parametrize("script", [MCP, REST])
def test_the_model_hears_results_and_the_envelopes_of_refusals(stage, run, script):
    letter = {"to": "ceo", "type": "info", "subject": "Hello", "body": "A word."}
    with run(script, "backend_worker") as running:
        heard = running.call("read_inbox")
        assert (heard["ok"], heard["tool_name"]) == (True, "read_inbox")
        assert running.heard["status"] == "success"
        heard = running.call("send_mail", **letter)
        assert heard == stage.call("backend_worker", "send_mail", **letter).body
        assert heard["error_code"] == "CONTACT_DENIED"
        assert heard["next_action"]
        assert running.heard["status"] == ("error" if script == MCP else "success")


@pytest.mark.parametrize(
    "lines", [("def graph_of(", "= graph_of("), ("def agent_of(", "= agent_of(")]
)
def test_the_page_runs_as_it_is_with_the_model_that_it_names(
    stage, url, their_python, tmp_path, lines
):
    """The model's own client, too; what answers it here is a script."""
    letter = {"to": "ceo", "type": "info", "subject": "Hello", "body": "A word."}
    script = Script([("send_mail", letter), "That is refused."])
    program = tmp_path / "program.py"
    program.write_text("\n".join(snippets.only(BLOCKS, containing=words) for words in lines))
    with scripted_api(script) as api:
        known = installs.environment(
            tmp_path,
            NEXUS_URL=url,
            NEXUS_KEY=stage.company.key("backend_worker"),
            ANTHROPIC_BASE_URL=api,
            ANTHROPIC_API_KEY="scripted",
        )
        done = subprocess.run(
            [their_python, program],
            env=known,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.stdout.strip() == "That is refused.", done.stderr
    first, last = script.asked
    assert first["model"] == "claude-sonnet-4-5"
    assert [tool["name"] for tool in first["tools"]] == [
        tool["name"] for tool in shown(stage, "backend_worker")
    ]
    assert "CONTACT_DENIED" in json.dumps(last["messages"][-1])


def test_the_page_installs_what_is_tested_here():
    named = snippets.only(snippets.indented("langgraph.md"), containing="pip install").split()[2:]
    locked = installs.PYTHON_LOCK.read_text()
    assert all(f"\n{name}==" in locked for name in named)
