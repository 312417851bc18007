"""From an API key to a Caller in one query: key, agent, pause, session, mode, frame, rate."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import QuerySet

from core.actions import Action
from core.actors import denial
from core.database import fetch_row, limit_lock_waits, retry_broken
from core.decision import Code, Denied, refuse
from core.events import Event
from core.key_form import KEY_PREFIX
from ledger.services import record_alone
from orgchart.keys import digest_of
from orgchart.models import ApiKey
from orgchart.pauses.rules import PauseFacts
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import ToolMode
from orgchart.policy_cache import POLICIES, current_policy
from toolbox import rates
from toolbox.caller import Caller, CallerSession, Clock
from toolbox.denial_limits import may_record
from toolbox.models import Session

log = structlog.get_logger(__name__)

AUTHENTICATE = """
WITH known AS (
    SELECT a.id AS agent_id, a.organisation_id, o.policy_version
    FROM orgchart_apikey k
    JOIN orgchart_agent a ON a.id = k.agent_id AND a.active
    JOIN orgchart_organisation o ON o.id = a.organisation_id
    WHERE k.digest = %(digest)s AND k.revoked_at IS NULL
), rate AS ({rate})
SELECT known.agent_id, known.organisation_id, known.policy_version, rate.tokens, rate.taken,
       s.id, s.mode, g.mode, s.contract_ref, f.id, f.allowed_tools,
       p.reason, p.paused_at, p.agent_id IS NULL, p.by_board, clock_timestamp()
FROM known CROSS JOIN rate
LEFT JOIN toolbox_session s ON s.agent_id = known.agent_id
    AND (s.id = %(session)s::uuid OR (%(session)s::uuid IS NULL AND s.standing))
LEFT JOIN LATERAL (
    SELECT mode FROM toolbox_modegrant
    WHERE session_id = s.id AND closed_at IS NULL AND mode = s.mode
      AND contract_ref IN ('', s.contract_ref)
    ORDER BY opened_at DESC LIMIT 1
) g ON true
LEFT JOIN LATERAL (
    SELECT id, allowed_tools FROM toolbox_frame
    WHERE assignee_id = known.agent_id AND state = 'taken'
    ORDER BY id DESC LIMIT 1
) f ON true
LEFT JOIN LATERAL (
    SELECT reason, paused_at, agent_id, by_board FROM orgchart_pause
    WHERE organisation_id = known.organisation_id AND ended_at IS NULL
      AND (agent_id IS NULL OR agent_id = known.agent_id)
    ORDER BY agent_id NULLS FIRST LIMIT 1
) p ON true
"""
COUNTED, COUNTING = (AUTHENTICATE.format(rate=rate) for rate in (rates.COUNTED, rates.COUNT))
"""For a call that was counted ahead, and for one that counts itself."""

ISSUED = """
SELECT a.id, a.handle, a.organisation_id, clock_timestamp()
FROM orgchart_apikey k JOIN orgchart_agent a ON a.id = k.agent_id WHERE k.digest = %s
"""
"""Whose a key was, good or not."""

RENEW = (
    "ask the people who run this installation for a new key (`manage.py issue_key ORG AGENT`) and "
    "send it as `Authorization: Bearer nxs_…`"
)


NO_SESSION = UUID(int=0)
"""Replaces a malformed session id: no session has it."""

NO_WAIT = 0.1
"""Seconds that the question whose key it is waits for a lock at most."""
RECORD_INTERVAL = 60.0
"""Seconds between two events about the same refused key, in one process."""

_last_recorded: dict[bytes, float] = {}
"""The time of the last event by the key's digest; only issued keys, so its size is bounded."""
_owners: dict[int, tuple[int, int]] = {}
"""Agent and organisation of a key that was good and not refused since, by Python's hash of it:
asked for each request before it is read, so cheaply, and believed for nothing but its turn."""


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """Whose call is refused before there is a caller."""

    id: int
    handle: str
    organisation_id: int


@dataclass(frozen=True, slots=True)
class StoredMode:
    """The mode in the session row, and the mode of the open grant that backs it, if any."""

    mode: str | None
    granted: str | None


def authenticate(
    *, authorization: str, session_id: str | None, request_id: str, is_counted: bool = False
) -> Caller:
    """The caller that the key belongs to; nothing else in a request says who calls (Spec: wire 1).

    `is_counted` where an earlier proof of the same request took of the agent's rate.

    Raises Denied: UNAUTHENTICATED, NOT_FOUND for a session that is not the agent's own,
    RATE_LIMITED with `retry_after` seconds in details. Refusals
    of a known agent are recorded: another agent's session, a key that was valid once.
    """
    key = _parse_key(authorization)
    digest = digest_of(key)
    rate = rates.limit()
    begun = time.monotonic()
    statement = COUNTED if is_counted or rates.AHEAD.take(digest, rate.per_second) else COUNTING
    session = None if session_id is None else _session_uuid(session_id)
    known = {"digest": digest, "session": session, **rate.values}
    # The first statement of a call: done twice it takes more from the agent's rate.
    found = retry_broken(partial(fetch_row, statement, known), is_repeatable=True)
    if found is None:
        _owners.pop(hash(key), None)
        raise _refused_key(digest, request_id)
    agent_id, organisation_id, version, tokens, taken, *row = found
    _owners[hash(key)] = agent_id, organisation_id
    sid, mode, granted, contract, frame_id, frame_tools, *pause, said = row
    if not taken:
        raise rate.exceeded(tokens)
    if taken > 1:
        rates.AHEAD.put(digest, taken - 1, full_at=begun + rate.seconds_to_fill(tokens))
    policy = POLICIES.get(organisation_id, version)
    if sid is None:
        if session_id is not None:
            who = KnownAgent(agent_id, policy.by_id[agent_id].handle, organisation_id)
            raise record_refused_caller(_unknown_session(session_id), who, request_id, now=said)
        sid = get_or_create_standing_session(agent_id, organisation_id, now=said)
        mode = ToolMode.CHAT_SAFE
    agent = policy.by_id.get(agent_id)
    if agent is None or not agent.active:
        raise refuse(Code.UNAUTHENTICATED, "this key's agent is deactivated", RENEW)
    effective = effective_mode(StoredMode(mode, granted), policy, session_id=str(sid))
    return Caller(
        agent=agent,
        policy=policy,
        session=CallerSession(id=str(sid), mode=effective, contract=contract or ""),
        request_id=request_id,
        frame_id=frame_id,
        frame_tools=None if frame_tools is None else frozenset(frame_tools),
        pause=None if pause[0] is None else PauseFacts(*pause),
        key=digest,
        clock=Clock(said),
    )


