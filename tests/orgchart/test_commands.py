"""`manage.py org …` and `manage.py issue_key …`: one clear answer, or one clear refusal."""

import json
import os
import subprocess
import sys
from errno import ENOSPC
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from ledger.models import Event
from orgchart.keys import digest_of
from orgchart.models import Agent, ApiKey, Organisation
from tests.orgchart.world import PACKS, edited, write_pack

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]


def run(*words, errors=None):
    out = StringIO()
    call_command(*map(str, words), stdout=out, stderr=errors or StringIO())
    return out.getvalue().splitlines()


def refusal(*words):
    errors = StringIO()
    with pytest.raises(CommandError) as refused:
        run(*words, errors=errors)
    return errors.getvalue() + str(refused.value)


class TestLoad:
    def test_says_what_it_permits_and_the_version(self, pack):
        lines = run("org", "load", pack)
        assert "+ hand_one may send report to lead" in lines
        assert lines[-1] == "acme: policy version 1"
        assert Event.objects.get().actor.startswith("human:")

    def test_again_says_that_nothing_changed(self, pack, acme):
        assert run("org", "load", pack) == ["acme: policy version 1, unchanged"]

    def test_names_every_problem_and_loads_nothing(self, pack):
        write_pack(pack, edited("roles.yaml", ("level: 2", "level: x"), ("read_code", "read_cod")))
        assert refusal("org", "load", pack).splitlines() == [
            f"{pack}/roles.yaml:9: level must be a whole number from 1 to 9; correct it",
            f"{pack}/roles.yaml:12: there is no tool read_cod; did you mean read_code?",
            "2 problems, nothing is loaded",
        ]
        assert not Organisation.objects.exists()

    def test_names_a_problem_in_one_line_whatever_the_file_holds(self, pack):
        """A key with a terminal's commands would write over the answer."""
        path = pack / "organisation.yaml"
        path.write_text(path.read_text() + '"\\e[2K\\rfine": 1\n')
        said = refusal("org", "check", pack).splitlines()
        assert len(said) == 2
        assert all(line.isprintable() for line in said)

    def test_of_no_folder_is_refused(self, tmp_path):
        assert "there is no such folder" in refusal("org", "load", tmp_path / "none")


class TestCheck:
    @pytest.mark.parametrize("name", ["nexus", "dev-team", "soloqueue", "constitution"])
    def test_finds_nothing_in_what_is_shipped(self, name):
        *warnings, last = run("org", "check", PACKS / name)
        assert last == f"{PACKS / name}: nothing is wrong"
        assert [w for w in warnings if "financial_calculator is not installed" not in w] == []

    def test_loads_nothing(self, pack):
        run("org", "check", pack)
        assert not Organisation.objects.exists()

    def test_names_a_single_problem(self, pack):
        (pack / "roles.yaml").unlink()
        assert refusal("org", "check", pack).splitlines()[-1] == "1 problem, nothing is loaded"


class TestExportAndDiff:
    def test_what_is_exported_is_no_difference(self, acme, tmp_path):
        files = run("org", "export", "acme", tmp_path / "out")
        assert f"{tmp_path}/out/agents/hand_one.yaml" in files
        assert run("org", "diff", "acme", tmp_path / "out") == ["no difference"]

    def test_diff_names_rows_and_effects(self, acme, pack):
        write_pack(pack, {"agents/hand_two.yaml": None})
        lines = run("org", "diff", "acme", pack)
        assert lines[0] == "~ agent hand_two deactivated: active"
        assert "- hand_two may send report to other_lead" in lines
        assert acme.agents.get(handle="hand_two").active

    @pytest.mark.parametrize("verb", ["export", "diff"])
    def test_of_nobody_is_refused(self, verb, tmp_path):
        assert refusal("org", verb, "none", tmp_path) == (
            "there is no organisation none; there are: none"
        )

    def test_diff_with_the_pack_of_another_is_refused(self, acme):
        assert "is the pack of nexus, not of acme" in refusal(
            "org", "diff", "acme", PACKS / "nexus"
        )

    def test_export_into_a_folder_of_something_else_is_refused(self, acme, tmp_path):
        (tmp_path / "x").write_text("x")
        assert "holds no pack" in refusal("org", "export", "acme", tmp_path)

    def test_export_to_where_nobody_may_write_is_refused(self, acme, tmp_path):
        (tmp_path / "file").write_text("x")
        assert "Not a directory" in refusal("org", "export", "acme", tmp_path / "file" / "out")

    def test_export_to_a_full_disk_names_the_folder(self, acme, tmp_path, monkeypatch):
        """The error of a write names no file: it said `None: No space left on device`."""

        def full(path, text, **_):
            raise OSError(ENOSPC, os.strerror(ENOSPC))

        monkeypatch.setattr(Path, "write_bytes", full)
        said = refusal("org", "export", "acme", tmp_path / "out")
        assert f"{tmp_path / 'out'}: No space left on device" in said


