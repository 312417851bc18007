"""What keeps a person from using a page: barriers that axe finds, errors, small targets."""

from pathlib import Path

from core.permissions import PeopleGroup
from orgchart.models import Agent, Role
from tests.admin.english import english_on, known_texts
from tests.browser.eyes import complaints_of, enter_signed_in

AXE = Path(__file__).parent / "axe" / "axe.min.js"
DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
EVERY_LOOK = (("light", DESK), ("dark", PHONE), ("dark", DESK), ("light", PHONE))
MISSING = "/admin/no-such-page/"
READY = "() => !window.nexusImprove || 'nxReady' in document.documentElement.dataset"
"""The theme draws its choosers after the page is loaded; then our script names them."""
FIND = """async () => {
  const judged = ["serious", "critical"];
  const others = axe._audit.rules.filter((rule) => !judged.includes(rule.impact));
  const rules = Object.fromEntries(others.map((rule) => [rule.id, { enabled: false }]));
  const preload = false;  // of style sheets, for one rule that is no rule yet
  const found = await axe.run(document, { rules, preload, resultTypes: ["violations"] });
  return found.violations
    .filter((v) => judged.includes(v.impact))
    .map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 150)).join(" | ")}`);
}"""
SMALL = """() => [...document.querySelectorAll("#main a, #main button, #main input, #main select")]
  .filter((e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
  .filter((e) => !e.closest("p, td, th, dd, .nx-lead, .nx-small, h2") || e.matches("button"))
  .filter((e) => !["checkbox", "radio", "hidden"].includes(e.type))
  .filter((e) => !/select2-(hidden|search)/.test(e.className))
  .map((e) => [e, e.getBoundingClientRect()])
  .filter(([e, r]) => r.width && r.height && (r.width < 23.5 || r.height < 23.5))
  .map(([e, r]) => `${Math.round(r.width)}x${Math.round(r.height)} ${e.outerHTML.slice(0, 140)}`)"""

TOUCHING = """() => [...document.querySelectorAll("#result_list .data-row")].slice(0, 5)
  .flatMap((row) => [...row.children].filter((e) => e.getClientRects().length)
    .map((e) => [e, e.getBoundingClientRect(), getComputedStyle(e).display])
    .filter(([e, r, shown], n, all) => {
      const before = n && all[n - 1][1];
      return n && shown !== "table-cell" && before.top < r.bottom && r.top < before.bottom
        && r.left - before.right < 4;
    }))
  .map(([e]) => `touches the cell before: ${e.outerHTML.slice(0, 140)}`)"""


def pages_of(page, company, group):
    """Each address of the navigation, and pages that lead deeper: an agent, a form, a flow."""
    shown = page.locator("#nav-sidebar-apps a").evaluate_all("all => all.map((a) => a.pathname)")
    assert len(shown) > (10 if group is PeopleGroup.HR else 25)
    worker = Agent.objects.get(handle="backend_worker").id
    role = Role.objects.get(name="backend_worker").id
    agent = "/admin/orgchart/agent"
    deeper = [f"{agent}/{worker}/change/", "/admin/matrix/?of=agents"]
    if group in (PeopleGroup.BOARD, PeopleGroup.HR):
        hire = f"{agent}/add/?organisation={company.organisation.id}"
        boss = Agent.objects.get(handle="it_manager").id
        deeper += [
            f"{agent}/{worker}/change/?edit=1",
            f"{agent}/{worker}/pause/",
            f"{agent}/{worker}/move/",
            hire,
            f"{hire}&role={role}",
            f"{hire}&role={role}&reports_to={boss}",
        ]
    if group is PeopleGroup.BOARD:
        mail, contract = company.ids["question"], company.ids["code"]
        deeper += [
            f"/admin/mailroom/mail/{mail}/change/",
            f"/admin/contracts/contract/{contract}/change/",
            f"{agent}/{worker}/issue-key/",
            "/admin/password_change/",
            MISSING,
        ]
    return [*dict.fromkeys([*shown, *deeper])]


def look(page, address, looks, language, known):
    """What is wrong with one page: opened once, seen in each theme and size."""
    page.emulate_media(color_scheme=looks[0][0])
    page.set_viewport_size(looks[0][1])
    answer = page.goto(address, wait_until="load")
    expected = 404 if address.endswith(MISSING) else 200
    problems = [] if answer.status == expected else [f"status {answer.status}"]
    spoken = page.locator("html").get_attribute("lang")
    problems += [] if spoken.lower() == language else [f"lang={spoken}"]
    page.wait_for_function(READY)
    problems += english_on(page.content(), known) if language == "zh-hans" else []
    for theme, size in looks:
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size(size)
        found = page.evaluate(FIND) + page.evaluate(SMALL)[:5] + page.evaluate(TOUCHING)[:3]
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wide > 1:
            found.append(f"{wide} px wider than the window")
        problems += [f"{theme} {size['width']}: {each}" for each in found]
    return problems


class Window:
    """A person of a group at the site, in a language; `pages` are the addresses to look at."""

    def __init__(self, browser, address, company, group, language="en"):
        self._address, self._language = address, language
        self._context = browser.new_context(bypass_csp=True)
        choice = {"name": "nexus_language", "value": language, "url": address}
        self._context.add_cookies([choice])
        self._context.add_init_script(path=AXE)
        self._page = self._context.new_page()
        self._page.set_default_timeout(30_000)
        self._heard = complaints_of(self._page)
        enter_signed_in(self._page, address, group)
        self.pages = pages_of(self._page, company, group)

    def walk(self, pages, looks):
        """Open each of these pages; what is wrong with each in these looks. Closes the window."""
        wrong, known = {}, known_texts()
        for each in pages:
            found = look(self._page, self._address + each, looks, self._language, known)
            found += [] if each.endswith(MISSING) else self._heard
            self._heard.clear()
            if found:
                wrong[each] = found
        self._context.close()
        return wrong
