"""Every registered tool carries the hints of the hand-written table, as tools/list gives them."""

from tests.oracle import tools
from tests.oracle.annotations import HINTS, NAMES, Hints
from toolbox.faces.exports import EXPORTS
from toolbox.registry import REGISTRY


class TestTheTable:
    def test_judges_every_tool_there_is_and_no_other(self):
        assert set(HINTS) == {tool.name for tool in REGISTRY.all()}

    def test_judges_every_tool_of_the_specification_that_is_built(self):
        assert set(tools.ROLE_TOOLS) | tools.BUILTIN <= set(HINTS)

    def test_ends_nothing_by_reading(self):
        for name, hints in HINTS.items():
            assert not (hints.reads and hints.ends), name
            assert hints.repeats or not hints.reads, name


class TestTheHints:
    def test_are_those_of_the_table(self):
        found = {}
        for tool in REGISTRY.all():
            shown = EXPORTS["mcp"](tool)["annotations"]
            assert set(shown) == set(NAMES), tool.name
            found[tool.name] = Hints(*(shown[name] for name in NAMES))
        assert found == HINTS
