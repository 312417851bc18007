"""`kill -9` of anything, at any moment, under load: what was acknowledged is there, once.

A short run with every suite, a long one by `make faults`, which prints its account.
"""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import httpx
import pytest

from nexus_site.run.postgres import Cluster
from proofs.faults.account import DUE, complaints
from proofs.faults.installation import (
    PARTS,
    Installation,
    installation,
    quick,
    wait_until,
)
from proofs.faults.load import SOON, Agents
from proofs.faults.receiver import Receiver, receiving
from proofs.faults.twins import moment

KILLS = int(os.environ.get("NEXUS_KILLS", str(len(PARTS))))
LONG = len(PARTS) < KILLS
CHECK_EVERY = 25  # kills
KILL_JOBS_FOR = "15"  # seconds
MUCH = 20  # due rows
SEED = int(os.environ.get("NEXUS_KILLS_SEED", "7"))

pytestmark = pytest.mark.slow


@dataclass
class Company:
    """The company, its agents, the Board's receiver, and what was found wrong so far."""

    one: Installation
    agents: Agents
    receiver: Receiver
    killed: Counter = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)

    def complaints(self, *, settled: bool = False) -> list[str]:
        return complaints(self.one, self.agents.calls, self.receiver, settled=settled)

    def settle(self) -> None:
        """Wait until nothing is due any more: nobody works, so nothing new comes."""
        self.one.wait_until_ready()
        wait_until("the last due row", lambda: not self.one.ask(DUE))


def plan(kills: int, chance: random.Random) -> Iterator[list[str]]:
    """Parts in an order that nobody chose, each as often as the others; up to three at once."""
    order: list[str] = []
    while len(order) < kills:
        order += chance.sample(PARTS, len(PARTS))
    left = order[:kills]
    while left:
        together = left[: chance.randint(1, 3)]
        while len(set(together)) < len(together):
            together.pop()  # the same part again: in the next outage
        left = left[len(together) :]
        yield together


@pytest.fixture(scope="module")
def company(tmp_path_factory):
    """A company in which nobody waits long, that tells its Board by webhook."""
    with receiving() as receiver:
        folder = tmp_path_factory.mktemp("company")
        with installation(folder, quick(receiver.url), twins=not LONG) as one:
            yield Company(one, Agents(one), receiver)


@pytest.fixture(scope="module")
def aftermath(company):
    """The company after it was killed piece by piece while its agents worked."""
    chance = random.Random(SEED)
    begun = time.monotonic()
    with company.agents.at_work():
        for parts in plan(KILLS, chance):
            before = len(company.agents.calls)
            wait_until("agents at work", lambda n=before: len(company.agents.calls) > n)
            time.sleep(chance.uniform(0.0, 0.5))
            outage(company.one, parts, chance)
            checked = company.killed.total() // CHECK_EVERY
            company.killed.update(parts)
            if company.killed.total() // CHECK_EVERY > checked:
                company.found += company.complaints()
                report(company, begun)
    company.settle()
    company.found += company.complaints(settled=True)
    report(company, begun)
    return company


def outage(one: Installation, parts: Sequence[str], chance: random.Random) -> None:
    """Kill one process of each part, and wait until the company serves again by itself."""
    there = {part: len(one.pids(part)) for part in parts}
    for part in parts:
        one.kill(part, chance)
    for part, times in there.items():
        wait_until(f"{part} to be back", lambda p=part, n=times: len(one.pids(p)) >= n)
    one.wait_until_ready()
    if parts != ["web"]:
        one.wait_until_clocks_tick()


def report(company: Company, begun: float) -> None:
    killed = ", ".join(f"{part} {n}" for part, n in sorted(company.killed.items()))
    print(
        f"{time.monotonic() - begun:6.0f} s  killed {company.killed.total()} ({killed}); "
        f"{len(company.agents.calls)} calls acknowledged, "
        f"{len(company.receiver.arrived)} notices arrived in {company.receiver.attempts} attempts; "
        f"wrong: {len(company.found)}, odd: {len(company.agents.odd)}",
        *company.found[:10],
        *company.agents.odd[:10],
        sep="\n        ",
        flush=True,
    )


