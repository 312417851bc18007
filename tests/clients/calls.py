"""One call of each tool that is carried out, and one for each refusal a tool can give.

A maker sets the scene in the running companies and says what to call; made twice, the two calls
stand alike.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.utils import timezone

from orgchart.models import Agent
from orgchart.services import change_policy
from tests.clients.staff import Staff
from tests.company import Company
from tests.governance.cases.world import AGENT, CONTENT, EVIDENCE
from workspace.tree import organisation_folder

DIGEST = "sha256:" + "a" * 64
MAIL = {"to": "it_manager", "type": "info", "subject": "Hello", "body": "A word."}
WORK = {"title": "Login", "body": "Build it."}
SKILL = "tidy"


@dataclass(frozen=True)
class Call:
    """What to call: by whom, in which company, in a session of its own or one given."""

    handle: str
    params: dict[str, Any] = field(default_factory=dict)
    coding: bool = False
    group: bool = False  # of the company that has groups
    court: bool = False  # of the company that has the six offices
    session: str | None = None


@dataclass
class World:
    """Both companies: the NEXUS one served, and SoloQueue, which has groups and skills."""

    staff: Staff
    solo: Company
    court: Company

    def company(self, call: Call) -> Company:
        if call.court:
            return self.court
        return self.solo if call.group else self.staff.company

    def headers(self, call: Call) -> dict[str, str]:
        company = self.company(call)
        session = call.session or self.session(company, call.handle, coding=call.coding)
        return {"Authorization": f"Bearer {company.key(call.handle)}", "X-Nexus-Session": session}

    def session(self, company: Company, handle: str, *, coding: bool = False) -> str:
        if coding:
            return self.staff.coding(handle)
        return str(company.post("/api/v1/sessions", {}, handle).body["id"])

    def done(self, handle: str, tool: str, /, **params: Any) -> dict[str, Any]:
        """A call in the NEXUS company that must be carried out: its result."""
        return self.staff.company.call(handle, tool, **params).result

    def in_group(self, handle: str, tool: str, session: str, /, **params: Any) -> dict[str, Any]:
        """The same in SoloQueue."""
        headers = {"X-Nexus-Session": session}
        return self.solo.call(handle, tool, headers, **params).result

    def case(self, *submitted: str) -> str:
        """A case of the constitution in which these stages are submitted."""
        opened = self.court.call("analyst", "case_open", title="A case", request="Say ok").result
        for stage in submitted:
            params = {"case_id": opened["case_id"], "stage": stage, "content": CONTENT[stage]}
            outcome = {"REVIEW": "APPROVED", "TEST": "PASSED"}.get(stage, "OK")
            evidence = EVIDENCE if stage == "TEST" else []
            self.court.call(
                AGENT[stage], "case_submit", **params, outcome=outcome, evidence=evidence
            )
        return str(opened["case_id"])

    def contract(self, to: str = "backend_worker", state: str = "pending", **terms: Any) -> str:
        """A contract of the IT manager's."""
        made = self.done("it_manager", "create_contract", to=to, **{**WORK, **terms})
        if state in ("in_progress", "review"):
            self.done(to, "accept_contract", contract_id=made["contract_id"])
        if state == "review":
            self.done(to, "submit_report", contract_id=made["contract_id"], kind="completion",
                      title="Done", body="It works.")  # fmt: skip
        return str(made["contract_id"])

    def org_change(self, *changes: str) -> None:
        """HR may carry out these changes (`act subject`), each once; a move gives a co-manager."""
        more = {"move": {"co_managers": ["it_manager"]}}
        named = [
            {"act": act, "subject": who, **more.get(act, {})}
            for act, who in map(str.split, changes)
        ]
        made = self.done("ceo", "generate_contract", to="hr_manager", kind="org_change",
                         changes=named, **WORK)  # fmt: skip
        self.done("hr_manager", "accept_contract", contract_id=made["contract_id"])

    def hired(self) -> str:
        """An agent that was not there before."""
        number = Agent.objects.count()
        handle = f"helper_{number}"
        self.org_change(*(f"{act} {handle}" for act in ("hire", "describe", "move", "deactivate")))
        self.done("hr_manager", "create_agent_jd", handle=handle, title="Helper",
                  role="research_worker", job_description="Helps.")  # fmt: skip
        return handle

    def task(self, by: str = "it_manager", **fields: Any) -> str:
        return str(self.done(by, "task_create", subject="A thing to do", **fields)["id"])

    def give_skill(self, handle: str) -> None:
        agent = self.solo.agent(handle)
        if SKILL in agent.skills:
            return

        def apply(_: Any) -> None:
            agent.skills = [*agent.skills, SKILL]
            agent.save(update_fields=["skills"])

        change_policy(
            organisation_id=self.solo.organisation.id,
            apply=apply,
            caller=self.solo.system,
            action="agent.changed",
            now=timezone.now(),
        )

    def ask_for_approval(self) -> None:
        """From here on deployments need approval, so that task_approve is listed."""

        def apply(row: Any) -> None:
            row.settings = {**row.settings, "approval_task_types": ["deployment"]}
            row.save(update_fields=["settings"])

        company = self.staff.company
        if not company.policy.settings["approval_task_types"]:
            change_policy(
                organisation_id=company.organisation.id,
                apply=apply,
                caller=company.system,
                action="organisation.changed",
                now=timezone.now(),
            )

    def leave(self, *handles: str) -> None:
        """Agents of SoloQueue leave the frames that other calls put them into."""
        for handle in handles:
            while self.solo.caller(handle).frame_id is not None:
                self.solo.call(handle, "return_result", result="over")

    def delegated(self) -> str:
        """A session of the developer, for which work waits that it has not taken."""
        self.leave("coding_leader", "coding_developer")
        leader = self.session(self.solo, "coding_leader")
        self.in_group("coding_leader", "delegate_to", leader, to="coding.developer",
                      instruction="Do it.")  # fmt: skip
        return self.session(self.solo, "coding_developer")


