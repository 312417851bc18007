"""Who may issue which contract to whom, by which tool, and who moves it.

Spec: contracts 2, contracts 4, contracts 5.
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
        PM: {RESEARCH, FRONTEND},  # the frontend worker is managed together (Spec: organisation 21)
        HR: set(),
    },
    ("approve_deployment", "deployment_approval"): {IT: {DEVOPS}},
}

# Codes by which an issuer that holds the tool may be refused: the rule is that it is refused and
# said, not which of two broken rules is named first.
REFUSALS = frozenset(
    {
        "CONTACT_DENIED",
        "LEVEL_DENIED",
        "RECIPIENT_UNKNOWN",  # `board` is no agent (Spec: people 1)
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

# (from, to): who moves it (Spec: contracts 2); every other move is refused.
# Code work passes only after a QA agent's PASS on the latest submission, whoever closes it.
# Spec: contracts 25.
MOVES = {
    ("pending", "in_progress"): "assignee",  # accept_contract
    ("in_progress", "review"): "assignee",  # submit_report, kind completion
    ("review", "in_progress"): "issuer",  # close_contract, outcome rework
    ("review", "passed"): "issuer",  # close_contract
    ("review", "failed"): "issuer",
    ("pending", "cancelled"): "issuer",  # or a human, with a reason
    ("in_progress", "cancelled"): "issuer",
    ("review", "cancelled"): "issuer",
}

# What makes code work (Spec: contracts 24): any one of the three.
# (mode, workspace_scope, assigned_branch): is it code work? docs/, reports/ and backlog/ hold none.
CODE_WORK = {
    ("chat_safe", (), ""): False,
    ("chat_safe", ("docs/market/",), ""): False,
    ("chat_safe", ("docs/", "reports/research/", "backlog/"), ""): False,
    ("chat_safe", ("docs",), ""): False,
    ("chat_safe", ("src/",), ""): True,
    ("chat_safe", ("docs/market/", "src/api/"), ""): True,
    ("chat_safe", ("documents/",), ""): True,
    ("chat_safe", ("docs-evil/",), ""): True,
    ("chat_safe", ("DOCS/",), ""): True,
    ("chat_safe", ("tests/",), ""): True,
    ("chat_safe", ("agents/backend_worker/",), ""): True,
    ("chat_safe", (), "feature/login"): True,
    ("chat_safe", ("docs/market/",), "feature/login"): True,
    ("coding", (), ""): True,
    ("coding", ("docs/market/",), ""): True,
    ("coding", ("src/",), "feature/login"): True,
}

# Who can get code work of which issuer, because a QA agent sees it and is not responsible for it:
# QA judges the IT department (its workers, its manager, and the shared frontend worker). Every
# other pair of MAY_ISSUE is refused when the contract is issued. QA itself gets coding and folders
# (it judges with them, and only reads there), but no branch: no other QA could judge that.
CODE_FOR = {(IT, BACKEND), (IT, FRONTEND), (IT, DEVOPS), (PM, FRONTEND), (CEO, IT)}
READS_FOR_JUDGING = {(IT, QA)}


def may_order(issuer: str, assignee: str, terms: tuple[str, tuple[str, ...], str]) -> bool:
    """Whether a contract that is otherwise allowed may have these terms."""
    if not CODE_WORK[terms] or (issuer, assignee) in CODE_FOR:
        return True
    return (issuer, assignee) in READS_FOR_JUDGING and not terms[2]


# (verdicts of QA agents on this submission, in order): may the issuer close it as passed?
MAY_PASS = {
    (): False,
    ("PASS",): True,
    ("FAIL",): False,
    ("PASS", "PASS"): True,
    ("FAIL", "PASS"): False,  # a FAIL stays until there is a new submission
    ("PASS", "FAIL"): False,
}

# Which one contract a session works under: (contracts in progress, bound to) -> its rights.
# A: src/a/ and branch a; B: src/b/ and branch b; D: docs/ only. `?` is CONTRACT_REQUIRED.
RIGHTS = {
    ((), ""): "",
    (("A",), ""): "A",
    (("B",), ""): "B",
    (("A",), "A"): "A",
    (("A",), "B"): "A",  # B is no longer in progress
    (("A", "B"), ""): "?",
    (("A", "B"), "A"): "A",
    (("A", "B"), "B"): "B",
    (("A", "B"), "C"): "?",  # another agent's, or closed
    (("A", "D"), ""): "?",
    (("A", "D"), "D"): "D",
    (("A", "B", "D"), ""): "?",
    (("A", "B", "D"), "D"): "D",
}
COVERS = {
    "": set(),
    "?": set(),
    "A": {"src/a/x.py", "a"},
    "B": {"src/b/x.py", "b"},
    "D": {"docs/x.md"},
}

# An org_change line allows exactly its act on exactly its subject, once:
# tool -> the act that it needs of the agent that it changes.
ACTS = {
    "create_agent_jd": "hire",
    "update_agent_jd": "describe",
    "update_org_chart": "move",
    "deactivate_agent": "deactivate",
}
