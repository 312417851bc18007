"""Switching the mode of sessions: contracts and people do, never the agent itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F, Manager, Q, QuerySet, Value
from django.db.models.functions import Greatest

from core.actions import Action
from core.actors import Actor
from core.database import hold_lock, needs_transaction, rows_of_array
from core.decision import Code, refuse, require_version
from core.events import Event
from core.interventions import record_intervention
from core.permissions import Deed, require_deed
from ledger.services import insert_events, record
from orgchart.models import Agent
from orgchart.policy.vocabulary import ToolMode
from orgchart.policy_cache import current_policy
from toolbox.models import ModeGrant, Session
from toolbox.wake import wake


def open_mode(
    *,
    session_id: str,
    mode: ToolMode,
    caller: Actor,
    now: datetime,
    reason: str,
    contract_ref: str = "",
    expected_switches: int | None = None,
) -> None:
    """Switch a session to a mode under a grant.

    Raises Denied MODE_DENIED if the organisation does not enable the mode, INVALID_PARAMS for
    an empty reason, NOT_FOUND for a session of another organisation, AGENT_INACTIVE where a person
    opens it for a deactivated agent, VERSION_MISMATCH where the session's `switches_of_people`
    are not those that the person saw.
    """
    if not contract_ref:  # a contract opens the mode without a person
        require_deed(caller, Deed.SWITCH_MODE, reason=reason)
    with transaction.atomic():
        if not contract_ref:
            _require_active(session_id, caller)
        row = _lock_session(session_id, caller)
        if expected_switches is not None:
            require_version(
                f"the mode of session {row.id}",
                "open it again",
                expected=expected_switches,
                current=switches_of_people(row.grants),
            )
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
            defaults={
                "organisation_id": row.organisation_id,
                "reason": reason,
                "opened_by": caller.actor,
                "opened_at": now,
            },
        )
        Session.objects.filter(id=row.id).update(
            mode=mode, contract_ref=contract_ref or row.contract_ref
        )
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
        if not contract_ref:
            _record_switch(caller, row, row.mode, "open_mode", reason, now)


def switches_of_people(grants: QuerySet[ModeGrant] | Manager[ModeGrant]) -> int:
    """How often a mode was opened by a person or closed against one, as the version of a form.

    What contracts open and close is not counted: no agent can make a person's form out of date.
    """
    by_person = Q(contract_ref="")
    closed = Q(closed_at__isnull=False) & (by_person | Q(closed_by__startswith="human:"))
    return grants.filter(by_person).count() + grants.filter(closed).count()


def bind_session(
    *, session_id: str, mode: ToolMode, caller: Actor, now: datetime, reason: str, contract_ref: str
) -> None:
    """Let a session work under one contract, in that contract's mode."""
    with transaction.atomic():
        if mode is not ToolMode.CHAT_SAFE:
            open_mode(
                session_id=session_id,
                mode=mode,
                caller=caller,
                now=now,
                reason=reason,
                contract_ref=contract_ref,
            )
            return
        row = _lock_session(session_id, caller)
        row.contract_ref = contract_ref
        _bind([row])


def close_mode(*, caller: Actor, now: datetime, reason: str, session_id: str) -> int:
    """Close the open grants of a session by a person, and return how many there were.

    With them end those of the same contracts in other sessions (Spec: modes 13). A session without
    an open grant is in chat_safe mode again. Raises Denied INVALID_TRANSITION where no grant is
    open, as when another person was faster.
    """
    require_deed(caller, Deed.SWITCH_MODE, reason=reason)
    with transaction.atomic():
        session = _session_of(session_id, caller)
        hold_opening_of_sessions(session.agent_id)  # none begins that would not be closed
        of_session = ModeGrant.objects.filter(session_id=session_id, closed_at=None)
        contracts = of_session.exclude(contract_ref="").values("contract_ref")
        opened = _lock_open_grants(caller).filter(
            Q(session_id=session_id) | Q(contract_ref__in=contracts)
        )
        grants = _close_grants(opened, caller, now, reason)
        if not grants:
            raise refuse(
                Code.INVALID_TRANSITION,
                "no mode of this session is open",
                "open the session's page again: it is in chat_safe mode",
                rule="modes are closed once",
            )
        _bind(_lock_sessions(grants))
        mode = next(one.mode for one in grants if one.session_id == session.id)
        _record_switch(caller, session, mode, "close_mode", reason, now)
    return len(grants)


