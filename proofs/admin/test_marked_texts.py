"""A mark in every written text of the database, and which pages and files show it to whom.

The mark is markup, which no page shows as such.
"""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import chain
from urllib.parse import urljoin, urlsplit

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.db import DataError, IntegrityError, connection, transaction

from core.admin.exporting import FORMATS
from core.permissions import PeopleGroup
from ledger.models import Event
from orgchart.models import Membership
from tasks.models import Comment, Task
from tests.admin.places import addresses_of, addresses_of_the_site, list_page
from tests.admin.rows import fill
from tests.browser.day import day_of
from tests.browser.task_week import work
from tests.company import load_company
from tests.governance.cases.world import Play

MODELS = [model for room in settings.ROOMS for model in apps.get_app_config(room).get_models()]
MARKUP = '<i id="zq'
MARK = re.compile(r"zq\d+qz")
SITE = "http://127.0.0.1"
LIKE_IT = 2
"""Pages of one kind that are opened for the links on others."""

HR_READS = {
    "ledger.Event.reason of people",
    "orgchart.Agent.job_description",
    "orgchart.Agent.system_prompt",
    "orgchart.Agent.title",
    "orgchart.MailTypeRule.description",
    "orgchart.Organisation.description",
    "orgchart.Organisation.name",
    "orgchart.Role.summary",
    "orgchart.Role.title",
    "tasks.Task.subject",
    "toolbox.JobRun.name",
    "toolbox.ModeGrant.reason",
}
"""By hand (Spec: people 52): texts of people, and the subject of a task. No agent gives a reason
for a mode."""


SHARED = "workspace.Skill."
"""Skills belong to the installation: every organisation has them."""


@pytest.fixture
def played(company):
    """A day, rows of every state that it leaves out, and a case."""
    day_of(company)
    fill(company)
    newest = Task.objects.order_by("pk").last()
    Comment.objects.create(task=newest, author="agent:it_manager", body="Done soon.")
    case = Play(load_company("constitution"), request="Greet by name", title="Greeting")
    case.to("IMPLEMENTATION")


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_hr_reads_no_text_of_an_agent_but_the_subjects_of_tasks(sign_in, played, language):
    marks = mark_every_text()
    load_company("dev-team")
    client = sign_in(PeopleGroup.HR)
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = language
    hr = shown_to(client, marks)
    assert hr == HR_READS & {*marks.values()}, hr ^ HR_READS


def test_the_board_is_shown_what_is_kept_from_hr(sign_in, played):
    """The marks are where the pages show them: HR would see them."""
    marks = mark_every_text()
    load_company("dev-team")
    seen = shown_to(sign_in(PeopleGroup.BOARD), marks)
    kept = {
        "contracts.Contract.title",
        "contracts.Report.body",
        "documents.Memory.text",
        "governance.Case.request",
        "ledger.Event.reason of agents",
        "mailroom.Mail.body",
        "tasks.Comment.body",
        "tasks.Task.description",
        "toolbox.Frame.instruction",
        "workspace.Skill.text",
    }
    assert kept <= seen, kept - seen


@pytest.mark.parametrize("group", PeopleGroup)
def test_nobody_reads_a_text_of_another_organisation(sign_in, played, group):
    marks = mark_every_text()
    team = load_company("dev-team")
    work(team)
    client = sign_in(group)
    Membership.objects.all().delete()
    Membership.objects.create(
        person_id=client.session["_auth_user_id"],
        organisation=team.organisation,
        added_by="system:tests",
    )
    assert {name for name in shown_to(client, marks) if not name.startswith(SHARED)} == set()


def mark_every_text():
    """Put a mark of its own into each column with words in it; which column has which mark."""
    marks = {}
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no trigger keeps a row
        for model in MODELS:
            for column in model._meta.concrete_fields:
                kind = column.get_internal_type()
                if kind in {"CharField", "TextField", "JSONField"} and not column.choices:
                    _mark(cursor, model, column, marks)
        cursor.execute("SET session_replication_role = origin")
    return marks


def _mark(cursor, model, column, marks):
    rows = model._base_manager.all()
    parts = {"": rows}
    if (model, column.name) == (Event, "reason"):
        by_agents = {"actor__startswith": "agent:"}
        parts = {" of agents": rows.filter(**by_agents), " of people": rows.exclude(**by_agents)}
    for part, some in parts.items():
        name = f"zq{len(marks) + 100}qz"
        for key, value in some.values_list("pk", column.name):
            new = marked(value, f'<i id="{name}">', whole=column.get_internal_type() == "TextField")
            if new != value and _write(cursor, model, column, key, new):
                marks[name] = f"{model._meta.label}.{column.name}{part}"


def _write(cursor, model, column, key, new):
    """Write it; whether the table lets such a text be there."""
    table, name, first = model._meta.db_table, column.column, model._meta.pk.column
    value = json.dumps(new) if column.get_internal_type() == "JSONField" else new
    try:
        with transaction.atomic():
            cursor.execute(f'UPDATE "{table}" SET "{name}" = %s WHERE "{first}" = %s', [value, key])
    except (IntegrityError, DataError):
        return False
    return True


def marked(value, mark, *, whole=False):
    """The value with a mark for each text of words: what has a space, or is not ASCII."""
    match value:
        case str():
            return mark if whole or " " in value or not value.isascii() else value
        case list():
            return [marked(one, mark) for one in value]
        case dict():
            return {name: marked(one, mark) for name, one in value.items()}
    return value


def shown_to(client, marks):
    """The columns whose marks this person meets on any page or in any file."""
    tables = [model for model in MODELS if model in admin.site._registry]
    first = ["/admin/", *chain.from_iterable(map(addresses_of, tables)), *addresses_of_the_site()]
    texts = [*_pages(client, first), *_files(client, tables)]
    return {marks[mark] for text in texts for mark in set(MARK.findall(text)) if mark in marks}


def _pages(client, addresses):
    """The texts of these pages, and of some of each kind that they lead to."""
    todo, opened, kinds = [*addresses], set(), Counter()
    given = set(addresses)
    while todo:
        address = todo.pop(0)
        kind = _kind(address)
        if address in opened or (address not in given and kinds[kind] >= LIKE_IT):
            continue
        opened.add(address)
        kinds[kind] += 1
        answer = client.get(address)
        if answer.status_code != 200 or answer.streaming:
            continue
        text = answer.content.decode()
        yield text
        if not answer["Content-Type"].startswith("text/html"):
            continue
        assert MARKUP not in text, address
        links = Links()
        links.feed(text)
        urls = [urljoin(SITE + address, link).partition("#")[0] for link in links.found]
        todo += [url.removeprefix(SITE) for url in urls if url.startswith(f"{SITE}/admin/")]


def _kind(address):
    """What an address has in common with those of other rows, filters and pages."""
    return re.sub(r"[A-Z]+-[^/]+|\d+|[0-9a-f-]{36}", "N", urlsplit(address).path)


def _files(client, tables):
    for model in tables:
        for kind in FORMATS:
            answer = client.post(f"{list_page(model)}export/", {"format": kind})
            if answer.streaming:
                yield b"".join(answer.streaming_content).decode()


class Links(HTMLParser):
    """Where a page leads."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]
