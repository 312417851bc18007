"""What people look at every day costs the same after years: what has ended is not read."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import pytest
from django.contrib import admin, auth
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.auth.models import Group
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from contracts.models import Contract, Deadline, Report
from core.admin import bounded
from core.admin.browsing import MomentFilter
from core.database import PLANNED, planned_for_values
from core.permissions import PeopleGroup
from documents.models import Artifact, Document, Memory
from governance.cases.models import Case, Violation
from ledger import searching
from mailroom.admin import thread
from mailroom.models import ContactGrant, Escalation, Mail, OutgoingNotice
from nexus_site.company import agent_page
from nexus_site.console import counting
from orgchart.models import Organisation
from tasks.models import Task
from tests.admin.places import list_page
from tests.people import join
from tests.plans import renew_statistics, rows_touched
from tests.settled import TABLES, fill
from toolbox.admin.frames import SHOWN
from toolbox.models import Frame, IdempotencyRecord, ModeGrant, Session
from workspace.models import Deployment, Run

FEW = 1000
"""Rows that a page looks through here; the fill has twelve times as many."""
MOST = 10_500
"""Rows that one statement may touch: a list counts up to 10,000."""
NOTHING = ("nobody", "CON-1", "MAIL-1", "a" * 40, "6f1d3c58-5b2f-4f5e-9f0e-3f0a2f0f6a11")
"""Searches that find nothing, and so might read everything."""
LONG_AGO = "2020-01-01"
SHORT = (ModeGrant, IdempotencyRecord)
"""What is found by one look for each session or agent: the whole of so short a table costs less."""


def with_few(company, monkeypatch, **rows):
    monkeypatch.setattr(counting, "SCANNED", FEW)
    monkeypatch.setattr(agent_page, "LOOKED_AT", FEW)
    monkeypatch.setattr(bounded, "LOOKED_THROUGH", FEW)
    monkeypatch.setattr(searching, "SEARCHED", FEW)
    fill(company.organisation, **rows)
    return company


@pytest.fixture
def years(company, monkeypatch):
    return with_few(company, monkeypatch)


@pytest.fixture
def months(company, monkeypatch):
    """Enough to be cut where a list looks through few rows."""
    return with_few(company, monkeypatch, rows=2 * FEW)


class Read:
    """The statements that were asked, with the first page that asked each."""

    def __init__(self) -> None:
        self.asked = {}

    @contextmanager
    def by(self, page: str) -> Iterator[None]:
        def keep(execute, sql, values, many, context):
            self.asked.setdefault(sql, (page, values, not PLANNED.get()))
            return execute(sql, values, many, context)

        with connection.execute_wrapper(keep):
            yield

    def too_much(self) -> list[tuple[str, int, str]]:
        asked = {
            sql: at
            for sql, at in self.asked.items()
            if sql.lstrip("(").startswith(("SELECT", "WITH"))
        }
        assert asked
        touched = {
            sql: rows_touched(sql, values, kept=kept) for sql, (_, values, kept) in asked.items()
        }
        return [(asked[sql][0], rows, sql) for sql, rows in touched.items() if rows > MOST]


@pytest.mark.django_db
def test_pages_read_what_is_open_or_a_page(years, board):
    read, agent = Read(), years.agent("extra_1")
    pages = [
        reverse("admin:index"),
        reverse("admin:orgchart_agent_change", args=[agent.id]),
        reverse("admin:orgchart_organisation_change", args=[agent.organisation_id]),
        *(list_page(model) for model in admin.site._registry),
        *(f"{list_page(model)}?_facets=True" for model in admin.site._registry),
    ]
    for page in pages:
        with read.by(page):
            assert board.get(page).status_code in (200, 403)
    assert read.too_much() == []


UNENDED = """
    INSERT INTO contracts_contract (id, kind, issuer_name, title, body, priority, mode,
        workspace_scope, assigned_branch, grants, environment, artifact, currency, state, version,
        created_at, closed_by, closed_reason, assignee_id, issuer_id, notice_id, organisation_id,
        deadline)
    SELECT replace(replace(mail.id, 'MAIL', 'CON'), 'fill', 'open'), 'work', 'it_manager',
        'Work', '', 'medium', 'chat_safe', '{}', '', '[]', '', '', '', 'pending', 1, now(), '', '',
        agent.id, agent.reports_to_id, mail.id, mail.organisation_id,
        now() + interval '1 day'
    FROM mailroom_mail AS mail, orgchart_agent AS agent
    WHERE mail.id LIKE '%%-fill' AND agent.handle = 'extra_1' LIMIT %s
