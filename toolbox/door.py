"""The one door: every call of an agent enters here, is decided, acts once, and is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from django.db import connection, transaction

from core.actions import Action
from core.actors import denial
from core.database import retry_broken
from core.decision import Code, Denied
from core.events import Event
from ledger.services import record_alone
from toolbox import idempotency
from toolbox.answers import Answer, answer_denial
from toolbox.caller import Caller
from toolbox.denial_limits import may_record
from toolbox.faults import fault_of
from toolbox.gate import run
from toolbox.registry import REGISTRY, Tool
from toolbox.sessions import policy_now
from toolbox.usable_steps import with_usable_step
from toolbox.wake import wake

log = structlog.get_logger(__name__)

REPLAYED = "Idempotency-Replayed"


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
        if caller.pause is not None:  # before anything else, a kept answer too
            return answer_refused_call(caller, Denied(caller.pause.refusal), now=now)
        try:
            tool = REGISTRY.get(name)
            if tool is not None and tool.acts_outside:
                return _answer_outside(tool, caller, params, work, now, idempotency_key)
            if idempotency_key is None:
                only_reads = tool is not None and tool.read_only
                return Answer(200, retry_broken(partial(work, caller), is_repeatable=only_reads))
            return retry_broken(
                partial(_answer_once, caller, params, work, now, idempotency_key, is_final),
                is_repeatable=True,
            )
        except Denied as refusal:
            return answer_refused_call(caller, refusal, now=now)
    except Exception as problem:
        log.exception("call_failed", tool=caller.tool)
        return answer_denial(fault_of(problem), tool=caller.tool, mode=caller.session.mode)


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
            answer = answer_refused_call(caller, refusal, now=now)
        if is_final(answer):
            idempotency.keep(caller, key, answer.status, answer.body, now=now)
        else:
            idempotency.release(caller, key)
        return answer


def _answer_outside(
    tool: Tool,
    caller: Caller,
    params: Mapping[str, Any],
    work: Callable[[Caller], Mapping[str, Any]],
    now: datetime,
    key: str | None,
) -> Answer:
    """Answer a call whose tool waits for others: no transaction is open meanwhile.

    The key is claimed before and the answer kept after, so the work is done at most once: where
    this process dies in between, a repetition is refused. Where the connection was lost, or
    PostgreSQL broke a deadlock, only work that changes nothing more when it is repeated is tried
    again. What was read is not told to a caller whose key was revoked meanwhile (Spec: wire 3).
    """
    with transaction.atomic():
        kept = idempotency.begin(caller, key, params, now=now)
    if kept is not None:
        return Answer(kept.status, kept.body, {REPLAYED: "true"})
    try:
        done = partial(work, caller)
        repeatable = tool.read_only or tool.idempotent
        answer = Answer(200, retry_broken(done, is_repeatable=True) if repeatable else done())
        if tool.read_only:
            policy_now(caller)  # raises
    except Denied as refusal:
        answer = answer_refused_call(caller, refusal, now=now)
        if key is not None and refusal.deny.code in idempotency.NOT_KEPT:
            idempotency.release(caller, key)
            return answer
    keep = partial(idempotency.keep, caller, key, answer.status, answer.body, now=now)
    retry_broken(keep, is_repeatable=True)
    return answer


def refuse_call(caller: Caller, name: str, refusal: Denied, *, now: datetime) -> Answer:
    """Answer a call whose parameters could not even be read; recorded like any refusal."""
    if caller.pause is not None:
        refusal = Denied(caller.pause.refusal)
    return answer_refused_call(caller.at(name), refusal, now=now)


def refuse_paused(caller: Caller, name: str, *, now: datetime) -> Answer | None:
    """Answer a paused agent at an address that is no call of a tool; None: it is not paused."""
    if caller.pause is None:
        return None
    return refuse_call(caller, name, Denied(caller.pause.refusal), now=now)


def answer_refused_call(caller: Caller, refusal: Denied, *, now: datetime) -> Answer:
    """Record a refusal and answer it. A refusal that could not be recorded is still a refusal.

    That the disk is full is not recorded: the event would need the room that is missing. Where the
    organisation's quota is used up, few are.
    """
    deny = with_usable_step(refusal.deny, caller)
    if deny.code is Code.STORAGE_FULL:
        which = str(refusal.__cause__ or deny.message)[:300]
        log.warning("storage_full", tool=caller.tool, which=which)
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
            if may_record(agent=caller.agent.id, policy=caller.policy, now=now):
                (refusal.on_refused or record_alone)(event)
    except Exception:
        log.exception("denial_not_recorded", code=deny.code, tool=caller.tool)
    wake(caller.agent.id)
    return answer_denial(deny, tool=caller.tool, mode=caller.session.mode)
