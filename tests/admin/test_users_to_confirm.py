"""A right of a user waits for a second member of the Board; each way around it is refused."""

from dataclasses import replace

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_otp.plugins.otp_totp.models import TOTPDevice

from core.decision import Code, Denied
from core.people import board_members, groups_of, organisations_of, signed_in_as
from core.permissions import PeopleGroup
from ledger.models import Event
from nexus_site.console.users import PersonAdmin
from orgchart.models import ContactRule, GivenPassword, Organisation, PendingChange
from orgchart.people.members import seen_as, standing_of
from orgchart.people.passwords import (
    ask_for_code,
    code_from,
    give_password,
    is_code,
    is_given,
    take_password,
)
from orgchart.people.rules import EVERY, Standing
from orgchart.second_person.edits import saving
from orgchart.second_person.services import confirm_change, propose_change
from orgchart.second_person.users import change_user, require_password_change, seen_factor
from orgchart.second_person.vocabulary import PendingState
from tests.admin.forms import filled
from tests.admin.places import act_page, change_page, list_page
from tests.company import load_company
from tests.concurrency import at_once
from tests.decisions import denied
from tests.people import join
from tests.rows import newest_event

User = get_user_model()
PASSWORD = "a long enough sentence 42"
BACKEND = "django.contrib.auth.backends.ModelBackend"
CHANGE_PASSWORD = "/admin/password_change/"
BOARD, HR, OBSERVER = PeopleGroup.BOARD, PeopleGroup.HR, PeopleGroup.OBSERVER


@pytest.fixture
def board(sign_in, company):
    return sign_in(BOARD)


@pytest.fixture
def member(groups, company):
    """Make a user of a group, in organisations or in every one."""

    def made(name, group=None, *organisations):
        user = User.objects.create_user(name, password=PASSWORD, is_staff=True)
        join(user, *organisations)
        if group:
            user.groups.set([groups[group]])
        return user

    return made


@pytest.fixture
def second(member, client):
    """A second member of the Board, and their client."""
    user = member("second", BOARD)
    client.force_login(user, backend=BACKEND)
    return client


def add(client, groups, *names, **fields):
    page = f"{list_page(User)}add/"
    data = filled(
        client,
        page,
        "user_form",
        username="grace",
        password1=PASSWORD,
        password2=PASSWORD,
        usable_password="true",
        is_staff="on",
        every_organisation="on",
        groups=[str(groups[name].id) for name in names],
        **fields,
    )
    assert client.post(page, data).status_code == 302
    return User.objects.get(username="grace")


def change(client, user, **fields):
    page = change_page(user)
    return client.post(page, filled(client, page, "user_form", **fields), follow=True)


def decide(client, row, act):
    return client.post(act_page(row, act), {"reason": "I know them.", "version": row.version})


def waiting():
    return PendingChange.objects.get(state=PendingState.PROPOSED)


class TestANewUser:
    @pytest.mark.parametrize("group", list(PeopleGroup))
    def test_is_in_no_group_until_another_member_confirms(self, board, second, groups, group):
        grace = add(board, groups, group)
        assert groups_of(grace) == frozenset()
        row = waiting()
        assert (row.proposed_by, row.allowed[0]) == (
            "board",
            f"grace: {group} in every organisation",
        )
        assert decide(board, row, "confirm").status_code == 200
        assert groups_of(grace) == frozenset()
        assert decide(second, row, "confirm").status_code == 200
        assert groups_of(User.objects.get(pk=grace.pk)) == {group}
        row = PendingChange.objects.get()
        assert (row.state, row.decided_by) == (PendingState.CONFIRMED, "second")

    @pytest.mark.parametrize("group", [HR, OBSERVER, PeopleGroup.REVIEWER])
    def test_is_proposed_to_the_board_alone(self, board, second, groups, sign_in, group):
        """Who may not look at users reads of them on no other page either."""
        add(board, groups, BOARD)
        other, row = sign_in(group), waiting()
        listed = list_page(PendingChange)
        for client, shown in ((second, True), (other, False)):
            assert (client.get(change_page(row)).status_code == 200) is shown
            assert ("grace" in client.get(listed).content.decode()) is shown
            file = client.post(f"{listed}export/", {"format": "csv"})
            assert (b"grace" in b"".join(file.streaming_content)) is shown

    def test_cannot_confirm_itself(self, board, second, groups, client):
        grace = add(board, groups, BOARD)
        client.force_login(grace, backend=BACKEND)
        assert decide(client, waiting(), "confirm").status_code == 302
        assert groups_of(User.objects.get(pk=grace.pk)) == frozenset()

    def test_without_a_group_needs_nobody(self, board, second, groups):
        add(board, groups)
        assert not PendingChange.objects.exists()

    def test_is_added_at_once_by_the_only_member_of_the_board(self, board, groups):
        assert groups_of(add(board, groups, BOARD)) == {BOARD}

    def test_that_is_rejected_stays_without_rights(self, board, second, groups):
        grace = add(board, groups, HR)
        assert decide(second, waiting(), "reject").status_code == 302
        assert groups_of(User.objects.get(pk=grace.pk)) == frozenset()
        assert newest_event().action == "change.rejected"


