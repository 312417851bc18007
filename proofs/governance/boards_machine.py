"""People of two organisations keep accounts: nobody alone gets or gives what two Boards guard."""

from contextlib import suppress
from dataclasses import replace

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils import timezone
from django_otp.plugins.otp_totp.models import TOTPDevice
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from core.decision import Denied
from core.people import signed_in_as
from core.permissions import PeopleGroup
from orgchart.models import Membership, Organisation, PendingChange
from orgchart.people.members import set_memberships, standing_of
from orgchart.people.passwords import give_password, take_password
from orgchart.people.rules import EVERY
from orgchart.second_person.services import confirm_change, reject_change, withdraw_change
from orgchart.second_person.users import change_user, require_password_change
from tests.machines import CompanyMachine
from tests.people import remove_factor

BOARD = PeopleGroup.BOARD
NAMES = ("ada", "bob", "cyd", "dan")
LATER = ("eve", "fay")
"""Accounts that somebody makes on the way."""
someone = st.integers(0, 99)
"""Who acts or is acted on: see `Boards.one_of`."""
group = st.sampled_from([BOARD, PeopleGroup.HR])
place = st.sampled_from(["first", "second", "every"])
places = st.sampled_from([("first",), ("first",), ("second",), ("first", "second"), ("every",)])
standing = st.tuples(st.sampled_from([BOARD, BOARD, PeopleGroup.HR, ""]), places)


