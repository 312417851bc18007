"""Answers to "may this agent call that tool?", for people, by the gates' own function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.decision import Decision
from orgchart.explaining import explains
from toolbox.registry import REGISTRY
from toolbox.rules import Holder, can_use


@explains("tool")
def may_call(facts: Mapping[str, Any]) -> Decision:
    """Whether `agent` may call `tool` in a session of that `mode`."""
    holder = Holder(facts["agent"], facts["policy"], facts["mode"])
    return can_use(REGISTRY.get(facts["tool"]), facts["tool"], holder)
