"""The one door: every call of an agent enters here, is decided, acts once, and is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar, cast

import structlog
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from core.actions import Action
from core.actors import denial
from core.decision import Allow, Code, Decision, Denied, Deny
from core.events import Event
from ledger.services import record_alone
from orgchart.explaining import CallQuestion
from orgchart.pauses.services import pause_of
from toolbox import idempotency, quotas
from toolbox.answers import INTERNAL, Answer, answer_denial
from toolbox.caller import Caller, CallerSession
from toolbox.next_steps import with_usable_step
from toolbox.registry import REGISTRY, Tool
from toolbox.results import Explanation
from toolbox.rules import can_use
from toolbox.space import STORAGE_FULL, is_disk_full, require_space
from toolbox.wake import wake

log = structlog.get_logger(__name__)

T = TypeVar("T")

FORGED_SENDER = ("from", "from_agent", "from_")
REPLAYED = "Idempotency-Replayed"
MOST_PROBLEMS = 20  # named in one answer
ATTEMPTS = 3
TRANSIENT = frozenset({"40P01", "40001"})
"""SQLSTATEs of a broken deadlock and of a serialisation that failed."""


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
    waits only the `last` attempt keeps an empty answer: the others will be followed by another.
    """
    return act(
        caller,
        name,
        params,
        work=lambda caller: run(caller, name, params, now=now),
        now=now,
        idempotency_key=idempotency_key,
        is_final=lambda answer: last or not is_empty(name, answer),
    )


def is_empty(name: str, answer: Answer) -> bool:
    """True if a waitable tool returned an empty result, and not one that was kept before."""
    tool = REGISTRY.get(name)
    if tool is None or not tool.waits_for or not answer.body["ok"] or REPLAYED in answer.headers:
        return False
    return not answer.body["result"][tool.waits_for]


def act(
    caller: Caller,
    name: str,
    params: Mapping[str, Any],
    *,
    work: Callable[[Caller], Mapping[str, Any]],
    now: datetime,
    idempotency_key: str | None,
    is_final: Callable[[Answer], bool] = lambda _: True,
) -> Answer:
    """Do the work once per idempotency key and answer it, or record why it was refused.

    What breaks on our side is answered like everything else, the same by every face. An answer
    that is not final leaves the key free.
    """
    caller = caller.calling(name, params)
    try:
        try:
            _require_running(caller)
            tool = REGISTRY.get(name)
            if tool is not None and tool.acts_outside:
                return _answer_outside(caller, params, work, now, idempotency_key)
            if idempotency_key is None:
                return Answer(200, retry(partial(work, caller)))
            return retry(
                partial(_answer_once, caller, params, work, now, idempotency_key, is_final)
            )
        except Denied as refusal:
            return record_refusal(caller, refusal, now=now)
    except Exception as problem:
        log.exception("call_failed", tool=caller.tool)
        deny = STORAGE_FULL if is_disk_full(problem) else INTERNAL
        return answer_denial(deny, tool=caller.tool, mode=caller.session.mode)


def _answer_once(
    caller: Caller,
    params: Mapping[str, Any],
    work: Callable[[Caller], Mapping[str, Any]],
    now: datetime,
    key: str,
    is_final: Callable[[Answer], bool],
) -> Answer:
    """Answer and keep the answer in the transaction that holds the key: no other call intervenes.

    Raises Denied where the refusal says nothing about the call itself, so is not kept.
    """
    with transaction.atomic():
        kept = idempotency.begin(caller, key, params, now=now)
        if kept is not None:
            return Answer(kept.status, kept.body, {REPLAYED: "true"})
        try:
            with transaction.atomic():
                answer = Answer(200, work(caller))
        except Denied as refusal:
            if refusal.deny.code in idempotency.NOT_KEPT:
                raise
            answer = record_refusal(caller, refusal, now=now)
        if is_final(answer):
            idempotency.keep(caller, key, answer.status, answer.body)
        else:
            idempotency.release(caller, key)
        return answer


def _answer_outside(
    caller: Caller,
    params: Mapping[str, Any],
    work: Callable[[Caller], Mapping[str, Any]],
    now: datetime,
    key: str | None,
) -> Answer:
    """Answer a call whose tool waits for others: no transaction is open meanwhile.

    The key is claimed before and the answer kept after, so the work is done at most once: where
    this process dies in between, a repetition is refused. Nothing is tried a second time.
    """
    with transaction.atomic():
        kept = idempotency.begin(caller, key, params, now=now)
    if kept is not None:
        return Answer(kept.status, kept.body, {REPLAYED: "true"})
    try:
        answer = Answer(200, work(caller))
    except Denied as refusal:
        answer = record_refusal(caller, refusal, now=now)
        if key is not None and refusal.deny.code in idempotency.NOT_KEPT:
            idempotency.release(caller, key)
            return answer
    idempotency.keep(caller, key, answer.status, answer.body)
    return answer


def retry(work: Callable[[], T]) -> T:
    """Do it again where PostgreSQL broke a deadlock: the transaction has left nothing behind."""
    for _ in range(ATTEMPTS - 1):
        try:
            return work()
        except OperationalError as problem:
            if getattr(problem.__cause__, "sqlstate", "") not in TRANSIENT:
                raise
    return work()


def refuse_call(caller: Caller, name: str, refusal: Denied, *, now: datetime) -> Answer:
    """Answer a call whose parameters could not even be read; recorded like any refusal."""
    if caller.pause is not None:
        refusal = Denied(caller.pause.refusal)
    return record_refusal(replace(caller, tool=name[:64]), refusal, now=now)


