"""The changes that an org_change contract may name, and until when; pure (Spec: contracts 13)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from contracts.vocabulary import ContractKind, OrgAct, named_change
from core.decision import Allow, Code, Decision, Deny, deny
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import RESERVED

HANDLE = re.compile(r"[a-z][a-z0-9_.-]{0,63}\Z")
LIFETIME = timedelta(days=7)
"""How long an org_change contract authorises that names neither an expiry nor a deadline."""


@dataclass(frozen=True, slots=True)
class NamedChange:
    """One change of the organisation, allowed once; the subject of hire is the new handle.

    `role` is the one that the act gives, where the contract names it.
    """

    act: OrgAct
    subject: str
    role: str = ""

    def __str__(self) -> str:
        return named_change(self.act, self.subject, self.role)


@dataclass(frozen=True, slots=True)
class SoughtLine:
    """An act that a line has to name; `role` is the one it gives, which the line may have to name.

    A line that names a role allows that role only (Spec: contracts 51).
    """

    act: OrgAct
    subject: str
    role: str = ""
    is_role_named: bool = False

    def __str__(self) -> str:
        return named_change(self.act, self.subject[:64], self.role if self.is_role_named else "")


def resolve_changes(changes: Sequence[NamedChange], policy: Policy) -> list[NamedChange]:
    """The changes with each agent's handle in place of an address or alias."""
    found = []
    for change in changes:
        agent = None if change.act is OrgAct.HIRE else policy.resolve(change.subject)
        found.append(replace(change, subject=agent.handle if agent else change.subject))
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
        if change.role and isinstance(named := _can_name_role(change, policy), Deny):
            return named
    return Allow("named changes")


def _can_name_role(change: NamedChange, policy: Policy) -> Decision:
    """Decide whether a line may name its role: one there is, or the new kind that it hires."""
    if change.act not in (OrgAct.HIRE, OrgAct.MOVE):
        return _refused(f"{change.act} gives no role")
    if change.role in policy.roles or (change.act, change.role) == (OrgAct.HIRE, change.subject):
        return Allow("a role")
    return _refused(f"role {change.role[:64]!r}: there is no such role")


def _refused(problem: str) -> Decision:
    return deny(
        Code.INVALID_PARAMS,
        f"changes: {problem}",
        'give changes such as [{"act": "hire", "subject": "recruiter"}] with kind org_change only; '
        f"act is one of {', '.join(OrgAct)}, subject an agent's handle (for hire the new one), "
        "role the one that hire or move gives",
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
