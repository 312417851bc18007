"""Every tool of this installation says what it is; what says nothing is open to nobody."""

import pytest
from structlog.testing import capture_logs

from core.params import Params
from orgchart.catalogue import Source, bindable, known
from orgchart.policy.vocabulary import ToolGroup
from tests.oracle import tools as oracle
from toolbox.registry import REGISTRY, Registry, tool

EVERY = REGISTRY.all()
NAMES = {t.name for t in EVERY}


class TestEveryTool:
    """The guard of Spec: tools 12: declared by its own word, not by having the default's value."""

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
    assert [tool.name for tool in EVERY if tool.result is None] == []


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

            @tool("silent", registry=registry)
            def silent(caller, params: Params, now):
                """Say nothing of oneself."""
                return {}

        assert [(entry["event"], entry["tool"]) for entry in logs] == [
            ("tool_registered_with_default_modes", "silent")
        ]
        found = registry.get("silent")
        assert found.allowed_modes == frozenset()
        assert found.explicit_fields == frozenset()

    def test_is_no_second_one_of_its_name(self):
        def twice(caller, params: Params, now):
            return {}

        registry = Registry()
        declare = tool("twice", registry=registry, modes=frozenset({"coding"}))
        declare(twice)
        with pytest.raises(ValueError, match="twice"):
            declare(twice)
