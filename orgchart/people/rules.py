"""Which changes of a user another member of the Board confirms: pure (Spec: people 42-45)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.decision import Allow, Code, Decision, deny
from core.permissions import PeopleGroup

EVERY = None
"""In place of an organisation's id: all of them, also those that come later."""

INSTALLATION = 0
"""In place of an organisation's id: what belongs to no organisation."""

Right = tuple[str, int | None]
"""A group, or `staff` or `superuser`, in one organisation or in every one."""

STAFF = "staff"
SUPERUSER = "superuser"
RULE = "a right of a user needs a second person (spec: people 42)"
TWO_PERSONS = "the code and the password are with two persons (spec: people 49)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What gives a user rights."""

    is_active: bool
    is_staff: bool
    groups: frozenset[str]
    organisations: frozenset[int | None]
    is_superuser: bool = False

    @property
    def rights(self) -> frozenset[Right]:
        """What they are in which organisation; nothing while inactive or in no group.

        A superuser is of every Board (Spec: people 57).
        """
        if not self.is_active:
            return frozenset()
        held, where = self.groups, self.organisations
        if self.is_superuser:
            held, where = frozenset({SUPERUSER, *PeopleGroup}), frozenset({EVERY})
        names = held | {STAFF} if self.is_staff and held else held
        return frozenset((name, one) for name in names for one in where)

    def is_of_board(self, organisation_id: int) -> bool:
        """Whether they act for the Board of an organisation, or of the installation."""
        held = self.rights
        return all(
            not held.isdisjoint({(name, organisation_id), (name, EVERY)})
            for name in (PeopleGroup.BOARD, STAFF)
        )

    def stored(self) -> dict[str, Any]:
        """The standing as JSON."""
        return {
            "is_active": self.is_active,
            "is_staff": self.is_staff,
            "is_superuser": self.is_superuser,
            "groups": sorted(self.groups),
            "organisations": sorted(self.organisations, key=lambda one: one or INSTALLATION),
        }


NOTHING = Standing(is_active=False, is_staff=False, groups=frozenset(), organisations=frozenset())
"""Who is no user yet."""


def standing_from(stored: Mapping[str, Any]) -> Standing:
    """The standing of a stored JSON."""
    return Standing(
        is_active=stored["is_active"],
        is_staff=stored["is_staff"],
        is_superuser=stored["is_superuser"],
        groups=frozenset(stored["groups"]),
        organisations=frozenset(stored["organisations"]),
    )


def rights_added(before: Standing, after: Standing) -> frozenset[Right]:
    """The rights that a change gives."""
    had = before.rights
    return frozenset((name, one) for name, one in after.rights - had if (name, EVERY) not in had)


def needs_code(before: Standing, after: Standing, known_to: Collection[str]) -> bool:
    """Whether a confirmed change opens only with a code of the person who confirmed it.

    It does where it gives a right to who had none, who was on no Board and is on one now, or whose
    password another person may know: as that user, this person would use it (Spec: people 48).
    """
    if not rights_added(before, after):
        return False
    joins_a_board = _is_of_a_board(after) and not _is_of_a_board(before)
    return not before.rights or joins_a_board or bool(known_to)


def _is_of_a_board(standing: Standing) -> bool:
    return any(name == PeopleGroup.BOARD for name, _ in standing.rights)


def boards_to_ask(
    *,
    by: str,
    username: str,
    before: Standing,
    after: Standing,
    boards: Mapping[int, Collection[str]],
    acting_as: Mapping[str, frozenset[str]],
) -> frozenset[int]:
    """The organisations whose Board confirms a change of a user; none: it takes effect at once.

    Asked is each Board with a member other than the person who makes the change, in an organisation
    where the user gets a right, or where one member of several would be left alone. `boards` has
    the Board of every organisation and of the installation, `acting_as` who may act as which user.
    """
    added = {one for _, one in rights_added(before, after)}
    return frozenset(
        one
        for one, members in boards.items()
        if set(members) - {by}
        and (
            one in added
            or EVERY in added
            or _leaves_one(set(members), username, after, one, acting_as)
        )
    )


def _leaves_one(
    members: set[str],
    username: str,
    after: Standing,
    organisation_id: int,
    acting_as: Mapping[str, frozenset[str]],
) -> bool:
    """Whether a user leaves a Board whose other members may be one person."""
    leaves = username in members and not after.is_of_board(organisation_id)
    return leaves and _may_be_one(members - {username}, acting_as)


def _may_be_one(names: Collection[str], acting_as: Mapping[str, frozenset[str]]) -> bool:
    """Whether one person may act as all of these users (Spec: people 58)."""
    found = [who_may_act_as(name, acting_as) for name in names]
    return bool(found) and bool(frozenset.intersection(*found))


