"""Builds and deployments are runs: they wait their turn, stream, can be stopped, leave a log."""

import hashlib
import json
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from contracts.models import Contract
from governance.models import Intervention
from ledger.models import Event
from orgchart.keys import digest_of, issue_key
from orgchart.models import Agent, ApiKey, Organisation
from orgchart.pauses.services import pause_agent
from tests.patience import PATIENCE, wait_until
from tests.workspace.builds.world import DIGEST, approve, built_in, call, code
from tests.workspace.watching import board_member, meanwhile, printed
from workspace.builds import containers, images
from workspace.builds.engine import Engine
from workspace.builds.models import Deployment, ImageBuild
from workspace.files.places import own_tree
from workspace.models import Run
from workspace.runs import queue
from workspace.runs.stopping import stop_run
from workspace.runs.watching import RunRight
from workspace.tree import WORK_TREE

OTHER = "sha256:" + "b" * 64
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def company(settings, tmp_path):
    settings.WORKSPACE_ROOT = tmp_path / "company"


@pytest.fixture
def folder(devops):
    made = own_tree(devops, WORK_TREE).root / WORK_TREE / "docker" / "api"
    made.mkdir(parents=True)
    (made / "Dockerfile").write_text("FROM scratch\n")
    return made


def a_run(devops):
    """One that is under way."""
    now = timezone.now()
    return Run.objects.create(
        organisation_id=devops.organisation_id, agent_id=devops.agent.id, tool="run_test",
        paths=[], asked_at=now, started_at=now, ends_by=now + queue.GRACE,
    )  # fmt: skip


@contextmanager
def before_its_turn(devops, act):
    """Do this while a call of DevOps waits for a run of its own, which ends then."""
    before = a_run(devops)

    def then():
        wait_until(lambda: Run.objects.filter(started_at=None).exists())
        act()
        before.delete()

    with meanwhile(then):
        yield


def pause(devops, nexus):
    pause_agent(
        person=board_member(nexus), agent="devops_worker", reason="Wait.", now=timezone.now()
    )


def revoke(devops, nexus):
    ApiKey.objects.filter(digest=devops.key).update(revoked_at=timezone.now(), revoked_by="x")


def take_away(devops, nexus):
    for role in nexus.roles.filter(name="devops_worker"):
        role.tools = [tool for tool in role.tools if not tool.startswith("docker_")]
        role.save()
    Organisation.objects.update(policy_version=F("policy_version") + 1)


def lines(*words):
    return [json.dumps(word).encode() + b"\r\n" for word in words]


def steps(count):
    return lines(*({"stream": f"Step {number}\n"} for number in range(count)))


def build(caller):
    return call(caller, "docker_build", path="docker/api/", tag="api:1")


def deploy(caller, artifact=DIGEST):
    return call(caller, "docker_deploy", environment="staging", artifact=artifact)


def stop_the_run(nexus, when):
    """Stop the one run as a member of the Board, once this is so."""

    def act():
        wait_until(lambda: Run.objects.exclude(started_at=None).exists() and when())
        stop_run(
            run_id=Run.objects.latest("id").id, caller=board_member(nexus), reason="Wrong image.",
            now=timezone.now(),
        )  # fmt: skip

    return meanwhile(act)


