"""The rules of modes that need proof, and below each of them its tests.

Spec: modes 5: modes filter the registry
    test_api.py::TestTheList::test_is_what_is_specified_and_exactly_what_would_run
    test_modes_spec.py::TestTheSpecifiedTools::test_are_where_its_matrix_has_them
Spec: tools 14: overrides tighten only
    test_rules.py::TestCanUse::test_never_gains_a_mode_from_an_override
    ../orgchart/test_tool_restrictions.py::TestTightening::test_never_loosens_what_the_tool_itself_declares
Spec: modes 6: every tool and mode
    test_whole_space.py::TestTheGate::test_answers_as_the_oracle_in_every_stack
Spec: tools 11: closed defaults
    test_rules.py::TestRegistry::test_defaults_are_closed
    test_modes_spec.py::TestATool::test_that_says_nothing_of_itself_is_seen_and_run_by_nobody
Spec: tools 11: warning at registration
    test_registry_guard.py::TestAToolWithoutModes::test_is_warned_of_when_it_is_registered
Spec: tools 12: every tool declares itself
    test_registry_guard.py::TestEveryTool::test_declares_its_group_and_its_modes
Spec: modes 20: prompt and schema of one source
    test_one_answer.py::test_every_agent_is_told_what_the_gate_would_let_through
Spec: modes 8: the setting of the default mode
    ../nexus_site/test_settings.py::TestTheDefaultMode::test_can_be_no_other_than_chat_safe
Spec: modes 15: the execution gate's refusal
    test_modes_spec.py::TestARefusal::test_is_the_specified_dictionary
    test_modes_spec.py::TestARefusal::test_names_only_what_the_caller_can_do_now
Spec: modes 17: the event of a refusal
    test_modes_spec.py::TestARefusal::test_reaches_the_watcher_and_the_ledger
Spec: modes 10: the mode falls closed
    test_modes_spec.py::TestGetMode::test_falls_to_chat_safe_with_a_warning_for_every_anomaly
    test_modes_spec.py::TestGetMode::test_answers_nothing_when_the_database_does_not
Spec: modes 9: sessions that were there before
    test_modes_spec.py::TestGetMode::test_is_never_empty_in_the_database
Spec: modes 17: end to end
    test_faces.py::TestEvents::test_bring_mails_refusals_and_contracts_to_whom_they_concern
    test_modes_spec.py::TestARefusal::test_does_not_end_the_conversation
Spec: modes 17: what was allowed still is
    test_modes_spec.py::TestARefusal::test_does_not_end_the_conversation
Spec: modes 4: a mode is always named
    test_modes_spec.py::TestAMode::test_is_never_assumed
Spec: modes 7: default sessions
    test_modes_spec.py::TestTheSpecifiedTools::test_are_where_its_matrix_has_them
Spec: modes 11: the model switches nothing
    test_modes_spec.py::TestAMode::test_is_nothing_that_a_call_can_set
Spec: modes 18: refusals are seen, never silent
    test_modes_spec.py::TestARefusal::test_reaches_the_watcher_and_the_ledger
"""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from structlog.testing import capture_logs

from core.decision import Allow, Deny
from core.params import Params
from ledger.models import Event
from orgchart.keys import digest_of
from orgchart.policy.vocabulary import ToolMode
from tests.company import load_company
from tests.oracle import org
from tests.oracle import tools as oracle
from tests.oracle.reading import compiled_nexus
from toolbox.authentication import StoredMode, effective_mode
from toolbox.faces import event_reader
from toolbox.models import Session
from toolbox.modes import open_mode
from toolbox.registry import REGISTRY, Tool
from toolbox.rules import Holder, can_use, effective_tools

HERE = Path(__file__).parent
FILE = {"path": "agents/backend_worker/a.py"}


def table() -> list[tuple[str, str, str]]:
    """Point, file and name of each line above."""
    found, point = [], ""
    for line in (__doc__ or "").splitlines():
        if line.startswith("Spec"):
            point = line
        elif line.startswith("    "):
            file, _, name = line.strip().partition("::")
            found.append((point, file, name))
    return found


