"""docker_build against an engine on a unix socket: what is sent, and what comes of it."""

import json

import pytest

from core import outgoing
from core.database import in_transaction
from core.decision import Denied
from ledger.models import Event
from orgchart.models import Role
from tests.patience import wait_until
from tests.workspace.builds.world import DIGEST, call, code, coding, devops_of
from toolbox.space import STORAGE_FULL
from workspace.builds import containers, context, dockerfiles, images
from workspace.builds import engine as engines
from workspace.builds.models import ImageBuild
from workspace.files.places import own_tree
from workspace.runs import watching
from workspace.tree import WORK_TREE, organisation_folder

DOCKERFILE = "FROM scratch\nCOPY app /app\n"


@pytest.fixture(autouse=True)
def company(settings, tmp_path):
    settings.WORKSPACE_ROOT = tmp_path / "company"


@pytest.fixture
def folder(nexus, devops):
    made = own_tree(devops, WORK_TREE).root / WORK_TREE / "docker" / "api"
    made.mkdir(parents=True)
    (made / "Dockerfile").write_text(DOCKERFILE)
    (made / "app").write_text("#!/bin/sh\n")
    (made / "data").mkdir()
    (made / "data" / "x.txt").write_text("x")
    return made


def build(caller, path="docker/api/", tag="api:1", **more):
    return call(caller, "docker_build", path=path, tag=tag, **more)


