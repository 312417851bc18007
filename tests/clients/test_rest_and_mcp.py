"""REST and MCP give the same answer to the same call: every tool, every refusal, every hint."""

import hashlib
import json
import re

import httpx
import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from core.decision import Code
from ledger.models import Event
from tests.clients.calls import DONE, HANDLESS, NOT_OF_A_TOOL, ON_A_WORK_TREE, REFUSED, SKILL, World
from tests.clients.staff import MCP, asked_of_mcp, at_work
from tests.company import check_answer, load_company
from tests.oracle import tools as oracle
from tests.oracle.annotations import HINTS, NAMES, Hints
from toolbox import rates
from toolbox.registry import REGISTRY
from workspace.sandbox import driver
from workspace.skills.services import approve

# Tables of what is kept of every call, whatever it does.
TRACES = {
    "governance_caseofficer",  # which office's inputs an agent was given
    "ledger_event",
    "toolbox_ratebucket",
    "toolbox_stored",
    "toolbox_usage",  # the bytes of a minute
    "workspace_run",
}
CALLERS = ("backend_worker", "ceo")
BAD = ({"no_such_field": 1}, {"to": 7, "path": [], "taskId": None})

# What differs between two calls that stand alike: ids, times, and numbers that count up.
VOLATILE = re.compile(
    r"\d+\.\d+s\b|MAIL-\d+-\w+|CASE-\d+-\w+(\.\d+)?|CON-\d+-\w+|VER-\d+-\w+|[0-9a-f]{8}-[0-9a-f-]{27}"
    r"|\d{4}-\d\d-\d\d[T_ -]?\d\d[:-]?\d\d[0-9:.+Z-]*|\b(helper|clerk)_\d+|\b\d+\b"
)


def write_skill(folder, body):
    path = folder / SKILL / "SKILL.md"
    path.parent.mkdir()
    head = f"name: {SKILL}\ndescription: tidies\nallowed_tools: [current_time]\n"
    path.write_text(f"---\n{head}---\n{body}\n")
    return path.read_bytes()


@pytest.fixture(scope="module")
def world(django_db_setup, django_db_blocker, tmp_path_factory):
    skills = tmp_path_factory.mktemp("skills")
    write_skill(skills, "Tidy $ARGUMENTS")
    with at_work(django_db_blocker) as staff, override_settings(NEXUS_SKILL_FOLDERS=[skills]):
        world = World(staff, load_company("soloqueue"), staff.court)
        world.contract("frontend_worker", "in_progress", assigned_branch="feature/login")
        yield world


@pytest.fixture(scope="module")
def http(world):
    with httpx.Client(base_url=world.staff.url, timeout=20) as http:
        yield http


def over_rest(http, tool, params, headers):
    body = http.post(f"/api/v1/tools/{tool}", json=params, headers=headers).json()
    check_answer(body)
    return body


def over_mcp(http, tool, params, headers):
    """The body, which the answer holds twice: for programs, and as a text for models."""
    answer = asked_of_mcp(http, "tools/call", {"name": tool, "arguments": params}, headers)
    body = answer["structuredContent"]
    assert answer["isError"] is not body["ok"]
    assert [json.loads(part["text"]) for part in answer["content"]] == [body]
    return body


def plain(value):
    """The same without what differs between two calls that stand alike."""
    if isinstance(value, dict):
        timed = {"output_sha256"}  # of a log that tells how long it took
        return {key: "…" if key in timed else plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, str):
        return VOLATILE.sub("…", value)
    return "…" if type(value) is int else value


def both(world, http, tool, maker):
    """The answers of two calls that stand alike, one by each face."""
    answers = []
    for ask in (over_rest, over_mcp):
        call = maker(world)
        answers.append(ask(http, tool, call.params, world.headers(call)))
    return answers


class TestEveryTool:
    def test_is_tried(self):
        tried = [*DONE, *HANDLESS, *ON_A_WORK_TREE]
        assert sorted(tried) == sorted(tool.name for tool in REGISTRY.all())

    @pytest.mark.parametrize("tool", DONE)
    def test_answers_alike_when_it_is_carried_out(self, world, http, tool):
        rest, mcp = both(world, http, tool, DONE[tool])
        assert rest["ok"], rest
        assert plain(mcp) == plain(rest)

    @pytest.mark.parametrize("tool", ON_A_WORK_TREE)
    def test_answers_alike_about_a_work_tree(self, world, http, tool):
        rest, mcp = both(world, http, tool, lambda _: ON_A_WORK_TREE[tool])
        assert mcp == rest or plain(mcp) == plain(rest)

    @pytest.mark.parametrize("tool", HANDLESS)
    def test_answers_alike_where_a_driver_is_missing(self, world, http, tool):
        rest, mcp = both(world, http, tool, lambda _: HANDLESS[tool])
        assert rest["error_code"] == "DRIVER_UNAVAILABLE", rest
        assert mcp == rest

    @pytest.mark.parametrize("params", BAD, ids=["unknown field", "wrong types"])
    @pytest.mark.parametrize("handle", CALLERS)
    def test_refuses_alike_what_it_does_not_take(self, world, http, handle, params):
        headers = world.staff.headers(handle)
        for name in [tool.name for tool in REGISTRY.all()] + ["no_such_tool"]:
            rest = over_rest(http, name, params, headers)
            assert not rest["ok"], name
            assert over_mcp(http, name, params, headers) == rest, name


