"""Every scheduled job on trial: rows fall due, beats die, and then the account of what was done."""

import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import Error, connection, transaction

from contracts.approvals.deployments import approve_deployment
from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_contract
from contracts.models import Contract, Deadline
from documents.models import Document
from governance.staff.org_files import ORG
from ledger.models import Event, Seal
from ledger.services import record
from mailroom.escalations import services as escalations
from mailroom.models import Escalation, Mail, OutgoingNotice
from mailroom.outgoing import outbox, webhook
from orgchart.models import Organisation
from tasks.models import Task
from tests.committed import committing
from tests.company import Company, load_company
from tests.ledger.world import wait_until_ended
from tests.patience import PATIENCE
from toolbox import door, idempotency, scheduler
from toolbox.caller import Caller
from toolbox.models import Frame, IdempotencyRecord, JobRun

HOUR = timedelta(hours=1)
Effects = dict[str, Counter[Hashable]]
_epoch = count()
_number = count()


class Killed(BaseException):
    """The process is gone: nothing of it runs on, its connection is closed."""


@dataclass
class World:
    """The companies on trial (one works in groups), callers that need no key again, and what
    receivers outside got.
    """

    company: Company
    groups: Company
    callers: dict[str, Caller] = field(default_factory=dict)
    arrived: list[str] = field(default_factory=list)

    def caller(self, handle: str, company: Company | None = None) -> Caller:
        if handle not in self.callers:
            self.callers[handle] = (company or self.company).caller(handle)
        return self.callers[handle]


def call(caller: Caller, tool: str, now: datetime, **params: Any) -> dict[str, Any]:
    """A tool's result; fails where it is refused."""
    answer = door.call(caller, tool, params, now=now)
    assert answer.status == 200, answer.body
    return dict(answer.body)["result"]


class Case:
    """One job: how a row falls due for it, what is still due, what was done for each row.

    `timed` False: what is due is due at once. `claimed_for`: how long a row belongs to a beat that
    died with it. `lost_after`: writes, so that a row was handled in the transaction that is lost.
    """

    job = ""
    timed = True
    claimed_for = timedelta(0)
    lost_after = 3

    def make(self, world: World, due: datetime) -> Hashable:
        raise NotImplementedError

    def left(self, keys: Iterable[Any]) -> set[Hashable]:
        raise NotImplementedError

    def effects(self, world: World, keys: list[Any]) -> Effects:
        """Each effect by its name: how often it was done for each key."""
        raise NotImplementedError

    def ids_that_arrived(self, world: World) -> set[Hashable] | None:
        """What receivers saw, where there are any."""
        return None


def events(action: str, prefix: str, keys: Iterable[Any]) -> Counter[Hashable]:
    found = Event.objects.filter(action=action, subject__in=[f"{prefix}{key}" for key in keys])
    return Counter(subject.removeprefix(prefix) for subject in found.values_list("subject", flat=1))


class Escalations(Case):
    """A worker's, whose sender is told; and a manager's, of which the Board hears outside."""

    job = "escalations"
    SENDERS = ("backend_worker", "it_manager", "devops_worker", "hr_manager", "qa_worker")

    def end_thread_of(self, who, at):
        """An answer to what earlier trials left: each row here begins a thread."""
        Escalation.objects.filter(sender__handle=who, state__in=["open", "unanswered"]).update(
            state="answered", answered_by="agent:ceo", answered_at=at
        )

    def make(self, world, due):
        who = self.SENDERS[next(_number) % len(self.SENDERS)]
        self.end_thread_of(who, due)
        wait = world.company.policy.settings[
            "escalation_timeout" if who.endswith("worker") else "ceo_timeout"
        ]
        made = escalations.escalate(
            caller=world.caller(who), subject="Help", body="Now.", now=due - timedelta(seconds=wait)
        )
        return made["escalation_id"]

    def left(self, keys):
        rows = Escalation.objects.filter(id__in=keys, state="open")
        return {str(row.id) for row in rows}

    def effects(self, world, keys):
        rows = Escalation.objects.filter(id__in=keys).select_related("mail", "recipient")
        replies = Mail.objects.filter(from_agent="system", reply_to__in=[r.mail_id for r in rows])
        told = Counter(mail.reply_to_id for mail in replies)
        board = Counter(n.payload["data"]["escalation"] for n in OutgoingNotice.objects.all())
        ceos = {str(r.id) for r in rows if r.recipient.handle == "ceo"}
        settled = {str(r.id) for r in rows if r.unanswered_at}
        return {
            "event": events("escalation.unanswered", "escalation:", keys),
            "sender told": Counter({str(r.id): told[r.mail_id] for r in rows if told[r.mail_id]}),
            "version": Counter({str(r.id): r.version - 1 for r in rows if r.version > 1}),
            "board told": Counter(
                {k: board[k] if k in ceos else int(k in settled) for k in ceos | settled}
            ),
        }


