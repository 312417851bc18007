"""A deployment whose end nobody found out: what people do, and what only the engine says."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from core import people
from core.actors import Person
from core.decision import Allow, Code, Denied
from core.permissions import PeopleGroup
from core.waiting import Desk, Viewer
from governance.models import Intervention
from ledger.models import Event
from tests.documents.world import NOW
from tests.workspace.builds.world import approve, built_in, call
from workspace.builds import deployments, rules, settling
from workspace.builds.models import Deployment
from workspace.builds.settling import look_again, record_as_failed, take_down
from workspace.builds.vocabulary import DeploymentState

REASON = "I looked at the machine."
TITLE = "Deployment without a known end"


@pytest.fixture
def alice(nexus):
    return Person(
        username="alice",
        groups=frozenset({PeopleGroup.BOARD}),
        organisation_id=nexus.id,
        is_member=True,
    )


@pytest.fixture
def lost(nexus, devops, engine):
    """A deployment to staging whose engine hung up."""
    artifact = built_in(nexus, engine)
    engine.trouble["/start"] = "hang up"
    answer = call(devops, "docker_deploy", environment="staging", artifact=artifact)
    assert answer.body["result"]["state"] == "unknown"
    engine.trouble.clear()
    return Deployment.objects.get()


def settle(act, row, who, reason=REASON):
    act(deployment_id=row.id, person=who, reason=reason, now=timezone.now())
    return Deployment.objects.get(id=row.id).state


def waiting(nexus):
    desk = Desk(Viewer(username="x", organisations=frozenset([nexus.id])), lambda _: True)
    return [each for each in desk.turns(50) if each.kind.title == TITLE]


@pytest.mark.parametrize("state", DeploymentState)
@pytest.mark.parametrize("is_replaced", [False, True])
def test_only_the_latest_unknown_end_is_settled(state, is_replaced):
    decision = rules.can_settle(state, is_replaced=is_replaced)
    assert isinstance(decision, Allow) == (state == "unknown" and not is_replaced)


@pytest.mark.django_db
class TestLookingAgain:
    @pytest.mark.parametrize(("runs", "end"), [(True, "succeeded"), (False, "failed")])
    def test_says_what_the_engine_says(self, lost, engine, alice, runs, end):
        (container,) = engine.containers.values()
        container["State"] = {"Running": runs, "ExitCode": 1}
        assert settle(look_again, lost, alice) == end
        asked = Event.objects.get(action="deployment.asked")
        assert (asked.actor, asked.reason) == ("human:alice", REASON)
        assert Event.objects.get(action=f"deployment.{end}").actor == "human:alice"
        assert bool(engine.containers) == runs

    def test_leaves_it_unknown_where_it_runs_under_the_name_of_another_key(
        self, lost, engine, alice, settings
    ):
        settings.SECRET_KEY = "another" * 10
        assert settle(look_again, lost, alice) == "unknown"
        assert "another SECRET_KEY" in Deployment.objects.get().problem
        engine.containers.clear()
        assert settle(look_again, lost, alice) == "failed"

    @pytest.mark.parametrize("said", [b"7", b'{"a": 1}', b"[7]", b"[{}]"])
    def test_takes_no_answer_that_is_no_list_of_containers(self, lost, engine, alice, said):
        (container,) = engine.containers.values()
        container["State"] = {"Running": True}
        engine.trouble["GET /containers/json"] = said
        assert settle(look_again, lost, alice) == "succeeded"
        assert "not its API" in Deployment.objects.get().problem

    @pytest.mark.parametrize(
        "said", [b"7", b"[]", b'{"State": 7}', b'{"State": {"ExitCode": "x"}}']
    )
    def test_leaves_it_unknown_where_the_engine_says_something_else(
        self, lost, engine, alice, said
    ):
        (name,) = engine.containers
        engine.trouble[f"GET /containers/{name}/json"] = said
        assert settle(look_again, lost, alice) == "unknown"

    def test_leaves_it_unknown_where_the_engine_is_silent(self, nexus, lost, alice, settings):
        settings.CONTAINER_ENGINE = ""
        assert settle(look_again, lost, alice) == "unknown"
        assert Deployment.objects.get().settled_at is not None
        assert len(waiting(nexus)) == 1

    def test_keeps_other_deployments_out_meanwhile(self, lost, alice, devops):
        deployment = Deployment.objects.create(
            id="DEP-9", organisation_id=lost.organisation_id, environment="staging",
            service=lost.service, artifact=lost.artifact, deployed_by_id=devops.agent.id,
            started_at=NOW, due_at=NOW + timedelta(days=1),
        )  # fmt: skip
        Deployment.objects.filter(id=deployment.id).update(id="DEP-0")
        with pytest.raises(Denied) as refusal:
            settle(look_again, lost, alice)
        assert "under way" in refusal.value.deny.message
        assert Deployment.objects.get(id=lost.id).state == "unknown"

    def test_is_settled_by_the_scheduler_where_the_process_ended(self, lost, alice, monkeypatch):
        def died(_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(settling, "find_outcome", died)
            with pytest.raises(KeyboardInterrupt):
                settle(look_again, lost, alice)
        later = timezone.now() + timedelta(hours=1)
        assert deployments.settle_interrupted(now=later) == 1


@pytest.mark.django_db
class TestRecordingAsFailed:
    def test_ends_it_with_a_persons_word(self, nexus, lost, alice):
        assert settle(record_as_failed, lost, alice) == "failed"
        event = Event.objects.get(action="deployment.failed")
        assert (event.actor, event.reason) == ("human:alice", f"alice looked: {REASON}")
        assert waiting(nexus) == []

    def test_changes_no_end_that_is_known(self, lost, alice):
        settle(record_as_failed, lost, alice)
        for act in (record_as_failed, look_again):
            with pytest.raises(Denied) as refusal:
                settle(act, lost, alice)
            assert refusal.value.deny.code is Code.INVALID_TRANSITION

    @pytest.mark.parametrize("act", [record_as_failed, look_again])
    def test_does_not_reach_into_another_organisation(self, lost, alice, act):
        other = replace(alice, organisation_id=alice.organisation_id + 1)
        with pytest.raises(Denied) as refusal:
            settle(act, lost, other)
        assert refusal.value.deny.code is Code.NOT_FOUND


@pytest.fixture
def running(nexus, devops, engine):
    """A deployment to staging that runs."""
    artifact = built_in(nexus, engine)
    call(devops, "docker_deploy", environment="staging", artifact=artifact, now=timezone.now())
    return Deployment.objects.get()


def deploy_again(devops, row, environment="staging"):
    answer = call(devops, "docker_deploy", environment=environment, artifact=row.artifact,
                  now=timezone.now())  # fmt: skip
    return answer.body["result"]["state"]


@pytest.mark.django_db
class TestTakingDown:
    def test_removes_the_service_as_an_intervention(self, running, devops, engine, alice):
        assert settle(take_down, running, alice) == "removed"
        assert not engine.containers
        event = Event.objects.get(action="deployment.removed")
        assert (event.actor, event.reason) == ("human:alice", REASON)
        kept = Intervention.objects.get()
        assert (kept.action_taken, kept.trigger_condition) == (
            "take_down_deployment",
            "api running in staging",
        )
        health = call(devops, "run_health_check", service="api").body["result"]
        assert not health["healthy"]
        assert f"alice took it down: {REASON}" in health["message"]

    def test_gives_its_place_to_another_service(
        self, nexus, running, devops, engine, alice, settings
    ):
        settings.CONTAINER_SERVICES = 1
        other = built_in(nexus, engine, "sha256:" + "b" * 64, "web")
        deploy = partial(call, devops, "docker_deploy", environment="staging", artifact=other)
        refused = deploy(now=timezone.now())
        assert refused.body["error_code"] == "QUOTA_EXCEEDED"
        assert refused.body["details"]["used"] == refused.body["details"]["limit"] == 1
        settle(take_down, running, alice)
        assert deploy(now=timezone.now()).body["result"]["state"] == "succeeded"

    def test_reaches_what_runs_although_a_later_one_failed(self, running, devops, engine, alice):
        engine.exits = 1
        assert deploy_again(devops, running) == "failed"
        assert settle(take_down, running, alice) == "removed"
        assert not engine.containers

    def test_reaches_what_may_run_although_a_later_one_failed(self, lost, devops, engine, alice):
        engine.exits = 1
        assert deploy_again(devops, lost) == "failed"
        with pytest.raises(Denied, match="took its place"):
            settle(look_again, lost, alice)
        assert engine.containers
        assert settle(take_down, lost, alice) == "removed"
        assert not engine.containers

    def test_is_done_on_the_latest_only(self, running, devops, engine, alice):
        assert deploy_again(devops, running) == "succeeded"
        with pytest.raises(Denied, match="took its place"):
            settle(take_down, running, alice)
        assert engine.containers

    def test_leaves_other_environments(self, running, devops, engine, alice):
        assert deploy_again(devops, running, "test") == "succeeded"
        settle(take_down, running, alice)
        (left,) = engine.containers.values()
        assert left["Config"]["Labels"]["nexus.environment"] == "test"

    def test_records_nothing_where_the_engine_is_silent(self, running, engine, alice):
        engine.trouble["GET /containers/json"] = "hang up"
        with pytest.raises(Denied) as refusal:
            settle(take_down, running, alice)
        assert refusal.value.deny.code is Code.DRIVER_UNAVAILABLE
        assert Deployment.objects.get().state == "succeeded"
        assert not Intervention.objects.exists()
        engine.trouble.clear()
        assert settle(take_down, running, alice) == "removed"

    @pytest.mark.parametrize("answers", [0, 1])
    def test_is_done_and_recorded_or_neither(self, running, engine, alice, monkeypatch, answers):
        """Also where the right of its person ends before or while the engine removes it."""
        asked = iter([alice] * answers)
        gone = replace(alice, groups=frozenset(), is_member=False)
        monkeypatch.setattr(people, "person_named", lambda *_: next(asked, gone))
        with suppress(Denied):
            settle(take_down, running, replace(alice, is_asked_again=True))
        is_removed = Deployment.objects.get().state == "removed"
        assert is_removed == (not engine.containers) == Intervention.objects.exists()
        assert is_removed == bool(answers)

    @pytest.mark.parametrize("again", [False, True])
    def test_is_refused_while_it_runs_under_the_names_of_another_key(
        self, running, devops, engine, alice, settings, again
    ):
        """It was said to be removed, and ran on: no container was found by the names of the new."""
        settings.SECRET_KEY = "another" * 10
        row = running
        if again:
            assert deploy_again(devops, running) == "succeeded"
            row = Deployment.objects.latest("id")
        (old, *new) = engine.containers
        with pytest.raises(Denied, match="another SECRET_KEY"):
            settle(take_down, row, alice)
        assert [*engine.containers] == [old, *new]
        assert Deployment.objects.get(id=row.id).state == "succeeded"
        del engine.containers[old]
        assert settle(take_down, row, alice) == "removed"
        assert not engine.containers

    def test_is_not_kept_by_the_same_service_of_another_organisation(self, running, engine, alice):
        labels = {"nexus.environment": "staging", "nexus.service": running.service}
        name = "nexus-0123456789-o99-DEP-1"
        engine.containers[name] = {"Id": "f" * 64, "Config": {"Labels": labels}}
        assert settle(take_down, running, alice) == "removed"
        assert [*engine.containers] == [name]

    def test_leaves_a_trace_where_its_process_ends_between_engine_and_database(
        self, running, engine, alice, monkeypatch
    ):
        (container,) = (each["Id"] for each in engine.containers.values())

        def ends(*_):
            raise SystemExit

        with monkeypatch.context() as patched:
            patched.setattr(settling, "swap", ends)
            with pytest.raises(SystemExit):
                settle(take_down, running, alice)
        assert not engine.containers
        event = Event.objects.get(action="deployment.removal_started")
        assert (event.actor, event.reason) == ("human:alice", REASON)
        assert event.details["containers"] == [container]
        assert settle(take_down, running, alice) == "removed"

    def test_is_followed_by_another_deployment(self, running, devops, engine, alice):
        settle(take_down, running, alice)
        assert deploy_again(devops, running) == "succeeded"
        assert len(engine.containers) == 1

    def test_does_not_reach_into_another_organisation(self, running, engine, alice):
        other = replace(alice, organisation_id=alice.organisation_id + 1)
        with pytest.raises(Denied) as refusal:
            settle(take_down, running, other)
        assert refusal.value.deny.code is Code.NOT_FOUND
        assert engine.containers


@pytest.mark.django_db
class TestTheFirstPage:
    def test_shows_it_until_it_is_replaced(self, nexus, lost, engine, devops, alice):
        (turn,) = waiting(nexus)
        assert turn.item.title == "api in staging"
        assert [choice.label for choice, _ in turn.choices] == [
            "Ask the engine again", "Record as failed",
        ]  # fmt: skip
        again = call(devops, "docker_deploy", environment="staging", artifact=lost.artifact,
                     now=timezone.now())  # fmt: skip
        assert again.body["result"]["state"] == "succeeded"
        assert waiting(nexus) == []
        with pytest.raises(Denied, match="took its place"):
            settle(look_again, lost, alice)

    def test_does_not_take_another_environment_for_the_same(self, nexus, lost, devops, engine):
        approve(nexus, expires_at=timezone.now() + timedelta(hours=1))
        other = call(devops, "docker_deploy", environment="production", artifact=lost.artifact,
                     now=timezone.now())  # fmt: skip
        assert other.body["ok"], other.body
        assert len(waiting(nexus)) == 1
