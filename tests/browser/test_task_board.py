"""The task board in a real browser: dragging, the keyboard, the dialogue, and without a script."""

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from core.actors import Person
from core.permissions import PeopleGroup
from governance.models import Intervention
from orgchart.models import Organisation
from tasks import services
from tasks.models import Comment, Task
from tasks.rules.values import TaskUpdate
from tasks.vocabulary import Status
from tests.browser.eyes import make_people, sign_in
from tests.company import load_company

BOARD = "/admin/tasks/task/board/"


@pytest.fixture
def company(transactional_db):
    """A company that has not worked yet: its tasks are this module's own."""
    made = load_company("nexus")
    make_people()
    return made


@pytest.fixture
def ada(company):
    organisation = Organisation.objects.get()
    return Person(
        username="ada", organisation_id=organisation.id, groups=frozenset({"Board"}), is_member=True
    )


@pytest.fixture
def make(ada):
    def made(subject, **fields):
        number = services.create_task(caller=ada, subject=subject, now=timezone.now(), **fields)
        return number["id"]

    return made


class Sight:
    """What one sees of a board."""

    def __init__(self, page):
        self.page = page
        self.said = page.locator("#tb-said")

    def card(self, subject):
        return self.page.locator(".tb-card", has_text=subject)

    def column(self, status):
        return self.page.locator(f".tb-column[data-status={status}]")

    def count(self, status):
        return self.column(status).locator(".tb-count")


@pytest.fixture
def board(enter, live_server):
    def opened(query=""):
        page = enter(PeopleGroup.BOARD)
        page.goto(live_server.url + BOARD + query)
        return Sight(page)

    return opened


def status_of(subject):
    return Task.objects.get(subject=subject).status


def test_a_card_is_dragged_and_a_stale_one_goes_home(board, ada, make, complaints):
    for subject in ("drag me", "stale", "third"):
        make(subject)
    sight = board()
    sight.card("drag me").drag_to(sight.column("in_progress"))
    expect(sight.said).to_contain_text("is in progress")
    expect(sight.column("in_progress").locator(".tb-card")).to_contain_text("drag me")
    expect(sight.count("in_progress")).to_have_text("1")
    expect(sight.count("pending")).to_have_text("2")
    assert status_of("drag me") == "in_progress"

    sight.card("third").drag_to(sight.column("completed"))
    expect(sight.column("completed").locator(".tb-card")).to_have_count(0)
    sight.card("drag me").drag_to(sight.column("completed"))
    expect(sight.said).to_contain_text("is completed")
    expect(sight.column("completed").locator(".tb-card")).to_contain_text("drag me")

    stale = Task.objects.get(subject="stale")
    services.update_task(
        caller=ada,
        task_id=str(stale.number),
        update=TaskUpdate(description="changed meanwhile"),
        now=timezone.now(),
    )
    assert complaints == []
    sight.card("stale").drag_to(sight.column("in_progress"))
    expect(sight.page.locator("#tb-said.tb-bad")).to_contain_text("Reload the page")
    expect(sight.column("pending").locator(".tb-card", has_text="stale")).to_have_count(1)
    assert status_of("stale") == "pending"
    sight.said.get_by_role("link", name="Load it again").click()
    expect(sight.card("stale")).to_contain_text("v2")


def test_a_card_moves_by_the_keyboard_alone(board, make, complaints):
    make("by keys")
    sight = board()
    card = sight.card("by keys")
    card.locator("a").focus()
    keys = sight.page.keyboard
    keys.press("Tab")
    keys.press("Enter")
    keys.press("Tab")
    expect(card.locator("select")).to_be_focused()
    expect(card.locator(".tb-reason")).to_be_hidden()
    keys.press("Tab")
    keys.press("Enter")
    expect(sight.said).to_contain_text("is in progress")
    expect(card.locator("a")).to_be_focused()
    assert status_of("by keys") == "in_progress"
    card.locator("summary").click()
    card.locator("select").select_option("completed")
    card.get_by_role("button", name="Move").click()
    expect(sight.said).to_contain_text("is completed")  # the form is closed once that is said
    expect(sight.column("completed").locator(".tb-card")).to_contain_text("by keys")

    card.locator("summary").click()
    expect(card.locator("select option")).to_have_text(["deleted"])
    card.locator(".tb-reason").fill("Not needed.")
    card.get_by_role("button", name="Move").click()
    expect(sight.said).to_contain_text("is deleted")
    expect(card).to_have_count(0)  # this board has no column for it
    expect(sight.count("completed")).to_have_text("0")
    assert complaints == []


def test_the_dialogue_asks_why_before_it_deletes(board, make, complaints):
    make("drop me")
    sight = board("?deleted=1")
    card, dialogue = sight.card("drop me"), sight.page.get_by_role("dialog")
    card.drag_to(sight.column("deleted"))
    expect(dialogue).to_be_visible()
    sight.page.keyboard.press("Escape")
    expect(dialogue).to_be_hidden()
    assert status_of("drop me") == "pending"

    card.drag_to(sight.column("deleted"))
    dialogue.get_by_role("button", name="Cancel").click()
    expect(dialogue).to_be_hidden()
    assert status_of("drop me") == "pending"

    card.drag_to(sight.column("deleted"))
    dialogue.get_by_role("button", name="Delete the task").click()
    expect(dialogue).to_be_visible()  # a reason is required
    dialogue.locator("textarea").fill("Made twice.")
    dialogue.get_by_role("button", name="Delete the task").click()
    expect(sight.column("deleted").locator(".tb-card")).to_contain_text("drop me")
    expect(card.locator("summary")).to_be_hidden()
    assert Comment.objects.get().body == "Made twice."
    assert complaints == []


