"""Tasks of the dev team, by hand (Spec: tasks 2, tasks 3, tasks 23)."""

from tests.oracle.org import AGENTS

ROLES = (
    "team-lead",
    "product-manager",
    "architect",
    "backend-leader",
    "frontend-leader",
    "client-leader",
    "test-leader",
    "devops-leader",
)

TASK_TYPES = (
    "requirement_analysis",
    "tech_research",
    "architecture_design",
    "api_design",
    "ui_design",
    "backend_implementation",
    "frontend_implementation",
    "client_implementation",
    "testing",
    "deployment",
    "documentation",
    "code_review",
    "bug_fix",
    "optimization",
    "other",
)

# Spec: tasks 42: exactly these roles take these types.
TYPE_ROLES = {
    "backend_implementation": {"backend-leader"},
    "frontend_implementation": {"frontend-leader"},
    "architecture_design": {"architect"},
}
MUST_CLAIM = {"backend-leader": {"backend_implementation", "bug_fix"}}

STATUSES = ("pending", "in_progress", "completed", "deleted")

# Appendix C: rows from, columns to. Y any actor, L the team lead only, - never, = no transition
# (naming the present status is no transition).
TRANSITIONS = """
from         pending in_progress completed deleted
pending      =       Y           -         Y
in_progress  -       =           Y         Y
completed    -       -           =         L
deleted      -       -           -         =
"""

_CELLS = {
    (line.split()[0], STATUSES[column]): cell
    for line in TRANSITIONS.strip().splitlines()[1:]
    for column, cell in enumerate(line.split()[1:])
}


def transition(before: str, after: str, role: str) -> bool | None:
    """Whether the role may make the transition; None where it is not specified."""
    match _CELLS[before, after]:
        case "Y":
            return True
        case "L":
            return role == "team-lead"
        case "=":
            return None
        case _:
            return False


def claim(*, required: str | None, owner: str, caller: str, force: bool) -> str:
    """`OK` or the code, when `caller` sets `owner` (roles; owner "" releases): Spec: tasks 19.

    Says nothing of a caller that names somebody else as owner without force: it is not specified.
    """
    if force and caller != "team-lead":
        return "FORCE_ASSIGN_DENIED"
    if force or not owner or required is None or owner == required:
        return "OK"
    return "ROLE_MISMATCH"


def claims() -> list[tuple[str | None, str, str, bool, str]]:
    """Every role claiming for itself, releasing, and the lead (or another) forcing."""
    lines: list[tuple[str | None, str, str, bool, str]] = []
    for required in (None, *ROLES):
        for caller in ROLES:
            for owner in (caller, ""):
                for force in (False, True):
                    outcome = claim(required=required, owner=owner, caller=caller, force=force)
                    lines.append((required, owner, caller, force, outcome))
        lines += [
            (required, owner, "team-lead", True, "OK") for owner in ROLES if owner != "team-lead"
        ]
    return lines


def listed(*, role_filter: str | None, required: str | None, owner: str) -> bool:
    """Whether task_list shows a task (Spec: tasks 10)."""
    return role_filter is None or required is None or role_filter in (required, owner)


# The sentences, word for word, one tuple for each error; {} in the order of the examples.
# Each is a sentence of its own; what is between them is not fixed.
VERSION_MISMATCH = (
    "Task version mismatch. Expected: {}, Current: {}.",
    "Another agent has modified this task. Please refresh and retry.",
)
ROLE_MISMATCH = (
    'Role mismatch. Task requires "{}", but you are "{}".',
    'Use TaskList({{ roleFilter: "{}" }}) to find tasks for your role.',
)
INVALID_TRANSITION = ('Invalid status transition: "{}" -> "{}".',)
ALLOWED_FROM_COMPLETED = ('Allowed transitions from "completed": ["deleted"] (team-lead only).',)
FORCE_ASSIGN = ("Only team-lead can use forceAssign",)
INVALID_ROLE = ("Invalid requiredRole",)

# By hand (Spec: tasks 33): rows write, columns read. Y: its
# own text, may be contacted without a contract, or is above the writer.
READERS = """
writer  CEO IT  HR  PM  BE  FE  DO  QA  RE
CEO     Y   Y   Y   Y   -   -   -   -   -
IT      Y   Y   Y   Y   Y   Y   Y   Y   -
HR      Y   Y   Y   Y   -   -   -   -   -
PM      Y   Y   Y   Y   -   -   -   -   Y
BE      Y   Y   -   -   Y   -   -   -   -
FE      Y   Y   -   -   -   Y   -   -   -
DO      Y   Y   -   -   -   -   Y   -   -
QA      Y   Y   -   -   -   -   -   Y   -
RE      Y   -   -   Y   -   -   -   -   Y
"""

# The roles that a task may require, by its creator: its own, or a contact (Spec: tasks 35).
ASKS = """
creator CEO IT  HR  PM  BE  FE  DO  QA  RE
CEO     Y   Y   Y   Y   -   -   -   -   -
IT      Y   Y   Y   Y   Y   Y   Y   Y   -
HR      Y   Y   Y   Y   -   -   -   -   -
PM      Y   Y   Y   Y   -   -   -   -   Y
BE      -   Y   -   -   Y   -   -   -   -
FE      -   Y   -   -   -   Y   -   -   -
DO      -   Y   -   -   -   -   Y   -   -
QA      -   Y   -   -   -   -   -   Y   -
RE      -   -   -   Y   -   -   -   -   Y
"""


def _cells(table: str) -> dict[tuple[str, str], bool]:
    lines = [line.split()[1:] for line in table.strip().splitlines()[1:]]
    return {
        (row, column): cell == "Y"
        for row, cells in zip(AGENTS, lines, strict=True)
        for column, cell in zip(AGENTS, cells, strict=True)
    }


SEES = _cells(READERS)
MAY_REQUIRE = _cells(ASKS)
