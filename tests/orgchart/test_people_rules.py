"""Which Boards a change of a user asks: every change of small standings, against sentences."""

from dataclasses import replace
from itertools import chain, combinations, product

import pytest

from core.decision import Allow
from core.permissions import PeopleGroup
from orgchart.people import rules
from orgchart.people.rules import EVERY, NOTHING, Standing, boards_to_ask, standing_from

BOARD, HR = PeopleGroup.BOARD.value, PeopleGroup.HR.value
A, B, HERE = 1, 2, 0


def subsets(items):
    return [frozenset(s) for s in chain.from_iterable(combinations(items, n) for n in range(4))]


def standing(groups, organisations, *, is_active=True, is_staff=True):
    return Standing(
        is_active=is_active,
        is_staff=is_staff,
        groups=frozenset(groups),
        organisations=frozenset(organisations),
    )


STANDINGS = [
    standing(groups, organisations, is_active=active, is_staff=staff)
    for groups, organisations, active, staff in product(
        subsets([BOARD, HR]), [[], [A], [B], [A, B], [EVERY]], [True, False], [True, False]
    )
]
OTHERS = [
    {A: {"ada"}, B: {"ada"}, HERE: {"ada"}},
    {A: {"ada", "bob"}, B: {"ada"}, HERE: {"ada"}},
    {A: {"ada", "bob"}, B: {"ada", "cyd"}, HERE: {"ada"}},
    {A: {"ada", "bob"}, B: {"ada", "bob"}, HERE: {"ada", "bob"}},
]
"""Who is of which Board besides the user `eve` herself; `ada` makes every change."""


def can(one, group, organisation, *, staff=False):
    """By hand: whether a user is in a group of an organisation (and may sign in to the admin)."""
    member = organisation in one.organisations or EVERY in one.organisations
    return one.is_active and member and group in one.groups and (one.is_staff or not staff)


def expected(before, after, others):
    """By hand, from people 42 and 43: organisation by organisation."""
    asked = set()
    for here, members in others.items():
        was, stays = (can(one, BOARD, here, staff=True) for one in (before, after))
        board = members | ({"eve"} if was else set())
        gains = any(
            can(after, group, here, staff=staff) and not can(before, group, here, staff=staff)
            for group, staff in product([BOARD, HR], [False, True])
        )
        alone = len(board) == 2 and was and not stays
        if (gains or alone) and board - {"ada"}:
            asked.add(here)
    # Every organisation is more than the ones there are: those that come later belong to it.
    if EVERY in after.organisations and EVERY not in before.organisations:
        held = any(can(after, group, HERE) for group in (BOARD, HR))
        board = {
            one: members | ({"eve"} if can(before, BOARD, one, staff=True) else set())
            for one, members in others.items()
        }
        asked |= {one for one in others if held and board[one] - {"ada"}}
    return asked


class TestTheBoardsAsked:
    @pytest.mark.parametrize("others", OTHERS)
    def test_are_those_of_the_sentences_for_every_change(self, others):
        for before, after in product(STANDINGS, STANDINGS):
            boards = {
                one: members | ({"eve"} if before.is_of_board(one) else set())
                for one, members in others.items()
            }
            found = boards_to_ask(
                by="ada", username="eve", before=before, after=after, boards=boards, acting_as={}
            )
            assert found == expected(before, after, others), (before, after)

    def test_are_none_where_nothing_changes(self):
        boards = {A: {"ada", "bob", "eve"}}
        for one in STANDINGS:
            given = {"by": "ada", "username": "eve", "before": one, "after": one}
            assert not boards_to_ask(**given, boards=boards, acting_as={})

    def test_are_asked_of_a_superuser_that_falls(self):
        root = Standing(
            is_active=True,
            is_staff=True,
            is_superuser=True,
            groups=frozenset(),
            organisations=frozenset(),
        )
        boards = {A: {"ada", "eve"}, HERE: {"eve"}}
        given = {"by": "ada", "username": "eve", "boards": boards, "acting_as": {}}
        assert boards_to_ask(before=root, after=NOTHING, **given) == {A}
        assert boards_to_ask(before=NOTHING, after=root, **given) == {A, HERE}


class TestAStanding:
    def test_is_the_same_after_it_waited_as_json(self):
        for one in STANDINGS:
            assert standing_from(one.stored()) == one


