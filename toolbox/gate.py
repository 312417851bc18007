"""The execution gate: may this agent use this tool now, are these its parameters; then it acts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from core.decision import Allow, Code, Denied, Deny, refuse
from core.params import sentence_of
from toolbox.caller import Caller
from toolbox.quotas import charging
from toolbox.registry import REGISTRY, Tool
from toolbox.rules import can_use
from toolbox.space import STORAGE_FULL, is_disk_at_fault, require_space

FORGED_SENDER = ("from", "from_agent", "from_")
MOST_PROBLEMS = 20  # named in one answer


def run(caller: Caller, name: str, params: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Pass the execution gate, check the parameters, let the tool act.

    Raises Denied, STORAGE_FULL too where the system has no room for a file of it.
    """
    tool, _ = admit(caller, name)
    require_size(caller.args_size, tool.largest_body, what=f"a body of {name}")
    if tool.stores:
        require_space()
        agent = caller.agent.id
        charging.charge(agent=agent, policy=caller.policy, size=caller.args_size, now=now)
    try:
        result = tool.function(caller, validate(tool, params), now)
    except OSError as problem:
        if is_disk_at_fault(problem):
            raise Denied(STORAGE_FULL) from problem
        raise
    return {"ok": True, "tool_name": name, "result": result}


def require_size(size: int, limit: int, *, what: str = "a body") -> None:
    """Raise Denied TOO_LARGE for more bytes than the limit (Spec: tools 29)."""
    if size > limit:
        raise refuse(
            Code.TOO_LARGE,
            f"{what} may have {limit} bytes at most",
            "send less, or save it in parts",
            rule="body size",
        )


def admit(caller: Caller, name: str) -> tuple[Tool, Allow]:
    """Pass the execution gate: the tool, and what allowed it. Raises Denied."""
    tool = REGISTRY.get(name)
    allowed = caller.require(can_use(tool, name, caller.holder))
    return cast("Tool", tool), allowed


def validate(tool: Tool, params: Mapping[str, Any]) -> Any:
    """Build the tool's parameters; a forged sender is ignored, nested too (Spec: mail 3).

    Raises Denied INVALID_PARAMS with details: field → problem.
    """
    try:
        return tool.params.model_validate(params)
    except ValidationError as problems:
        found = problems.errors(include_url=False, include_input=False)
        if forged := [p["loc"] for p in found if _is_forged_sender(p, params)]:
            return validate(tool, _without(params, forged))
        details = {_field_of(p["loc"]): _problem_of(p) for p in found[:MOST_PROBLEMS]}
        field, problem = next(iter(details.items()), ("body", "invalid"))
        raise Denied(
            Deny(
                Code.INVALID_PARAMS,
                f"{tool.name}: {field}: {problem}",
                "correct the named fields; the input schema of the tool says what they hold",
                f"parameters of {tool.name}",
                details,
            )
        ) from problems


def _is_forged_sender(problem: ErrorDetails, params: Mapping[str, Any]) -> bool:
    """Whether the problem is a field that would name a sender, where the tool has no such field."""
    *path, name = problem["loc"] or ("",)
    if problem["type"] != "extra_forbidden" or name not in FORGED_SENDER:
        return False
    try:
        return name in _at(params, path)
    except (KeyError, IndexError, TypeError):  # of several forms the path names one as well
        return False


def _without(params: Mapping[str, Any], places: Iterable[Sequence[int | str]]) -> dict[str, Any]:
    """A copy of the parameters without these fields, which they have."""
    kept = deepcopy(dict(params))
    for *path, name in places:
        del _at(kept, path)[name]
    return kept


def _at(params: Any, path: Iterable[int | str]) -> Any:
    for part in path:
        params = params[part]
    return params


def _problem_of(problem: ErrorDetails) -> str:
    """What is wrong with a value, as someone who does not know Python says it."""
    if problem["type"] in ("model_type", "dict_type"):
        return "must be an object"
    if problem.get("ctx", {}).get("pattern") == r"\S":
        return "must hold more than spaces"
    return sentence_of(problem)


def _field_of(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part)[:64] for part in loc) or "body"
