"""No sequence gives a right that one person alone wanted, or leaves an agent without a way up."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test as run

from proofs.governance.rights_machine import Rights
from tests.company import load_company

pytestmark = pytest.mark.django_db
DAYS, STEPS = 60, 20


def test_are_never_given_by_one_person_and_every_agent_reaches_its_superior(db):
    run(
        type("OneDay", (Rights,), {"company": load_company("nexus")}),
        settings=settings(
            max_examples=DAYS,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        ),
    )
