"""The files for production: linted, verified, and compared with the product they run."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.db import transaction
from django.test import Client

from tests.company import load_company
from workspace.git.garbage import AGAIN

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SETTINGS = (ROOT / "nexus_site" / "settings.py").read_text()
OTHERS = {
    "OWNER_PASSWORD", "SERVING_PASSWORD", "POSTGRES_PASSWORD", "DOMAIN", "NEXUS_VERSION",
    "PYTHONUNBUFFERED",
}  # fmt: skip
"""Variables of the files that are not settings of the product."""
METRIC = re.compile(r"\b(?:nexus|up)(?:_[a-z_]+)?\b")


def names_in(text):
    """Variables that a file of `NAME=value` lines sets."""
    return set(re.findall(r"^([A-Z][A-Z0-9_]+)=", text, re.MULTILINE))


def is_a_setting(name):
    return f'"{name}"' in SETTINGS or name in OTHERS


class TestTheDockerfile:
    def test_has_nothing_that_hadolint_finds(self):
        hadolint = Path(sys.executable).with_name("hadolint")
        done = subprocess.run(
            [hadolint, "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, "")

    def test_copies_no_secret_and_no_data_into_the_image(self):
        ignored = (ROOT / ".dockerignore").read_text().split()
        assert {".git", "var", ".env", "deploy/*.env", ".venv"} <= set(ignored)

    def test_does_not_run_as_root(self):
        lines = (ROOT / "Dockerfile").read_text().splitlines()
        users = [line.split()[1] for line in lines if line.startswith("USER ")]
        assert users, "it names a user"
        assert users[-1] not in ("root", "0")

    def test_installs_what_the_lock_file_says(self):
        assert "--require-hashes -r requirements.txt" in (ROOT / "Dockerfile").read_text()

    def test_sets_only_settings_that_exist(self):
        text = (ROOT / "Dockerfile").read_text()
        block = re.search(r"^ENV (.*?[^\\])\n\n", text, re.MULTILINE | re.DOTALL)
        names = set(re.findall(r"\b([A-Z][A-Z_]+)=", block[1]))
        assert names
        assert {name for name in names if not is_a_setting(name)} == set()

    def test_copies_only_what_is_there(self):
        text = (ROOT / "Dockerfile").read_text()
        for program in re.findall(r'"(deploy/[^"]+)"', text):
            assert (ROOT / program).exists()


class TestTheComposeFile:
    def test_sets_only_settings_that_exist(self):
        asked = set(re.findall(r"\$\{([A-Z_]+)", (DEPLOY / "compose.yaml").read_text()))
        named = set(COMPOSE["services"]["nexus"]["environment"])
        example = names_in((DEPLOY / "compose.env.example").read_text())
        assert {name for name in asked | named | example if not is_a_setting(name)} == set()

    def test_asks_for_nothing_that_the_example_leaves_out(self):
        text = (DEPLOY / "compose.yaml").read_text()
        required = set(re.findall(r"\$\{([A-Z_]+):\?", text))
        assert required <= names_in((DEPLOY / "compose.env.example").read_text())

    def test_declares_its_volumes_and_networks(self):
        used, joined = set(), set()
        for service in COMPOSE["services"].values():
            joined |= set(service.get("networks", ()))
            for volume in service.get("volumes", ()):
                source = volume.split(":")[0]
                if source.startswith("./"):
                    assert (DEPLOY / source).exists()
                else:
                    used.add(source)
        assert used == set(COMPOSE["volumes"])
        assert joined == set(COMPOSE["networks"])

    def test_depends_on_services_that_exist_and_are_healthy_if_it_says_so(self):
        for service in COMPOSE["services"].values():
            needs = service.get("depends_on", {})
            for name in needs:
                assert name in COMPOSE["services"]
                if isinstance(needs, dict) and needs[name]["condition"] == "service_healthy":
                    assert "healthcheck" in COMPOSE["services"][name]

    def test_believes_its_own_proxy_and_no_other(self):
        proxy = COMPOSE["services"]["proxy"]["networks"]["inside"]["ipv4_address"]
        assert COMPOSE["services"]["nexus"]["environment"]["TRUSTED_PROXIES"] == proxy

    def test_publishes_the_proxy_only(self):
        assert [name for name, each in COMPOSE["services"].items() if "ports" in each] == ["proxy"]

    def test_gives_no_container_privileges_or_the_engine(self):
        text = json.dumps(COMPOSE)
        for word in ("privileged", "docker.sock", "network_mode", "pid", "SYS_ADMIN", "unconfined"):
            assert f'"{word}"' not in text
            assert word == "pid" or word not in text

    def test_serves_by_a_role_that_does_not_own(self):
        environment = COMPOSE["services"]["nexus"]["environment"]
        assert "nexus_serving:" in environment["DATABASE_URL"]
        assert "nexus_owner:" in environment["DATABASE_OWNER_URL"]

    def test_makes_both_roles_in_a_script_that_the_shell_reads(self):
        script = DEPLOY / "postgres-roles.sh"
        assert subprocess.run(["sh", "-n", script], check=False).returncode == 0
        assert script.stat().st_mode & 0o111
        asked = script.read_text()
        for role in ("nexus_owner", "nexus_serving"):
            assert f"ALTER ROLE {role} LOGIN PASSWORD" in asked
        assert not re.search("^CREATE", asked, re.MULTILINE)  # it may run again

    def test_mounts_volumes_only_where_the_image_has_a_folder_of_its_user(self):
        """Docker makes what is missing root's: the user of the image could write nothing there."""
        made = (ROOT / "Dockerfile").read_text()
        targets = [each.split(":")[1] for each in COMPOSE["services"]["nexus"]["volumes"]]
        assert targets
        for target in targets:
            of_its_user = rf"(chown nexus:nexus|--owner=nexus .*) {target}( \\)?\n"
            assert re.search(of_its_user, made), target

    def test_is_called_with_its_variables_by_the_page(self):
        """Each command reads the whole file, and stops where a variable has no value."""
        page = (ROOT / "docs" / "production.md").read_text()
        calls = re.findall(r"docker compose (.*)", page)
        assert calls
        for call in calls:
            assert call.startswith("-f deploy/compose.yaml --env-file deploy/compose.env"), call

    def test_has_a_place_for_the_copies_that_the_page_makes(self):
        page = (ROOT / "docs" / "production.md").read_text()
        place = "backups:" + re.search(r"^    name=(.+)/\$\(date", page, re.MULTILINE)[1]
        assert place in COMPOSE["services"]["nexus"]["volumes"]


