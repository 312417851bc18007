"""A person sees and changes the organisations they are a member of, on every page there is."""

import re

import pytest
from django.contrib import admin
from django.contrib.admin import RelatedFieldListFilter
from django.contrib.admin.utils import get_fields_from_path, quote
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import URLPattern
from django.utils import timezone

from core.people import board_members, organisations_of, person_named
from core.permissions import Deed, PeopleGroup, can_do
from ledger.models import Event
from nexus_site.console.lookups import DeclaredLookups
from nexus_site.console.membership import MembersOnly, SeenRows
from orgchart.models import Agent, Membership, Organisation
from orgchart.people.members import set_memberships
from orgchart.people.rules import EVERY
from tasks.models import Task
from tests.admin.forms import filled
from tests.admin.places import act_page, change_page, list_page
from tests.browser.day import day_of
from tests.company import load_company
from tests.people import join

User = get_user_model()
MARKER = "Zanzibar Trading"
PASSWORD = "a long enough sentence 42"
SHARED = {"workspace.Skill", "auth.Group"}
"""Tables whose rows belong to no organisation, and which everybody with the right sees."""


def addresses():
    """Every address of every table, with the model it is about."""
    for model, page in admin.site._registry.items():
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        for pattern in page.get_urls():
            if isinstance(pattern, URLPattern):
                yield model, base + str(pattern.pattern)


def site_addresses():
    """The addresses of the site that belong to no table and take nothing."""
    for pattern in admin.site.get_urls():
        if isinstance(pattern, URLPattern) and "<" not in str(pattern.pattern):
            found = str(pattern.pattern)
            if re.fullmatch(r"[\w/-]*", found) and "logout" not in found:
                yield f"/admin/{found}"


@pytest.fixture
def foreign(company):
    """An organisation with a whole day behind it, that nobody here is a member of."""
    day_of(company)
    Organisation.objects.filter(id=company.organisation.id).update(name=MARKER)
    return company


@pytest.fixture
def mine(foreign):
    return load_company("dev-team")


@pytest.fixture
def stranger(mine, groups):
    """A client of a group, member of the other organisation only."""

    def made(desk):
        user, _ = User.objects.get_or_create(username=f"stranger-{desk}", is_staff=True)
        user.groups.set([groups[desk]])
        join(user, mine.organisation)
        client = Client(HTTP_HOST="127.0.0.1")
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return made


def marks_of(company):
    """What only the foreign organisation's pages can hold."""
    own = set(Agent.objects.exclude(organisation=company.organisation).values_list("handle"))
    handles = {row for row in company.organisation.agents.values_list("handle") if row not in own}
    return {MARKER, "Incremental indexer", *(f">{handle}<" for (handle,) in handles)}


def row_of(model, company):
    """The first row of a table that is not of the person's own organisation."""
    page = admin.site._registry[model]
    for row in model._default_manager.order_by("pk")[:200]:
        of_row = getattr(page, "organisation_id_of", None)
        if of_row is None or of_row(row) == company.organisation.id:
            return row
    return None