class TestWhoConfirms:
    BOARDS = {A: {"ada", "bob"}, B: {"ada", "cyd"}}

    def test_is_of_every_board_that_is_asked(self):
        assert isinstance(rules.can_confirm("bob", {A}, self.BOARDS), Allow)
        assert not isinstance(rules.can_confirm("bob", {A, B}, self.BOARDS), Allow)
        assert not isinstance(rules.can_confirm("eve", {A}, self.BOARDS), Allow)
        assert isinstance(rules.can_confirm("eve", (), self.BOARDS), Allow)

    def test_keeps_who_may_choose_a_password(self):
        """Spec: people 44."""
        assert isinstance(rules.can_set_password((), "eve"), Allow)
        assert not isinstance(rules.can_set_password({A}, "eve"), Allow)

    def test_has_to_exist(self):
        assert isinstance(rules.can_be_asked({A}, self.BOARDS, "ada"), Allow)
        assert not isinstance(rules.can_be_asked({A, B}, self.BOARDS, "ada"), Allow)


class TestOnePersonWithTwoNames:
    """`ada` may act as `x` and `y`, `dan` as `z`, and as `w` if not `ada` does."""

    ACTING_AS = {
        name: frozenset({name, *known})
        for name, known in (
            ("x", {"ada"}),
            ("y", {"ada", "x"}),
            ("z", {"dan"}),
            ("w", {"ada", "dan"}),
        )
    }

    @pytest.mark.parametrize(
        ("by", "proposed_by", "members", "is_second"),
        [
            ("x", "ada", {"ada", "x", "dan"}, False),
            ("ada", "x", {"ada", "x", "dan"}, False),
            ("x", "y", {"x", "dan"}, False),
            ("dan", "ada", {"ada", "x", "dan"}, True),
            ("x", "dan", {"ada", "x", "dan"}, True),
            ("x", "ada", {"ada", "x"}, True),
            ("y", "x", {"ada", "x", "y"}, True),
            ("w", "ada", {"ada", "w", "dan"}, False),
            ("w", "dan", {"ada", "w", "dan"}, False),
            ("w", "z", {"z", "w", "bob"}, False),
        ],
    )
    def test_is_no_second_person_where_there_is_one(self, by, proposed_by, members, is_second):
        proposers = self.ACTING_AS.get(proposed_by, {proposed_by})
        found = rules.can_be_second(by, proposers, {A: members}, self.ACTING_AS)
        assert isinstance(found, Allow) == is_second

    def test_is_none_on_any_board_that_has_another(self):
        two, three = {"ada", "x"}, {"ada", "x", "dan"}
        assert isinstance(
            rules.can_be_second("x", {"ada"}, {A: two, B: two}, self.ACTING_AS), Allow
        )
        found = rules.can_be_second("x", {"ada"}, {A: two, B: three}, self.ACTING_AS)
        assert not isinstance(found, Allow)

    @pytest.mark.parametrize(
        ("board", "leaves", "asked"),
        [
            ({"ada", "x", "dan"}, "dan", True),
            ({"ada", "x", "y", "dan"}, "dan", True),
            ({"ada", "x", "dan"}, "x", False),
            ({"dan", "x", "bob"}, "bob", False),
            ({"ada", "dan"}, "dan", True),
            ({"ada", "dan", "bob"}, "dan", False),
            ({"ada", "w", "bob"}, "bob", True),
            ({"ada", "w", "dan", "bob"}, "bob", False),
            ({"ada", "x"}, "eve", False),
        ],
    )
    def test_is_not_left_alone_by_one_of_them(self, board, leaves, asked):
        member = standing({BOARD if leaves in board else HR}, {A})
        found = boards_to_ask(
            by=min(board - {leaves}), username=leaves, before=member, after=NOTHING,
            boards={A: board}, acting_as=self.ACTING_AS,
        )  # fmt: skip
        assert bool(found) == asked

    @pytest.mark.parametrize(
        ("by", "known_to", "members", "is_shown"),
        [
            ("dan", ["ada"], {"ada", "dan"}, True),
            ("ada", ["ada"], {"ada", "dan"}, False),
            ("eve", [], {"eve", "dan"}, False),
            ("x", ["ada"], {"ada", "x", "dan"}, False),
            ("ada", ["x", "ada"], {"ada", "x", "dan"}, False),
            ("ada", ["x", "ada"], {"ada", "x"}, True),
            ("x", ["x", "ada"], {"ada", "x"}, False),
            ("x", ["ada"], {"ada", "x"}, True),
        ],
    )
    def test_has_no_code_of_a_user_whose_password_they_may_know(
        self, by, known_to, members, is_shown
    ):
        found = rules.can_have_code(by, "eve", known_to, members, self.ACTING_AS)
        assert isinstance(found, Allow) == is_shown

    @pytest.mark.parametrize(
        ("by", "code_from", "members", "may_choose"),
        [
            ("ada", "", {"ada"}, True),
            ("dan", "ada", {"ada", "dan"}, True),
            ("ada", "ada", {"ada", "dan"}, False),
            ("x", "ada", {"ada", "x", "dan"}, False),
            ("ada", "x", {"ada", "x", "dan"}, False),
            ("ada", "x", {"ada", "x"}, True),
            ("x", "x", {"ada", "x"}, False),
            ("eve", "dan", {"eve", "dan"}, False),
        ],
    )
    def test_chooses_no_password_of_a_user_whose_code_they_may_have(
        self, by, code_from, members, may_choose
    ):
        found = rules.can_know_password(by, "eve", code_from, members, self.ACTING_AS)
        assert isinstance(found, Allow) == may_choose


