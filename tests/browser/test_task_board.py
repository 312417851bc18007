"""The task board in a real browser: a card is dragged, and put back where the server refuses."""

from django.utils import timezone
from playwright.sync_api import expect

from orgchart.actors import Person
from orgchart.models import Organisation
from orgchart.people import Desk
from tasks import services
from tasks.models import Task
from tasks.planning import Update


def test_a_card_is_dragged_and_a_stale_one_goes_home(enter, company, live_server, complaints):
    organisation = Organisation.objects.get()
    ada = Person(username="ada", organisation_id=organisation.id, offices=frozenset({"Board"}))
    for subject in ("drag me", "stale", "third"):
        services.create_task(caller=ada, subject=subject, now=timezone.now())
    page = enter(Desk.BOARD)
    page.goto(f"{live_server.url}/admin/tasks/task/board/")

    def card(subject):
        return page.locator(".tb-card", has_text=subject)

    def column(status):
        return page.locator(f".tb-column[data-status={status}]")

    card("drag me").drag_to(column("in_progress"))
    expect(page.locator("#tb-said")).to_contain_text("is in_progress")
    expect(column("in_progress").locator(".tb-card")).to_contain_text("drag me")
    assert Task.objects.get(subject="drag me").status == "in_progress"

    card("third").drag_to(column("completed"))
    expect(column("completed").locator(".tb-card")).to_have_count(0)

    stale = Task.objects.get(subject="stale")
    services.update_task(
        caller=ada,
        task_id=str(stale.number),
        update=Update(description="changed meanwhile"),
        now=timezone.now(),
    )
    assert complaints == []
    card("stale").drag_to(column("in_progress"))
    expect(page.locator("#tb-said.tb-bad")).to_be_visible()
    expect(column("pending").locator(".tb-card", has_text="stale")).to_have_count(1)
    assert Task.objects.get(subject="stale").status == "pending"
