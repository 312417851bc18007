"""Who the people are: kept by the Board, in the ledger, and by nobody for themselves."""

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from core.people import groups_of
from core.permissions import PeopleGroup
from tests.admin.forms import filled
from tests.admin.places import change_page, list_page, page_of
from tests.rows import newest_event

User = get_user_model()
PASSWORD = "a long enough sentence 42"


@pytest.fixture
def other(groups):
    return User.objects.create_user("mary", password=PASSWORD, is_staff=True)


class TestTheBoard:
    def test_adds_somebody_to_a_group_and_the_ledger_knows(self, board, groups):
        page = f"{list_page(User)}add/"
        data = filled(
            board,
            page,
            "user_form",
            username="grace",
            password1=PASSWORD,
            password2=PASSWORD,
            is_staff="on",
            groups=[str(groups[PeopleGroup.OBSERVER].id)],
        )
        assert board.post(page, data).status_code == 302
        grace = User.objects.get(username="grace")
        assert groups_of(grace) == {PeopleGroup.OBSERVER}
        event = newest_event()
        assert (event.action, event.actor, event.subject) == (
            "person.added",
            "human:board",
            "human:grace",
        )
        assert event.details["groups"] == ["Observer"]
        assert PASSWORD not in str(event.details)

    @pytest.mark.parametrize(("length", "status"), [(80, 302), (81, 200)])
    def test_gives_a_name_that_every_record_has_room_for(self, board, length, status):
        page = f"{list_page(User)}add/"
        given = {"username": "g" * length, "password1": PASSWORD, "password2": PASSWORD}
        assert board.post(page, filled(board, page, "user_form", **given)).status_code == status

    @pytest.mark.parametrize("name", ["\N{CYRILLIC SMALL LETTER A}_board", "bo\u0430rd", "BOARD"])
    def test_gives_no_name_that_looks_like_another(self, board, name):
        """Spec: people 45."""
        page = f"{list_page(User)}add/"
        given = {"username": name, "password1": PASSWORD, "password2": PASSWORD}
        assert board.post(page, filled(board, page, "user_form", **given)).status_code == 200
        assert not User.objects.filter(username=name).exists()

    def test_moves_somebody_to_another_group(self, board, other, groups):
        page = change_page(other)
        data = filled(board, page, "user_form", groups=[str(groups[PeopleGroup.HR].id)])
        assert board.post(page, data).status_code == 302
        assert groups_of(User.objects.get(id=other.id)) == {PeopleGroup.HR}
        assert (newest_event().action, newest_event().details["groups"]) == (
            "person.changed",
            ["HR"],
        )

    def test_sets_a_password_with_an_event(self, board, other):
        page = f"/admin/auth/user/{other.id}/password/"
        board.post(
            page,
            {"password1": PASSWORD + "x", "password2": PASSWORD + "x", "usable_password": "true"},
        )
        other.refresh_from_db()
        assert other.check_password(PASSWORD + "x")
        assert newest_event().action == "person.changed"

    def test_makes_no_superuser_and_touches_none(self, board, other):
        root = User.objects.create_superuser("root", password=PASSWORD)
        page = change_page(other)
        data = filled(board, page, "user_form", is_superuser="on", user_permissions=["1"])
        board.post(page, data)
        other.refresh_from_db()
        assert not other.is_superuser
        assert not other.user_permissions.exists()
        assert board.post(change_page(root), {"username": "root"}).status_code == 403
        assert board.post(f"/admin/auth/user/{root.id}/password/", {}).status_code == 403

    def test_deletes_nobody(self, board, other):
        assert board.post(page_of(other, "delete"), {"post": "yes"}).status_code == 403
        assert User.objects.filter(id=other.id).exists()

    def test_reads_the_groups_and_changes_none(self, board, groups):
        group = groups[PeopleGroup.HR]
        assert "orgchart.change_role" in board.get(change_page(group)).content.decode()
        assert board.post(change_page(group), {"name": "Board"}).status_code == 403
        assert Group.objects.get(id=group.id).name == "HR"


class TestEverybodyElse:
    @pytest.mark.parametrize(
        "desk", [None, PeopleGroup.HR, PeopleGroup.REVIEWER, PeopleGroup.OBSERVER]
    )
    def test_neither_sees_nor_promotes_anybody(self, sign_in, other, groups, desk):
        client = sign_in(desk)
        me = User.objects.get(username=str(desk or "nobody").lower())
        board = str(groups[PeopleGroup.BOARD].id)
        for row in (me, other):
            for page in (change_page(row), f"/admin/auth/user/{row.id}/password/"):
                assert client.get(page).status_code == 403
                assert client.post(page, {"groups": [board], "username": "x"}).status_code == 403
        assert client.post(f"{list_page(User)}add/", {"username": "x"}).status_code == 403
        assert client.get(list_page(Group)).status_code == 403
        assert groups_of(User.objects.get(id=me.id)) == ({desk} if desk else set())
        assert newest_event().action == "human.denied"


class TestDesks:
    def test_are_none_for_who_was_made_inactive(self, groups, other):
        other.groups.add(groups[PeopleGroup.BOARD])
        other.is_active = False
        other.save()
        assert groups_of(other) == set()

    def test_are_the_boards_for_a_superuser(self, db):
        assert groups_of(User.objects.create_superuser("root")) == {PeopleGroup.BOARD}


class TestSigningIn:
    def test_leads_to_the_dashboard_even_from_the_bare_form(self, client, groups, other):
        data = filled(client, "/admin/login/", "login-form", username="mary", password=PASSWORD)
        answer = client.post("/admin/login/", data)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")

    def test_leads_nowhere_outside(self, client, groups, other):
        page = "/admin/login/?next=https://evil.example/"
        data = filled(client, page, "login-form", username="mary", password=PASSWORD)
        answer = client.post(page, data)
        assert "evil.example" not in answer.headers.get("Location", "")
