"""A few stories in a real browser: what only a browser can show."""

import re

import pytest
from playwright.sync_api import expect

from contracts.models import Contract
from core.permissions import PeopleGroup
from mailroom.models import Escalation
from orgchart.models import ContactRule


def rule_page():
    rule = ContactRule.objects.get(sender__name="it_manager", recipient__name="hr_manager")
    return f"/admin/orgchart/contactrule/{rule.id}/change/"


class TestTheBoard:
    def test_looks_around_without_a_request_to_anybody_outside(
        self, enter, company, live_server, outside, complaints
    ):
        page = enter(PeopleGroup.BOARD)
        for path in [
            "/admin/",
            "/admin/mailroom/mail/",
            f"/admin/mailroom/mail/{company.ids['answer']}/change/",
            f"/admin/contracts/contract/{company.ids['code']}/change/",
            "/admin/ledger/event/",
            "/admin/explain/",
        ]:
            page.goto(live_server.url + path)
            page.wait_for_load_state("networkidle")
        assert outside == []
        assert complaints == []

    def test_runs_no_script_that_an_agent_wrote(self, enter, company, live_server, complaints):
        page = enter(PeopleGroup.BOARD)
        mail = f"/admin/mailroom/mail/{company.ids['hostile']}/change/"
        for path in ["/admin/mailroom/mail/", mail]:
            page.goto(live_server.url + path)
            page.wait_for_load_state("networkidle")
            assert "owned" not in page.title()
            assert page.title() != "1"
            expect(page.get_by_text("<script>").first).to_be_visible()
        assert complaints == []

    def test_cancels_a_contract_after_saying_why(self, enter, company, live_server):
        page = enter(PeopleGroup.BOARD)
        page.goto(f"{live_server.url}/admin/contracts/contract/{company.ids['it']}/change/")
        page.get_by_role("link", name="Cancel the contract").click()
        page.get_by_role("button", name="Cancel the contract").click()
        assert Contract.objects.get(id=company.ids["it"]).state == "in_progress"
        page.fill("textarea[name=reason]", "The quarter changed.")
        page.get_by_role("button", name="Cancel the contract").click()
        expect(page.get_by_text("is cancelled")).to_be_visible()
        expect(page.get_by_text("The quarter changed.").first).to_be_visible()
        assert Contract.objects.get(id=company.ids["it"]).state == "cancelled"

    def test_begins_with_the_keyboard_at_why_a_form_was_refused(self, enter, company, live_server):
        page = enter(PeopleGroup.BOARD)
        order = Contract.objects.filter(id=company.ids["it"])
        page.goto(f"{live_server.url}/admin/contracts/contract/{order.get().id}/close-cancelled/")
        page.fill("textarea[name=reason]", "The quarter changed.")
        order.update(version=order.get().version + 1)
        page.get_by_role("button", name="Cancel the contract").click()
        expect(page.get_by_role("alert")).to_contain_text("changed after you read it")
        expect(page.get_by_role("alert")).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.locator("textarea[name=reason]")).to_be_focused()

    def test_answers_an_escalation_and_reads_the_thread_on_one_page(
        self, enter, company, live_server, complaints
    ):
        row = Escalation.objects.get(mail_id=company.ids["escalation"])
        page = enter(PeopleGroup.BOARD)
        page.goto(f"{live_server.url}/admin/mailroom/escalation/{row.id}/change/")
        expect(page.locator("#chain")).to_contain_text("waits until")
        page.get_by_role("link", name="Answer for the Board").click()
        expect(page.get_by_text("Two nights of load tests fill it.")).to_be_visible()
        page.fill("textarea[name=reply]", "Keep the logs of one night.")
        page.get_by_role("button", name="Answer for the Board").click()
        expect(page.locator("#chain")).to_contain_text("answered by ada.board")
        expect(
            page.locator("#thread").get_by_text("Keep the logs of one night.", exact=True)
        ).to_be_visible()
        assert complaints == []

    def test_sees_a_key_once(self, enter, company, live_server):
        page = enter(PeopleGroup.BOARD)
        agent = company.agent("research_worker")
        page.goto(f"{live_server.url}/admin/orgchart/agent/{agent.id}/issue-key/")
        page.fill("textarea[name=reason]", "A new machine.")
        page.get_by_role("button", name="Issue a key").click()
        key = page.locator("#secret").inner_text()
        assert re.fullmatch(r"nxs_[\w-]{43}", key)
        page.get_by_role("link", name="I have kept it").click()
        expect(page.locator("body")).not_to_contain_text(key)


class TestHR:
    def test_sees_what_a_change_does_before_it_counts(
        self, enter, company, live_server, complaints
    ):
        page = enter(PeopleGroup.HR)
        page.goto(live_server.url + rule_page())
        page.locator(".select2-selection__choice__remove").last.click()
        page.fill("textarea[name=reason]", "Tools go through tickets now.")
        page.get_by_role("button", name="Preview effects").click()
        expect(page.locator("#forbidden")).to_contain_text("it_manager may send tool_request")
        assert (
            "tool_request"
            in ContactRule.objects.get(
                sender__name="it_manager", recipient__name="hr_manager"
            ).types
        )
        page.get_by_role("button", name="Confirm: this takes effect now").click()
        expect(page.get_by_text("1 newly forbidden")).to_be_visible()
        assert ContactRule.objects.get(
            sender__name="it_manager", recipient__name="hr_manager"
        ).types == ["staffing_request"]
        assert complaints == []

    def test_finds_no_way_to_people_or_mail(self, enter, company):
        page = enter(PeopleGroup.HR)
        menu = page.locator("#nav-sidebar-apps")
        expect(menu.get_by_role("link", name="Roles")).to_be_visible()
        for closed in ["Users", "Mail", "Ledger", "Contracts"]:
            expect(menu.get_by_role("link", name=closed, exact=True)).to_have_count(0)


class TestThemes:
    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_keep_text_readable(self, enter, company, page, theme):
        page.emulate_media(color_scheme=theme)
        page = enter(PeopleGroup.BOARD)
        card = page.locator(".nx-figure").first
        colours = card.evaluate(
            """e => {
                const light = c => {
                    const x = document.createElement('canvas').getContext('2d');
                    x.fillStyle = c; x.fillRect(0, 0, 1, 1);
                    const [r, g, b] = x.getImageData(0, 0, 1, 1).data;
                    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
                };
                return [light(getComputedStyle(e).backgroundColor),
                        light(getComputedStyle(e.querySelector('b')).color)];
            }"""
        )
        back, text = colours
        assert abs(back - text) > 120, colours
        assert (back < 128) is (theme == "dark")