class TestTheProxies:
    @pytest.mark.parametrize(
        ("file", "unbuffered"),
        [("Caddyfile", "flush_interval -1"), ("nginx.conf", "proxy_buffering off")],
    )
    def test_hide_metrics_and_do_not_buffer(self, file, unbuffered):
        text = (DEPLOY / file).read_text()
        assert "/metrics" in text
        assert "404" in text
        assert unbuffered in text

    @pytest.mark.parametrize(
        ("file", "limit"),
        [("Caddyfile", r"max_size (\d+)MB"), ("nginx.conf", r"client_max_body_size (\d+)m;")],
    )
    def test_take_what_people_may_send(self, file, limit):
        """What is larger is refused by us, with a sentence; a proxy only breaks off."""
        (megabytes,) = re.findall(limit, (DEPLOY / file).read_text())
        assert int(megabytes) * 1_000_000 > settings.DATA_UPLOAD_MAX_MEMORY_SIZE

    def test_set_what_is_believed_of_them(self):
        text = (DEPLOY / "nginx.conf").read_text()
        assert "X-Forwarded-For $remote_addr;" in text
        assert "X-Forwarded-Proto $scheme;" in text
        assert "proxy_add_x_forwarded_for" not in text

    def test_lead_to_their_own_name(self):
        """A server alone in its configuration answers any host, that of a stranger too."""
        (place,) = re.findall(r"return 301 (\S+);", (DEPLOY / "nginx.conf").read_text())
        assert place == "https://$server_name$request_uri"


