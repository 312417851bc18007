"""What reaches the main branch was passed by QA and lies in its contract's scope."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test as run

from proofs.workspace.deliveries_machine import Deliveries
from tests.company import load_company
from tests.workspace.git.world import needs_walls

pytestmark = [needs_walls, pytest.mark.django_db]


def test_are_of_work_that_qa_passed_and_nobody_reads_around_their_scope(db):
    run(
        type("OneDay", (Deliveries,), {"company": load_company("nexus")}),
        settings=settings(
            max_examples=8,
            stateful_step_count=15,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        ),
    )
