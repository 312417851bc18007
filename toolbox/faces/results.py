"""What the API's own addresses answer, apart from the tools."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field
from typing_extensions import TypedDict

from core.params import wire_result
from orgchart.policy.vocabulary import ToolGroup, ToolMode

JSONSchema = dict[str, Any]


@wire_result
class CallSession(TypedDict):
    """The session of a call."""

    id: UUID
    mode: ToolMode
    contract: Annotated[str | None, Field(description="the contract that opened the mode")]


@wire_result
class OpenedSession(CallSession):
    """One of the caller's sessions."""

    opened_at: datetime


@wire_result
class PauseSummary(TypedDict):
    """Why a person paused the agent, and who can resume it."""

    reason: str
    since: datetime
    scope: Literal["agent", "organisation"]
    resumed_by: list[str]


@wire_result
class CallerIdentity(TypedDict):
    """Who the key says is calling."""

    agent: str
    address: str
    role: str
    level: int
    organisation: str
    session: CallSession
    frame: Annotated[str | None, Field(description="the open frame the caller is in")]
    policy_version: int
    paused: Annotated[
        PauseSummary | None, Field(description="set while every call answers AGENT_PAUSED")
    ]


@wire_result
class PromptText(TypedDict):
    """The system prompt of the caller."""

    prompt: str


@wire_result
class ListedTool(TypedDict):
    """A tool in our own shape."""

    name: str
    description: str
    group: ToolGroup
    source: Literal["role", "builtin", "skill"]
    input_schema: JSONSchema


@wire_result
class OpenAIFunction(TypedDict):
    """The function of an OpenAI tool."""

    name: str
    description: str
    parameters: JSONSchema


@wire_result
class OpenAITool(TypedDict):
    """A tool in OpenAI's shape."""

    type: Literal["function"]
    function: OpenAIFunction


@wire_result
class AnthropicTool(TypedDict):
    """A tool in Anthropic's shape."""

    name: str
    description: str
    input_schema: JSONSchema


@wire_result
class McpHints(TypedDict):
    """What a tool does to the world."""

    readOnlyHint: bool
    destructiveHint: bool
    idempotentHint: bool
    openWorldHint: bool


@wire_result
class McpTool(TypedDict):
    """A tool in the shape of the Model Context Protocol."""

    name: str
    description: str
    inputSchema: JSONSchema
    outputSchema: JSONSchema
    annotations: McpHints


@wire_result
class ToolList(TypedDict):
    """The caller's tools, in the shape that was asked for."""

    tools: list[ListedTool] | list[OpenAITool] | list[AnthropicTool] | list[McpTool]
