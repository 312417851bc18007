"""Rows of contracts: loaded for a caller, locked, and saved with their event as one statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q

from contracts import evidence, rules
from contracts.branches import NONE_TAKEN, TakenNames, folders_of
from contracts.judging import SubmissionFacts, submission_of
from contracts.models import Contract, Report, Verdict
from contracts.results import ContractVersion
from contracts.rules import ContractFacts
from contracts.vocabulary import OPEN_STATES, ContractKind, ContractState
from core.actions import Action
from core.actors import Actor
from core.database import hold_lock, needs_transaction, planned_for_values, rows_of_array
from core.decision import Denied
from core.events import Event
from core.machines import Swap, swap
from documents.rules import department_to_file_in
from ledger import sql as ledger_sql
from orgchart.policy.compiled import Agent, Policy
from orgchart.policy.parties import BOARD_PARTY, Party
from orgchart.policy.vocabulary import ToolMode
from orgchart.policy_cache import current_policy
from toolbox.caller import Caller
from toolbox.frames.stack import lock_agent
from toolbox.modes import release_contract, reopen_mode
from toolbox.wake import wake

MUTABLE = (
    "issuer_id", "issuer_name", "accepted_at", "submitted_at", "closed_at", "closed_by",
    "closed_reason", "used_at",
)  # fmt: skip
"""Columns that change after a contract is issued, besides its state and version."""


def agent_of(policy: Policy, agent_id: int) -> Agent:
    """An agent of the organisation, also one that is newer than this policy."""
    found = policy.by_id.get(agent_id)
    return found or current_policy(policy.organisation_id).by_id[agent_id]


def issuer_of(row: Contract, policy: Policy) -> Party:
    """The agent that issued the contract, or the Board."""
    return agent_of(policy, row.issuer_id) if row.issuer_id else BOARD_PARTY


def contract_facts(
    row: Contract, policy: Policy, submission: SubmissionFacts | None = None
) -> ContractFacts:
    """The row as rules see it."""
    issuer, assignee = issuer_of(row, policy), agent_of(policy, row.assignee_id)
    return ContractFacts(
        id=row.id,
        kind=ContractKind(row.kind),
        state=ContractState(row.state),
        version=row.version,
        issuer=issuer,
        assignee=assignee,
        department=row.department or department_to_file_in(assignee, issuer, policy),
        mode=ToolMode(row.mode),
        workspace_scope=tuple(row.workspace_scope),
        assigned_branch=row.assigned_branch,
        submission=submission,
        environment=row.environment,
        artifact=row.artifact,
        expires_at=row.expires_at,
        used_at=row.used_at,
    )


def find_contract(contract_id: str, organisation_id: int, *, lock: bool = False) -> Contract:
    """The organisation's contract. Raises Denied NOT_FOUND, also for another organisation's."""
    rows = Contract.objects.select_for_update(no_key=True) if lock else Contract.objects.all()
    row = rows.filter(id=contract_id, organisation_id=organisation_id).first()
    if row is None:
        raise Denied(rules.not_found())
    return row


def is_party(caller: Caller, contract_id: str) -> bool:
    """Whether the caller issued a contract, took it over, or works on it."""
    parties = Q(issuer_id=caller.agent.id) | Q(assignee_id=caller.agent.id)
    rows = Contract.objects.filter(id=contract_id, organisation_id=caller.organisation_id)
    return rows.filter(parties).exists()


@needs_transaction
def lock_contract(contract_id: str, caller: Caller) -> tuple[Contract, ContractFacts]:
    """A contract that the caller may see, locked until the transaction ends.

    The caller is locked first, so that its deactivation happens before this call or after. Raises
    Denied AGENT_INACTIVE; NOT_FOUND, also for what the caller may not see.
    """
    lock_agent(caller)
    row = find_contract(contract_id, caller.organisation_id, lock=True)
    contract = contract_facts(row, caller.policy)
    caller.require(rules.can_see(contract, caller.agent, caller.policy))
    return row, contract


def makers_among(agent_ids: Iterable[int], branch: str, organisation_id: int) -> frozenset[int]:
    """Those of the agents that worked on a branch, each under a contract of its own."""
    if not branch:
        return frozenset()
    rows = Contract.objects.filter(organisation_id=organisation_id, assigned_branch=branch)
    held = rows.filter(assignee_id__in=list(agent_ids))
    return frozenset(held.exclude(accepted_at=None).values_list("assignee_id", flat=True))


@needs_transaction
def names_in_the_way(organisation_id: int, name: str) -> TakenNames:
    """The branches that leave no room for one of this name: those of the repository, and of
    contracts that have not ended (Spec: contracts 32). None is assigned meanwhile.
    """
    if not name:
        return NONE_TAKEN
    hold_lock("branch names", organisation_id)
    rows = Contract.objects.filter(in_the_way("assigned_branch", name))
    held = rows.filter(organisation_id=organisation_id, state__in=OPEN_STATES)
    names = frozenset(held.values_list("assigned_branch", flat=True))
    known = next(iter(evidence.branches(organisation_id, name)), NONE_TAKEN)
    return TakenNames(main=known.main, names=known.names | names)


def in_the_way(field: str, name: str) -> Q:
    """The condition that a branch lies in one of this name, or one of this name in it."""
    inside = Q(**{f"{field}__startswith": f"{name}/"})
    return inside | Q(**{f"{field}__in": folders_of(name)})


def writers_of_terms(*contract_ids: str) -> frozenset[int]:
    """The agents that issued the contracts, also after they left and a contract went to their
    superior: the senders of the notices.
    """
    issued = Contract.objects.filter(id__in=contract_ids, notice__sender__isnull=False)
    return frozenset(issued.values_list("notice__sender_id", flat=True))


def latest_submission(row: Contract) -> SubmissionFacts | None:
    """The submission that is in review, with its verdicts; None without one."""
    if row.state != ContractState.REVIEW:
        return None
    report = Report.objects.filter(contract_id=row.id, submission__isnull=False)
    found = report.order_by("-submission").first()
    if found is None:
        return None
    verdicts = Verdict.objects.filter(report_id=found.id)
    return submission_of(found.id, verdicts.values_list("finding", "judge_id"), found.commit)


def judges_of_submissions(rows: Sequence[Contract]) -> Mapping[str, Collection[int]]:
    """The agents that judged what is in review, by contract, in one query for all of them."""
    in_review = [row.id for row in rows if row.state == ContractState.REVIEW]
    later = Report.objects.filter(
        contract_id=OuterRef("contract_id"), submission__gt=OuterRef("report__submission")
    )
    verdicts = Verdict.objects.filter(~Exists(later), contract__in=rows_of_array(in_review, "text"))
    judges = defaultdict[str, set[int]](set)
    with planned_for_values():
        for contract_id, judge_id in verdicts.values_list("contract_id", "judge_id"):
            judges[contract_id].add(judge_id)
    return judges


def event_of_change(
    row: Contract,
    action: Action,
    *,
    caller: Actor,
    now: datetime,
    reader: Party,
    reason: str = "",
    **details: Any,
) -> Event:
    """The event of a contract that has changed; it appears in the stream of `reader`.

    Its details are the row's state, and what is given.
    """
    return Event.by(
        caller,
        action,
        at=now,
        subject=f"contract:{row.id}",
        reason=reason,
        for_agent_id=reader.id,
        kind="contract",
        details={"state": str(row.state), **details},
    )


@needs_transaction
def save_contract(
    row: Contract,
    was: ContractFacts,
    action: Action,
    *,
    caller: Actor,
    now: datetime,
    reader: Party,
    reason: str = "",
    **details: Any,
) -> None:
    """Save a changed row with its event as one statement, if its version is the one decided on.

    The event appears in the stream of `reader`. The row has its next version afterwards. Raises
    Denied VERSION_MISMATCH.
    """
    version = was.version + 1
    event = event_of_change(
        row, action, caller=caller, now=now, reader=reader, reason=reason,
        from_state=str(was.state), version=version, **details,
    )  # fmt: skip
    saved = swap(
        Swap(
            model=Contract,
            key=row.id,
            version=was.version,
            state=None if row.state == was.state else ("state", was.state, row.state),
            values={name: getattr(row, name) for name in MUTABLE},
        ),
        then=[ledger_sql.event_cte(event)],
    )
    if not saved:
        current = Contract.objects.values_list("version", flat=True).get(id=row.id)
        raise Denied(rules.stale_contract(row.id, was.version, current))
    row.version = version
    wake(reader.id)


def close_contract_mode(row: Contract, was: ContractFacts, caller: Actor, now: datetime) -> None:
    """Release the sessions that a contract bound, with its mode, once it leaves in_progress."""
    if was.state is ContractState.IN_PROGRESS:
        release_contract(
            caller=caller, now=now, reason=f"{row.id} is {row.state}", contract_ref=row.id
        )


def reopen_contract_mode(row: Contract, caller: Actor, now: datetime) -> None:
    """Open a contract's mode again, in the session that had it last, for its rework.

    Not where the organisation no longer enables it: the work goes back all the same.
    Spec: contracts 27.
    """
    mode = ToolMode(row.mode)
    if mode is ToolMode.CHAT_SAFE:
        return
    if mode in current_policy(row.organisation_id).enabled_modes:
        reopen_mode(caller=caller, now=now, reason=f"{row.id} sent back", contract_ref=row.id)


def version_result(row: Contract) -> ContractVersion:
    """The result of every change of state."""
    return {"state": ContractState(row.state), "version": row.version}
