"""Which role holds which tool (Spec: tools 4); groups and modes (Spec: modes 2).

The matrix is the specification's, line by line: Y is bound, - is not. QA has write_file.
"""

from tests.oracle.org import (
    AGENTS,
    BACKEND,
    CEO,
    DEVOPS,
    FRONTEND,
    HR,
    IT,
    PM,
    QA,
    RESEARCH,
)

MATRIX = """
tool                CEO IT  HR  PM  BE  FE  DO  QA  RE
generate_contract   Y   -   -   -   -   -   -   -   -
create_contract     -   Y   Y   Y   -   -   -   -   -
send_mail           Y   Y   Y   Y   Y   Y   Y   Y   Y
write_note          Y   Y   Y   Y   -   -   -   -   -
read_reports        Y   Y   Y   Y   -   -   -   -   -
read_tech_reports   -   Y   -   -   -   -   -   -   -
read_code           -   Y   -   -   -   -   -   -   -
review_pr           -   Y   -   -   -   -   -   -   -
manage_tools        -   Y   -   -   -   -   -   -   -
assign_task         -   Y   -   -   -   -   -   -   -
approve_deployment  -   Y   -   -   -   -   -   -   -
request_budget      -   Y   -   -   -   -   -   -   -
create_agent_jd     -   -   Y   -   -   -   -   -   -
update_agent_jd     -   -   Y   -   -   -   -   -   -
deactivate_agent    -   -   Y   -   -   -   -   -   -
update_org_chart    -   -   Y   -   -   -   -   -   -
list_agents         -   -   Y   -   -   -   -   -   -
write_prd           -   -   -   Y   -   -   -   -   -
manage_backlog      -   -   -   Y   -   -   -   -   -
read_user_feedback  -   -   -   Y   -   -   -   -   -
prioritize_tasks    -   -   -   Y   -   -   -   -   -
read_file           -   -   -   -   Y   Y   Y   Y   -
write_file          -   -   -   -   Y   Y   Y   Y   -
run_test            -   -   -   -   Y   Y   -   Y   -
git_commit          -   -   -   -   Y   Y   -   -   -
git_push            -   -   -   -   Y   Y   -   -   -
git_branch          -   -   -   -   Y   Y   -   -   -
docker_build        -   -   -   -   -   -   Y   -   -
docker_deploy       -   -   -   -   -   -   Y   -   -
manage_ci_config    -   -   -   -   -   -   Y   -   -
run_health_check    -   -   -   -   -   -   Y   -   -
read_logs           -   -   -   -   -   -   Y   -   -
run_linter          -   -   -   -   -   -   -   Y   -
write_verdict       -   -   -   -   -   -   -   Y   -
web_search          -   -   -   -   -   -   -   -   Y
read_url            -   -   -   -   -   -   -   -   Y
write_report        -   -   -   -   -   -   -   -   Y
read_contract       -   -   -   -   Y   Y   Y   Y   Y
submit_report       -   -   -   -   Y   Y   Y   Y   Y
escalate            -   Y   Y   Y   Y   -   Y   Y   -
"""

_ROWS = {line.split()[0]: line.split()[1:] for line in MATRIX.strip().splitlines()[1:]}

ROLE_TOOLS = tuple(_ROWS)
BOUND = {
    role: frozenset(tool for tool, cells in _ROWS.items() if cells[column] == "Y")
    for column, role in enumerate(AGENTS)
}

# Spec: tools 5: bound to every agent, in every organisation, in both modes.
BUILTIN = frozenset(
    {
        "read_inbox",
        "read_mail",
        "accept_contract",
        "close_contract",
        "list_contracts",
        "task_create",
        "task_get",
        "task_list",
        "task_update",
        "task_comment",
        "task_approve",
        "task_recommend",
        "delegate_to",
        "return_result",
        "next_frame",
        "use_skill",
        "save_artifact",
        "read_memory",
        "memory_search",
        "memory_append",
        "current_time",
    }
)

