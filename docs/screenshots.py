# ruff: noqa: INP001  a script in the documents' folder, no package
"""Photographs of the admin: a day of the company in a database of its own, seen by a real browser.

    python docs/screenshots.py [FOLDER [NAME …]]

Makes a database, plays the day, opens the pages (or those named) and throws the database away.
Needs a chromium (CHROMIUM names another one than /usr/bin/chromium).
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "nexus_site.settings")
os.environ.setdefault("TEST_DATABASE", "test_screenshots")
os.environ["LEDGER_DIR"] = tempfile.mkdtemp()  # not the installation's: it knows the last seal
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # the browser's driver runs a loop here

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.staticfiles.handlers import StaticFilesHandler  # noqa: E402
from django.db import connection  # noqa: E402
from django.test.runner import DiscoverRunner  # noqa: E402
from django.test.testcases import LiveServerThread  # noqa: E402
from django.utils import timezone  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

from core.permissions import PeopleGroup  # noqa: E402
from ledger.sealer import seal_events  # noqa: E402
from orgchart.models import Agent, ContactRule, Organisation, Role  # noqa: E402
from tasks.models import Task  # noqa: E402
from tests.browser.day import fill_the_day, play  # noqa: E402
from tests.browser.eyes import CHROMIUM, make_people, sign_in  # noqa: E402
from tests.browser.task_week import work  # noqa: E402
from tests.company import Company, load_company  # noqa: E402
from toolbox.models import JobRun  # noqa: E402
from toolbox.scheduler import JOBS  # noqa: E402

Opened = Callable[[Page], object]
Shots = dict[str, Opened]
Theme = Literal["light", "dark"]
FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "screenshots"
ONLY = frozenset(sys.argv[2:])


class Photographer:
    """Opens page after page of a running site."""

    def __init__(self, address: str, ids: dict[str, str]) -> None:
        self.address = address
        self.ids = ids
        self.worker = Agent.objects.get(handle="backend_worker").id

    def take_all(self) -> None:
        """As the Board and as HR, in both themes, on a phone, and in Chinese."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            self.take(browser, PeopleGroup.BOARD, "light", self.board_pages())
            self.take(browser, PeopleGroup.HR, "light", self.hr_pages())
            self.take(browser, PeopleGroup.BOARD, "dark", self.dark_pages())
            self.take(browser, PeopleGroup.BOARD, "light", self.phone_pages(), width=390)
            self.take(browser, PeopleGroup.BOARD, "light", self.chinese_pages(), language="zh-hans")
            browser.close()

    def take(
        self,
        browser: Browser,
        group: PeopleGroup,
        theme: Theme,
        shots: Shots,
        *,
        width: int = 1440,
        language: str = "en",
    ) -> None:
        """Sign in and photograph."""
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        cookie = settings.LANGUAGE_COOKIE_NAME
        context.add_cookies([{"name": cookie, "value": language, "url": self.address}])
        page = context.new_page()
        page.set_default_timeout(30_000)
        sign_in(page, self.address, group)
        for name, opened in shots.items():
            if ONLY and name not in ONLY:
                continue
            opened(page)
            page.wait_for_load_state("networkidle")
            page.set_viewport_size({"width": width, "height": max(900, height_of(page))})
            page.screenshot(path=FOLDER / f"{name}.png")
            page.set_viewport_size({"width": width, "height": 900})
            print(name)
        context.close()

    def at(self, path: str) -> Opened:
        """Open a path of the admin."""
        return lambda page: page.goto(f"{self.address}/admin/{path}")

    def board_pages(self) -> Shots:
        """What the Board looks at."""
        nexus = Organisation.objects.get(slug="nexus").id
        ids = self.ids
        return {
            "dashboard": self.at(""),
            "mails": self.at("mailroom/mail/"),
            "mail-thread": self.at(f"mailroom/mail/{ids['answer']}/change/"),
            "refused-mail": self.at("mailroom/mailrejection/"),
            "contracts": self.at("contracts/contract/"),
            "contract": self.at(f"contracts/contract/{ids['code']}/change/"),
            "contract-issue": self.at(f"contracts/contract/issue/?organisation={nexus}"),
            "contract-cancel": self.at(f"contracts/contract/{ids['it']}/close-cancelled/"),
            "ledger": self.at("ledger/event/"),
            "explain": self.at(
                f"explain/?ask=mail&organisation={nexus}&agent=backend_worker&recipient=ceo"
                "&type=info&contract="
            ),
            "explain-tool": self.at(
                f"explain/?ask=tool&organisation={nexus}&agent=qa_worker&tool=run_test&mode=coding"
            ),
            "tasks": self.at("tasks/task/"),
            "task": self.at(f"tasks/task/{ids['task']}/change/"),
            "task-board": self.at(f"tasks/task/board/?organisation={ids['team']}"),
            "task-measures": self.at(f"tasks/task/measures/?organisation={ids['team']}"),
            "agents": self.at("orgchart/agent/"),
            "agent": self.at(f"orgchart/agent/{self.worker}/change/"),
            "company": self.at(f"company/?organisation={nexus}"),
            "matrix": self.at(f"matrix/?organisation={nexus}"),
            "feed": self.at("feed/"),
            "api": lambda page: page.goto(f"{self.address}/api/docs/mail/"),
            "not-found": self.at("orgchart/agent/999999/change/"),
            "sessions": self.at("toolbox/session/"),
            "role-looking": self.at(
                f"orgchart/role/{Role.objects.get(name='qa_worker').id}/change/"
            ),
            "agent-deactivate": self.at(f"orgchart/agent/{self.worker}/deactivate/"),
        }

    def hr_pages(self) -> Shots:
        """What HR does: edit, and look before it counts."""
        rule = ContactRule.objects.get(
            sender__name="it_manager",
            recipient__name="hr_manager",
            organisation__slug="nexus",
        )
        nexus = Organisation.objects.get(slug="nexus").id
        qa = Role.objects.get(name="qa_worker").id
        return {
            "hr-dashboard": self.at(""),
            "contact-rules": self.at("orgchart/contactrule/"),
            "contact-edit": self.at(f"orgchart/contactrule/{rule.id}/change/"),
            "contact-preview": self.preview_of(f"orgchart/contactrule/{rule.id}/change/"),
            "role-edit": self.at(f"orgchart/role/{qa}/change/"),
            "role-refused": self.broken_role(qa),
            "organisation-edit": self.at(f"orgchart/organisation/{nexus}/change/"),
        }

    def dark_pages(self) -> Shots:
        """The same in the dark."""
        return {
            "dark-dashboard": self.at(""),
            "dark-mail-thread": self.at(f"mailroom/mail/{self.ids['answer']}/change/"),
            "dark-task": self.at(f"tasks/task/{self.ids['task']}/change/"),
            "dark-task-measures": self.at(f"tasks/task/measures/?organisation={self.ids['team']}"),
        }

    def phone_pages(self) -> Shots:
        """What the Board opens on its way."""
        return {
            "phone-dashboard": self.at(""),
            "phone-ledger": self.at("ledger/event/"),
            "phone-agent": self.at(f"orgchart/agent/{self.worker}/change/"),
        }

    def chinese_pages(self) -> Shots:
        """The first page, an agent and a mail, in Simplified Chinese."""
        return {
            "chinese-dashboard": self.at(""),
            "chinese-agent": self.at(f"orgchart/agent/{self.worker}/change/"),
            "chinese-mail-thread": self.at(f"mailroom/mail/{self.ids['answer']}/change/"),
        }

    def preview_of(self, path: str) -> Opened:
        """Fill in the rule's form and look at what it would do."""

        def taken(page: Page) -> None:
            page.goto(f"{self.address}/admin/{path}")
            page.locator("select[name=types]").evaluate(
                "s => { for (const o of s.options) o.selected ="
                " ['info', 'staffing_request'].includes(o.value) }"
            )
            page.fill("textarea[name=reason]", "IT and HR plan the new team together.")
            page.click("#submit-row button[name=_save]")

        return taken

    def broken_role(self, role: int) -> Opened:
        """Give QA what it must not have."""

        def taken(page: Page) -> None:
            page.goto(f"{self.address}/admin/orgchart/role/{role}/change/")
            page.fill("textarea[name=files_write]", "tests/\nreports/qa/\nsrc/")
            page.fill("textarea[name=reason]", "QA could mend small things itself.")
            page.click("#submit-row button[name=_save]")

        return taken