class TestAUser:
    def test_keeps_what_they_have_until_it_is_confirmed(self, board, second, groups, member):
        hans = member("hans", HR)
        names = [str(groups[name].id) for name in (HR, BOARD)]
        answer = change(board, hans, groups=names, first_name="Hans")
        assert "waits for a member of the Board other than you" in answer.content.decode()
        hans.refresh_from_db()
        assert (groups_of(hans), hans.first_name) == ({HR}, "Hans")
        assert "The code for hans" in decide(second, waiting(), "confirm").content.decode()
        assert groups_of(hans) == {HR, BOARD}

    def test_needs_somebody_for_one_more_organisation(self, board, second, company, member, groups):
        other = load_company("dev-team").organisation
        hans = member("hans", HR, company.organisation)
        change(board, hans, organisations=[str(company.organisation.id), str(other.id)])
        assert organisations_of(hans) == {company.organisation.id}
        decide(second, waiting(), "confirm")
        assert organisations_of(hans) == {company.organisation.id, other.id}

    @pytest.mark.parametrize("field", ["is_active", "is_staff"])
    def test_needs_somebody_to_come_back(self, board, second, member, field):
        hans = member("hans", HR)
        change(board, hans, **{field: None})
        assert not PendingChange.objects.exists()
        change(board, hans, **{field: "on"})
        hans.refresh_from_db()
        assert not getattr(hans, field)
        decide(second, waiting(), "confirm")
        hans.refresh_from_db()
        assert getattr(hans, field)

    @pytest.mark.parametrize("has_second", [True, False])
    def test_gets_nothing_back_by_an_older_form(self, board, member, groups, has_second):
        """Spec: people 8: the form was read before another person took the rights away."""
        if has_second:
            member("second", BOARD)
        hans = member("hans", HR)
        page = change_page(hans)
        older = filled(board, page, "user_form", first_name="Hans")
        change(board, hans, is_active=None)
        answer = board.post(page, older, follow=True).content.decode()
        assert "user hans changed after you read it" in answer
        hans.refresh_from_db()
        assert (hans.first_name, hans.is_active) == ("", False)
        assert not PendingChange.objects.exists()
        assert newest_event().code == Code.VERSION_MISMATCH
        assert change(board, hans, first_name="Hans").status_code == 200
        hans.refresh_from_db()
        assert (hans.first_name, hans.is_active) == ("Hans", False)

    def test_loses_nothing_by_an_older_form(self, board, second, member, groups):
        hans = member("hans", HR)
        page = change_page(hans)
        older = filled(board, page, "user_form", first_name="Hans")
        change(board, hans, groups=[str(groups[name].id) for name in (HR, OBSERVER)])
        decide(second, waiting(), "confirm")
        board.post(page, older)
        assert groups_of(hans) == {HR, OBSERVER}

    def test_loses_no_name_that_another_person_gave_meanwhile(self, board, member):
        hans = member("hans", HR)
        page = change_page(hans)
        older = filled(board, page, "user_form", last_name="Huber")
        change(board, hans, last_name="Maier")
        answer = board.post(page, older, follow=True).content.decode()
        assert "user hans changed after you read it" in answer
        assert User.objects.get(pk=hans.pk).last_name == "Maier"

    def test_says_nothing_of_memberships_that_its_reader_does_not_see(self, member, settings):
        """Who tried all organisations could find out which of them give the same word."""
        hans = member("hans", HR)
        said = seen_as(hans, standing_of(hans))
        settings.SECRET_KEY = "another" * 10
        assert seen_as(hans, standing_of(hans)) != said

    def test_is_not_changed_by_a_form_that_says_no_rights(self, board, member):
        hans = member("hans", HR)
        page = change_page(hans)
        sent = filled(board, page, "user_form", first_name="Hans", seen=None)
        assert "The version you looked at is missing" in board.post(page, sent).content.decode()
        assert User.objects.get(pk=hans.pk).first_name == ""

    def test_keeps_a_password_that_changed_meanwhile(self, board, member, monkeypatch):
        hans, save = member("hans", HR), PersonAdmin.save_model

        def late(*args):
            User.objects.filter(pk=hans.pk).update(password="another")
            save(*args)

        monkeypatch.setattr(PersonAdmin, "save_model", late)
        change(board, hans, first_name="Hans")
        hans.refresh_from_db()
        assert (hans.first_name, hans.password) == ("Hans", "another")

    def test_is_proposed_once_by_a_form_that_is_sent_twice(self, board, second, groups, member):
        hans = member("hans", HR)
        page = change_page(hans)
        names = [str(groups[name].id) for name in (HR, BOARD)]
        data = filled(board, page, "user_form", groups=names)
        assert [board.post(page, data).status_code for _ in range(2)] == [302, 302]
        assert waiting().allowed

    def test_loses_rights_at_once(self, board, second, member):
        hans = member("hans", HR)
        change(board, hans, groups=[])
        assert groups_of(hans) == frozenset()
        assert not PendingChange.objects.exists()

    def test_keeps_their_name(self, board, member):
        """Or who proposed could take another name and confirm."""
        me = User.objects.get(username="board")
        page = change_page(me)
        board.post(page, filled(board, page, "user_form") | {"username": ["somebody"]})
        me.refresh_from_db()
        assert me.username == "board"


