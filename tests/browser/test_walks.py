"""Journeys of people, with their clicks counted from the first page."""

import re

import pytest
from playwright.sync_api import expect

from core.permissions import PeopleGroup
from ledger.models import Event
from mailroom.models import Mail
from tests.browser.walker import Walker


@pytest.fixture
def walker(enter, company):
    company.call(
        "ceo", "send_mail", to="board", type="report", subject="Search is fast", body="740 ms."
    )
    return Walker(enter(PeopleGroup.BOARD))


def test_decides_what_waits_in_two_clicks(walker, complaints):
    page = walker.page
    page.reload()
    expect(page.locator("#waiting")).to_contain_text("Search is fast")
    walker.click("link", "Answer: Search is fast")
    page.fill("textarea[name=reply]", "Thank you.")
    walker.click("button", "Answer for the Board")
    expect(page.get_by_text("Answered with")).to_be_visible()
    assert walker.clicks <= 2
    assert Mail.objects.filter(from_agent="board", subject="Re: Search is fast").exists()
    assert complaints == []


def test_sees_why_a_mail_was_refused_in_two_clicks(walker):
    page = walker.page
    walker.click("link", "Blocked mail", within="#nav-sidebar-apps")
    page.locator("#result_list tbody tr", has_text="CONTACT_DENIED").first.locator(
        "th a"
    ).first.click()
    walker.clicks += 1
    expect(page.get_by_text("is not authorized to contact").first).to_be_visible()
    expect(page.get_by_role("link", name="Explain").last).to_be_visible()
    assert walker.clicks <= 2


def test_exports_and_verifies_all_that_an_agent_did_in_four_clicks(walker):
    page = walker.page
    walker.click("link", "Ledger", within="#nav-sidebar-apps")
    page.fill("#searchbar", "backend_worker today")
    page.press("#searchbar", "Enter")
    page.wait_for_url(re.compile("q=backend_worker"))
    walker.click("link", "Export")
    with page.expect_download() as download:
        walker.click("button", "Download CSV")
    text = download.value.path().read_text()
    assert (
        text.count("agent:backend_worker")
        == Event.objects.filter(actor="agent:backend_worker").count()
    )
    walker.click("button", "Verify the ledger")
    expect(page.locator("#verified strong")).to_contain_text("The ledger is")
    assert walker.clicks <= 4


def test_finds_an_agent_by_keyboard_from_any_page(walker):
    page = walker.page
    page.wait_for_load_state("networkidle")
    page.keyboard.press("Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()
    page.keyboard.type("qa_worker")
    expect(page.locator("#command-results-list")).to_contain_text("qa_worker")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/admin/"))


def test_types_into_the_search_where_a_page_is_slow_to_draw(walker):
    page = walker.page
    page.wait_for_load_state("networkidle")
    page.evaluate("window.requestAnimationFrame = (draw) => setTimeout(draw, 200)")
    page.keyboard.press("Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()


def test_hires_an_agent_in_six_clicks_and_gets_its_key(walker, company, complaints):
    page = walker.page
    walker.click("link", "Agents", within="#nav-sidebar-apps")
    page.locator("#header-inner a[href*='/agent/add/']").click()
    walker.clicks += 1
    page.locator(".nx-choice", has_text="backend_worker").click()
    page.locator(".nx-choice", has_text="it_manager").click()
    walker.clicks += 2
    page.fill("textarea[name=reason]", "Two contracts wait.")
    walker.click("button", "Preview effects")
    expect(page.locator("#allowed")).to_contain_text("backend_worker_2 acts as backend_worker")
    walker.click("button", "Confirm: this takes effect now")
    key = page.locator("#secret").inner_text()
    assert walker.clicks <= 6
    company.keys["backend_worker_2"] = key
    assert company.get("/api/v1/me", "backend_worker_2").status == 200
    assert complaints == []


def test_pauses_an_agent_in_two_clicks_from_its_page(walker, company, live_server):
    page = walker.page
    page.goto(f"{live_server.url}/admin/orgchart/agent/{company.agent('ceo').id}/change/")
    walker.click("link", "Pause")
    page.fill("textarea[name=reason]", "It repeats itself.")
    walker.click("button", "Pause")
    expect(page.locator("#paused")).to_contain_text("It repeats itself.")
    assert walker.clicks <= 2
    assert company.call("ceo", "read_inbox").code == "AGENT_PAUSED"


def test_stops_everything_in_two_clicks_from_the_first_page(walker, company):
    page = walker.page
    walker.click("link", "Stop everything")
    page.fill("textarea[name=reason]", "The day ends here.")
    walker.click("button", "Stop everything")
    assert walker.clicks <= 2
    assert company.call("qa_worker", "read_inbox").code == "AGENT_PAUSED"
