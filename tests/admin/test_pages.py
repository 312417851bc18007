"""Every page of every table: who opens it, who is kept out, and what it costs."""

import uuid
from itertools import chain

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.search import SearchVectorField
from django.db import connection, transaction
from django.db.models import (
    NOT_PROVIDED,
    BinaryField,
    BooleanField,
    CharField,
    DateTimeField,
    IntegerField,
    JSONField,
    TextField,
    UUIDField,
)
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from core.actions import Action
from core.permissions import Deed, PeopleGroup
from ledger.models import Event
from ledger.services import record
from nexus_site.console.group_rights import rights_of
from orgchart.keys import issue_key
from orgchart.models import Organisation, ToolOverride
from tasks.models import Task
from tests.admin.places import change_page, list_page, page_of
from tests.admin.rows import fill
from tests.browser.day import day_of, vandalise
from tests.people import join
from toolbox.models import Session

ALL = [m for room in settings.ROOMS for m in apps.get_app_config(room).get_models()]
MODELS = [m for m in ALL if m in admin.site._registry]
HR_EDITS = {
    "organisation": ("change",),
    "role": ("add", "change", "delete"),
    "group": ("add", "change", "delete"),
    "agent": ("add", "change"),
    "alias": ("add", "change", "delete"),
    "mailtyperule": ("add", "change", "delete"),
    "contactrule": ("add", "change", "delete"),
    "tooloverride": ("add", "change", "delete"),
}
INSIDE = {
    "tasks.Comment",  # on the page of its task
    "tasks.Dependency",  # as above
    "tasks.Counter",  # a number, seen in the newest task
    "tasks.Experience",  # sums of tasks
    "tasks.FeedbackHook",  # a secret
    "toolbox.Usage",  # counters of the quotas
    "toolbox.Stored",  # as above
    "toolbox.Watch",  # which process waits for which agent
    "documents.KeptFile",  # read with the mail it was attached to
    "documents.MemoryFile",  # the state of a file that people edit
    "contracts.OrgChangeLine",  # a part of its contract
    "workspace.Branch",  # on the page of its repository
    "workspace.Draft",  # an agent's work before it is pushed
    "orgchart.Membership",  # on the page of its user
    "orgchart.GivenPassword",  # a flag of its user
    "orgchart.SavedFilter",  # on the list that it filters
    "workspace.WebUse",  # counts searches of a day
    "workspace.UserNumber",  # the number of an agent's user of the system
    "orgchart.Pause",  # on the page of its agent or organisation
    "governance.Artifact",  # on the page of its case
    "governance.Note",  # as above
    "governance.CaseOfficer",  # as above
    "governance.Violation",  # as above
    "governance.Intervention",  # as above
    "governance.CodeAttempt",  # counts wrong confirmation codes
}
"""Tables without a page of their own, and why."""
MOST_QUERIES = 16
"""Session, person, groups, rights, memberships, the filters' choices, the count, the page itself,
and for the number of what waits: the rooms, the scheduler, and the seals (four)."""


WITHOUT_HISTORY = set()
"""Tables whose rows have no page of history."""


SHA256 = "0" * 64
NEEDED = {
    "ledger.Seal": lambda: {"hi": 9},
    "orgchart.PendingChange": lambda: {"organisation": Organisation.objects.first()},
}
"""What the checks of a table ask for, where `row_of` cannot see it in a field."""


MADE = (
    (DateTimeField, timezone.now),
    (IntegerField, lambda: 1),
    (BooleanField, bool),
    (CharField | TextField, lambda: "x"),
    (JSONField, dict),
    (ArrayField, list),
    (UUIDField, uuid.uuid4),
    (BinaryField, lambda: b"x"),
    (SearchVectorField, str),
)
"""What a field of each kind can hold."""


def value_of(field):
    """A value that the field can hold."""
    found = [made() for kind, made in MADE if isinstance(field, kind)]
    assert found, field
    return found[0]


def first_rows():
    """A row of each table that has a page: the first one, or one of no meaning."""
    return [model._default_manager.first() or row_of(model) for model in MODELS]


def row_of(model):
    """A row of a table that nothing was written to: what it must hold, and no more."""
    values = {}
    for field in model._meta.concrete_fields:
        if field.has_default() or field.null or field.db_default is not NOT_PROVIDED:
            continue
        if field.is_relation:
            values[field.name] = field.related_model._default_manager.first()
        elif field.choices:
            values[field.name] = field.choices[0][0]
        elif not field.blank:
            values[field.name] = value_of(field)
    return model._default_manager.create(**values | NEEDED.get(label(model), dict)())


