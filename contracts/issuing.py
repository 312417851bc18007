"""Issuing contracts: decided, written and delivered as mails (seed 000 §4.3, §6.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, connection, transaction

from contracts import store, terms
from contracts.branches import can_assign_branch
from contracts.deadlines import set_deadlines
from contracts.models import Contract
from contracts.notices import notice_text
from contracts.terms import ChannelTerm, ChannelWish
from contracts.vocabulary import FINAL_STATES, ContractKind
from core.actions import Action
from core.actors import Actor, Person
from core.decision import Code, Denied, Deny, refuse, require
from core.deeds import Deed, require_deed
from core.ids import timed_id
from ledger.services import record
from mailroom.delivery import send_as
from mailroom.escalations import answers
from mailroom.models import Escalation
from mailroom.refusals import as_rejection
from mailroom.rules import Channel
from mailroom.services import open_grants
from orgchart.compiling import current_policy
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.vocabulary import BOARD, ToolMode
from toolbox.caller import Caller

ATTEMPTS = 5
TO_WHOM = frozenset(
    {Code.CONTACT_DENIED, Code.LEVEL_DENIED, Code.RECIPIENT_UNKNOWN, Code.RECIPIENT_INACTIVE}
)
"""Refusals that are about the recipient: they leave a rejection, as a refused mail does (C-06)."""

HOLD = "SELECT 1 FROM orgchart_agent WHERE id = ANY(%s) ORDER BY id FOR SHARE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A contract as its issuer wrote it, before any decision."""

    to: str
    title: str
    body: str
    kind: ContractKind = ContractKind.WORK
    priority: str = "medium"
    deadline: datetime | None = None
    mode: ToolMode = ToolMode.CHAT_SAFE
    workspace_scope: Sequence[str] = ()
    assigned_branch: str = ""
    grants: Sequence[ChannelWish] = ()
    supersedes: str | None = None
    answers: int | None = None
    amount: Decimal | None = None
    currency: str = ""
    environment: str = ""
    artifact: str = ""
    expires_at: datetime | None = None


def issue_contract(*, caller: Caller, draft: Draft, tool: str, now: datetime) -> dict[str, Any]:
    """Issue a contract to one of the caller's own; its notice is a mail in the assignee's inbox.

    Raises Denied: RECIPIENT_UNKNOWN, RECIPIENT_INACTIVE, CONTACT_DENIED, LEVEL_DENIED (these leave
    a mail rejection), INVALID_PARAMS, MODE_DENIED, SCOPE_DENIED, BRANCH_DENIED, MAIL_TYPE_DENIED,
    NOT_FOUND for a predecessor or an escalation that is not the caller's, INVALID_TRANSITION for
    an escalation that is answered already.
    """
    policy = caller.policy
    try:
        assignee = _found(draft.to, policy)
        allowed = caller.require(terms.can_issue(caller.agent, assignee, draft.kind, tool, policy))
    except Denied as refusal:
        if refusal.deny.code not in TO_WHOM:
            raise
        raise as_rejection(refusal, caller, draft.to, _mail_type(draft), now) from refusal
    channels = _decided(draft, caller.agent, assignee, policy, now)
    rule = caller.require(allowed).rule  # once more: it is this rule that explains the contract
    return _issued(draft, caller, caller.agent, assignee, channels, now, rule)


def issue_for_board(*, person: Person, draft: Draft, now: datetime) -> dict[str, Any]:
    """Issue a contract of the humans to the top agent (seed 000 §4.3).

    Raises Denied NOT_YOURS for a person of another group, LEVEL_DENIED for another agent.
    """
    require_deed(person, Deed.ISSUE_CONTRACT)
    policy = current_policy(person.organisation_id)
    assignee = _found(draft.to, policy)
    if assignee.superior != BOARD or draft.kind is not ContractKind.WORK:
        raise refuse(
            Code.LEVEL_DENIED,
            f"the Board issues work to its top agent, not {draft.kind} to {assignee.handle}",
            "issue it to the agent that reports to the Board; that one hands it down",
            rule="contracts flow downward (seed 000 §4.3)",
        )
    plain = replace(draft, workspace_scope=(), assigned_branch="", grants=(), answers=None)
    _decided(plain, None, assignee, policy, now)
    rule = "the Board issues to the top agent (seed 000 §4.3)"
    return _issued(plain, person, None, assignee, {}, now, rule)


def _found(name: str, policy: Policy) -> Agent:
    found = terms.find_assignee(name, policy)
    if isinstance(found, Deny):
        raise Denied(found)
    return found


def _mail_type(draft: Draft) -> str:
    approval = draft.kind is ContractKind.DEPLOYMENT_APPROVAL
    return ContractKind.DEPLOYMENT_APPROVAL if approval else "contract"


def _decided(
    draft: Draft, issuer: Agent | None, assignee: Agent, policy: Policy, now: datetime
) -> dict[tuple[int, int], ChannelTerm]:
    """Every term of the draft, decided; the channels it opens, each pair once."""
    if draft.amount is not None and draft.kind is not ContractKind.BUDGET:
        raise refuse(
            Code.INVALID_PARAMS,
            f"amount: a contract of kind {draft.kind} has none",
            "issue it with kind budget, or leave amount out",
            rule="an amount is a budget's",
            amount="only with kind budget",
        )
    require(terms.can_be_due(draft.deadline, now))
    require(terms.can_open_mode(draft.mode, policy))
    require(terms.can_give_scope(draft.workspace_scope, issuer, assignee, policy))
    if draft.assigned_branch:
        require(can_assign_branch(draft.assigned_branch))
    channels: dict[tuple[int, int], ChannelTerm] = {}
    for wish in draft.grants if issuer else ():
        term = terms.can_grant(wish, issuer, assignee, policy) if issuer else None
        if isinstance(term, Deny):
            raise Denied(term)
        if term is not None:
            pair = (term.sender.id, term.recipient.id)
            held = channels.get(pair)
            types = term.types | held.types if held else term.types
            channels[pair] = replace(term, types=types)
    return channels


