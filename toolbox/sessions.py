"""Sessions and their modes, switched by contracts and people, never by the agent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
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
from toolbox.caller import Caller, SessionView
from toolbox.models import ModeGrant, Session
from toolbox.wake import wake


def shown(view: SessionView) -> dict[str, Any]:
    """A session as clients see it."""
    return {"id": view.id, "mode": view.mode, "contract": view.contract or None}


def open_session(*, caller: Caller, params: Mapping[str, Any], now: datetime) -> dict[str, Any]:
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
    view = SessionView(str(row.id), ToolMode(row.mode), standing=False)
    return {**shown(view), "opened_at": now}


def read_session(*, caller: Caller, session_id: str) -> dict[str, Any]:
    """One of the caller's sessions. Raises Denied NOT_FOUND for anybody else's too."""
    try:
        wanted = UUID(session_id)
    except ValueError:
        wanted = None
    row = wanted and Session.objects.filter(id=wanted, agent_id=caller.agent.id).first()
    if not row:
        raise refuse(
            Code.NOT_FOUND, "you have no such session", "open one with POST /api/v1/sessions"
        )
    return {**shown(view_of(row, caller.policy)), "opened_at": row.opened_at}


def view_of(row: Session, policy: Policy) -> SessionView:
    """A session row with its effective mode: what `get_mode` is in seed 002 §5.2."""
    grant = row.grants.filter(closed_at=None, mode=row.mode).order_by("-opened_at").first()
    mode = effective_mode(
        StoredMode(row.mode, grant.mode if grant else None), policy, session_id=str(row.id)
    )
    backed = grant is not None and mode == grant.mode
    return SessionView(
        str(row.id), mode, grant.contract_ref if backed and grant else "", row.standing
    )


def open_mode(
    *,
    session_id: str,
    mode: ToolMode,
    caller: Actor,
    now: datetime,
    reason: str,
    contract_ref: str = "",
) -> None:
    """Switch a session to a mode under a grant; in the transaction of its cause.

    Raises Denied MODE_DENIED where the organisation does not enable the mode, INVALID_PARAMS for
    an empty reason, NOT_FOUND for a session of another organisation.
    """
    if not contract_ref:  # else it is the contract that opens the mode
        require_deed(caller, Deed.SWITCH_MODE, reason=reason)
    with transaction.atomic():
        row = _locked(session_id, caller)
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
    """Close the grants of a session or of a contract; a session without one is chat_safe again.

    Returns how many were closed. In the transaction of its cause.
    """
    if session_id:  # else it is the contract that ends
        require_deed(caller, Deed.SWITCH_MODE, reason=reason)
    if bool(session_id) == bool(contract_ref):
        raise ValueError("name a session or a contract")
    with transaction.atomic():
        grants = ModeGrant.objects.select_for_update().filter(
            closed_at=None, session__organisation_id=caller.organisation_id
        )
        chosen = list(
            grants.filter(session_id=session_id)
            if session_id
            else grants.filter(contract_ref=contract_ref)
        )
        for grant in chosen:
            # Who waited for the opening read its clock before it.
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
    return len(chosen)


def _locked(session_id: str, caller: Actor) -> Session:
    row = (
        Session.objects.select_for_update()
        .filter(id=session_id, organisation_id=caller.organisation_id)
        .first()
    )
    if row is None:
        raise refuse(Code.NOT_FOUND, "there is no such session here", "choose one of the list")
    return row
