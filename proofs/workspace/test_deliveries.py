"""What reaches the main branch was passed by QA and lies in its contract's scope."""

import pytest

from proofs.workspace.changes_machine import Changes
from tests.machines import play
from tests.workspace.git.world import needs_walls

pytestmark = [needs_walls, pytest.mark.django_db]
MOVES = {
    "submit", "PASS by qa_worker", "merge", "passed", "give a role", "repeated", "explained True",
}  # fmt: skip


def test_are_of_work_that_qa_passed_and_nobody_reads_around_their_scope(db):
    play(Changes, days=8, steps=12, moves=MOVES)
