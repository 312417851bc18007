"""No sequence of changes of users gives one person what the Boards of two organisations guard."""

import pytest

from proofs.governance.boards_machine import Boards
from tests.machines import play

MOVES = {
    "propose", "organisations at once", "groups at once", "is_active at once", "is_staff at once",
    "make", "set a password", "remove a second factor", "enter a code", "show a code", "yes", "no",
    "withdraw",
}  # fmt: skip


@pytest.mark.django_db
def test_rights_are_given_by_two_of_each_board(db):
    play(Boards, days=120, steps=30, moves=MOVES)
