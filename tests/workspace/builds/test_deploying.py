"""docker_deploy against an engine on a unix socket: approvals, containers, ends."""

import threading
import time
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import pytest
from django.db import transaction

from contracts.approvals.deployments import use_approval
from contracts.models import Contract
from contracts.reassignment import reassign_contracts
from core.actors import Person
from core.budget import Budget
from core.decision import Denied
from core.permissions import PeopleGroup
from governance.models import Intervention
from ledger.models import Event
from tests.concurrency import at_once
from tests.documents.world import NOW, caller_of, found
from tests.patience import PATIENCE, wait_until
from tests.workspace.builds.world import DIGEST, approve, built_in, call, code, devops_of
from toolbox.explaining import explain
from workspace import outside_calls
from workspace.builds import containers, deployments
from workspace.builds.engine import Engine as Client
from workspace.builds.models import Deployment, ImageBuild
from workspace.builds.settling import take_down
from workspace.files.places import own_tree
from workspace.runs import queue
from workspace.tree import WORK_TREE

OTHER = "sha256:" + "b" * 64


@pytest.fixture
def api(nexus, engine):
    return built_in(nexus, engine)


def deploy(caller, environment="staging", artifact=DIGEST, **more):
    return call(caller, "docker_deploy", environment=environment, artifact=artifact, **more)


