"""A contract before it is issued, and the decision on everything that it contains; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from contracts.branches import NONE_TAKEN, TakenNames, can_assign_branch
from contracts.issuing import rules
from contracts.issuing.changes import NamedChange, can_expire, can_name_changes
from contracts.issuing.rules import GrantedChannel, RequestedChannel
from contracts.issuing.scopes import can_give_scope
from contracts.judging import Terms, can_be_judged
from contracts.vocabulary import ContractKind
from core.decision import Code, Denied, Deny, refuse, require
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import Board, Party
from orgchart.policy.vocabulary import ToolMode


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractDraft:
    """A contract as its issuer wrote it."""

    to: str
    title: str
    body: str
    kind: ContractKind = ContractKind.WORK
    priority: str = "medium"
    deadline: datetime | None = None
    mode: ToolMode = ToolMode.CHAT_SAFE
    workspace_scope: Sequence[str] = ()
    assigned_branch: str = ""
    grants: Sequence[RequestedChannel] = ()
    supersedes: str | None = None
    answers: int | None = None
    request: str | None = None
    amount: Decimal | None = None
    currency: str = ""
    environment: str = ""
    artifact: str = ""
    expires_at: datetime | None = None
    changes: Sequence[NamedChange] = ()


def check_draft(
    draft: ContractDraft,
    issuer: Party,
    assignee: Agent,
    policy: Policy,
    now: datetime,
    *,
    makers: frozenset[int] = frozenset(),
    taken: TakenNames = NONE_TAKEN,
) -> list[GrantedChannel]:
    """Decide on everything that a draft contains; returns the channels it opens, one for a pair.

    `makers` are the judges that worked on its branch before, `taken` the branches in whose way it
    may be.

    Raises Denied.
    """
    if draft.amount is not None and draft.kind is not ContractKind.BUDGET:
        raise refuse(
            Code.INVALID_PARAMS,
            f"amount: a contract of kind {draft.kind} has none",
            "issue it with kind budget, or leave amount out",
            rule="only a budget has an amount",
            amount="only with kind budget",
        )
    if draft.request is not None and draft.kind is not ContractKind.BUDGET:
        raise refuse(
            Code.INVALID_PARAMS,
            f"request: a contract of kind {draft.kind} answers none",
            "issue it with kind budget, or leave request out",
            rule="only a budget answers a request (spec: contracts 15)",
            request="only with kind budget",
        )
    require(rules.can_be_due(draft.deadline, now))
    require(can_name_changes(draft.kind, draft.changes, policy))
    require(can_expire(draft.kind, draft.expires_at, now))
    require(rules.can_open_mode(draft.mode, policy))
    require(can_give_scope(draft.workspace_scope, issuer, assignee, policy))
    if draft.assigned_branch:
        require(can_assign_branch(draft.assigned_branch, taken))
    require(can_be_judged(replace(terms_of(draft, issuer, assignee), makers=makers), policy))
    return _check_channels(draft.grants, issuer, assignee, policy)


def terms_of(draft: ContractDraft, issuer: Party, assignee: Agent) -> Terms:
    """The terms that decide whether the contract is code work."""
    return Terms(
        issuer=issuer,
        assignee=assignee,
        mode=draft.mode,
        workspace_scope=draft.workspace_scope,
        assigned_branch=draft.assigned_branch,
    )


def _check_channels(
    requests: Sequence[RequestedChannel], issuer: Party, assignee: Agent, policy: Policy
) -> list[GrantedChannel]:
    channels: dict[tuple[int, int], GrantedChannel] = {}
    if isinstance(issuer, Board):
        return []
    for requested in requests:
        granted = rules.can_grant(requested, issuer, assignee, policy)
        if isinstance(granted, Deny):
            raise Denied(granted)
        pair = (granted.sender.id, granted.recipient.id)
        before = channels.get(pair)
        types = granted.types | before.types if before else granted.types
        channels[pair] = replace(granted, types=types)
    return list(channels.values())
