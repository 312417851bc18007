"""Who may issue which contract to whom, by which tool, and who moves it.

Seed 000 §4.2 (C-07), §4.3, §6.2; decisions.md § Contracts.
"""

from tests.oracle.org import AGENTS, BACKEND, BOARD, CEO, DEVOPS, FRONTEND, HR, IT, PM, QA, RESEARCH

KINDS = ("work", "org_change", "deployment_approval", "budget")
ISSUING_TOOLS = ("generate_contract", "create_contract", "approve_deployment")
HOLDERS = {
    "generate_contract": {CEO},
    "create_contract": {IT, HR, PM},
    "approve_deployment": {IT},
}

# (tool, kind): {issuer: recipients}. What is not here is refused: upward, sideways, to oneself, to
# the Board, to another department's worker. HR has the tool and nobody to send one to.
MAY_ISSUE = {
    ("generate_contract", "work"): {CEO: {IT, HR, PM}},
    ("generate_contract", "org_change"): {CEO: {HR}},
    ("generate_contract", "budget"): {CEO: {IT, HR, PM}},
    ("create_contract", "work"): {
        IT: {BACKEND, FRONTEND, DEVOPS, QA},
        PM: {RESEARCH, FRONTEND},  # the frontend worker is managed together (§4.1)
        HR: set(),
    },
    ("approve_deployment", "deployment_approval"): {IT: {DEVOPS}},
}

# Codes by which an issuer that holds the tool may be refused: the seeds fix that it is refused and
# said, not which of two broken rules is named first.
REFUSALS = frozenset(
    {
        "CONTACT_DENIED",
        "LEVEL_DENIED",
        "RECIPIENT_UNKNOWN",  # `board` is no agent (§4.3)
        "MAIL_TYPE_DENIED",
        "ROLE_MISMATCH",  # an authorisation for who lacks the tools that it authorises
        "AUTHORISATION_REQUIRED",
        "INVALID_PARAMS",  # a kind that this tool never issues
    }
)


def expected(tool: str, issuer: str, recipient: str, kind: str) -> str:
    """`OK`, `TOOL_NOT_BOUND`, or `REFUSED` (one of REFUSALS)."""
    if issuer not in HOLDERS[tool]:
        return "TOOL_NOT_BOUND"
    allowed = MAY_ISSUE.get((tool, kind), {}).get(issuer, set())
    return "OK" if recipient in allowed else "REFUSED"


def table() -> list[tuple[str, str, str, str, str]]:
    """Every (tool, issuer, recipient, kind, outcome): 3 × 9 × 10 × 4 lines."""
    return [
        (tool, issuer, recipient, kind, expected(tool, issuer, recipient, kind))
        for tool in ISSUING_TOOLS
        for issuer in AGENTS
        for recipient in (*AGENTS, BOARD)
        for kind in KINDS
    ]


STATES = ("pending", "in_progress", "review", "passed", "failed", "cancelled")
FINAL = ("passed", "failed", "cancelled")

# (from, to): who moves it. §6.2 and decisions.md; every other move is refused.
# A contract with a workspace_scope passes only after a QA agent's PASS, whoever closes it (§1.3).
MOVES = {
    ("pending", "in_progress"): "assignee",  # accept_contract
    ("in_progress", "review"): "assignee",  # submit_report, kind completion
    ("review", "passed"): "issuer",  # close_contract
    ("review", "failed"): "issuer",
    ("pending", "cancelled"): "issuer",  # or a human, with a reason
    ("in_progress", "cancelled"): "issuer",
    ("review", "cancelled"): "issuer",
}