class TestABuild:
    def test_streams_what_it_prints_and_keeps_it_as_a_log(self, devops, engine, folder):
        engine.image(DIGEST)
        engine.trouble["POST /build"] = [*steps(7), *lines({"aux": {"ID": DIGEST}})]
        answer = build(devops)
        assert code(answer) == "OK", answer.body
        result = answer.body["result"]
        said = "".join(f"Step {number}\n" for number in range(7))
        pieces = printed(devops)
        assert len(pieces) > 1
        assert "".join(piece["output"] for piece in pieces) == said
        assert {piece["run"] for piece in pieces} == {result["run_id"]}
        assert result["output_sha256"] == hashlib.sha256(said.encode()).hexdigest()
        place, _, name = result["log"].partition("/devops_worker/")
        assert (place, own_tree(devops).read(name)) == ("agents", said.encode())
        row = Run.objects.get()
        assert (row.tool, row.paths, row.exit_status) == ("docker_build", ["docker/api/"], 0)
        assert row.output == said

    def test_packs_its_folder_in_its_turn(self, devops, engine, folder, monkeypatch):
        """What waits for its turn would hold the whole folder in memory."""
        monkeypatch.setattr(queue, "PATIENCE", 0.5)
        packed = []
        monkeypatch.setattr(images, "packed_folder", lambda *words: packed.append(words) or b"")
        before = timezone.now()
        Run.objects.create(
            organisation_id=devops.organisation_id, agent_id=devops.agent.id, tool="x", paths=[],
            asked_at=before, started_at=before, ends_by=before + timedelta(minutes=5),
        )  # fmt: skip
        assert code(build(devops)) == "RATE_LIMITED"
        assert not packed

    @pytest.mark.parametrize("odd", [{"aux": 7}, {"aux": ["x"]}, {"stream": "a\0\ud800"}])
    def test_reads_over_what_is_no_line_of_a_build(self, devops, engine, folder, odd):
        engine.image(DIGEST)
        engine.trouble["POST /build"] = lines(odd, {"aux": {"ID": DIGEST}})
        assert build(devops).body["result"]["digest"] == DIGEST

    @pytest.mark.parametrize("cut", [1, 5, 9])
    def test_puts_lines_together_that_come_apart(self, devops, engine, folder, cut):
        engine.image(DIGEST)
        whole = b"".join([*steps(2), *lines({"aux": {"ID": DIGEST}})]).rstrip()
        size = len(whole) // cut + 1
        engine.trouble["POST /build"] = [whole[at : at + size] for at in range(0, len(whole), size)]
        result = build(devops).body["result"]
        assert (result["digest"], result["output"]) == (DIGEST, "Step 0\nStep 1\n")

    def test_is_stopped_by_a_person_while_it_prints_nothing(self, nexus, devops, engine, folder):
        engine.image(DIGEST)
        silent = lines({"stream": "Step 0\n"}) + [b" "] * 1000
        engine.trouble["POST /build"] = [*silent, *lines({"aux": {"ID": DIGEST}})]
        begun = time.monotonic()
        with stop_the_run(nexus, lambda: engine.paths("POST") == ["/build"]):
            answer = build(devops)
        assert time.monotonic() - begun < 2 * PATIENCE
        assert code(answer) == "INVALID_TRANSITION"
        assert "alice: Wrong image." in answer.body["message"]
        wait_until(lambda: engine.hung_up)
        assert not ImageBuild.objects.exists()
        row = Run.objects.get()
        assert row.stopped_for == "alice: Wrong image."
        assert row.output == "Step 0\n"
        assert Intervention.objects.get().action_taken == "stop_run"

    def test_keeps_the_log_of_a_failure(self, devops, engine, folder):
        words = [{"stream": "Step 1\n"}, {"error": "returned a non-zero code: 1"}]
        engine.trouble["POST /build"] = lines(*words)
        assert code(build(devops)) == "INVALID_PARAMS"
        row = Run.objects.get()
        assert row.exit_status == 1
        assert row.output.startswith("Step 1\n")
        assert "non-zero code" in row.output

    def test_waits_for_its_turn(self, devops, engine, folder, monkeypatch):
        monkeypatch.setattr(queue, "PATIENCE", 0.5)
        Run.objects.create(
            organisation_id=devops.organisation_id, agent_id=devops.agent.id, tool="run_test",
            paths=[], asked_at=timezone.now(), started_at=timezone.now(),
            ends_by=timezone.now() + queue.GRACE,
        )  # fmt: skip
        assert code(build(devops)) == "RATE_LIMITED"
        assert not engine.builds