class TestAMemberOfTheBoard:
    @pytest.mark.parametrize(
        "fields", [{"groups": []}, {"is_active": None}, {"is_staff": None}], ids=str
    )
    def test_does_not_leave_the_other_alone_without_a_second_person(
        self, board, second, company, fields
    ):
        """Or one of two could switch the other off, and be the only member of the Board."""
        other = User.objects.get(username="second")
        change(board, other, **fields)
        assert board_members(company.organisation.id) == {"board", "second"}
        assert decide(board, waiting(), "confirm").status_code == 200
        assert decide(second, waiting(), "confirm").status_code == 302
        assert board_members(company.organisation.id) == {"board"}

    @pytest.mark.parametrize(
        "fields",
        [{"groups": []}, {"is_active": None}, {"is_staff": None}, {"every_organisation": None}],
        ids=str,
    )
    def test_that_is_the_only_one_stays(self, board, company, fields):
        """Spec: people 63: nobody inside could give the Board a member again."""
        answer = change(board, User.objects.get(username="board"), **fields)
        assert "only member of a Board" in answer.content.decode()
        assert board_members(company.organisation.id) == {"board"}

    def test_leaves_at_once_where_two_stay(self, board, second, member, company):
        third = member("third", BOARD)
        change(board, third, groups=[])
        assert board_members(company.organisation.id) == {"board", "second"}


class TestAPassword:
    def sent(self, client, user):
        page = f"/admin/auth/user/{user.pk}/password/"
        given = {"password1": PASSWORD + "x", "password2": PASSWORD + "x"}
        return client.post(page, {**given, "usable_password": "true"}, follow=True)

    @pytest.mark.parametrize("group", [BOARD, HR])
    def test_of_a_user_with_rights_is_not_chosen_by_another(self, board, second, member, group):
        """Or one person proposes as one user, and confirms as another."""
        hans = member("hans", group)
        answer = self.sent(board, hans)
        hans.refresh_from_db()
        assert hans.check_password(PASSWORD)
        assert "to have the rights of hans" in answer.content.decode()
        assert (newest_event().action, newest_event().code) == ("human.denied", Code.NOT_YOURS)

    def test_of_a_user_without_rights_is(self, board, second, member):
        hans = member("hans")
        self.sent(board, hans)
        hans.refresh_from_db()
        assert hans.check_password(PASSWORD + "x")

    def test_is_not_chosen_by_who_has_the_code(self, board, second, member):
        """Spec: people 49. Who has both would enter the code, and be taken for the user."""
        hans = member("hans")
        with transaction.atomic():
            ask_for_code(user=hans, code_from="board")
        assert "and may have the code, too" in self.sent(board, hans).content.decode()
        hans.refresh_from_db()
        assert hans.check_password(PASSWORD)
        self.sent(second, hans)
        hans.refresh_from_db()
        assert hans.check_password(PASSWORD + "x")

    def test_is_chosen_by_the_only_member_of_the_board(self, board, member):
        hans = member("hans", HR)
        self.sent(board, hans)
        hans.refresh_from_db()
        assert hans.check_password(PASSWORD + "x")


class TestOnePersonWithTwoNames:
    """`x` was made by `ada` while she was alone, who may act as both (Spec: people 58)."""

    @pytest.fixture
    def dan(self, member):
        member("ada", BOARD)
        self.x = member("x", BOARD)
        self.give_a_password(self.x, by="ada")
        return member("dan", BOARD)

    def give_a_password(self, user, by):
        give_password(user.pk, by=by)
        take_password(user.pk)  # changed at the first sign-in, perhaps by who gave it

    def by(self, name):
        client = Client()
        client.force_login(User.objects.get(username=name), backend=BACKEND)
        return client

    def test_does_not_confirm_an_own_change(self, dan, company):
        rule = ContactRule.objects.get(sender__name="it_manager", recipient__name="hr_manager")
        rule.types = [*rule.types, "info"]
        waits = propose_change(
            edit=saving(rule), caller=signed_in_as("ada").on(company.organisation.id), reason="R",
            now=timezone.now(), expected_version=None,
        )  # fmt: skip
        said = decide(self.by("x"), waits, "confirm").content.decode()
        assert "the person who proposed this may act as x, too: one person may know both" in said
        assert waiting() == waits
        decide(self.by("dan"), waits, "confirm")
        rule.refresh_from_db()
        assert "info" in rule.types

    def test_removes_no_member_down_to_the_two(self, dan, company, groups):
        change(self.by("ada"), dan, groups=[groups[OBSERVER].pk])
        assert board_members(company.organisation.id) == {"ada", "x", "dan"}
        decide(self.by("x"), waiting(), "confirm")
        assert board_members(company.organisation.id) == {"ada", "x", "dan"}

    def test_proposed_it_also_where_the_user_is_certainly_another_now(self, dan, groups):
        """Ada proposed it as x, who then entered a code: no person confirms what they proposed."""
        change(self.by("x"), dan, groups=[groups[OBSERVER].pk])
        with transaction.atomic():
            ask_for_code(user=self.x, code_from="dan")
        take_password(self.x.pk)
        decide(self.by("ada"), waiting(), "confirm")
        assert groups_of(dan) == {BOARD}

    def test_acted_as_another_when_that_one_chose_a_password(self, dan, member, groups):
        """Ada may have chosen Bob's as x: what x is later does not change that."""
        bob = member("bob", BOARD)
        self.give_a_password(bob, by="x")
        self.give_a_password(self.x, by="")
        change(self.by("ada"), dan, groups=[groups[OBSERVER].pk])
        decide(self.by("bob"), waiting(), "confirm")
        assert groups_of(dan) == {BOARD}

    @pytest.mark.parametrize("chose", ["ada", "dan"])
    def test_is_not_who_must_enter_a_code(self, dan, member, groups, chose):
        """Bob is certainly another person: Dan and Ada, who may be one, do not remove him."""
        bob = member("bob", BOARD)
        self.give_a_password(bob, by=chose)
        self.give_a_password(User.objects.get(username="ada"), by="dan")
        with transaction.atomic():
            ask_for_code(user=bob, code_from="cyd")
        self.x.delete()
        change(self.by("dan"), bob, groups=[groups[OBSERVER].pk])
        decide(self.by("ada"), waiting(), "confirm")
        assert groups_of(bob) == {BOARD}

    def test_is_another_once_the_operator_set_the_password(self, dan, groups):
        change(self.by("ada"), dan, groups=[groups[OBSERVER].pk])
        self.give_a_password(self.x, by="")
        decide(self.by("x"), waiting(), "confirm")
        assert groups_of(dan) == {OBSERVER}


