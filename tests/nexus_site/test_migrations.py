"""Migrations: each can be undone, and a company at work survives the way back and forth."""

import importlib
import json
from datetime import timedelta

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState, ProjectState
from django.db.models.signals import class_prepared
from django.utils import timezone
from django_otp.plugins.otp_totp.models import TOTPDevice

from contracts.approvals.deployments import approve_deployment
from core.actions import Action
from core.events import Event
from governance.models import CaseOfficer
from ledger.services import record_alone
from nexus_site.management.commands.migrate import WholeExecutor
from nexus_site.run.historical import made_rarely
from orgchart.people.passwords import give_password, known_to
from tests.company import load_company
from tests.contracts.world import at_state, judge
from tests.governance.cases.world import Play
from tests.ledger.world import tamper
from workspace.git.models import BranchMove, Repository
from workspace.models import Deployment, ImageBuild, WebUse

OURS = [
    (name.partition(".")[0], key)
    for name in sorted(settings.ROOMS)
    for key in sorted(
        path.stem for path in (settings.BASE_DIR / name / "migrations").glob("[0-9]*.py")
    )
]


class TestEveryMigration:
    @pytest.mark.parametrize(("room", "name"), OURS)
    def test_can_be_undone(self, room, name):
        migration = importlib.import_module(f"{room}.migrations.{name}").Migration
        fixed = [each for each in migration.operations if not each.reversible]
        assert fixed == []