class TestANonMember:
    @pytest.mark.parametrize("desk", [PeopleGroup.BOARD, PeopleGroup.HR])
    def test_sees_nothing_of_it_at_any_address(self, stranger, foreign, desk):
        client, marks = stranger(desk), marks_of(foreign)
        seen, asked = [], 0
        for model, route in addresses():
            row = row_of(model, foreign)
            if "<" in route and (row is None or model._meta.label in SHARED):
                continue
            address = route if row is None else re.sub(r"<[^>]*>", str(quote(row.pk)), route)
            of_foreign = ("", f"?organisation={foreign.organisation.id}", "?q=backend_worker")
            for query in of_foreign if address == route else ("",):
                answer = client.get(address + query)
                asked += 1
                assert answer.status_code < 500, address
                text = answer.content.decode()
                # A page may show the term that it was asked for.
                shown = marks - {">backend_worker<"} if query.startswith("?q=") else marks
                if found := [mark for mark in shown if mark in text]:
                    seen.append((address + query, answer.status_code, found))
        for address in site_addresses():
            for query in ("", f"?organisation={foreign.organisation.id}"):
                text = client.get(address + query).content.decode()
                asked += 1
                seen += [(address, mark) for mark in marks if mark in text]
        assert not seen
        assert asked > 100

    def test_opens_none_of_its_rows(self, stranger, sign_in, foreign):
        """Each page of a row: found by a member, not by a person of another organisation."""
        member, outsider = sign_in(PeopleGroup.BOARD), stranger(PeopleGroup.BOARD)
        opened = 0
        for model, page in admin.site._registry.items():
            row = row_of(model, foreign)
            if row is None or not hasattr(page, "organisation_id_of"):
                continue
            if model._meta.label in SHARED or page.organisation_id_of(row) == 0:
                continue
            assert member.get(change_page(row)).status_code == 200, model
            assert outsider.get(change_page(row)).status_code == 404, model
            opened += 1
        assert opened >= 16

    def test_acts_on_none_of_its_rows_and_leaves_the_attempt(self, stranger, foreign):
        client, tried = stranger(PeopleGroup.BOARD), 0
        for model, page in admin.site._registry.items():
            row = row_of(model, foreign)
            for act in getattr(page, "all_acts", list)():
                if row is None or model._meta.label in SHARED:
                    continue
                before = Event.objects.order_by("-seq").first().seq
                client.post(act_page(row, act.name), {"reason": "because", "version": "1"})
                events = list(Event.objects.filter(seq__gt=before))
                assert [(e.action, e.decision) for e in events] == [("human.denied", "deny")], act
                tried += 1
        assert tried >= 10

    def test_moves_no_task(self, stranger, foreign):
        task = foreign.call("it_manager", "task_create", subject="secret", requiredRole="qa_worker")
        assert task.status == 200, task
        row = Task.objects.get(organisation=foreign.organisation, subject="secret")
        client = stranger(PeopleGroup.BOARD)
        answer = client.post(
            f"/admin/tasks/task/{row.pk}/move/", {"status": "deleted", "version": row.version}
        )
        assert answer.status_code == 404
        assert Event.objects.order_by("-seq").first().action == "human.denied"

    @pytest.mark.parametrize("page", ["change", "password", "second_factor"])
    def test_changes_no_user_of_it_and_leaves_the_attempt(self, stranger, foreign, page):
        theirs = join(User.objects.create_user("theirs"), foreign.organisation)
        address = act_page(theirs, page)
        answer = stranger(PeopleGroup.BOARD).post(address, {"reason": "because"})
        assert answer.status_code == 404
        event = Event.objects.get(action="human.denied")
        assert (event.code, event.subject) == ("NOT_FOUND", f"page:{address}")

    def test_chooses_nothing_of_it_in_filters_and_look_ups(self, stranger, foreign):
        client = stranger(PeopleGroup.BOARD)
        agent = foreign.agent("backend_worker")
        page = client.get(f"/admin/mailroom/mail/?sender__id__exact={agent.id}")
        assert "backend_worker" not in page.content.decode()
        asked = {"app_label": "mailroom", "model_name": "mail", "field_name": "sender"}
        found = client.get("/admin/autocomplete/", {**asked, "term": "it_manager"}).json()
        assert found["results"] == []

    @pytest.mark.parametrize("table", ["mailroom/mail", "tasks/task"])
    def test_searches_as_if_its_agents_did_not_exist(self, stranger, foreign, mine, table):
        """A word that names an agent is looked for among agents, not in subjects."""
        handle = foreign.agent("devops_worker").handle
        assert handle not in mine.policy.agents
        about = {"subject": f"The {handle}"}
        lead = {**about, "to": "team-lead", "type": "report", "body": "?"}
        assert mine.call("architect", "send_mail", **lead).status == 200
        assert mine.call("team-lead", "task_create", **about).status == 200
        page = stranger(PeopleGroup.BOARD).get(f"/admin/{table}/", {"q": handle})
        assert page.context_data["cl"].result_count == 1

    def test_exists_for_no_service(self, foreign, groups):
        user = User.objects.create_user("ada", is_staff=True)
        user.groups.set([groups[PeopleGroup.BOARD]])
        outsider = person_named("ada", foreign.organisation.id)
        for deed in Deed:
            assert can_do(outsider, deed, "because").message == (
                "You are not a member of this organisation"
            )
        join(user, foreign.organisation)
        member = person_named("ada", foreign.organisation.id)
        assert can_do(member, Deed.ISSUE_KEY, "because").rule.startswith("permission")


class TestEveryTable:
    def test_is_of_members_only(self):
        """The site wraps each page, so that no table can forget it."""
        for page in admin.site._registry.values():
            assert isinstance(page, MembersOnly)
            assert type(page).__mro__.index(DeclaredLookups) < type(page).__mro__.index(MembersOnly)


class TestTheInstallation:
    def test_is_seen_by_members_of_every_organisation(self, sign_in, stranger, foreign):
        for name in ("ledger/seal", "toolbox/jobrun"):
            assert sign_in(PeopleGroup.BOARD).get(f"/admin/{name}/").status_code == 200
            assert stranger(PeopleGroup.BOARD).get(f"/admin/{name}/").status_code == 403

    def test_is_not_acted_on_by_others(self, stranger, foreign):
        client = stranger(PeopleGroup.BOARD)
        assert client.post("/admin/workspace/skill/look-again/").status_code == 403