MISTYPED = (
    ("organisation__id__exact", "999999999999999999999"),
    ("state__exact", "x'--"),
    ("q", "x'--"),
    ("q", "999999999999999999999"),
)


def label(model):
    return model._meta.label


@pytest.fixture
def played(company):
    return day_of(company)


@pytest.fixture
def everything(company, played):
    """The day, and rows of every state that it leaves out."""
    fill(company)


class TestEveryTable:
    def test_has_a_page(self):
        missing = {label(m) for m in ALL if m not in admin.site._registry}
        assert missing <= INSIDE

    @pytest.mark.parametrize(
        "desk", [PeopleGroup.BOARD, PeopleGroup.REVIEWER, PeopleGroup.OBSERVER]
    )
    def test_opens_for_who_reads_everything(self, sign_in, company, desk):
        client = sign_in(desk)
        answers = {label(m): client.get(list_page(m)).status_code for m in MODELS}
        assert set(answers.values()) == {200}, answers

    def test_opens_for_hr_where_it_is_about_the_organisation(self, hr, company):
        answers = {label(m): hr.get(list_page(m)).status_code for m in MODELS}
        inside = {name for name, status in answers.items() if status == 200}
        about = {label(m) for m in MODELS if m._meta.app_label in ("orgchart", "toolbox")}
        assert inside == about - {"toolbox.Frame", "toolbox.IdempotencyRecord"} | {"tasks.Task"}

    def test_is_closed_to_staff_without_a_desk(self, nobody, company):
        assert {nobody.get(list_page(m)).status_code for m in MODELS} == {403}

    def test_is_closed_to_who_is_no_staff(self, client, company):
        assert {client.get(list_page(m)).status_code for m in MODELS} == {302}

    def test_opens_each_of_its_rows_and_their_histories(self, observer, company, everything):
        rows = first_rows()
        join(get_user_model().objects.get(username="observer"))
        without = set()
        for row in rows:
            answer = observer.get(change_page(row))
            assert answer.status_code == 200, label(type(row))
            assert "Save" not in answer.content.decode().replace("autosave", ""), label(type(row))
            if observer.get(page_of(row, "history")).status_code != 200:
                without.add(label(type(row)))
        assert without == WITHOUT_HISTORY

    def test_takes_every_filter_it_offers(self, observer, company, played):
        """A filter's address that a person typed wrong is an answer, never a failure."""
        for model in MODELS:
            for field, value in MISTYPED:
                status = observer.get(list_page(model), {field: value}).status_code
                assert status in (200, 302, 400), (label(model), field, value)

    def test_refuses_what_no_database_can_hold(self, observer, company):
        for model in MODELS:
            assert observer.get(list_page(model), {"q": "\x00"}).status_code == 400
            assert observer.get(f"{list_page(model)}%00/change/").status_code == 400

    def test_costs_few_queries_whatever_it_holds(self, observer, company, played):
        for model in MODELS:
            observer.get(list_page(model))
            with CaptureQueriesContext(connection) as seen:
                observer.get(list_page(model))
            assert len(seen) <= MOST_QUERIES, (label(model), [q["sql"][:150] for q in seen])


class TestAnAgentsPage:
    def test_asks_for_each_thing_once(self, observer, company, now):
        agent = company.agent("qa_worker")
        agent.co_managers.add(company.agent("hr_manager"))
        key = issue_key(agent=agent, caller=company.person(PeopleGroup.BOARD), now=now)
        observer.get(change_page(agent))
        with CaptureQueriesContext(connection) as seen:
            page = observer.get(change_page(agent)).content.decode()
        assert len(seen) <= 28, [q["sql"] for q in seen]
        assert key[:8] in page
        assert "hr_manager" in page


class TestTheBoardsFormOfAnAgent:
    def test_shows_its_keys(self, board, company, now):
        agent = company.agent("qa_worker")
        key = issue_key(agent=agent, caller=company.person(PeopleGroup.BOARD), now=now)
        assert key[:8] in board.get(change_page(agent)).content.decode()


