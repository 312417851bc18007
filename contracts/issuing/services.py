"""Issuing contracts: each is decided on, inserted and sent as a mail.

Spec: contracts 1, contracts 5.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction

from contracts.approvals.budgets import lock_request
from contracts.deadlines import insert_deadlines
from contracts.issuing import rules
from contracts.issuing.changes import expiry_of, resolve_changes
from contracts.issuing.drafts import ContractDraft, check_draft
from contracts.issuing.mail import mail_body
from contracts.issuing.rules import GrantedChannel
from contracts.judging import is_judge
from contracts.models import Contract, OrgChangeLine
from contracts.results import IssuedContract
from contracts.store import makers_among, names_in_the_way, version_result
from contracts.vocabulary import FINAL_STATES, OPEN_STATES, ContractKind
from core.actions import Action
from core.actors import Actor, Person
from core.database import fetch_row, hold_lock, insert_with_free_id
from core.decision import Code, Denied, Deny, refuse, require
from core.ids import timed_id
from core.permissions import Deed, require_deed
from documents.rules import department_to_file_in
from ledger.services import record
from mailroom.delivery import send_as
from mailroom.escalations import answers
from mailroom.models import Escalation
from mailroom.refusals import as_rejection
from mailroom.rules import Channel, can_receive
from mailroom.services import open_grants
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import BOARD_PARTY, Party
from orgchart.policy.vocabulary import BOARD
from orgchart.policy_cache import POLICIES
from toolbox.caller import Caller
from toolbox.gate import admit

ABOUT_RECIPIENT = frozenset(
    {Code.CONTACT_DENIED, Code.LEVEL_DENIED, Code.RECIPIENT_UNKNOWN, Code.RECIPIENT_INACTIVE}
)
"""Refusals because of the recipient: they leave a rejection too (Spec: contracts 11)."""

LOCK_POLICY = "SELECT policy_version FROM orgchart_organisation WHERE id = %s FOR SHARE"


def issue_contract(
    *, caller: Caller, draft: ContractDraft, tool: str, now: datetime
) -> IssuedContract:
    """Issue a contract to one of the caller's own; it arrives as a mail in the assignee's inbox.

    Raises Denied: RECIPIENT_UNKNOWN, RECIPIENT_INACTIVE, CONTACT_DENIED, LEVEL_DENIED (these leave
    a mail rejection), INVALID_PARAMS, MODE_DENIED, SCOPE_DENIED, BRANCH_DENIED, MAIL_TYPE_DENIED,
    NOT_FOUND for a predecessor or an escalation that is not the caller's and for a request that
    the assignee did not send it, INVALID_TRANSITION for an escalation or a request that is
    answered already, QUOTA_EXCEEDED where too many of the caller's are open; and as the gate does,
    where the caller lost the tool meanwhile.
    """
    with transaction.atomic():
        policy = _lock_policy(caller.organisation_id)
        if policy.version != caller.policy.version:
            caller = caller.under(policy)
            admit(caller, tool)
        return _decide_and_issue(caller, draft, tool, now)


def _decide_and_issue(
    caller: Caller, draft: ContractDraft, tool: str, now: datetime
) -> IssuedContract:
    policy = caller.policy
    try:
        assignee = _require_assignee(draft.to, policy, policy.contacts_of(caller.agent))
        allowed = caller.require(rules.can_issue(caller.agent, assignee, draft.kind, tool, policy))
    except Denied as refusal:
        if refusal.deny.code not in ABOUT_RECIPIENT:
            raise
        raise as_rejection(refusal, caller, draft.to, _mail_type(draft), now) from refusal
    draft = replace(draft, changes=resolve_changes(draft.changes, policy))
    judges = (agent.id for agent in policy.agents.values() if is_judge(agent, policy))
    makers = makers_among(judges, draft.assigned_branch, policy.organisation_id)
    taken = names_in_the_way(policy.organisation_id, draft.assigned_branch)
    channels = check_draft(draft, caller.agent, assignee, policy, now, makers=makers, taken=taken)
    if draft.kind is not ContractKind.DEPLOYMENT_APPROVAL:
        caller.require(rules.can_have_open(_count_open(caller)))
    rule = caller.require(allowed).rule  # noted last: it explains the call
    return _issue(_Issue(draft, caller, caller.agent, assignee, channels, rule, policy), now)


def _count_open(caller: Caller) -> int:
    """The open contracts of an issuer; of two that it issues at once the later one waits."""
    hold_lock("contracts of", caller.agent.id)
    mine = Contract.objects.filter(issuer_id=caller.agent.id, state__in=OPEN_STATES)
    return mine.exclude(kind=ContractKind.DEPLOYMENT_APPROVAL)[: rules.MOST_OPEN].count()


def issue_for_board(*, person: Person, draft: ContractDraft, now: datetime) -> IssuedContract:
    """Issue a contract of the Board to the top agent (Spec: contracts 9).

    Raises Denied NOT_YOURS for a person of another group, or who has left it meanwhile;
    LEVEL_DENIED for another assignee.
    """
    require_deed(person, Deed.ISSUE_CONTRACT)
    with transaction.atomic():
        policy = _lock_policy(person.organisation_id)
        return _decide_and_issue_for_board(person, draft, policy, now)


def _decide_and_issue_for_board(
    person: Person, draft: ContractDraft, policy: Policy, now: datetime
) -> IssuedContract:
    assignee = _require_assignee(draft.to, policy, policy.agents)
    if assignee.superior != BOARD or draft.kind is not ContractKind.WORK:
        raise refuse(
            Code.LEVEL_DENIED,
            f"the Board issues work to its top agent, not {draft.kind} to {assignee.handle}",
            "issue it to the agent that reports to the Board",
            rule="contracts flow downward (spec: contracts 4)",
        )
    plain = replace(draft, workspace_scope=(), assigned_branch="", grants=(), answers=None)
    require(can_receive(assignee))
    check_draft(plain, BOARD_PARTY, assignee, policy, now)
    rule = "the Board issues to the top agent (spec: contracts 9)"
    return _issue(_Issue(plain, person, BOARD_PARTY, assignee, [], rule, policy), now)


@dataclass(frozen=True, slots=True)
class _Issue:
    """A draft that may be issued, and between which parties, by which rule."""

    draft: ContractDraft
    caller: Actor
    issuer: Party
    assignee: Agent
    channels: Sequence[GrantedChannel]
    rule: str
    policy: Policy


def _require_assignee(name: str, policy: Policy, known: Collection[str]) -> Agent:
    found = rules.find_assignee(name, policy, known)
    if isinstance(found, Deny):
        raise Denied(found)
    return found


def _mail_type(draft: ContractDraft) -> str:
    approval = draft.kind is ContractKind.DEPLOYMENT_APPROVAL
    return ContractKind.DEPLOYMENT_APPROVAL if approval else "contract"


def _issue(issue: _Issue, now: datetime) -> IssuedContract:
    row = insert_with_free_id(
        lambda _: _insert_contract(issue, now), unique="contracts_contract_pkey"
    )
    return {"contract_id": row.id, "mail_id": row.notice_id, **version_result(row)}


def _insert_contract(issue: _Issue, now: datetime) -> Contract:
    draft, caller, assignee = issue.draft, issue.caller, issue.assignee
    escalation = _lock_escalation(draft, caller)
    if draft.request is not None:
        lock_request(draft.request, issue.issuer, assignee)
    row = _build_contract(issue, escalation, now)
    row.notice_id = send_as(
        caller=caller,
        recipient=assignee,
        mail_type=_mail_type(draft),
        subject=row.title,
        body=mail_body(row, draft.changes),
        priority=row.priority,
        contract_ref=row.id,
        reply_to=escalation.mail_id if escalation else draft.request,
        now=now,
        rule=issue.rule,
    )
    row.save(force_insert=True)
    OrgChangeLine.objects.bulk_create(
        OrgChangeLine(
            contract=row,
            act=change.act,
            subject=change.subject,
            role=change.role,
            reports_to=change.reports_to,
            co_managers=list(change.co_managers),
            skills=list(change.skills),
            group=change.group,
            leads=change.leads,
        )
        for change in draft.changes
    )
    insert_deadlines(row, now=now)
    if escalation is not None and isinstance(caller, Caller):
        answers.answer_by_contract(
            escalation, contract_id=row.id, title=row.title, assignee=assignee, by=caller, now=now
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
            **({"request": row.request_id} if row.request_id else {}),
            **({"changes": [str(change) for change in draft.changes]} if draft.changes else {}),
        },
    )
    opened = [Channel(row.id, c.sender.id, c.recipient.id, c.types) for c in issue.channels]
    open_grants(caller=caller, contract_ref=row.id, channels=opened, now=now)
    return row


def _build_contract(issue: _Issue, escalation: Escalation | None, now: datetime) -> Contract:
    draft = issue.draft
    return Contract(
        id=timed_id("CON", now),
        organisation_id=issue.caller.organisation_id,
        kind=draft.kind,
        issuer_id=issue.issuer.id,
        issuer_name=issue.issuer.handle,
        assignee_id=issue.assignee.id,
        title=draft.title,
        body=draft.body,
        priority=draft.priority,
        deadline=draft.deadline,
        mode=draft.mode,
        workspace_scope=list(dict.fromkeys(draft.workspace_scope)),
        assigned_branch=draft.assigned_branch,
        grants=[
            {"from": c.sender.handle, "to": c.recipient.handle, "types": sorted(c.types)}
            for c in issue.channels
        ],
        department=department_to_file_in(issue.assignee, issue.issuer, issue.policy),
        supersedes_id=_predecessor(issue),
        answers=escalation,
        request_id=draft.request,
        environment=draft.environment,
        artifact=draft.artifact,
        expires_at=expiry_of(draft.kind, draft.expires_at, draft.deadline, now),
        amount=draft.amount,
        currency=draft.currency,
        created_at=now,
    )


def _lock_policy(organisation_id: int) -> Policy:
    """The policy of this moment; changes of it are held back until the transaction ends.

    So each change happens before this contract, which is decided on it, or after: the contracts of
    a deactivated agent are reassigned with the rest. The organisation is what each change of policy
    locks first: none waits for rows of agents that this transaction holds.
    """
    (version,) = fetch_row(LOCK_POLICY, [organisation_id])
    return POLICIES.get(organisation_id, version)


def _lock_escalation(draft: ContractDraft, caller: Actor) -> Escalation | None:
    """The escalation that the contract answers, locked; only agents receive escalations."""
    if draft.answers is None or not isinstance(caller, Caller):
        return None
    return answers.lock_to_answer(escalation_id=draft.answers, by=caller)


def _predecessor(issue: _Issue) -> str | None:
    """The id of the closed contract that this one follows; only one of the same issuer."""
    contract_id = issue.draft.supersedes
    if contract_id is None:
        return None
    row = Contract.objects.filter(
        id=contract_id, organisation_id=issue.caller.organisation_id, issuer_id=issue.issuer.id
    ).first()
    if row is None:
        raise refuse(
            Code.NOT_FOUND,
            "supersedes: you issued no such contract",
            "list_contracts with role issued shows yours; or leave supersedes out",
            rule="a contract follows a closed contract of the same issuer",
        )
    if row.state not in FINAL_STATES:
        raise refuse(
            Code.INVALID_PARAMS,
            f"supersedes: {row.id} is {row.state}, not closed",
            "close it first (close_contract), then issue the next one",
            rule="a contract follows a closed contract of the same issuer",
            supersedes=f"is {row.state}",
        )
    return row.id
