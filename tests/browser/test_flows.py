"""Journeys that take more than one page, or more than one person; every click is counted."""

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from playwright.sync_api import expect

from contracts.models import Contract
from core.permissions import PeopleGroup
from orgchart.models import Agent, ContactRule, PendingChange, Role
from tests.admin.forms import confirm, filled, preview
from tests.admin.places import act_page, change_page
from tests.browser.eyes import NAMES, complaints_of, enter_signed_in, sign_in
from tests.browser.walker import Walker
from tests.company import load_company

REASON = "The quarter begins."


@pytest.fixture
def walker(enter, company):
    return Walker(enter(PeopleGroup.BOARD))


def client_of(group):
    client = Client(HTTP_HOST="127.0.0.1")
    person = get_user_model().objects.get(username=NAMES[group])
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return client


def hire(company, role, superior):
    """Another agent of a role, by the Board."""
    role_id = Role.objects.get(organisation=company.organisation, name=role).id
    page = f"/admin/orgchart/agent/add/?organisation={company.organisation.id}&role={role_id}"
    page += f"&reports_to={company.agent(superior).id}"
    board = client_of(PeopleGroup.BOARD)
    confirm(board, page, preview(board, page, "agent_form", reason=REASON))
    return Agent.objects.latest("id")


def test_moves_an_agent_in_six_clicks(walker, company, complaints):
    page, second = walker.page, hire(company, "it_manager", "ceo")
    walker.open_agent("qa_worker")
    walker.click("link", "Move")
    walker.click_at(page.locator("#move-form .nx-choice", has_text=second.handle))
    page.fill("#move-form textarea[name=reason]", REASON)
    walker.click("button", "Preview effects")
    expect(page.get_by_text("Nothing has been changed yet")).to_be_visible()
    assert company.agent("qa_worker").reports_to.handle == "it_manager"
    walker.click("button", "Confirm: this takes effect now")
    expect(page.locator("body")).to_contain_text(second.handle)
    assert company.agent("qa_worker").reports_to == second
    assert walker.clicks <= 6
    assert complaints == []


def test_reactivates_an_agent_in_four_clicks_and_gets_its_new_key(walker, company, complaints):
    page, worker = walker.page, company.agent("backend_worker")
    old = company.key("backend_worker")
    client = client_of(PeopleGroup.BOARD)
    ending = act_page(worker, "deactivate")
    ended = client.post(ending, filled(client, ending, "act-form", reason=REASON))
    assert ended.status_code == 302
    walker.open_agent("backend_worker")
    walker.click("link", "Activate again")
    expect(page.get_by_text("backend_worker acts as backend_worker").first).to_be_visible()
    page.fill("textarea[name=reason]", REASON)
    walker.click("button", "Activate again")
    key = page.locator("#secret").inner_text()
    assert walker.clicks <= 4
    assert company.get("/api/v1/me", "backend_worker").status == 401
    company.keys["backend_worker"] = key
    assert key != old
    assert company.get("/api/v1/me", "backend_worker").status == 200
    assert complaints == []


def test_replaces_a_leader_in_five_clicks(walker, complaints):
    page, team = walker.page, load_company("soloqueue")
    walker.open_agent("coding_architect")
    walker.click("link", "Make leader")
    expect(page.locator(".nx-lead")).to_contain_text("exchange their roles")
    page.fill("textarea[name=reason]", REASON)
    walker.click("button", "Preview effects")
    walker.click("button", "Confirm: this takes effect now")
    expect(page.get_by_text("leads coding").first).to_be_visible()
    assert walker.clicks <= 5
    led = Agent.objects.get(organisation=team.organisation, group__slug="coding", is_leader=True)
    assert led.role.name == "group_leader"
    assert complaints == []


def test_confirms_another_persons_change_in_two_clicks(walker, company, complaints):
    page = walker.page
    rule = ContactRule.objects.get(sender__name="it_manager", recipient__name="hr_manager")
    hr = client_of(PeopleGroup.HR)
    form = change_page(rule)
    confirm(hr, form, preview(hr, form, "contactrule_form", types=["info"], reason=REASON))
    change = PendingChange.objects.get()
    assert change.state == "proposed"
    page.reload()
    expect(page.locator("#waiting")).to_contain_text("Change to confirm")
    walker.click("link", "Confirm", within="#waiting", exact=False)
    expect(page.locator("body")).to_contain_text(NAMES[PeopleGroup.HR])
    page.fill("textarea[name=reason]", "Looked at it.")
    walker.click("button", "Confirm")
    expect(page.get_by_text("took effect")).to_be_visible()
    assert PendingChange.objects.get(pk=change.pk).state == "confirmed"
    assert walker.clicks <= 2
    assert complaints == []


