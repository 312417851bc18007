"""Whether a refusal's next step is one that its caller can take now, over its face."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.urls import Resolver404, resolve

from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.vocabulary import BOARD, ToolMode
from toolbox import door
from toolbox.answers import Answer
from toolbox.caller import Caller, Face
from toolbox.registry import REGISTRY
from toolbox.rules import Holder, effective_tools

WORD = re.compile(r"\w+")
ADDRESS = re.compile(r"(?<![\w/])/(?:api|mcp|admin)/[\w/-]*")
PEOPLE = re.compile(r"\b(?:ask|tell) (?:the Board|HR|a human|a person|people)\b")
PARTNERS = re.compile(
    r"\b(?:ask|tell|write to one of:) ([a-z][a-z_.]+(?:(?:, | or )[a-z][a-z_.]+)*)"
)


def unusable_in(step: str, holder: Holder, face: Face) -> set[str]:
    """What a next step names and this caller cannot use: tools, addresses, agents to write to."""
    every = {tool.name for tool in REGISTRY.all()}
    usable = {tool.name for tool in effective_tools(REGISTRY.all(), holder)}
    addresses = set(ADDRESS.findall(step))
    return (
        (every & set(WORD.findall(step)) - usable)
        | {one for one in addresses if face is Face.MCP or not _is_served(one)}
        | _strangers(step, holder.agent, holder.policy)
        | _people(step, holder.agent)
    )


def _strangers(step: str, agent: Agent, policy: Policy) -> set[str]:
    """Agents that the step tells the caller to address, without being its contact."""
    named = {
        name for found in PARTNERS.findall(step) for name in re.split(r", | or ", found.strip("."))
    }
    known = set(policy.contacts_of(agent))
    resolved = {name: policy.resolve(name) for name in named}
    return {name for name, other in resolved.items() if other and other.handle not in known}


def _people(step: str, agent: Agent) -> set[str]:
    """People that the step tells the caller to address: only the top agent reaches any."""
    return set() if agent.superior == BOARD else set(PEOPLE.findall(step))


def _is_served(address: str) -> bool:
    try:
        match = resolve(address)
    except Resolver404:
        return False
    return "Unknown" not in getattr(match.func, "__name__", "")


def check_step_without_door(body: dict[str, Any], agent: Agent, policy: Policy) -> None:
    """Fail for a refusal that no door gave (of a session, a list) whose step is not usable."""
    holder = Holder(agent, policy, ToolMode.CHAT_SAFE)
    assert not unusable_in(body["next_action"], holder, Face.REST), body


@contextmanager
def every_refusal_checked(failed: list[str]) -> Iterator[None]:
    """Check every refusal of the door, whatever test causes it; collect those that fail."""
    real = door.answer_refused_call

    def record_and_check(caller: Caller, *args: Any, **kwargs: Any) -> Answer:
        answer = real(caller, *args, **kwargs)
        step = answer.body["next_action"]
        if unusable := unusable_in(step, caller.holder, caller.face):
            failed.append(f"{caller.handle}, {caller.tool}: {step!r} names {sorted(unusable)}")
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "answer_refused_call", record_and_check)
        yield