@needs_transaction
def hold_opening_of_sessions(agent_id: int) -> None:
    """Let an agent open no session until the transaction ends."""
    hold_lock("sessions", agent_id)


@needs_transaction
def close_modes_of_people(*, agent_id: int, caller: Actor, now: datetime, reason: str) -> None:
    """Close the modes that people opened for an agent (Spec: modes 13).

    The statements do not grow with them.
    """
    Agent.objects.select_for_update(no_key=True).get(id=agent_id)  # none is opened meanwhile
    opened = _lock_open_grants(caller).filter(session__agent_id=agent_id, contract_ref="")
    if grants := _close_grants(opened, caller, now, reason):
        _bind(_lock_sessions(grants))


def close_modes_of_former_role(agent_id: int, caller: Actor, now: datetime) -> None:
    """Close the modes that people opened for an agent in the role that it had (Spec: modes 13)."""
    close_modes_of_people(agent_id=agent_id, caller=caller, now=now, reason="it has another role")


def _record_switch(
    caller: Actor, row: Session, mode: str, action: str, reason: str, now: datetime
) -> None:
    """Keep that a person switched the mode of a session; `mode` is what it was before."""
    record_intervention(
        caller,
        deed=Deed.SWITCH_MODE,
        subject=f"session:{row.id}",
        trigger_condition=f"session in {mode}",
        action_taken=action,
        reason=reason,
        now=now,
    )


def release_contract(*, caller: Actor, now: datetime, reason: str, contract_ref: str) -> None:
    """Close the grants of a contract and release the sessions that work under it.

    A released session works under the contract that opened its mode before, if one is open still.
    The statements do not grow with the sessions: an agent opens some hundred a day.
    """
    with transaction.atomic():
        grants = _lock_open_grants(caller).filter(contract_ref=contract_ref)
        _close_grants(grants, caller, now, reason)
        bound = Session.objects.select_for_update().filter(
            organisation_id=caller.organisation_id, contract_ref=contract_ref
        )
        if held := list(bound.order_by("id")):
            _bind(held, released=contract_ref)
        for agent_id in {one.agent_id for one in held}:
            wake(agent_id)


@needs_transaction
def reopen_mode(*, caller: Actor, now: datetime, reason: str, contract_ref: str) -> None:
    """Open a contract's mode again in the session that had it last, if there was one.

    A session that works under another contract by now keeps it. A mode that a person closed stays
    closed.
    """
    last = _grants_of(contract_ref, caller).order_by("-opened_at", "-id").first()
    if last is None or is_closed_by_person(contract_ref, caller):
        return
    other = Session.objects.select_for_update().get(id=last.session_id).contract_ref
    open_mode(
        session_id=str(last.session_id),
        mode=ToolMode(last.mode),
        caller=caller,
        now=now,
        reason=reason,
        contract_ref=contract_ref,
    )
    if other and other != contract_ref:
        row = Session.objects.get(id=last.session_id)
        row.contract_ref = other
        _bind([row])


def _grants_of(contract_ref: str, caller: Actor) -> QuerySet[ModeGrant]:
    return ModeGrant.objects.filter(
        contract_ref=contract_ref, organisation_id=caller.organisation_id
    )


def is_closed_by_person(contract_ref: str, caller: Actor) -> bool:
    """Whether a person closed a mode that the contract opened: only a person opens it again then.

    Spec: modes 13.
    """
    return _grants_of(contract_ref, caller).filter(closed_by__startswith="human:").exists()