def test_issues_a_contract_and_follows_it_to_its_end(walker, company, complaints, live_server):
    """The Board orders, the agents work, the Board takes the work: five clicks of a person."""
    page = walker.page
    walker.click("link", "Contracts", within="#nav-sidebar-apps")
    walker.click("link", "Issue a contract")
    page.fill("#issue-form input[name=title]", "A shop in Chinese")
    page.fill("#issue-form textarea[name=body]", "Every page, judged by two readers.")
    walker.click("button", "Issue it")
    expect(page.get_by_text("is issued to ceo")).to_be_visible()
    contract = Contract.objects.get(title="A shop in Chinese")
    assert contract.id.replace("-", "_2D") in page.url or contract.id in page.url
    company.call("ceo", "accept_contract", contract_id=contract.id)
    company.call(
        "ceo", "send_mail", to="board", type="report", subject="The shop is done",
        body="Both readers agree.", contract_ref=contract.id, submits=True,
    )  # fmt: skip
    page.reload()
    for step in ("Contract issued", "Contract accepted", "Work submitted for review"):
        expect(page.get_by_text(step).first).to_be_visible()
    page.goto(f"{live_server.url}/admin/")
    expect(page.locator("#waiting")).to_contain_text("A shop in Chinese")
    walker.click("link", "Take the work: A shop in Chinese")
    page.fill("textarea[name=reason]", "Read by both.")
    walker.click("button", "Take the work")
    expect(page.get_by_text("is passed")).to_be_visible()
    assert Contract.objects.get(id=contract.id).state == "passed"
    assert walker.clicks <= 5
    assert complaints == []


def test_waits_for_the_second_person_who_is_not_the_first(enter, company, live_server, browser):
    """Who proposed a change sees it wait, and has no button to confirm it."""
    page = enter(PeopleGroup.HR)
    rule = ContactRule.objects.get(sender__name="it_manager", recipient__name="hr_manager")
    hr = client_of(PeopleGroup.HR)
    form = change_page(rule)
    confirm(hr, form, preview(hr, form, "contactrule_form", types=["info"], reason=REASON))
    change = PendingChange.objects.get()
    page.goto(live_server.url + change_page(change))
    expect(page.get_by_role("link", name="Withdraw")).to_be_visible()
    assert page.get_by_role("link", name="Confirm", exact=True).count() == 0
    other = browser.new_context().new_page()
    sign_in(other, live_server.url, PeopleGroup.BOARD)
    other.goto(live_server.url + change_page(change))
    expect(other.get_by_role("link", name="Confirm", exact=True)).to_be_visible()


def test_keeps_a_filter_and_finds_it_again(walker, company, live_server, complaints):
    page = walker.page
    walker.click("link", "Mail", within="#nav-sidebar-apps")
    assert page.get_by_role("button", name="Save this filter").count() == 0
    page.fill("#searchbar", "tokeniser")
    page.press("#searchbar", "Enter")
    page.get_by_label("Name of this filter").fill("Tokenisers")
    walker.click("button", "Save this filter")
    expect(page.get_by_text("The filter Tokenisers is saved.")).to_be_visible()
    page.goto(f"{live_server.url}/admin/mailroom/mail/")
    walker.click("link", "Tokenisers", within=".nx-saved")
    expect(page.locator("#searchbar")).to_have_value("tokeniser")
    expect(page.locator(".nx-saved a[aria-current]")).to_have_text("Tokenisers")
    walker.click("button", "Remove the filter Tokenisers")
    expect(page.get_by_text("The filter Tokenisers is removed.")).to_be_visible()
    assert page.locator(".nx-saved").count() == 0
    assert walker.clicks <= 4
    assert complaints == []


def test_watches_what_happens_in_words(browser, company, live_server):
    """A line that the script adds reads like one that the server wrote."""
    page = browser.new_context().new_page()
    complaints = complaints_of(page)
    enter_signed_in(page, live_server.url, PeopleGroup.OBSERVER)
    page.add_init_script("window.EventSource = function () { window.fed = this; };")
    company.call("ceo", "send_mail", to="it_manager", type="info", subject="One", body="b")
    page.goto(f"{live_server.url}/admin/feed/")
    event = {
        "seq": 1, "at": "2026-11-22T10:00:00+00:00", "actor": "agent:ceo", "decision": "deny",
        "action": "tool.denied", "code": "MODE_DENIED", "tool": "write_file", "subject": "",
    }  # fmt: skip
    expect(page.locator("#feed li").first).to_contain_text("Mail delivered mail.delivered ceo")
    page.evaluate("event => window.fed.onmessage({ data: JSON.stringify(event) })", event)
    expect(page.locator("#feed li").first.locator("a")).to_have_text(
        "Call of an agent blocked tool.denied ceo Not allowed in this mode MODE_DENIED write_file"
    )
    assert complaints == []
