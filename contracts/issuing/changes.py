"""The changes that an org_change contract may name, and until when; pure (Spec: contracts 13)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from contracts.vocabulary import ContractKind, OrgAct, named_change
from core.decision import Allow, Code, Decision, Deny, deny
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import HANDLE_FORM, RESERVED

LIFETIME = timedelta(days=7)
"""How long an org_change contract authorises that names neither an expiry nor a deadline."""


@dataclass(frozen=True, slots=True)
class NamedChange:
    """One change of the organisation, allowed once; the subject of hire is the new handle.

    The rest is what the act gives, where the contract names it.
    """

    act: OrgAct
    subject: str
    role: str = ""
    reports_to: str = ""
    co_managers: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    group: str = ""
    leads: str = ""

    def __str__(self) -> str:
        more = (self.reports_to, self.co_managers, self.skills, self.group, self.leads)
        return named_change(self.act, self.subject, self.role, *more)

    @property
    def names(self) -> bool:
        """Whether it names anything that the act gives."""
        place = self.reports_to or self.co_managers or self.group or self.leads
        return bool(self.role or self.skills or place)


@dataclass(frozen=True, slots=True)
class SoughtLine:
    """An act that a line has to name, with what it gives; some of it the line has to name, too.

    A line that names a role or a superior allows no other one (Spec: contracts 51, contracts 55).
    """

    act: OrgAct
    subject: str
    role: str = ""
    is_role_named: bool = False
    reports_to: str = ""
    is_superior_named: bool = False
    co_managers: frozenset[str] = frozenset()
    skills: frozenset[str] = frozenset()
    group: str = ""
    leads: str = ""

    def __str__(self) -> str:
        return named_change(
            self.act,
            self.subject[:64],
            self.role if self.is_role_named else "",
            self.reports_to if self.is_superior_named else "",
            sorted(self.co_managers),
            sorted(self.skills),
            self.group,
            self.leads,
        )

    def is_allowed_by(self, line: NamedChange) -> bool:
        """Whether a line of this act and subject names what has to be named, and nothing else."""
        return (
            _fits(line.role, self.role, is_named=self.is_role_named)
            and _fits(line.reports_to, self.reports_to, is_named=self.is_superior_named)
            and self.co_managers <= set(line.co_managers)
            and self.skills <= set(line.skills)
            and self.group in ("", line.group, line.leads)
            and self.leads in ("", line.leads)
        )


def _fits(named: str, given: str, *, is_named: bool) -> bool:
    return named == given or not (named or is_named)


def resolve_changes(changes: Sequence[NamedChange], policy: Policy) -> list[NamedChange]:
    """The changes with each agent's handle in place of an address or alias."""

    def handle(name: str) -> str:
        agent = policy.resolve(name)
        return agent.handle if agent else name

    return [
        replace(
            change,
            subject=change.subject if change.act is OrgAct.HIRE else handle(change.subject),
            reports_to=handle(change.reports_to),
            co_managers=tuple(map(handle, change.co_managers)),
        )
        for change in changes
    ]


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
        if change.act is OrgAct.HIRE and not re.match(HANDLE_FORM, change.subject):
            return _refused(f"hire {change.subject[:64]!r}: that is no handle")
        if change.act is not OrgAct.HIRE and not known and change.subject not in hired:
            return _refused(f"{change.act} {change.subject[:64]!r}: there is no such agent")
        if isinstance(named := _can_name_what_it_gives(change, policy, hired), Deny):
            return named
    return Allow("named changes")


def _can_name_what_it_gives(
    change: NamedChange, policy: Policy, hired: Collection[str]
) -> Decision:
    """Decide whether a line may name this: a role there is, or the new kind that it hires; agents
    there are or that the contract hires, groups there are, and skills of a new agent.
    """
    if change.names and change.act not in (OrgAct.HIRE, OrgAct.MOVE):
        return _refused(f"{change.act} gives no role, place or skill")
    if change.skills and change.act is not OrgAct.HIRE:
        return _refused(f"{change.act} gives no skill")
    is_new_kind = (change.act, change.role) == (OrgAct.HIRE, change.subject)
    role = "" if is_new_kind else change.role
    for known, names in (
        (policy.roles, (role,)),
        ({*policy.agents, *hired}, (change.reports_to, *change.co_managers)),
        (policy.groups, (change.group, change.leads)),
    ):
        for name in filter(None, names):
            if name not in known:
                return _refused(f"{name[:64]!r}: there is no such role, agent or group")
    return Allow("what the act gives")


def _refused(problem: str) -> Decision:
    return deny(
        Code.INVALID_PARAMS,
        f"changes: {problem}",
        'give changes such as [{"act": "hire", "subject": "recruiter"}] with kind org_change only; '
        f"act is one of {', '.join(OrgAct)}, subject an agent's handle (for hire the new one), "
        "role, reports_to, co_managers, group, leads and skills what hire or move gives",
        rule="an org_change contract names what it allows (spec: contracts 13)",
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
