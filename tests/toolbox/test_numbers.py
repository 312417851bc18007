"""No number that a call gives is larger than the column that it is compared with or kept in."""

from collections.abc import Iterator
from typing import Any

import pytest

from core.limits import BIGGEST_VERSION
from toolbox.registry import REGISTRY

TOOLS = {tool.name: tool for tool in REGISTRY.all()}


def integers(schema: dict[str, Any], at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every integer of a schema, by its place."""
    if schema.get("type") == "integer":
        yield at, schema
    for name, value in schema.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                yield from integers(part, f"{at}.{name}")


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_has_both_bounds(name):
    schema = TOOLS[name].params.model_json_schema()
    for place, each in integers(schema):
        if "enum" in each or "const" in each:
            continue
        assert "minimum" in each, place
        assert each.get("maximum", BIGGEST_VERSION + 1) <= BIGGEST_VERSION, place
