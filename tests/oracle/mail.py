"""Who may send what (Spec: mail 5, mail 8, mail 9, mail 19).

`expected` answers for send_mail. First failing rule decides: the recipient exists; is active; is a
contact; the type is none that only a tool issues; is in the sender's ceiling and the
pair's rule, an escalation only to the direct superior (step 4); the pair's contract is there.
"""

from tests.oracle.org import (
    AGENTS,
    BACKEND,
    BOARD,
    CEO,
    CHAIN,
    DEVOPS,
    FRONTEND,
    HR,
    IT,
    PM,
    QA,
    RESEARCH,
)

# Spec: mail 5. The columns are those who may send the type at all.
TYPES = """
type                       CEO IT  HR  PM  BE  FE  DO  QA  RE
contract                   Y   Y   Y   Y   -   -   -   -   -
report                     Y   Y   Y   Y   Y   Y   Y   Y   Y
approval_request           -   Y   Y   Y   Y   Y   Y   Y   Y
info                       Y   Y   Y   Y   Y   Y   Y   Y   Y
escalation                 -   Y   Y   Y   Y   Y   Y   Y   Y
question                   -   -   -   -   Y   Y   Y   Y   Y
verdict                    -   -   -   -   -   -   -   Y   -
staffing_request           -   Y   Y   Y   -   -   -   -   -
tool_request               -   Y   Y   Y   -   -   -   -   -
tech_review                -   Y   -   -   -   -   -   -   -
requirement_clarification  -   -   -   Y   -   -   -   -   -
deployment_approval        -   Y   -   -   -   -   -   -   -
feasibility_request        -   Y   -   Y   -   -   -   -   -
"""

# Spec: mail 8: rows send, columns receive. Y always, * under a condition, X never.
PAIRS = """
from  CEO IT  HR  PM  BE  FE  DO  QA  RE
CEO   -   Y   Y   Y   X   X   X   X   X
IT    Y   -   *   *   Y   Y   Y   Y   X
HR    Y   *   -   *   X   X   X   X   X
PM    Y   *   *   -   X   *   X   X   Y
BE    X   Y   X   X   -   X   X   X   X
FE    X   Y   X   *   X   -   X   X   X
DO    X   Y   X   X   X   X   -   X   X
QA    X   Y   X   X   X   X   X   -   X
RE    X   X   X   Y   X   X   X   X   -
"""

# Spec: mail 23: moved only by the tools that also move a state machine.
ISSUED_BY = {
    "contract": ("generate_contract", "create_contract"),
    "deployment_approval": ("approve_deployment",),
    "verdict": ("write_verdict",),
}

CONTRACT_STATES = (
    "none",  # no contract_ref
    "pending",  # the contract grants this channel and this type, and stands at …
    "in_progress",
    "review",
    "passed",
    "failed",
    "cancelled",
    "no_grant",  # in progress, grants nothing
    "other_pair",  # in progress, grants a channel of another pair
    "other_way",  # in progress, grants the reverse direction only
    "other_type",  # in progress, grants this channel for another type
)
OPEN = ("pending", "in_progress", "review")

_FROM_WORKER = {"report", "approval_request", "info", "escalation", "question"}
_FROM_MANAGER = {"report", "approval_request", "info", "staffing_request", "tool_request"}

# What send_mail carries: one line for each pair that is not X above. Written out, not computed.
ALLOWED = {
    (CEO, IT): {"report", "info"},
    (CEO, HR): {"report", "info"},
    (CEO, PM): {"report", "info"},
    (CEO, BOARD): {"report"},  # Spec: mail 24
    (IT, CEO): _FROM_MANAGER | {"escalation", "tech_review", "feasibility_request"},
    (HR, CEO): _FROM_MANAGER | {"escalation"},
    (PM, CEO): _FROM_MANAGER | {"escalation", "requirement_clarification", "feasibility_request"},
    (IT, BACKEND): _FROM_MANAGER | {"tech_review", "feasibility_request"},
    (IT, FRONTEND): _FROM_MANAGER | {"tech_review", "feasibility_request"},
    (IT, DEVOPS): _FROM_MANAGER | {"tech_review", "feasibility_request"},
    (IT, QA): _FROM_MANAGER | {"tech_review", "feasibility_request"},
    (PM, RESEARCH): _FROM_MANAGER | {"requirement_clarification", "feasibility_request"},
    (BACKEND, IT): _FROM_WORKER,
    (FRONTEND, IT): _FROM_WORKER,
    (DEVOPS, IT): _FROM_WORKER,
    (QA, IT): _FROM_WORKER,
    (RESEARCH, PM): _FROM_WORKER,
    (IT, HR): {"tool_request", "staffing_request"},
    (HR, IT): {"tool_request", "staffing_request"},
    (IT, PM): {"tech_review", "feasibility_request"},
    (PM, IT): {"feasibility_request"},  # tech_review is the IT Manager's (Spec: mail 5)
    (HR, PM): {"staffing_request"},
    (PM, HR): {"staffing_request"},
    (PM, FRONTEND): {"requirement_clarification"},
    (FRONTEND, PM): {"question"},
}

NEEDS_CONTRACT = {(PM, FRONTEND), (FRONTEND, PM)}


def _grid(text: str) -> dict[str, dict[str, str]]:
    rows = [line.split() for line in text.strip().splitlines()[1:]]
    return {row[0]: dict(zip(AGENTS, row[1:], strict=True)) for row in rows}


_SHORT = dict(zip(("CEO", "IT", "HR", "PM", "BE", "FE", "DO", "QA", "RE"), AGENTS, strict=True))
_TYPE_GRID = _grid(TYPES)

MAIL_TYPES = tuple(_TYPE_GRID)
CEILING = {
    sender: frozenset(kind for kind, row in _TYPE_GRID.items() if row[sender] == "Y")
    for sender in AGENTS
}
CONTACT = {
    (_SHORT[sender], recipient): cell
    for sender, row in _grid(PAIRS).items()
    for recipient, cell in row.items()
} | {(sender, BOARD): "*" if sender == CEO else "X" for sender in AGENTS}


def expected(
    sender: str,
    recipient: str,
    mail_type: str,
    contract_state: str = "none",
    inactive: frozenset[str] = frozenset(),
) -> str:
    """`OK`, or the error code of the first rule that refuses."""
    if recipient not in (*AGENTS, BOARD):
        return "RECIPIENT_UNKNOWN"
    if CONTACT[sender, recipient] not in ("Y", "*"):
        return "CONTACT_DENIED"
    if recipient in inactive:
        return "RECIPIENT_INACTIVE"
    if mail_type in ISSUED_BY or mail_type not in ALLOWED[sender, recipient]:
        return "MAIL_TYPE_DENIED"
    if (sender, recipient) in NEEDS_CONTRACT and contract_state not in OPEN:
        return "CONTRACT_REQUIRED"
    return "OK"


def table() -> list[tuple[str, str, str, str, str]]:
    """Every (sender, recipient, type, contract state, outcome): 9 × 10 × 13 × 11 lines."""
    return [
        (sender, recipient, mail_type, state, expected(sender, recipient, mail_type, state))
        for sender in AGENTS
        for recipient in (*AGENTS, BOARD)
        for mail_type in MAIL_TYPES
        for state in CONTRACT_STATES
    ]


# Who an escalation reaches (Spec: escalation 1): one step up, never past the direct superior.
ESCALATES_TO = {agent: CHAIN[agent][2] for agent in AGENTS if agent != CEO}
