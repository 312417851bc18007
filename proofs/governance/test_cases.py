"""No sequence shows an office what it may not see, or delivers without REVIEW and TEST."""

import pytest

from proofs.governance.cases_machine import Cases
from tests.machines import play

MOVES = {
    "open", "read", "violate", "violate in a pause", "ANALYSIS OK", "TASKS OK", "IMPLEMENTATION OK",
    "REVIEW APPROVED", "TEST PASSED", "amend_analysis", "extend_rounds", "DELIVER",
    "give an office", "let pass", "repeated", "explained True",
}  # fmt: skip


@pytest.mark.django_db
def test_are_kept_by_six_offices_whoever_holds_them(db):
    play(Cases, days=40, steps=30, pack="constitution", moves=MOVES)
