"""Codes and their statuses are API."""

import re
from pathlib import Path

import pytest

from core.decision import Allow, Code, Denied, deny, refuse, require, status_of
from tests.oracle.codes import STATUSES


def test_every_code_has_the_status_of_the_wire():
    expected = {code: status for status, codes in STATUSES.items() for code in codes.split()}
    assert {code.value: status_of(code) for code in Code} == expected


def test_every_code_is_spelt_as_its_name():
    assert all(code.name == code.value and re.fullmatch("[A-Z_]+", code) for code in Code)


def test_this_room_reads_no_prose_to_decide():
    """Codes are compared, never sentences (house style, 3)."""
    room = Path(__file__).parents[2] / "orgchart"
    assert not [
        path
        for path in room.rglob("*.py")
        if re.search(r"\bin \w+(?:\.deny)?\.message", path.read_text())
    ]


class TestRequire:
    def test_passes_a_yes_on(self):
        yes = Allow("the rule")
        assert require(yes) is yes

    def test_raises_a_no_with_all_it_says(self):
        no = deny(Code.NOT_YOURS, "no", "ask", rule="the rule", who="me")
        with pytest.raises(Denied, match="no") as refused:
            require(no)
        assert refused.value.deny == no
        assert refused.value.deny.details == {"who": "me"}

    def test_refuse_is_the_same_no(self):
        assert refuse(Code.NOT_YOURS, "no", "ask", rule="r", who="me").deny == deny(
            Code.NOT_YOURS, "no", "ask", rule="r", who="me"
        )
