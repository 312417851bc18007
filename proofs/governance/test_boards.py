"""No sequence of changes of users gives one person what the Boards of two organisations guard."""

import pytest

from proofs.governance.boards_machine import Boards
from tests.machines import play


@pytest.mark.django_db
def test_rights_are_given_by_two_of_each_board(db):
    Boards.took.clear()
    play(Boards, days=120, steps=30)
    assert len(Boards.took) == 13, Boards.took  # no kind of move was always refused
