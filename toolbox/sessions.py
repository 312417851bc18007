"""Sessions and their modes, which contracts and people switch, never the agent itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction

from core.actions import Action
from core.actors import Actor
from core.decision import Code, refuse
from core.deeds import Deed, require_deed
from ledger.services import record
from orgchart.compiling import current_policy
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import ToolMode
from toolbox.authentication import StoredMode, effective_mode
from toolbox.caller import Caller, CallerSession
from toolbox.models import ModeGrant, Session
from toolbox.results import SessionDetails, SessionSummary
from toolbox.wake import wake


def summarise_session(session: CallerSession) -> SessionSummary:
    """A session as clients see it."""
    return {"id": session.id, "mode": session.mode, "contract": session.contract or None}


def open_session(*, caller: Caller, params: Mapping[str, object], now: datetime) -> SessionDetails:
    """Open another session of the caller, in the default mode.

    Raises Denied INVALID_PARAMS for any parameter: an agent never chooses its own mode.
    """
    if params:
        raise refuse(
            Code.INVALID_PARAMS,
            f"a session takes no parameters; {min(params)[:64]} was given",
            "open it with an empty object; contracts and people open its mode",
            rule="an agent never switches its own mode",
        )
    with transaction.atomic():
        row = Session.objects.create(
            organisation_id=caller.organisation_id,
            agent_id=caller.agent.id,
            mode=settings.SESSION_DEFAULT_MODE,
            opened_at=now,
        )
        record(Action.SESSION_OPENED, by=caller, at=now, subject=f"session:{row.id}")
    session = CallerSession(str(row.id), ToolMode(row.mode))
    return {**summarise_session(session), "opened_at": now}


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


def effective_session(row: Session, policy: Policy) -> CallerSession:
    """A session row with its effective mode (`get_mode` in seed 002 §5.2)."""
    grant = row.grants.filter(closed_at=None, mode=row.mode).order_by("-opened_at").first()
    mode = effective_mode(
        StoredMode(row.mode, grant.mode if grant else None), policy, session_id=str(row.id)
    )
    backed = grant is not None and mode == grant.mode
    return CallerSession(str(row.id), mode, grant.contract_ref if backed and grant else "")


def open_mode(
    *,
    session_id: str,
    mode: ToolMode,
    caller: Actor,
    now: datetime,
    reason: str,
    contract_ref: str = "",
) -> None:
    """Switch a session to a mode under a grant.

    Raises Denied MODE_DENIED if the organisation does not enable the mode, INVALID_PARAMS for
    an empty reason, NOT_FOUND for a session of another organisation.
    """
    if not contract_ref:  # a contract opens the mode without a person
        require_deed(caller, Deed.SWITCH_MODE, reason=reason)
    with transaction.atomic():
        row = _lock_session(session_id, caller)
        if mode not in current_policy(row.organisation_id).enabled_modes:
            raise refuse(
                Code.MODE_DENIED,
                f"{mode} is not enabled in this organisation",
                "enable it with `org set ORG enabled_modes=…` first, or go on in chat_safe",
                rule="enabled_modes",
            )
        ModeGrant.objects.get_or_create(
            session=row,
            mode=mode,
            contract_ref=contract_ref,
            closed_at=None,
            defaults={"reason": reason, "opened_by": caller.actor, "opened_at": now},
        )
        Session.objects.filter(id=row.id).update(mode=mode)
        wake(row.agent_id)
        record(
            Action.SESSION_MODE_OPENED,
            by=caller,
            at=now,
            subject=f"session:{row.id}",
            reason=reason,
            for_agent_id=row.agent_id,
            details={"mode": mode, "contract": contract_ref},
        )


def close_mode(
    *, caller: Actor, now: datetime, reason: str, session_id: str = "", contract_ref: str = ""
) -> int:
    """Close the open grants of a session or of a contract, and return how many there were.

    A session without an open grant is in chat_safe mode again.
    """
    if session_id:  # the end of a contract closes its modes without a person
        require_deed(caller, Deed.SWITCH_MODE, reason=reason)
    if bool(session_id) == bool(contract_ref):
        raise ValueError("name a session or a contract")
    with transaction.atomic():
        grants = ModeGrant.objects.select_for_update().filter(
            closed_at=None, session__organisation_id=caller.organisation_id
        )
        open_grants = list(
            grants.filter(session_id=session_id)
            if session_id
            else grants.filter(contract_ref=contract_ref)
        )
        for grant in open_grants:
            # `now` may be older: this call waited for the row while another opened the grant.
            grant.closed_at, grant.closed_by = max(now, grant.opened_at), caller.actor
            grant.save(update_fields=["closed_at", "closed_by"])
            row = Session.objects.select_for_update().get(id=grant.session_id)
            if not row.grants.filter(closed_at=None, mode=row.mode).exists():
                Session.objects.filter(id=row.id).update(mode=ToolMode.CHAT_SAFE)
            wake(row.agent_id)
            record(
                Action.SESSION_MODE_CLOSED,
                by=caller,
                at=now,
                subject=f"session:{row.id}",
                reason=reason,
                for_agent_id=row.agent_id,
                details={"mode": grant.mode, "contract": grant.contract_ref},
            )
    return len(open_grants)


def _lock_session(session_id: str, caller: Actor) -> Session:
    row = (
        Session.objects.select_for_update()
        .filter(id=session_id, organisation_id=caller.organisation_id)
        .first()
    )
    if row is None:
        raise refuse(Code.NOT_FOUND, "there is no such session here", "choose one of the list")
    return row
