"""One simulated stretch of time: agents act, clocks tick, everything due is accounted for."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import quantiles

from django.db import connection

from mailroom.models import Escalation, EscalationState
from orgchart.policy import Policy
from orgchart.vocabulary import Kind
from toolbox import clock, door
from toolbox.caller import Caller

STEP = timedelta(minutes=1)
SKIPPED = frozenset({"notices", "ledger seals"})
"""Clocks whose rows are not due by simulated time: they leave the building, or follow commits."""

DUE = {
    "escalations": "SELECT due_at FROM mailroom_escalation WHERE state = 'open' AND due_at <= %s",
    "leases": "SELECT lease_due_at FROM tasks_task WHERE lease_due_at <= %s",
    "frames": "SELECT due_at FROM toolbox_frame WHERE state IN ('open', 'taken') AND due_at <= %s",
    "deadlines": "SELECT due_at FROM contracts_deadline WHERE done_at IS NULL AND due_at <= %s",
    "idempotency": "SELECT due_at FROM toolbox_idempotencyrecord WHERE due_at <= %s",
}
"""What is due on each clock, with its time."""


@dataclass(slots=True)
class Account:
    """What happened on one clock: how late each row was handled, in seconds, and what was left."""

    late: list[float] = field(default_factory=list)
    left: int = 0

    def line(self, name: str) -> str:
        """The account in one line."""
        if not self.late:
            return f"{name:16} nothing was due"
        cuts = quantiles(self.late, n=100) if len(self.late) > 1 else [self.late[0]] * 99
        return (
            f"{name:16} fired {len(self.late):6}   late p50 {cuts[49]:5.0f} s   "
            f"p99 {cuts[98]:5.0f} s   left over {self.left}"
        )


@dataclass(slots=True)
class Simulation:
    """The company, its time, and the dice that decide who does what."""

    policy: Policy
    people: list[Caller]
    now: datetime
    dice: random.Random
    accounts: dict[str, Account] = field(default_factory=lambda: defaultdict(Account))
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def run(self, *, until: datetime, calls_per_step: int) -> Iterator[datetime]:
        """Live until then; yields the time after each step."""
        while self.now < until:
            self.now += STEP
            for _ in range(calls_per_step):
                self.act(self.dice.choice(self.people))
            self.tick()
            yield self.now

    def act(self, caller: Caller) -> None:
        """One deed of one agent, through the same door as any call."""
        kind = caller.role.kind
        deeds: list[Callable[[Caller], tuple[str, dict[str, object]]]] = [self.mail, self.claim]
        if kind is Kind.WORKER:
            deeds.append(self.escalate)
        elif kind is Kind.MANAGER:
            deeds += [self.answer, self.delegate]
        name, params = self.dice.choice(deeds)(caller)
        key = f"{self.now:%d%H%M}-{self.dice.random()}" if self.dice.random() < 0.1 else None
        answer = door.call(caller, name, params, now=self.now, idempotency_key=key)
        self.calls[f"{name} {answer.status}"] += 1

    def mail(self, caller: Caller) -> tuple[str, dict[str, object]]:
        """A mail to some contact, now and then to somebody forbidden."""
        allowed = self.policy.contacts_of(caller.agent)
        to = self.dice.choice(allowed) if self.dice.random() > 0.05 and allowed else "w0_0"
        return "send_mail", {"to": to, "type": "info", "subject": "Status", "body": "All is well."}

    def claim(self, caller: Caller) -> tuple[str, dict[str, object]]:
        """A task made, or one claimed and then forgotten."""
        if self.dice.random() < 0.5:
            return "task_create", {"subject": "Work", "description": "To be done"}
        number = self.dice.randint(1, max(1, self.calls["task_create 200"]))
        return "task_update", {
            "taskId": str(number),
            "owner": caller.handle,
            "status": "in_progress",
        }

    def escalate(self, caller: Caller) -> tuple[str, dict[str, object]]:
        """A problem, again where the last one was not answered."""
        last = (
            Escalation.objects.filter(sender_id=caller.agent.id, state=EscalationState.UNANSWERED)
            .order_by("-id")
            .first()
        )
        follows = {"follows": str(last.id)} if last else {}
        return "escalate", {"subject": "Stuck", "body": "I cannot go on.", **follows}

    def answer(self, caller: Caller) -> tuple[str, dict[str, object]]:
        """An answer to an escalation, if one waits."""
        row = (
            Escalation.objects.filter(recipient_id=caller.agent.id, state=EscalationState.OPEN)
            .select_related("mail")
            .first()
        )
        if row is None:
            return self.mail(caller)
        sender = self.policy.by_id[row.sender_id].handle
        return "send_mail", {
            "to": sender,
            "type": "info",
            "subject": "Re",
            "body": "Do it so.",
            "reply_to": row.mail_id,
        }

    def delegate(self, caller: Caller) -> tuple[str, dict[str, object]]:
        """Work handed to a member that may never return it."""
        workers = self.policy.workers_of(caller.agent)
        to = self.dice.choice(workers).handle if workers else caller.handle
        return "delegate_to", {"to": to, "instruction": "Look into it"}

    def tick(self) -> None:
        """Let every clock handle what is due, and note how late each row was."""
        for name in clock.CLOCKS:
            if name in SKIPPED:
                continue
            due = self.due(name)
            clock.tick(name, now=self.now)
            account = self.accounts[name]
            account.late += [(self.now - at).total_seconds() for at in due]
            account.left = len(self.due(name))

    def due(self, name: str) -> list[datetime]:
        """The times of everything that is due on a clock now."""
        if name not in DUE:
            return []
        with connection.cursor() as cursor:
            cursor.execute(DUE[name], [self.now])
            return [row[0] for row in cursor.fetchall()]