class TestACode:
    """Spec: people 48."""

    @pytest.mark.parametrize(
        ("before", "after", "known_to", "needed"),
        [
            (NOTHING, standing([HR], [A]), [], True),
            (standing([HR], [A]), standing([BOARD], [A]), [], True),
            (standing([BOARD], [A]), standing([BOARD, HR], [A, B]), [], False),
            (standing([BOARD], [A]), standing([BOARD], [A, B]), ["ada"], True),
            (standing([HR], [A]), standing([HR], [A, B]), [], False),
            (standing([HR], [A]), standing([HR], [A]), ["ada"], False),
            (standing([BOARD], [A]), standing([HR], [A]), ["ada"], True),
        ],
    )
    def test_is_of_who_gets_its_first_right_a_board_or_may_be_known(
        self, before, after, known_to, needed
    ):
        assert rules.needs_code(before, after, known_to) is needed


class TestChangingAUser:
    """Spec: people 36."""

    @pytest.mark.parametrize(
        ("mine", "before", "after", "is_allowed"),
        [
            ({A}, standing([HR], [A]), standing([], [A]), True),
            ({A}, standing([HR], [A, B]), standing([], [A]), False),
            ({A}, standing([HR], [A]), standing([HR], [A, B]), False),
            ({A}, standing([HR], [EVERY]), standing([HR], [A]), False),
            (None, standing([HR], [EVERY]), standing([HR], [A, B]), True),
        ],
    )
    def test_is_for_who_belongs_to_all_of_their_organisations(
        self, mine, before, after, is_allowed
    ):
        found = rules.can_change_user(
            organisations=None if mine is None else frozenset(mine), is_superuser=False,
            before=before, after=after,
        )  # fmt: skip
        assert isinstance(found, Allow) is is_allowed

    @pytest.mark.parametrize(
        ("boards", "after", "is_allowed"),
        [
            ({A: {"eve"}}, NOTHING, False),
            ({A: {"eve"}}, standing([BOARD], [A]), True),
            ({A: {"eve"}}, standing([BOARD], [B]), False),
            ({A: {"eve"}, B: {"eve"}}, standing([BOARD], [A]), False),
            ({A: {"eve"}, B: {"eve"}}, standing([BOARD], [EVERY]), True),
            ({A: {"eve"}, HERE: {"eve", "ada"}}, standing([HR], [EVERY]), False),
            ({A: {"eve", "ada"}}, NOTHING, True),
            ({A: {"ada"}}, NOTHING, True),
            ({A: set()}, NOTHING, True),
        ],
    )
    def test_leaves_no_board_without_a_member(self, boards, after, is_allowed):
        """Spec: people 63."""
        found = rules.can_leave_boards("eve", after, boards)
        assert isinstance(found, Allow) is is_allowed

    @pytest.mark.parametrize("is_superuser", [True, False])
    def test_that_is_a_superuser_is_for_superusers(self, is_superuser):
        plain = standing([HR], [A])
        above = replace(plain, is_superuser=True)
        for before, after in ((plain, above), (above, plain), (above, above)):
            found = rules.can_change_user(
                organisations=None, is_superuser=is_superuser, before=before, after=after
            )
            assert isinstance(found, Allow) is is_superuser


def test_a_standing_is_stored_with_every_organisation_first():
    stored = standing([HR, BOARD], [B, EVERY, A]).stored()
    assert stored["organisations"] == [EVERY, A, B]
    assert standing_from(stored) == standing([HR, BOARD], [B, EVERY, A])