class Deadlines(Case):
    """A reminder before, a notice after."""

    job = "deadlines"

    def make(self, world, due):
        stage, ahead = [("remind", timedelta(days=1)), ("overdue", timedelta(0))][next(_number) % 2]
        draft = ContractDraft(to="backend_worker", title="T", body="B", deadline=due + ahead)
        made = issue_contract(
            caller=world.caller("it_manager"),
            draft=draft,
            tool="create_contract",
            now=due - timedelta(days=3),
        )
        rows = Deadline.objects.filter(contract_id=made["contract_id"])
        rows.exclude(stage=stage).update(done_at=due)
        return rows.get(stage=stage).id

    def left(self, keys):
        return set(Deadline.objects.filter(id__in=keys, done_at=None).values_list("id", flat=True))

    def effects(self, world, keys):
        rows = {row.contract_id: row for row in Deadline.objects.filter(id__in=keys)}
        told = Mail.objects.filter(from_agent="system", contract_ref__in=list(rows))
        mailed = Counter(rows[mail.contract_ref].id for mail in told)
        actions = {"remind": "contract.reminded", "overdue": "contract.overdue"}
        found = Counter(
            {
                row.id: events(actions[row.stage], "contract:", [name])[name]
                for name, row in rows.items()
            }
        )
        return {"event": +found, "told": mailed}


class Approvals(Case):
    job = "approvals"

    def make(self, world, due):
        return approve_deployment(
            caller=world.caller("it_manager"),
            to="devops_worker",
            environment="production",
            artifact=f"sha256:{next(_number)}",
            expires_at=due,
            reason="release",
            now=due - timedelta(hours=5),
        )["contract_id"]

    def left(self, keys):
        rows = Contract.objects.filter(id__in=keys, state="pending")
        return set(rows.values_list("id", flat=True))

    def effects(self, world, keys):
        told = Mail.objects.filter(from_agent="system", contract_ref__in=keys)
        ended = Contract.objects.filter(id__in=keys, state="cancelled", version=2)
        return {
            "event": events("approval.expired", "contract:", keys),
            **{
                f"{who} told": Counter(m.contract_ref for m in told.filter(to_agent=who))
                for who in ("it_manager", "devops_worker")
            },
            "moved": Counter(ended.values_list("id", flat=True)),
        }


class Answers(Case):
    """Kept answers: forgotten when their day is over, and not before."""

    job = "idempotency"
    lost_after = 1

    def make(self, world, due):
        key = f"key-{next(_number)}"
        with transaction.atomic():
            idempotency.begin(world.caller("ceo"), key, {}, now=due - idempotency.KEPT_FOR)
        return key

    def left(self, keys):
        return set(IdempotencyRecord.objects.filter(key__in=keys).values_list("key", flat=True))

    def effects(self, world, keys):
        return {"forgotten": Counter(set(keys) - self.left(keys))}


class Leases(Case):
    job = "leases"

    def make(self, world, due):
        lease = timedelta(seconds=world.company.policy.settings["task_lease"])
        at = due - lease
        made = call(world.caller("it_manager"), "task_create", at, subject="W", description="D")
        claim = {"taskId": made["id"], "owner": "backend_worker", "status": "in_progress"}
        call(world.caller("backend_worker"), "task_update", at, **claim)
        return made["id"]

    def left(self, keys):
        rows = Task.objects.filter(number__in=[int(k) for k in keys], owner__isnull=False)
        return {str(row.number) for row in rows}

    def effects(self, world, keys):
        return {"event": events("task.lease_expired", "task:nexus/", keys)}


class Frames(Case):
    job = "frames"

    def make(self, world, due):
        timeout = timedelta(seconds=world.groups.policy.settings["frame_timeout"])
        leader = world.caller("coding_leader", world.groups)
        work = {"to": "coding_developer", "instruction": "Look into it"}
        made = call(leader, "delegate_to", due - timeout, **work)
        return str(made["frame_id"])

    def left(self, keys):
        rows = Frame.objects.filter(id__in=keys, state__in=["open", "taken"])
        return {str(row.id) for row in rows}

    def effects(self, world, keys):
        return {"event": events("frame.failed", "frame:", keys)}