"""


def test_the_number_of_what_waits_costs_nothing_of_what_goes_on(years, board):
    with connection.cursor() as cursor:
        cursor.execute(UNENDED, [4 * FEW])
    renew_statistics("contracts_contract")
    read = Read()
    with read.by("a page"):
        assert board.get(list_page(Organisation)).status_code == 200
    ((sql, (_, values, kept)),) = [
        (sql, at) for sql, at in read.asked.items() if "place_of_kind" in sql
    ]
    assert rows_touched(sql, values, kept=kept) < FEW


def values_of(chosen, agent):
    """Values of a filter, those that few rows have among them."""
    if isinstance(chosen, MomentFilter):
        return [LONG_AGO]
    offered = [v[0] if isinstance(v, tuple) else v for v in getattr(chosen, "lookup_choices", [])]
    field = getattr(chosen, "field", None)
    known = [value for value, _ in getattr(field, "flatchoices", None) or []]
    return [*offered, *known][:8] or ["nothing", "1", "0", str(agent.id)]


def every_question(listed, agent):
    """What a list can be asked: each filter, a search, an order of its columns."""
    for chosen in listed.filter_specs:
        for name in chosen.expected_parameters():
            yield from ({name: value} for value in values_of(chosen, agent))
    if listed.search_fields:
        yield from ({"q": term} for term in (*NOTHING, agent.handle))
    yield from ({"o": str(number)} for number in (1, -2, 3))


def unserved_questions(listed, agent):
    """Those to filters that no index serves."""
    for chosen in listed.filter_specs:
        name = chosen.expected_parameters()[0]
        for value in values_of(chosen, agent):
            chosen.used_parameters = {name: value}
            if not listed.model_admin.is_served(chosen):
                yield {name: value}


@pytest.fixture
def asked(rf, sign_in):
    """A list as somebody of the Board of every organisation asks for it."""
    return asked_by(auth.get_user(sign_in(PeopleGroup.BOARD)), rf)


def asked_by(user, rf):
    def ask(model, **question):
        request = rf.get(list_page(model), question)
        request.user, request.session = user, {}
        listed = admin.site.get_model_admin(model).get_changelist_instance(request)
        listed.is_cut = bounded.is_cut(request)
        return listed

    return ask


@pytest.mark.django_db
def test_no_question_to_a_list_reads_it_all(years, asked):
    read, agent, count = Read(), years.agent("extra_7"), 0
    for model, page in admin.site._registry.items():
        if model in SHORT or not issubclass(page.get_changelist(None), bounded.BoundedList):
            continue
        for question in every_question(asked(model), agent):
            with read.by(f"{model.__name__} {question}"), planned_for_values():
                try:
                    list(asked(model, **question).queryset[:50])
                except IncorrectLookupParameters:
                    continue
            count += 1
    assert count > 400
    assert read.too_much() == []


@pytest.mark.django_db
def test_an_index_of_one_value_serves_no_question_for_rows_without_one(asked):
    """PostgreSQL 16 and earlier look for such rows, also where the column always has a value."""
    for question, served in (
        ({"for_board__exact": "1"}, True),
        ({"for_board__isnull": "1"}, False),
    ):
        listed = asked(Document, **question)
        used = [one for one in listed.filter_specs if any(one.used_parameters.values())]
        assert [listed.model_admin.is_served(one) for one in used] == [served], question


OPEN = {
    Contract: "in_progress",
    Escalation: "open",
    Deployment: "started",
    OutgoingNotice: "pending",
    Frame: "taken",
}


@pytest.mark.django_db
class TestAFilter:
    def test_without_an_index_looks_through_the_newest_and_says_so(self, months, board, asked):
        work, agent = {"kind__exact": "work"}, months.agent("extra_7")
        listed = asked(Contract, **work)
        assert (listed.is_cut, listed.queryset.count()) == (True, FEW)
        for address in ("", "export/"):
            for model, question in ((Contract, work), (Task, {"q": "words of it"})):
                page = board.get(f"{list_page(model)}{address}", question).content.decode()
                assert "The newest 1,000 rows were looked through" in page, (address, model)
        whole = asked(Contract)
        assert (whole.is_cut, whole.queryset.count()) == (False, Contract.objects.count())
        listed = asked(Contract, **work, assignee__id__exact=str(agent.id))
        mine = Contract.objects.filter(assignee=agent).count()
        assert (listed.is_cut, listed.queryset.count()) == (False, mine)

    def test_finds_what_is_open_however_old_it_is(self, months, asked):
        for model, state in OPEN.items():
            listed = asked(model, state__exact=state)
            assert not listed.is_cut
            assert listed.queryset.count() == model.objects.filter(state=state).count() > 0

    def test_a_search_that_no_index_serves_is_cut_whatever_it_is_called(
        self, months, asked, monkeypatch
    ):
        page = admin.site.get_model_admin(Deadline)
        for fields, is_cut in ((("contract__id__exact",), False), (("stage__exact",), True)):
            monkeypatch.setattr(page, "search_fields", fields)
            assert asked(Deadline, q="remind").is_cut is is_cut


MADE = {Contract: "created_at", Frame: "opened_at", Memory: "created_at", Run: "asked_at"}
"""Tables whose ids are numbers or begin with their time, and the column of when a row was made."""


@pytest.mark.django_db
class TestWhenARowWasMade:
    def test_is_found_by_its_id_however_old_it_is(self, months, asked):
        for model, column in MADE.items():
            rows = model.objects.order_by("pk")
            for row in (rows[0], rows[rows.count() // 2]):
                day = getattr(row, column).date()
                listed = asked(model, **{f"{column}_{end}_0": str(day) for end in ("from", "to")})
                of_it = model.objects.filter(**{f"{column}__date": day})
                expected = set(of_it.values_list("pk", flat=True))
                assert set(listed.queryset.values_list("pk", flat=True)) == expected
                assert row.pk in expected
                assert not listed.is_cut

    def test_may_be_a_little_out_of_order(self, months):
        first = Frame.objects.order_by("id").first()
        Frame.objects.filter(id=first.id + 30).update(opened_at=first.opened_at)
        found = bounded.until(Frame.objects.all(), "opened_at", first.opened_at)
        assert {row.id for row in found} == {first.id, first.id + 30}
        later = first.opened_at + timedelta(minutes=30)
        Frame.objects.filter(id=first.id).update(opened_at=later)
        rest = bounded.since(Frame.objects.all(), "opened_at", later)
        assert first.id in {row.id for row in rest}

    def test_says_nothing_of_the_ids_of_imported_tasks(self, company, asked):
        made = {"organisation": company.organisation, "created_by": "agent:ceo", "subject": "Old"}
        for number in range(1, 41):
            at = timezone.now() - timedelta(days=number)
            Task.objects.create(number=number, created_at=at, **made)
        day = {f"created_at_{end}_0": str(at.date()) for end in ("from", "to")}
        assert [task.number for task in asked(Task, **day).queryset] == [40]

    def test_in_an_empty_table(self, db):
        for within in (bounded.since, bounded.until):
            for model, column in ((Frame, "opened_at"), (Contract, "created_at")):
                assert list(within(model.objects.all(), column, timezone.now())) == []


BEGINS_WITH_ITS_ORGANISATION = """
SELECT substring(indexdef FROM 'organisation_id, "?(\\w+)') FROM pg_indexes
WHERE tablename = %s AND indexdef LIKE '%%(organisation_id, %%' AND indexdef NOT LIKE '%% WHERE %%'
"""


@pytest.mark.django_db
def test_rows_of_one_organisation_are_a_range_of_an_index(rf):
    """Spec: people 64. Else those of a quiet one are looked for among the rows of all others.

    PostgreSQL expects them everywhere in a table, and looks from its end.
    """
    without = []
    for model, page in admin.site._registry.items():
        if model._meta.db_table in TABLES and page.organisation_path == "organisation_id":
            ordering = page.get_ordering(rf.get(list_page(model))) or model._meta.ordering
            given = next(iter(ordering), "pk")
            first = given.removeprefix("-") if isinstance(given, str) else "pk"
            first = model._meta.pk.name if first == "pk" else first
            with connection.cursor() as cursor:
                cursor.execute(BEGINS_WITH_ITS_ORGANISATION, [model._meta.db_table])
                if (first,) not in cursor.fetchall():
                    without.append((model.__name__, first))
    assert without == []


MODELS = [
    model
    for model, page in admin.site._registry.items()
    if model._meta.db_table in TABLES
    and page.organisation_path == "organisation_id"
    and model is not Session  # whose ids say nothing of time: what is found is sorted
]
"""Tables that say of each row whose it is."""


@pytest.fixture
def quiet():
    return [Organisation.objects.create(slug=f"quiet-{n}", name="Quiet") for n in "ab"]


@pytest.fixture
def of_two(rf, django_user_model):
    """A list as a member of the Board of two organisations asks for it."""

    def asked_of(*organisations):
        user = django_user_model.objects.create(username="of_two", is_staff=True)
        user.groups.add(Group.objects.get(name=PeopleGroup.BOARD))
        return asked_by(join(user, *organisations), rf)

    return asked_of


@pytest.mark.django_db
def test_a_member_of_two_organisations_sees_the_newest_rows_of_both(years, asked, of_two, quiet):
    few = of_two(years.organisation, quiet[0])
    for model in (Contract, Session, Task):
        for question in ({}, {"p": "3"}):
            found, all_rows = few(model, **question), asked(model, **question)
            assert [*found.result_list] == [*all_rows.result_list]
            assert len(found.result_list) == 50
            assert found.result_count == all_rows.result_count
            assert not found.is_cut
    assert few(Contract, kind__exact="work").is_cut


OLDEST = """
UPDATE {table} SET organisation_id = %s
WHERE ctid IN (SELECT ctid FROM {table} WHERE organisation_id = %s ORDER BY {key} LIMIT 100)
"""


MANY_ORGANISATIONS = "ALTER TABLE {table} ALTER COLUMN organisation_id SET (n_distinct = 300)"


@pytest.mark.django_db
def test_old_rows_of_two_quiet_organisations_are_found_by_an_index_each(years, of_two, quiet):
    """Spec: people 64. What has been written since by others is not read."""
    asked, read = of_two(*quiet), Read()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_sort = off")  # as among many rows of many organisations
        cursor.execute("SET LOCAL session_replication_role = replica")
        for model in MODELS:
            for each in quiet:
                meta = model._meta
                sql = OLDEST.format(table=meta.db_table, key=meta.pk.column)
                cursor.execute(sql, [each.id, years.organisation.id])
            cursor.execute(MANY_ORGANISATIONS.format(table=meta.db_table))
            renew_statistics(meta.db_table)
    for model in MODELS:
        for question in ({}, *unserved_questions(asked(model), years.agent("extra_7"))):
            with read.by(f"{model.__name__} {question}"), suppress(IncorrectLookupParameters):
                found = len(asked(model, **question).result_list)
                assert question or found == 50
    assert [(page, sql[-250:]) for page, _, sql in read.too_much()] == []


@pytest.mark.django_db
def test_the_open_stacks_are_found_by_their_own_index(years, board):
    """The open frames may be the newest of a long table: by their ids it would all be read."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
    read = Read()
    with read.by("frames"):
        assert board.get(list_page(Frame)).status_code == 200
    read.asked = {sql: at for sql, at in read.asked.items() if sql.endswith(f"LIMIT {SHOWN + 1}")}
    assert read.asked
    assert all(rows_touched(s, at[1], kept=at[2]) < FEW for s, at in read.asked.items())


