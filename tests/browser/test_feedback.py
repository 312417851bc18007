"""The Board takes in what users reported, in a real browser: a bad file, then one by hand."""

from playwright.sync_api import expect

from core.permissions import PeopleGroup
from tasks.models import Feedback


def test_the_board_takes_feedback_in(enter, complaints, tmp_path):
    page = enter(PeopleGroup.BOARD)
    page.locator("#nav-sidebar-apps").get_by_role("link", name="Feedback").click()
    page.get_by_role("link", name="Add feedback").click()
    bad = tmp_path / "reports.csv"
    bad.write_text("body,rating\nfine,3\nbad,9\n")
    page.locator("#file-form input[type=file]").set_input_files(str(bad))
    page.locator("#file-form").get_by_role("button", name="Add").click()
    expect(page.locator("#file-form")).to_contain_text("item 2: rating")
    assert not Feedback.objects.exists()
    page.locator("#report-form textarea").fill("It is slow.")
    page.locator("#report-form").get_by_role("button", name="Add").click()
    expect(page.get_by_text("1 added, 0 already known.")).to_be_visible()
    assert Feedback.objects.get().body == "It is slow."
    assert complaints == []
