"""No sequence of delegations carries text that no rule carries, or leaves work that never ends."""

import pytest

from proofs.governance.frames_machine import Frames
from tests.machines import play

MOVES = {
    "delegate_to", "next_frame", "return_result", "give back after a change", "cancel", "move",
    "let lead", "deactivate", "let pass", "repeated", "explained True",
}  # fmt: skip


@pytest.mark.django_db
def test_carry_text_by_their_rules_and_end_once(db):
    play(Frames, days=20, steps=30, pack="soloqueue", moves=MOVES)