class TestADeployment:
    def test_keeps_a_log_with_what_its_container_printed(self, nexus, devops, engine):
        built_in(nexus, engine)
        result = deploy(devops).body["result"]
        row = Run.objects.get()
        assert (row.tool, row.paths, row.exit_status) == (
            "docker_deploy", [DIGEST, "staging"], 0,
        )  # fmt: skip
        assert "cannot open the database" in row.output
        assert result["output_sha256"] == row.output_sha256
        assert result["run_id"] == str(row.id)

    def test_streams_while_its_container_is_watched(self, nexus, devops, engine, monkeypatch):
        monkeypatch.setattr(containers, "WATCHED", 3.0)
        built_in(nexus, engine)
        deploy(devops)
        assert "create container" in printed(devops)[0]["output"]

    def test_that_a_person_stops_fails_and_leaves_what_ran(
        self, nexus, devops, engine, monkeypatch
    ):
        built_in(nexus, engine)
        built_in(nexus, engine, OTHER)
        deploy(devops)
        monkeypatch.setattr(containers, "WATCHED", 30.0)
        with stop_the_run(nexus, lambda: len(engine.containers) == 2):
            result = deploy(devops, artifact=OTHER).body["result"]
        assert result["state"] == "failed"
        assert "alice: Wrong image." in result["message"]
        ((_, container),) = engine.containers.items()
        assert container["Config"]["Image"] == DIGEST
        assert Event.objects.filter(action="deployment.failed").count() == 1

    def test_uses_no_approval_where_it_is_stopped_before_its_turn(self, nexus, devops, engine):
        built_in(nexus, engine)
        approve(nexus)
        before = a_run(devops)
        with stop_the_run(nexus, lambda: Run.objects.filter(tool="docker_deploy").exists()):
            found = call(devops, "docker_deploy", environment="production", artifact=DIGEST)
        assert code(found) == "INVALID_TRANSITION"
        assert not Deployment.objects.exists()
        before.delete()
        again = call(devops, "docker_deploy", environment="production", artifact=DIGEST)
        assert code(again) == "OK", again.body

    def test_cannot_be_stopped_once_it_takes_the_place_of_another(
        self, nexus, devops, engine, monkeypatch
    ):
        built_in(nexus, engine)
        states = []

        def retired(*_):
            states.append(Run.objects.get().ended_at is not None)
            return ""

        monkeypatch.setattr(containers, "retire_others", retired)
        deploy(devops)
        assert states == [True]


@pytest.mark.parametrize("end", [pause, revoke, take_away])
class TestARightThatEnds:
    """What was asked for with it is not begun any more (Spec: hands 16, wire 3)."""

    @pytest.fixture
    def devops(self, nexus, devops):
        key = issue_key(
            agent=Agent.objects.get(id=devops.agent.id), caller=devops, now=timezone.now()
        )
        return replace(devops, key=digest_of(key))

    def test_builds_no_image(self, nexus, devops, engine, folder, end):
        with before_its_turn(devops, lambda: end(devops, nexus)):
            assert code(build(devops)) == "INVALID_TRANSITION"
        assert not engine.builds
        assert not ImageBuild.objects.exists()

    def test_deploys_nothing_where_it_ends_just_before(
        self, nexus, devops, engine, end, monkeypatch
    ):
        """After the last look at it and before the turn."""
        built_in(nexus, engine)
        before, look = a_run(devops), RunRight.why_ended

        def then_end(right):
            found = look(right)
            if Run.objects.filter(id=before.id).delete()[0]:
                end(devops, nexus)
            return found

        monkeypatch.setattr(RunRight, "why_ended", then_end)
        assert code(deploy(devops)) == "INVALID_TRANSITION"
        assert not engine.paths("POST")
        assert not Deployment.objects.exists()

    def test_deploys_nothing(self, nexus, devops, engine, end):
        built_in(nexus, engine)
        with before_its_turn(devops, lambda: end(devops, nexus)):
            assert code(deploy(devops)) == "INVALID_TRANSITION"
        assert not engine.paths("POST")
        assert not Deployment.objects.exists()

    def test_deploys_nothing_where_it_ends_while_the_engine_is_asked(
        self, nexus, devops, engine, end, monkeypatch
    ):
        built_in(nexus, engine)
        approve(nexus)
        image = Engine.image

        def slow(self, reference):
            end(devops, nexus)
            return image(self, reference)

        monkeypatch.setattr(Engine, "image", slow)
        found = call(devops, "docker_deploy", environment="production", artifact=DIGEST)
        assert code(found) == "INVALID_TRANSITION"
        assert not engine.paths("POST")
        assert Contract.objects.get().used_at is None
        assert Run.objects.get().stopped_for
