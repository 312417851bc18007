"""Forms sent by who has not seen the page, or has seen an old one."""

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import URLPattern, get_resolver

from ledger.models import Event
from orgchart.admin.editing import EditAdmin
from orgchart.models import (
    Agent,
    Alias,
    ContactRule,
    Group,
    MailTypeRule,
    Organisation,
    Role,
    ToolOverride,
)
from tests.admin.forms import confirm, filled, preview
from tests.admin.places import act_page, change_page, edit_page, list_page

REASON = "The new team needs it."
EDITS = {
    Organisation: {"name": "Renamed"},
    Role: {"title": "Renamed"},
    Group: {"context": "Renamed"},
    Agent: {"title": "Renamed"},
    Alias: {"alias": "renamed"},
    MailTypeRule: {"description": "Renamed"},
    ContactRule: {"types": ["info"], "every_type": None},
    ToolOverride: {"modes": []},
}


@pytest.fixture
def rows(company):
    """A row of each table that people edit; made where the company has none."""
    ours = company.organisation
    Group.objects.create(organisation=ours, slug="team", name="Team")
    Alias.objects.create(organisation=ours, alias="quality", agent=company.agent("qa_worker"))
    ToolOverride.objects.create(
        organisation=ours,
        agent=company.agent("qa_worker"),
        tool="run_test",
        modes=["coding"],
        set_by="human:x",
    )
    return {model: model.objects.filter(**where(model, ours)).first() for model in EDITS}


def where(model, organisation):
    return {"id": organisation.id} if model is Organisation else {"organisation": organisation}


def values(row):
    return type(row).objects.filter(pk=row.pk).values().get()


def form_page(row):
    return edit_page(row) if isinstance(row, Agent) else change_page(row)


def edited():
    return {m for m, page in admin.site._registry.items() if isinstance(page, EditAdmin)}


class TestAStaleForm:
    def test_is_tried_of_every_table_that_people_edit(self):
        assert edited() == set(EDITS)

    def test_of_any_of_them_changes_nothing_and_says_why(self, hr, company, rows):
        seen = {
            model: preview(
                hr,
                form_page(row),
                f"{model._meta.model_name}_form",
                reason=REASON,
                **EDITS[model],
            )
            for model, row in rows.items()
        }
        role = company.agent("ceo").role
        first = preview(hr, change_page(role), "role_form", title="Chief", reason=REASON)
        assert confirm(hr, change_page(role), first).status_code == 302
        held = {model: values(row) for model, row in rows.items()}
        before = Event.objects.exclude(action="human.denied").count()
        for model, row in rows.items():
            answer = confirm(hr, form_page(row), seen[model])
            assert answer.status_code == 409, model
            assert "This record changed after you opened it" in answer.content.decode(), model
            assert values(row) == held[model], model
        assert Event.objects.exclude(action="human.denied").count() == before


def addresses(patterns, before=""):
    """Every address of the admin, with 1 for each of its parameters."""
    for one in patterns:
        route = before + str(one.pattern)
        if isinstance(one, URLPattern):
            yield one, route
        else:
            yield from addresses(one.url_patterns, route)


class TestAFormWithoutItsToken:
    def test_is_refused_by_every_address_before_anything_else(self, board, company):
        """Whatever an address is for: one that is exempt would be found here."""
        site = next(r for r in get_resolver().url_patterns if str(r.pattern) == "admin/")
        exempt = [
            route
            for one, route in addresses(site.url_patterns)
            if getattr(one.callback, "csrf_exempt", False)
        ]
        assert exempt == []

    def test_leaves_nothing_and_is_told_so(self, board, company):
        strict = Client(HTTP_HOST="127.0.0.1", enforce_csrf_checks=True)
        strict.cookies = board.cookies
        before = Event.objects.count()
        agent = change_page(company.agent("qa_worker"))
        for address in [
            *("/admin/login/", "/admin/logout/", "/admin/password_change/"),
            *(agent, agent.replace("/change/", "/issue-key/"), "/admin/orgchart/role/add/"),
            *("/admin/contracts/contract/issue/", "/admin/auth/user/add/", "/admin/explain/"),
        ]:
            answer = strict.post(address, {"reason": REASON})
            assert answer.status_code == 403, address
            assert "This form is too old to be sent" in answer.content.decode(), address
        assert Event.objects.count() == before


class TestAFormOfWhoWasSignedOut:
    """Spec: people 69."""

    TYPED = "We take the second offer, and not the first one."

    def test_gives_back_what_was_typed(self, board, company):
        page = act_page(company.agent("qa_worker"), "pause")
        form = filled(board, page, "act-form", reason=self.TYPED)
        board.session.flush()
        before = Event.objects.count()
        answer = board.post(page, form)
        html = answer.content.decode()
        assert answer.status_code == 403
        assert "signed out before this was sent" in html
        assert self.TYPED in html
        assert "no-store" in answer.headers["Cache-Control"]
        assert f"/admin/login/?next={page.replace('/', '%2F')}" in html
        assert Event.objects.count() == before

    @pytest.mark.parametrize("name", ["old_password", "code", "csrfmiddlewaretoken"])
    def test_gives_back_no_secret(self, db, name):
        answer = Client(HTTP_HOST="127.0.0.1").post(
            "/admin/password_change/", {name: self.TYPED, "new_password1": self.TYPED}
        )
        assert answer.status_code == 302
        assert "/admin/login/" in answer.headers["Location"]

    def test_gives_back_nothing_to_another_site(self, db):
        strict = Client(HTTP_HOST="127.0.0.1", enforce_csrf_checks=True)
        answer = strict.post(list_page(Agent), {"reason": self.TYPED})
        assert answer.status_code == 403
        assert self.TYPED not in answer.content.decode()