def who_may_act_as(name: str, acting_as: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """All who may act as a user, with the user; `acting_as` names users with known passwords."""
    return acting_as.get(name, frozenset({name}))


def can_change_user(
    *, organisations: frozenset[int] | None, is_superuser: bool, before: Standing, after: Standing
) -> Decision:
    """Decide whether a member of these organisations (None: every one) may change a user at all."""
    theirs = before.organisations | after.organisations
    if (before.is_superuser or after.is_superuser) and not is_superuser:
        return _out_of_reach("only a superuser changes a superuser")
    if organisations is not None and not theirs <= organisations:
        return _out_of_reach("this user belongs to organisations that you do not belong to")
    return Allow("a user of the person's own organisations")


def _out_of_reach(message: str) -> Decision:
    return deny(
        Code.NOT_YOURS,
        message,
        "ask a member of all of them",
        rule="the Board keeps users of its own organisations (spec: people 36)",
    )


def can_leave_boards(
    username: str, after: Standing, boards: Mapping[int, Collection[str]]
) -> Decision:
    """Decide whether each Board keeps a member: no one else could give it one again."""
    emptied = [
        one
        for one, members in boards.items()
        if set(members) == {username} and not after.is_of_board(one)
    ]
    if not emptied:
        return Allow("every Board keeps a member")
    return deny(
        Code.NOT_YOURS,
        f"{username} is the only member of a Board, which would have none",
        "first make another user a member of it, or ask the operator: manage.py people",
        rule="a Board keeps a member (spec: people 63)",
    )


def can_set_password(asked: Collection[int], username: str) -> Decision:
    """Decide whether a person may choose the password of somebody else, and so act as them."""
    if not asked:
        return Allow("the password of a user without rights, or by the only member of the Board")
    return deny(
        Code.NOT_YOURS,
        f"to know the password of {username} is to have the rights of {username}",
        f"take {username} out of the groups, set the password, and propose the groups again; "
        f"or let the operator run: manage.py changepassword {username}",
        rule="no person acts as another member (spec: people 44)",
    )


def can_be_asked(
    asked: Collection[int], boards: Mapping[int, Collection[str]], by: str
) -> Decision:
    """Decide whether one other person belongs to every Board that confirms a change."""
    if any(confirmers(asked, boards) - {by}):
        return Allow("somebody can confirm it")
    return deny(
        Code.APPROVAL_REQUIRED,
        "no other person is a member of every Board that confirms this",
        "change one organisation at a time, or ask the operator: manage.py people",
        rule=RULE,
    )


def can_confirm(by: str, asked: Collection[int], boards: Mapping[int, Collection[str]]) -> Decision:
    """Decide whether a person may confirm a change of a user: as a member of every Board asked."""
    if not asked or by in confirmers(asked, boards):
        return Allow("a member of every Board that is asked")
    return deny(
        Code.NOT_YOURS,
        "this gives rights in an organisation whose Board you do not belong to",
        "ask a member of every Board that it concerns",
        rule=RULE,
    )


def can_be_second(
    by: str,
    proposers: Collection[str],
    boards: Mapping[int, Collection[str]],
    acting_as: Mapping[str, frozenset[str]],
) -> Decision:
    """Decide whether a person is another one than who proposed a change (Spec: people 58).

    `proposers` are all who could act as its proposer when it was proposed, `boards` those that are
    asked. Where each member may be one of them, each counts.
    """
    members = frozenset(name for board in boards.values() for name in board)
    others = {name for name in members if who_may_act_as(name, acting_as).isdisjoint(proposers)}
    if not others or by in others:
        return Allow("a second person decides")
    return deny(
        Code.NOT_YOURS,
        f"the person who proposed this may act as {by}, too: one person may know both passwords",
        f"ask another member of the Board, or the operator: manage.py changepassword {by}",
        rule="one person with two names is no second person (spec: people 58)",
    )


def can_have_code(
    by: str,
    username: str,
    known_to: Sequence[str],
    members: Collection[str],
    acting_as: Mapping[str, frozenset[str]],
) -> Decision:
    """Decide whether a person may be shown the code of a user: not who may know the password.

    `known_to` begins with who chose it last. Where each of these members may know it, only the user
    and who chose it last may not (Spec: people 58).
    """
    if _is_another(by, username, known_to, members, acting_as):
        return Allow(TWO_PERSONS)
    return deny(
        Code.NOT_YOURS,
        f"you would have the code of {username} and may know the password, too",
        f"let another member of the Board do it, or first let one choose a password for {username}",
        rule=TWO_PERSONS,
    )


def can_know_password(
    by: str,
    username: str,
    code_from: str,
    members: Collection[str],
    acting_as: Mapping[str, frozenset[str]],
) -> Decision:
    """Decide whether a person may choose the password of a user: not who may have the code.

    `code_from` is who was shown it, or '' where none is asked.
    """
    have = [code_from, *sorted(who_may_act_as(code_from, acting_as) - {code_from})]
    if not code_from or _is_another(by, username, have, members, acting_as):
        return Allow(TWO_PERSONS)
    return deny(
        Code.NOT_YOURS,
        f"you would know the password of {username} and may have the code, too",
        "let another member of the Board choose the password, or first let one give a new code by "
        "removing the second factor",
        rule=TWO_PERSONS,
    )


def _is_another(
    by: str,
    username: str,
    holders: Sequence[str],
    members: Collection[str],
    acting_as: Mapping[str, frozenset[str]],
) -> bool:
    """Whether a person is certainly neither the user nor one of these; the first holds it last."""
    same = {username, *holders}
    others = {name for name in members if who_may_act_as(name, acting_as).isdisjoint(same)}
    return by in others or (not others and by not in (username, *holders[:1]))


def confirmers(asked: Collection[int], boards: Mapping[int, Collection[str]]) -> frozenset[str]:
    """Who is a member of all of these Boards."""
    members = [frozenset(boards.get(one, ())) for one in asked]
    return frozenset.intersection(*members) if members else frozenset()