Maker = Callable[[World], Call]
DONE: dict[str, Maker] = {}
REFUSED: dict[str, tuple[str, Maker]] = {}


def done(maker: Maker) -> Maker:
    """A call that is carried out; the function bears the tool's name."""
    DONE[maker.__name__] = maker
    return maker


def refused(tool: str) -> Callable[[Maker], Maker]:
    """A call of that tool that is refused; the function bears the code's name in small letters."""

    def keep(maker: Maker) -> Maker:
        REFUSED[maker.__name__.upper()] = (tool, maker)
        return maker

    return keep


def always(handle: str, **params: Any) -> Maker:
    """A call that needs no scene."""
    return lambda _: Call(handle, params)


DONE |= {
    "current_time": always("ceo"),
    "read_memory": always("ceo"),
    "memory_append": always("ceo", text="Remember this."),
    "memory_search": always("ceo", query="this"),
    "save_artifact": always("ceo", name="plan.md", content="A plan."),
    "write_note": always("ceo", title="Plan", content="A plan."),
    "write_report": always("research_worker", title="Found", content="Much."),
    "write_prd": always("product_manager", title="Login", content="As a user …"),
    "read_reports": always("ceo"),
    "read_tech_reports": always("it_manager"),
    "send_mail": always("backend_worker", **MAIL),
    "escalate": always("backend_worker", subject="Stuck", body="Help."),
    "read_inbox": always("it_manager", status="all"),
    "generate_contract": always("ceo", to="it_manager", **WORK),
    "create_contract": always("it_manager", to="backend_worker", **WORK),
    "list_contracts": always("it_manager"),
    "request_budget": always("it_manager", amount=100, purpose="Servers."),
    "manage_backlog": always("product_manager"),
    "read_user_feedback": always("product_manager"),
    "task_create": always("ceo", subject="A thing to do"),
    "task_list": always("ceo"),
    "task_recommend": always("backend_worker"),
    "list_agents": always("hr_manager"),
    "manage_tools": always(
        "it_manager", action="tighten", agent="devops_worker", tool="write_file", modes=[],
        reason="not now",
    ),
}  # fmt: skip


@done
def read_mail(world: World) -> Call:
    return Call(
        "it_manager", {"mail_id": world.done("backend_worker", "send_mail", **MAIL)["mail_id"]}
    )