@pytest.mark.django_db
def test_no_sequence_is_unlogged():
    """PostgreSQL 18 cannot read such a sequence on a replica that has taken over."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relkind = 'S' AND relpersistence = 'u'")
        assert cursor.fetchall() == []


def rows():
    """Every row of every table of ours that this state of the database has, as text."""
    found = {}
    with connection.cursor() as cursor:
        present = set(connection.introspection.table_names(cursor))
        for model in apps.get_models(include_auto_created=True):
            table = model._meta.db_table
            if model._meta.app_label in settings.ROOMS and table in present:
                cursor.execute(
                    f"SELECT coalesce(json_agg(row_to_json(t) ORDER BY row_to_json(t)::text), "
                    f"'[]')::text FROM {table} t"
                )
                found[table] = json.loads(cursor.fetchone()[0])
    return found


def migrate(*targets):
    executor = WholeExecutor(connection)
    executor.migrate(list(targets))


def company_at_work():
    nexus = load_company("nexus")
    mail = {"type": "info", "subject": "Hello", "body": "A word."}
    nexus.call("backend_worker", "send_mail", to="it_manager", **mail)
    nexus.call("backend_worker", "send_mail", to="ceo", **mail)
    nexus.call("it_manager", "create_contract", to="backend_worker", title="Work", body="Do it.",
               assigned_branch="feature/x")  # fmt: skip
    nexus.call("it_manager", "task_create", subject="A task", description="Its text.")
    now = timezone.now()
    digest = "sha256:" + "a" * 64
    approval = approve_deployment(
        caller=nexus.caller("it_manager"), to="devops_worker", environment="production",
        artifact=digest, expires_at=now + timedelta(hours=1), reason="release", now=now,
    )["contract_id"]  # fmt: skip
    devops = nexus.agent("devops_worker")
    same = {"organisation": nexus.organisation, "service": "api"}
    ImageBuild.objects.create(digest=digest, tag="api:1", path="docker/", built_by=devops,
                              built_at=now, **same)  # fmt: skip
    Deployment.objects.create(id="DEP-1", environment="production", artifact=digest,
                              approval_id=approval, deployed_by=devops, started_at=now,
                              due_at=now, **same)  # fmt: skip
    WebUse.objects.create(agent=devops, day=now.date(), calls=3)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
class TestTheLastOfEachRoom:
    @pytest.fixture(autouse=True)
    def whole_again(self):
        yield
        executor = WholeExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())

    @pytest.mark.parametrize("room", sorted(settings.ROOMS))
    def test_is_undone_and_done_with_rows(self, room):
        names = [name for place, name in OURS if place == room]
        if len(names) < 2:
            pytest.skip("its only migration creates its tables")
        company_at_work()
        before, listening = rows(), len(class_prepared.receivers)
        migrate((room, names[-2]))
        meanwhile = rows()
        leaves = MigrationLoader(connection).graph.leaf_nodes()
        migrate(*leaves)
        after = rows()
        assert len(class_prepared.receivers) == listening, "historical models are listened to"
        assert before.keys() == after.keys()
        kept = {table for table in meanwhile if meanwhile[table] == before[table]}
        assert len(kept) > 10, "tables of other rooms are not touched"
        for table in kept:
            assert after[table] == before[table], table
        for table in meanwhile.keys() - kept:
            assert len(after[table]) == len(before[table]), f"{table} lost rows"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
class TestTheCalendarOfTheLedger:
    def test_begins_though_a_time_outside_of_it_is_there(self):
        """Nobody can take such an event away again, and `ledger verify` finds it."""
        migrate(("ledger", "0004_stream_by_era"))
        record_alone(Event(action=Action.KEY_ISSUED, actor="system:x", at=timezone.now()))
        tamper("UPDATE ledger_event SET at = 'infinity'")
        migrate(*MigrationLoader(connection).graph.leaf_nodes())
        with pytest.raises(IntegrityError, match="in_the_calendar"):
            tamper("UPDATE ledger_event SET at = '-infinity'")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
class TestOfficersOfACase:
    def test_of_earlier_cases_are_those_who_opened_submitted_and_ruled(self):
        case = Play(load_company("constitution"))
        case.to("REVIEW").submit("REVIEW", "REJECTED")
        case.decide("CONTINUE")
        before = officers()
        assert ("conductor", "CONDUCTOR") in before
        migrate(("governance", "0005_cases_not_emptied"))
        migrate(*MigrationLoader(connection).graph.leaf_nodes())
        assert officers() == before


def officers():
    """Who acts in which office of the one case."""
    return sorted(CaseOfficer.objects.values_list("agent__handle", "office"))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
class TestWhoMayKnowAPassword:
    def test_of_earlier_passwords_are_all_behind_who_chose_it(self):
        x, y = (User.objects.create_user(name) for name in "xy")
        give_password(x.pk, by="ada")
        give_password(y.pk, by="x")
        migrate(("orgchart", "0010_pauses_of_the_board"))
        migrate(*MigrationLoader(connection).graph.leaf_nodes())
        assert (known_to(x.pk), known_to(y.pk)) == (["ada"], ["x", "ada"])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
class TestTheDriftOfAuthenticators:
    def test_of_earlier_late_codes_is_forgotten(self):
        ada = User.objects.create_user("ada")
        device = TOTPDevice.objects.create(user=ada, name="phone", confirmed=True, drift=-3)
        migrate(("orgchart", "0012_agents_that_left"))
        migrate(*MigrationLoader(connection).graph.leaf_nodes())
        device.refresh_from_db()
        assert device.drift == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
class TestServicesThatWereTakenDown:
    def test_failed_to_an_earlier_version(self):
        nexus = load_company("nexus")
        now = timezone.now()
        Deployment.objects.create(
            id="DEP-1", organisation=nexus.organisation, environment="test", service="api",
            artifact="sha256:" + "a" * 64, deployed_by=nexus.agent("devops_worker"),
            state="removed", started_at=now, due_at=now, settled_at=now,
        )  # fmt: skip
        migrate(("workspace", "0014_organisation_of_branch_moves"))
        (meanwhile,) = rows()["workspace_deployment"]
        migrate(*MigrationLoader(connection).graph.leaf_nodes())
        assert meanwhile["state"] == "failed"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
class TestTheOrganisationOfRows:
    TABLES = (
        "contracts_deadline", "contracts_report", "contracts_verdict", "toolbox_modegrant",
        "workspace_branchmove",
    )  # fmt: skip

    def test_of_earlier_rows_is_found(self):
        nexus = load_company("nexus")
        judge(nexus, at_state(
            nexus, "review", mode="coding", workspace_scope=["src/"],
            deadline=timezone.now() + timedelta(days=1),
        ))  # fmt: skip
        repository = Repository.objects.create(
            organisation=nexus.organisation, main="main", created_at=timezone.now()
        )
        BranchMove.objects.create(
            organisation=nexus.organisation, repository=repository, branch="main", kind="create",
            new="a" * 40, by="agent:ceo", at=timezone.now(),
        )  # fmt: skip
        before = rows()
        migrate(
            ("contracts", "0015_branches_of_contracts"),
            ("toolbox", "0021_rows_of_one_organisation"),
            ("workspace", "0013_rows_of_one_organisation"),
        )
        meanwhile = rows()
        migrate(*MigrationLoader(connection).graph.leaf_nodes())
        after = rows()
        for table in self.TABLES:
            assert before[table], table
            assert "organisation_id" not in meanwhile[table][0], table
            assert of_each(after[table]) == of_each(before[table]), table


def of_each(rows):
    return sorted((row["id"], row["organisation_id"]) for row in rows)


def test_historical_models_are_made_rarely_and_as_django_makes_them(monkeypatch):
    render, made = ModelState.render, []
    monkeypatch.setattr(ModelState, "render", lambda *given: made.append(given) or render(*given))
    loader = MigrationLoader(None)
    state = ProjectState(real_apps=loader.unmigrated_apps)
    assert state.apps
    with made_rarely():
        for node in whole_plan(loader):
            loader.graph.nodes[node].mutate_state(state, preserve=False)
    assert len(made) < 4000
    expected = shapes(ProjectState(state.models, state.real_apps).apps)
    assert shapes(state.apps) == expected
    assert len(expected) > 60
    assert ProjectState.add_model.__module__ == ProjectState.__module__


def whole_plan(loader):
    plan = {}
    for leaf in loader.graph.leaf_nodes():
        plan |= dict.fromkeys(loader.graph.forwards_plan(leaf))
    return plan


def shapes(apps):
    return {model._meta.label: shape(model._meta) for model in apps.get_models()}


def shape(meta):
    fields = meta.get_fields(include_hidden=True)
    return (
        sorted((each.name, type(each).__name__, label_of(each)) for each in fields),
        [each.deconstruct() for each in (*meta.indexes, *meta.constraints)],
    )


def label_of(field):
    return field.related_model._meta.label if field.is_relation and field.related_model else ""
