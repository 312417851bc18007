"""Many agents with connections of their own, all acting at one moment."""

from functools import partial

from core.decision import Code
from tasks import services
from tasks.rules.values import TaskUpdate
from tasks.store import read_task
from tests import concurrency
from tests.tasks.world import NOW, add_agent, add_role, caller_of, make_organisation

CLIENTS = 64


def make_crowd():
    """An organisation with one role and an agent for every client."""
    organisation = make_organisation("crowd", task_visibility="all", task_lease=1800)
    role = add_role(organisation, "worker")
    for number in range(CLIENTS):
        add_agent(organisation, f"w{number}", role)
    return organisation


def callers_of(organisation) -> list:
    return [caller_of(organisation, f"w{number}") for number in range(CLIENTS)]


def each(work, args) -> list:
    """Do the work for every argument at one moment."""
    return concurrency.at_once([partial(work, arg) for arg in args], raising=True)


def made(caller, **fields) -> str:
    return services.create_task(caller=caller, subject="x", now=NOW, **fields)["id"]


def claim(task_id: str, **fields):
    def work(caller):
        update = TaskUpdate(owner=caller.handle, **fields)
        return services.update_task(caller=caller, task_id=task_id, update=update, now=NOW)

    return work


def round_of_claims(callers, *, versioned: bool) -> list:
    """All claim one task at once; exactly one wins, the others change nothing."""
    task_id = made(callers[0])
    answers = each(claim(task_id, expected_version=1 if versioned else None), callers)
    won = [answer for answer in answers if isinstance(answer, dict)]
    row = read_task(callers[0].organisation_id, task_id)
    assert len(won) == 1
    assert (row.owner, row.version) == (won[0]["owner"], 2)
    lost = {answer for answer in answers if not isinstance(answer, dict)}
    assert lost == {Code.VERSION_MISMATCH if versioned else Code.NOT_YOURS}
    return answers