class Notices(Case):
    """One effect outside, so at least once there; here its end is written down once."""

    job = "notices"
    claimed_for = outbox.CLAIMED_FOR + timedelta(seconds=1)

    def make(self, world, due):
        with transaction.atomic():
            outbox.notify_board(
                policy=world.company.policy,
                event="note.for_board",
                subject="A word",
                body="To the Board.",
                data={"escalation": ""},
                caller=world.company.system,
                now=due,
            )
        return str(OutgoingNotice.objects.order_by("-id").values_list("event_id", flat=True)[0])

    def left(self, keys):
        rows = OutgoingNotice.objects.filter(event_id__in=keys, state="pending")
        return {str(row.event_id) for row in rows}

    def effects(self, world, keys):
        return {
            "event": events("notice.sent", "notice:", keys),
            "arrived": Counter(key for key in keys if key in world.arrived),
        }

    def ids_that_arrived(self, world):
        return set(world.arrived)


class Seals(Case):
    job = "ledger seals"
    timed = False
    lost_after = 1

    def make(self, world, due):
        with transaction.atomic():
            seq = record("trial.event", by=world.company.system, at=due)
        wait_until_ended([seq])  # an older transaction, of whichever database, holds sealing back
        return seq

    def left(self, keys):
        return {key for key in keys if not self._covers(key)}

    def _covers(self, key):
        event = Event.objects.get(seq=key)
        return Seal.objects.filter(era=event.era, lo__lte=event.xid, hi__gt=event.xid).count()

    def effects(self, world, keys):
        seals = list(Seal.objects.order_by("number"))
        assert [s.number for s in seals] == list(range(1, len(seals) + 1)), "a gap in the chain"
        for before, after in pairwise(seals):
            assert bytes(after.previous) == bytes(before.digest), "the chain is broken"
        return {"sealed": Counter({key: n for key in keys if (n := self._covers(key))})}


class Files(Case):
    """A document's file that a crash left out."""

    job = "files"

    def make(self, world, due):
        number = next(_number)
        body, folder = f"Text {number}", "agents/ceo/notes/"
        row = Document.objects.create(
            organisation=world.company.organisation,
            author=world.company.agent("ceo"),
            kind="note",
            title=f"Note {number}",
            body=body,
            sha256=sha256(body.encode()).hexdigest(),
            folder=folder,
            path=f"{folder}trial-{number}.md",
            created_at=due - timedelta(seconds=31),
        )
        return row.id

    def left(self, keys):
        return set(Document.objects.filter(id__in=keys, filed_at=None).values_list("id", flat=True))

    def effects(self, world, keys):
        rows = Document.objects.filter(id__in=keys)
        written = [row.id for row in rows if _file(world, row.path) == row.body]
        return {"written": Counter(written)}


class Charts(Case):
    """The organisation's own files, always."""

    job = "charts"
    timed = False

    def make(self, world, due):
        _place(world, ORG).unlink(missing_ok=True)
        self.world = world
        return ORG

    def left(self, keys):
        return {key for key in keys if not _file(self.world, key)}

    def effects(self, world, keys):
        return {"written": Counter(key for key in set(keys) if "nexus" in _file(world, key))}


def _place(world: World, path: str) -> Path:
    return Path(settings.WORKSPACE_ROOT) / world.company.organisation.slug / path


def _file(world: World, path: str) -> str:
    place = _place(world, path)
    return place.read_text() if place.exists() else ""


CASES = {
    case.job: case
    for case in [
        Escalations(), Deadlines(), Approvals(), Answers(), Leases(), Frames(), Notices(), Seals(),
        Files(), Charts(),
    ]
}  # fmt: skip


# -- how a beat dies --


def _die() -> None:
    connection.connection.close()
    raise Killed


def _lose(pid: int) -> None:
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])  # waits until it has ended
    other.close()


WRITES = ("INSERT", "UPDATE", "DELETE", "WITH")


@dataclass
class Death:
    """A wrapper of one beat's statements that ends it at a moment."""

    moment: str
    lost_after: int
    done: bool = False
    writes: int = 0

    def __call__(self, execute, sql, params, many, context):
        text = str(sql).lstrip().upper()
        if self.moment == "before" and not self.done:
            self.done = True
            _die()
        writes = text.startswith(WRITES) and "TOOLBOX_JOBRUN" not in text
        if self.moment == "before the second write" and writes and self.writes == 1:
            _die()
        answer = execute(sql, params, many, context)
        if writes:
            self.writes += 1
            if self.moment == "amid":
                _die()
            if self.moment == "dropped" and self.writes == self.lost_after:
                _lose(connection.connection.info.backend_pid)
        return answer


