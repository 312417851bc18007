"""Closed sets of contracts, and their state machine (Spec: contracts 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from core.language import gettext_noop
from core.machines import Machine, Step


class ContractKind(StrEnum):
    """What a contract is for: work, or an authorisation (Spec: contracts 12)."""

    WORK = "work"
    ORG_CHANGE = "org_change"
    DEPLOYMENT_APPROVAL = "deployment_approval"
    BUDGET = "budget"


class ContractState(StrEnum):
    """The states of a contract (Spec: contracts 2)."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    REVIEW = "review"
    PASSED = "passed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class DeadlineStage(StrEnum):
    """What a deadline sends: a reminder before it, or that it passed (Spec: contracts 38)."""

    REMIND = "remind"
    OVERDUE = "overdue"


class ContractMove(StrEnum):
    """The transitions of a contract, named as the model's methods."""

    ACCEPT = "accept"
    SUBMIT = "submit"
    REWORK = "rework"
    PASS = "close_passed"  # noqa: S105  a transition, not a password
    FAIL = "close_failed"
    CANCEL = "close_cancelled"


class ContractOutcome(StrEnum):
    """How the issuer decides on a contract; `rework` sends it back (Spec: contracts 23)."""

    PASSED = "passed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REWORK = "rework"

    @property
    def move(self) -> ContractMove:
        """The transition to this outcome."""
        return {
            ContractOutcome.PASSED: ContractMove.PASS,
            ContractOutcome.FAILED: ContractMove.FAIL,
            ContractOutcome.CANCELLED: ContractMove.CANCEL,
            ContractOutcome.REWORK: ContractMove.REWORK,
        }[self]


class OrgAct(StrEnum):
    """What a line of an org_change contract allows, once (Spec: contracts 13)."""

    HIRE = "hire"
    DESCRIBE = "describe"
    MOVE = "move"
    DEACTIVATE = "deactivate"
    RESTRICT_TOOLS = "restrict_tools"


AS_ROLE = gettext_noop("%(change)s as %(role)s")
REPORTING_TO = gettext_noop("%(change)s, reporting to %(superior)s")
WITH_CO_MANAGERS = gettext_noop("%(change)s, co-managed by %(names)s")
WITH_SKILLS = gettext_noop("%(change)s, with the skills %(names)s")
IN_GROUP = gettext_noop("%(change)s, in the group %(group)s")
AS_LEADER = gettext_noop("%(change)s, as the leader of the group %(group)s")


def named_change(
    act: str,
    subject: str,
    role: str = "",
    reports_to: str = "",
    co_managers: Iterable[str] = (),
    skills: Iterable[str] = (),
    group: str = "",
    leads: str = "",
    *,
    say: Callable[[str], str] = str,
) -> str:
    """A change as a line of a contract names it; `say` gives a phrase in the language of a page."""
    change = f"{act} {subject}"
    if role:
        change = say(AS_ROLE) % {"change": change, "role": role}
    if reports_to:
        change = say(REPORTING_TO) % {"change": change, "superior": reports_to}
    for phrase, name in ((IN_GROUP, group), (AS_LEADER, leads)):
        if name:
            change = say(phrase) % {"change": change, "group": name}
    for phrase, names in ((WITH_CO_MANAGERS, co_managers), (WITH_SKILLS, skills)):
        if listed := ", ".join(names):
            change = say(phrase) % {"change": change, "names": listed}
    return change


class ReportKind(StrEnum):
    """Whether a report submits the work (Spec: contracts 21)."""

    PROGRESS = "progress"
    COMPLETION = "completion"


class VerdictFinding(StrEnum):
    """What QA finds (Spec: contracts 26)."""

    PASS = "PASS"  # noqa: S105  a finding, no password
    FAIL = "FAIL"


class ContractSide(StrEnum):
    """The side of a contract that an agent is on (Spec: contracts 40)."""

    ISSUED = "issued"
    ASSIGNED = "assigned"


OPEN_STATES = (ContractState.PENDING, ContractState.IN_PROGRESS, ContractState.REVIEW)
AT_WORK = (ContractState.IN_PROGRESS, ContractState.REVIEW)
FINAL_STATES = (ContractState.PASSED, ContractState.FAILED, ContractState.CANCELLED)

MACHINE = Machine(
    "contract",
    ContractState,
    ContractState.PENDING,
    {
        ContractMove.ACCEPT: Step((ContractState.PENDING,), ContractState.IN_PROGRESS, "assignee"),
        ContractMove.SUBMIT: Step(
            (ContractState.IN_PROGRESS,), ContractState.REVIEW, "assignee, by a completion report"
        ),
        ContractMove.REWORK: Step(
            (ContractState.REVIEW,), ContractState.IN_PROGRESS, "issuer, with a reason"
        ),
        ContractMove.PASS: Step(
            (ContractState.REVIEW,),
            ContractState.PASSED,
            "issuer, after a PASS of QA on this submission of code work",
        ),
        ContractMove.FAIL: Step((ContractState.REVIEW,), ContractState.FAILED, "issuer"),
        ContractMove.CANCEL: Step(
            OPEN_STATES, ContractState.CANCELLED, "issuer, Board, or the expiry of an approval"
        ),
    },
)