FOUND = {
    Frame: (lambda row: str(row.id), lambda row: row.assignee.handle),
    Session: (lambda row: str(row.id), lambda row: row.agent.handle),
    ModeGrant: (lambda row: row.contract_ref, lambda row: row.session.agent.handle),
    IdempotencyRecord: (lambda row: row.key,),
    OutgoingNotice: (lambda row: str(row.event_id),),
    Deployment: (lambda row: row.id,),
    Run: (lambda row: str(row.id), lambda row: row.agent.handle),
    Memory: (lambda row: row.author.handle,),
    Artifact: (lambda row: row.agent.handle,),
    Escalation: (lambda row: row.mail_id,),
    ContactGrant: (lambda row: row.contract_ref,),
    Report: (lambda row: row.contract_id,),
    Case: (lambda row: row.id,),
    Violation: (lambda row: row.case_id, lambda row: row.agent.handle),
}
"""Of each list what is typed to find a row of it."""


@pytest.mark.django_db
def test_a_search_finds_the_oldest_row(months, asked):
    for model, typed in FOUND.items():
        row = model.objects.order_by("pk").first()
        for written in typed:
            listed = asked(model, q=written(row))
            assert row in listed.queryset, (model, written(row))
            assert not listed.is_cut
            assert listed.queryset.count() < FEW
        assert not asked(model, q=NOTHING[-1]).queryset