@done
def read_contract(world: World) -> Call:
    return Call("backend_worker", {"contract_id": world.contract()})


@done
def accept_contract(world: World) -> Call:
    return Call("backend_worker", {"contract_id": world.contract()})


@done
def submit_report(world: World) -> Call:
    contract = world.contract(state="in_progress")
    said = {"kind": "progress", "title": "Half", "body": "Half of it."}
    return Call("backend_worker", {"contract_id": contract, **said})


@done
def write_verdict(world: World) -> Call:
    contract = world.contract(state="review", workspace_scope=["src/feature/"])
    return Call("qa_worker", {"contract_id": contract, "verdict": "PASS", "evidence": "42 passed"})


@done
def close_contract(world: World) -> Call:
    return Call(
        "it_manager", {"contract_id": world.contract(), "outcome": "cancelled", "reason": "x"}
    )


@done
def approve_deployment(world: World) -> Call:
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    terms = {"environment": "production", "artifact": DIGEST, "expires_at": until, "reason": "1.2"}
    return Call("it_manager", {"to": "devops_worker", **terms})


@done
def assign_task(world: World) -> Call:
    return Call("it_manager", {"taskId": world.task(), "to": "backend_worker"})


@done
def prioritize_tasks(world: World) -> Call:
    return Call("product_manager", {"taskIds": [world.task()]})


@done
def task_get(world: World) -> Call:
    return Call("ceo", {"taskId": world.task()})


@done
def task_update(world: World) -> Call:
    return Call("backend_worker", {"taskId": world.task(), "owner": "backend_worker"})


@done
def task_comment(world: World) -> Call:
    return Call("ceo", {"taskId": world.task(), "body": "Why?"})


@done
def task_approve(world: World) -> Call:
    world.ask_for_approval()
    task = world.task()
    work = {"owner": "backend_worker", "status": "in_progress"}
    world.done("backend_worker", "task_update", taskId=task, **work)
    return Call("it_manager", {"taskId": task})


@done
def create_agent_jd(world: World) -> Call:
    handle = f"clerk_{len(world.staff.company.policy.agents)}"
    world.org_change(f"hire {handle}")
    jd = {"role": "research_worker", "title": "Helper", "job_description": "Helps."}
    return Call("hr_manager", {"handle": handle, **jd})


@done
def update_agent_jd(world: World) -> Call:
    return Call("hr_manager", {"agent": world.hired(), "title": "Senior"})


@done
def deactivate_agent(world: World) -> Call:
    return Call("hr_manager", {"agent": world.hired(), "reason": "over"})


@done
def update_org_chart(world: World) -> Call:
    move = {"agent": world.hired(), "co_managers": ["it_manager"]}
    return Call("hr_manager", {"changes": [move], "reason": "closer"})


@done
def delegate_to(world: World) -> Call:
    world.leave("coding_leader")
    return Call("coding_leader", {"to": "coding.developer", "instruction": "Do it."}, group=True)


@done
def next_frame(world: World) -> Call:
    return Call("coding_developer", group=True, session=world.delegated())


@done
def return_result(world: World) -> Call:
    session = world.delegated()
    frame = world.in_group("coding_developer", "next_frame", session)["frame"]["frame_id"]
    said = {"frame_id": frame, "result": "Done."}
    return Call("coding_developer", said, group=True, session=session)


@done
def use_skill(world: World) -> Call:
    world.leave("coding_leader")
    world.give_skill("coding_leader")
    return Call("coding_leader", {"name": SKILL, "args": "the desk"}, group=True)


def _approval_by_the_ceo(world: World) -> Call:
    world.ask_for_approval()
    return Call("ceo", {"taskId": world.task()})


def _too_large_a_context(world: World) -> Call:
    world.leave("coding_leader")
    said = {"to": "coding.developer", "instruction": "Do it.", "context": "x" * 200_001}
    return Call("coding_leader", said, group=True)


def on_file(handle: str, tool_params: dict[str, Any], place: str, text: str = "") -> Maker:
    """A call about a file that is in the company tree."""

    def scene(_: World) -> Call:
        path = organisation_folder("nexus") / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return Call(handle, tool_params, coding=True)

    return scene


