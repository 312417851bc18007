"""run_health_check and manage_ci_config: known addresses, checked files."""

import time

import pytest
from django.core.exceptions import ImproperlyConfigured

from nexus_site.environment import Environment
from tests.patience import PATIENCE
from tests.workspace.builds.world import DIGEST, built_in, call, code
from tests.workspace.web.internet import INSIDE, answer, server
from workspace.builds import health
from workspace.files.places import own_tree
from workspace.tree import WORK_TREE

CI = "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n"


@pytest.fixture(autouse=True)
def company(settings, tmp_path):
    settings.WORKSPACE_ROOT = tmp_path / "company"


@pytest.fixture
def site():
    with server(INSIDE) as running:
        yield running


@pytest.fixture
def api(nexus, devops, engine, site):
    built_in(
        nexus, engine, ExposedPorts={f"{site.port}/tcp": {}}, Labels={"nexus.health": "/healthz"}
    )
    assert code(call(devops, "docker_deploy", environment="staging", artifact=DIGEST)) == "OK"


def check(caller, service="api", **more):
    return call(caller, "run_health_check", service=service, **more)


class TestAHealthCheck:
    def test_asks_the_container_at_its_own_address(self, devops, api, site):
        site.pages["/healthz"] = answer("fine")
        result = check(devops).body["result"]
        assert (result["healthy"], result["environment"]) == (True, "staging")
        assert [path for path, _ in site.asked] == ["/healthz"]

    @pytest.mark.parametrize("status", [404, 500, 503])
    def test_says_what_is_wrong(self, devops, api, site, status):
        site.pages["/healthz"] = answer("ill", status=status)
        result = check(devops).body["result"]
        assert (result["healthy"], str(status) in result["message"]) == (False, True)

    def test_follows_no_redirect(self, devops, api, site):
        site.pages["/healthz"] = answer("", status=302, Location="/elsewhere")
        check(devops)
        assert [path for path, _ in site.asked] == ["/healthz"]

    def test_may_be_answered_by_a_redirect_to_no_name(self, devops, api, site):
        site.pages["/healthz"] = answer("", status=302, Location="http://xn--/")
        result = check(devops).body["result"]
        assert (result["healthy"], result["message"]) == (False, "it does not answer (IDNAError)")

    def test_says_that_its_container_has_ended(self, devops, api, engine, site):
        ((_, container),) = engine.containers.items()
        container["State"] = {"Running": False, "ExitCode": 9}
        result = check(devops).body["result"]
        assert (result["healthy"], "code 9" in result["message"]) == (False, True)
        assert site.asked == []
        engine.containers.clear()
        assert "no container" in check(devops).body["result"]["message"]

    def test_asks_the_address_of_the_setting(self, devops, api, site, settings):
        settings.SERVICE_ADDRESSES = {"nexus/staging/api": f"http://{INSIDE}:{site.port}/named"}
        site.pages["/named"] = answer("fine")
        assert check(devops).body["result"]["healthy"]
        assert [path for path, _ in site.asked] == ["/named"]

    @pytest.mark.parametrize("name", ["other/staging/api", "staging/api"])
    def test_asks_no_address_of_another_organisation(self, devops, api, site, settings, name):
        """Two organisations may have a service of one name (Spec: hands 25)."""
        settings.SERVICE_ADDRESSES = {name: f"http://{INSIDE}:{site.port}/others"}
        check(devops)
        assert [path for path, _ in site.asked] == ["/healthz"]

    def test_is_slow_for_a_while_only(self, devops, api, site, monkeypatch, over):
        monkeypatch.setattr(health, "LONGEST", 1.0)
        site.pages["/healthz"] = lambda handler: over.wait(PATIENCE)
        began = time.monotonic()
        assert not check(devops).body["result"]["healthy"]
        assert time.monotonic() - began < PATIENCE / 2

    @pytest.mark.parametrize("service", ["other", "127.0.0.1", "localhost"])
    def test_knows_deployed_services_only(self, devops, api, site, service):
        assert code(check(devops, service)) == "NOT_FOUND"
        assert code(check(devops, environment="production")) == "NOT_FOUND"
        assert site.asked == []

    @pytest.mark.parametrize("service", ["http://127.0.0.1/", "a/b", "a:80", "-x", ""])
    def test_takes_no_address(self, devops, api, service):
        assert code(check(devops, service)) == "INVALID_PARAMS"

    def test_needs_an_engine(self, devops, api, engine, settings):
        engine.trouble["/json"] = "hang up"
        assert code(check(devops)) == "DRIVER_UNAVAILABLE"
        settings.CONTAINER_ENGINE = ""
        assert code(check(devops)) == "DRIVER_UNAVAILABLE"


