"""Every tool of this installation says what it is; what says nothing is open to nobody."""

import pytest
from structlog.testing import capture_logs

from core.params import Params
from orgchart.catalogue import Source, bindable, known
from orgchart.policy.vocabulary import ToolGroup
from tests.oracle import tools as oracle
from toolbox.registry import REGISTRY, Registry, tool

EVERY = REGISTRY.all()
UNTYPED = {
    *("delegate_to", "next_frame", "return_result", "current_time", "use_skill"),
    *("read_memory", "memory_append", "memory_search", "save_artifact", "write_note"),
    *("write_report", "write_prd", "read_reports", "read_tech_reports"),
    *("send_mail", "escalate", "read_inbox", "read_mail"),
    *("generate_contract", "create_contract", "read_contract", "list_contracts"),
    *("accept_contract", "submit_report", "write_verdict", "close_contract"),
    *("approve_deployment", "request_budget", "assign_task", "manage_backlog"),
    *("prioritize_tasks", "read_user_feedback", "task_create", "task_get", "task_list"),
    *("task_update", "task_comment", "task_approve", "task_recommend", "read_file"),
    *("write_file", "read_code", "run_test", "run_linter", "git_branch", "git_commit"),
    *("git_push", "review_pr", "docker_build", "docker_deploy", "manage_ci_config"),
    *("run_health_check", "read_logs", "web_search", "read_url", "create_agent_jd"),
    *("update_agent_jd", "deactivate_agent", "update_org_chart", "list_agents", "manage_tools"),
}
"""Tools whose rooms have not declared their results yet; it must become empty."""
NAMES = {t.name for t in EVERY}


class TestEveryTool:
    """The guard of seed 002 §2.4: declared by its own word, not by having the default's value."""

    @pytest.mark.parametrize("one", EVERY, ids=lambda t: t.name)
    def test_declares_its_group_and_its_modes(self, one):
        assert {"group", "allowed_modes"} <= one.explicit_fields
        assert one.allowed_modes

    @pytest.mark.parametrize("one", EVERY, ids=lambda t: t.name)
    def test_has_the_modes_and_the_group_that_were_decided(self, one):
        assert {str(mode) for mode in one.allowed_modes} == oracle.modes(one.name)
        assert one.group == oracle.GROUPS.get(one.name, one.group)
        assert (one.group is ToolGroup.CODE) == (one.name in oracle.CODE)

    @pytest.mark.parametrize("one", EVERY, ids=lambda t: t.name)
    def test_says_what_it_does_and_refuses_what_it_does_not_know(self, one):
        assert one.description
        assert one.input_schema["type"] == "object"
        assert one.input_schema["additionalProperties"] is False

    @pytest.mark.parametrize("one", EVERY, ids=lambda t: t.name)
    def test_is_bound_the_way_that_was_decided(self, one):
        assert one.source is {
            **dict.fromkeys(oracle.ROLE_TOOLS, Source.ROLE),
            **dict.fromkeys(oracle.BUILTIN, Source.BUILTIN),
            **dict.fromkeys(oracle.OFFICE, Source.OFFICE),
        }.get(one.name)


def test_every_tool_declares_the_type_of_its_result():
    assert {tool.name for tool in EVERY if tool.result is None} <= UNTYPED


class TestTheMatrix:
    def test_holds_forty_tools_and_all_are_registered(self):
        assert len(oracle.ROLE_TOOLS) == 40
        assert set(oracle.ROLE_TOOLS) <= NAMES

    def test_is_what_roles_can_bind(self):
        assert bindable() == set(oracle.ROLE_TOOLS)

    def test_is_known_to_the_organisation(self):
        assert set(known()) == NAMES


class TestAToolWithoutModes:
    def test_is_warned_of_when_it_is_registered(self):
        registry = Registry()
        with capture_logs() as logs:

            @tool("silent", params=Params, registry=registry)
            def silent(caller, params, now):
                """Say nothing of oneself."""
                return {}

        assert [(entry["event"], entry["tool"]) for entry in logs] == [
            ("tool_registered_with_default_modes", "silent")
        ]
        found = registry.get("silent")
        assert found.allowed_modes == frozenset()
        assert found.explicit_fields == frozenset()

    def test_is_no_second_one_of_its_name(self):
        registry = Registry()
        for _ in range(2):
            declare = tool("twice", params=Params, registry=registry, modes=frozenset({"coding"}))
            if registry.get("twice"):
                with pytest.raises(ValueError, match="twice"):
                    declare(lambda *_: {})
            else:
                declare(lambda *_: {})