BACKEND, QA = "agents/backend_worker/", "agents/qa_worker/workspace/"
DONE |= {
    "read_file": on_file("backend_worker", {"path": f"{BACKEND}a.py"}, f"{BACKEND}a.py", "x = 1"),
    "read_code": on_file("it_manager", {"path": f"{BACKEND}workspace/a.py"},
                         f"{BACKEND}workspace/a.py", "x = 1"),
    "read_logs": on_file("devops_worker", {"path": "logs/app.log"}, "logs/app.log", "well\n"),
    "write_file": lambda _: Call("qa_worker", {"path": "tests/b.py", "content": ""}, coding=True),
    "manage_ci_config": lambda _: Call(
        "devops_worker", {"path": ".github/workflows/ci.yml", "content": "on: push\n"}, coding=True
    ),
    "run_test": on_file("qa_worker", {"paths": ["tests/test_a.py"]}, f"{QA}tests/test_a.py",
                        "import unittest\n"),
    "run_linter": on_file("qa_worker", {"paths": ["tests/test_a.py"]}, f"{QA}tests/test_a.py"),
}  # fmt: skip


# Git on a work tree that the first of two calls has prepared: both answer the same.
ON_A_WORK_TREE: dict[str, Call] = {
    "review_pr": Call("it_manager", {"branch": "feature/login", "comment": "good"}, coding=True),
    "git_branch": Call("frontend_worker", {"name": "feature/login"}, coding=True),
    "git_commit": Call(
        "frontend_worker", {"message": "Login", "paths": ["tests/frontend/a.ts"]}, coding=True
    ),
    "git_push": Call("frontend_worker", {"branch": "feature/login"}, coding=True),
}

# Hands that have no driver on an installation without more: allowed, and then 503.
HANDLESS: dict[str, Call] = {
    "docker_build": Call("devops_worker", {"path": "docker/", "tag": "app:1"}, coding=True),
    "docker_deploy": Call(
        "devops_worker", {"environment": "staging", "artifact": DIGEST}, coding=True
    ),
    "run_health_check": Call("devops_worker", {"service": "api"}, coding=True),
    "web_search": Call("research_worker", {"query": "agents"}),
    "read_url": Call("research_worker", {"url": "https://example.org/"}),
}


REFUSED |= {
    "UNKNOWN_TOOL": ("no_such_tool", always("ceo")),
    "TOOL_NOT_BOUND": ("write_file", always("ceo", path="a", content="x")),
    "MODE_DENIED": ("write_file", always("backend_worker", path="a", content="x")),
    "INVALID_PARAMS": ("send_mail", always("backend_worker", colour="red")),
    "CONTACT_DENIED": ("send_mail", always("backend_worker", **{**MAIL, "to": "ceo"})),
    "MAIL_TYPE_DENIED": ("send_mail", always("backend_worker", **{**MAIL, "type": "verdict"})),
    "CONTRACT_REQUIRED": (
        "send_mail",
        always("product_manager", **{**MAIL, "to": "frontend_worker",
                                     "type": "requirement_clarification"}),
    ),
    "RECIPIENT_UNKNOWN": ("send_mail", always("backend_worker", **{**MAIL, "to": "nobody"})),
    "LEVEL_DENIED": ("task_approve", _approval_by_the_ceo),
    "SCOPE_DENIED": ("read_file", lambda _: Call("backend_worker", {"path": "a.py"}, coding=True)),
    "BRANCH_DENIED": ("git_branch", lambda _: Call("backend_worker", {"name": "b"}, coding=True)),
    "APPROVAL_REQUIRED": (
        "docker_deploy",
        lambda _: Call(
            "devops_worker", {"environment": "canary", "artifact": DIGEST}, coding=True
        ),
    ),
    "NOT_YOURS": (
        "assign_task",
        lambda world: Call("it_manager", {"taskId": world.task(), "to": "research_worker"}),
    ),
    "TOO_LARGE": ("delegate_to", _too_large_a_context),
    "DRIVER_UNAVAILABLE": ("web_search", always("research_worker", query="agents")),
    "NOT_FOUND": ("read_mail", always("ceo", mail_id="MAIL-none")),
}  # fmt: skip


