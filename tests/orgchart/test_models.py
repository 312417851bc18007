"""What must always hold, held by the database itself."""

import pytest
from django.db import IntegrityError, transaction

from orgchart.models import (
    Agent,
    Alias,
    ApiKey,
    ContactRule,
    Group,
    MailTypeRule,
    Organisation,
    Role,
)
from tests.orgchart.world import NOW

pytestmark = pytest.mark.django_db

ODD_NAMES = [
    "",
    "Boss",
    "bоss",  # a Cyrillic letter
    "ｂoss",
    "boss\n",
    "bo ss",
    "9boss",
    "-boss",
    "bo/ss",
    "bo\u200bss",
    "boß",
    "x" * 64 + "y",
]


@pytest.fixture
def agents(acme):
    return {a.handle: a for a in acme.agents.all()}


def refused(constraint):
    return pytest.raises(IntegrityError, match=constraint)


def update(row, **values):
    with transaction.atomic():
        type(row).objects.filter(pk=row.pk).update(**values)


class TestNames:
    @pytest.mark.parametrize("name", ODD_NAMES[:-1], ids=ascii)
    def test_are_plain_ascii_everywhere(self, acme, agents, name):
        rows = [
            (acme, "slug", "organisation_slug_form"),
            (acme.roles.get(name="boss"), "name", "role_name_form"),
            (acme.groups.get(), "slug", "group_slug_form"),
            (agents["boss"], "handle", "agent_handle_form"),
            (acme.aliases.get(), "alias", "alias_alias_form"),
            (acme.mail_types.first(), "name", "mailtyperule_name_form"),
        ]
        if name:
            rows.append((agents["boss"], "name", "agent_name_form"))
        for row, column, constraint in rows:
            with refused(constraint):
                update(row, **{column: name})

    @pytest.mark.parametrize("name", ["a", "a.b", "a-b_c.9", "x" * 64])
    def test_take_the_form_of_a_handle(self, agents, name):
        update(agents["boss"], handle=name)

    def test_are_each_given_once_in_an_organisation(self, acme, agents):
        role = acme.roles.get(name="hand")
        for constraint, make in (
            ("agent_handle_once", lambda: Agent(organisation=acme, handle="boss", role=role)),
            (
                "role_name_once",
                lambda: Role(organisation=acme, name="hand", level=3, kind="worker"),
            ),
            ("group_slug_once", lambda: Group(organisation=acme, slug="crew")),
            ("alias_once", lambda: Alias(organisation=acme, alias="chief", agent=agents["lead"])),
            ("mail_type_once", lambda: MailTypeRule(organisation=acme, name="info")),
        ):
            with refused(constraint), transaction.atomic():
                make().save()

    def test_may_be_the_same_in_two_organisations(self, acme, agents):
        other = Organisation.objects.create(slug="other", name="Other")
        role = Role.objects.create(organisation=other, name="hand", level=3, kind="worker")
        Agent.objects.create(organisation=other, handle="boss", role=role)

    def test_nobody_is_called_board(self, acme, agents):
        with refused("agent_is_not_board"):
            update(agents["boss"], handle="board")
        with refused("role_is_not_board"):
            update(acme.roles.get(name="boss"), name="board")


class TestPlaces:
    def test_a_group_has_one_leader(self, agents):
        with refused("group_leader_once"):
            update(agents["hand_one"], is_leader=True)

    def test_an_address_names_one_agent(self, agents):
        with refused("agent_name_once"):
            update(agents["hand_one"], name="leader")

    def test_nobody_reports_to_itself(self, agents):
        with refused("agent_not_own_superior"):
            update(agents["hand_one"], reports_to=agents["hand_one"])


class TestRoles:
    @pytest.mark.parametrize(
        ("values", "constraint"),
        [
            ({"level": 0}, "role_level_from_1"),
            ({"kind": "king"}, "role_kind_known"),
        ],
    )
    def test_have_a_level_and_a_kind(self, acme, values, constraint):
        with refused(constraint):
            update(acme.roles.get(name="boss"), **values)


class TestContacts:
    @pytest.mark.parametrize("recipient", ["lead", None])
    def test_of_a_pair_are_one_rule(self, acme, recipient):
        with refused("contact_once"), transaction.atomic():
            ContactRule.objects.create(
                organisation=acme,
                sender=acme.roles.get(name="boss"),
                recipient=acme.roles.get(name=recipient) if recipient else None,
            )


class TestKeys:
    def test_are_unique_by_prefix_and_by_digest(self, agents):
        ApiKey.objects.create(agent=agents["boss"], prefix="p", digest=b"d", created_by="x")
        for prefix, digest in (("p", b"e"), ("q", b"d")):
            with refused("prefix|digest"), transaction.atomic():
                ApiKey.objects.create(
                    agent=agents["boss"], prefix=prefix, digest=digest, created_by="x"
                )

    def test_are_revoked_by_somebody(self, agents):
        key = ApiKey.objects.create(agent=agents["boss"], prefix="p", digest=b"d", created_by="x")
        with refused("key_revoked_by_someone"):
            update(key, revoked_at=NOW)
