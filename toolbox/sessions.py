"""Sessions: how an agent opens one, and the mode that each has now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction

from core.actions import Action
from core.decision import Code, Denied, refuse
from core.hooks import Hook
from ledger.services import record
from orgchart.pauses.services import pause_of
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import ToolMode
from orgchart.policy_cache import current_policy
from toolbox.authentication import RENEW, StoredMode, effective_mode, is_valid_digest
from toolbox.caller import Caller, CallerSession
from toolbox.frames.stack import present_frame
from toolbox.models import Session
from toolbox.modes import bind_session
from toolbox.quotas.charging import require_session
from toolbox.results import SessionDetails, SessionSummary

contract_sessions = Hook[[Caller, str], ToolMode](
    "the mode of a contract that its assignee opens a session for"
)


def summarise_session(session: CallerSession) -> SessionSummary:
    """A session as clients see it."""
    return {"id": session.id, "mode": session.mode, "contract": session.contract or None}


def open_session(*, caller: Caller, params: Mapping[str, object], now: datetime) -> SessionDetails:
    """Open another session of the caller, in the default mode or for one of its contracts.

    Raises Denied INVALID_PARAMS for any other parameter: an agent never chooses its own mode; and
    what the contract's room refuses (NOT_FOUND, NOT_YOURS, INVALID_TRANSITION).
    """
    contract = params.get("contract")
    unknown = min(set(params) - {"contract"}, default=None)
    if unknown is not None:
        message = "a session takes no parameters but contract (the id of a contract of yours); "
        raise _refuse_params(f"{message}{unknown[:64]} was given")
    if "contract" in params and not _is_reference(contract):
        raise _refuse_params("contract: must be the id of a contract of yours")
    with transaction.atomic():
        require_session(caller=caller, now=now)
        row = Session.objects.create(
            organisation_id=caller.organisation_id,
            agent_id=caller.agent.id,
            mode=settings.SESSION_DEFAULT_MODE,
            opened_at=now,
        )
        record(Action.SESSION_OPENED, by=caller, at=now, subject=f"session:{row.id}")
        for mode in contract_sessions(caller, str(contract)) if contract else ():
            bind_session(
                session_id=str(row.id),
                mode=mode,
                caller=caller,
                now=now,
                reason=f"a session for {contract}",
                contract_ref=str(contract),
            )
            row.refresh_from_db()
    session = effective_session(row, caller.policy)
    return {**summarise_session(session), "opened_at": now}


def _refuse_params(message: str) -> Denied:
    return refuse(
        Code.INVALID_PARAMS,
        message,
        "open it with an empty object, or with a contract of yours in progress",
        rule="an agent never switches its own mode",
    )


def _is_reference(value: object) -> bool:
    return (
        isinstance(value, str) and 0 < len(value) <= 32 and value.isascii() and value.isprintable()
    )


def read_session(*, caller: Caller, session_id: str) -> SessionDetails:
    """One of the caller's sessions. Raises Denied NOT_FOUND, also for other agents' sessions."""
    try:
        number = UUID(session_id)
    except ValueError:
        number = None
    row = number and Session.objects.filter(id=number, agent_id=caller.agent.id).first()
    if not row:
        raise refuse(
            Code.NOT_FOUND, "you have no such session", "open one with POST /api/v1/sessions"
        )
    return {**summarise_session(effective_session(row, caller.policy)), "opened_at": row.opened_at}


def policy_now(caller: Caller) -> Policy:
    """The policy as it is by now, for a call that lasts (Spec: wire 3).

    Raises Denied AGENT_INACTIVE, UNAUTHENTICATED once the key of the call was revoked.
    """
    policy = current_policy(caller.organisation_id)
    agent = policy.by_id.get(caller.agent.id)
    if agent is None or not agent.active:
        raise refuse(
            Code.AGENT_INACTIVE, f"{caller.handle} is deactivated", "nothing is left to do"
        )
    if caller.key and not is_valid_digest(caller.key):
        raise refuse(Code.UNAUTHENTICATED, "the key of this call was revoked", RENEW)
    return policy


def caller_now(caller: Caller) -> Caller:
    """The caller as its next call would find it, for calls that last. Raises as `policy_now`."""
    policy = policy_now(caller)
    agent = policy.by_id[caller.agent.id]
    row = Session.objects.get(id=caller.session.id)
    frame_id, frame_tools = present_frame(agent.id)
    return replace(
        caller,
        agent=agent,
        policy=policy,
        session=effective_session(row, policy),
        frame_id=frame_id,
        frame_tools=frame_tools,
        pause=pause_of(organisation_id=policy.organisation_id, agent_id=agent.id),
    )


def effective_session(row: Session, policy: Policy) -> CallerSession:
    """A session row with its effective mode (Spec: modes 7)."""
    grant = row.backing_grants().filter(mode=row.mode).first()
    mode = effective_mode(
        StoredMode(row.mode, grant.mode if grant else None), policy, session_id=str(row.id)
    )
    return CallerSession(str(row.id), mode, row.contract_ref)