def _issued(
    draft: Draft,
    caller: Actor,
    issuer: Agent | None,
    assignee: Agent,
    channels: dict[tuple[int, int], ChannelTerm],
    now: datetime,
    rule: str,
) -> dict[str, Any]:
    for _ in range(ATTEMPTS):
        try:
            with transaction.atomic():
                row = _written(draft, caller, issuer, assignee, channels, now, rule)
        except IntegrityError as problem:
            if not _id_was_taken(problem):
                raise
            continue
        return {"contract_id": row.id, "mail_id": row.notice_id, **store.result_of(row)}
    raise RuntimeError(f"no free contract id in {ATTEMPTS} attempts")


def _id_was_taken(problem: IntegrityError) -> bool:
    diagnosis = getattr(problem.__cause__, "diag", None)
    return getattr(diagnosis, "constraint_name", "") == "contracts_contract_pkey"


def _written(
    draft: Draft,
    caller: Actor,
    issuer: Agent | None,
    assignee: Agent,
    channels: dict[tuple[int, int], ChannelTerm],
    now: datetime,
    rule: str,
) -> Contract:
    _hold(assignee, issuer)
    problem = _answered(draft, caller)
    row = Contract(
        id=timed_id("CON", now),
        organisation_id=caller.organisation_id,
        kind=draft.kind,
        issuer_id=issuer.id if issuer else None,
        issuer_name=issuer.handle if issuer else BOARD,
        assignee_id=assignee.id,
        title=draft.title,
        body=draft.body,
        priority=draft.priority,
        deadline=draft.deadline,
        mode=draft.mode,
        workspace_scope=list(dict.fromkeys(draft.workspace_scope)),
        assigned_branch=draft.assigned_branch,
        grants=[
            {"from": c.sender.handle, "to": c.recipient.handle, "types": sorted(c.types)}
            for c in channels.values()
        ],
        supersedes_id=_predecessor(draft.supersedes, caller, issuer),
        answers=problem,
        environment=draft.environment,
        artifact=draft.artifact,
        expires_at=draft.expires_at,
        amount=draft.amount,
        currency=draft.currency,
        created_at=now,
    )
    row.notice_id = send_as(
        caller=caller,
        recipient=assignee,
        mail_type=_mail_type(draft),
        subject=row.title,
        body=notice_text(row),
        priority=row.priority,
        contract_ref=row.id,
        reply_to=problem.mail_id if problem else None,
        now=now,
        rule=rule,
    )
    row.save(force_insert=True)
    set_deadlines(row, now=now)
    if problem is not None and isinstance(caller, Caller):
        answers.answer_by_contract(
            problem, contract_id=row.id, title=row.title, assignee=assignee, by=caller, now=now
        )
    record(
        Action.CONTRACT_ISSUED,
        by=caller,
        at=now,
        subject=f"contract:{row.id}",
        for_agent_id=assignee.id,
        kind="contract",
        details={
            "to": assignee.handle,
            "contract_kind": str(row.kind),
            "mode": str(row.mode),
            "workspace_scope": row.workspace_scope,
            "assigned_branch": row.assigned_branch,
            "state": str(row.state),
            "version": row.version,
        },
    )
    opened = [Channel(row.id, c.sender.id, c.recipient.id, c.types) for c in channels.values()]
    open_grants(caller=caller, contract_ref=row.id, channels=opened, now=now)
    return row


def _hold(assignee: Agent, issuer: Agent | None) -> None:
    """Let a deactivation of either party come before this contract, which is then refused when its
    notice is delivered, or after it, and then it is handed over with the rest.
    """
    parties = [assignee.id, issuer.id] if issuer else [assignee.id]
    with connection.cursor() as cursor:
        cursor.execute(HOLD, [parties])


def _answered(draft: Draft, caller: Actor) -> Escalation | None:
    """The escalation that the contract answers, held; only agents receive any."""
    if draft.answers is None or not isinstance(caller, Caller):
        return None
    return answers.lock_to_answer(escalation_id=draft.answers, by=caller)


def _predecessor(contract_id: str | None, caller: Actor, issuer: Agent | None) -> str | None:
    """The closed contract that this one follows; only one of the same issuer."""
    if contract_id is None:
        return None
    row = Contract.objects.filter(id=contract_id, organisation_id=caller.organisation_id).first()
    if row is None or row.issuer_id != (issuer.id if issuer else None):
        raise refuse(
            Code.NOT_FOUND,
            "supersedes: you issued no such contract",
            "list_contracts with role issued shows yours; or leave supersedes out",
            rule="a follow-up names a closed contract of the same issuer",
        )
    if row.state not in FINAL_STATES:
        raise refuse(
            Code.INVALID_PARAMS,
            f"supersedes: {row.id} is {row.state}, not closed",
            "close it first (close_contract), then issue its follow-up",
            rule="a follow-up names a closed contract of the same issuer",
            supersedes=f"is {row.state}",
        )
    return row.id