@pytest.mark.django_db
def test_an_address_cannot_ask_for_another_order(company, asked):
    ordered = [asked(Contract, **question).queryset.query.order_by for question in ({}, {"o": "3"})]
    assert ordered[0] == ordered[1]


@pytest.mark.django_db
def test_a_thread_is_read_no_further_than_it_is_shown(company):
    words = {"to": "it_manager", "type": "info", "subject": "A word", "body": "Many more follow."}
    first = Mail.objects.get(
        id=company.call("backend_worker", "send_mail", **words).result["mail_id"]
    )
    answers = [
        Mail(**_columns_of(first), id=f"MAIL-{n:017}-many", reply_to=first) for n in range(9)
    ]
    last = answers[-1]
    more = [Mail(**_columns_of(first), id=f"MAIL-{n:017}-more", reply_to=last) for n in range(2000)]
    Mail.objects.bulk_create([*answers, *more])
    assert rows_touched(thread.THREAD, {"root": first.id}) <= 2 * thread.MOST
    shown = thread.thread_of(first)
    assert len(shown) == thread.MOST
    assert [(step.this, step.depth) for step in shown[:2]] == [(True, 0), (False, 1)]


def _columns_of(mail):
    names = (field.attname for field in Mail._meta.concrete_fields)
    return {name: getattr(mail, name) for name in names if name not in ("id", "reply_to_id")}