class TestASuperuser:
    """Of the Board everywhere, whatever memberships it has (Spec: people 42, people 44)."""

    @pytest.fixture
    def two(self, company, client):
        """The client of one of two superusers, who are the whole Board, and the other."""
        for name in ("one", "two"):
            User.objects.create_superuser(name, password=PASSWORD)
        client.force_login(User.objects.get(username="one"), backend=BACKEND)
        return client, User.objects.get(username="two")

    def test_keeps_the_own_password(self, two):
        client, other = two
        sent = {"password1": PASSWORD + "x", "password2": PASSWORD + "x", "usable_password": "true"}
        page = f"/admin/auth/user/{other.pk}/password/"
        said = client.post(page, sent, follow=True).content.decode()
        assert "to know the password of two is to have the rights of two" in said
        other.refresh_from_db()
        assert other.check_password(PASSWORD)

    def test_is_not_acted_as_by_who_is_none(self, two, member):
        """The pages do not show it to them; the service refuses it, too."""
        member("ada", BOARD)
        with pytest.raises(Denied) as refused:
            require_password_change(user=two[1], who=signed_in_as("ada"))
        assert "only a superuser changes a superuser" in refused.value.deny.message

    @pytest.mark.parametrize("column", ["is_staff", "is_active"])
    def test_does_not_leave_the_other_alone_without_a_second_person(self, two, company, column):
        client, other = two
        data = filled(client, change_page(other), "user_form")
        data.pop(column)
        client.post(change_page(other), data)
        assert board_members(company.organisation.id) == {"one", "two"}
        assert waiting().proposed_by == "one"