class TestTheTable:
    def test_names_tests_that_there_are(self):
        assert len(table()) > 20
        for point, file, name in table():
            text = (HERE / file).read_text(encoding="utf-8")
            for part in name.split("::"):
                assert re.search(rf"^\s*(class|def) {part}\b", text, re.MULTILINE), (point, name)

    def test_has_every_point(self):
        points = {point for point, _, _ in table()}
        assert len(points) == 18


@pytest.fixture(scope="module")
def policy():
    return compiled_nexus()


class TestTheSpecifiedTools:
    @pytest.mark.parametrize(
        ("tool", "chat_safe", "coding"),
        [("current_time", True, True), ("memory_search", True, True), ("read_file", False, True)],
    )
    def test_are_where_its_matrix_has_them(self, nexus, tool, chat_safe, coding):
        assert (tool in names(nexus)) is chat_safe
        put_in_coding(nexus)
        assert (tool in names(nexus)) is coding


class TestATool:
    def test_that_says_nothing_of_itself_is_seen_and_run_by_nobody(self, policy):
        silent = Tool(name="read_file", description="", params=Params, function=lambda *_: {})
        for agent in policy.agents.values():
            for mode in ToolMode:
                holder = Holder(agent, policy, mode)
                assert effective_tools([silent], holder) == []
                assert isinstance(can_use(silent, "read_file", holder), Deny)


class TestAMode:
    def test_is_never_assumed(self):
        (mode,) = (f for f in dataclasses.fields(Holder) if f.name == "mode")
        assert mode.default is dataclasses.MISSING
        assert mode.default_factory is dataclasses.MISSING
        for gate in (can_use, effective_tools):
            assert all(
                p.default is inspect.Parameter.empty
                for p in inspect.signature(gate).parameters.values()
            )

    @pytest.mark.parametrize("wish", [{"mode": "coding"}, {"session_mode": "coding"}])
    def test_is_nothing_that_a_call_can_set(self, nexus, wish):
        headers = {"X-Nexus-Mode": "coding", "Mode": "coding"}
        answer = nexus.call("backend_worker", "read_file", headers, **FILE, **wish)
        assert answer.code == "MODE_DENIED"
        assert nexus.post("/api/v1/sessions", wish, "backend_worker").status == 400
        assert nexus.get("/api/v1/me?mode=coding", "backend_worker", headers).body["session"][
            "mode"
        ] == "chat_safe"  # fmt: skip
        for tool in REGISTRY.all():
            if tool.name not in ("create_contract", "generate_contract"):  # of another's session
                assert "mode" not in tool.input_schema["properties"], tool.name


class TestARefusal:
    def test_is_the_specified_dictionary(self, nexus):
        body = nexus.call("backend_worker", "read_file", **FILE).body
        assert {key: body[key] for key in ("ok", "error_code", "tool_name", "mode", "message")} == {
            "ok": False,
            "error_code": "MODE_DENIED",
            "tool_name": "read_file",
            "mode": "chat_safe",
            "message": "read_file is not allowed in chat_safe mode",
        }
        assert "coding" in body["next_action"]

    @pytest.mark.parametrize("enabled", [[ToolMode.CHAT_SAFE], list(ToolMode)])
    @pytest.mark.parametrize("role", org.AGENTS)
    def test_names_only_what_the_caller_can_do_now(self, policy, role, enabled):
        policy = dataclasses.replace(policy, enabled_modes=frozenset(enabled))
        everything = {tool.name for tool in REGISTRY.all()}
        told = 0
        for frame in (None, frozenset({"return_result"}), oracle.CODE | {"return_result"}):
            holder = Holder(policy.agents[role], policy, ToolMode.CHAT_SAFE, frame)
            for tool in REGISTRY.all():
                decision = can_use(tool, tool.name, holder)
                if isinstance(decision, Allow):
                    continue
                told += 1
                named = set(re.findall(r"\w+", decision.next_action)) & everything
                usable = {one.name for one in effective_tools(REGISTRY.all(), holder)}
                assert named <= usable, (tool.name, decision.next_action)
                if len(enabled) == 1:
                    assert "coding" not in decision.next_action
        assert told

    def test_reaches_the_watcher_and_the_ledger(self, committed):
        caller = committed.caller("backend_worker")
        place = event_reader.here()
        id_of_call = {"X-Request-ID": "call-number-7"}
        body = committed.call("backend_worker", "read_file", id_of_call, **FILE).body
        (event,) = Event.objects.filter(action="tool.denied", tool="read_file")
        assert (event.code, event.reason) == ("MODE_DENIED", body["message"])
        assert event.decision == "deny"
        assert re.fullmatch("[0-9a-f]{32}", event.request_id), "the caller's own id is not ours"
        assert event.details["next_action"] == body["next_action"]
        ((_, told),) = event_reader.read(
            caller=caller, key=digest_of(committed.key("backend_worker")), after=place
        ).events
        assert (told["kind"], told["tool"], told["code"]) == (
            "tool_denied",
            "read_file",
            "MODE_DENIED",
        )
        assert told["reason"] == body["message"]
        assert told["details"] == {
            "rule": "modes of read_file",
            "next_action": body["next_action"],
            "mode": "chat_safe",
            "call_id": event.request_id,
        }

    def test_does_not_end_the_conversation(self, nexus):
        session = nexus.post("/api/v1/sessions", {}, "backend_worker").body["id"]
        headers = {"X-Nexus-Session": session}
        for _ in range(3):
            refused = nexus.call("backend_worker", "read_file", headers, **FILE)
            assert refused.code == "MODE_DENIED"
            for tool, params in (("current_time", {}), ("memory_search", {"query": "x"})):
                assert nexus.call("backend_worker", tool, headers, **params).code == "OK"


