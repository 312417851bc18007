"""May this caller use this tool now? One function behind both gates, prompt and exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import cast

from core.decision import Allow, Code, Decision, deny
from orgchart.catalogue import Source
from orgchart.pauses.rules import PauseFacts
from orgchart.policy.compiled import Agent, Policy, Role
from orgchart.policy.vocabulary import BOARD, ToolMode
from toolbox.frames.rules import ALWAYS
from toolbox.registry import REGISTRY, Tool

UNUSABLE = "what a caller can never use is not listed"
ONE_OF_YOURS = "use one of the tools that are listed for you"
LEAVE = "or leave your frame: return_result, also without frame_id"


@dataclass(frozen=True, slots=True)
class Holder:
    """An agent that might use a tool: under a policy, in a mode, inside a frame or not.

    `frame_tools` None: no frame restricts; else only these and the way out of the frame. A `pause`
    refuses every tool.
    """

    agent: Agent
    policy: Policy
    mode: ToolMode
    frame_tools: frozenset[str] | None = None
    in_frame: bool = False
    pause: PauseFacts | None = None

    @property
    def is_in_frame(self) -> bool:
        """Whether there is a frame that the agent has to leave."""
        return self.in_frame or self.frame_tools is not None

    @property
    def role(self) -> Role:
        """The agent's role under this policy."""
        return self.policy.roles[self.agent.role]


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a tool is refused; the next step is worked out only for a caller that asked for it."""

    code: Code
    message: str
    rule: str
    next_action: Callable[[], str]


def can_use(tool: Tool | None, name: str, holder: Holder) -> Decision:
    """Decide whether the tool may run for the holder now (Spec: tools 9).

    bound(role) ∪ built-in ∪ skills, minus what the caller can never use, minus the deny list, minus
    the restricted modes, ∩ the mode, ∩ the frame. Unknown, denied, unbound and wrong-mode are four
    different answers. No denial or restriction removes a built-in tool (Spec: tools 5).
    """
    refused = _refusal(tool, name, holder)
    if refused is None:
        return Allow(f"{cast('Tool', tool).source} tool in {holder.mode}")
    return deny(refused.code, refused.message, refused.next_action(), rule=refused.rule)


def _refusal(  # noqa: PLR0911  one return for each answer a gate can give
    tool: Tool | None, name: str, holder: Holder
) -> _Refusal | None:
    if holder.pause is not None:
        denied = holder.pause.refusal
        return _Refusal(denied.code, denied.message, denied.rule, lambda: denied.next_action)
    role = holder.role
    other = partial(name_other_step, holder)
    if tool is None:
        message = f"there is no tool {name[:64]!r}"
        return _Refusal(Code.UNKNOWN_TOOL, message, "tool registry", lambda: ONE_OF_YOURS)
    builtin = tool.source is Source.BUILTIN
    if name in role.denied_tools and not builtin:
        message = f"{name} is explicitly denied to {role.name}"
        return _Refusal(Code.TOOL_DENIED, message, f"deny list of {role.name}", other)
    if not _is_bound(tool, holder):
        message = f"{name} is not bound to {role.name}"
        return _Refusal(Code.TOOL_NOT_BOUND, message, f"tool binding of {role.name}", other)
    if tool.unusable and (why := tool.unusable(holder)):
        return _Refusal(Code.TOOL_NOT_BOUND, f"{name} is not available: {why}", UNUSABLE, other)
    left_modes = None if builtin else holder.policy.restricted_modes(holder.agent, name)
    if left_modes is not None and not left_modes:
        message = f"{name} is taken away from {holder.agent.handle}"
        return _Refusal(Code.TOOL_DENIED, message, "restricted tools", other)
    if holder.frame_tools is not None and name not in holder.frame_tools | ALWAYS:
        message = f"{name} is not among the tools of this frame"
        rule = "allowed_tools of the frame"
        return _Refusal(Code.TOOL_DENIED, message, rule, lambda: f"{ONE_OF_YOURS}, {LEAVE}")
    modes = tool.allowed_modes if left_modes is None else tool.allowed_modes & left_modes
    if holder.mode not in modes:
        message = f"{name} is not allowed in {holder.mode} mode"
        step = partial(_other_mode, modes, holder)
        return _Refusal(Code.MODE_DENIED, message, f"modes of {name}", step)
    return None


def may_call(holder: Holder, *names: str) -> bool:
    """Whether the execution gate lets the holder call every one of these tools now."""
    return all(_refusal(REGISTRY.get(name), name, holder) is None for name in names)


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


def name_other_step(holder: Holder) -> str:
    """A next step that every holder can take, whatever it was refused."""
    if holder.frame_tools is not None:
        return f"{ONE_OF_YOURS}, {LEAVE}"
    return f"{ONE_OF_YOURS}{_way_to_superior(holder)}"


def reaches_superior(holder: Holder) -> bool:
    """Whether the holder can ask its superior, or the Board, by a tool that it has now.

    Not if its own is deactivated and no contact rule leads to the next above (Spec: escalation 7).
    """
    return bool(_way_to_superior(holder))


def _way_to_superior(holder: Holder) -> str:
    """How the holder can ask its superior by a tool that it has, or ''."""
    policy, agent = holder.policy, holder.agent
    if policy.carries_up(agent, "escalation") and may_call(holder, "escalate"):
        return f", or ask {agent.superior} with escalate"
    if agent.superior == BOARD and may_call(holder, "write_note"):
        return ", or tell the Board with write_note, for_board true"
    rule = policy.rule_between(agent, policy.superior_of(agent))
    types = policy.sendable_types(agent, agent.superior, rule) if rule else frozenset()
    if rule is None or rule.needs_contract or not types or not may_call(holder, "send_mail"):
        return ""
    asked = "escalation" if "escalation" in types else min(types)
    return f", or ask {agent.superior} with send_mail, as {asked}"


def _other_mode(modes: frozenset[ToolMode], holder: Holder) -> str:
    reachable = modes & holder.policy.enabled_modes
    if not reachable:
        return f"no session of {holder.policy.organisation} can use it; go on with another tool"
    step = (
        "accept a contract issued with that mode (list_contracts shows yours)"
        f"{_way_to_superior(holder)}"
        if may_call(holder, "accept_contract", "list_contracts")
        else name_other_step(holder)
    )
    needed = ", ".join(sorted(reachable))
    return f"this session is in {holder.mode} mode and the tool needs {needed}: {step}"


def effective_tools(tools: Iterable[Tool], holder: Holder) -> list[Tool]:
    """The tools that the execution gate allows the holder to use now."""
    return [tool for tool in tools if _refusal(tool, tool.name, holder) is None]