class TestTheCode:
    """Who proposes a user made the account: only who confirms it lets its person in."""

    OWN = "a sentence of her own 77"

    def signed_in(self, name, password=PASSWORD):
        client = Client()
        sent = {"username": name, "password": password, "next": "/admin/"}
        assert client.post("/admin/login/", sent).status_code == 302
        return client

    def choose(self, client, code, old=PASSWORD, new=OWN):
        sent = {"old_password": old, "new_password1": new, "new_password2": new, "code": code}
        return client.post(CHANGE_PASSWORD, sent)

    def code_in(self, answer):
        return answer.content.decode().split('id="secret">')[1].split("<")[0].strip()

    def test_opens_what_the_proposer_cannot_open(self, board, second, groups):
        grace = add(board, groups, BOARD)
        as_grace = self.signed_in("grace")
        as_grace.post(
            CHANGE_PASSWORD,
            {"old_password": PASSWORD, "new_password1": self.OWN, "new_password2": self.OWN},
        )
        assert as_grace.get("/admin/").status_code == 200  # of nobody's groups yet
        code = self.code_in(decide(second, waiting(), "confirm"))
        for page in ("/admin/", list_page(PendingChange), list_page(User)):
            answer = as_grace.get(page)
            assert (answer.status_code, answer.url) == (302, CHANGE_PASSWORD)
        assert organisations_of(User.objects.get(pk=grace.pk)) == frozenset()
        for guess in ("", "123456", code[:-1]):
            assert self.choose(as_grace, guess, self.OWN, PASSWORD).status_code == 200
        assert as_grace.get("/admin/").status_code == 302
        assert self.choose(as_grace, code, self.OWN, PASSWORD).status_code == 302
        assert as_grace.get(list_page(User)).status_code == 200
        assert not is_given(grace.pk)

    @pytest.mark.parametrize("confirmed", [False, True])
    def test_leaves_no_authenticator_that_the_proposer_enrolled(
        self, board, second, groups, confirmed
    ):
        grace = add(board, groups, BOARD)
        TOTPDevice.objects.create(user=grace, name="of the proposer", confirmed=confirmed)
        decide(second, waiting(), "confirm")
        assert not TOTPDevice.objects.exists()

    def test_is_asked_at_the_first_sign_in_too(self, board, second, groups):
        add(board, groups, HR)
        code = self.code_in(decide(second, waiting(), "confirm"))
        as_grace = self.signed_in("grace")
        assert "second confirmed your rights" in as_grace.get(CHANGE_PASSWORD).content.decode()
        assert self.choose(as_grace, "").status_code == 200
        assert self.choose(as_grace, code).status_code == 302
        assert as_grace.get("/admin/").status_code == 200

    def test_is_needed_by_who_comes_on_a_board(self, board, second, groups, member):
        hans = member("hans", HR)
        change(board, hans, groups=[str(groups[name].id) for name in (HR, BOARD)])
        decide(second, waiting(), "confirm")
        assert code_from(hans.pk) == "second"

    def test_is_not_needed_for_one_more_group(self, board, second, groups, member):
        hans = member("hans", HR)
        change(board, hans, groups=[str(groups[name].id) for name in (HR, OBSERVER)])
        assert decide(second, waiting(), "confirm").status_code == 302
        assert code_from(hans.pk) == ""

    def test_is_a_new_one_after_the_groups_were_taken_away(self, board, second, groups):
        """The way out of a code that was lost."""
        grace = add(board, groups, HR)
        old = self.code_in(decide(second, waiting(), "confirm"))
        change(second, grace, groups=[])
        change(board, grace, groups=[str(groups[HR].id)])
        new = self.code_in(decide(second, waiting(), "confirm"))
        as_grace = self.signed_in("grace")
        assert self.choose(as_grace, old).status_code == 200
        assert self.choose(as_grace, new).status_code == 302

    def test_is_not_shown_to_who_chose_the_password(self, board, second, groups):
        """Spec: people 49. The second member sets the password, then would confirm."""
        grace = add(board, groups, BOARD)
        self.give(second, grace)
        assert "and may know the password" in decide(second, waiting(), "confirm").content.decode()
        assert waiting().state == PendingState.PROPOSED
        assert not User.objects.get(pk=grace.pk).groups.exists()

    def test_is_not_shown_to_who_may_have_changed_the_password(self, board, second, groups):
        """Spec: people 49. Who made the account signs in first, as its user, and changes it."""
        grace = add(board, groups)
        as_grace = self.signed_in("grace")
        self.choose(as_grace, "")
        change(second, grace, groups=[str(groups[BOARD].id)])
        assert "and may know the password" in decide(board, waiting(), "confirm").content.decode()
        assert not User.objects.get(pk=grace.pk).groups.exists()
        self.give(second, grace)
        assert decide(board, waiting(), "confirm").status_code == 200
        assert User.objects.get(pk=grace.pk).groups.get().name == BOARD

    def give(self, client, user, password=PASSWORD + "x"):
        sent = {"password1": password, "password2": password, "usable_password": "true"}
        assert client.post(f"{list_page(User)}{user.pk}/password/", sent).status_code == 302

    def test_is_kept_as_a_digest_only(self, board, second, groups):
        add(board, groups, HR)
        code = self.code_in(decide(second, waiting(), "confirm"))
        kept = [*GivenPassword.objects.values(), *Event.objects.values()]
        assert code not in str([*kept, *PendingChange.objects.values()])