@refused("write_file")
def tool_denied(world: World) -> Call:
    world.done("it_manager", "manage_tools", action="tighten", agent="devops_worker",
               tool="write_file", modes=[], reason="not now")  # fmt: skip
    return Call("devops_worker", {"path": "a", "content": "x"})


@refused("send_mail")
def recipient_inactive(world: World) -> Call:
    gone = world.hired()
    world.done("hr_manager", "deactivate_agent", agent=gone, reason="over")
    return Call("product_manager", {**MAIL, "to": gone})


@refused("deactivate_agent")
def authorisation_required(world: World) -> Call:
    mine = world.done("ceo", "list_contracts", role="issued", state="in_progress")["contracts"]
    for contract in mine:
        world.done("ceo", "close_contract", contract_id=contract["contract_id"],
                   outcome="cancelled", reason="enough")  # fmt: skip
    return Call("hr_manager", {"agent": "backend_worker", "reason": "over"})


@refused("task_update")
def force_assign_denied(world: World) -> Call:
    return Call("ceo", {"taskId": world.task(), "owner": "qa_worker", "forceAssign": True})


@refused("assign_task")
def role_mismatch(world: World) -> Call:
    task = world.task(requiredRole="qa_worker")
    return Call("it_manager", {"taskId": task, "to": "backend_worker"})


@refused("task_update")
def version_mismatch(world: World) -> Call:
    return Call("ceo", {"taskId": world.task(), "subject": "Other", "expectedVersion": 7})


@refused("accept_contract")
def invalid_transition(world: World) -> Call:
    return Call("backend_worker", {"contract_id": world.contract(state="in_progress")})


@done
def case_open(world: World) -> Call:
    return Call("analyst", {"title": "A case", "request": "Say ok"}, court=True)


@done
def case_submit(world: World) -> Call:
    params = {"case_id": world.case(), "stage": "ANALYSIS", "content": CONTENT["ANALYSIS"]}
    return Call("analyst", params, court=True)


@done
def case_inputs(world: World) -> Call:
    return Call("planner", {"case_id": world.case("ANALYSIS")}, court=True)


@done
def case_list(world: World) -> Call:
    return Call("conductor", {"state": "stopped"}, court=True)


@done
def case_decide(world: World) -> Call:
    case_id = world.case("ANALYSIS", "TASKS", "IMPLEMENTATION", "REVIEW", "TEST")
    params = {"case_id": case_id, "decision": "DELIVER", "reason": "Approved and passed."}
    return Call("conductor", params, court=True)


@refused("case_submit")
def stage_denied(world: World) -> Call:
    params = {"case_id": world.case(), "stage": "TASKS", "content": CONTENT["TASKS"]}
    return Call("planner", params, court=True)


@refused("case_inputs")
def input_denied(world: World) -> Call:
    return Call("planner", {"case_id": world.case(), "names": ["REQUEST"]}, court=True)


@refused("task_update")
def task_blocked(world: World) -> Call:
    task = world.task(blockedBy=[world.task()])
    wanted = {"owner": "backend_worker", "status": "in_progress"}
    return Call("backend_worker", {"taskId": task, **wanted})


@refused("use_skill")
def isolation_unavailable(world: World) -> Call:
    """Where the machine has no walls: the test takes them away."""
    world.leave("coding_leader")
    world.give_skill("coding_leader")
    return Call("coding_leader", {"name": SKILL}, group=True)


# Codes that no tool gives, and who gives them.
NOT_OF_A_TOOL = {
    "UNAUTHENTICATED": "the face, before a tool is known",
    "RATE_LIMITED": "the face, before a tool is known",
    "METHOD_NOT_ALLOWED": "REST alone has methods",
    "IDEMPOTENCY_MISMATCH": "a second call with the first one's key",
    "INTERNAL": "what breaks; below",
    "AGENT_INACTIVE": "a key issued by a person",
    "AGENT_PAUSED": "a person pauses an agent",
    "DELEGATION_CIRCLE": "a stack of frames of several agents",
    "QUOTA_EXCEEDED": "an organisation's quotas",
    "STORAGE_FULL": "the disk of the installation",
    "DATABASE_UNAVAILABLE": "a database that ends its connections",
    "SERVER_STOPPING": "a server that ends",
}