class TestTheBoardOfOneOrganisation:
    @pytest.fixture
    def client(self, stranger):
        return stranger(PeopleGroup.BOARD)

    def test_sees_its_own_people_only(self, client, foreign, mine):
        theirs = join(User.objects.create_user("theirs"), foreign.organisation)
        ours = join(User.objects.create_user("ours"), mine.organisation)
        page = client.get(list_page(User)).content.decode()
        assert "ours" in page
        assert "theirs" not in page
        assert client.get(change_page(theirs)).status_code == 404
        assert client.get(f"/admin/auth/user/{theirs.pk}/password/").status_code == 404
        assert client.get(change_page(ours)).status_code == 200

    def test_changes_nobody_who_is_also_elsewhere(self, client, foreign, mine):
        both = join(User.objects.create_user("both"), foreign.organisation, mine.organisation)
        everywhere = join(User.objects.create_user("everywhere"))
        join(everywhere, mine.organisation)
        for user in (both, everywhere):
            answer = client.post(change_page(user), {"username": "taken"})
            assert answer.status_code == 403
            address = f"/admin/auth/user/{user.pk}/password/"
            sent = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
            assert client.post(address, sent).status_code == 403

    def test_learns_of_no_other_organisation_of_its_people(self, client, foreign, mine):
        both = join(User.objects.create_user("both"), foreign.organisation, mine.organisation)
        for address in (list_page(User), change_page(both)):
            page = client.get(address).content.decode()
            assert mine.organisation.name in page
            assert MARKER not in page, address

    def test_gives_no_organisation_but_its_own(self, client, foreign, mine):
        page = f"{list_page(User)}add/"
        given = {"username": "grace", "password1": PASSWORD, "password2": PASSWORD}
        for organisations in ([], [str(foreign.organisation.id)]):
            data = filled(
                client,
                page,
                "user_form",
                organisations=organisations,
                every_organisation="on",
                **given,
            )
            assert client.post(page, data).status_code == 200
        assert not User.objects.filter(username="grace").exists()
        data = filled(
            client,
            page,
            "user_form",
            organisations=[str(mine.organisation.id)],
            every_organisation="on",
            **given,
        )
        assert client.post(page, data).status_code == 302
        grace = User.objects.get(username="grace")
        assert organisations_of(grace) == {mine.organisation.id}
        event = Event.objects.get(action="member.added", subject="human:grace")
        assert event.organisation_id == mine.organisation.id


class TestAMembership:
    def test_of_every_organisation_includes_later_ones(self, company):
        user = join(User.objects.create_user("ada", is_staff=True))
        assert organisations_of(user) is None
        assert person_named("ada", company.organisation.id + 1).is_member

    def test_ends_with_the_user_and_at_the_next_request(self, company, sign_in):
        client = sign_in(PeopleGroup.OBSERVER)
        row = company.agent("ceo")
        assert client.get(change_page(row)).status_code == 200
        Membership.objects.all().delete()
        assert client.get(change_page(row)).status_code == 404
        user = User.objects.create_user("off", is_active=False)
        assert organisations_of(join(user)) == frozenset()

    def test_is_set_whole_and_recorded(self, company):
        other = load_company("dev-team").organisation
        user = join(User.objects.create_user("ada"), other)
        given = {"caller": company.system, "now": timezone.now()}
        set_memberships(user=user, organisations={company.organisation.id}, **given)
        assert organisations_of(user) == {company.organisation.id}
        events = Event.objects.filter(subject="human:ada").values_list("action", "organisation_id")
        assert set(events) == {
            ("member.removed", other.id),
            ("member.added", company.organisation.id),
        }
        set_memberships(user=user, organisations={EVERY}, **given)
        assert organisations_of(user) is None

    def test_decides_who_is_of_the_board(self, company, groups):
        other = load_company("dev-team").organisation
        for name, organisation in (("ada", company.organisation), ("bob", other)):
            user = User.objects.create_user(name, is_staff=True)
            user.groups.set([Group.objects.get(name=PeopleGroup.BOARD)])
            join(user, organisation)
        assert board_members(company.organisation.id) == {"ada"}


def test_every_filter_by_another_table_offers_only_rows_that_the_person_sees(rf, company):
    request = rf.get("/")
    request.user = join(User.objects.create_user("looker", is_staff=True), company.organisation)
    for model, page in admin.site._registry.items():
        for declared in page.get_list_filter(request):
            if isinstance(declared, str):
                assert not get_fields_from_path(model, declared)[-1].is_relation, (model, declared)
            elif isinstance(declared, tuple) and issubclass(declared[1], RelatedFieldListFilter):
                assert issubclass(declared[1], SeenRows), (model, declared)
