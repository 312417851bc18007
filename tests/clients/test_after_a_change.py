"""What is taken away is gone: 10,000 calls that begin after the change's commit are all refused.

Threads call without a pause while a person or a manager takes something away. A call that began
after the commit was answered has to be refused, whatever the others do; nothing answers 500; and
what the agent is shown afterwards, by every face, is what the gate would let through.
"""

import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from django.db import connections
from django.test import RequestFactory
from django.utils import timezone

from governance.staff.deactivation import deactivate_by_person
from orgchart.keys import revoke_key
from orgchart.models import Role
from orgchart.services import change_policy
from tests.clients.staff import Staff, asked_of_mcp, at_work
from tests.patience import PATIENCE
from toolbox.faces.rest.views import ToolCallView
from toolbox.modes import close_mode
from toolbox.registry import REGISTRY

THREADS = 4
LATE = 1_700  # calls after each of six changes: more than 10,000 together
EARLY = 40  # calls that must have been answered before the change

READ = ("read_contract", {"contract_id": "CON-none"}, "NOT_FOUND")
FILE = ("read_file", {"path": "agents/frontend_worker/never-written.py"}, "NOT_FOUND")
TIME = ("current_time", {}, "OK")


@dataclass(frozen=True)
class Change:
    """Who loses what, how, what its calls were answered before, and what they are from then on."""

    handle: str
    call: tuple[str, dict[str, Any], str]
    after: str
    take: Callable[[Staff], Any]
    session: Callable[[Staff], str | None] = lambda _: None


def revoke(staff: Staff) -> None:
    prefix = staff.company.key("hr_manager")[:12]
    system = staff.company.system
    revoke_key(prefix=prefix, caller=system, now=timezone.now(), reason="lost")


def unbind(staff: Staff) -> None:
    def apply(organisation: Any) -> None:
        role = Role.objects.get(organisation=organisation, name="research_worker")
        role.tools = [tool for tool in role.tools if tool != "read_contract"]
        role.save(update_fields=["tools"])

    change_policy(
        organisation_id=staff.company.organisation.id,
        apply=apply,
        caller=staff.company.person("HR"),
        action="role.changed",
        now=timezone.now(),
        reason="not its work",
    )


def tighten(staff: Staff) -> None:
    asked = {"action": "tighten", "agent": "qa_worker", "tool": "read_contract", "modes": []}
    assert staff.company.call("it_manager", "manage_tools", **asked, reason="not now").status == 200


def close(staff: Staff) -> None:
    close_mode(
        session_id=staff.coding("frontend_worker"),
        caller=staff.company.person("Board"),
        now=timezone.now(),
        reason="enough",
    )


def deactivate(staff: Staff) -> None:
    deactivate_by_person(
        person=staff.company.person("HR"),
        agent="devops_worker",
        reason="over",
        expected_version=staff.company.policy.version,
        now=timezone.now(),
    )


def accept(staff: Staff) -> str:
    """The worker's standing session, which a contract turned to coding."""
    work = {"title": "Login", "body": "Build it.", "mode": "coding"}
    call = staff.company.call
    made = call("it_manager", "create_contract", to="backend_worker", **work).result
    call("backend_worker", "accept_contract", contract_id=made["contract_id"])
    return str(staff.company.get("/api/v1/me", "backend_worker").body["session"]["id"])


def cancel(staff: Staff) -> None:
    call = staff.company.call
    mine = call("backend_worker", "list_contracts", state="in_progress").result["contracts"]
    said = {"contract_id": mine[0]["contract_id"], "outcome": "cancelled", "reason": "enough"}
    assert call("it_manager", "close_contract", **said).status == 200