class TestADeployment:
    def test_starts_a_container_and_says_so(self, devops, engine, api):
        result = deploy(devops).body["result"]
        assert (result["state"], result["service"], result["artifact"]) == (
            "succeeded", "api", DIGEST,
        )  # fmt: skip
        ((name, container),) = engine.containers.items()
        assert name.endswith(result["deployment_id"])
        assert container["State"] == {"Running": True}
        actions = [e.action for e in Event.objects.filter(action__startswith="deploy")]
        assert sorted(actions) == ["deployment.started", "deployment.succeeded"]

    def test_gives_its_container_no_label_of_the_image(self, devops, engine, api):
        """A proxy on the engine's machine would send it what is meant for others."""
        engine.image(DIGEST, Labels={"proxy.host": "bank.example", "nexus.service": "other"})
        deploy(devops)
        (container,) = engine.containers.values()
        labels = container["Config"]["Labels"]
        assert labels["proxy.host"] == ""
        assert labels["nexus.service"] == "api"

    def test_gives_its_container_nothing_of_the_machine(self, devops, engine, api):
        deploy(devops)
        ((_, container),) = engine.containers.items()
        host = container["Config"]["HostConfig"]
        assert host["Privileged"] is False
        assert host["CapDrop"] == ["ALL"]
        assert host["SecurityOpt"] == ["no-new-privileges"]
        assert host["NetworkMode"] in engine.networks
        assert host["ReadonlyRootfs"] is True
        assert not any(host[name] for name in ("Binds", "Mounts", "Devices", "CapAdd"))
        assert 0 < host["Memory"] == host["MemorySwap"]
        assert host["NanoCpus"] > 0
        assert host["PidsLimit"] > 0
        assert host["LogConfig"] == {"Type": "json-file", "Config": {"max-size": "10m"}}
        assert container["Config"]["User"] == "65534:65534"

    def test_gives_its_volumes_no_disk_of_the_machine(self, devops, engine, api):
        engine.image(DIGEST, Volumes={"/data/": {}, "/var//lib/x": {}})
        assert deploy(devops).body["ok"]
        ((_, container),) = engine.containers.items()
        scratch = container["Config"]["HostConfig"]["Tmpfs"]
        assert scratch.keys() == {"/tmp", "/run", "/data", "/var/lib/x"}
        assert {"size=64m", "noexec"} <= set.intersection(
            *(set(v.split(",")) for v in scratch.values())
        )

    def test_is_looked_after_no_more_often_than_the_engine_bears(self, devops, engine, api):
        """Each look is work of the engine itself, outside of the container's limits."""
        own = {"Test": ["CMD", "true"], "Interval": 10**6, "StartInterval": 10**6, "Retries": 2}
        engine.image(DIGEST, Healthcheck=own)
        assert deploy(devops).body["ok"]
        ((_, container),) = engine.containers.items()
        calm = {"Interval": 10**10, "StartInterval": 10**10}
        assert container["Config"]["Healthcheck"] == own | calm

    def test_takes_no_image_that_says_much_of_itself(self, devops, engine, api):
        engine.image(DIGEST, Labels={"a": "x" * 20_000})
        assert code(deploy(devops)) == "TOO_LARGE"

    def test_shares_no_network_with_another_organisation(self, nexus, devops, engine, api):
        other = found(slug="other")
        built_in(other, engine)
        for caller in (devops, devops_of(other), devops):
            assert deploy(caller).body["ok"]
        hosts = [each["Config"]["HostConfig"] for each in engine.containers.values()]
        assert len({host["NetworkMode"] for host in hosts}) == len(hosts) == 2
        assert engine.networks.keys() == {host["NetworkMode"] for host in hosts}

    @pytest.mark.parametrize("outbound", [False, True])
    def test_reaches_nothing_outside_unless_the_operator_says_so(
        self, devops, engine, api, settings, outbound
    ):
        """Not the addresses of the engine's cloud, nor the operator's own servers."""
        for settings.CONTAINER_OUTBOUND in (not outbound, outbound):
            deploy(devops)
        ((_, container),) = engine.containers.items()
        network = engine.networks[container["Config"]["HostConfig"]["NetworkMode"]]
        assert network["Internal"] is not outbound

    def test_has_a_name_in_its_network_that_stays(self, devops, engine, api):
        for _ in range(2):
            deploy(devops)
            ((_, container),) = engine.containers.items()
            ends = container["Config"]["NetworkingConfig"]["EndpointsConfig"]
            network = container["Config"]["HostConfig"]["NetworkMode"]
            assert ends == {network: {"Aliases": ["api.staging.nexus.internal"]}}

    def test_takes_the_network_that_another_deployment_just_made(self, devops, engine, api):
        engine.trouble["POST /networks/create"] = 409
        assert deploy(devops).body["result"]["state"] == "succeeded"

    @pytest.mark.parametrize("where", ["GET /networks", "POST /networks/create"])
    def test_fails_without_its_network(self, devops, engine, api, where):
        """An engine has few addresses for networks: what it says of it is in the answer."""
        network = containers.network_of(devops.organisation_id)
        engine.trouble[where.replace("GET /networks", f"GET /networks/{network}")] = 500
        result = deploy(devops).body["result"]
        assert (result["state"], "trouble 500" in result["message"]) == ("failed", True)
        assert not engine.containers

    def test_uses_the_network_that_the_operator_names(self, devops, engine, api, settings):
        settings.CONTAINER_NETWORK = "services"
        deploy(devops)
        ((_, container),) = engine.containers.items()
        assert container["Config"]["HostConfig"]["NetworkMode"] == "services"
        assert container["Config"]["NetworkingConfig"] == {"EndpointsConfig": {}}
        assert not engine.networks

    @pytest.mark.parametrize("user", ["toor", "app", "1000:root"])
    def test_takes_no_user_who_may_be_root_by_a_file_of_the_image(self, devops, engine, api, user):
        engine.image(DIGEST, User=user)
        answer = deploy(devops)
        assert code(answer) == "INVALID_PARAMS"
        assert "USER 1000" in answer.body["next_action"]
        assert not engine.containers

    @pytest.mark.parametrize("volume", ["data", "../x", "/", "", "//x", "."])
    def test_takes_no_volume_that_is_no_absolute_path(self, devops, engine, api, volume):
        engine.image(DIGEST, Volumes={volume: {}})
        assert code(deploy(devops)) == "INVALID_PARAMS"
        assert not engine.containers

    def test_puts_away_what_ran_before_in_the_same_place_only(self, nexus, devops, engine, api):
        built_in(nexus, engine, OTHER)
        built_in(nexus, engine, "sha256:" + "c" * 64, service="web")
        deploy(devops)
        deploy(devops, environment="test")
        deploy(devops, artifact="sha256:" + "c" * 64)
        last = deploy(devops, artifact=OTHER).body["result"]
        labels = [each["Config"]["Labels"] for each in engine.containers.values()]
        assert sorted((x["nexus.environment"], x["nexus.service"]) for x in labels) == [
            ("staging", "api"), ("staging", "web"), ("test", "api"),
        ]  # fmt: skip
        assert last["deployment_id"] in {x["nexus.deployment"] for x in labels}

    def test_that_ends_at_once_fails_and_leaves_what_ran(self, nexus, devops, engine, api):
        built_in(nexus, engine, OTHER)
        deploy(devops)
        engine.exits = 3
        result = deploy(devops, artifact=OTHER).body["result"]
        assert result["state"] == "failed"
        assert "code 3" in result["message"]
        assert "cannot open the database" in result["message"]
        ((_, container),) = engine.containers.items()
        assert container["Config"]["Image"] == DIGEST

    @pytest.mark.parametrize(
        ("where", "trouble", "state"),
        [
            ("POST /containers/create", 500, "failed"),
            ("POST /containers/create", 409, "failed"),
            ("POST /containers/create", "hang up", "unknown"),
            ("POST /containers/create", b"no json", "unknown"),
            ("/start", 404, "failed"),
            ("/start", "hang up", "unknown"),
        ],
    )
    def test_has_an_end_whatever_the_engine_does(self, devops, engine, api, where, trouble, state):
        engine.trouble[where] = trouble
        result = deploy(devops).body["result"]
        assert result["state"] == state
        row = Deployment.objects.get()
        assert (row.state, row.settled_at is not None, row.version) == (state, True, 2)
        assert Event.objects.filter(action=f"deployment.{state}").count() == 1

    @pytest.mark.parametrize(
        "trouble",
        [
            {"/logs": b"it said \0 and \xff"},
            {"/start": (400, {"message": "no such file: a\0b\ud800"})},
        ],
        ids=["last words", "a refusal"],
    )
    def test_has_an_end_that_no_column_can_hold(self, devops, engine, api, trouble):
        """What its container prints and what it is called are its image's."""
        engine.exits = 3
        engine.trouble = trouble
        assert deploy(devops).body["result"]["state"] == "failed"
        assert Deployment.objects.get().state == "failed"

    def test_succeeds_where_what_ran_before_cannot_be_listed(self, devops, engine, api):
        engine.trouble["/start"] = lambda: engine.trouble.update({"GET /containers/json": 500})
        result = deploy(devops).body["result"]
        assert result["state"] == "succeeded"
        assert "its predecessor may still run" in result["message"]

    @pytest.mark.parametrize("trouble", ["slow", "drip"])
    def test_ends_in_time(self, devops, engine, api, monkeypatch, trouble):
        monkeypatch.setattr(deployments, "LONGEST", 2.0)
        engine.trouble["/start"] = trouble
        began = time.monotonic()
        assert deploy(devops).body["result"]["state"] == "unknown"
        assert time.monotonic() - began < PATIENCE / 2

    def test_is_recorded_though_something_of_ours_breaks(self, devops, engine, api, monkeypatch):
        def broken(*_):
            raise RuntimeError("ours")

        monkeypatch.setattr(Client, "start", broken)
        assert code(deploy(devops)) == "INTERNAL"
        assert Deployment.objects.get().state == "unknown"

    def test_is_done_once_for_one_key(self, devops, engine, api):
        first, second = (deploy(devops, key="once") for _ in range(2))
        ids = [each.body["result"]["deployment_id"] for each in (first, second)]
        assert ids[0] == ids[1]
        assert Deployment.objects.count() == 1

    def test_that_was_interrupted_is_not_repeated_for_its_key(
        self, devops, engine, api, monkeypatch
    ):
        def died(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(containers, "start", died)
            with pytest.raises(KeyboardInterrupt):
                deploy(devops, key="once")
        again = deploy(devops, key="once")
        assert code(again) == "IDEMPOTENCY_MISMATCH"
        assert "if nothing, make it again under a new key" in again.body["next_action"]
        assert Deployment.objects.count() == 1


class TestTheArtefact:
    @pytest.mark.parametrize(
        "artifact", ["api:1", "latest", "sha256:abc", DIGEST.upper(), f"{DIGEST}\n", f" {DIGEST}"]
    )
    def test_is_named_by_its_digest(self, devops, engine, api, artifact):
        assert code(deploy(devops, artifact=artifact)) == "INVALID_PARAMS"
        assert not engine.containers

    def test_was_built_here(self, devops, engine):
        engine.image(OTHER)
        assert code(deploy(devops, artifact=OTHER)) == "NOT_FOUND"

    def test_was_built_by_this_organisation(self, devops, engine):
        built_in(found(slug="other"), engine)
        assert code(deploy(devops)) == "NOT_FOUND"

    def test_is_the_one_that_the_engine_has(self, devops, engine, api):
        engine.images[DIGEST]["Id"] = OTHER
        assert code(deploy(devops)) == "NOT_FOUND"
        engine.images.clear()
        assert code(deploy(devops)) == "NOT_FOUND"
        assert not Deployment.objects.exists()


class TestProduction:
    def test_uses_its_approval_up(self, nexus, devops, engine, api):
        approval = approve(nexus)
        assert deploy(devops, "production").body["result"]["state"] == "succeeded"
        assert Deployment.objects.get().approval_id == approval
        assert Contract.objects.get().used_at >= NOW
        assert code(deploy(devops, "production")) == "APPROVAL_REQUIRED"
        assert Deployment.objects.count() == 1

    def test_uses_it_up_though_the_deployment_fails(self, nexus, devops, engine, api):
        approve(nexus)
        engine.exits = 1
        assert deploy(devops, "production").body["result"]["state"] == "failed"
        assert code(deploy(devops, "production")) == "APPROVAL_REQUIRED"

    @pytest.mark.parametrize("trouble", ["hang up", 500, b"not json"])
    def test_keeps_it_while_the_engine_does_not_answer(self, nexus, devops, engine, api, trouble):
        approve(nexus)
        engine.trouble["/json"] = trouble
        found = deploy(devops, "production")
        assert (code(found), found.body["details"]) == (
            "DRIVER_UNAVAILABLE", {"driver": "container engine"},
        )  # fmt: skip
        assert Contract.objects.get().used_at is None

    def test_keeps_it_where_no_service_has_a_place(self, nexus, devops, engine, api, settings):
        settings.CONTAINER_SERVICES = 1
        assert deploy(devops).body["result"]["state"] == "succeeded"
        approve(nexus)
        refused = deploy(devops, "production")
        assert code(refused) == "QUOTA_EXCEEDED"
        assert refused.body["details"]["limit"] == 1
        assert Contract.objects.get().used_at is None
        assert deploy(devops).body["result"]["state"] == "succeeded"  # it takes its own place

    def test_has_no_place_by_the_labels_of_a_build(self, nexus, devops, engine, api, settings):
        """The container of a step of a build has the labels that its Dockerfile says."""
        settings.CONTAINER_SERVICES = 1
        assert deploy(devops).body["result"]["state"] == "succeeded"
        labels = containers.labels_of(nexus.id, "staging", "web")
        step = {"Id": "c" * 64, "Config": {"Labels": labels}, "State": {"Running": True}}
        engine.containers["angry_hopper"] = step
        web = built_in(nexus, engine, OTHER, "web")
        refused = deploy(devops, artifact=web)
        assert code(refused) == "QUOTA_EXCEEDED"
        assert refused.body["details"]["used"] == 1

    def test_keeps_it_where_the_engine_drops_limits(self, nexus, devops, engine, api):
        approve(nexus)
        engine.limits["PidsLimit"] = False
        refused = deploy(devops, "production")
        assert code(refused) == "DRIVER_UNAVAILABLE"
        assert "cannot limit pids of a container" in refused.body["message"]
        assert not engine.containers
        assert Contract.objects.get().used_at is None

    def test_keeps_it_where_there_is_no_engine(self, nexus, devops, engine, api, settings):
        approve(nexus)
        for address in ("", "unix:///nowhere/engine.sock", "tcp://127.0.0.1:9"):
            settings.CONTAINER_ENGINE = address
            assert code(deploy(devops, "production")) == "DRIVER_UNAVAILABLE"
        assert Contract.objects.get().used_at is None

    @pytest.mark.parametrize(
        "environment",
        ["Production", "PRODUCTION", "production ", " production", "production\n", "produc\ttion",
         "pro\u200bduction", "ｐroduction", "prod", "production-eu", "staging2"],
    )  # fmt: skip
    def test_is_spelled_in_one_way(self, nexus, devops, engine, api, environment):
        approve(nexus)
        assert code(deploy(devops, environment)) == "APPROVAL_REQUIRED"
        assert not engine.containers
        assert Contract.objects.get().used_at is None

    @pytest.mark.parametrize("environment", ["Staging", "staging ", "\nstaging", "TEST"])
    def test_so_is_every_other_environment(self, devops, engine, api, environment):
        assert code(deploy(devops, environment)) == "INVALID_PARAMS"
        assert not engine.containers

    @pytest.mark.parametrize("terms", [{"artifact": OTHER}, {"environment": "production-eu"}])
    def test_takes_no_approval_of_something_else(self, nexus, devops, engine, api, terms):
        approve(nexus, **terms)
        assert code(deploy(devops, "production")) == "APPROVAL_REQUIRED"
        assert not Deployment.objects.exists()

    def test_is_of_the_service_that_was_approved(
        self, nexus, devops, engine, api, tmp_path, settings
    ):
        """Spec: hands 33: the same image under another name would replace another service."""
        settings.WORKSPACE_ROOT = tmp_path / "company"
        folder = own_tree(devops, WORK_TREE).root / WORK_TREE / "docker" / "api"
        folder.mkdir(parents=True)
        (folder / "Dockerfile").write_text("FROM scratch\n")
        aux = b'{"aux": {"ID": "' + DIGEST.encode() + b'"}}\n'
        engine.trouble["POST /build"] = aux
        approve(nexus)
        again = call(devops, "docker_build", path="docker/api/", tag="payments:1")
        assert (code(again), again.body["details"]) == (
            "INVALID_PARAMS", {"tag": "the image is one of another service"},
        )  # fmt: skip
        engine.trouble["POST /build"] = aux
        assert code(call(devops, "docker_build", path="docker/api/", tag="api:2")) == "OK"
        assert deploy(devops, "production").body["result"]["service"] == "api"

    def test_takes_none_of_the_agent_that_built_it(self, nexus, devops, engine, api):
        """Spec: organisation 28: built in an earlier role, before it became the manager."""
        approve(nexus)
        it = caller_of(nexus, "it_manager").agent.id
        builder = ImageBuild.objects.values_list("built_by_id", flat=True).get()
        ImageBuild.objects.update(built_by_id=it)
        assert code(deploy(devops, "production")) == "APPROVAL_REQUIRED"
        assert Contract.objects.get().used_at is None
        ImageBuild.objects.update(built_by_id=builder)
        assert code(deploy(devops, "production")) == "OK"

    def test_takes_none_of_a_builder_that_left_it_to_its_superior(self, nexus, devops, engine, api):
        """The CEO becomes its issuer, and did not approve it (Spec: contracts 42)."""
        it, ceo = (caller_of(nexus, handle) for handle in ("it_manager", "ceo"))
        ImageBuild.objects.update(built_by_id=it.agent.id)
        approve(nexus)
        reassign_contracts(caller=ceo, leaver=it.agent, successor=ceo.agent, now=NOW)
        assert Contract.objects.get().issuer_id == ceo.agent.id
        assert code(deploy(devops, "production")) == "APPROVAL_REQUIRED"

    def test_takes_none_from_before_the_image_was_built(self, nexus, devops, engine, api):
        """Its service would be the builder's choice, not what was approved (Spec: hands 33)."""
        contract_id = approve(nexus)
        ImageBuild.objects.update(built_at=NOW + timedelta(seconds=1))
        found = deploy(devops, "production")
        assert code(found) == "APPROVAL_REQUIRED"
        assert contract_id in found.body["message"]
        assert Contract.objects.get().used_at is None

    def test_takes_a_later_one_that_is_good(self, nexus, devops, engine, api):
        """Though one from before the build expires sooner (Spec: contracts 18)."""
        later = {"now": NOW + timedelta(seconds=2), "expires_at": NOW + timedelta(hours=2)}
        old, good = approve(nexus), approve(nexus, **later)
        ImageBuild.objects.update(built_at=NOW + timedelta(seconds=1))
        assert code(deploy(devops, "production")) == "OK"
        (used,) = Contract.objects.exclude(used_at=None)
        assert (used.id, Contract.objects.get(id=old).used_at) == (good, None)

    def test_takes_no_expired_one(self, nexus, devops, engine, api):
        approve(nexus)
        late = NOW + timedelta(hours=1)
        assert code(deploy(devops, "production", now=late)) == "APPROVAL_REQUIRED"

    def test_takes_none_that_is_used_while_the_engine_is_asked(
        self, nexus, devops, engine, api, monkeypatch
    ):
        approve(nexus)

        image = Client.image

        def slow(self, reference):
            with transaction.atomic():
                use_approval(caller=devops, environment="production", artifact=DIGEST, now=NOW)
            return image(self, reference)

        monkeypatch.setattr(Client, "image", slow)
        assert code(deploy(devops, "production")) == "APPROVAL_REQUIRED"
        assert not engine.containers

    def test_takes_none_that_expires_while_the_engine_is_asked(
        self, nexus, devops, engine, api, monkeypatch
    ):
        approve(nexus)
        clock, image = SimpleNamespace(at=NOW), Client.image
        clock.now = lambda: clock.at

        def slow(self, reference):
            clock.at += timedelta(hours=1)
            return image(self, reference)

        monkeypatch.setattr(Client, "image", slow)
        late = deploy(replace(devops, clock=clock), "production")
        assert code(late) == "APPROVAL_REQUIRED"
        assert "has expired" in late.body["message"]
        assert Contract.objects.get().used_at is None
        assert not engine.containers

    def test_takes_none_from_who_deploys(self, nexus, devops):
        answer = call(
            devops, "approve_deployment", to="devops_worker", environment="production",
            artifact=DIGEST, expires_at="2026-02-20T00:00:00Z", reason="mine",
        )  # fmt: skip
        assert code(answer) == "TOOL_NOT_BOUND"

    def test_is_explained_without_an_engine_and_uses_nothing(self, nexus, devops, engine, api):
        approve(nexus)
        question = {"environment": "production", "artifact": DIGEST}
        assert explain(devops, "docker_deploy", question, now=NOW)["allowed"]
        assert engine.asked == []
        assert Contract.objects.get().used_at is None


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    @pytest.fixture(autouse=True)
    def without_queue(self, monkeypatch):
        """So that one agent's deployments meet."""
        monkeypatch.setattr(queue, "_start", lambda *_: True)
        monkeypatch.setattr(outside_calls, "PLACES", Budget(16))

    def test_one_approval_starts_one_deployment(self, engine):
        nexus = found()
        built_in(nexus, engine)
        approve(nexus)
        callers = [devops_of(nexus) for _ in range(4)]
        barrier = threading.Barrier(4)
        engine.trouble["GET /images/" + DIGEST + "/json"] = lambda: barrier.wait(PATIENCE)
        answers = at_once([lambda each=each: code(deploy(each, "production")) for each in callers])
        assert sorted(answers) == ["APPROVAL_REQUIRED"] * 3 + ["OK"]
        assert (Deployment.objects.count(), len(engine.containers)) == (1, 1)

    def test_one_service_has_one_deployment_under_way(self, engine):
        nexus = found()
        built_in(nexus, engine)
        callers = [devops_of(nexus) for _ in range(3)]
        barrier = threading.Barrier(3)
        engine.trouble["GET /images/" + DIGEST + "/json"] = lambda: barrier.wait(PATIENCE)
        refused = []

        def attempt(caller):
            answer = code(deploy(caller))
            if answer != "OK":
                refused.append(answer)
            return answer

        engine.trouble["POST /containers/create"] = lambda: wait_until(lambda: len(refused) == 2)
        answers = at_once([partial(attempt, each) for each in callers])
        assert sorted(answers) == ["INVALID_TRANSITION"] * 2 + ["OK"]

    def test_one_of_two_people_takes_a_service_down(self, engine):
        nexus = found()
        built_in(nexus, engine)
        deploy(devops_of(nexus))
        row = Deployment.objects.get()
        barrier = threading.Barrier(4)
        engine.trouble["GET /containers/json"] = lambda: barrier.wait(PATIENCE)

        def attempt(name):
            by = Person(
                username=name,
                groups=frozenset({PeopleGroup.BOARD}),
                organisation_id=nexus.id,
                is_member=True,
            )
            try:
                take_down(deployment_id=row.id, person=by, reason="Enough.", now=NOW)
            except Denied as refusal:
                return refusal.deny.code
            return "OK"

        answers = at_once([partial(attempt, name) for name in ("ann", "bo", "cy", "di")])
        assert sorted(answers) == ["INVALID_TRANSITION"] * 3 + ["OK"]
        assert Event.objects.filter(action="deployment.removed").count() == 1
        assert Intervention.objects.count() == 1
        assert not engine.containers

    def test_a_slow_look_removes_nothing_that_began_meanwhile(self, engine):
        later = NOW + timedelta(minutes=1)
        nexus = found()
        built_in(nexus, engine)
        built_in(nexus, engine, OTHER)
        deploy(devops_of(nexus))
        row = Deployment.objects.get()

        def deploy_other():
            del engine.trouble["GET /containers/json"]
            (answer,) = at_once([lambda: deploy(devops_of(nexus), artifact=OTHER, now=later)])
            assert answer.body["result"]["state"] == "succeeded"

        engine.trouble["GET /containers/json"] = deploy_other
        by = Person(
            username="ann",
            groups=frozenset({PeopleGroup.BOARD}),
            organisation_id=nexus.id,
            is_member=True,
        )
        with pytest.raises(Denied, match="took its place"):
            take_down(deployment_id=row.id, person=by, reason="Enough.", now=NOW)
        assert [each["Config"]["Image"] for each in engine.containers.values()] == [OTHER]
        assert not Event.objects.filter(action="deployment.removed").exists()

    def test_a_second_sweep_removes_nothing_that_began_meanwhile(self, engine):
        nexus = found()
        built_in(nexus, engine)
        built_in(nexus, engine, OTHER)
        row = interrupted(nexus)
        engine.containers[containers.container_name(row)] = {
            "Id": "1", "State": {"Running": True}, "Config": containers.config_of(row, {}),
        }  # fmt: skip

        def settle_and_deploy():
            assert deployments.settle_interrupted(now=row.due_at) == 1
            answer = deploy(devops_of(nexus), artifact=OTHER)
            return answer.body["result"]["state"]

        def meanwhile():
            del engine.trouble["GET /containers/json"]
            assert at_once([settle_and_deploy], raising=True) == ["succeeded"]

        engine.trouble["GET /containers/json"] = meanwhile
        assert deployments.settle_interrupted(now=row.due_at) == 0
        assert [each["Config"]["Image"] for each in engine.containers.values()] == [OTHER]

    def test_one_of_two_settles(self, engine):
        nexus = found()
        row = interrupted(nexus)
        end = containers.DeploymentOutcome(deployments.DeploymentState.FAILED, "x")
        by = devops_of(nexus)
        assert sorted(at_once([lambda: deployments.settle(row, end, by=by)] * 4)) == [
            False, False, False, True,
        ]  # fmt: skip
        assert Event.objects.filter(action="deployment.failed").count() == 1


def interrupted(nexus, **fields):
    return Deployment.objects.create(
        **{
            "id": "DEP-1", "organisation": nexus, "environment": "staging", "service": "api",
            "artifact": DIGEST, "started_at": NOW, "due_at": NOW + timedelta(minutes=2),
            "deployed_by_id": caller_of(nexus, "devops_worker").agent.id, **fields,
        }
    )  # fmt: skip


class TestTheSweep:
    LATER = NOW + timedelta(minutes=2)

    @pytest.fixture
    def row(self, nexus):
        return interrupted(nexus)

    def run(self, row, engine, **state):
        if state:
            engine.containers[containers.container_name(row)] = {
                "Id": "1", "State": state, "Config": containers.config_of(row, {}),
            }  # fmt: skip
        assert deployments.settle_interrupted(now=self.LATER) == 1
        row = Deployment.objects.get()
        assert row.settled_at is not None
        return row.state

    def test_finds_that_it_runs(self, row, engine):
        assert self.run(row, engine, Running=True) == "succeeded"

    def test_finds_that_it_ended(self, row, engine):
        assert self.run(row, engine, Running=False, ExitCode=1) == "failed"
        assert not engine.containers

    def test_finds_that_it_never_began(self, row, engine):
        assert self.run(row, engine) == "failed"

    @pytest.mark.parametrize("trouble", ["hang up", 500, 401, b"not json"])
    def test_finds_nothing_out_and_ends_nothing(self, row, engine, trouble):
        engine.trouble["/json"] = trouble
        assert self.run(row, engine, Running=True) == "unknown"
        assert engine.containers
        assert engine.paths("DELETE") == []

    @pytest.mark.parametrize("trouble", ["hang up", 500])
    def test_does_not_know_what_the_engine_cannot_remove(self, row, engine, trouble):
        engine.trouble[f"DELETE /containers/{containers.container_name(row)}"] = trouble
        assert self.run(row, engine, Running=True, Restarting=True) == "unknown"
        assert "may still run" in Deployment.objects.get().problem

    def test_has_no_engine_any_more(self, row, engine, settings):
        settings.CONTAINER_ENGINE = ""
        assert self.run(row, engine) == "unknown"

    def test_leaves_what_is_not_due_and_what_has_ended(self, row, engine):
        assert deployments.settle_interrupted(now=NOW) == 0
        self.run(row, engine)
        assert deployments.settle_interrupted(now=self.LATER) == 0

    def test_does_not_overwrite_what_the_call_saw(self, row, engine, devops):
        end = containers.DeploymentOutcome(deployments.DeploymentState.SUCCEEDED)
        assert deployments.settle(row, end, by=devops)
        late = containers.DeploymentOutcome(deployments.DeploymentState.UNKNOWN, "late")
        assert not deployments.settle(row, late, by=devops)
        assert Deployment.objects.get().state == "succeeded"