# Spec: tools 7: bound to the roles that hold a constitutional office only.
OFFICE = frozenset({"case_open", "case_submit", "case_inputs", "case_list", "case_decide"})

# Spec: modes 2: group `code`, modes {coding}. Every other tool is {chat_safe, coding}.
CODE = frozenset(
    {
        "read_file",
        "write_file",
        "read_code",
        "run_test",
        "run_linter",
        "git_commit",
        "git_push",
        "git_branch",
        "docker_build",
        "docker_deploy",
        "manage_ci_config",
        "review_pr",
        "run_health_check",
        "read_logs",
    }
)

# Spec: modes 2; the groups of the other tools are for display.
GROUPS = dict.fromkeys(CODE, "code") | {
    "current_time": "world",
    "memory_search": "memory",
    "memory_append": "memory",
}

# What is left of each role's own tools in chat_safe, written out: what a worker does without hands.
CHAT_SAFE = {
    CEO: {"generate_contract", "send_mail", "write_note", "read_reports"},
    IT: {
        "send_mail",
        "create_contract",
        "read_reports",
        "manage_tools",
        "assign_task",
        "write_note",
        "read_tech_reports",
        "approve_deployment",
        "request_budget",
        "escalate",
    },
    HR: {
        "send_mail",
        "create_contract",
        "create_agent_jd",
        "update_agent_jd",
        "deactivate_agent",
        "update_org_chart",
        "read_reports",
        "write_note",
        "list_agents",
        "escalate",
    },
    PM: {
        "send_mail",
        "create_contract",
        "write_prd",
        "manage_backlog",
        "read_reports",
        "write_note",
        "read_user_feedback",
        "prioritize_tasks",
        "escalate",
    },
    BACKEND: {"send_mail", "read_contract", "submit_report", "escalate"},
    FRONTEND: {"send_mail", "read_contract", "submit_report"},
    DEVOPS: {"send_mail", "read_contract", "submit_report", "escalate"},
    QA: {"send_mail", "write_verdict", "read_contract", "submit_report", "escalate"},
    RESEARCH: {
        "send_mail",
        "web_search",
        "read_url",
        "write_report",
        "read_contract",
        "submit_report",
    },
}


def modes(tool: str) -> frozenset[str]:
    """The modes a tool declares (Spec: modes 2)."""
    return frozenset({"coding"}) if tool in CODE else frozenset({"chat_safe", "coding"})


# Spec: tools 28: NEXUS has no groups, its agents have no skills, and no
# type of task asks for approval. A frame, if there is one, can be seen and left.
UNUSABLE = frozenset({"delegate_to", "use_skill", "task_approve"})
ONLY_IN_A_FRAME = frozenset({"next_frame", "return_result"})


def visible(role: str, mode: str, *, in_frame: bool = False) -> frozenset[str]:
    """Exactly what a NEXUS agent's tool list holds; in a frame, what the frame may leave of it."""
    mine = BOUND[role] if mode == "coding" else CHAT_SAFE[role]
    found = frozenset(mine) | (BUILTIN - UNUSABLE)
    return found if in_frame else found - ONLY_IN_A_FRAME


def answer(role: str, mode: str, tool: str, frames: tuple[frozenset[str], ...] = ()) -> str:
    """What the execution gate says to a NEXUS agent: OK, or the code of its refusal.

    `frames` is what each frame of the stack allows, the lowest first: a tool must be in all of
    them (Spec: tools 9, frames 7: a frame's tools never
    exceed its opener's). A frame can always be left.
    """
    if tool not in ROLE_TOOLS and tool not in BUILTIN:
        return "UNKNOWN_TOOL"
    if tool not in BOUND[role] and tool not in BUILTIN:
        return "TOOL_NOT_BOUND"
    if tool in UNUSABLE or (tool in ONLY_IN_A_FRAME and not frames):
        return "TOOL_NOT_BOUND"
    if tool != "return_result" and not all(tool in frame for frame in frames):
        return "TOOL_DENIED"
    return "OK" if mode in modes(tool) else "MODE_DENIED"