def _lock_open_grants(caller: Actor) -> QuerySet[ModeGrant]:
    return ModeGrant.objects.select_for_update(of=("self",)).filter(
        closed_at=None, organisation_id=caller.organisation_id
    )


def _close_grants(
    opened: QuerySet[ModeGrant], caller: Actor, now: datetime, reason: str
) -> list[ModeGrant]:
    """Close locked grants, and return them; who calls this saves the modes of their sessions."""
    closed = list(opened.select_related("session").order_by("id"))
    if closed:
        ids = rows_of_array([one.id for one in closed], "bigint")
        # `now` may be older: this call waited for the row while another opened the grant.
        closed_at = Greatest(F("opened_at"), Value(now))
        ModeGrant.objects.filter(id__in=ids).update(closed_at=closed_at, closed_by=caller.actor)
        insert_events(_closed(grant, caller, now, reason) for grant in closed)
    for agent_id in {one.session.agent_id for one in closed}:
        wake(agent_id)
    return closed


def _closed(grant: ModeGrant, caller: Actor, now: datetime, reason: str) -> Event:
    return Event.by(
        caller,
        Action.SESSION_MODE_CLOSED,
        at=now,
        subject=f"session:{grant.session_id}",
        reason=reason,
        for_agent_id=grant.session.agent_id,
        details={"mode": grant.mode, "contract": grant.contract_ref},
    )


def _lock_sessions(grants: Sequence[ModeGrant]) -> list[Session]:
    ids = rows_of_array([str(one.session_id) for one in grants], "uuid")
    return list(Session.objects.select_for_update().filter(id__in=ids).order_by("id"))


def _bind(held: Sequence[Session], *, released: str | None = None) -> None:
    """Save the contracts that locked sessions work under, with the modes that these back now.

    What worked under the `released` one works under the contract that opened its mode before, if
    one is open still.
    """
    ids = rows_of_array([str(row.id) for row in held], "uuid")
    still_open = ModeGrant.objects.filter(closed_at=None, session__in=ids)
    left = defaultdict[UUID, list[ModeGrant]](list)
    for grant in still_open.order_by("-opened_at", "-id"):
        left[grant.session_id].append(grant)
    changed = defaultdict[tuple[str, str], list[str]](list)
    for row in held:
        grants, contract = left[row.id], row.contract_ref
        if contract == released:
            contract = next((one.contract_ref for one in grants if one.contract_ref), "")
        # As `Session.backing_grants`, which asks for one session.
        backing = (one.mode for one in grants if one.contract_ref in ("", contract))
        changed[next(backing, ToolMode.CHAT_SAFE), contract].append(str(row.id))
    for (mode, contract), rows in changed.items():
        of_these = Session.objects.filter(id__in=rows_of_array(rows, "uuid"))
        of_these.update(mode=mode, contract_ref=contract)


def _require_active(session_id: str, caller: Actor) -> None:
    """Check that a session's agent is active, and let no deactivation overtake this.

    A deactivation closes the modes that people opened; none may be opened after it. Raises Denied
    AGENT_INACTIVE.
    """
    agents = Agent.objects.select_for_update(no_key=True, of=("self",))
    agent = agents.filter(sessions__id=session_id, organisation_id=caller.organisation_id).first()
    if agent is not None and not agent.active:
        raise refuse(
            Code.AGENT_INACTIVE,
            f"{agent.handle} is deactivated: its sessions are in chat_safe mode",
            "activate it first",
            rule="a person's grant ends when the agent is deactivated (spec: modes 13)",
        )


def _lock_session(session_id: str, caller: Actor) -> Session:
    return _session_of(session_id, caller, Session.objects.select_for_update())


def _session_of(session_id: str, caller: Actor, rows: QuerySet[Session] | None = None) -> Session:
    """A session of the caller's organisation, among these rows. Raises Denied NOT_FOUND."""
    found = Session.objects.all() if rows is None else rows
    row = found.filter(id=session_id, organisation_id=caller.organisation_id).first()
    if row is None:
        raise refuse(Code.NOT_FOUND, "there is no such session here", "choose one of the list")
    return row
