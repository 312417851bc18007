from __future__ import annotations

from orgchart.policy.parties import active_superior, chain_of
from orgchart.policy.vocabulary import BOARD

REPORTS_TO = {"ceo": BOARD, "lead": "ceo", "worker": "lead"}


class TestChainOf:
    def test_goes_up_to_the_board(self):
        assert chain_of("worker", REPORTS_TO.get) == ("lead", "ceo", BOARD)

    def test_ends_where_it_closes_on_itself(self):
        assert chain_of("a", {"a": "b", "b": "c", "c": "b"}.get) == ("b", "c")
        assert chain_of("a", {"a": "a"}.get) == ()


class TestActiveSuperior:
    def test_passes_over_the_deactivated(self):
        assert active_superior("worker", REPORTS_TO.get, {"worker", "ceo"}) == "ceo"
        assert active_superior("worker", REPORTS_TO.get, {"worker"}) == BOARD

    def test_is_the_board_in_a_circle(self):
        assert active_superior("a", {"a": "b", "b": "a"}.get, {"a"}) == BOARD