class TestSettings:
    def test_are_set_and_listed(self, acme):
        assert run("org", "set", "acme", "max_rounds=9", "enabled_modes=chat_safe,coding") == [
            "max_rounds = 9",
            "enabled_modes = chat_safe,coding",
        ]
        lines = run("org", "settings", "acme")
        assert "max_rounds = 9" in lines
        assert "allow_internal_addresses = false" in lines
        assert lines[lines.index("max_rounds = 9") + 1].strip()

    def test_what_is_listed_can_be_set(self, acme):
        listed = [line for line in run("org", "settings", "acme") if not line.startswith(" ")]
        run("org", "set", "acme", *[line.replace(" = ", "=", 1) for line in listed])

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["max_rounds"], "max_rounds: write KEY=VALUE"),
            (["max_rounds=x"], "max_rounds: must be a whole number from 1 to 100"),
            (["no=1"], "no: no such setting"),
            (["max_rounds=4", "enforcement=x"], "enforcement: must be one of"),
        ],
    )
    def test_are_refused_whole(self, acme, words, said):
        assert said in refusal("org", "set", "acme", *words)
        acme.refresh_from_db()
        assert acme.settings["max_rounds"] == 5


class TestExplain:
    @pytest.mark.parametrize("name", ["hand_one", "crew.one"])
    def test_names_the_rule_that_allows_a_mail(self, acme, name):
        [line] = run("org", "explain", "acme", "--agent", name, "--mail", "report", "--to", "lead")
        assert line.startswith("allowed by contact hand -> lead")

    def test_names_the_rule_that_refuses_a_mail(self, acme):
        lines = run(
            "org", "explain", "acme", "--agent", "boss", "--mail", "info", "--to", "hand_one"
        )
        assert lines[0].startswith("refused: CONTACT_DENIED: ")
        assert lines[1].startswith("next: ")

    def test_names_what_decides_a_tool(self, acme):
        tool = ("org", "explain", "acme", "--agent", "hand_one", "--tool", "write_file")
        assert run(*tool)[0].startswith("refused: MODE_DENIED: ")
        assert run(*tool, "--mode", "coding")[0].startswith("allowed by ")
        denied = run("org", "explain", "acme", "--agent", "chief", "--tool", "git_push")
        assert denied[0].startswith("refused: TOOL_NOT_BOUND: ")

    def test_says_that_who_is_deactivated_can_do_nothing(self, acme):
        acme.agents.update(active=False)
        for asked in (("--tool", "send_mail"), ("--mail", "info", "--to", "lead")):
            [line, _] = run("org", "explain", "acme", "--agent", "boss", *asked)
            assert line.startswith("refused: UNAUTHENTICATED: boss is deactivated")

    def test_says_that_a_mode_is_not_enabled(self, acme):
        run("org", "set", "acme", "enabled_modes=chat_safe")
        asked = ("--agent", "hand_one", "--tool", "write_file", "--mode", "coding")
        assert "no session of acme can be in coding" in run("org", "explain", "acme", *asked)[0]

    @pytest.mark.parametrize(
        "words",
        [
            ("--agent", "nobody", "--tool", "send_mail"),
            ("--agent", "boss", "--mail", "info"),
            ("--agent", "boss"),
            ("--agent", "boss", "--mail", ""),
            ("--agent", "boss", "--tool", "send_mail", "--mail", "info"),
            ("--agent", "boss", "--tool", "send_mail", "--mode", "root"),
        ],
    )
    def test_asks_for_what_it_needs(self, acme, words):
        assert refusal("org", "explain", "acme", *words)


