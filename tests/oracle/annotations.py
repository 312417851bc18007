"""What each tool does to its surroundings: the hints of MCP's tools/list, judged by hand.

reads    changes nothing but the trace that it was called.
ends     what stood before the call may be gone after it: overwritten, withdrawn, cancelled, taken
         from somebody, put into service in place of something.
repeats  the same call a second time leaves everything as the first one left it, or is refused.
open     it deals with what is neither ours nor known beforehand: the web, a host of other people's.

A tool that reads ends nothing and may be repeated, so only its first and last column say anything.
"""

from typing import NamedTuple


class Hints(NamedTuple):
    """One line of the table."""

    reads: bool
    ends: bool
    repeats: bool
    open: bool


NAMES = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")

TABLE = """
tool                reads ends repeats open
generate_contract   -     -    -       -
create_contract     -     -    -       -
send_mail           -     -    -       -
write_note          -     -    -       -
read_reports        Y     -    Y       -
read_tech_reports   Y     -    Y       -
read_code           Y     -    Y       -
review_pr           -     -    -       -
manage_tools        -     Y    -       -
assign_task         -     Y    -       -
approve_deployment  -     -    -       -
request_budget      -     -    -       -
create_agent_jd     -     -    -       -
update_agent_jd     -     Y    -       -
deactivate_agent    -     Y    Y       -
update_org_chart    -     Y    -       -
list_agents         Y     -    Y       -
write_prd           -     -    -       -
manage_backlog      -     Y    -       -
read_user_feedback  Y     -    Y       -
prioritize_tasks    -     Y    -       -
read_file           Y     -    Y       -
write_file          -     Y    Y       -
run_test            -     -    -       -
git_commit          -     -    -       -
git_push            -     -    Y       -
git_branch          -     -    Y       -
docker_build        -     -    -       Y
docker_deploy       -     Y    -       Y
manage_ci_config    -     Y    Y       -
run_health_check    Y     -    Y       -
read_logs           Y     -    Y       -
run_linter          Y     -    Y       -
write_verdict       -     -    -       -
web_search          Y     -    Y       Y
read_url            Y     -    Y       Y
write_report        -     -    -       -
read_contract       Y     -    Y       -
submit_report       -     -    -       -
escalate            -     -    -       -
read_inbox          Y     -    Y       -
read_mail           -     -    Y       -
accept_contract     -     -    Y       -
close_contract      -     Y    Y       -
list_contracts      Y     -    Y       -
task_create         -     -    -       -
task_get            Y     -    Y       -
task_list           Y     -    Y       -
task_update         -     Y    -       -
task_comment        -     -    -       -
task_approve        -     Y    -       -
task_recommend      Y     -    Y       -
delegate_to         -     -    -       -
return_result       -     Y    -       -
next_frame          -     -    Y       -
use_skill           -     -    -       -
save_artifact       -     -    -       -
read_memory         Y     -    Y       -
memory_search       Y     -    Y       -
memory_append       -     -    -       -
case_open           -     -    -       -
case_submit         -     -    -       -
case_inputs         Y     -    Y       -
case_list           Y     -    Y       -
case_decide         -     Y    -       -
current_time        Y     -    Y       -
"""

HINTS = {
    name: Hints(*(cell == "Y" for cell in cells))
    for name, *cells in (line.split() for line in TABLE.strip().splitlines()[1:])
}