@pytest.mark.parametrize("seed", range(20))
def test_each_part_is_killed_as_often_as_the_others(seed):
    outages = list(plan(300, random.Random(seed)))
    assert set(Counter(part for parts in outages for part in parts).values()) == {60}
    assert max(map(len, outages)) == 3
    assert all(len(set(parts)) == len(parts) for parts in outages)


class TestReadiness:
    """What /readyz says while a part is missing."""

    def test_is_there_when_everything_is(self, company):
        company.one.wait_until_clocks_tick()
        said = company.one.ready()
        assert said["status"] == "ready"
        assert said["scheduler"].startswith("last run")

    def test_misses_the_broker(self, company):
        one = company.one

        def missed():
            one.kill_all("broker")  # each time the supervisor waits longer before it starts it
            return one.ready().get("broker") not in (None, "reachable")

        wait_until("a word", missed)
        assert one.ready()["database"] == "reachable"
        one.wait_until_ready()
        one.wait_until_clocks_tick()

    def test_misses_the_database(self, company):
        """One answer says both: another web process may keep its last one for a second."""
        one, said = company.one, {}

        def missed():
            said.update(one.ready())
            return said.get("database") not in (None, "reachable")

        with one.without_postgres():
            wait_until("a word", missed)
            assert said["status"] == "unavailable"
        one.wait_until_ready()
        one.wait_until_clocks_tick()

    def test_misses_the_beats(self, company):
        one = company.one
        an_hour_ago = "UPDATE toolbox_jobrun SET last_at = now() - interval '1 hour'"

        def silent():
            with Cluster.under(one.var).connect("nexus") as database:
                database.execute(an_hour_ago)
            return "last run 3600 s ago" in one.ready().get("scheduler", "")

        with one.paused("beat"):
            wait_until("a word", silent)
        wait_until("a beat", lambda: one.ready().get("scheduler", "").startswith("last run"))


class TestAfterEveryKill:
    def test_every_part_fell_as_often_as_the_others(self, aftermath):
        assert aftermath.killed.total() == KILLS
        assert set(aftermath.killed) == set(PARTS[:KILLS])
        assert max(aftermath.killed.values()) - min(aftermath.killed.values()) <= 1

    def test_every_call_was_answered_in_the_end_as_it_should(self, aftermath):
        assert aftermath.agents.odd == []
        assert len(aftermath.agents.calls) > KILLS

    def test_nothing_was_lost_doubled_or_left_out_of_the_ledger(self, aftermath):
        assert aftermath.found == []

    def test_a_repeated_call_is_given_its_answer_again_and_does_nothing(self, aftermath):
        with httpx.Client(base_url=aftermath.one.url, timeout=30) as http:
            wrong = [aftermath.agents.repeat(call, http) for call in aftermath.agents.calls[-200:]]
        assert [problem for problem in wrong if problem] == []
        aftermath.settle()
        assert aftermath.complaints(settled=True) == []

    def test_clocks_fired_and_notices_arrived(self, aftermath):
        query = "SELECT action, count(*) FROM ledger_event GROUP BY 1"
        times = dict(aftermath.one.ask(query))
        for action in (
            "escalation.unanswered",
            "escalation.ceo_told",
            "contract.overdue",
            "task.lease_expired",
            "notice.sent",
        ):
            assert times.get(action), f"{action} never happened, so nothing was proved of it"
        assert aftermath.receiver.arrived

    def test_the_ledger_still_verifies(self, aftermath):
        aftermath.one.manage("ledger", "verify")


