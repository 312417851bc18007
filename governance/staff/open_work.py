"""What a deactivated agent leaves open, and its reassignment to the superior."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contracts.models import Contract
from contracts.reassignment import reassign_contracts
from contracts.rules import can_see
from contracts.store import contract_facts
from core.actors import Actor
from core.database import needs_transaction, rows_of_array
from core.decision import Allow, listed
from governance.results import OpenWorkResult
from mailroom.delivery import send_system_mail
from mailroom.services import notify_successor
from orgchart.policy.compiled import Agent
from orgchart.policy.parties import BOARD_PARTY
from orgchart.policy.readership import can_tell
from orgchart.policy.vocabulary import BOARD
from orgchart.policy_cache import current_policy
from orgchart.staffing import Departure
from tasks.models import Task
from tasks.replaced_writers import open_tasks_by
from tasks.rules.visibility import readership_of
from tasks.vocabulary import UNFINISHED
from toolbox.caller import Caller
from toolbox.modes import close_modes_of_people
from toolbox.quoting import one_line

LISTED = 50
MOST_NAMED = 1000
"""Tasks that an event and an answer name: a million would be 12 MB, and a page of 31."""


@dataclass(frozen=True, slots=True)
class OpenWork:
    """Open contracts (worked on, issued), unfinished tasks (owned, written and without owner),
    unread mails, reports of an agent.
    """

    assigned: tuple[str, ...]
    issued: tuple[str, ...]
    tasks: tuple[str, ...]
    written: tuple[str, ...]
    unread_mails: int
    reports: tuple[str, ...]
    """Active agents that reported to it, which need a new superior."""

    def result(self) -> OpenWorkResult:
        """As the tool returns it, and the event keeps it: of the tasks the first MOST_NAMED."""
        return {
            "contracts_assigned": list(self.assigned),
            "contracts_issued": list(self.issued),
            "tasks": list(self.tasks[:MOST_NAMED]),
            "unread_mails": self.unread_mails,
            "reports": list(self.reports),
        }


@needs_transaction
def reassign_work(
    *, caller: Actor, leaver: Agent, successor: Agent | None, reason: str, now: datetime
) -> OpenWork:
    """Reassign what an agent holds to its superior and notify it; `successor` None: the Board.

    Closes the modes that people opened for its sessions. Runs before the deactivation, in its
    transaction, so that it is decided on the policy that the agent still belongs to. Its tasks are
    free for others once it is deactivated.
    """
    contracts = reassign_contracts(
        caller=caller, leaver=leaver, successor=successor or BOARD_PARTY, now=now
    )
    # After the contracts: who closes one locks it before the sessions that work under it.
    close_modes_of_people(agent_id=leaver.id, caller=caller, now=now, reason=reason)
    held = OpenWork(
        assigned=contracts.assigned,
        issued=contracts.issued,
        tasks=_tasks_of(leaver, caller.organisation_id),
        written=open_tasks_by(leaver.id, caller.organisation_id),
        unread_mails=notify_successor(caller=caller, leaver=leaver, successor=successor, now=now),
        reports=tuple(
            sorted(
                agent.handle
                for agent in current_policy(caller.organisation_id).agents.values()
                if agent.active and agent.superior == leaver.handle
            )
        ),
    )
    if successor is not None:
        send_system_mail(
            organisation_id=caller.organisation_id,
            recipient=successor,
            subject=f"{leaver.handle} was deactivated",
            body=_notice_body(leaver, held, _reason_told(caller, successor, reason)),
            quotes=[caller.agent.id] if isinstance(caller, Caller) else [],
            now=now,
        )
    return held


def seen_by(who: Caller, held: OpenWorkResult) -> OpenWorkResult:
    """What an agent may know of another's open work: the contracts and tasks that it may read."""
    policy, reads = who.policy, readership_of(who.policy, who.agent)
    named = [*held["contracts_assigned"], *held["contracts_issued"]]
    rows = Contract.objects.filter(id__in=rows_of_array(named, "text"))
    contracts = {
        row.id
        for row in rows.defer("body").iterator(chunk_size=200)
        if isinstance(can_see(contract_facts(row, policy), who.agent, policy), Allow)
    }
    numbers = rows_of_array([int(number) for number in held["tasks"]], "bigint")
    tasks = Task.objects.filter(organisation_id=who.organisation_id, number__in=numbers)
    writers = {
        str(number): writer for number, writer in tasks.values_list("number", "subject_writer")
    }
    return {
        **held,
        "contracts_assigned": [one for one in held["contracts_assigned"] if one in contracts],
        "contracts_issued": [one for one in held["contracts_issued"] if one in contracts],
        "tasks": [one for one in held["tasks"] if reads.covers(writers.get(one))],
    }


def reassign_on_leaving(departure: Departure) -> dict[str, Any]:
    """`reassign_work`, with what was reassigned as details of an event."""
    successor = departure.successor
    held = reassign_work(
        caller=departure.caller,
        leaver=departure.leaver,
        successor=successor,
        reason=departure.reason,
        now=departure.now,
    )
    return {**held.result(), "handed_to": successor.handle if successor else BOARD}


def _tasks_of(leaver: Agent, organisation_id: int) -> tuple[str, ...]:
    numbers = Task.objects.filter(
        organisation_id=organisation_id,
        owner_id=leaver.id,
        status__in=[str(status) for status in UNFINISHED],
    ).order_by("number")
    return tuple(str(n) for n in numbers.values_list("number", flat=True))


def _reason_told(caller: Actor, successor: Agent, reason: str) -> str:
    """What the successor reads of the reason: people's words always, those of an agent where it may
    write to the successor (Spec: mail 43).
    """
    if not isinstance(caller, Caller):
        return f": {one_line(reason)}"
    told = can_tell(caller.policy, caller.agent, successor)
    if isinstance(told, Allow):
        return f": {one_line(reason)}"
    return f" by {caller.handle}, which may not write to you; the ledger has its reason"


def _notice_body(leaver: Agent, held: OpenWork, why: str) -> str:
    lines = [
        f"{leaver.handle} was deactivated{why}",
        "",
        "It leaves to you:",
        f"- contracts it worked on: {_some(held.assigned)}",
        f"- contracts it had issued, now yours to close: {_some(held.issued)}",
        f"- tasks it owned, now free for others: {_some(held.tasks)}",
        f"- tasks without owner that it wrote, seen only by who may read it: {_some(held.written)}",
        f"- unread mails: {held.unread_mails}",
        f"- agents that reported to it and need a new superior: {_some(held.reports)}",
    ]
    return "\n".join(lines)


def _some(names: tuple[str, ...]) -> str:
    return listed(names, most=LISTED) or "none"