class TestTheBoardsOfOrganisations:
    """Ada is of both Boards; bob of one, cyd of the other."""

    @pytest.fixture
    def other(self, company):
        return load_company("dev-team").organisation

    @pytest.fixture
    def ada(self, member, company, other):
        member("bob", BOARD, company.organisation)
        member("cyd", BOARD, other)
        return member("ada", BOARD, company.organisation, other)

    def asked(self, ada, user, group, *organisations):
        after = Standing(
            is_active=True,
            is_staff=True,
            groups=frozenset([group]),
            organisations=frozenset(one.id for one in organisations),
        )
        who = signed_in_as(ada.username)
        return change_user(user=user, after=after, who=who, now=timezone.now())

    def confirmed(self, row, name):
        caller = signed_in_as(name).on(row.boards[0])
        given = {"caller": caller, "now": timezone.now(), "reason": "I know them."}
        return confirm_change(change_id=row.pk, expected_version=row.version, **given)

    def test_decide_about_their_own(self, ada, member, company, other):
        hans = member("hans", None, company.organisation)
        row = self.asked(ada, hans, HR, company.organisation)
        assert row.boards == [company.organisation.id]
        with pytest.raises(Denied) as refusal:
            self.confirmed(row, "cyd")
        assert refusal.value.deny.code == Code.NOT_YOURS
        assert PendingChange.objects.get().state == PendingState.PROPOSED
        self.confirmed(row, "bob")
        assert groups_of(hans) == {HR}

    def test_are_asked_one_by_one_where_nobody_else_is_of_both(self, ada, member, company, other):
        hans = member("hans", None, company.organisation)
        with pytest.raises(Denied) as refusal:
            self.asked(ada, hans, HR, company.organisation, other)
        assert refusal.value.deny.code == Code.APPROVAL_REQUIRED
        assert not PendingChange.objects.exists()
        assert groups_of(hans) == frozenset()

    @pytest.mark.parametrize("group", [BOARD, HR])
    def test_let_nobody_in_whose_password_another_person_knows(
        self, ada, member, company, other, group
    ):
        """Ada, alone on one Board, made an account there; on the other Board she has a second."""
        User.objects.get(username="bob").delete()
        here, there = company.organisation, other
        hans = member("hans", None, here)
        give_password(hans.pk, by="ada")
        take_password(hans.pk)  # perhaps by ada, who knew it
        assert self.asked(ada, hans, group, here) is None
        row = self.asked(ada, hans, group, here, there)
        code = self.confirmed(row, "cyd").code
        assert organisations_of(hans) == frozenset()
        assert is_code(hans.pk, code)

    def test_show_a_change_to_members_of_all_of_them(self, ada, member, company, other):
        dan = member("dan", BOARD, company.organisation, other)
        row = self.asked(
            ada, member("hans", None, company.organisation), HR, company.organisation, other
        )
        assert len(row.boards) == 2
        for name, seen in (("bob", 0), ("cyd", 0), ("dan", 1)):
            rows = PendingChange.objects.seen_by(signed_in_as(name).organisations)
            assert rows.count() == seen, name
        with denied("NOT_YOURS"):
            self.confirmed(row, "bob")
        self.confirmed(row, dan.username)

    def test_name_no_other_organisation_to_who_reads_the_ledger_of_theirs(
        self, ada, member, company, other
    ):
        member("dan", BOARD, company.organisation, other)
        hans = member("hans", None, company.organisation)
        self.asked(ada, hans, HR, company.organisation, other)
        events = Event.objects.filter(action="change.proposed")
        assert {each.organisation_id: each.details["allowed"] for each in events} == {
            one.id: [f"hans: HR in {one.name}", f"hans: staff in {one.name}"]
            for one in (company.organisation, other)
        }

    def test_name_no_other_organisation_to_who_confirms_for_theirs(
        self, ada, member, company, other, client
    ):
        """The other Board is not asked: ada is alone on it."""
        User.objects.get(username="cyd").delete()
        row = self.asked(ada, member("hans", None, company.organisation), HR,
                         company.organisation, other)  # fmt: skip
        assert row.boards == [company.organisation.id]
        assert "hans: HR in another organisation" in row.allowed
        client.force_login(User.objects.get(username="bob"))
        pages = [
            f"/admin/orgchart/pendingchange/{row.pk}/{page}/" for page in ("change", "confirm")
        ]
        for page in ("/admin/", *pages):
            text = client.get(page).content.decode()
            assert f"hans: HR in {company.organisation.name}" in text, page
            assert other.name not in text, page

    def test_name_no_organisation_that_the_user_leaves_to_who_confirms_for_theirs(
        self, ada, member, company, other
    ):
        User.objects.get(username="cyd").delete()
        row = self.asked(ada, member("hans", HR, other), HR, company.organisation)
        assert "hans: HR in another organisation" in row.forbidden
        assert not any(other.name in sentence for sentence in (*row.allowed, *row.forbidden))

    def test_are_not_those_of_who_proposed_once_they_have_left(
        self, ada, member, company, other, groups
    ):
        hans = member("hans", None, company.organisation)
        row = self.asked(ada, hans, HR, company.organisation)
        ada.groups.set([groups[OBSERVER]])
        with pytest.raises(Denied) as refusal:
            self.confirmed(row, "bob")
        assert refusal.value.deny.code == Code.NOT_YOURS
        assert PendingChange.objects.get().state == PendingState.STALE

    def test_do_not_confirm_what_changed_after_it_was_shown(
        self, ada, member, company, other, groups
    ):
        hans = member("hans", None, company.organisation)
        row = self.asked(ada, hans, HR, company.organisation)
        hans.groups.set([groups[OBSERVER]])
        with pytest.raises(Denied) as refusal:
            self.confirmed(row, "bob")
        assert refusal.value.deny.code == Code.VERSION_MISMATCH
        assert groups_of(hans) == {OBSERVER}

    def test_are_what_their_members_are_now(self, ada, member, company, other):
        """Not what they were when the page was asked for."""
        hans = member("hans", HR, company.organisation)
        who = signed_in_as("ada")
        ada.groups.clear()
        after = replace(standing_of(hans), groups=frozenset())
        with pytest.raises(Denied) as refusal:
            change_user(user=hans, after=after, who=who, now=timezone.now())
        assert refusal.value.deny.code == Code.NOT_YOURS
        assert groups_of(hans) == {HR}

    def test_add_nobody_elsewhere(self, ada, member, company, other):
        hans = member("hans", None, company.organisation)
        bob = User.objects.get(username="bob")
        with pytest.raises(Denied) as refusal:
            self.asked(bob, hans, HR, company.organisation, other)
        assert refusal.value.deny.code == Code.NOT_YOURS