def kill_jobs(company: Company, *options: str) -> dict[str, int]:
    """Kill the jobs at each of their statements, with enough to do; how often each was killed."""
    one = company.one
    with one.paused_between_jobs():
        with company.agents.at_work():
            wait_until("work for every job", lambda: len(one.ask(DUE)) > MUCH)
        time.sleep(SOON.total_seconds())
        return json.loads(one.run("-m", "proofs.faults.jobs", KILL_JOBS_FOR, *options).stdout)


class TestJobsKilledAtEachStatement:
    def test_do_everything_once(self, aftermath):
        killed = kill_jobs(aftermath)
        print("jobs killed:", killed)
        assert min(killed.values()) > 2
        aftermath.settle()
        assert aftermath.complaints(settled=True) == []


@pytest.fixture(scope="module")
def twins(aftermath):
    """The same company with broken twins beside its mechanisms, for which a long run ends first."""
    if LONG:
        aftermath.one.stop()
        aftermath.one.twins = True
        aftermath.one.start()
    return aftermath


@pytest.fixture
def stage(twins):
    """Lets a twin play; what the account holds against it that it did not before."""
    file = twins.one.twin

    def told(twin, reached, end):
        before = set(twins.complaints())
        file.write_text(twin)
        with twins.agents.at_work():
            wait_until(f"{twin} at its weak moment", reached)
            file.unlink()
            end()
            twins.one.wait_until_ready()
        moment(file).unlink(missing_ok=True)
        return [line for line in twins.complaints() if line not in before]

    return told


@pytest.fixture
def stage_and_kill(twins, stage):
    """Lets a twin play up to its weak moment, and kills these processes then."""

    def told(twin, part):
        return stage(twin, moment(twins.one.twin).exists, lambda: twins.one.kill_all(part))

    return told


class TestTwins:
    """The harness finds what it looks for: each broken mechanism is reported."""

    def test_a_twin_that_records_after_the_commit(self, stage_and_kill):
        found = stage_and_kill("records_after_the_commit", "web")
        assert any("without exactly one event of its issue" in line for line in found), found

    def test_a_twin_that_answers_before_the_commit(self, twins, stage):
        def acknowledged():
            where = moment(twins.one.twin)
            return where.exists() and where.read_text() in {c.key for c in twins.agents.calls}

        found = stage("answers_before_the_commit", acknowledged, lambda: twins.one.kill_all("web"))
        assert any("acknowledged, but not there" in line for line in found), found

    def test_a_twin_that_forgets_its_answers(self, twins, stage):
        before = len(twins.agents.calls)

        def repeated():
            mails = [c for c in twins.agents.calls[before:] if c.tool == "send_mail"]
            with httpx.Client(base_url=twins.one.url, timeout=30) as http:
                return any(twins.agents.repeat(call, http) for call in mails[-1:])

        found = stage("forgets_its_answers", repeated, lambda: None)
        assert any("an effect 2 times" in line for line in found), found

    def test_a_twin_that_sweeps_without_a_lock(self, twins, stage):
        def twice():
            query = "SELECT 1 FROM ledger_event WHERE action = 'contract.overdue'"
            return twins.one.ask(f"{query} GROUP BY subject HAVING count(*) > 1")

        found = stage("sweeps_without_a_lock", twice, lambda: None)
        assert any("a deadline told twice" in line for line in found), found

    def test_a_twin_whose_job_works_in_pieces(self, twins):
        before = set(twins.complaints())
        kill_jobs(twins, "twin")
        twins.settle()
        found = [line for line in twins.complaints() if line not in before]
        assert any("a deadline that passed in silence" in line for line in found), found

    def test_a_twin_that_settles_before_it_sends(self, stage_and_kill):
        found = stage_and_kill("settles_before_it_sends", "worker")
        assert any("said to be sent, but never arrived" in line for line in found), found

    def test_a_twin_that_files_before_it_writes(self, stage_and_kill):
        found = stage_and_kill("files_before_it_writes", "web")
        assert any("a document whose file is not there" in line for line in found), found
