"""Agents that live the demo's day over and over, and write down what they were answered."""

import random
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from proofs.faults.installation import PATIENCE, Installation

SOON = timedelta(seconds=2)
LATE = (200, 403, 409)
"""Answers to who comes back to a task: its claim may have run out meanwhile."""
TOO_LATE = (200, 400)
"""Answers to who is heard only after the deadline that it names."""
TO_THE_BOARD = 30
"""Notes of an agent that the Board takes in an hour."""
PAUSE = 0.2  # seconds of thought between two calls of one agent


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call that was acknowledged: its answer is a promise."""

    agent: str
    tool: str
    params: dict[str, Any]
    key: str
    status: int
    answer: dict[str, Any]

    @property
    def result(self) -> dict[str, Any]:
        return self.answer.get("result", {})


@dataclass
class Agents:
    """What all of them did: every mark they tried, every call they were answered."""

    at: Installation
    calls: list[Call] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    @contextmanager
    def at_work(self):
        """Let them all work meanwhile, and carry what they have begun to its end."""
        self.stop.clear()
        self.threads = [
            threading.Thread(target=self._live, args=(story, number))
            for number, story in enumerate(STORIES)
        ]
        for thread in self.threads:
            thread.start()
        try:
            yield self
        finally:
            self.stop.set()
            for thread in self.threads:
                thread.join(3 * PATIENCE)
            if any(thread.is_alive() for thread in self.threads):
                self.odd.append("an agent never came to an end")

    def _live(self, story: "Story", number: int) -> None:
        chance = random.Random(number)
        with httpx.Client(base_url=self.at.url, timeout=30) as http:
            while not self.stop.is_set():
                try:
                    story(Agent(self, http, chance))
                except Exception as problem:  # noqa: BLE001  told at the end
                    self.odd.append(f"{story.__name__}: {problem!r}")
                    return

    def repeat(self, call: Call, http: httpx.Client) -> str:
        """Make an acknowledged call again under its key; what is wrong with the answer, if any."""
        answer = _posted(http, self.at.keys[call.agent], call.tool, call.params, call.key)
        if (answer.status_code, answer.json()) != (call.status, call.answer):
            return f"repeated {call.tool} {call.key}: {answer.status_code} {answer.text[:200]}"
        return ""


@dataclass
class Agent:
    """The one that lives a story: calls until it is answered, each call under its own key."""

    all: Agents
    http: httpx.Client
    chance: random.Random

    def call(
        self, agent: str, tool: str, expect: int | tuple[int, ...] = 200, /, **params: Any
    ) -> dict[str, Any]:
        key = uuid.uuid4().hex
        answer = self._answered(agent, tool, params, key)
        body = answer.json()
        done = Call(
            agent=agent,
            tool=tool,
            params=params,
            key=key,
            status=answer.status_code,
            answer=body,
        )
        self.all.calls.append(done)
        if answer.status_code not in (expect if isinstance(expect, tuple) else (expect,)):
            self.all.odd.append(f"{agent} {tool}: {answer.status_code} {answer.text[:300]}")
        time.sleep(PAUSE)
        return done.result

    def _answered(self, agent: str, tool: str, params: dict, key: str) -> httpx.Response:
        ends = time.monotonic() + 3 * PATIENCE
        while time.monotonic() < ends:
            try:
                answer = _posted(self.http, self.all.at.keys[agent], tool, params, key)
            except httpx.HTTPError:
                time.sleep(0.1)
                continue
            if answer.status_code < 500:
                return answer
            time.sleep(0.1)
        raise TimeoutError(f"{tool} {key} was never answered")


def _posted(http: httpx.Client, secret: str, tool: str, params: dict, key: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {secret}", "Idempotency-Key": key}
    return http.post(f"/api/v1/tools/{tool}", json=params, headers=headers)


Story = Callable[[Agent], None]


def mark() -> str:
    """A word by which one effect is found again."""
    return f"mark {uuid.uuid4().hex}"


def soon() -> str:
    return (datetime.now(UTC) + SOON).isoformat()


def work_goes_down_and_comes_back(one: Agent) -> None:
    """A contract that is done, judged and closed, beside one whose deadline passes untouched."""
    worker = one.chance.choice(["backend_worker", "devops_worker"])
    terms = {"to": worker, "body": "Numbers.", "priority": "high"}
    done = one.call("it_manager", "create_contract", title=mark(), **terms)["contract_id"]
    one.call(worker, "accept_contract", contract_id=done, expected_version=1)
    one.call(worker, "submit_report", contract_id=done, kind="progress", title=mark(), body="…")
    one.call(worker, "submit_report", contract_id=done, kind="completion", title=mark(), body="x")
    one.call("it_manager", "close_contract", contract_id=done, outcome="passed", reason="Seen.")
    one.call("it_manager", "create_contract", TOO_LATE, title=mark(), deadline=soon(), **terms)


def work_of_the_ceo(one: Agent) -> None:
    """A note to the Board, which is told by webhook; then the same, one step higher, cancelled."""
    earlier = sum(call.tool == "write_note" for call in one.all.calls)
    note = {"title": mark(), "content": "We need money.", "for_board": earlier < TO_THE_BOARD}
    one.call("ceo", "write_note", **note)
    terms = {"to": "it_manager", "title": mark(), "body": "More.", "deadline": soon()}
    issued = one.call("ceo", "generate_contract", TOO_LATE, **terms)
    if not issued:
        return
    row = issued["contract_id"]
    one.call("it_manager", "accept_contract", contract_id=row)
    one.call("ceo", "close_contract", contract_id=row, outcome="cancelled", reason="Enough.")


def mails_and_refusals(one: Agent) -> None:
    """What is sent, and what no rule allows."""
    mail = {"type": "info", "body": "All is well."}
    one.call("backend_worker", "send_mail", to="it_manager", subject=mark(), **mail)
    one.call("backend_worker", "send_mail", 403, to="ceo", subject=mark(), **mail)
    one.call("research_worker", "send_mail", to="product_manager", subject=mark(), **mail)
    one.call("ceo", "send_mail", 403, to="qa_worker", subject=mark(), **mail)


def problems_go_up(one: Agent) -> None:
    """One is answered; one is passed on to a CEO that says nothing, until the Board is told."""
    asked = one.call("devops_worker", "escalate", subject=mark(), body="Out of disk.")
    answer = {"type": "info", "body": "Buy.", "reply_to": asked["mail_id"]}
    one.call("it_manager", "send_mail", to="devops_worker", subject=mark(), **answer)
    first = one.call("devops_worker", "escalate", subject=mark(), body="Out of disk again.")
    above = {"subject": mark(), "body": "Out of disk.", "follows": first["escalation_id"]}
    one.call("it_manager", "escalate", **above)


def problems_nobody_answers(one: Agent) -> None:
    """Three unanswered ones of a thread: the CEO is told, and then the Board."""
    follows = {}
    for _ in range(3):
        row = one.call("qa_worker", "escalate", subject=mark(), body="No evidence.", **follows)
        follows = {"follows": row["escalation_id"]}


def tasks_are_shared(one: Agent) -> None:
    """A task that is finished, and one whose claim runs out."""
    for finished in (True, False):
        row = one.call("it_manager", "task_create", subject=mark())["id"]
        one.call("qa_worker", "task_update", taskId=row, owner="qa_worker", status="in_progress")
        if finished:
            one.call("qa_worker", "task_update", LATE, taskId=row, status="completed")


STORIES: tuple[Story, ...] = (
    work_goes_down_and_comes_back,
    work_of_the_ceo,
    mails_and_refusals,
    problems_go_up,
    problems_nobody_answers,
    tasks_are_shared,
)
