"""API keys: random, stored as a digest, ended at once, of one organisation."""

import base64
import hashlib
import re
import threading
from dataclasses import replace
from functools import partial

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import connection

from core.actors import Person
from core.decision import Code, Denied, Deny
from core.people import operator, signed_in_as
from ledger.models import Event
from orgchart import keys
from orgchart.editing import save_row
from orgchart.keys import digest_of, issue_key, revoke_key
from orgchart.models import ApiKey, Membership, Organisation, Role
from orgchart.packs import export_pack
from orgchart.people.members import standing_of
from orgchart.second_person.rules import can_issue_key
from orgchart.second_person.users import change_user
from tests.company import load_company
from tests.concurrency import at_once, outlast_the_look_for_a_deadlock
from tests.orgchart.world import NOW, PACKS, load, person
from tests.patience import PATIENCE
from tests.people import join

pytestmark = pytest.mark.django_db


@pytest.fixture
def hand(acme):
    return acme.agents.get(handle="hand_one")


@pytest.fixture
def key(acme, hand):
    return issue_key(agent=hand, caller=person(acme), now=NOW)


def every_text_in_the_database():
    """Every row of every table as text."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [name for (name,) in cursor.fetchall()]
        for table in tables:
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            yield from (row for (row,) in cursor.fetchall())


class TestIssuing:
    def test_gives_at_least_160_random_bits(self, key):
        assert re.fullmatch(r"nxs_[A-Za-z0-9_-]{43}", key)
        secret = key.removeprefix("nxs_")
        assert len(base64.urlsafe_b64decode(secret + "=" * (-len(secret) % 4))) * 8 >= 160

    def test_gives_another_each_time(self, acme, hand):
        keys = {issue_key(agent=hand, caller=person(acme), now=NOW) for _ in range(50)}
        assert len(keys) == 50
        assert hand.keys.count() == 50

    def test_stores_a_digest_only(self, key):
        row = ApiKey.objects.get()
        assert bytes(row.digest) == hashlib.sha256(key.encode()).digest()
        assert row.prefix == key[:12]
        assert row.created_by == "human:alice"

    def test_leaves_the_key_nowhere_in_the_database(self, key):
        assert not [row for row in every_text_in_the_database() if key[12:30] in row]

    def test_leaves_it_in_no_exported_pack(self, acme, key, tmp_path):
        files = export_pack(acme, tmp_path / "out")
        assert not [f for f in files if key[:12] in f.read_text()]

    def test_is_recorded_with_its_prefix_alone(self, acme, key):
        event = Event.objects.order_by("seq").last()
        assert (event.action, event.subject) == ("key.issued", "agent:hand_one")
        assert event.details == {"prefix": key[:12]}

    def test_is_refused_for_who_is_deactivated(self, acme, hand):
        hand.active = False
        hand.save()
        with pytest.raises(Denied) as refused:
            issue_key(agent=hand, caller=person(acme), now=NOW)
        assert refused.value.deny.code is Code.AGENT_INACTIVE
        assert not ApiKey.objects.exists()

    def test_is_refused_for_who_was_deactivated_meanwhile(self, acme, hand):
        acme.agents.filter(id=hand.id).update(active=False)
        with pytest.raises(Denied) as refused:
            issue_key(agent=hand, caller=person(acme), now=NOW)
        assert refused.value.deny.code is Code.AGENT_INACTIVE

    def test_does_not_happen_when_its_event_cannot_be_written(self, acme, hand, monkeypatch):
        def fail(action, **fields):
            raise RuntimeError

        monkeypatch.setattr("orgchart.keys.record", fail)
        with pytest.raises(RuntimeError):
            issue_key(agent=hand, caller=person(acme), now=NOW)
        assert not ApiKey.objects.exists()


class TestRevoking:
    def test_ends_the_key_and_says_who_did(self, acme, key):
        revoke_key(prefix=key[:12], caller=person(acme), now=NOW, reason="lost")
        row = ApiKey.objects.get()
        assert (row.revoked_at, row.revoked_by) == (NOW, "human:alice")
        event = Event.objects.order_by("seq").last()
        assert (event.action, event.reason) == ("key.revoked", "lost")

    def test_ends_that_key_only(self, acme, hand, key):
        other = issue_key(agent=hand, caller=person(acme), now=NOW)
        revoke_key(prefix=key[:12], caller=person(acme), now=NOW, reason="lost")
        assert ApiKey.objects.get(prefix=other[:12]).revoked_at is None

    def test_twice_is_once(self, acme, key):
        for _ in range(2):
            revoke_key(prefix=key[:12], caller=person(acme), now=NOW, reason="lost")
        assert Event.objects.filter(action="key.revoked").count() == 1

    def test_takes_the_whole_key_as_well_as_its_prefix(self, acme, key):
        revoke_key(prefix=key, caller=person(acme), now=NOW, reason="lost")
        assert ApiKey.objects.get().revoked_at == NOW

    @pytest.mark.parametrize("prefix", ["", "nxs_", "nxs_nothing_", "%", "nxs_________"])
    def test_of_an_unknown_prefix_is_refused(self, acme, key, prefix):
        with pytest.raises(Denied) as refused:
            revoke_key(prefix=prefix, caller=person(acme), now=NOW, reason="lost")
        assert refused.value.deny.code is Code.NOT_FOUND
        assert ApiKey.objects.get().revoked_at is None

    def test_of_another_organisations_key_is_the_same_refusal(self, acme, key):
        load(PACKS / "soloqueue")
        stranger = person(Organisation.objects.get(slug="soloqueue"))
        with pytest.raises(Denied) as theirs:
            revoke_key(prefix=key[:12], caller=stranger, now=NOW, reason="lost")
        ApiKey.objects.all().delete()
        with pytest.raises(Denied) as nobodys:
            revoke_key(prefix=key[:12], caller=stranger, now=NOW, reason="lost")
        assert theirs.value.deny == nobodys.value.deny
        assert not Event.objects.filter(action="key.revoked").exists()


@pytest.mark.parametrize("text", ["", "nxs_x", "ünï", "\ud800", "\0", "x" * 100_000], ids=ascii)
def test_any_text_has_a_digest(text):
    assert len(digest_of(text)) == 32


class TestKeysOfAgentsThatOrderChanges:
    """Their contracts replace a second person, so no one person holds their keys."""

    @pytest.mark.parametrize("tools", [[], ["create_contract"], ["generate_contract", "send_mail"]])
    @pytest.mark.parametrize("at_shell", [False, True])
    @pytest.mark.parametrize("board", [set(), {"alice"}, {"bob"}, {"alice", "bob"}])
    def test_are_issued_at_the_shell_or_by_who_is_alone(self, tools, at_shell, board):
        alice = Person(
            username="alice",
            organisation_id=1,
            groups=frozenset({"Board"}),
            is_member=True,
            at_shell=at_shell,
        )
        found = can_issue_key(alice, "boss", tools, board)
        refused = "generate_contract" in tools and not at_shell and "bob" in board
        assert isinstance(found, Deny) == refused
        if refused:
            assert found.code is Code.APPROVAL_REQUIRED
            assert found.next_action == "let the operator issue it: manage.py issue_key ORG boss"

    @pytest.fixture
    def board_of_two(self, acme):
        for name in ("alice", "bob"):
            user = get_user_model().objects.create_user(name, is_staff=True)
            user.groups.add(Group.objects.get(name="Board"))
            join(user, acme)

    @pytest.mark.usefixtures("board_of_two")
    def test_are_refused_to_one_of_two(self, acme, hand):
        issue_key(agent=hand, caller=person(acme), now=NOW)
        boss = acme.agents.get(handle="boss")
        with pytest.raises(Denied) as refused:
            issue_key(agent=boss, caller=person(acme), now=NOW)
        assert refused.value.deny.code is Code.APPROVAL_REQUIRED
        assert not boss.keys.exists()
        assert issue_key(agent=boss, caller=operator(acme.id), now=NOW)

    @pytest.mark.usefixtures("board_of_two")
    def test_are_refused_by_what_the_agent_is_at_this_moment(self, acme):
        """Not by what it was when the page read it: its role may have changed since."""
        seen = acme.agents.select_related("role").get(handle="lead")
        Role.objects.filter(id=seen.role_id).update(tools=["generate_contract"])
        with pytest.raises(Denied) as refused:
            issue_key(agent=seen, caller=person(acme), now=NOW)
        assert refused.value.deny.code is Code.APPROVAL_REQUIRED

    @pytest.mark.parametrize(("who", "stays"), [(person, False), (None, True)])
    def test_end_where_a_person_gives_the_tool_to_who_has_one(self, acme, hand, who, stays):
        caller = who(acme) if who else operator(acme.id)
        lead = acme.agents.get(handle="lead")
        for agent in (lead, hand, acme.agents.get(handle="boss")):
            issue_key(agent=agent, caller=caller, now=NOW)
        role = lead.role
        role.tools = [*role.tools, "generate_contract"]
        save_row(
            row=role,
            organisation_id=acme.id,
            caller=caller,
            now=NOW,
            reason="Orders changes now.",
            expected_version=None,
        )
        left = ApiKey.objects.filter(revoked_at=None).values_list("agent__handle", flat=True)
        assert set(left) == {"hand_one", "boss"} | ({"lead"} if stays else set())

    @pytest.fixture
    def alone(self, acme):
        """Alice, the only member of the Board, who has issued keys of the boss and of a worker."""
        user = self.member(acme, "alice")
        for handle in ("boss", "hand_one"):
            agent = acme.agents.get(handle=handle)
            issue_key(agent=agent, caller=signed_in_as("alice").on(acme.id), now=NOW)
            issue_key(agent=agent, caller=operator(acme.id), now=NOW)
        return user

    def member(self, acme, name, group="Board"):
        user = get_user_model().objects.create_user(name, is_staff=True)
        user.groups.set(Group.objects.filter(name=group))
        return join(user, acme)

    def live(self):
        keys = ApiKey.objects.filter(revoked_at=None)
        return {(key.agent.handle, key.created_by == "human:alice") for key in keys}

    ALL = {(handle, by_alice) for handle in ("boss", "hand_one") for by_alice in (True, False)}

    @pytest.mark.parametrize(
        ("name", "group", "ends"),
        [("bob", "Board", True), ("bob", "HR", False)],
    )
    def test_end_where_who_issued_them_is_not_alone(self, acme, alone, name, group, ends):
        """Spec: people 56. Else one of two members confirms what they propose themself."""
        self.member(acme, "bob", "Observer")
        user = get_user_model().objects.get(username=name)
        wanted = replace(standing_of(user), groups=frozenset({group}))
        assert change_user(user=user, after=wanted, who=signed_in_as("alice"), now=NOW) is None
        self.end(acme, ends)

    def test_end_where_the_operator_joins_another_member(self, acme, alone):
        bob = self.member(acme, "bob")
        Membership.objects.filter(person=bob).delete()
        call_command("people", "member", "bob", acme.slug)
        self.end(acme, True)

    def end(self, acme, ends):
        assert self.live() == self.ALL - ({("boss", True)} if ends else set())
        events = Event.objects.filter(action="key.revoked", organisation_id=acme.id)
        assert [event.reason for event in events] == ends * [
            "who issued this key of boss is not alone on the Board"
        ]


@pytest.mark.django_db(transaction=True)
def test_all_keys_are_replaced_while_the_board_gets_a_member(db, monkeypatch):
    """Both end the key that the only member issued; neither waits for what the other holds."""
    company = load_company("nexus")
    board, _ = Group.objects.get_or_create(name="Board")
    ada, bob = (
        join(get_user_model().objects.create_user(name, is_staff=True), company.organisation)
        for name in ("ada", "bob")
    )
    ada.groups.add(board)
    acting = signed_in_as("ada")
    here = acting.on(company.organisation.id)
    issue_key(agent=company.agent("ceo"), caller=here, now=NOW, reason="R")
    begun, revoke = threading.Event(), keys.revoke_key

    def revoke_and_wait(**fields):
        revoke(**fields)
        begun.set()
        outlast_the_look_for_a_deadlock()

    def join_board():
        begun.wait(PATIENCE)
        wanted = replace(standing_of(bob), groups=frozenset({"Board"}))
        return change_user(user=bob, after=wanted, who=acting, now=NOW)

    monkeypatch.setattr(keys, "revoke_key", revoke_and_wait)
    at_shell = operator(company.organisation.id, company.policy.version)
    new = partial(keys.replace_keys, caller=at_shell, now=NOW, reason="R")
    assert [*map(type, at_once([new, join_board]))] == [dict, type(None)]
