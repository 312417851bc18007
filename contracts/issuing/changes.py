"""The changes that an org_change contract may name, and until when; pure (Spec: contracts 13)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from contracts.vocabulary import ContractKind, OrgAct
from core.decision import Allow, Code, Decision, deny
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import RESERVED

HANDLE = re.compile(r"[a-z][a-z0-9_.-]{0,63}\Z")
LIFETIME = timedelta(days=7)
"""How long an org_change contract authorises that names neither an expiry nor a deadline."""


@dataclass(frozen=True, slots=True)
class NamedChange:
    """One change of the organisation, allowed once; the subject of hire is the new handle."""

    act: OrgAct
    subject: str


def resolve_changes(changes: Sequence[NamedChange], policy: Policy) -> list[NamedChange]:
    """The changes with each agent's handle in place of an address or alias."""
    found = []
    for change in changes:
        agent = None if change.act is OrgAct.HIRE else policy.resolve(change.subject)
        found.append(NamedChange(change.act, agent.handle if agent else change.subject))
    return found


def can_name_changes(
    kind: ContractKind, changes: Sequence[NamedChange], policy: Policy
) -> Decision:
    """Decide whether a contract may name these changes: an org_change one or more, others none."""
    if (kind is ContractKind.ORG_CHANGE) != bool(changes):
        return _refused(
            "a contract of kind org_change names what it allows"
            if kind is ContractKind.ORG_CHANGE
            else f"a contract of kind {kind} allows no change of the organisation"
        )
    hired = {change.subject for change in changes if change.act is OrgAct.HIRE}
    for change in changes:
        known = change.subject in policy.names
        if change.act is OrgAct.HIRE and (known or change.subject in RESERVED):
            return _refused(f"hire {change.subject}: that name is taken")
        if change.act is OrgAct.HIRE and not HANDLE.match(change.subject):
            return _refused(f"hire {change.subject[:64]!r}: that is no handle")
        if change.act is not OrgAct.HIRE and not known and change.subject not in hired:
            return _refused(f"{change.act} {change.subject[:64]!r}: there is no such agent")
    return Allow("named changes")


def _refused(problem: str) -> Decision:
    return deny(
        Code.INVALID_PARAMS,
        f"changes: {problem}",
        'give changes such as [{"act": "hire", "subject": "recruiter"}] with kind org_change only; '
        f"act is one of {', '.join(OrgAct)}, subject an agent's handle (for hire the new one)",
        rule="an org_change contract names what it allows (Spec: contracts 13)",
        changes=problem,
    )


def can_expire(kind: ContractKind, expires_at: datetime | None, now: datetime) -> Decision:
    """Decide whether a contract may have this expiry: authorisations only, in the future."""
    expiring = kind in (ContractKind.ORG_CHANGE, ContractKind.DEPLOYMENT_APPROVAL)
    if expires_at is None or (expiring and expires_at > now):
        return Allow("expires_at")
    return deny(
        Code.INVALID_PARAMS,
        "expires_at: must be in the future" if expiring else f"expires_at: {kind} does not expire",
        "give a time in the future" if expiring else "leave expires_at out; give a deadline",
        rule="an authorisation ends",
        expires_at="must be in the future" if expiring else "only with kind org_change",
    )


def expiry_of(
    kind: ContractKind, expires_at: datetime | None, deadline: datetime | None, now: datetime
) -> datetime | None:
    """Until when a contract authorises: as given; an org_change else until its deadline, or for
    LIFETIME.
    """
    if expires_at is not None or kind is not ContractKind.ORG_CHANGE:
        return expires_at
    return deadline or now + LIFETIME
