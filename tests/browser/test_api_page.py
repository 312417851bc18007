"""The API's page in a real browser: real calls, with real keys, against the real server."""

import re

import pytest
from playwright.sync_api import expect

from ledger.models import Event
from mailroom.models import Mail
from tests.browser.barriers import AXE, EVERY_LOOK, FIND
from tests.server import serving

MAIL = '{"to": "it_manager", "type": "info", "subject": "From the page", "body": "A word."}'
OVERFLOW = "document.documentElement.scrollWidth - innerWidth"


@pytest.fixture
def served(company):
    with serving() as address:
        yield address


@pytest.fixture
def key(company):
    return company.key("backend_worker")


def open_page(page, served, name, key=""):
    page.goto(f"{served}/api/docs/{name}")
    if key:
        page.fill("#key", key)
        page.get_by_role("button", name="Use").click()
        expect(page.locator("#key-state")).to_contain_text("backend_worker, nexus")
    return page


def try_call(page, name, body=None):
    page.get_by_role("button", name=f"Try {name}", exact=True).click()
    own = page.locator(f"article#{name}")
    if body is not None:
        own.locator("textarea").fill(body)
    return own


class TestACall:
    def test_is_made_and_its_answer_shown(self, page, served, key, complaints, context):
        outside = []
        context.on("request", lambda r: None if r.url.startswith(served) else outside.append(r.url))
        open_page(page, served, "mail/", key)
        own = try_call(page, "send_mail", MAIL)
        own.get_by_role("button", name="Send").click()
        expect(own.locator(".result b")).to_have_text("200 OK")
        expect(own.locator(".result")).to_contain_text(re.compile(r"\d+ ms"))
        sent = Mail.objects.get(subject="From the page")
        expect(own.locator(".result pre")).to_contain_text(f'"mail_id": "{sent.id}"')
        assert sent.from_agent == "backend_worker"
        assert complaints == []
        assert outside == []

    def test_leaves_the_key_nowhere(self, page, served, key, context):
        addresses = []
        context.on("request", lambda r: addresses.append(r.url))
        open_page(page, served, "caller/", key)
        own = try_call(page, "me")
        own.get_by_role("button", name="Send").click()
        expect(own.locator(".result pre")).to_contain_text('"agent": "backend_worker"')
        assert page.evaluate("localStorage.length + sessionStorage.length") == 0
        assert page.evaluate("(async () => (await indexedDB.databases()).length)()") == 0
        assert context.cookies() == []
        assert key not in "".join([page.content(), *addresses])
        page.reload()
        assert page.input_value("#key") == ""

    def test_that_is_refused_shows_code_reason_and_next_step(self, page, served, key):
        open_page(page, served, "mail/", key)
        own = try_call(page, "send_mail", MAIL.replace("it_manager", "ceo"))
        own.get_by_role("button", name="Send").click()
        expect(own.locator(".result b").first).to_contain_text("403")
        step = own.locator(".result .step")
        expect(step).to_contain_text("is not authorized to contact ceo")
        expect(step).to_contain_text("Next step: write to one of: it_manager")
        step.get_by_role("link", name="CONTACT_DENIED").click()
        expect(page.locator("article#CONTACT_DENIED h3")).to_be_in_viewport()
        expect(page).to_have_url(re.compile(r"/api/docs/errors/#CONTACT_DENIED$"))
        assert Event.objects.filter(code="CONTACT_DENIED", tool="send_mail").exists()

    def test_can_be_explained_without_being_made(self, page, served, key):
        before = Mail.objects.count()
        open_page(page, served, "mail/", key)
        own = try_call(page, "send_mail", MAIL)
        own.get_by_role("button", name="Explain only").click()
        expect(own.locator(".result pre")).to_contain_text('"allowed": true')
        assert Mail.objects.count() == before

    def test_needs_a_key(self, page, served):
        open_page(page, served, "caller/")
        own = try_call(page, "me")
        own.get_by_role("button", name="Send").click()
        expect(own.locator(".result")).to_contain_text("Enter a key")
        expect(page.locator("#key")).to_be_focused()

    def test_with_a_wrong_key_says_so(self, page, served):
        page.goto(f"{served}/api/docs/")
        page.fill("#key", "nxs_" + "x" * 43)
        page.press("#key", "Enter")
        expect(page.locator("#key-state")).to_contain_text("This key is not accepted: ")

    def test_that_is_no_json_is_refused_by_the_server(self, page, served, key):
        open_page(page, served, "mail/", key)
        own = try_call(page, "send_mail", "{to: ceo}")
        own.get_by_role("button", name="Send").click()
        expect(own.locator(".result .step")).to_contain_text("INVALID_PARAMS")

    def test_takes_the_parameters_of_path_and_query(self, page, served, key):
        open_page(page, served, "caller/", key)
        own = try_call(page, "tools")
        own.get_by_label("format").select_option("mcp")
        own.get_by_role("button", name="Send").click()
        expect(own.locator(".result pre")).to_contain_text('"inputSchema"')