class TestThePages:
    def test_show_it_to_who_confirms_and_not_to_who_proposed(self, board, second, groups):
        add(board, groups, HR)
        assert "user grace" in second.get("/admin/").content.decode()
        assert "user grace" not in board.get("/admin/").content.decode()
        row = waiting()
        for client in (board, second):
            html = client.get(change_page(row)).content.decode()
            assert "grace: HR in every organisation" in html
        page = second.get(act_page(row, "confirm")).content.decode()
        assert "grace: HR in every organisation" in page
        assert change_page(row) in board.get(list_page(PendingChange)).content.decode()


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    @pytest.fixture
    def three(self, member):
        return [member(name, BOARD) for name in ("ada", "bob", "cyd")]

    @pytest.fixture
    def groups(self, db):
        return {one: Group.objects.get_or_create(name=one.value)[0] for one in PeopleGroup}

    def test_members_of_the_board_do_not_remove_each_other_down_to_one(self, three, company):
        """Each alone leaves two; together they would leave nobody, or one who then acts alone."""
        ring = zip(three, [*three[1:], three[0]], strict=True)

        def removal(by, user):
            left = standing_of(user)
            after = Standing(
                is_active=False,
                is_staff=True,
                groups=left.groups,
                organisations=left.organisations,
            )
            return lambda: change_user(
                user=user, after=after, who=signed_in_as(by.username), now=timezone.now()
            )

        at_once([removal(by, user) for by, user in ring])
        assert len(board_members(company.organisation.id)) == 2

    def test_one_proposal_is_confirmed_once(self, three, member, company):
        hans = member("hans")
        after = Standing(
            is_active=True, is_staff=True, groups=frozenset([HR]), organisations=frozenset([EVERY])
        )
        ada = signed_in_as("ada")
        row = change_user(user=hans, after=after, who=ada, now=timezone.now())

        def confirm(name):
            given = {"caller": signed_in_as(name).on(row.boards[0]), "now": timezone.now()}
            return confirm_change(
                change_id=row.pk, expected_version=row.version, reason="I know them.", **given
            )

        answers = at_once([lambda name=name: confirm(name) for name in ("bob", "cyd") * 4])
        refused = [each for each in answers if isinstance(each, Code)]
        assert len(answers) - len(refused) == 1
        assert set(refused) <= {Code.INVALID_TRANSITION, Code.VERSION_MISMATCH}
        assert Event.objects.filter(action="change.confirmed").count() == 1
        assert groups_of(hans) == {HR}

    def test_the_only_member_of_the_board_adds_one_alone_and_no_second(self, member, company):
        """The first is of the Board at once, and is asked about the second."""
        member("ada", BOARD)
        new = [member("bob"), member("cyd")]
        after = Standing(
            is_active=True,
            is_staff=True,
            groups=frozenset([BOARD]),
            organisations=frozenset([EVERY]),
        )
        ada = signed_in_as("ada")
        found = at_once(
            [
                lambda user=user: change_user(user=user, after=after, who=ada, now=timezone.now())
                for user in new
            ]
        )
        assert found.count(None) == 1
        assert len(board_members(company.organisation.id)) == 2


class TestAPolicyChange:
    def test_cannot_be_confirmed_by_a_user_of_ones_own(self, board, second, groups, company):
        """Board adds an account, signs in as it, and confirms what Board proposed."""
        grace = add(board, groups, BOARD)
        rule = ContactRule.objects.get(sender__name="it_manager", recipient__name="hr_manager")
        row = PendingChange.objects.create(
            organisation=rule.organisation,
            subject="contact rule",
            edit={},
            policy_version=1,
            proposed_by="board",
            proposed_at=timezone.now(),
            reason="Because.",
        )
        with pytest.raises(Denied) as refusal:
            confirm_change(
                change_id=row.pk,
                expected_version=row.version,
                caller=signed_in_as(grace.username).on(rule.organisation_id),
                now=timezone.now(),
                reason="I know it.",
            )
        assert refusal.value.deny.code == Code.NOT_YOURS