class TestLooking:
    def test_changes_nothing_anywhere(self, board, hr, company, played):
        """Every page by GET, for those who may act on it: no row and no event is born."""
        before = snapshot()
        for client in (board, hr):
            for model in MODELS:
                client.get(list_page(model))
            for row in filter(None, (model._default_manager.first() for model in MODELS)):
                for kind in ("change", "delete", "history"):
                    client.get(page_of(row, kind))
                for act in getattr(admin.site._registry[type(row)], "all_acts", list)():
                    client.get(f"{change_page(row).removesuffix('change/')}{act.name}/")
        client.get("/admin/explain/?ask=tool&agent=ceo&tool=send_mail&mode=chat_safe")
        assert snapshot() == before

    def test_shows_no_agents_words_as_markup(self, board, company, played):
        """HTML in every field an agent writes is text (Spec: people 24)."""
        assert vandalise(company) >= 7
        of_tables = [[list_page(model), *rows_of(model)] for model in MODELS]
        escaped = 0
        for address in chain(["/admin/"], *of_tables):
            html = board.get(address).content.decode()
            assert "<script>document.title" not in html, address
            assert "<img src=x onerror" not in html, address
            escaped += "&lt;script&gt;document.title" in html
        assert escaped >= 15
        shown = board.get(change_page_of_mail(played["hostile"])).content.decode()
        assert "&lt;script&gt;document.title" in shown


class TestSidePaths:
    def test_autocomplete_answers_who_may_look_at_the_table_only(self, board, nobody, hr, company):
        def ask(client, model, field):
            return client.get(
                "/admin/autocomplete/",
                {"app_label": model[0], "model_name": model[1], "field_name": field, "term": "ceo"},
            )

        found = ask(board, ("mailroom", "mail"), "sender")
        assert [row["text"] for row in found.json()["results"]] == ["ceo"]
        assert ask(nobody, ("mailroom", "mail"), "sender").status_code == 403
        assert ask(hr, ("orgchart", "apikey"), "agent").status_code == 200
        assert ask(board, ("mailroom", "mail"), "contract").status_code == 403
        assert ask(board, ("orgchart", "organisation"), "groups").status_code == 403

    def test_none_leads_to_a_public_page_of_a_row(self, nobody):
        """No row has one; a key that its table could not hold was answered with 500."""
        table = ContentType.objects.get_for_model(Session)
        assert nobody.get(f"/admin/r/{table.pk}/1/").status_code == 404

    def test_each_room_has_its_index_for_who_may_see_one_of_its_tables(
        self, board, nobody, company
    ):
        for room in ("ledger", "orgchart", "toolbox", "mailroom", "contracts", "documents"):
            assert board.get(f"/admin/{room}/").status_code == 200
            assert nobody.get(f"/admin/{room}/").status_code == 404

    def test_the_search_for_tables_names_only_those_one_may_see(self, hr, company):
        html = hr.get("/admin/search/", {"s": "mail"}).content.decode()
        assert "mailroom/mail/" not in html
        assert "orgchart/mailtyperule/" in html

    def test_no_method_of_a_browser_slips_past(self, observer, company):
        row = company.agent("ceo")
        for method in ("put", "patch", "delete"):
            answer = getattr(observer, method)(change_page(row))
            assert answer.status_code == 200
        row.refresh_from_db()
        assert row.handle == "ceo"