class TestGetMode:
    @pytest.mark.parametrize(
        ("stored", "granted", "enabled", "problem"),
        [
            ("coding", None, True, "mode_without_grant"),
            ("coding", "chat_safe", True, "mode_without_grant"),
            ("coding", "coding", False, "mode_not_enabled"),
            ("CODING", "CODING", True, "unknown_mode"),
            ("root", "root", True, "unknown_mode"),
            ("", None, True, "unknown_mode"),
            (None, None, True, "unknown_mode"),
        ],
    )
    def test_falls_to_chat_safe_with_a_warning_for_every_anomaly(
        self, policy, stored, granted, enabled, problem
    ):
        modes = frozenset(ToolMode) if enabled else frozenset({ToolMode.CHAT_SAFE})
        policy = dataclasses.replace(policy, enabled_modes=modes)
        with capture_logs() as logs:
            found = effective_mode(StoredMode(stored, granted), policy, session_id="s")
        assert found is ToolMode.CHAT_SAFE
        assert [(e["event"], e["log_level"], e["problem"]) for e in logs] == [
            ("session_mode_fell_back", "warning", problem)
        ]

    def test_warns_of_nothing_that_is_as_it_should_be(self, policy):
        with capture_logs() as logs:
            for mode in ToolMode:
                assert effective_mode(StoredMode(mode, mode), policy, session_id="s") is mode
        assert logs == []

    def test_answers_nothing_when_the_database_does_not(self, nexus, monkeypatch):
        nexus.key("backend_worker")

        def gone(**_):
            raise OperationalError("the connection is closed")

        monkeypatch.setattr("toolbox.faces.rest.authentication.authenticate", gone)
        answer = nexus.call("backend_worker", "read_file", **FILE)
        assert (answer.status, answer.body["ok"]) == (500, False)

    def test_is_never_empty_in_the_database(self, nexus):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT is_nullable FROM information_schema.columns "
                "WHERE table_name = 'toolbox_session' AND column_name = 'mode'"
            )
            assert cursor.fetchone() == ("NO",)
        agent = nexus.agent("backend_worker")
        row = Session.objects.create(
            organisation=nexus.organisation, agent=agent, opened_at=timezone.now()
        )
        assert row.mode == "chat_safe"


@pytest.fixture
def committed(transactional_db):
    return load_company("nexus")


def names(company) -> set[str]:
    tools = company.get("/api/v1/tools", "backend_worker").body["tools"]
    return {tool["name"] for tool in tools}


def put_in_coding(company) -> None:
    open_mode(
        session_id=company.caller("backend_worker").session.id,
        mode=ToolMode.CODING,
        caller=company.person("Board"),
        now=timezone.now(),
        reason="to look",
    )