def clone(caller):
    return own_tree(caller, WORK_TREE).root / WORK_TREE


class TestACiFile:
    PATH = ".github/workflows/ci.yml"

    def write(self, caller, content, path=PATH):
        return call(caller, "manage_ci_config", path=path, content=content)

    def test_is_written_whole(self, devops):
        assert self.write(devops, CI).body["result"]["bytes"] == len(CI)
        assert (clone(devops) / self.PATH).read_text() == CI

    @pytest.mark.parametrize(
        "content",
        ["x", "- a", "", "a: [", "a: &x 1\nb: *x", "a: !!python/object:os.system x",
         "a: 1\n---\nb: 2", "a: \x00", "a: !!binary eA==",
         "a:\n" + "\n".join("  " * n + f"k{n}:" for n in range(1, 60))],
    )  # fmt: skip
    def test_is_plain_yaml(self, devops, content):
        assert code(self.write(devops, content)) == "INVALID_PARAMS"
        assert not (clone(devops) / self.PATH).exists()

    @pytest.mark.parametrize(
        "path",
        [".github/CODEOWNERS", ".github/workflows/run.sh", "src/ci.yml", ".github/workflows/"],
    )
    def test_is_nothing_else(self, devops, path):
        assert code(self.write(devops, CI, path)) == "SCOPE_DENIED"

    def test_is_not_written_through_a_link(self, devops, tmp_path):
        (tmp_path / "outside").mkdir()
        (clone(devops) / ".github").mkdir(parents=True)
        (clone(devops) / ".github" / "workflows").symlink_to(tmp_path / "outside")
        assert code(self.write(devops, CI)) == "SCOPE_DENIED"
        assert not list((tmp_path / "outside").iterdir())


class TestTheSettings:
    @pytest.mark.parametrize(
        "value", ["unix:///run/docker.sock", "tcp://engine:2375", "https://engine.example:2376", ""]
    )
    def test_take_an_engine(self, value):
        assert Environment({"E": value}).engine("E") == value

    @pytest.mark.parametrize(
        "value",
        ["/run/docker.sock", "unix://run/docker.sock", "http://x", "tcp://u:p@x", "https://"],
    )
    def test_take_nothing_else_for_one(self, value):
        with pytest.raises(ImproperlyConfigured, match="unix:///"):
            Environment({"E": value}).engine("E")

    @pytest.mark.parametrize("value", ["host", "container:x", "ns:/proc/1/ns/net", "a b"])
    def test_give_no_container_this_machines_network(self, value):
        with pytest.raises(ImproperlyConfigured, match="network of the engine"):
            Environment({"N": value}).network_name("N", "bridge")

    @pytest.mark.parametrize("value", ["", "nexus-builds.slice", "/nexus", "/a/b.c"])
    def test_name_a_cgroup(self, value):
        assert Environment({"G": value}).cgroup_name("G") == value

    @pytest.mark.parametrize("value", ["/", "nexus", "/../x", "a/b.slice", "/a b", "/a/"])
    def test_take_nothing_else_for_a_cgroup(self, value):
        with pytest.raises(ImproperlyConfigured, match=r"name\.slice"):
            Environment({"G": value}).cgroup_name("G")

    def test_name_addresses_of_services(self):
        found = Environment({"A": "o/production/api=https://api.example/h, o/test/x=http://x:1/"})
        assert found.addresses("A") == {
            "o/production/api": "https://api.example/h", "o/test/x": "http://x:1/",
        }  # fmt: skip

    @pytest.mark.parametrize("given", ["o/test/x", "o/test/x=ftp://x", "test/x=http://x:1/"])
    def test_refuse_an_address_that_is_none_or_of_no_organisation(self, given):
        with pytest.raises(ImproperlyConfigured, match="organisation/environment/service"):
            Environment({"A": given}).addresses("A")