class TestTheUnits:
    def test_are_what_systemd_takes(self, tmp_path):
        if shutil.which("systemd-analyze") is None:
            pytest.skip("systemd-analyze is not installed here")
        for unit in (DEPLOY / "systemd").glob("nexus*.*er*"):
            if unit.suffix in (".service", ".timer"):
                text = unit.read_text().replace("/opt/nexus/.venv/bin/python", "/bin/true")
                (tmp_path / unit.name).write_text(text)
        units = [str(each) for each in sorted(tmp_path.iterdir())]
        assert len(units) == 3
        done = subprocess.run(
            ["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")

    def test_set_only_settings_that_exist(self):
        names = names_in((DEPLOY / "systemd" / "nexus.env.example").read_text())
        assert {name for name in names if not is_a_setting(name)} == set()
        assert {"SECRET_KEY", "LEDGER_SIGNING_KEY", "DATABASE_OWNER_URL"} <= names

    @pytest.mark.parametrize(
        "setting",
        [
            "RestrictNamespaces=", "ProtectKernelTunables=", "ProtectProc=", "PrivateUsers=",
            "ProtectHostname=",  # refuses the name of the sandbox
            "RestrictSUIDSGID=",  # refuses the folders of a shared git repository
            "User=",  # with NoNewPrivileges systemd 255 takes CAP_SETUID, from root as well
        ],
    )  # fmt: skip
    def test_leave_the_agents_sandbox_and_git_what_they_need(self, setting):
        lines = (DEPLOY / "systemd" / "nexus.service").read_text().splitlines()
        assert not [line for line in lines if line.startswith(setting)]

    def test_let_a_backup_write_its_folder_and_its_lock(self):
        """Else `ProtectSystem=strict` refuses each backup: no copy would ever be made."""
        unit = (DEPLOY / "systemd" / "nexus-backup.service").read_text()
        example = (DEPLOY / "systemd" / "nexus.env.example").read_text()
        (written,) = re.findall(r"^ReadWritePaths=(.*)$", unit, re.MULTILINE)
        (var,) = re.findall(r"^NEXUS_VAR=(.*)$", example, re.MULTILINE)
        assert {"/var/backups/nexus", var} <= set(written.split())

    def test_prune_before_a_backup(self):
        """After one that fails, as on a full disk, nothing was removed and none ever fitted."""
        unit = (DEPLOY / "systemd" / "nexus-backup.service").read_text()
        (prune,) = re.findall(r"^ExecStartPre=(.*)$", unit, re.MULTILINE)
        assert prune == "/bin/sh /opt/nexus/deploy/prune-backups.sh /var/backups/nexus"
        assert "prune-backups.sh" not in unit.replace(prune, "")


class TestThePruningOfBackups:
    @pytest.fixture
    def prune(self, tmp_path):
        """Run it on folders that were all last changed so many days ago; what is left."""

        def run(names, days):
            for name in names:
                (tmp_path / name).mkdir()
                (tmp_path / name / "database.dump").touch()
                os.utime(tmp_path / name, (time.time() - days * 86400,) * 2)
            program = DEPLOY / "prune-backups.sh"
            subprocess.run(["sh", str(program), str(tmp_path)], check=True)
            return {each.name for each in tmp_path.iterdir()}

        return run

    def test_keeps_what_was_named_by_hand(self, prune):
        copies = [f"2020-01-{day:02}T000000" for day in range(1, 11)]
        assert prune(["before-upgrade", *copies], 500) == {"before-upgrade", *copies[2:]}

    def test_keeps_the_newest_however_old_they_are(self, prune):
        """By a clock that jumped a year ahead each is old: all were removed but the new one."""
        copies = [f"2026-11-{day:02}T001700" for day in range(10, 18)]
        assert prune(copies, 365) == set(copies)

    def test_keeps_those_of_two_weeks(self, prune):
        copies = [f"2026-11-{day:02}T001700" for day in range(1, 20)]
        assert prune(copies, 13) == set(copies)

    def test_removes_what_killed_backups_left_and_counts_it_for_none(self, prune):
        halves = [f"2026-12-{day:02}T001700.part" for day in range(1, 20)]
        assert prune(["2026-11-01T001700", *halves], 30) == {"2026-11-01T001700"}


class TestPrometheus:
    def test_asks_by_an_address_that_the_example_of_settings_allows(self):
        """Else each scrape is answered with 400, and an alert says that NEXUS is down."""
        asked = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
        (target,) = asked["scrape_configs"][0]["static_configs"][0]["targets"]
        example = (DEPLOY / "systemd" / "nexus.env.example").read_text()
        (hosts,) = re.findall(r"^ALLOWED_HOSTS=(.*)$", example, re.MULTILINE)
        assert target.rpartition(":")[0] in hosts.split(",")


def test_a_repository_that_cannot_be_packed_is_told():
    """It is tried again after an hour, and each run between says that no row failed."""
    alerts = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    rules = [rule for group in alerts["groups"] for rule in group["rules"]]
    windows = [re.search(r"failing_jobs\[(\d+)m\]\) > 0", rule["expr"]) for rule in rules]
    hours = [
        (timedelta(minutes=int(window[1])), timedelta(minutes=int(rule["for"].rstrip("m"))))
        for rule, window in zip(rules, windows, strict=True)
        if window
    ]
    assert any(AGAIN < window < held for window, held in hours), (
        "each would be over before it is told"
    )


def expressions():
    """Every expression of the alerts and the dashboard, with its place."""
    alerts = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    for group in alerts["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    board = json.loads((DEPLOY / "grafana" / "nexus.json").read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.fixture(scope="module")
def answered(django_db_setup, django_db_blocker):
    """What /metrics of a company says."""
    with django_db_blocker.unblock(), transaction.atomic():
        load_company("nexus")
        client = Client(HTTP_HOST="127.0.0.1")
        client.get("/healthz")
        text = client.get("/metrics").content.decode()
        transaction.set_rollback(True)
    return text


class TestTheMetrics:
    @pytest.mark.parametrize(("place", "expression"), list(expressions()))
    def test_that_are_asked_for_exist(self, answered, place, expression):
        bare = re.sub(r'"[^"]*"', '""', expression)
        asked = {name for name in METRIC.findall(bare) if name not in ("up", "nexus")}
        missing = {
            name for name in asked
            if f"# TYPE {name} gauge" not in answered
            and f"# TYPE {re.sub('_(count|bucket)$', '', name)} histogram" not in answered
            and f"# TYPE {name} counter" not in answered
        }  # fmt: skip
        assert missing == set(), place
        assert asked or "up{" in expression

    def test_are_those_that_the_page_names(self, answered):
        page = (ROOT / "docs" / "production.md").read_text()
        for name in re.findall(r"`(nexus_[a-z_]+)`", page):
            assert f"# TYPE {name} " in answered

    def test_have_the_labels_that_are_asked_for(self, answered):
        for label in ("method=", "route=", "status="):
            assert label in answered
        assert "# TYPE nexus_work gauge" in answered

    def test_brackets_are_closed(self):
        for place, expression in expressions():
            for left, right in ("()", "{}", "[]"):
                assert expression.count(left) == expression.count(right), place


class TestThePage:
    def test_names_only_files_settings_and_variables_that_exist(self):
        page = (ROOT / "docs" / "production.md").read_text()
        for file in re.findall(r"`((?:deploy|tests)/[^`*]+)`", page):
            assert (ROOT / file).exists(), file
        for name in re.findall(r"`([A-Z][A-Z0-9]+_[A-Z0-9_]+)(?:=[^`]*)?`", page):
            assert is_a_setting(name) or name == "ISOLATION_UNAVAILABLE", name
