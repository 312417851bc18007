"""A refusal's next step names only what its caller can use now (Spec: wire 39)."""

from __future__ import annotations

import re
from dataclasses import replace

from core.decision import Deny
from toolbox.caller import Caller, Face
from toolbox.registry import REGISTRY
from toolbox.rules import may_call, name_other_step, reaches_superior

WORD = re.compile(r"\w+")
ASKED = re.compile(r"\b(?:ask|tell) (your superior|[\w.-]*\w)")
REST_ADDRESS = "/api/"


def with_usable_step(deny: Deny, caller: Caller) -> Deny:
    """The refusal, with another next step where its own names what the caller cannot use.

    That is a tool that the execution gate would refuse (in a frame, for another role), a superior
    that it does not reach, or an address of the REST API to a caller of MCP. Tools of other agents
    are not named to begin with.
    A rule that knows no step for this caller leaves it empty.
    """
    if deny.next_action and is_usable(deny.next_action, caller):
        return deny
    return replace(deny, next_action=name_other_step(caller.holder))


def is_usable(step: str, caller: Caller) -> bool:
    """Whether the caller can use every tool and address of a next step, and reach its superior."""
    if caller.face is Face.MCP and REST_ADDRESS in step:
        return False
    superior = caller.agent.superior
    asks = any(said == superior or said.endswith(" superior") for said in ASKED.findall(step))
    if asks and not reaches_superior(caller.holder):
        return False
    named = [word for word in WORD.findall(step) if REGISTRY.get(word)]
    return may_call(caller.holder, *named)
