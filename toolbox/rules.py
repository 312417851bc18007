"""May this caller use this tool now? One function behind both gates, prompt and exports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.decision import Allow, Code, Decision, deny
from orgchart.catalogue import Source
from orgchart.policy.compiled import Agent, Policy, Role
from orgchart.policy.vocabulary import BOARD, ToolMode
from toolbox.registry import Tool


@dataclass(frozen=True, slots=True)
class Holder:
    """An agent that might use a tool: under a policy, in a mode, inside a frame or not.

    `frame_tools` None: outside any frame; else only these, whatever the agent has.
    """

    agent: Agent
    policy: Policy
    mode: ToolMode
    frame_tools: frozenset[str] | None = None

    @property
    def role(self) -> Role:
        """The agent's role under this policy."""
        return self.policy.roles[self.agent.role]


def can_use(  # noqa: PLR0911  one return for each answer a gate can give
    tool: Tool | None, name: str, holder: Holder
) -> Decision:
    """Decide whether the tool may run for the holder now (decisions.md § Tools).

    bound(role) ∪ built-in ∪ skills, minus the deny list, minus the restricted modes, ∩ the mode,
    ∩ the frame. Unknown, denied, unbound and wrong-mode are four different answers.
    """
    if tool is None:
        return deny(
            Code.UNKNOWN_TOOL,
            f"there is no tool {name[:64]!r}",
            "call one of the tools that GET /api/v1/tools lists",
            rule="tool registry",
        )
    role = holder.role
    if name in role.denied_tools:
        return deny(
            Code.TOOL_DENIED,
            f"{name} is explicitly denied to {role.name}",
            _other_tools(holder),
            rule=f"deny list of {role.name}",
        )
    if not _is_bound(tool, holder):
        return deny(
            Code.TOOL_NOT_BOUND,
            f"{name} is not bound to {role.name}",
            _other_tools(holder),
            rule=f"tool binding of {role.name}",
        )
    left_modes = holder.policy.restricted_modes(holder.agent, name)
    if left_modes is not None and not left_modes:
        return deny(
            Code.TOOL_DENIED,
            f"{name} is taken away from {holder.agent.handle}",
            _other_tools(holder),
            rule="tool override",
        )
    if holder.frame_tools is not None and name not in holder.frame_tools:
        return deny(
            Code.TOOL_DENIED,
            f"{name} is not among the tools of this frame",
            "use the frame's tools, or leave your frame: return_result, also without frame_id",
            rule="allowed_tools of the frame",
        )
    modes = tool.allowed_modes if left_modes is None else tool.allowed_modes & left_modes
    if holder.mode not in modes:
        return deny(
            Code.MODE_DENIED,
            f"{name} is not allowed in {holder.mode} mode",
            _other_mode(modes, holder),
            rule=f"modes of {name}",
        )
    return Allow(f"{tool.source} tool in {holder.mode}")


def _is_bound(tool: Tool, holder: Holder) -> bool:
    match tool.source:
        case Source.BUILTIN:
            return True
        case Source.SKILL:
            return tool.name in holder.agent.skills
        case Source.OFFICE:
            return bool(holder.role.offices & tool.offices)
        case Source.ROLE:
            return tool.name in holder.role.tools or tool.name in holder.agent.skills


def _other_tools(holder: Holder) -> str:
    agent = holder.agent
    asks = _asks_board(holder) if agent.superior == BOARD else f", or ask {agent.superior}"
    return f"use a tool that GET /api/v1/tools lists for you{asks}"


def _asks_board(holder: Holder) -> str:
    """How an agent without a superior agent can ask the Board, or ''."""
    if _can_use_bound(holder, "write_note"):
        return ", or tell the Board with write_note, for_board true"
    rule = holder.policy.board_rule(holder.agent)
    types = holder.policy.sendable_types(holder.agent, BOARD, rule) if rule else ()
    if types and _can_use_bound(holder, "send_mail"):
        return f", or tell the Board with send_mail to {BOARD}, as {min(types)}"
    return ""


def _can_use_bound(holder: Holder, name: str) -> bool:
    """Whether a tool of roles is bound to the holder and not taken away from it now."""
    return name in holder.role.tools | holder.agent.skills and _is_left(holder, name)


def _other_mode(modes: frozenset[ToolMode], holder: Holder) -> str:
    reachable = modes & holder.policy.enabled_modes
    if not reachable:
        return f"no session of {holder.policy.organisation} can use it; go on with another tool"
    accepts = (
        "accept a contract issued with that mode (list_contracts shows yours), or "
        if _is_left(holder, "accept_contract", "list_contracts")
        else ""
    )
    return (
        f"this session is in {holder.mode} mode and the tool needs {', '.join(sorted(reachable))}: "
        f"{accepts}ask a human of the Board to open it"
    )


def _is_left(holder: Holder, *names: str) -> bool:
    """Whether none of these tools is denied or restricted for the holder now."""
    return all(
        name not in holder.role.denied_tools
        and holder.policy.restricted_modes(holder.agent, name) in (None, frozenset(ToolMode))
        and (holder.frame_tools is None or name in holder.frame_tools)
        for name in names
    )


def effective_tools(tools: Iterable[Tool], holder: Holder) -> list[Tool]:
    """The tools that the execution gate allows the holder to use now."""
    return [tool for tool in tools if isinstance(can_use(tool, tool.name, holder), Allow)]
