"""What a call would answer and why: the very code of the call, rolled back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from core.actions import Action
from core.database import database_now, retry_broken
from core.decision import Allow, Code, Decision, Denied, Deny
from core.events import Event
from ledger.services import record_alone
from orgchart.explaining import CallQuestion
from orgchart.pauses.services import pause_of
from toolbox.caller import Caller, CallerSession
from toolbox.denial_limits import may_record
from toolbox.gate import admit, require_size, validate
from toolbox.quotas import charging
from toolbox.results import Explanation
from toolbox.space import require_space


def explain(caller: Caller, name: str, params: Mapping[str, Any], *, now: datetime) -> Explanation:
    """What a call would answer and by which rule, without doing it; that it was asked is recorded.

    Who asks about every call and makes none would otherwise search the rules unseen.
    """
    decision = _decide_within_quotas(caller, name, params, now=now)
    if not _is_full(decision) and may_record(agent=caller.agent.id, policy=caller.policy, now=now):
        _record(caller.calling(name[:64], params), decision, now=now)
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


def _decide_within_quotas(
    caller: Caller, name: str, params: Mapping[str, Any], *, now: datetime
) -> Decision:
    """The decision; what a call writes is written, and takes room, although it is rolled back."""
    asking = caller.calling(name, params)
    try:
        tool, _ = admit(asking, name)
        require_size(asking.args_size, tool.largest_body, what=f"a body of {name}")
        if tool.stores:
            require_space()
            charging.charge_bytes(caller=caller, size=asking.args_size, now=now)
    except Denied as refusal:
        return refusal.deny
    return decide(caller, name, params, now=now)


def _is_full(decision: Decision) -> bool:
    """Whether the room for an event is missing too."""
    return isinstance(decision, Deny) and decision.code is Code.STORAGE_FULL


def _record(caller: Caller, decision: Decision, *, now: datetime) -> None:
    details = {
        "allowed": isinstance(decision, Allow),
        "code": "" if isinstance(decision, Allow) else decision.code.value,
        "rule": decision.rule,
    }
    record_alone(Event.by(caller, Action.CALL_EXPLAINED, at=now, details=details))


def decide_for_people(question: CallQuestion) -> Decision:
    """Decide a call that a person asks about, in a session that exists for the question only."""
    caller = Caller(
        agent=question.agent,
        policy=question.policy,
        session=CallerSession("", question.mode),
        pause=pause_of(organisation_id=question.policy.organisation_id, agent_id=question.agent.id),
    )
    return decide(caller, question.tool, question.params, now=database_now())


def decide(
    caller: Caller, name: str, params: Mapping[str, Any] | None, *, now: datetime
) -> Decision:
    """The decision on a call and the rule behind it; without parameters, the gate's alone.

    The very code of the call decides, in a transaction that is rolled back; a tool whose effects
    no rollback undoes declares a `dry_run`.
    """
    caller = caller.calling(name, params or {})
    try:
        return retry_broken(partial(_rehearse, caller, name, params, now))
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
