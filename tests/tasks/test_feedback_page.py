"""Feedback taken in by people at the admin: who may, what is kept, what is refused and said."""

import pytest
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile

from core.permissions import PeopleGroup
from ledger.models import Event
from orgchart.models import Membership, Organisation
from tasks.models import Feedback
from tests.admin.forms import filled
from tests.tasks.people import sign_in
from tests.tasks.world import CSV, dev_team

PAGE = "/admin/tasks/feedback/take-in/"
LIST = "/admin/tasks/feedback/"


@pytest.fixture
def board(team):
    return sign_in(PeopleGroup.BOARD)


def page_of(organisation):
    return f"{PAGE}?organisation={organisation.id}"


def upload(client, name: str, content: bytes):
    page = page_of(Organisation.objects.first())
    return client.post(page, {"file": SimpleUploadedFile(name, content), "_file": "1"})


def report(client, organisation=None, **fields):
    page = page_of(organisation or Organisation.objects.first())
    return client.post(page, {"body": "It is slow.", "_report": "1", **fields})


def test_is_added_where_the_page_said(board, team):
    """Meanwhile its person is a member of another organisation, and no longer of this one."""
    assert board.get(PAGE).headers["Location"] == f"?organisation={team.id}"
    other = Organisation.objects.create(slug="other", name="Other")
    person = get_user_model().objects.get(username=f"at-{PeopleGroup.BOARD}")
    Membership.objects.all().delete()
    Membership.objects.create(person=person, organisation=other)
    assert report(board, team).status_code == 200
    assert not Feedback.objects.exists()


class TestWho:
    def test_is_the_board(self, board):
        assert board.get(PAGE, follow=True).status_code == 200
        assert PAGE in board.get(LIST).content.decode()
        assert report(board).status_code == 302

    @pytest.mark.parametrize(
        "desk", [PeopleGroup.HR, PeopleGroup.REVIEWER, PeopleGroup.OBSERVER, None]
    )
    def test_is_nobody_else(self, team, desk):
        client = sign_in(desk)
        assert client.get(PAGE).status_code == 403
        assert report(client).status_code == 403
        assert upload(client, "a.csv", CSV.encode()).status_code == 403
        assert PAGE not in client.get(LIST).content.decode()
        assert not Feedback.objects.exists()

    @pytest.mark.parametrize(
        ("desk", "sees"), [(PeopleGroup.OBSERVER, True), (PeopleGroup.HR, False)]
    )
    def test_reads_it_finds_it_in_the_menu(self, team, desk, sees):
        menu = sign_in(desk).get("/admin/tasks/task/").content.decode()
        assert (f'href="{LIST}"' in menu) is sees


class TestOneReport:
    def test_is_kept_and_recorded_by_the_person(self, board, team):
        answer = report(
            board,
            body="<script>alert(1)</script>",
            rating="2",
            category="bug",
            received_at_0="2026-01-05",
            received_at_1="10:00:00",
        )
        assert answer.headers["Location"] == LIST
        kept = Feedback.objects.get()
        assert (kept.organisation, kept.source, kept.rating) == (team, "admin", 2)
        assert kept.received_at.isoformat() == "2026-01-05T10:00:00+00:00"
        event = Event.objects.get(action="feedback.received")
        assert (event.actor, event.subject) == ("human:at-Board", "feedback:admin")
        shown = board.get(LIST).content.decode()
        assert "1 added, 0 already known." in shown
        assert "<script>alert" not in shown

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"body": " "}, "This field is required"),
            ({"rating": "6"}, "6 is not one of the available choices"),
            ({"author": "x" * 201}, "at most 200 characters"),
            (
                {"received_at_0": "0001-01-01", "received_at_1": "00:00:00"},
                "between the years 1970 and 2200",
            ),
        ],
    )
    def test_that_is_bad_is_refused_with_a_sentence(self, board, fields, said):
        answer = report(board, **fields)
        assert answer.status_code == 200
        assert said in answer.content.decode()
        assert not Feedback.objects.exists()

    def test_is_kept_for_the_organisation_that_was_chosen(self, board, team):
        other = dev_team("other")
        assert f"?organisation={other.id}" in board.get(PAGE).content.decode()
        assert board.post(PAGE, {"body": "It is slow.", "_report": "1"}).status_code == 200
        assert not Feedback.objects.exists()
        report(board, other)
        assert Feedback.objects.get().organisation == other


class TestAFile:
    def test_is_kept_once(self, board):
        for said in ("2 added, 0 already known.", "0 added, 2 already known."):
            assert upload(board, "reports.csv", CSV.encode("utf-8-sig")).status_code == 302
            assert said in board.get(LIST).content.decode()
        assert set(Feedback.objects.values_list("source", flat=True)) == {"reports.csv"}
        event = Event.objects.get(action="feedback.received")
        assert (event.actor, event.details["items"]) == ("human:at-Board", 2)

    def test_may_be_json(self, board):
        upload(board, "reports.json", b'[{"body": "x"}, {"body": "y", "source": "shop"}]')
        assert set(Feedback.objects.values_list("source", flat=True)) == {"reports.json", "shop"}

    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            ("a.json", b'[{"body": "fine"}, {"body": ""}]', "item 2: body"),
            ("a.json", b"{", "a.json: "),
            ("a.json", b'{"body": "x", "received_at": "9999-12-31T23:00:00-12:00"}', "1970 and"),
            ("a.csv", b"body\nfine\n\xff\xfe\n", "a.csv: "),
            ("a.csv", b"body,rating\nfine,3\nbad,9\n", "item 2: rating"),
            ("a.csv", b"", "The submitted file is empty"),
        ],
    )
    def test_that_is_bad_changes_nothing_and_says_why(self, board, name, content, said):
        answer = upload(board, name, content)
        assert answer.status_code == 200
        assert said in answer.content.decode()
        assert not Feedback.objects.exists()
        assert not Event.objects.filter(action="feedback.received").exists()

    def test_that_is_refused_leaves_its_trace(self, board):
        upload(board, "a.json", b"{")
        event = Event.objects.get(action="human.denied")
        assert (event.actor, event.code) == ("human:at-Board", "INVALID_PARAMS")

    def test_is_of_a_certain_size(self, board, settings):
        settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2048
        answer = upload(board, "a.csv", b"body\n" + b"x" * 4096)
        assert "more than 2 KiB: send it in parts" in answer.content.decode()
        assert not Feedback.objects.exists()


def test_what_is_sent_twice_is_added_once(board, team):
    page = page_of(team)
    form = {**filled(board, page, "report-form", body="It is slow."), "_report": "1"}
    board.post(page, form)
    again = board.post(page, form, follow=True)
    assert Feedback.objects.count() == 1
    assert "nothing was done again" in again.content.decode()
    number = filled(board, page, "file-form")["number"]
    for _ in range(2):
        file = SimpleUploadedFile("x.csv", b"body\nIt is fast.\n")
        board.post(page, {"file": file, "_file": "1", "number": number})
    assert Feedback.objects.count() == 2
