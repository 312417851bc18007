"""No sequence gives a right that one person alone wanted, or leaves an agent without a way up."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test as run

from proofs.governance.accounts_machine import Accounts
from proofs.governance.boards_machine import Boards
from proofs.governance.rights_machine import Rights
from tests.company import load_company

pytestmark = pytest.mark.django_db


def play(machine, *, days, steps):
    run(
        type("OneDay", (machine,), {"company": load_company("nexus")}),
        settings=settings(
            max_examples=days,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        ),
    )


def test_are_never_given_by_one_person_and_every_agent_reaches_its_superior(db):
    play(Rights, days=60, steps=20)


def test_of_another_user_are_nobodys(db):
    play(Accounts, days=60, steps=30)


def test_of_two_boards_are_given_by_two_of_each(db):
    Boards.took.clear()
    play(Boards, days=120, steps=30)
    assert len(Boards.took) == 13, Boards.took  # no kind of move was always refused