def test_the_dialogue_asks_why_before_an_agents_task_moves(board, company, make, complaints):
    number = make("held", required_role="backend_worker")
    begin = TaskUpdate(owner="backend_worker", status=Status.IN_PROGRESS)
    worker = company.caller("backend_worker")
    services.update_task(caller=worker, task_id=number, update=begin, now=timezone.now())
    sight = board()
    card, dialogue = sight.card("held"), sight.page.get_by_role("dialog")
    card.drag_to(sight.column("completed"))
    expect(dialogue).to_contain_text("backend_worker holds this task. Why do you move it?")
    expect(dialogue.locator(".tb-final")).to_be_hidden()
    sight.page.keyboard.press("Escape")
    assert status_of("held") == "in_progress"
    assert not Intervention.objects.exists()

    card.drag_to(sight.column("completed"))
    dialogue.locator("textarea").fill("It was done by hand.")
    dialogue.get_by_role("button", name="Move the task").click()
    expect(sight.said).to_contain_text("is completed")
    row = Intervention.objects.get()
    assert (row.action_taken, row.operator) == ("move_task_completed", "ada.board")
    assert (row.trigger_condition, row.reason) == (
        "in_progress by backend_worker",
        "It was done by hand.",
    )
    assert complaints == []


def test_a_card_moves_without_any_script(browser, live_server, company, make):
    make("no script")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(page, live_server.url, PeopleGroup.BOARD)
    page.goto(f"{live_server.url}{BOARD}?owner=-")
    card = page.locator(".tb-card", has_text="no script")
    card.locator("summary").click()
    card.locator("select").select_option("in_progress")
    card.get_by_role("button", name="Move").click()
    expect(page.get_by_text("is in progress.")).to_be_visible()
    expect(page.locator("select[name=owner]")).to_have_value("-")
    assert status_of("no script") == "in_progress"
    context.close()


def test_a_tasks_page_draws_and_discusses(enter, live_server, ada, make, outside, complaints):
    first = make("ahead <b>of</b> all")
    second = make("here", blocked_by=[first])
    task = Task.objects.get(number=second)
    page = enter(PeopleGroup.OBSERVER)
    page.goto(f"{live_server.url}/admin/tasks/task/{task.id}/change/")
    drawing = page.locator(".tg-graph")
    expect(drawing.locator("a")).to_have_count(2)
    expect(drawing.locator(".tg-subject").first).to_have_text("ahead <b>of</b> all")
    page.fill("#comment-form textarea", "Is that <i>all</i>?")
    page.get_by_role("button", name="Comment").click()
    expect(page.get_by_text("Your comment was added")).to_be_visible()
    expect(page.locator("#discussion")).to_contain_text("Is that <i>all</i>?")
    expect(page.locator("#discussion")).to_contain_text("HUMAN_NOTE")
    drawing.locator("a").first.click()
    expect(page.locator("h1.tk-subject")).to_contain_text("ahead <b>of</b> all")
    assert outside == []
    assert complaints == []


CONTRAST = """boxes => {
    const light = c => {
        const x = document.createElement('canvas').getContext('2d');
        const paint = colour => { x.fillStyle = colour; x.fillRect(0, 0, 1, 1); };
        paint(getComputedStyle(document.querySelector('#dependencies')).backgroundColor);
        paint(c);
        const [r, g, b] = x.getImageData(0, 0, 1, 1).data;
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const fill = (box, part) => light(getComputedStyle(box.querySelector(part)).fill);
    return boxes.map(box => [fill(box, 'rect'), fill(box, '.tg-subject')]);
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_drawing_is_readable_in_both_themes(enter, page, live_server, ada, make, theme):
    first, second = make("begun"), make("done")
    last = make("waits", blocked_by=[first, second])
    moves = ((first, "in_progress"), (second, "in_progress"), (second, "completed"))
    for number, status in moves:
        services.update_task(
            caller=ada, task_id=number, update=TaskUpdate(status=Status(status)), now=timezone.now()
        )
    page.emulate_media(color_scheme=theme)
    page = enter(PeopleGroup.BOARD)
    task = Task.objects.get(number=last)
    page.goto(f"{live_server.url}/admin/tasks/task/{task.id}/change/")
    found = page.locator(".tg-box").evaluate_all(CONTRAST)
    assert len(found) == 3
    for back, text in found:
        assert abs(back - text) > 120, found
        assert (back < 128) is (theme == "dark")


def test_pages_fit_a_telephone(enter, live_server, page, make, complaints):
    first = make("a" * 300)
    task = Task.objects.get(number=make("搜索" * 100, blocked_by=[first]))
    page = enter(PeopleGroup.BOARD)
    page.set_viewport_size({"width": 390, "height": 844})
    for path in (BOARD, "/admin/tasks/task/measures/", f"/admin/tasks/task/{task.id}/change/"):
        page.goto(live_server.url + path)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    assert complaints == []


def test_speaks_chinese_to_who_chose_it(enter, live_server, make, complaints):
    make("一张卡片")
    page = enter(PeopleGroup.BOARD)
    chosen = {"name": "nexus_language", "value": "zh-hans", "url": live_server.url}
    page.context.add_cookies([chosen])
    page.goto(live_server.url + BOARD)
    sight = Sight(page)
    expect(page.locator(".nx-skip")).to_have_text("跳到正文")
    sight.card("一张卡片").drag_to(sight.column("in_progress"))
    expect(sight.said).to_have_text("#1 的状态现在是“进行中”。")
    options = sight.card("一张卡片").locator("select[name=status] option")
    expect(options).to_have_text(["已完成", "已删除"])
    assert complaints == []
