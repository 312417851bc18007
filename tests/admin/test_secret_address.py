"""The path of the Board's webhook is read by those alone who may change it (people 61)."""

import re

import pytest
from django.core.management import call_command
from django.utils import timezone

from core.permissions import PeopleGroup
from ledger.models import Event
from mailroom.models import OutgoingNotice
from orgchart.models import Organisation
from tests.admin.forms import confirm, preview
from tests.admin.places import act_page, change_page, list_page
from tests.mailroom.world import notify_board

HOOK = "https://hooks.example/services/T0SECRET"
SHOWN = "https://hooks.example/…"
REASON = "The receiver moved."


@pytest.fixture
def pages(company, board):
    """Every page that could show it, after the Board and an operator set it and a notice died."""
    call_command("org", "set", "nexus", f"board_webhook={HOOK}x")
    page = change_page(company.organisation)
    seen = preview(board, page, "organisation_form", setting_board_webhook=HOOK, reason=REASON)
    assert "T0SECRET" not in seen.content.decode().split("<form")[0]
    confirm(board, page, seen)
    company.organisation.refresh_from_db()
    notify_board(company, subject="Help")
    OutgoingNotice.objects.update(state="dead", settled_at=timezone.now())
    notice = OutgoingNotice.objects.get()
    assert notice.target == HOOK
    found = ["/admin/", list_page(Event), page, f"{page}history/", change_page(notice)]
    return [*found, *(change_page(row) for row in Event.objects.filter(action__contains="organ"))]


@pytest.mark.parametrize("desk", [PeopleGroup.HR, PeopleGroup.REVIEWER, PeopleGroup.OBSERVER])
def test_is_shown_without_its_path(pages, sign_in, desk):
    client, shown = sign_in(desk), 0
    for page in pages:
        html = client.get(page).content.decode()
        assert "T0SECRET" not in html, page
        shown += SHOWN in html
    assert shown


def test_is_whole_in_the_form_of_the_board(pages, board, company):
    assert HOOK in board.get(change_page(company.organisation)).content.decode()


@pytest.mark.parametrize(
    ("address", "place"),
    [
        (f"{HOOK}2", SHOWN),
        ("https://other.example/T0SECRET", "https://other.example/…"),
        ("", "nowhere: board_webhook is not set"),
    ],
)
def test_is_where_a_notice_that_is_sent_again_goes(pages, board, company, address, place):
    """The setting may be another since the notice failed."""
    call_command("org", "set", "nexus", f"board_webhook={address}")
    html = board.get(act_page(OutgoingNotice.objects.get(), "resend")).content.decode()
    facts = re.findall(r"<dt>(.*?)</dt>\s*<dd[^>]*>(.*?)</dd>", html, re.DOTALL)
    assert {"To": place, "Last sent to": SHOWN}.items() <= dict(facts).items()
    assert "T0SECRET" not in html


def test_is_in_no_exported_list(pages, observer):
    for table in (OutgoingNotice, Event):
        answer = observer.post(f"{list_page(table)}export/", {"format": "csv"})
        assert b"T0SECRET" not in b"".join(answer.streaming_content)


def test_stays_when_hr_changes_something_else(pages, hr, company):
    page = change_page(company.organisation)
    seen = preview(hr, page, "organisation_form", description="Other words", reason=REASON)
    confirm(hr, page, seen)
    row = Organisation.objects.get(id=company.organisation.id)
    assert (row.description, row.settings["board_webhook"]) == ("Other words", HOOK)
