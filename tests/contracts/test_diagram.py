"""The picture of a contract's states is the state machine's."""

from contracts import diagram
from contracts.vocabulary import TRANSITIONS


def test_the_page_shows_the_machine_as_it_is():
    assert diagram.PAGE.read_text("utf-8") == diagram.page()


def test_it_shows_every_move_and_no_other():
    arrows = {
        (source.value, target.value)
        for sources, target in TRANSITIONS.values()
        for source in sources
    }
    shown = {
        tuple(line.split(" : ")[0].strip().split(" --> "))
        for line in diagram.page().splitlines()
        if " : " in line
    }
    assert shown == arrows
