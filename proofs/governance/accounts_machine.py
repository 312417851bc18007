"""People keep accounts in any order: no person acts as another, and none is left alone."""

from contextlib import suppress
from dataclasses import replace

from django.contrib.auth.models import Group, User
from django.utils import timezone
from django_otp.plugins.otp_totp.models import TOTPDevice
from hypothesis import strategies as st
from hypothesis.stateful import rule

from core.decision import Denied
from core.people import signed_in_as
from core.permissions import PeopleGroup
from orgchart.models import PendingChange
from orgchart.people.members import standing_of
from orgchart.people.passwords import give_password, take_password
from orgchart.second_person.services import confirm_change, reject_change
from orgchart.second_person.users import change_user, require_password_change
from tests.machines import CompanyMachine
from tests.people import join, remove_factor

person = st.sampled_from(("ada", "bob", "eve"))


class Accounts(CompanyMachine):
    """Accounts and who knows what of them.

    `passwords` are all who may know the password of an account, `codes` who was shown the code that
    it asks for (Spec: people 48, people 49), and `taken` the accounts that the only member of the
    Board could act as. `proposer` is the human being behind each proposal.
    """

    people = {"ada": "Board", "bob": "Board", "eve": ""}

    def __init__(self):
        super().__init__()
        self.id = self.here.organisation.id
        for name, group in self.people.items():
            user = join(User.objects.create_user(name, is_staff=True))
            user.groups.set([Group.objects.get_or_create(name=group)[0]] if group else [])
        for name in PeopleGroup:
            Group.objects.get_or_create(name=name)
        self.names = sorted(self.people)
        self.passwords = {name: {name} for name in self.names}
        self.codes = {}
        self.taken = set()
        self.proposer = {}
        self.board = self.boards()

    def now(self):
        return timezone.now()

    def boards(self):
        """The human beings of the Board: of an account that waits for a code its own user."""
        users = User.objects.filter(is_active=True, is_staff=True, groups__name="Board")
        return {self.human(name) for name in users.values_list("username", flat=True)}

    def human(self, name):
        """Who acts as an account: anybody but its own user who has all that it asks for."""
        others = self.passwords[name] - {name}
        if name in self.codes:
            others &= {self.codes[name]}
        return min(others, default=name)

    def now_is(self, *, agreed):
        """Compare with the last step: to be left alone on the Board needs two persons."""
        board = self.boards()
        assert agreed or len(board) > 1 or len(self.board) < 2, (self.board, board)
        self.board = board

    def alone(self, by):
        """Whether the person has nobody who could confirm."""
        is_of_board = self.user(by).groups.filter(name="Board").exists()
        return is_of_board and self.board == {self.human(by)}

    def user(self, name):
        return User.objects.get(username=name)

    def acting(self, by):
        return signed_in_as(by).on(self.id)

    @rule(
        by=person,
        who=person,
        group=st.sampled_from([PeopleGroup.BOARD, PeopleGroup.HR]),
        gone=st.booleans(),
    )
    def give_a_group(self, by, who, group, gone):
        user = self.user(who)
        before = standing_of(user)
        groups = before.groups - {group} if gone else before.groups | {group.value}
        self.change(by, user, replace(before, groups=frozenset(groups)))

    @rule(by=person, who=person)
    def switch_a_user(self, by, who):
        user = self.user(who)
        before = standing_of(user)
        self.change(by, user, replace(before, is_active=not before.is_active))

    def change(self, by, user, after):
        alone = self.alone(by)
        with suppress(Denied):
            row = change_user(user=user, after=after, who=signed_in_as(by), now=self.now())
            if row is not None:
                self.proposer.setdefault(row.pk, self.human(by))
        self.nobody_acts_as_another(alone=alone)
        self.now_is(agreed=alone)

    @rule(by=person, who=person)
    def set_a_password(self, by, who):
        """Who sets it can sign in as that user, who is told it, from then on."""
        if by == who:
            return
        alone, user = self.alone(by), self.user(who)
        with suppress(Denied):
            require_password_change(user=user, who=signed_in_as(by))
            give_password(user.pk, by=by)
            self.passwords[who] = {who, self.human(by)}
        self.nobody_acts_as_another(alone=alone)
        self.now_is(agreed=False)

    @rule(who=person)
    def change_own_password(self, who):
        """With a code by who has both; else perhaps by who set the one before.

        An account that is switched off signs in nowhere, and has no page to do it on.
        """
        if not self.user(who).is_active:
            return
        if who in self.codes:
            self.passwords[who] = {self.human(who)}
            del self.codes[who]
        take_password(self.user(who).pk)

    @rule(by=person, who=person)
    def remove_a_second_factor(self, by, who):
        user = self.user(who)
        TOTPDevice.objects.get_or_create(user=user)
        alone = self.alone(by)
        with suppress(Denied):
            remove_factor(user, by=by, now=self.now())
            self.codes[who] = self.human(by)
        self.nobody_acts_as_another(alone=alone)
        self.now_is(agreed=False)

    def nobody_acts_as_another(self, *, alone):
        """No person acts as a user who has rights, but the only member of the Board."""
        for user in User.objects.filter(is_active=True, groups__isnull=False).distinct():
            name = user.username
            if self.human(name) != name and name not in self.taken:
                assert alone, (name, self.human(name))
                self.taken.add(name)

    @rule(by=person, at=st.integers(0, 9), no=st.integers(0, 3))
    def decide(self, by, at, no):
        rows = PendingChange.objects.filter(state="proposed").order_by("-id")[:10]
        if not rows:
            return
        row = rows[at % len(rows)]
        asked = row.organisation_id or row.boards[0]
        two = self.proposer[row.pk] != self.human(by) and self.human(by) in self.board
        decided = confirm_change if no else reject_change
        alone = self.alone(by)
        with suppress(Denied):
            done = decided(
                change_id=row.pk, expected_version=None, now=self.now(), reason="R",
                caller=signed_in_as(by).on(asked),
            )  # fmt: skip
            if done and done.code:
                self.codes[row.subject.removeprefix("user ")] = self.human(by)
        self.nobody_acts_as_another(alone=alone)
        self.now_is(agreed=two)

    @rule(by=st.sampled_from(("ada", "bob")), first=st.sampled_from(["", "ada", "bob"]))
    def agree(self, by, first):
        """The Board lets one more in at once: else few days reach what needs several steps."""
        if first:
            self.set_a_password(first, "eve")
        self.give_a_group(by, "eve", PeopleGroup.BOARD, gone=False)
        self.decide("bob" if by == "ada" else "ada", at=0, no=1)