def ask_the_board(company: Company, order: str) -> None:
    """Two reports to the Board: one under its contract, one that asks."""

    def report(subject: str, body: str, contract_ref: str | None = None) -> None:
        sent = {"to": "board", "type": "report", "subject": subject, "body": body}
        company.post("/api/v1/tools/send_mail", {**sent, "contract_ref": contract_ref}, "ceo")

    report("Search is fast", "p95 is 740 ms since Monday.", order)
    report("May we rent two more servers?", "The budget is used up.")


def run_every_job() -> None:
    """As where the scheduler runs; the pictures take a few minutes."""
    soon = timezone.now() + timedelta(hours=1)
    JobRun.objects.bulk_create(JobRun(name=name, last_at=soon, runs=1) for name in JOBS)


def height_of(page: Page) -> int:
    """How tall the page is, so that what sticks to its foot is at its foot."""
    return min(int(page.evaluate("document.documentElement.scrollHeight")), 1600)


def main() -> None:
    """Make the database, take the pictures, throw the database away."""
    runner = DiscoverRunner(verbosity=0, interactive=False)
    runner.setup_test_environment()
    runner.setup_databases(serialized_aliases=set())
    server = LiveServerThread("127.0.0.1", StaticFilesHandler)
    server.daemon = True
    try:
        company = load_company("nexus")
        team = load_company("dev-team")
        fill_the_day(company)
        begun = work(team)["indexer"]
        task = Task.objects.get(organisation=team.organisation, number=begun)
        ids = play(company) | {"task": str(task.id), "team": str(team.organisation.id)}
        ask_the_board(company, ids["order"])
        run_every_job()
        make_people()
        seal_events(now=timezone.now())
        server.start()
        server.is_ready.wait()
        Photographer(f"http://127.0.0.1:{server.port}", ids).take_all()
    finally:
        server.terminate()
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]
        with connection._nodb_cursor() as cursor:  # noqa: SLF001  Django's own way to drop it
            cursor.execute(f'DROP DATABASE "{connection.settings_dict["NAME"]}" WITH (FORCE)')
        runner.teardown_test_environment()


if __name__ == "__main__":
    main()