class TestIssueKey:
    @pytest.mark.parametrize("name", ["boss", "chief"])
    def test_prints_the_key_and_nothing_else(self, acme, name):
        [key] = run("issue_key", "acme", name)
        row = ApiKey.objects.get()
        assert bytes(row.digest) == digest_of(key)
        assert row.agent.handle == "boss"

    def test_makes_none_valid_that_it_could_not_print(self, acme):
        class Closed(StringIO):
            def flush(self):
                raise BrokenPipeError

        with pytest.raises(BrokenPipeError):
            call_command("issue_key", "acme", "boss", stdout=Closed())
        assert not ApiKey.objects.exists()

    def test_ends_one_by_its_prefix(self, acme):
        [key] = run("issue_key", "acme", "crew.one")
        assert run("issue_key", "acme", "crew.one", "--revoke", key[:12], "--reason", "lost") == []
        assert ApiKey.objects.get().revoked_at is not None

    @pytest.mark.parametrize("whose", [(), ("acme", "boss")])
    def test_ends_one_also_where_no_reason_is_given(self, acme, whose):
        [key] = run("issue_key", "acme", "boss")
        assert run("issue_key", *whose, "--revoke", key[:12]) == []
        assert ApiKey.objects.get().revoked_at is not None
        event = Event.objects.order_by("seq").last()
        assert (event.action, event.reason) == (
            "key.revoked",
            "revoked at the command line, no reason given",
        )

    def test_takes_no_blank_reason(self, acme):
        [key] = run("issue_key", "acme", "boss")
        said = refusal("issue_key", "acme", "boss", "--revoke", key[:12], "--reason", " ")
        assert "This needs a reason" in said
        assert ApiKey.objects.get().revoked_at is None

    def test_never_ends_the_key_of_another_agent(self, acme):
        [key] = run("issue_key", "acme", "boss")
        assert "no key begins with" in refusal(
            "issue_key", "acme", "hand_one", "--revoke", key[:12], "--reason", "lost"
        )
        assert ApiKey.objects.get().revoked_at is None

    @pytest.mark.parametrize("whose", [(), ("acme",), ("acme", "boss")])
    def test_ends_one_by_its_prefix_alone(self, acme, whose):
        [key] = run("issue_key", "acme", "boss")
        run("issue_key", *whose, "--revoke", key[:12], "--reason", "lost")
        assert ApiKey.objects.get().revoked_at is not None
        assert Event.objects.order_by("seq").last().organisation_id == acme.id

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ((), "name the organisation and the agent"),
            (("acme",), "name the organisation and the agent"),
            (("--revoke", "nxs_none", "--reason", "lost"), "no key begins with nxs_none"),
            (("none", "boss"), "there is no organisation none"),
            (("acme", "nobody"), "acme has no agent nobody"),
            (
                ("acme", "boss", "--revoke", "nxs_none", "--reason", "lost"),
                "no key begins with nxs_none",
            ),
        ],
    )
    def test_is_refused(self, acme, words, said):
        assert said in refusal("issue_key", *words)

    def test_is_refused_for_who_is_deactivated(self, acme):
        acme.agents.update(active=False)
        assert "boss is deactivated" in refusal("issue_key", "acme", "boss")


def test_a_mistake_is_lines_on_standard_error_and_exit_1(tmp_path):
    """As a shell sees it: no traceback, nothing on standard output."""
    write_pack(tmp_path, edited("roles.yaml", ("read_code", "read_cod")))
    done = subprocess.run(
        [sys.executable, ROOT / "manage.py", "org", "check", tmp_path],
        capture_output=True,
        text=True,
        env=os.environ,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        f"{tmp_path}/roles.yaml:12: there is no tool read_cod; did you mean read_code?",
        "CommandError: 1 problem, nothing is loaded",
    ]


class TestReplaceKeys:
    """`manage.py issue_key ORG --all`, where all keys of an organisation are known to others."""

    def test_ends_each_key_and_prints_one_for_each_active_agent(self, acme):
        old = [run("issue_key", "acme", name)[0] for name in ("boss", "crew.one", "boss")]
        Agent.objects.filter(handle="hand_two").update(active=False)
        fresh = json.loads("".join(run("issue_key", "acme", "--all", "--reason", "leaked")))
        active = Agent.objects.filter(active=True).values_list("handle", flat=True)
        assert sorted(fresh) == sorted(active)
        works = {bytes(row.digest) for row in ApiKey.objects.filter(revoked_at=None)}
        assert works == {digest_of(key) for key in fresh.values()}
        ended = Event.objects.filter(action="key.revoked", reason="leaked")
        assert {event.subject for event in ended} == {f"key:{key[:12]}" for key in old}

    def test_leaves_those_of_another_organisation(self, acme, pack):
        write_pack(pack, edited("organisation.yaml", ("acme", "other")))
        run("org", "load", pack)
        run("issue_key", "other", "boss")
        run("issue_key", "acme", "--all")
        assert ApiKey.objects.get(agent__organisation__slug="other").revoked_at is None

    def test_ends_none_where_the_new_ones_could_not_be_printed(self, acme):
        class Closed(StringIO):
            def flush(self):
                raise BrokenPipeError

        run("issue_key", "acme", "boss")
        with pytest.raises(BrokenPipeError):
            call_command("issue_key", "acme", "--all", stdout=Closed())
        assert ApiKey.objects.get().revoked_at is None

    @pytest.mark.parametrize("words", [(), ("acme", "boss")])
    def test_asks_for_an_organisation_alone(self, acme, words):
        assert "name" in refusal("issue_key", *words, "--all")
