"""One simulated stretch of time: agents act, jobs run, everything due is accounted for."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import quantiles

from django.db import connection

from contracts.models import Contract
from mailroom.models import Escalation
from mailroom.vocabulary import UNSETTLED, EscalationState
from orgchart.policy.compiled import Policy
from orgchart.policy.vocabulary import Kind
from toolbox import door, scheduler
from toolbox.caller import Caller

STEP = timedelta(minutes=1)
SKIPPED = frozenset({"notices", "ledger seals"})
"""Jobs that are not simulated: their rows leave the installation, or follow commits."""

DUE = {
    "escalations": "SELECT due_at FROM mailroom_escalation WHERE state = 'open' AND due_at <= %s",
    "leases": "SELECT lease_due_at FROM tasks_task WHERE lease_due_at <= %s",
    "frames": "SELECT due_at FROM toolbox_frame WHERE state IN ('open', 'taken') AND due_at <= %s",
    "deadlines": "SELECT due_at FROM contracts_deadline WHERE done_at IS NULL AND due_at <= %s",
    "approvals": """SELECT expires_at FROM contracts_contract WHERE kind = 'deployment_approval'
        AND state IN ('pending', 'in_progress') AND used_at IS NULL AND expires_at <= %s""",
    "idempotency": "SELECT due_at FROM toolbox_idempotencyrecord WHERE due_at <= %s",
}
"""The times of the due rows of each job."""
BARS = " ▁▂▃▄▅▆▇█"


@dataclass(slots=True)
class Account:
    """What one job did: when it handled rows, how late each row was, what was left."""

    looks: int = 0
    fired: list[datetime] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    left: int = 0

    def lines(self, name: str, start: datetime) -> Iterator[str]:
        """The account in two lines: the figures, and a bar for each hour."""
        if not self.late:
            yield f"{name:12} looked {self.looks:5} times, nothing was due"
            return
        known = self.late * 2 if len(self.late) == 1 else self.late
        cuts = quantiles(known, n=100, method="inclusive")
        yield (
            f"{name:12} looked {self.looks:5} times, fired {len(self.late):6}, "
            f"late p50 {cuts[49]:4.0f} s  p99 {cuts[98]:4.0f} s  most {max(self.late):4.0f} s, "
            f"left over {self.left}"
        )
        hours = Counter(int((at - start).total_seconds() // 3600) for at in self.fired)
        most = max(hours.values())
        bars = "".join(
            BARS[-(-hours[hour] * (len(BARS) - 1) // most)] for hour in range(max(hours) + 1)
        )
        yield (
            f"{'':12} first {self.fired[0]:%d %H:%M}, last {self.fired[-1]:%d %H:%M}, "
            f"by the hour |{bars}| at most {most}"
        )


@dataclass(slots=True)
class Simulation:
    """The company, its time, and the dice that decide who does what."""

    policy: Policy
    people: list[Caller]
    start: datetime
    now: datetime
    dice: random.Random
    accounts: dict[str, Account] = field(default_factory=lambda: defaultdict(Account))
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    looked: dict[str, datetime] = field(default_factory=dict)

    def run(self, *, until: datetime, calls_per_step: int) -> Iterator[datetime]:
        """Live until then; yields the time after each step."""
        while self.now < until:
            self.now += STEP
            for _ in range(calls_per_step):
                self.act(self.dice.choice(self.people))
            self.run_jobs()
            yield self.now

    def act(self, caller: Caller) -> None:
        """One deed of one agent, through the same door as any call."""
        kind = caller.role.kind
        deeds: list[Callable[[Caller], tuple[str, dict[str, object]]]] = [self.mail, self.claim]
        if kind is Kind.WORKER:
            deeds += [self.escalate, self.work]
        elif kind is Kind.MANAGER:
            deeds += [self.answer, self.delegate, self.order, self.order, self.approve]
        name, params = self.dice.choice(deeds)(caller)
        key = f"{self.now:%d%H%M}-{self.dice.random()}" if self.dice.random() < 0.1 else None
        at = self.now - STEP * self.dice.random()
        answer = door.call(caller, name, params, now=at, idempotency_key=key)
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
        return "delegate_to", {"to": self.one_of(caller), "instruction": "Look into it"}

    def one_of(self, caller: Caller) -> str:
        """One of a manager's own workers."""
        workers = self.policy.workers_of(caller.agent)
        return self.dice.choice(workers).handle if workers else caller.handle

    def order(self, caller: Caller) -> tuple[str, dict[str, object]]:
        """A contract with a deadline, which may pass; or one that answers an escalation."""
        problem = (
            Escalation.objects.filter(recipient_id=caller.agent.id, state__in=UNSETTLED)
            .select_related("mail")
            .first()
        )
        to = self.policy.by_id[problem.sender_id].handle if problem else self.one_of(caller)
        deadline = self.now + timedelta(minutes=self.dice.randint(20, 360))
        return "create_contract", {
            "to": to,
            "title": "Work",
            "body": "By then.",
            "deadline": deadline.isoformat(),
            **({"answers": str(problem.id)} if problem else {}),
        }

    def approve(self, caller: Caller) -> tuple[str, dict[str, object]]:
        """An approval that is not used in time."""
        return "approve_deployment", {
            "to": self.one_of(caller),
            "environment": "staging",
            "artifact": f"sha256:{self.dice.getrandbits(64):x}",
            "expires_at": (self.now + timedelta(minutes=self.dice.randint(5, 120))).isoformat(),
            "reason": "A release.",
        }

    def work(self, caller: Caller) -> tuple[str, dict[str, object]]:
        """A contract accepted, or one handed in, if there is any."""
        row = (
            Contract.objects.filter(
                assignee_id=caller.agent.id, kind="work", state__in=["pending", "in_progress"]
            )
            .order_by("id")
            .first()
        )
        if row is None:
            return self.mail(caller)
        if row.state == "pending":
            return "accept_contract", {"contract_id": row.id}
        report = {"kind": "completion", "title": "Done", "body": "It works."}
        return "submit_report", {"contract_id": row.id, **report}

    def run_jobs(self) -> None:
        """Run every job whose period is over; record how late each row was."""
        for name, each in scheduler.JOBS.items():
            if name in SKIPPED or not self.is_time(each):
                continue
            self.looked[name] = self.now
            due = self.due(name)
            scheduler.run_job(name, now=self.now)
            account = self.accounts[name]
            account.looks += 1
            account.fired += [self.now] * len(due)
            account.late += [(self.now - at).total_seconds() for at in due]
            account.left = len(self.due(name))

    def is_time(self, each: scheduler.ScheduledJob) -> bool:
        """Whether beat would start this job now."""
        last = self.looked.get(each.name)
        return last is None or self.now - last >= timedelta(seconds=each.every)

    def due(self, name: str) -> list[datetime]:
        """The times of the rows that are due for a job now."""
        if name not in DUE:
            return []
        with connection.cursor() as cursor:
            cursor.execute(DUE[name], [self.now])
            return [row[0] for row in cursor.fetchall()]
