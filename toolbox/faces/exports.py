"""The caller's tools in the shapes that models' ecosystems read (Spec: wire 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orgchart.catalogue import Source
from toolbox.registry import REGISTRY, Tool
from toolbox.rules import Holder, effective_tools


def _plain(tool: Tool, holder: Holder) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "group": tool.group,
        "source": _source(tool, holder),
        "input_schema": tool.brief_schema,
    }


def _source(tool: Tool, holder: Holder) -> str:
    """What binds the tool to this caller: an office is a part of the role."""
    if tool.source is Source.ROLE and tool.name not in holder.role.tools:
        return Source.SKILL.value
    return Source.ROLE.value if tool.source is Source.OFFICE else tool.source.value


def _openai(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.brief_schema,
        },
    }


def _anthropic(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.brief_schema,
    }


def _mcp(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.brief_schema,
        "outputSchema": tool.output_schema,
        "annotations": {
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent or tool.read_only,
            "openWorldHint": tool.open_world,
        },
    }


EXPORTS: Mapping[str, Callable[[Tool], dict[str, Any]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "mcp": _mcp,
}
FOREIGN_FORMS = tuple(EXPORTS)
"""What `?format=` may name; without it the tools are listed in our own shape."""


def listing(holder: Holder, form: str = "") -> list[dict[str, Any]]:
    """Exactly the tools that would run for the holder now, in the asked shape."""
    tools = effective_tools(REGISTRY.all(), holder)
    if not form:
        return [_plain(tool, holder) for tool in tools]
    return [EXPORTS[form](tool) for tool in tools]