def owner_of_key(authorization: str) -> tuple[int, int] | None:
    """The agent and organisation that this process last saw a key prove; it proves nothing now."""
    try:
        return _owners.get(hash(_parse_key(authorization)))
    except Denied:
        return None


def meet_owner(authorization: str) -> None:
    """Find out whose key it is, for its turn; where that fails, the call itself says why.

    It hardly waits for a lock: the call would wait a second time.
    """
    with suppress(Denied, DatabaseError):
        key = _parse_key(authorization)
        with transaction.atomic():
            limit_lock_waits(NO_WAIT)
            keys = _valid_keys(digest_of(key))
            found = keys.values_list("agent_id", "agent__organisation_id").first()
        if found is not None:
            _owners[hash(key)] = found


def is_valid_key(authorization: str) -> bool:
    """Whether this is an active agent's valid key; takes nothing from its rate."""
    try:
        return is_valid_digest(digest_of(_parse_key(authorization)))
    except Denied:
        return False


def is_valid_digest(digest: bytes) -> bool:
    """Whether this is the digest of an active agent's valid key."""
    return _valid_keys(digest).exists()


def _valid_keys(digest: bytes) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(digest=digest, revoked_at=None, agent__active=True)


def effective_mode(stored: StoredMode, policy: Policy, *, session_id: str) -> ToolMode:
    """The effective mode of a session; chat_safe on every anomaly, with a warning (Spec: modes 10).

    Coding needs all three: the row says so, an open grant backs it, the organisation enables it.
    """
    if stored.mode == ToolMode.CHAT_SAFE:
        return ToolMode.CHAT_SAFE
    if stored.mode not in list(ToolMode):
        problem = "unknown_mode"
    elif ToolMode(stored.mode) not in policy.enabled_modes:
        problem = "mode_not_enabled"
    elif stored.granted != stored.mode:
        problem = "mode_without_grant"
    else:
        return ToolMode(stored.mode)
    log.warning(
        "session_mode_fell_back",
        problem=problem,
        session=session_id,
        stored=stored.mode,
        organisation=policy.organisation,
    )
    return ToolMode.CHAT_SAFE


def get_or_create_standing_session(agent_id: int, organisation_id: int, *, now: datetime) -> UUID:
    """The agent's standing session; the first call creates it, of concurrent ones exactly one."""
    Session.objects.bulk_create(
        [
            Session(
                agent_id=agent_id,
                organisation_id=organisation_id,
                standing=True,
                mode=settings.SESSION_DEFAULT_MODE,
                opened_at=now,
            )
        ],
        ignore_conflicts=True,
    )
    return Session.objects.values_list("id", flat=True).get(agent_id=agent_id, standing=True)


def _parse_key(authorization: str) -> str:
    scheme, _, key = authorization.partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key.startswith(KEY_PREFIX) or len(key) > 200:
        raise refuse(Code.UNAUTHENTICATED, "no API key: send `Authorization: Bearer nxs_…`", RENEW)
    return key


def _session_uuid(session_id: str) -> str:
    try:
        return str(UUID(session_id))
    except ValueError:
        return str(NO_SESSION)


def _refused_key(digest: bytes, request_id: str) -> Denied:
    """The refusal of a key; recorded for the agent it was issued to, once per RECORD_INTERVAL.

    Calls with a refused key are not rate limited, and must not flood the ledger.
    """
    refusal = refuse(
        Code.UNAUTHENTICATED, "this key is unknown, revoked or its agent deactivated", RENEW
    )
    issued = fetch_row(ISSUED, [digest])
    if issued is None:
        return refusal
    *who, said = issued
    now = time.monotonic()
    if now - _last_recorded.get(digest, -RECORD_INTERVAL) < RECORD_INTERVAL:
        return refusal
    _last_recorded[digest] = now
    return record_refused_caller(refusal, KnownAgent(*who), request_id, now=said)


def record_refused_caller(
    refusal: Denied, who: KnownAgent, request_id: str, *, now: datetime
) -> Denied:
    """Record the refusal of a known agent, if database and quota allow it, and return it."""
    event = Event(
        action=Action.TOOL_DENIED,
        actor=f"agent:{who.handle}",
        at=now,
        organisation_id=who.organisation_id,
        request_id=request_id,
        **denial(refusal.deny),
    )
    try:
        if may_record(agent=who.id, policy=current_policy(who.organisation_id), now=now):
            record_alone(event)
    except DatabaseError:
        log.exception("denial_not_recorded", code=refusal.deny.code)
    return refusal


def _unknown_session(session_id: str) -> Denied:
    return refuse(
        Code.NOT_FOUND,
        f"you have no session {session_id[:64]!r}",
        "leave X-Nexus-Session out to use your standing session",
    )
