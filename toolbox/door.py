"""The one door: every call of an agent enters here, is decided, acts once, and leaves its trace."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar, cast

import structlog
from django.db import OperationalError, connection, transaction
from pydantic import ValidationError
from pydantic_core import ErrorDetails, to_json

from core.actions import Action
from core.actors import denial
from core.decision import Code, Denied, Deny, last_rule, require, status_of
from core.events import Event
from ledger.services import record_alone
from toolbox import idempotency
from toolbox.caller import Caller
from toolbox.registry import REGISTRY, Tool
from toolbox.rules import can_use
from toolbox.wake import wake

log = structlog.get_logger(__name__)

T = TypeVar("T")

FORGED_SENDER = ("from", "from_agent", "from_")
REPLAYED = "Idempotency-Replayed"
RETRIED = 3
TRANSIENT = frozenset({"40P01", "40001"})
"""SQLSTATEs of a broken deadlock and of a serialisation that failed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call is answered with, whichever face it came through."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]


def call(
    caller: Caller,
    name: str,
    params: Mapping[str, Any],
    *,
    now: datetime,
    idempotency_key: str | None = None,
    last: bool = True,
) -> Answer:
    """Run one tool call to its end and answer it; never raises for what a caller did.

    Gate, parameters, the tool in one transaction. With an idempotency key the answer is kept in
    that same transaction, so that a repetition finds the answer or nothing at all. Of a call that
    waits only the `last` look keeps an empty answer: the others will be followed by another.
    """
    return guarded(
        caller,
        name,
        params,
        work=lambda caller: run(caller, name, params, now=now),
        now=now,
        idempotency_key=idempotency_key,
        keeps=lambda answer: last or not is_empty(name, answer),
    )


def is_empty(name: str, answer: Answer) -> bool:
    """Whether a tool that can wait was carried out now and found nothing of what it waits for."""
    tool = REGISTRY.get(name)
    if tool is None or not tool.waits_for or not answer.body["ok"] or REPLAYED in answer.headers:
        return False
    return not answer.body["result"][tool.waits_for]


def guarded(
    caller: Caller,
    name: str,
    params: Mapping[str, Any],
    *,
    work: Callable[[Caller], dict[str, Any]],
    now: datetime,
    idempotency_key: str | None,
    keeps: Callable[[Answer], bool] = lambda _: True,
) -> Answer:
    """Do the work once per idempotency key and answer it, or record why it was refused.

    What breaks on our side is answered like everything else, the same by every face. An answer
    that is not one to keep leaves the key free.
    """
    caller = replace(caller, tool=name[:64], args_digest=digest_of(params))
    try:
        return retried(lambda: _once(caller, params, work, now, idempotency_key, keeps))
    except Exception:
        log.exception("call_failed", tool=caller.tool)
        body = envelope(internal(), tool=caller.tool, mode=caller.session.mode)
        return Answer(status_of(Code.INTERNAL), body, {})


def _once(
    caller: Caller,
    params: Mapping[str, Any],
    work: Callable[[Caller], dict[str, Any]],
    now: datetime,
    idempotency_key: str | None,
    keeps: Callable[[Answer], bool],
) -> Answer:
    try:
        if idempotency_key is None:
            return Answer(200, work(caller), {})
        with transaction.atomic():
            kept = idempotency.begin(caller, idempotency_key, params, now=now)
            if kept is not None:
                return Answer(kept.status, kept.body, {REPLAYED: "true"})
            answer = _worked(caller, work, now)
            if keeps(answer):
                idempotency.keep(caller, idempotency_key, answer.status, answer.body)
            else:
                idempotency.release(caller, idempotency_key)
            return answer
    except Denied as refusal:
        return refused(caller, refusal, now=now)


def _worked(caller: Caller, work: Callable[[Caller], dict[str, Any]], now: datetime) -> Answer:
    """The work or its refusal, in the transaction that holds the key: nobody comes in between.

    Raises Denied where the refusal is not one to keep.
    """
    try:
        with transaction.atomic():
            return Answer(200, work(caller), {})
    except Denied as refusal:
        if refusal.deny.code in idempotency.NOT_KEPT:
            raise
        return refused(caller, refusal, now=now)


def retried(work: Callable[[], T]) -> T:
    """Do it again where PostgreSQL broke a deadlock: the transaction has left nothing behind."""
    for _ in range(RETRIED - 1):
        try:
            return work()
        except OperationalError as problem:
            if getattr(problem.__cause__, "sqlstate", "") not in TRANSIENT:
                raise
    return work()


def internal() -> Deny:
    """What is said of our own faults: never that nothing was done.

    A database that falls while it commits has done the call or has not: nobody is left to say.
    """
    return Deny(
        Code.INTERNAL,
        "something broke on our side before this call could be answered",
        "repeat it with the same Idempotency-Key, it is never done twice; without a key look first "
        "whether it was done; if this stays, tell the people who run this installation",
    )


def unreadable(caller: Caller, name: str, refusal: Denied, *, now: datetime) -> Answer:
    """Answer a call whose parameters could not even be read; recorded like any refusal."""
    return refused(replace(caller, tool=name[:64]), refusal, now=now)