def refuse_paused(caller: Caller, name: str, *, now: datetime) -> Answer | None:
    """Answer a paused agent at an address that is no call of a tool; None: it is not paused."""
    if caller.pause is None:
        return None
    return refuse_call(caller, name, Denied(caller.pause.refusal), now=now)


def _require_running(caller: Caller) -> None:
    """Refuse before anything else, a kept answer too. Raises Denied AGENT_PAUSED."""
    if caller.pause is not None:
        raise Denied(caller.pause.refusal)


def run(caller: Caller, name: str, params: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Pass the execution gate, check the parameters, let the tool act. Raises Denied."""
    tool, _ = admit(caller, name)
    if not tool.read_only:
        require_space()
        quotas.charge_bytes(caller=caller, size=caller.args_size, now=now)
    result = tool.function(caller, validate(tool, params), now)
    return {"ok": True, "tool_name": name, "result": result}


def admit(caller: Caller, name: str) -> tuple[Tool, Allow]:
    """Pass the execution gate: the tool, and what allowed it. Raises Denied."""
    tool = REGISTRY.get(name)
    allowed = caller.require(can_use(tool, name, caller.holder))
    return cast("Tool", tool), allowed


def validate(tool: Tool, params: Mapping[str, Any]) -> Any:
    """Build the tool's parameters; a forged sender is ignored (Spec: mail 12).

    Raises Denied INVALID_PARAMS with details: field → problem.
    """
    if any(name in params for name in FORGED_SENDER):
        params = _without_forged_sender(tool, params)
    try:
        return tool.params.model_validate(params)
    except ValidationError as problems:
        found = problems.errors(include_url=False, include_input=False)
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


def _without_forged_sender(tool: Tool, params: Mapping[str, Any]) -> Mapping[str, Any]:
    known = {field.alias or key for key, field in tool.params.model_fields.items()}
    return {k: v for k, v in params.items() if k in known or k not in FORGED_SENDER}


def _problem_of(problem: ErrorDetails) -> str:
    """What is wrong with a value, as someone who does not know Python says it."""
    if problem["type"] in ("model_type", "dict_type"):
        return "must be an object"
    if problem.get("ctx", {}).get("pattern") == r"\S":
        return "must hold more than spaces"
    return problem["msg"].removeprefix("Value error, ")


def _field_of(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part)[:64] for part in loc) or "body"


def record_refusal(caller: Caller, refusal: Denied, *, now: datetime) -> Answer:
    """Record a refusal and answer it. A refusal that could not be recorded is still a refusal.

    That the disk is full is not recorded: the event would need the room that is missing.
    """
    deny = with_usable_step(refusal.deny, caller)
    if deny.code is Code.STORAGE_FULL:
        log.warning("storage_full", tool=caller.tool)
        return answer_denial(deny, tool=caller.tool, mode=caller.session.mode)
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
            (refusal.on_refused or record_alone)(event)
    except Exception:
        log.exception("denial_not_recorded", code=deny.code, tool=caller.tool)
    wake(caller.agent.id)
    return answer_denial(deny, tool=caller.tool, mode=caller.session.mode)


def explain(caller: Caller, name: str, params: Mapping[str, Any], *, now: datetime) -> Explanation:
    """What a call would answer and by which rule, without doing it; that it was asked is recorded.

    Who asks about every call and makes none would otherwise search the rules unseen.
    """
    decision = decide(caller, name, params, now=now)
    record_alone(
        Event.by(
            caller.calling(name[:64], params),
            Action.CALL_EXPLAINED,
            at=now,
            details={
                "allowed": isinstance(decision, Allow),
                "code": "" if isinstance(decision, Allow) else decision.code.value,
                "rule": decision.rule,
            },
        )
    )
    if isinstance(decision, Deny):
        return {
            "allowed": False,
            "error_code": decision.code,
            "rule": decision.rule,
            "message": decision.message,
        }
    return {
        "allowed": True,
        "error_code": None,
        "rule": decision.rule,
        "message": f"{name} would be carried out",
    }


def decide_for_people(question: CallQuestion) -> Decision:
    """Decide a call that a person asks about, in a session that exists for the question only."""
    caller = Caller(
        agent=question.agent,
        policy=question.policy,
        session=CallerSession("", question.mode),
        pause=pause_of(organisation_id=question.policy.organisation_id, agent_id=question.agent.id),
    )
    return decide(caller, question.tool, question.params, now=timezone.now())


def decide(
    caller: Caller, name: str, params: Mapping[str, Any] | None, *, now: datetime
) -> Decision:
    """The decision on a call and the rule behind it; without parameters, the gate's alone.

    The very code of the call decides, in a transaction that is rolled back; a tool whose effects
    no rollback undoes declares a `dry_run`.
    """
    caller = caller.calling(name, params or {})
    try:
        return retry(partial(_rehearse, caller, name, params, now))
    except Denied as refusal:
        return refusal.deny


def _rehearse(caller: Caller, name: str, params: Mapping[str, Any] | None, now: datetime) -> Allow:
    """Do all of a call and roll it back: the last rule that allowed it. Raises Denied."""
    with transaction.atomic():
        tool, gate = admit(caller, name)
        if params is None:
            return gate
        valid = validate(tool, params)
        (tool.dry_run or tool.function)(caller, valid, now)
        transaction.set_rollback(True)
    return Allow(caller.allowed_by[-1] or gate.rule)