class TestRights:
    def test_are_what_decisions_say(self, groups):
        """The groups in the database, against the table in words (Spec: people 2)."""
        held = {
            desk: {
                f"{p.content_type.app_label}.{p.codename}"
                for p in group.permissions.select_related("content_type")
            }
            for desk, group in groups.items()
        }
        looking = {f"{m._meta.app_label}.view_{m._meta.model_name}" for m in ALL}
        inside = {n for n in looking if n.startswith(("orgchart.", "toolbox."))}
        inside -= {"toolbox.view_frame", "toolbox.view_idempotencyrecord"}  # texts of agents
        work = {"tasks.view_task", "tasks.view_dependency"}
        editing = {f"orgchart.{v}_{m}" for m, verbs in HR_EDITS.items() for v in verbs}
        people = {"auth.view_user", "auth.add_user", "auth.change_user", "auth.view_group"}
        board_acts = {
            "orgchart.issue_apikey",
            "orgchart.revoke_apikey",
            "orgchart.activate_agent",
            "toolbox.switch_mode",
            "workspace.approve_skill",
            "contracts.issue_contract",
            "contracts.cancel_contract",
            "tasks.comment_task",
            "tasks.approve_task",
            "tasks.take_in_feedback",
        }
        assert held[PeopleGroup.OBSERVER] == looking | {
            "tasks.comment_task",
            "governance.note_case",
        }
        assert held[PeopleGroup.REVIEWER] == looking | {
            "governance.note_case",
            "governance.amend_case",
        }
        assert held[PeopleGroup.HR] == inside | work | editing | {
            "orgchart.activate_agent",
            "orgchart.pause_agent",
            "orgchart.withdraw_pendingchange",
        }
        assert held[PeopleGroup.BOARD] >= looking | people | board_acts
        decides = {"orgchart.confirm_pendingchange", "orgchart.reject_pendingchange"}
        assert held[PeopleGroup.BOARD] >= decides | editing | {"orgchart.set_board_settings"}
        deleting = {name for name in held[PeopleGroup.BOARD] if ".delete_" in name}
        assert deleting <= editing, "only rows of the policy are deleted"

    def test_no_group_edits_what_only_services_write(self, groups):
        closed = {
            "mail",
            "mailrejection",
            "event",
            "seal",
            "contract",
            "report",
            "verdict",
            "apikey",
        }
        for desk in PeopleGroup:
            for room in settings.ROOMS:
                for name in rights_of(desk, room):
                    verb, _, model = name.partition("_")
                    assert not (verb in ("add", "change", "delete") and model in closed), name

    @pytest.mark.parametrize("table", ["frame", "idempotencyrecord"])
    def test_hr_reads_nothing_that_agents_write_to_each_other(self, groups, hr, observer, table):
        """Spec: people 52."""
        for address in ("changelist", "export"):
            page = reverse(f"admin:toolbox_{table}_{address}")
            assert hr.get(page).status_code == 403
            assert observer.get(page).status_code == 200
        assert hr.get(reverse("admin:toolbox_session_changelist")).status_code == 200

    def test_hr_reads_no_reason_that_an_agent_gave(self, company, hr, observer):
        """Spec: people 52."""
        taken = {"agent": "backend_worker", "tool": "run_test", "modes": [], "reason": "SECRET"}
        assert company.call("it_manager", "manage_tools", action="tighten", **taken).code == "OK"
        page = page_of(ToolOverride.objects.get(), "history")
        assert ["SECRET" in each.get(page).content.decode() for each in (hr, observer)] == [
            False,
            True,
        ]
        assert "it_manager" in hr.get(page).content.decode(), "who did it, and what, is shown"

    def test_hr_reads_no_reason_of_an_agent_in_the_history_of_a_task(self, company, hr, observer):
        """Spec: people 52."""
        number = company.call("it_manager", "task_create", subject="Repair").result["id"]
        by, subject = company.caller("it_manager"), f"task:nexus/{number}"
        with transaction.atomic():
            record(Action.TASK_RELEASED, by=by, at=timezone.now(), subject=subject, reason="SECRET")
        page = change_page(Task.objects.get())
        assert ["SECRET" in each.get(page).content.decode() for each in (hr, observer)] == [
            False,
            True,
        ]

    def test_hr_is_given_nothing_about_people(self, groups):
        names = {p.content_type.app_label for p in groups[PeopleGroup.HR].permissions.all()}
        assert "auth" not in names

    def test_a_right_taken_out_of_the_table_is_taken_away(self, groups, monkeypatch):
        from nexus_site.console import group_rights

        assert groups[PeopleGroup.BOARD].permissions.filter(codename="revoke_apikey").exists()
        monkeypatch.setattr(
            group_rights, "Deed", [deed for deed in Deed if deed is not Deed.REVOKE_KEY]
        )
        group_rights.grant(apps.get_app_config("orgchart"))
        assert not groups[PeopleGroup.BOARD].permissions.filter(codename="revoke_apikey").exists()


def snapshot():
    """How many rows every table has, and the last event: what looking must not move."""
    from orgchart.models import Organisation

    return (
        {label(m): m._default_manager.count() for m in MODELS},
        Event.objects.order_by("-seq").values_list("seq", flat=True).first(),
        list(Organisation.objects.values_list("id", "policy_version")),
    )


def rows_of(model):
    return [change_page(row) for row in model._default_manager.all()[:5]]


def change_page_of_mail(mail_id):
    from mailroom.models import Mail

    return change_page(Mail(id=mail_id))


@pytest.mark.parametrize("kind", ["change", "history"])
def test_a_row_that_does_not_exist_has_our_page_that_says_so(board, company, kind):
    for model in MODELS:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{kind}"
        answer = board.get(reverse(name, args=["999999999"]))
        assert answer.status_code == 404, label(model)
        assert "There is no such page" in answer.content.decode(), label(model)
    assert "exist" not in board.get("/admin/").content.decode()