def run(caller: Caller, name: str, params: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Pass the execution gate, check the parameters, let the tool act. Raises Denied."""
    tool, _ = admitted(caller, name)
    result = tool.function(caller, parsed(tool, params), now)
    return {"ok": True, "tool_name": name, "result": result}


def admitted(caller: Caller, name: str) -> tuple[Tool, str]:
    """The tool, once the execution gate lets it through, and the rule that did. Raises Denied."""
    tool = REGISTRY.get(name)
    rule = require(can_use(tool, name, caller.holder)).rule
    return cast("Tool", tool), rule


def parsed(tool: Tool, params: Mapping[str, Any]) -> Any:
    """The tool's parameters, validated; a forged sender is ignored (seed 000 §4.5).

    Raises Denied INVALID_PARAMS with details: field → problem.
    """
    try:
        return tool.params.model_validate(_without_forged_sender(tool, params))
    except ValidationError as problems:
        details = {_place(p["loc"]): _said(p) for p in problems.errors(include_url=False)}
        first = next(iter(details.items()), ("body", "invalid"))
        raise Denied(
            Deny(
                Code.INVALID_PARAMS,
                f"{tool.name}: {first[0]}: {first[1]}",
                "correct the named fields; input_schema in GET /api/v1/tools says what they hold",
                f"parameters of {tool.name}",
                details,
            )
        ) from problems


def _without_forged_sender(tool: Tool, params: Mapping[str, Any]) -> Mapping[str, Any]:
    forged = [name for name in FORGED_SENDER if name in params]
    if not forged:
        return params
    known = {field.alias or key for key, field in tool.params.model_fields.items()}
    return {k: v for k, v in params.items() if k in known or k not in forged}


def _said(problem: ErrorDetails) -> str:
    """What is wrong with a value, in words that do not need Python."""
    if problem["type"] in ("model_type", "dict_type"):
        return "must be an object"
    if problem.get("ctx", {}).get("pattern") == r"\S":
        return "must hold more than spaces"
    return problem["msg"].removeprefix("Value error, ")


def _place(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part)[:64] for part in loc) or "body"


def refused(caller: Caller, refusal: Denied, *, now: datetime) -> Answer:
    """Record a refusal and answer the envelope.

    A refusal that could not be recorded is still a refusal (design: one call, start to end).
    """
    deny = refusal.deny
    event = Event.by(
        caller,
        Action.TOOL_DENIED,
        at=now,
        kind="tool_denied",
        for_agent_id=caller.agent.id,
        **denial(deny, mode=caller.session.mode, call_id=caller.request_id),
    )
    try:
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            (refusal.aftermath or record_alone)(event)
    except Exception:
        log.exception("denial_not_recorded", code=deny.code, tool=caller.tool)
    wake(caller.agent.id)
    body = envelope(deny, tool=caller.tool, mode=caller.session.mode)
    return Answer(status_of(deny.code), body, headers_of(deny))


def envelope(deny: Deny, *, tool: str, mode: str) -> dict[str, Any]:
    """The one shape of every error (wire)."""
    return {
        "ok": False,
        "error_code": deny.code.value,
        "tool_name": tool,
        "mode": str(mode),
        "message": deny.message,
        "next_action": deny.next_action,
        "details": dict(deny.details),
    }


def headers_of(deny: Deny) -> dict[str, str]:
    """Headers that an error's status asks for."""
    if deny.code is Code.RATE_LIMITED:
        return {"Retry-After": str(deny.details["retry_after"])}
    if deny.code is Code.UNAUTHENTICATED:
        return {"WWW-Authenticate": "Bearer"}
    if deny.code is Code.METHOD_NOT_ALLOWED:
        return {"Allow": ", ".join(deny.details["allow"])}
    return {}


def digest_of(params: Mapping[str, Any]) -> str:
    """SHA-256 of the arguments as given: what the ledger keeps instead of their text."""
    return hashlib.sha256(to_json(params)).hexdigest()


def explain(
    caller: Caller, name: str, params: Mapping[str, Any], *, now: datetime
) -> dict[str, Any]:
    """What a call would answer and by which rule, without doing it (wire: /explain).

    The very code of the call decides, in a transaction that is rolled back; a tool whose effects
    no rollback undoes says what is done in its place.
    """
    caller = replace(caller, tool=name[:64], args_digest=digest_of(params))
    try:
        rule = retried(lambda: _tried(caller, name, params, now))
    except Denied as refusal:
        deny = refusal.deny
        return {
            "allowed": False,
            "error_code": deny.code.value,
            "rule": deny.rule,
            "message": deny.message,
        }
    return {
        "allowed": True,
        "error_code": None,
        "rule": rule,
        "message": f"{name} would be carried out",
    }


def _tried(caller: Caller, name: str, params: Mapping[str, Any], now: datetime) -> str:
    """Do all of a call and take it back: the rule that let it through. Raises Denied."""
    with transaction.atomic():
        tool, rule = admitted(caller, name)
        valid = parsed(tool, params)
        (tool.tried or tool.function)(caller, valid, now)
        rule = last_rule() or rule
        transaction.set_rollback(True)
    return rule