class TestEveryRefusal:
    def test_is_tried(self):
        assert set(REFUSED) | set(NOT_OF_A_TOOL) == {code.value for code in Code}

    @pytest.mark.parametrize("code", [c for c in REFUSED if c != "ISOLATION_UNAVAILABLE"])
    def test_is_the_same_by_both(self, world, http, code):
        tool, maker = REFUSED[code]
        rest, mcp = both(world, http, tool, maker)
        assert rest["error_code"] == code, rest
        assert plain(mcp) == plain(rest)

    def test_is_the_same_without_walls(self, world, http, monkeypatch, tmp_path, settings):
        text = write_skill(tmp_path, "!ls")
        settings.NEXUS_SKILL_FOLDERS = [tmp_path]
        monkeypatch.setattr(driver, "find", list)
        approve(
            name=SKILL,
            digest=hashlib.sha256(text).hexdigest(),
            reason="read it",
            caller=world.solo.person("Board"),
            now=timezone.now(),
        )
        tool, maker = REFUSED["ISOLATION_UNAVAILABLE"]
        rest, mcp = both(world, http, tool, maker)
        assert rest["error_code"] == "ISOLATION_UNAVAILABLE", rest
        assert plain(mcp) == plain(rest)

    def test_of_no_caller_differs_only_in_knowing_the_tool(self, world, http):
        for headers in ({}, {"Authorization": "Bearer nxs_nobody"}):
            rest = http.post("/api/v1/tools/current_time", json={}, headers=headers)
            mcp = http.post("/mcp", json={}, headers=headers)
            assert rest.status_code == mcp.status_code == 401
            assert rest.headers["www-authenticate"] == mcp.headers["www-authenticate"]
            assert mcp.json() | {"tool_name": "current_time"} == rest.json()

    def test_of_a_hurry_differs_only_in_knowing_the_tool(self, world, http, settings):
        headers = world.staff.headers("research_worker")
        settings.NEXUS_RATE_BURST = settings.NEXUS_RATE_PER_MINUTE = 0
        rates.AHEAD.forget()
        rest = http.post("/api/v1/tools/current_time", json={}, headers=headers)
        mcp = http.post("/mcp", json={}, headers=headers)
        assert rest.status_code == mcp.status_code == 429
        assert rest.headers["retry-after"] == mcp.headers["retry-after"]
        assert mcp.json() | {"tool_name": "current_time"} == rest.json()

    def test_for_our_own_fault_is_the_same(self, world, http, monkeypatch):
        def broken(*_args, **_kwargs):
            raise RuntimeError("a fault of ours")

        monkeypatch.setattr("toolbox.door.run", broken)
        rest, mcp = both(world, http, "current_time", DONE["current_time"])
        assert rest["error_code"] == "INTERNAL"
        assert mcp == rest


class TestTheList:
    @pytest.mark.parametrize("coding", [False, True], ids=["chat_safe", "coding"])
    def test_is_the_same_by_both(self, world, http, coding):
        for handle in oracle.AGENTS:
            headers = world.staff.headers(handle, coding=coding)
            rest = http.get("/api/v1/tools?format=mcp", headers=headers).json()["tools"]
            assert asked_of_mcp(http, "tools/list", {}, headers)["tools"] == rest, handle

    def test_carries_the_hints_of_the_table(self, world, http):
        seen = set()
        for handle in oracle.AGENTS:
            headers = world.staff.headers(handle, coding=True)
            for tool in asked_of_mcp(http, "tools/list", {}, headers)["tools"]:
                found = Hints(*(tool["annotations"][name] for name in NAMES))
                assert found == HINTS[tool["name"]], tool["name"]
                seen.add(tool["name"])
        shown = oracle.BUILTIN - oracle.UNUSABLE - oracle.ONLY_IN_A_FRAME
        asked = {"task_approve"}  # listed where another test asked for approval
        assert seen | asked == set(oracle.ROLE_TOOLS) | shown | asked


def everything():
    """What the database holds, by table: all but the traces of calls."""
    with connection.cursor() as cursor:
        tables = sorted(set(connection.introspection.table_names()) - TRACES)
        whole = "SELECT '{0}', md5(string_agg(row::text, ';' ORDER BY row::text)) FROM {0} row"
        cursor.execute(" UNION ALL ".join(whole.format(table) for table in tables))
        return dict(cursor.fetchall())


class TestTheHints:
    def again(self, world, http, tool, call, headers):
        before = everything()
        answer = over_rest(http, tool, call.params, headers)
        after = everything()
        return answer, {table for table in after if after[table] != before[table]}

    @pytest.mark.parametrize("tool", [name for name in DONE if HINTS[name].reads])
    def test_of_reading_are_true(self, world, http, tool):
        call = DONE[tool](world)
        headers, events = world.headers(call), Event.objects.count()
        answer, changed = self.again(world, http, tool, call, headers)
        assert (answer["ok"], changed) == (True, set())
        assert (Event.objects.count() > events) is REGISTRY.get(tool).leaves_trace

    @pytest.mark.parametrize("tool", [name for name in DONE if HINTS[name].repeats])
    def test_of_repeating_are_true(self, world, http, tool):
        call = DONE[tool](world)
        headers = world.headers(call)
        assert over_rest(http, tool, call.params, headers)["ok"]
        _, changed = self.again(world, http, tool, call, headers)
        assert changed == set()

    def test_would_be_seen_to_be_false(self, world, http):
        call = DONE["task_comment"](world)
        _, changed = self.again(world, http, "task_comment", call, world.headers(call))
        assert "tasks_comment" in changed


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Origin": "http://evil.example"}, 403), ({"Host": "evil.example"}, 421)],
    ids=["origin", "host"],
)
def test_a_foreign_page_is_refused(world, http, headers, status):
    answer = http.post("/mcp", json={}, headers=world.staff.headers("ceo") | headers)
    assert answer.status_code == status


def test_the_protocol_keeps_no_session(world, http):
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    answer = http.post("/mcp", json=asked, headers=MCP | world.staff.headers("ceo"))
    assert answer.status_code == 200
    assert "mcp-session-id" not in answer.headers