CHANGES = {
    "a key revoked": Change("hr_manager", TIME, "UNAUTHENTICATED", revoke),
    "a tool unbound": Change("research_worker", READ, "TOOL_NOT_BOUND", unbind),
    "a tool tightened": Change("qa_worker", READ, "TOOL_DENIED", tighten),
    "a mode closed": Change(
        "frontend_worker", FILE, "MODE_DENIED", close, lambda staff: staff.coding("frontend_worker")
    ),
    "a mode's contract cancelled": Change(
        "backend_worker",
        ("read_file", {"path": "agents/backend_worker/never-written.py"}, "NOT_FOUND"),
        "MODE_DENIED",
        cancel,
        accept,
    ),
    "an agent deactivated": Change("devops_worker", TIME, "UNAUTHENTICATED", deactivate),
}


@pytest.fixture(scope="module")
def staff(django_db_setup, django_db_blocker):
    with at_work(django_db_blocker) as staff:
        yield staff


@dataclass
class Crowd:
    """Threads that make one call again and again; the answers, by when the call began."""

    ask: Callable[[], str]
    taken: threading.Event = field(default_factory=threading.Event)
    warm: threading.Event = field(default_factory=threading.Event)
    early: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        try:
            while self.late.total() < LATE:
                late = self.taken.is_set()
                code = self.ask()
                with self.lock:
                    (self.late if late else self.early)[code] += 1
                    if self.early.total() >= EARLY:
                        self.warm.set()
        finally:
            self.warm.set()
            connections.close_all()

    def while_taking(self, take: Callable[[], Any]) -> None:
        threads = [threading.Thread(target=self.run) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        self.warm.wait(PATIENCE)
        try:
            take()
        finally:
            self.taken.set()
            for thread in threads:
                thread.join(60)


def asking(headers: dict[str, str], call: tuple[str, dict[str, Any], str]) -> Callable[[], str]:
    """The REST view itself, with a request of its own each time: its error code, or OK."""
    tool, params, _ = call
    view = ToolCallView.as_view()
    factory, body = RequestFactory(), json.dumps(params)

    def ask() -> str:
        request = factory.post(
            f"/api/v1/tools/{tool}", body, content_type="application/json", headers=headers
        )
        answer = json.loads(view(request, name=tool).content)
        return "OK" if answer["ok"] else str(answer["error_code"])

    return ask


@pytest.mark.parametrize("name", CHANGES)
def test_no_call_that_began_after_it_passes(staff, name):
    change = CHANGES[name]
    session = change.session(staff)
    headers = staff.headers(change.handle) | ({"X-Nexus-Session": session} if session else {})
    crowd = Crowd(asking(headers, change.call))
    crowd.while_taking(lambda: change.take(staff))
    assert crowd.late.total() >= LATE
    assert set(crowd.late) == {change.after}
    assert crowd.early[change.call[2]] >= EARLY, crowd.early
    assert set(crowd.early) <= {change.call[2], change.after}
    assert_every_face_agrees(staff.url, headers, change)


def assert_every_face_agrees(url, headers, change):
    """What the agent is shown after the change, and what the gate says of every tool there is."""
    with httpx.Client(base_url=url, headers=headers, timeout=20) as http:
        shown = http.get("/api/v1/tools")
        if change.after == "UNAUTHENTICATED":
            answers = [shown, http.get("/api/v1/prompt"), http.post("/mcp", json={})]
            assert [answer.status_code for answer in answers] == [401] * 3
            return
        names = [tool["name"] for tool in shown.json()["tools"]]
        assert change.call[0] not in names
        prompt = http.get("/api/v1/prompt").json()["prompt"]
        tooling = prompt.split("# Your tools\n")[1].split("\n\n")[0]
        assert [line[2:].split(":")[0] for line in tooling.splitlines()] == names
        listed = asked_of_mcp(http, "tools/list", {}, headers)["tools"]
        assert [tool["name"] for tool in listed] == names
        admitted = []
        for tool in REGISTRY.all():
            asked = {"tool": tool.name, "params": {"no such field": 1}}
            said = http.post("/api/v1/explain", json=asked).json()
            admitted += [tool.name] * (said["error_code"] == "INVALID_PARAMS")
        assert admitted == names
