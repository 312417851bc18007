"""Which tools exist, what each declares of itself; nothing here decides for a caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, get_type_hints

import structlog
from django.conf import settings
from pydantic import TypeAdapter

from core.params import Params
from orgchart import catalogue
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import Office, ToolGroup, ToolMode
from toolbox.body_sizes import largest_body
from toolbox.schemas import briefly

ANY_MODE = frozenset(ToolMode)
CODING_ONLY = frozenset({ToolMode.CODING})

log = structlog.get_logger(__name__)


ToolFunction = Callable[[Any, Any, datetime], Mapping[str, Any]]
"""(caller, parameters, time) -> result."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
    """One tool as it declares itself; the defaults are closed (Spec: tools 11)."""

    name: str
    description: str
    params: type[Params]
    function: ToolFunction
    result: Any = None
    source: Source = Source.ROLE
    group: ToolGroup = ToolGroup.CODE
    allowed_modes: frozenset[ToolMode] = frozenset()
    offices: frozenset[Office] = frozenset()
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    acts_outside: bool = False
    dry_run: ToolFunction | None = None
    waits_for: str = ""
    leaves_trace: bool = False
    prompt_line: Callable[[Any], str] | None = None
    unusable: Callable[[Any], str] | None = None
    explicit_fields: frozenset[str] = frozenset()

    @property
    def stores(self) -> bool:
        """Whether a call of it is counted among what its organisation stores (Spec: settings 6)."""
        return self.leaves_trace or not self.read_only

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON schema of the parameters; the same object for every export."""
        return _input_schema(self.params)

    @property
    def brief_schema(self) -> dict[str, Any]:
        """The input schema as models read it: without bounds and other noise (Spec: tools 19)."""
        return _brief_schema(self.params)

    @property
    def largest_body(self) -> int:
        """Bytes that its parameters can have (Spec: tools 29)."""
        bound = _largest_body(self.params)
        return settings.NEXUS_MAX_BODY if bound is None else min(bound, settings.NEXUS_MAX_BODY)

    @property
    def result_type(self) -> TypeAdapter[Any]:
        """The type of the result; a tool that declares none returns an object."""
        return _adapter(dict[str, Any] if self.result is None else self.result)

    @property
    def output_schema(self) -> dict[str, Any]:
        """JSON schema of the call's answer; the same object for every export."""
        return _output_schema(self)


@cache
def _input_schema(params: type[Params]) -> dict[str, Any]:
    schema = params.model_json_schema(by_alias=True)
    schema.pop("description", None)
    return schema


@cache
def _largest_body(params: type[Params]) -> int | None:
    return largest_body(_input_schema(params))


@cache
def _brief_schema(params: type[Params]) -> dict[str, Any]:
    return briefly(_input_schema(params))


REFUSAL = {
    "required": ["ok", "error_code", "message", "next_action"],
    "properties": {"ok": {"const": False}, "error_code": {"type": "string"}},
}
"""What an answer is instead of a result; some clients of MCP hold refusals to the schema too."""


@cache
def _adapter(result: Any) -> TypeAdapter[Any]:
    return TypeAdapter(result)


@cache
def _output_schema(tool: Tool) -> dict[str, Any]:
    schema = tool.result_type.json_schema(mode="serialization")
    definitions = schema.pop("$defs", {})
    done = {"ok": {"const": True}, "tool_name": {"const": tool.name}, "result": schema}
    closed = {"required": list(done), "properties": done, "additionalProperties": False}
    return {
        "type": "object",
        "oneOf": [closed, REFUSAL],
        **({"$defs": definitions} if definitions else {}),
    }


class Registry:
    """Every tool of this process by name, in the order declared."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    def register(self, tool: Tool) -> None:
        """Add a tool; warns when it is available in no mode, which is the default (Spec: tools 11).

        Raises ValueError when the name is taken.
        """
        if tool.name in self._tools:
            raise ValueError(f"two tools are called {tool.name}")
        if not tool.allowed_modes:
            log.warning("tool_registered_with_default_modes", tool=tool.name)
        self._tools[tool.name] = tool

    def get(self, name: str) -> Tool | None:
        """The tool of that exact name."""
        return self._tools.get(name)

    def all(self) -> list[Tool]:
        """Every tool, in the order declared."""
        return list(self._tools.values())

    def fill_catalogue(self) -> None:
        """Tell the organisation's room which tools exist, for roles to bind."""
        for tool in self._tools.values():
            catalogue.declare_tool(
                tool.name, catalogue.CatalogueEntry(tool.source, tool.allowed_modes)
            )


REGISTRY = Registry()


def tool(
    name: str,
    *,
    source: Source = Source.ROLE,
    registry: Registry | None = None,
    **fields: Any,
) -> Callable[[ToolFunction], ToolFunction]:
    """Declare a function as a tool; its docstring is the description that models read.

    The types that it is written with say the rest: `params` is the model of its parameters, and it
    returns a TypedDict (`core.params.wire_result`).

    `group`, `modes`, `offices`, MCP's hints (`read_only`, `destructive`, `idempotent`,
    `open_world`), `acts_outside` (the door opens no transaction around it: it waits for others),
    `dry_run` (what an explanation does in its place, where no rollback undoes what the tool does),
    `waits_for` (the result field that ends a `wait`), `leaves_trace` (it reads, and an event or a
    run is kept of every call), `prompt_line` (a line for the
    prompt of an agent that may use the tool) and `unusable` (why a Holder can never use the tool;
    '' where it can) are declared here or keep their closed defaults.
    """

    def declare(function: ToolFunction) -> ToolFunction:
        if "modes" in fields:
            fields["allowed_modes"] = fields.pop("modes")
        types = get_type_hints(function)
        (REGISTRY if registry is None else registry).register(
            Tool(
                name=name,
                description=" ".join((function.__doc__ or "").split()),
                params=types["params"],
                function=function,
                result=types.get("return"),
                source=source,
                explicit_fields=frozenset(fields),
                **fields,
            )
        )
        return function

    return declare