class Boards(CompanyMachine):
    """Accounts of two organisations, and which human being could act as each of them.

    `passwords` are all who may know the password of an account, `codes` who was shown its code
    (Spec: people 48, people 49), `proposer` the human being behind each proposal.
    """

    def __init__(self):
        super().__init__()
        second = Organisation.objects.create(slug="second", name="Second")
        self.ids = {"first": self.here.organisation.id, "second": second.id, "every": EVERY}
        self.places = (self.ids["first"], self.ids["second"], 0)
        for name in PeopleGroup:
            Group.objects.get_or_create(name=name)
        self.passwords, self.codes, self.proposer = {}, {}, {}
        self.had, self.board = set(), {}

    @initialize(
        people=st.tuples(*[standing] * len(NAMES)), root=st.integers(0, 7), two=st.booleans()
    )
    def begin(self, people, root, two):
        """What there is: superusers now and then, and one that another made while alone."""
        for at, (name, (held, joined)) in enumerate(zip(NAMES, people, strict=True)):
            is_root = at < root - 5
            user = User.objects.create_user(name, is_staff=True, is_superuser=is_root)
            user.groups.set(Group.objects.filter(name=held))
            for one in joined:
                Membership.objects.create(person=user, organisation_id=self.ids[one], added_by="x")
            self.passwords[name] = {name}
        if two:
            self.passwords["bob"].add("ada")
            give_password(User.objects.get(username="bob").pk, by="ada")
        self.look()
        self.had, self.board = self.powers(), self.boards()

    # Who can do what

    def human(self, name):
        """Who acts as an account: anybody but its own user who has all that it asks for."""
        others = self.passwords[name] - {name}
        if name in self.codes:
            others &= {self.codes[name]}
        return min(others, default=name)

    def look(self):
        """What each account may do where, read from the tables by hand."""
        self.held = {name: set() for name in self.passwords}
        users = User.objects.filter(is_active=True, is_staff=True)
        for user in users.prefetch_related("groups", "memberships"):
            joined = {row.organisation_id for row in user.memberships.all()}
            groups = {row.name for row in user.groups.all()}
            if user.is_superuser:
                joined, groups = {EVERY}, {BOARD}
            where = self.places if EVERY in joined else joined
            self.held[user.username] = {(each, one) for each in groups for one in where}

    def powers(self):
        """What each human being may do where, with the accounts that they can act as."""
        return {
            (human, right, where)
            for name in self.passwords
            for human in {name, self.human(name)}
            for right, where in self.held[name]
        }

    def boards(self):
        """The human beings of each Board."""
        return {
            where: {self.human(n) for n in self.passwords if (BOARD, where) in self.held[n]}
            for where in self.places
        }

    def by(self, *humans):
        """Compare with the last step: what somebody got, and who was left alone, needed two."""
        self.look()
        powers, boards = self.powers(), self.boards()
        for human, right, where in powers - self.had:
            if (human, BOARD, where) not in self.had:
                agreed = self.board[where] <= set(humans) or len(self.board[where] & {*humans}) > 1
                assert agreed, (humans, human, right, where, self.board)
        for where, board in boards.items():
            left = len(board) == 1 and len(self.board[where]) > 1
            assert not left or len(self.board[where] & {*humans}) > 1, (
                humans,
                where,
                self.board,
                boards,
                self.held,
                self.passwords,
                self.codes,
            )
        self.had, self.board = powers, boards

    def one_of(self, at):
        """An account; most often one of a Board that can act, for others are refused nearly all."""
        names = sorted(self.passwords.keys() - self.codes.keys())
        can = [name for name in names if BOARD in {group for group, _ in self.held[name]}]
        return can[at // 5 % len(can)] if can and at % 5 else self.any_of(at // 5)

    def any_of(self, at):
        """Any account."""
        return sorted(self.passwords)[at % len(self.passwords)]

    def sees(self, by, who):
        """Whether an account can open the page of another (Spec: people 35)."""
        if by in self.codes:
            return False
        mine = signed_in_as(by).organisations
        theirs = standing_of(User.objects.get(username=who)).organisations
        return mine is None or not theirs.isdisjoint(mine)

    # Moves

    @rule(by=someone, who=someone, group=group)
    def toggle_a_group(self, by, who, group):
        self.change(self.one_of(by), self.any_of(who), "groups", {group})

    @rule(by=someone, who=someone, place=place)
    def toggle_a_place(self, by, who, place):
        self.change(self.one_of(by), self.any_of(who), "organisations", {self.ids[place]})

    @rule(by=someone, who=someone, what=st.sampled_from(["is_active", "is_staff"]))
    def toggle_a_column(self, by, who, what):
        self.change(self.one_of(by), self.any_of(who), what)

    def change(self, by, who, column, parts=None):
        """The proposal, where it is one."""
        if not self.sees(by, who):
            return None
        user, row = User.objects.get(username=who), None
        before = standing_of(user)
        now = getattr(before, column)
        after = replace(before, **{column: not now if parts is None else now ^ parts})
        with suppress(Denied):
            row = change_user(user=user, after=after, who=signed_in_as(by), now=timezone.now())
            self.did["propose" if row else f"{column} at once"] += 1
        if row is not None:
            self.proposer.setdefault(row.pk, self.human(by))  # the same one waits already
        self.by(self.human(by))
        return row

    @rule(by=someone, group=group, places=places)
    def make(self, by, group, places):
        """A new user, as the form of users makes one."""
        by, who = self.one_of(by), next(iter(set(LATER) - self.passwords.keys()), None)
        if who is None or by in self.codes:
            return
        acting, row, made = signed_in_as(by), None, False
        wanted = frozenset(self.ids[each] for each in places)
        with suppress(Denied), transaction.atomic():
            user = User.objects.create_user(who, is_staff=True)
            set_memberships(
                user=user, organisations=wanted, caller=acting.on(0), now=timezone.now()
            )
            after = replace(standing_of(user), groups=frozenset({group}))
            row = change_user(user=user, after=after, who=acting, now=timezone.now())
            give_password(user.pk, by=by)
            made = True
        if made:
            self.did["make"] += 1
            self.passwords[who] = {who, self.human(by)}
            if row is not None:
                self.proposer[row.pk] = self.human(by)
        self.by(self.human(by))

    @rule(by=someone, who=someone)
    def set_a_password(self, by, who):
        """Who sets it can sign in as that user, who is told it, from then on."""
        by, who = self.one_of(by), self.any_of(who)
        if by == who or not self.sees(by, who):
            return
        with suppress(Denied):
            user = User.objects.get(username=who)
            require_password_change(user=user, who=signed_in_as(by))
            give_password(user.pk, by=by)
            self.passwords[who] = {who, self.human(by)}
            self.did["set a password"] += 1
        self.by(self.human(by))

    @rule(who=someone)
    def change_own_password(self, who):
        """With a code by who has both; else perhaps by who set the one before.

        An account that is switched off signs in nowhere, and has no page to do it on.
        """
        who = sorted(self.codes or self.passwords)[who % len(self.codes or self.passwords)]
        user, human = User.objects.get(username=who), self.human(who)
        if not user.is_active:
            return
        if who in self.codes:
            self.passwords[who] = {human}
            del self.codes[who]
            self.did["enter a code"] += 1
        take_password(user.pk)
        self.by(human)

    @rule(by=someone, who=someone)
    def remove_a_second_factor(self, by, who):
        by, who = self.one_of(by), self.any_of(who)
        if not self.sees(by, who):
            return
        user = User.objects.get(username=who)
        TOTPDevice.objects.get_or_create(user=user)
        with suppress(Denied):
            remove_factor(user, by=by, now=timezone.now())
            self.codes[who] = self.human(by)
            self.did["remove a second factor"] += 1
        self.by(self.human(by))

    @rule(by=someone, at=st.integers(0, 9), how=st.sampled_from(["yes", "yes", "no", "withdraw"]))
    def decide(self, by, at, how):
        rows = PendingChange.objects.filter(state="proposed").order_by("-id")[:10]
        if rows:
            row = rows[at % len(rows)]
            self.decide_on(row, self.confirmer(row, by) if how == "yes" else self.one_of(by), how)

    def confirmer(self, row, at):
        """Most often somebody who can confirm the change."""
        asked = {(BOARD, one) for one in row.boards}
        names = sorted(self.passwords.keys() - self.codes.keys() - {row.proposed_by})
        can = [name for name in names if asked <= self.held[name]]
        return can[at // 5 % len(can)] if can and at % 5 else self.one_of(at)

    def decide_on(self, row, by, how):
        """The proposer withdraws, another person decides."""
        if by in self.codes:
            return
        decided = {"yes": confirm_change, "no": reject_change, "withdraw": withdraw_change}[how]
        humans = {self.human(by), self.proposer[row.pk]}
        with suppress(Denied):
            done = decided(
                change_id=row.pk, expected_version=None, now=timezone.now(), reason="R",
                caller=signed_in_as(by).on(row.boards[0]),
            )  # fmt: skip
            self.did[how] += 1
            if done and done.code:
                self.codes[row.subject.removeprefix("user ")] = self.human(by)
                self.did["show a code"] += 1
        self.by(*humans)

    @rule(by=someone, who=someone, second=someone, place=place | st.none(), knows=st.booleans())
    def agree(self, by, who, second, place, knows):
        """Two people of the Board let one more in at once: few days reach it in single steps."""
        if knows:
            self.set_a_password(by, who)
        by, who = self.one_of(by), self.any_of(who)
        row = (
            self.change(by, who, "organisations", {self.ids[place]})
            if place
            else self.change(by, who, "groups", {BOARD})
        )
        if row is not None:
            self.decide_on(row, self.confirmer(row, second), "yes")
