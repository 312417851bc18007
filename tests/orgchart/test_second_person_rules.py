"""What a person does not do alone, who the second one can be, and who ends a pause: pure."""

from datetime import UTC, datetime

import pytest

from core.actors import Confirmation, Person
from core.permissions import PeopleGroup
from orgchart.pauses.rules import PauseFacts, can_resume
from orgchart.policy.difference import Difference
from orgchart.policy.separation import ORDERS_CHANGES
from orgchart.second_person import rules
from tests.decisions import code_of

GIVES = Difference(allowed=("a may write to b",), forbidden=())
TAKES = Difference(allowed=(), forbidden=("a may no longer write to b",))
NOW = datetime(2026, 11, 25, tzinfo=UTC)


def person(*groups: str, **fields) -> Person:
    return Person(username="ada", organisation_id=1, groups=frozenset(groups), **fields)


BOARD, HR = person(PeopleGroup.BOARD), person(PeopleGroup.HR)


class TestChangingAlone:
    @pytest.mark.parametrize(
        ("who", "change", "board", "code"),
        [
            (BOARD, TAKES, {"ada", "bob"}, "OK"), (HR, TAKES, {"bob"}, "OK"),
            (BOARD, GIVES, {"ada", "bob"}, "APPROVAL_REQUIRED"), (BOARD, GIVES, {"ada"}, "OK"),
            (HR, GIVES, {"bob"}, "APPROVAL_REQUIRED"), (HR, GIVES, set(), "APPROVAL_REQUIRED"),
            (person(is_superuser=True), GIVES, set(), "OK"),
            (person(at_shell=True), GIVES, {"bob"}, "OK"),
        ],
    )  # fmt: skip
    def test_needs_a_second_person_for_a_new_right(self, who, change, board, code):
        assert code_of(rules.can_change_alone(who, change, board)) == code


class TestIssuingAKey:
    @pytest.mark.parametrize(
        ("who", "tools", "board", "code"),
        [
            (BOARD, {"send_mail"}, {"ada", "bob"}, "OK"),
            (BOARD, {ORDERS_CHANGES}, {"ada", "bob"}, "APPROVAL_REQUIRED"),
            (BOARD, {ORDERS_CHANGES}, {"ada"}, "OK"), (BOARD, {ORDERS_CHANGES}, set(), "OK"),
            (person(at_shell=True), {ORDERS_CHANGES}, {"bob"}, "OK"),
        ],
    )  # fmt: skip
    def test_of_an_agent_that_orders_changes_is_for_no_one_alone(self, who, tools, board, code):
        assert code_of(rules.can_issue_key(who, "boss", tools, board)) == code


class TestDeciding:
    def test_is_for_another_person_and_withdrawing_for_the_same(self):
        assert code_of(rules.can_decide(BOARD, "bob")) == "OK"
        assert code_of(rules.can_decide(BOARD, "ada")) == "NOT_YOURS"
        assert code_of(rules.can_withdraw(BOARD, "ada")) == "OK"
        assert code_of(rules.can_withdraw(BOARD, "bob")) == "NOT_YOURS"

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            (GIVES, "OK"), (TAKES, "VERSION_MISMATCH"),
            (Difference(allowed=GIVES.allowed, forbidden=("more",)), "VERSION_MISMATCH"),
            (Difference(allowed=("more",), forbidden=()), "VERSION_MISMATCH"),
        ],
    )  # fmt: skip
    def test_confirms_exactly_what_was_shown(self, change, code):
        seen = Confirmation(by="bob", allowed=GIVES.allowed, forbidden=GIVES.forbidden)
        assert code_of(rules.can_apply(seen, change)) == code


class TestAPause:
    @pytest.mark.parametrize(
        ("is_everyone", "by_board", "scope", "ended_by"),
        [
            (False, False, "agent", ["Board", "HR"]), (False, True, "agent", ["Board"]),
            (True, False, "organisation", ["Board"]), (True, True, "organisation", ["Board"]),
        ],
    )  # fmt: skip
    def test_says_what_it_stops_and_who_ends_it(self, is_everyone, by_board, scope, ended_by):
        found = PauseFacts("Audit.", NOW, is_everyone, by_board).refusal
        assert found.details["scope"] == scope
        assert found.details["resumed_by"] == ended_by
        assert found.message.startswith("every agent" if is_everyone else "you are")
        assert f"a member of {' or '.join(ended_by)} resumes you" in found.next_action

    @pytest.mark.parametrize(
        ("who", "by_board", "code"),
        [
            (BOARD, True, "OK"), (BOARD, False, "OK"), (HR, False, "OK"), (HR, True, "NOT_YOURS"),
            (person(is_superuser=True), True, "OK"),
        ],
    )  # fmt: skip
    def test_of_the_board_is_ended_by_the_board(self, who, by_board, code):
        assert code_of(can_resume(who, by_board=by_board)) == code
