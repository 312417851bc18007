"""Who may widen whose rights: each kind of person against each kind of change, with its service."""

from dataclasses import replace
from itertools import product

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone

from core.decision import Denied
from core.people import signed_in_as
from orgchart.editing import save_row
from orgchart.models import Agent, ContactRule, Organisation, Role
from orgchart.people.members import standing_of
from orgchart.second_person.users import change_user, require_password_change
from orgchart.services import SecondPersonNeeded
from tests.oracle.texts import OUTCOMES
from tests.people import join

pytestmark = pytest.mark.django_db
GROUPS = {"only_board": "Board", "one_of_board": "Board", "hr": "HR", "reviewer": "Reviewer",
          "observer": "Observer", "not_a_member": "Board"}  # fmt: skip


def user(name, group, *organisations):
    made = join(User.objects.create_user(name, is_staff=True), *organisations)
    if group:
        made.groups.set([Group.objects.get_or_create(name=group)[0]])
    return made


class Changes:
    """Each change as `who` would make it."""

    def __init__(self, organisation, who, target):
        self.organisation, self.who, self.target = organisation, who, target

    def save(self, row):
        return save_row(
            row=row, organisation_id=self.organisation.id, now=timezone.now(), reason="R",
            caller=signed_in_as(self.who).on(self.organisation.id), expected_version=None,
        )  # fmt: skip

    def contact(self, change):
        rule = ContactRule.objects.get(sender__name="it_manager", recipient__name="hr_manager")
        rule.types = change(rule.types)
        self.save(rule)

    def gives(self):
        self.contact(lambda types: [*types, "info"])

    def takes(self):
        self.contact(lambda types: types[:1])

    def gives_later(self):
        Agent.objects.filter(handle="research_worker").update(active=False)
        role = Role.objects.get(organisation=self.organisation, name="research_worker")
        role.tools = [*role.tools, "write_note"]
        self.save(role)

    def setting(self):
        row = Organisation.objects.get(id=self.organisation.id)
        row.settings = row.settings | {"board_email": "board@example.com"}
        self.save(row)

    def user(self, change):
        before = standing_of(self.target)
        groups = frozenset(change(before.groups))
        return change_user(
            user=self.target, after=replace(before, groups=groups), now=timezone.now(),
            who=signed_in_as(self.who),
        )  # fmt: skip

    def gives_user(self):
        return self.user(lambda groups: groups | {"Reviewer"})

    def takes_user(self):
        return self.user(lambda _: ())

    def password(self):
        require_password_change(user=self.target, who=signed_in_as(self.who))


@pytest.mark.parametrize(("who", "change"), OUTCOMES)
def test_each_person_changes_what_the_table_says(nexus, who, change):
    other = Organisation.objects.create(slug="other", name="Other")
    user(who, GROUPS.get(who), other if who == "not_a_member" else nexus.organisation)
    if who != "only_board":
        user("bob", "Board", nexus.organisation)
    target = user("target", "Observer", nexus.organisation)
    try:
        waits = getattr(Changes(nexus.organisation, who, target), change)()
        found = "waits" if waits else "at_once"
    except SecondPersonNeeded:
        found = "waits"
    except Denied:
        found = "refused"
    assert found == OUTCOMES[who, change]


def test_the_table_is_whole():
    kinds = [name for name in vars(Changes) if name in {change for _, change in OUTCOMES}]
    assert set(OUTCOMES) == set(product({who for who, _ in OUTCOMES}, kinds))
    assert len(OUTCOMES) == 49