class TestALostSecondFactor:
    """Spec: people 50."""

    @pytest.fixture
    def bob(self, member):
        bob = member("bob", BOARD)
        TOTPDevice.objects.create(user=bob, name="lost")
        return bob

    def remove(self, client, user, reason="Lost the phone.", seen=""):
        sent = {"reason": reason, "digest": seen or seen_factor(user)}
        return client.post(act_page(user, "second_factor"), sent)

    def test_is_removed_by_another_member_who_cannot_act_as_them(self, board, bob):
        answer = self.remove(board, bob)
        code = answer.content.decode().split('id="secret">')[1].split("<")[0].strip()
        assert not TOTPDevice.objects.exists()
        assert (newest_event().action, newest_event().actor) == ("code.removed", "human:board")
        as_bob = Client()
        sent = {"username": "bob", "password": PASSWORD, "next": "/admin/"}
        assert as_bob.post("/admin/login/", sent).status_code == 302
        assert as_bob.get("/admin/").url == CHANGE_PASSWORD
        new = {"old_password": PASSWORD, "new_password1": PASSWORD + "y",
               "new_password2": PASSWORD + "y"}  # fmt: skip
        assert as_bob.post(CHANGE_PASSWORD, {**new, "code": "guess"}).status_code == 200
        assert as_bob.post(CHANGE_PASSWORD, {**new, "code": code}).status_code == 302
        assert as_bob.get("/admin/").status_code == 200

    def test_ends_the_sessions_of_the_one_who_lost_it(self, board, bob):
        """In an open session the finder of the device would enrol another."""
        as_bob = Client()
        as_bob.force_login(bob, backend=BACKEND)
        self.remove(board, bob)
        assert as_bob.get("/admin/confirmation-codes/").url.startswith("/admin/login/")
        assert board.get("/admin/").status_code == 200

    def test_is_removed_by_a_form_that_is_sent_twice(self, board, bob):
        """A browser shows the second answer only, so that it holds the code."""
        seen = seen_factor(bob)
        first, second = (self.remove(board, bob, seen=seen).content.decode() for _ in range(2))
        codes = [shown.split('id="secret">')[1].split("<")[0].strip() for shown in (first, second)]
        assert [is_code(bob.pk, code) for code in codes] == [False, True]

    @pytest.mark.parametrize("has_entered_it", [False, True])
    def test_is_not_removed_by_a_form_out_of_date(self, board, bob, member, has_entered_it):
        """Another member removed it meanwhile: bob has their code, or enrolled again with it."""
        client, page = Client(), act_page(bob, "second_factor")
        client.force_login(member("ada", BOARD), backend=BACKEND)
        stale = filled(board, page, "act-form", reason="Lost the phone.")
        shown = self.remove(client, bob).content.decode()
        code = shown.split('id="secret">')[1].split("<")[0].strip()
        if has_entered_it:
            take_password(bob.pk)
            TOTPDevice.objects.create(user=bob, name="new")
        assert "changed after you read it" in board.post(page, stale).content.decode()
        assert TOTPDevice.objects.filter(name="new").exists() == has_entered_it
        assert is_code(bob.pk, code) != has_entered_it

    def test_gets_another_code_for_one_that_was_lost(self, board, second, groups):
        """Also for the code of a confirmed right: not for who may know the password."""
        grace = add(board, groups, HR)
        decide(second, waiting(), "confirm")
        assert "may know the password" in self.remove(board, grace).content.decode()
        shown = self.remove(second, grace).content.decode()
        assert is_code(grace.pk, shown.split('id="secret">')[1].split("<")[0].strip())
        assert "Remove second factor" in second.get(change_page(grace)).content.decode()

    def test_leaves_nobody_alone_meanwhile(self, board, bob, groups):
        """Bob still counts: who removed it does not become the only member of the Board."""
        self.remove(board, bob)
        assert board_members(0) == {"board", "bob"}
        add(board, groups, HR)
        assert waiting().proposed_by == "board"

    def test_is_not_removed_by_who_may_know_the_password(self, board, bob):
        give_password(bob.pk, by="board")
        assert "may know the password" in self.remove(board, bob).content.decode()
        assert TOTPDevice.objects.exists()

    @pytest.mark.parametrize(("name", "reason"), [("board", "Mine."), ("bob", " "), ("eve", "No.")])
    def test_needs_another_person_and_a_reason_and_one_that_is_there(
        self, board, bob, member, name, reason
    ):
        member("eve", OBSERVER)
        user = User.objects.get(username=name)
        if name == "board":
            TOTPDevice.objects.create(user=user, name="mine")
        kept = TOTPDevice.objects.count()
        assert self.remove(board, user, reason).status_code == 200
        assert TOTPDevice.objects.count() == kept
        assert code_from(user.pk) == ""

    @pytest.mark.parametrize("group", [HR, OBSERVER])
    def test_is_not_removed_by_other_groups(self, client, bob, member, group):
        client.force_login(member("hans", group), backend=BACKEND)
        assert self.remove(client, bob).status_code == 403
        assert TOTPDevice.objects.exists()


def test_costs_no_statement_for_each_organisation(member, groups):
    """Changes of all users wait for each other, and so does who issues a key."""
    member("ada", BOARD), member("bob", BOARD)
    asked = []
    for name in ("grace", "hugo"):
        user = member(name)
        wanted = replace(standing_of(user), groups=frozenset({BOARD}))
        now = timezone.now()
        with CaptureQueriesContext(connection) as proposing:
            row = change_user(user=user, after=wanted, who=signed_in_as("ada"), now=now)
        here = signed_in_as("bob").on(row.boards[0])
        with CaptureQueriesContext(connection) as confirming:
            confirm_change(
                change_id=row.pk, expected_version=None, caller=here, now=now, reason="R"
            )
        asked.append((len(proposing), len(confirming)))
        Organisation.objects.bulk_create(Organisation(slug=f"{name}{n}") for n in range(20))
    assert len(row.boards) > 20
    assert asked[0] == asked[1]
