"""The ledger's pages: found quickly, and nothing on them changes anything."""

import json
from urllib.parse import quote

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from core.events import EventOutcome
from ledger import services
from ledger.admin import filters
from ledger.models import Event as EventRow
from ledger.models import Seal
from tests.ledger.world import make_event
from tests.people import join

EVENTS = "admin:ledger_event_changelist"


@pytest.fixture
def person(client, db):
    """Somebody whose only rights are to look."""
    user = get_user_model().objects.create_user("observer", password="x", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="ledger", codename__startswith="view_")
    )
    client.force_login(join(user))
    return client


@pytest.fixture
def board(client, db):
    """Somebody with every right there is."""
    client.force_login(get_user_model().objects.create_superuser("board", password="x"))
    return client


@pytest.fixture
def events(db) -> dict[str, int]:
    with transaction.atomic():
        return {
            "mail": services.insert_event(make_event(request_id="req-1")),
            "denied": services.insert_event(
                make_event(
                    action="tool.denied",
                    actor="agent:frontend_worker",
                    decision=EventOutcome.DENY,
                    code="MODE_DENIED",
                    reason="<script>alert(1)</script>" + "x" * 100,
                    tool="read_file",
                    subject="session:7",
                    organisation_id=2,
                    details={"html": "<b>"},
                )
            ),
        }


def shown(client, query: str = "") -> set[int]:
    answer = client.get(reverse(EVENTS) + query)
    assert answer.status_code == 200
    return {row.seq for row in answer.context_data["cl"].result_list}


class TestEventPages:
    def test_list_every_event(self, person, events):
        assert shown(person) == set(events.values())

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ("?decision__exact=deny", {"denied"}),
            ("?organisation=2", {"denied"}),
            ("?code=MODE_DENIED", {"denied"}),
            ("?action=mail.delivered", {"mail"}),
            ("?tool=read_file", {"denied"}),
            ("?actor=agent:back", {"mail"}),
            ("?at_from_0=2026-11-21&at_from_1=00:00:00", {"mail", "denied"}),
            ("?at_to_0=2026-11-20&at_to_1=00:00:00", set()),
            ("?at_from_0=2026-11-21&at_to_0=2026-11-21", {"mail", "denied"}),
            ("?at_from_0=tomorrow&at_to_0=yesterday", {"mail", "denied"}),
            ("?q=agent:frontend", {"denied"}),
            ("?q=mail:MAIL-1", {"mail"}),
            ("?q=session:", {"denied"}),
            ("?q=req-1", {"mail"}),
            ("?q=req", set()),
            ("?q=99999999999999999999999", set()),
            ("?q=", {"mail", "denied"}),
        ],
    )
    def test_find(self, person, events, query, names):
        assert shown(person, query) == {events[name] for name in names}

    def test_find_an_event_by_its_number(self, person, events):
        assert shown(person, f"?q={events['mail']}") == {events["mail"]}

    @pytest.mark.parametrize("name", ["organisation", "actor", "code", "action", "tool"])
    @pytest.mark.parametrize("value", ["' OR 1=1 --", "9" * 40, "-1", "\ud83d\ude00", "%"])
    def test_answer_garbage_with_nothing(self, person, events, name, value):
        garbage = quote(value.encode("utf-16", "surrogatepass").decode("utf-16"))
        assert shown(person, f"?{name}={garbage}") == set()

    @pytest.mark.parametrize(
        "value",
        ["' OR 1=1 --", "9" * 40, "-1", "😀", "a:b", "agent:", "9999-12-31", "0001-01-01"],
    )
    def test_survive_garbage_in_a_search(self, person, events, value):
        shown(person, f"?q={value}")
        assert person.get(reverse("admin:feed"), {"q": value}).status_code == 200

    @pytest.mark.parametrize("query", ["q=%00", "actor=a%00", "at_from_0=%00"])
    def test_refuse_what_no_database_can_hold(self, person, events, query):
        assert person.get(reverse(EVENTS) + f"?{query}").status_code == 400

    def test_never_count_everything(self, person, events, monkeypatch):
        monkeypatch.setattr("core.admin.browsing.COUNTED", 1)
        answer = person.get(reverse(EVENTS))
        assert answer.context_data["cl"].paginator.count == 1

    def test_cost_few_queries_of_the_ledger(self, person, events):
        with CaptureQueriesContext(connection) as queries:
            person.get(reverse(EVENTS))
        of_the_ledger = [q["sql"] for q in queries if 'FROM "ledger_' in q["sql"]]
        assert len(of_the_ledger) <= 6, "a count, a page, three filters' values, and the last seal"

    def test_name_organisations_as_a_higher_room_says(self, person, events, monkeypatch):
        monkeypatch.setattr(filters, "organisation_names", lambda: [{2: "NEXUS & Co"}])
        page = person.get(reverse(EVENTS)).content.decode()
        assert "NEXUS &amp; Co" in page

    def test_show_one_event_whole_and_escaped(self, person, events):
        row = EventRow.objects.get(seq=events["denied"])
        page = person.get(reverse("admin:ledger_event_change", args=[row.seq])).content.decode()
        assert "<script>alert(1)" not in page
        assert "&lt;script&gt;alert(1)" in page
        assert bytes(row.digest).hex() in page
        assert "not sealed yet" in page

    def test_show_the_seal_of_an_event(self, sealed_with_people, board):
        page = board.get(
            reverse("admin:ledger_event_change", args=[sealed_with_people[5]])
        ).content.decode()
        assert "seal 2" in page

    def test_are_for_those_who_may_look(self, client, db):
        user = get_user_model().objects.create_user("nobody", password="x", is_staff=True)
        client.force_login(user)
        assert client.get(reverse(EVENTS)).status_code == 403


class TestSealPages:
    def test_show_seals(self, sealed_with_people, board):
        page = board.get(reverse("admin:ledger_seal_changelist")).content.decode()
        seal = Seal.objects.get(number=2)
        assert f"{bytes(seal.root).hex()[:16]}…" in page
        detail = board.get(reverse("admin:ledger_seal_change", args=[2])).content.decode()
        assert bytes(seal.signature).hex() in detail


class TestNobodyChanges:
    @pytest.mark.parametrize("model", ["event", "seal"])
    def test_even_with_every_right(self, sealed_with_people, board, model):
        number = sealed_with_people[0] if model == "event" else 1
        for page in ("add", "delete", "change"):
            words = [] if page == "add" else [number]
            url = reverse(f"admin:ledger_{model}_{page}", args=words)
            assert board.post(url, {"post": "yes", "reason": "x"}).status_code == 403
        answer = board.post(
            reverse(f"admin:ledger_{model}_changelist"),
            {"action": "delete_selected", "_selected_action": [number], "post": "yes"},
        )
        assert answer.status_code == 200
        assert (
            EventRow.objects.filter(
                seq__in=sealed_with_people, actor="agent:backend_worker"
            ).count()
            == 12
        )
        assert Seal.objects.count() == 3


def test_details_are_shown_as_json(person, events):
    page = person.get(
        reverse("admin:ledger_event_change", args=[events["denied"]])
    ).content.decode()
    assert "html" in page
    assert json.dumps("<b>") not in page