@contextmanager
def dying(moment: str, lost_after: int) -> Iterator[None]:
    """Whatever this thread does with the database ends at that moment; '' lives on.

    Commits count once something was written: an empty one loses nothing.
    """
    if not moment:
        yield
        return
    connection.ensure_connection()
    commit, death = connection._commit, Death(moment, lost_after)

    def commit_and_die() -> None:
        if moment == "at commit" and death.writes:
            _die()
        commit()
        if moment == "after a commit" and death.writes:
            _die()

    connection._commit = commit_and_die
    try:
        with connection.execute_wrapper(death):
            yield
    finally:
        connection._commit = commit


DEATHS = ["", "before", "amid", "at commit", "after a commit", "dropped"]


def beat(name: str, now: datetime | None, death: str = "") -> bool:
    """One run of one job by one worker; whether it died of it."""
    try:
        with dying(death, CASES[name].lost_after):
            scheduler.run_job(name, now=now)
    except Killed:
        return True
    except Error:
        if not death:
            raise
        return True
    finally:
        connection.close()
    return False


def beats(name: str, now: datetime, *, at_once: int, death: str) -> int:
    """Beats in threads of their own, begun together, all of one end. How many died."""
    gate, failures, died = threading.Barrier(at_once), list[BaseException](), list[bool]()

    def run() -> None:
        try:
            gate.wait(PATIENCE)
            died.append(beat(name, now, death))
        except BaseException as failure:  # noqa: BLE001  raised below, in the test's own thread
            failures.append(failure)

    threads = [threading.Thread(target=run) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    for failure in failures:
        raise failure
    return sum(died)


@dataclass
class Trial:
    """Rows due around one moment, beats over them, and the account that must come out."""

    world: World
    case: Case
    at_once: int = 1
    death: str = ""
    keys: list[tuple[Hashable, datetime]] = field(default_factory=list)
    seen: datetime | None = None
    died: int = 0
    patience: float = PATIENCE

    def run(self) -> None:
        """Raises AssertionError for anything early, lost or done twice."""
        OutgoingNotice.objects.all().delete()
        self.world.arrived.clear()
        start = datetime(2031, 1, 1, tzinfo=UTC) + timedelta(days=10 * next(_epoch))
        dues = [start - HOUR / 2, start, start, start + HOUR / 2, start + 2 * HOUR]
        self.keys = [(self.case.make(self.world, due), due) for due in dues]
        told = self.told()
        self.look(start - HOUR)  # by a machine that is an hour behind
        self.look(start, self.death)
        self.look(start + HOUR, self.death)  # by one that is an hour ahead
        self.look(start)  # and back
        self.look(start + 3 * HOUR, self.death)  # after hours without any
        told = self.told() - told
        assert told <= len(self.keys) or self.case.claimed_for, f"{told} rows of {len(self.keys)}"

    def told(self) -> int:
        """How many rows the job recorded as handled, in all its life."""
        run = JobRun.objects.filter(name=self.case.job).first()
        return run.rows if run and self.case.timed else 0

    def look(self, now: datetime, death: str = "") -> None:
        """Beats at that time, then as many more as it takes; then the account."""
        self.seen = max(now, self.seen or now)
        self.died += beats(self.case.job, now, at_once=self.at_once, death=death)
        again = now + (self.case.claimed_for if death else timedelta(0))
        until = time.monotonic() + (self.patience if self.case.timed else PATIENCE)
        while self.case.left(self.handled) and time.monotonic() < until:
            beats(self.case.job, again, at_once=self.at_once, death="")
        self.account()

    @property
    def handled(self) -> set[Hashable]:
        """What is due for who has seen that time."""
        return {key for key, due in self.keys if due <= self.seen or not self.case.timed}

    def account(self) -> None:
        """Each effect exactly once for what was due, none for the rest."""
        wanted = Counter(self.handled)
        names = [key for key, _ in self.keys]
        for effect, found in self.case.effects(self.world, names).items():
            assert found == wanted, (
                f"{self.case.job}, {effect}: lost {wanted - found}, too often {found - wanted}"
            )
        assert not self.case.left(self.handled), "still due"
        arrived = self.case.ids_that_arrived(self.world)
        assert arrived is None or arrived == set(self.handled), "an id that nobody knows"


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[World]:
    """One committed company for the module: beats have connections of their own."""
    with committing(django_db_blocker):
        company = load_company("nexus")
        row = Organisation.objects.get(id=company.organisation.id)
        row.settings |= {"board_webhook": "https://board.example/hook", "task_lease": 1800}
        row.policy_version += 1
        row.save()
        yield World(company, load_company("soloqueue"))


@pytest.fixture(autouse=True)
def receivers_outside(monkeypatch, world):
    """Receivers outside, who take everything."""

    def send(row, _policy):
        world.arrived.append(str(row.event_id))

    monkeypatch.setattr(webhook, "send", send)