class TestTheStream:
    def test_shows_events_as_they_happen_until_it_is_stopped(
        self, page, served, key, company, complaints
    ):
        open_page(page, served, "events/", key)
        own = try_call(page, "events")
        own.get_by_role("button", name="Listen").click()
        expect(own.locator(".result")).to_contain_text("Listening")
        page.wait_for_timeout(500)  # the stream begins where it is opened
        company.call("it_manager", "send_mail", to="backend_worker", type="info",
                     subject="For the stream", body="A word.")  # fmt: skip
        event = own.locator(".result li").first
        expect(event).to_contain_text('"action": "mail.delivered"')
        expect(event).to_contain_text('"from": "it_manager"')
        own.get_by_role("button", name="Stop").click()
        expect(own.locator(".result")).to_contain_text("Stopped.")
        expect(own.get_by_role("button", name="Listen")).to_be_visible()
        assert complaints == []


class TestFindingOnesWay:
    def test_searches_by_keyboard_from_anywhere(self, page, served):
        open_page(page, served, "")
        page.keyboard.press("/")
        expect(page.locator("#search")).to_be_focused()
        page.keyboard.type("write report")
        expect(page.locator("#found")).to_contain_text("found")
        expect(page.locator("nav").get_by_role("link", name="write_report")).to_be_visible()
        expect(page.locator("nav").get_by_role("link", name="send_mail")).to_be_hidden()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"/api/docs/document/#write_report$"))
        expect(page.locator("article#write_report h2")).to_be_in_viewport()

    def test_says_when_nothing_is_found(self, page, served):
        open_page(page, served, "")
        page.fill("#search", "no such thing")
        expect(page.locator("#found")).to_have_text("Nothing has these words.")

    def test_keeps_the_key_from_page_to_page(self, page, served, key):
        open_page(page, served, "mail/", key)
        page.get_by_role("navigation").get_by_role("link", name="The caller").click()
        expect(page.locator("h1")).to_have_text("The caller")
        own = try_call(page, "me")
        own.get_by_role("button", name="Send").click()
        expect(own.locator(".result pre")).to_contain_text('"agent": "backend_worker"')
        page.go_back()
        expect(page.locator("h1")).to_have_text("Mail")

    def test_leads_from_the_old_addresses(self, page, served):
        open_page(page, served, "#send_mail")
        expect(page).to_have_url(re.compile(r"/api/docs/mail/#send_mail$"))

    def test_marks_the_tools_of_the_key(self, page, served, key):
        open_page(page, served, "mail/", key)
        expect(page.locator("nav a.yours", has_text="send_mail")).to_be_visible()
        assert page.locator("nav a.yours", has_text="generate_contract").count() == 0


@pytest.fixture(scope="module")
def examined(browser):
    """A page with axe in it."""
    context = browser.new_context(bypass_csp=True)
    context.add_init_script(path=AXE)
    yield context.new_page()
    context.close()


class TestEveryBodysPage:
    @pytest.mark.parametrize("name", ["", "caller/", "mail/", "events/", "errors/"])
    def test_has_no_barrier_in_any_theme_or_size(self, examined, served, key, name):
        page = open_page(examined, served, name, key)
        if name == "mail/":
            own = try_call(page, "send_mail", MAIL.replace("it_manager", "ceo"))
            own.get_by_role("button", name="Send").click()
            expect(own.locator(".result .step")).to_be_visible()
        wrong = {}
        for theme, size in EVERY_LOOK:
            page.emulate_media(color_scheme=theme)
            page.set_viewport_size(size)
            found = page.evaluate(FIND)
            wide = page.evaluate(OVERFLOW)
            if found or wide > 1:
                wrong[theme, size["width"]] = (found, wide)
        page.goto("about:blank")
        assert wrong == {}

    def test_is_whole_without_a_script(self, browser, served):
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(f"{served}/api/docs/mail/")
        expect(page.locator("article#send_mail")).to_contain_text("1 to 200 characters")
        expect(page.locator("#key")).to_be_hidden()
        context.close()
