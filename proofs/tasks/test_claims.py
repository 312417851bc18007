"""64 real clients claim one task, 2,000 times over: one winner each time."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections

from core import machines
from core.decision import Code, Denied
from ledger.models import Event
from tasks.models import Task
from tests.concurrency import connect_apart
from tests.tasks.crowd import CLIENTS, callers_of, claim, made, make_crowd

ROUNDS = 2000

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def callers(db):
    return callers_of(make_crowd())


def contend(callers, rounds: int) -> list[list[object]]:
    """Every client claims every task, all at one moment; what each was answered, by round."""
    ids = [made(callers[0]) for _ in range(rounds)]
    begin = Barrier(CLIENTS)
    answers: list[list[object]] = [[] for _ in ids]

    def run(place_and_caller) -> None:
        place, caller = place_and_caller
        connect_apart()
        for number, task_id in enumerate(ids):
            begin.wait(60)
            versioned = (number + place) % 2
            try:
                won = claim(task_id, expected_version=1 if versioned else None)(caller)
                answers[number].append(won["owner"])
            except Denied as refusal:
                answers[number].append(refusal.deny.code)
        connections.close_all()

    with ThreadPoolExecutor(CLIENTS) as threads:
        list(threads.map(run, enumerate(callers)))
    return answers


def test_2000_rounds_have_one_winner_each(callers):
    answers = contend(callers, ROUNDS)
    for answer in answers:
        winners = [one for one in answer if not isinstance(one, Code)]
        assert len(winners) == 1
        assert len(answer) == CLIENTS
        assert set(answer) <= {*winners, Code.VERSION_MISMATCH, Code.NOT_YOURS}
    assert set(Task.objects.values_list("version", flat=True)) == {2}
    owners = dict(Task.objects.values_list("number", "owner__handle"))
    for number, answer in enumerate(answers, start=1):
        assert owners[number] in answer
    claims = Event.objects.filter(action="task.claimed")
    assert claims.count() == ROUNDS
    assert {event["version"] for event in claims.values_list("details", flat=True)} == {2}


def test_the_read_then_write_twin_has_more(callers, monkeypatch):
    statement = machines._statement

    def unguarded(*args, **kwargs):
        return statement(*args, **kwargs).replace(" AND version = %(swap_version)s", "")

    monkeypatch.setattr(machines, "_statement", unguarded)
    answers = contend(callers, 50)
    assert any(sum(not isinstance(one, Code) for one in answer) > 1 for answer in answers)