class TestABuild:
    def test_sends_the_folder_and_returns_the_engines_digest(self, devops, engine, folder):
        result = build(devops).body["result"]
        ((query, files),) = engine.builds
        assert files.keys() == {"Dockerfile", "app", "data/x.txt"}
        assert result["digest"] in engine.images
        row = ImageBuild.objects.get()
        assert (row.digest, row.service, row.path) == (result["digest"], "api", "docker/api/")
        assert engine.images[row.digest]["RepoTags"] == [row.tag]
        assert query["t"] not in json.dumps(result)
        assert {e.action for e in Event.objects.filter(subject=f"image:{row.tag}")} == {
            "image.build_started", "image.built",
        }  # fmt: skip

    def test_sends_nothing_of_the_clone_outside_of_its_scope(self, devops, engine, folder):
        """A folder above the clone is in the agent's home, and what is below it is not."""
        clone = folder.parent.parent
        for place in (clone, clone / "src"):
            place.mkdir(exist_ok=True)
            (place / "app.py").write_text("SECRET = 1\n")
        (clone / "Dockerfile").write_text(DOCKERFILE)
        build(devops, "agents/devops_worker/workspace/")
        ((_, files),) = engine.builds
        assert files.keys() == {f"docker/api/{n}" for n in ("Dockerfile", "app", "data/x.txt")}

    def test_sends_nothing_that_another_worker_keeps_in_a_shared_folder(self, nexus, engine):
        """Spec: files 22. What a build prints of a file would be a way to read it."""
        Role.objects.filter(organisation=nexus, name="devops_worker").update(
            files_read=["reports/qa/"]
        )
        shared = organisation_folder("nexus") / "reports" / "qa"
        shared.mkdir(parents=True)
        (shared / "Dockerfile").write_text("FROM scratch\nCOPY . /\n")
        (shared / "people.md").write_text("put there by the operator")
        judge = coding(nexus, "qa_worker")
        written = call(judge, "write_file", path="reports/qa/week.md", content="for you")
        assert code(written) == "OK"
        assert code(build(devops_of(nexus), "reports/qa/")) == "OK"
        ((_, files),) = engine.builds
        assert files.keys() == {"Dockerfile", "people.md"}
        call(judge, "write_file", path="reports/qa/Dockerfile", content="FROM scratch\n")
        assert code(build(devops_of(nexus), "reports/qa/")) == "NOT_FOUND"

    def test_sends_the_very_dockerfile_that_was_checked(self, devops, engine, folder, monkeypatch):
        """Another call of the agent may write it meanwhile."""
        checked = dockerfiles.can_build_from

        def changed(text, *words):
            decision = checked(text, *words)
            (folder / "Dockerfile").write_text("FROM scratch\nADD http://127.0.0.1/ /x\n")
            return decision

        monkeypatch.setattr(context, "can_build_from", changed)
        assert build(devops).status == 200
        ((_, files),) = engine.builds
        assert files["Dockerfile"] == DOCKERFILE.encode()

    def test_begins_with_no_image_of_another_organisation(self, devops, engine, folder):
        own = containers.image_prefix(devops.organisation_id)
        other = containers.image_prefix(devops.organisation_id + 1)
        for name, status in ((own, 200), (other, 400)):
            (folder / "Dockerfile").write_text(f"FROM {name}api:1\nRUN cat /secret\n")
            assert build(devops).status == status
        assert len(engine.builds) == 1

    def test_begins_with_what_the_operator_trusts(self, devops, engine, folder, settings):
        (folder / "Dockerfile").write_text("FROM ghcr.io/team/app:1\n")
        found = build(devops)
        assert code(found) == "INVALID_PARAMS"
        assert "ghcr.io/team/app:1" in found.body["message"]
        settings.CONTAINER_BASES = ["ghcr.io/team"]
        assert code(build(devops)) == "OK"

    def test_is_unprivileged_and_limited(self, devops, engine, folder):
        build(devops)
        ((query, _),) = engine.builds
        assert query["networkmode"] == "none"
        assert int(query["memory"]) == int(query["memswap"]) > 0
        assert int(query["cpuquota"]) > 0
        assert not query.keys() & {"remote", "extrahosts", "dockerfile", "buildargs", "privileged"}

    @pytest.mark.parametrize(
        ("network", "said"),
        [
            ("none", {"networkmode": "NetworkDisabled"}),
            (
                "builds",
                {
                    "networkmode": "NetworkEnabled",
                    "nsoptions": '[{"Name": "network", "Host": false, "Path": "builds"}]',
                },
            ),
        ],
    )
    def test_has_no_network_of_the_engines_machine(
        self, devops, engine, folder, settings, network, said
    ):
        """Podman reads neither `none` nor a name, and takes its own machine's network then."""
        engine.controllers = ["cpu", "memory", "pids"]
        settings.CONTAINER_BUILD_NETWORK = network
        assert code(build(devops)) == "OK"
        ((query, _),) = engine.builds
        assert query.items() >= said.items()

    def test_runs_each_step_anew(self, devops, engine, folder):
        """From its cache an engine gives what another organisation's same step has made."""
        build(devops)
        ((query, _),) = engine.builds
        assert query["nocache"] == "true"

    def test_is_named_apart_from_other_organisations_images(self, devops, engine, folder):
        build(devops, tag="api")
        ((query, _),) = engine.builds
        ((name,),) = (image["RepoTags"] for image in engine.images.values())
        own = containers.image_prefix(devops.organisation_id)
        assert own.startswith("nexus-")
        assert own.endswith(f"-o{devops.organisation_id}-")
        assert query["t"].startswith(own)
        assert name == f"{own}api:latest"

    def test_is_found_by_its_whole_name_only(self, devops, engine, folder):
        """Podman takes the pieces after a slash for a short name of the image, for everyone."""
        build(devops)
        ((query, _),) = engine.builds
        assert "/" not in query["t"]

    @pytest.mark.parametrize(
        "tag",
        ["docker.io/library/nginx", "../x", "api:1:2", "API", "a b", "localhost:5000/x", "-x"],
    )
    def test_takes_no_name_of_a_registry(self, devops, engine, folder, tag):
        assert code(build(devops, tag=tag)) == "INVALID_PARAMS"
        assert not engine.builds

    def test_says_why_it_failed(self, devops, engine, folder):
        (folder / "Dockerfile").write_text("FROM scratch\nRUN false\n")
        found = build(devops)
        assert code(found) == "INVALID_PARAMS"
        assert "non-zero code" in found.body["message"]
        assert not ImageBuild.objects.exists()

    @pytest.mark.parametrize("trouble", [500, "hang up", b"[" * 100_000])
    @pytest.mark.parametrize("asked", ["POST /build", "/json"])
    def test_says_that_the_engine_does_not_answer(self, devops, engine, folder, trouble, asked):
        engine.trouble[asked] = trouble
        assert code(build(devops)) == "DRIVER_UNAVAILABLE"

    @pytest.mark.parametrize(
        "named", ["sha256:" + "b" * 5000, "sha256:\0", "sha256:\ud800", "sha256:../x\n", "x" * 64]
    )
    def test_takes_no_name_that_is_no_digest(self, devops, engine, folder, named):
        engine.trouble["POST /build"] = json.dumps({"aux": {"ID": named}}).encode()
        engine.trouble["/json"] = json.dumps({"Id": named}).encode()
        assert code(build(devops)) == "DRIVER_UNAVAILABLE"
        assert not ImageBuild.objects.exists()

    @pytest.mark.parametrize(
        ("limits", "controllers", "missing"),
        [
            ({"MemoryLimit": False}, None, "memory"),
            ({"PidsLimit": False, "CpuCfsQuota": False}, None, "pids, cpu"),
            ({}, [], "memory, pids, cpu"),
            ({}, ["memory", "pids"], "cpu"),
        ],
    )
    def test_has_no_engine_that_drops_its_limits(
        self, devops, engine, folder, limits, controllers, missing
    ):
        engine.limits |= limits
        engine.controllers = controllers
        refused = build(devops)
        assert code(refused) == "DRIVER_UNAVAILABLE"
        assert f"cannot limit {missing} of a container" in refused.body["message"]
        assert not engine.builds

    def test_takes_an_engine_of_a_user_that_limits_all(self, devops, engine, folder):
        engine.controllers = ["cpu", "memory", "pids"]
        assert code(build(devops)) == "OK"

    def test_runs_in_the_cgroup_that_the_operator_names(self, devops, engine, folder, settings):
        settings.CONTAINER_BUILD_CGROUP = "nexus-builds.slice"
        assert code(build(devops)) == "OK"
        ((query, _),) = engine.builds
        assert query["cgroupparent"] == "nexus-builds.slice"

    def test_prints_no_more_than_is_read(self, devops, engine, folder):
        """What its agent can change is no fault of the engine."""
        engine.trouble["POST /build"] = b'{"stream": "."}\n' * (engines.MOST_ANSWER // 15)
        refused = build(devops)
        assert code(refused) == "TOO_LARGE"
        assert "the build prints more than" in refused.body["message"]

    def test_takes_no_redirect_for_a_build(self, devops, engine, folder):
        assert code(build(devops)) == "OK"
        engine.trouble["POST /build"] = (302, b"")
        assert code(build(devops)) == "DRIVER_UNAVAILABLE"

    def test_ends_in_time(self, devops, engine, folder, settings):
        settings.CONTAINER_BUILD_SECONDS = 1
        engine.trouble["POST /build"] = "drip"
        assert code(build(devops)) == "DRIVER_UNAVAILABLE"

    def test_is_kept_within_a_limit_only(self, devops, engine, folder, settings):
        engine.size = settings.CONTAINER_IMAGE_BYTES + 1
        assert code(build(devops)) == "TOO_LARGE"
        assert not engine.images
        assert not ImageBuild.objects.exists()
        engine.size -= 1
        assert code(build(devops)) == "OK"

    def test_counts_what_is_unpacked(self, devops, engine, folder, settings):
        """Docker 29 says of an image its packed bytes: 6 GB of zeros were 7 MB."""
        engine.unpacked = settings.CONTAINER_IMAGE_BYTES - engine.size + 1
        assert code(build(devops)) == "TOO_LARGE"
        assert not engine.images
        engine.unpacked -= 1
        assert code(build(devops)) == "OK"

    def test_makes_the_engine_forget_the_oldest(self, devops, engine, folder, settings):
        """Else an agent fills the engine's disk, image by image."""
        settings.CONTAINER_IMAGES = 2
        theirs = engine.image("sha256:" + "b" * 64, "other-1-app:1")
        built = []
        for number, tag in enumerate(["api:1", "api:1", "web:1", "api:2", "api:3"]):
            (folder / "app").write_text(f"#!/bin/sh\n# {number}\n")
            built.append(build(devops, tag=tag).body["result"]["digest"])
            assert set(engine.images) == {theirs, built[0], *built[-2:]}, number
            engine.trouble["DELETE /images/" + built[0]] = 409  # a container needs it

    def test_does_so_where_the_list_of_all_is_too_large(self, devops, engine, folder, settings):
        """Images from before this version may say much of themselves in it."""
        settings.CONTAINER_IMAGES = 1
        first = build(devops, tag="api:0").body["result"]["digest"]
        (name,) = engine.images[first]["RepoTags"]
        old = engine.image("sha256:" + "b" * 64, name + " " * 5_000_000)
        for number in range(1, 3):
            (folder / "app").write_text(f"#!/bin/sh\n# {number}\n")
            answer = build(devops, tag=f"api:{number}")
            assert set(engine.images) == {old, answer.body["result"]["digest"]}

    def test_leaves_names_to_newer_images_and_images_to_others(
        self, devops, engine, folder, settings
    ):
        settings.CONTAINER_IMAGES = 2
        first = build(devops, tag="api:1").body["result"]["digest"]
        (name,) = engine.images[first]["RepoTags"]
        engine.images[first]["RepoTags"] = ["theirs:1"]
        newer = engine.image("sha256:" + "c" * 64, name)
        for number in range(3):
            (folder / "app").write_text(f"#!/bin/sh\n# {number}\n")
            build(devops, tag=f"web:{number}")
        assert {first, newer} <= set(engine.images)

    def test_leaves_no_name_to_an_image_that_is_refused(self, devops, engine, folder):
        """By it the image would stay for ever, and the name would be another image's no more."""
        api = build(devops).body["result"]["digest"]
        (folder / "app").write_text("#!/bin/sh\n# web\n")
        web = build(devops, tag="web:1").body["result"]["digest"]
        before = {digest: list(image["RepoTags"]) for digest, image in engine.images.items()}
        (folder / "app").write_text("#!/bin/sh\n")
        assert code(build(devops, tag="web:1")) == "INVALID_PARAMS"
        assert {digest: image["RepoTags"] for digest, image in engine.images.items()} == before
        assert before.keys() == {api, web}

    @pytest.mark.parametrize(
        ("where", "name", "most"),
        [(engines, "MOST_ANSWER", 10_000), (outgoing, "MOST_RECEIVED", 10_000),
         (engines, "MOST_ANSWER", 4_000_000)],
    )  # fmt: skip
    def test_keeps_no_image_that_says_much_of_itself(
        self, devops, engine, folder, monkeypatch, where, name, most
    ):
        """`EXPOSE 1-65535` makes millions of bytes, which are in each answer of the engine."""
        monkeypatch.setattr(where, name, most)
        engine.config = {"ExposedPorts": {f"{port}/tcp": {} for port in range(5_000)}}
        answer = build(devops)
        assert code(answer) == "TOO_LARGE", answer.body
        assert not engine.images
        assert not ImageBuild.objects.exists()

    def test_leaves_nothing_that_it_could_not_look_at(self, devops, engine, folder):
        engine.trouble[":latest/json"] = 500
        engine.trouble["POST /build"] = lambda: engine.trouble.update({"/json": 500})
        assert code(build(devops)) == "DRIVER_UNAVAILABLE"
        assert not engine.images

    def test_gives_an_image_a_few_names_only(self, devops, engine, folder, monkeypatch):
        monkeypatch.setattr(images, "MOST_NAMES", 2)
        digests = {
            build(devops, tag=f"api:{number}").body["result"]["digest"] for number in range(5)
        }
        (digest,) = digests
        assert len(engine.images[digest]["RepoTags"]) == 3

    @pytest.mark.parametrize("registry", ["", "localhost/", "docker.io/library/"])
    def test_knows_its_names_however_the_engine_says_them(self, registry):
        tags = ["nexus-0123456789-o1-api:1", "nexus-0123456789-o2-api:1", "python:3"]
        rows = [{"Id": DIGEST, "RepoTags": [f"{registry}{tag}" for tag in tags]}]
        assert images._names_by_digest(rows, "nexus-0123456789-o1-") == {DIGEST: tags[:1]}

    def test_forgets_an_image_when_its_container_is_gone(self, devops, engine, folder, settings):
        settings.CONTAINER_IMAGES = 1
        first = build(devops, tag="first:1").body["result"]["digest"]
        (name,) = engine.images[first]["RepoTags"]
        engine.trouble[f"DELETE /images/{name}"] = 409
        for number in range(8):
            (folder / "app").write_text(f"#!/bin/sh\n# {number}\n")
            build(devops, tag=f"api:{number}")
        assert len(engine.images) == 2
        del engine.trouble[f"DELETE /images/{name}"]
        build(devops, tag="api:8")
        assert first not in engine.images

    def test_is_broken_off_before_it_fills_the_disk(self, devops, engine, folder, monkeypatch):
        monkeypatch.setattr(watching, "LOOK_EVERY", 0.1)

        def full():
            raise Denied(STORAGE_FULL)

        monkeypatch.setattr(watching, "require_space", full)
        engine.trouble["POST /build"] = [b"{}\n"] * 50
        answer = build(devops)
        assert code(answer) == "INVALID_TRANSITION"
        assert "disk" in answer.body["message"]
        wait_until(lambda: engine.hung_up)

    def test_needs_an_engine(self, devops, engine, folder, settings):
        settings.CONTAINER_ENGINE = ""
        found = build(devops)
        assert (code(found), found.body["details"]["driver"]) == (
            "DRIVER_UNAVAILABLE", "container engine",
        )  # fmt: skip

    def test_believes_no_digest_that_the_engine_does_not_know(self, devops, engine, folder):
        engine.trouble["POST /build"] = b'{"aux": {"ID": "sha256:' + b"9" * 64 + b'"}}\n'
        assert code(build(devops)) == "DRIVER_UNAVAILABLE"
        assert not ImageBuild.objects.exists()


class TestTheFolder:
    def test_is_in_the_callers_clone_and_no_other(self, devops, engine, folder, nexus):
        other = organisation_folder("nexus") / "docker" / "web"
        other.mkdir(parents=True)
        (other / "Dockerfile").write_text("FROM scratch\n")
        assert code(build(devops, path="docker/web/")) == "NOT_FOUND"
        assert not engine.builds

    def test_may_be_named_from_the_company_tree(self, devops, engine, folder):
        assert code(build(devops, path="agents/devops_worker/workspace/docker/api/")) == "OK"
        assert engine.builds[0][1].keys() == {"Dockerfile", "app", "data/x.txt"}

    def test_is_in_the_callers_scope(self, devops, engine, folder):
        assert code(build(devops, path="src/")) == "SCOPE_DENIED"
        assert code(build(devops, path="docker/../src/")) == "SCOPE_DENIED"
        assert not engine.builds

    def test_leaves_out_what_is_denied(self, devops, engine, folder):
        (folder / ".env").write_text("SECRET=1")
        (folder / "data" / "server.pem").write_text("key")
        build(devops)
        assert engine.builds[0][1].keys() == {"Dockerfile", "app", "data/x.txt"}

    @pytest.mark.parametrize("where", ["app2", "data/y", "linked"])
    def test_leaves_out_links(self, devops, engine, folder, tmp_path, where):
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "secret").write_text("secret")
        (folder / where).symlink_to(tmp_path / "outside")
        build(devops)
        assert not any(b"secret" in data for data in engine.builds[0][1].values())

    def test_is_refused_where_it_is_a_link(self, devops, engine, folder, tmp_path):
        (folder.parent / "linked").symlink_to(folder)
        assert code(build(devops, path="docker/linked/")) == "SCOPE_DENIED"

    def test_is_refused_for_a_hard_link(self, devops, engine, folder, tmp_path):
        (tmp_path / "secret").write_text("secret")
        (folder / "linked").hardlink_to(tmp_path / "secret")
        assert code(build(devops)) == "SCOPE_DENIED"
        assert not engine.builds

    def test_needs_a_dockerfile(self, devops, engine, folder):
        (folder / "Dockerfile").unlink()
        assert code(build(devops)) == "NOT_FOUND"

    @pytest.mark.parametrize("other", ["dockerfile", "DockerFile"])
    def test_has_one_dockerfile_in_one_spelling(self, devops, engine, folder, other):
        """A thousand spellings, each read as one, would keep a processor busy for minutes."""
        (folder / other).write_text(DOCKERFILE)
        assert code(build(devops)) == "INVALID_PARAMS"
        (folder / other).rename(folder / "data" / other)
        assert code(build(devops)) == "OK"

    def test_has_a_short_dockerfile(self, devops, engine, folder):
        path = folder / "Dockerfile"
        path.write_text(DOCKERFILE.ljust(100_001, "\n"))
        refused = build(devops)
        assert code(refused) == "TOO_LARGE"
        assert "has more than 100000 bytes" in refused.body["message"]
        path.write_text(DOCKERFILE.ljust(100_000, "\n"))
        assert code(build(devops)) == "OK"

    @pytest.mark.parametrize(
        ("name", "most"), [("MOST_FILES", 2), ("MOST_BYTES", 30), ("DEEPEST", 0)]
    )
    def test_has_limits(self, devops, engine, folder, monkeypatch, name, most):
        monkeypatch.setattr(context, name, most)
        assert code(build(devops)) == "TOO_LARGE"
        assert not engine.builds


class TestTheDatabase:
    def test_has_no_open_transaction_meanwhile(self, devops, engine, folder, monkeypatch):
        seen, ask = [], images._build

        def watched(*args):
            seen.append(in_transaction())
            return ask(*args)

        monkeypatch.setattr(images, "_build", watched)
        assert code(build(devops, key="once")) == "OK"
        assert seen == [False]
