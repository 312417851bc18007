"""Skills: who may start which, in what frame, from which exact file; what people see of them."""

import hashlib
import json
import threading
import time
from dataclasses import replace
from datetime import timedelta
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from core.decision import Code, Denied
from ledger.models import Event
from orgchart.models import Agent
from orgchart.pauses.services import pause_agent
from orgchart.services import change_policy
from tests.company import Company, load_company
from tests.concurrency import at_once, is_waiting_for_a_lock
from tests.decisions import denied
from tests.patience import PATIENCE, wait_until
from tests.workspace.watching import meanwhile, printed
from toolbox.models import Frame
from toolbox.quoting import quoted
from workspace.models import Run, Skill
from workspace.runs.stopping import stop_run
from workspace.sandbox import driver
from workspace.sandbox.programs import CommandOutcome, ProgramLimits
from workspace.skills import folders, preparing, services
from workspace.skills.starting import start_skill

LEADER, DEVELOPER = "coding_leader", "coding_developer"
NO_WALLS = isinstance(driver.strongest(), str)
needs_walls = pytest.mark.skipif(NO_WALLS, reason=f"no sandbox here: {driver.strongest()}")


@pytest.fixture
def home(tmp_path, settings) -> Path:
    """The two configured folders: the project's and the user's."""
    first, second = tmp_path / "project", tmp_path / "home"
    first.mkdir()
    second.mkdir()
    settings.NEXUS_SKILL_FOLDERS = [first, second]
    return first


@pytest.fixture
def company(db, home):
    return load_company("soloqueue")


def write(home: Path, name: str, body: str = "Do $ARGUMENTS", **head) -> Path:
    fields = {"name": name, "description": f"what {name} does", **head}
    lines = "".join(f"{key}: {value}\n" for key, value in fields.items())
    path = home / name / "SKILL.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"---\n{lines}---\n{body}\n")
    return path


def give(company: Company, handle: str, *skills: str) -> None:
    change_policy(
        organisation_id=company.organisation.id,
        apply=lambda _: Agent.objects.filter(handle=handle).update(skills=list(skills)) and None,
        caller=company.system,
        action="agent.changed",
        now=timezone.now(),
    )


def approve(company: Company, name: str) -> Skill:
    found = folders.read(name)
    assert found is not None
    return services.approve(
        name=name,
        digest=found.digest,
        reason="read it",
        caller=company.person("Board"),
        now=timezone.now(),
    )


def use(company: Company, handle: str, name: str, args: str = ""):
    return company.call(handle, "use_skill", name=name, args=args)


class TestUseSkill:
    def test_opens_a_frame_of_its_own(self, company, home):
        write(home, "plan", allowed_tools='["current_time", "memory_search"]')
        give(company, LEADER, "plan")
        result = use(company, LEADER, "plan", "the week").result
        assert result["name"] == "skill__plan"
        assert result["prompt"] == 'Do "the week"'
        assert result["allowed_tools"] == ["current_time", "memory_search"]
        frame = Frame.objects.get(id=result["frame_id"])
        assert frame.assignee == frame.opener == company.agent(LEADER)
        assert company.call(LEADER, "current_time").status == 200
        refused = company.call(LEADER, "delegate_to", to=DEVELOPER, instruction="x")
        assert refused.code == "TOOL_DENIED"
        prompt = company.get("/api/v1/prompt", LEADER).body["prompt"]
        assert prompt.startswith("# You are skill__plan")

    def test_is_named_in_the_prompt_where_it_can_be_used(self, company, home):
        def named():
            prompt = company.get("/api/v1/prompt", LEADER).body["prompt"]
            return [line for line in prompt.splitlines() if line.startswith("Your skills")]

        give(company, LEADER, "plan", "gone", "people", "runs", "web_search")
        assert named() == []
        write(home, "plan")
        write(home, "other")
        write(home, "people", **{"disable-model-invocation": "true"})
        write(home, "runs", body="!ls")
        assert named() == ["Your skills: plan"]
        approve(company, "runs")
        assert named() == ["Your skills: plan, runs"]

    def test_ends_with_its_result(self, company, home):
        write(home, "plan")
        give(company, LEADER, "plan")
        frame_id = use(company, LEADER, "plan").result["frame_id"]
        answer = company.call(LEADER, "return_result", frame_id=frame_id, result="done")
        assert answer.result["state"] == "returned"
        assert company.caller(LEADER).frame_id is None

    @pytest.mark.parametrize(
        "wanted",
        [
            '["git_push", "docker_deploy", "write_file"]',
            '["manage_tools"]',
            '["no_such_tool"]',
            '["web_search"]',
        ],
    )
    def test_gives_no_tool_that_the_caller_has_not(self, company, home, wanted):
        write(home, "plan", allowed_tools=wanted)
        give(company, LEADER, "plan")
        assert use(company, LEADER, "plan").result["allowed_tools"] == []
        listed = company.get("/api/v1/tools", LEADER).body["tools"]
        assert [tool["name"] for tool in listed] == ["return_result"]

    def test_inside_another_has_no_more_than_both(self, company, home):
        write(home, "outer", allowed_tools='["use_skill", "current_time", "memory_search"]')
        write(home, "inner", allowed_tools='["current_time", "delegate_to"]')
        give(company, LEADER, "outer", "inner")
        use(company, LEADER, "outer")
        assert use(company, LEADER, "inner").result["allowed_tools"] == ["current_time"]

    def test_never_runs_inside_itself(self, company, home):
        write(home, "loop", allowed_tools='["use_skill"]')
        write(home, "other", allowed_tools='["use_skill"]')
        give(company, LEADER, "loop", "other")
        assert use(company, LEADER, "loop").status == 200
        assert use(company, LEADER, "loop").code == "INVALID_TRANSITION"
        assert use(company, LEADER, "other").status == 200
        assert use(company, LEADER, "loop").code == "INVALID_TRANSITION"

    def test_is_for_agents_that_list_it(self, company, home):
        write(home, "plan")
        give(company, LEADER, "plan")
        installed = use(company, DEVELOPER, "plan")
        missing = use(company, DEVELOPER, "nothing")
        assert installed.code == missing.code == "TOOL_NOT_BOUND"
        assert not Frame.objects.exists()
        assert Event.objects.filter(action="tool.denied").count() == 2

    def test_says_that_a_listed_one_is_not_installed(self, company):
        give(company, LEADER, "plan")
        assert use(company, LEADER, "plan").code == "NOT_FOUND"

    @pytest.mark.parametrize(
        "name",
        ["../plan", "a/b", "/etc", "plan\n", "Plan", "", ".", "..", "plan\x00", "p" * 65, ["plan"]],
    )
    def test_takes_no_path_for_a_name(self, company, home, name):
        write(home, "plan")
        give(company, LEADER, "plan")
        assert use(company, LEADER, name).code == "INVALID_PARAMS"

    def test_is_the_projects_before_the_users(self, company, home):
        write(home, "plan", "from the project")
        write(home.parent / "home", "plan", "from home")
        write(home.parent / "home", "only", "from home")
        give(company, LEADER, "plan", "only")
        result = use(company, LEADER, "plan").result
        assert result["prompt"] == "from the project"
        company.call(LEADER, "return_result", frame_id=result["frame_id"], result="")
        assert use(company, LEADER, "only").result["prompt"] == "from home"

    def test_reserved_to_people_is_not_started_by_an_agent(self, company, home):
        write(home, "plan", disable_model_invocation="true")
        give(company, LEADER, "plan")
        approve(company, "plan")
        answer = use(company, LEADER, "plan")
        assert answer.code == "TOOL_DENIED"
        assert "only people" in answer.body["message"]
        started = TestStartedByAPerson().start(company)
        assert started["prompt"] == 'Do "x"'

    def test_leaves_an_event_with_the_digest_of_the_file(self, company, home):
        path = write(home, "plan")
        give(company, LEADER, "plan")
        use(company, LEADER, "plan", "a secret")
        event = Event.objects.get(action="skill.started")
        assert event.details["digest"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert "secret" not in str(event.details)

    @pytest.mark.parametrize("kind", ["link", "folder link", "fifo", "folder", "huge"])
    def test_reads_only_plain_files(self, company, home, tmp_path, kind):
        import os

        elsewhere = write(tmp_path, "plan")
        target = home / "plan"
        if kind == "folder link":
            target.symlink_to(elsewhere.parent)
        else:
            target.mkdir()
        if kind == "link":
            (target / "SKILL.md").symlink_to(elsewhere)
        elif kind == "fifo":
            os.mkfifo(target / "SKILL.md")
        elif kind == "folder":
            (target / "SKILL.md").mkdir()
        elif kind == "huge":
            (target / "SKILL.md").write_bytes(elsewhere.read_bytes() + b"x" * 70_000)
        give(company, LEADER, "plan")
        assert use(company, LEADER, "plan").code == "NOT_FOUND"


class TestApproval:
    def test_is_needed_for_commands(self, company, home):
        write(home, "plan", "!id")
        give(company, LEADER, "plan")
        answer = use(company, LEADER, "plan")
        assert (answer.status, answer.code) == (403, "APPROVAL_REQUIRED")
        assert not Frame.objects.exists()

    @pytest.mark.parametrize("change", ["!id -u", "no command at all", "Do $ARGUMENTS "])
    def test_ends_with_any_change_of_the_file(self, company, home, change):
        write(home, "plan", "Do $ARGUMENTS")
        give(company, LEADER, "plan")
        approve(company, "plan")
        write(home, "plan", change)
        answer = use(company, LEADER, "plan")
        assert answer.code == "APPROVAL_REQUIRED"
        assert "changed" in answer.body["message"]

    def test_is_of_the_file_that_was_read(self, company, home):
        write(home, "plan", "!id")
        read = folders.read("plan")
        write(home, "plan", "!rm -rf /")
        with pytest.raises(Denied) as refusal:
            services.approve(
                name="plan",
                digest=read.digest,
                reason="fine",
                caller=company.person("Board"),
                now=timezone.now(),
            )
        assert refusal.value.deny.code is Code.VERSION_MISMATCH
        assert not Skill.objects.exclude(approved_digest="").exists()

    def test_needs_a_reason_and_a_valid_skill(self, company, home):
        write(home, "bad", "!echo $ARGUMENTS")
        write(home, "plan")
        for name, reason, code in [
            ("plan", " ", "INVALID_PARAMS"), ("bad", "x", "NOT_FOUND"), ("none", "x", "NOT_FOUND"),
            ("../plan", "x", "NOT_FOUND"),
        ]:  # fmt: skip
            with denied(code):
                services.approve(
                    name=name,
                    digest="",
                    reason=reason,
                    caller=company.person("Board"),
                    now=timezone.now(),
                )
        assert not Event.objects.filter(action="skill.approved").exists()

    def test_can_be_withdrawn(self, company, home):
        write(home, "plan", "!id")
        give(company, LEADER, "plan")
        approve(company, "plan")
        services.withdraw(
            name="plan", reason="no more", caller=company.person("Board"), now=timezone.now()
        )
        assert use(company, LEADER, "plan").code == "APPROVAL_REQUIRED"
        events = Event.objects.filter(subject="skill:plan").order_by("seq")
        assert [e.action for e in events] == [
            "skill.found",
            "skill.approved",
            "skill.withdrawn",
        ]

    def test_that_was_withdrawn_does_not_free_another_file(self, company, home):
        write(home, "plan", "!id")
        give(company, LEADER, "plan")
        approve(company, "plan")
        write(home, "plan", "No command.")
        assert use(company, LEADER, "plan").code == "APPROVAL_REQUIRED"
        services.withdraw(
            name="plan", reason="no more", caller=company.person("Board"), now=timezone.now()
        )
        refused = use(company, LEADER, "plan")
        assert (refused.code, "withdrawn" in refused.body["message"]) == ("APPROVAL_REQUIRED", True)
        approve(company, "plan")
        assert use(company, LEADER, "plan").code == "OK"

    def test_needs_walls(self, company, home, monkeypatch):
        write(home, "plan", "!id")
        give(company, LEADER, "plan")
        approve(company, "plan")
        monkeypatch.setattr(driver, "find", list)
        answer = use(company, LEADER, "plan")
        assert (answer.status, answer.code) == (503, "ISOLATION_UNAVAILABLE")
        assert not Frame.objects.exists()


class TestExplained:
    """`POST /api/v1/explain` of use_skill asks every rule and runs nothing."""

    def asked(self, company, name="plan"):
        params = {"name": name, "args": ""}
        return company.post("/api/v1/explain", {"tool": "use_skill", "params": params}, LEADER).body

    @pytest.fixture(autouse=True)
    def unrun(self, monkeypatch):
        """No command may run; the walls count as there."""
        monkeypatch.setattr(driver, "problem_of", lambda _: "")
        monkeypatch.setattr(driver, "find", lambda: [driver.Walls("namespaces")])
        monkeypatch.setattr(driver, "_run", lambda *_: pytest.fail("a command was run"))

    def test_runs_no_command_and_leaves_nothing(self, company, home):
        write(home, "plan", "!sleep 30")
        give(company, LEADER, "plan")
        approve(company, "plan")
        answer = self.asked(company)
        assert answer["allowed"] is True
        assert not Frame.objects.exists()
        assert company.caller(LEADER).frame_id is None

    def test_answers_the_rules_that_decide(self, company, home, monkeypatch):
        write(home, "plan", "!id")
        write(home, "person", "Do", disable_model_invocation="true")
        give(company, LEADER, "plan", "person", "gone")
        assert self.asked(company, "other")["error_code"] == "TOOL_NOT_BOUND"
        assert self.asked(company, "gone")["error_code"] == "NOT_FOUND"
        assert self.asked(company, "person")["error_code"] == "TOOL_DENIED"
        assert self.asked(company)["error_code"] == "APPROVAL_REQUIRED"
        approve(company, "plan")
        monkeypatch.setattr(driver, "problem_of", lambda _: "no walls")
        assert self.asked(company)["error_code"] == "ISOLATION_UNAVAILABLE"


@needs_walls
class TestCommands:
    def test_run_where_approved_and_stand_in_the_prompt(self, company, home):
        write(home, "plan", "for $ARGUMENTS:\n!echo $((6*7)) '$HOME' $HOME; exit 3\nend")
        give(company, LEADER, "plan")
        approve(company, "plan")
        prompt = use(company, LEADER, "plan", "me").result["prompt"]
        assert prompt == 'for "me":\n"42 $HOME /tmp" [exit status 3]\nend'

    @pytest.mark.parametrize(
        "args", ["; touch /tmp/x", "\n!ls /", "`ls /`", "$(ls /)", "' || ls /", "!ls /"]
    )
    def test_are_untouched_by_arguments(self, company, home, args):
        write(home, "plan", "$ARGUMENTS\n!ls /tmp; echo end")
        give(company, LEADER, "plan")
        approve(company, "plan")
        assert use(company, LEADER, "plan", args).result["prompt"] == f'{quoted(args)}\n"end"'

    def test_are_not_made_of_output(self, company, home):
        write(home, "plan", "!printf '!echo pwned\\n$ARG''UMENTS'")
        give(company, LEADER, "plan")
        approve(company, "plan")
        prompt = use(company, LEADER, "plan", "secret").result["prompt"]
        assert json.loads(prompt) == "!echo pwned\n$ARGUMENTS"

    def test_share_their_time(self, company, home, monkeypatch):
        monkeypatch.setattr(preparing, "SECONDS", 1.0)
        write(home, "plan", "!sleep 30\n!sleep 30")
        give(company, LEADER, "plan")
        approve(company, "plan")
        prompt = use(company, LEADER, "plan").result["prompt"]
        assert prompt.count("its time was over") == 2


@needs_walls
@pytest.mark.django_db(transaction=True)
class TestCommandsAsARun:
    def test_stream_and_leave_a_log(self, company, home):
        write(home, "plan", "!for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.3; done\n!echo end")
        give(company, LEADER, "plan")
        approve(company, "plan")
        run = use(company, LEADER, "plan").result["run"]
        said = "".join(piece["output"] for piece in printed(company.caller(LEADER)))
        assert said.endswith("8\n$ echo end\nend\n")
        row = Run.objects.get()
        assert (row.tool, row.paths, row.exit_status) == ("use_skill", ["plan"], 0)
        assert (row.output, str(row.id), row.output_sha256) == (
            said, run["run_id"], run["output_sha256"],
        )  # fmt: skip

    @pytest.mark.parametrize("starting", ["agent", "agent with a key", "person"])
    def test_are_stopped_by_a_person_and_the_skill_is_not_opened(
        self, company, home, starting, monkeypatch
    ):
        monkeypatch.setattr(preparing, "SECONDS", 600.0)
        monkeypatch.setattr(preparing, "ProgramLimits", partial(ProgramLimits, seconds=600.0))
        write(home, "plan", "!sleep 600\n!sleep 600")
        give(company, LEADER, "plan")
        approve(company, "plan")

        def stop():
            wait_until(lambda: Run.objects.exclude(started_at=None).exists())
            stop_run(
                run_id=Run.objects.get().id, caller=company.person("Board"), reason="Enough.",
                now=timezone.now(),
            )  # fmt: skip

        begun = time.monotonic()
        with meanwhile(stop):
            if starting == "person":
                with pytest.raises(Denied) as refusal:
                    TestStartedByAPerson().start(company)
                code, message = refusal.value.deny.code, refusal.value.deny.message
            else:
                headers = {"Idempotency-Key": "once"} if "key" in starting else {}
                answer = company.call(LEADER, "use_skill", headers, name="plan")
                code, message = answer.code, answer.body["message"]
        assert (code, "Enough." in message) == (Code.INVALID_TRANSITION, True)
        assert time.monotonic() - begun < PATIENCE
        assert not Frame.objects.exists()

    @pytest.mark.parametrize(
        ("ended", "code"),
        [
            ("approval", "APPROVAL_REQUIRED"),
            ("list", "TOOL_NOT_BOUND"),
            ("file", "VERSION_MISMATCH"),
        ],
    )
    @pytest.mark.parametrize("commands", ["!echo 1", "!echo 1\n!echo 2"])
    def test_open_no_skill_that_may_be_used_no_more(
        self, company, home, ended, code, commands, monkeypatch
    ):
        """Spec: skills 19. It ends during the first command; a second one does not begin."""
        write(home, "plan", commands)
        give(company, LEADER, "plan")
        approve(company, "plan")
        begun = []

        def run(program, watch):
            begun.append(program)
            if ended == "approval":
                board = company.person("Board")
                services.withdraw(name="plan", reason="No.", caller=board, now=timezone.now())
            elif ended == "list":
                give(company, LEADER, "other")
            else:
                write(home, "plan", f"{commands} more")
                approve(company, "plan")
            return CommandOutcome(output=b"1", status=0)

        monkeypatch.setattr(preparing.driver, "run", run)
        assert use(company, LEADER, "plan").code == code
        assert len(begun) == 1
        assert not Frame.objects.exists()

    def test_let_no_other_organisation_wait_for_an_agent(self, company, home, monkeypatch):
        """A skill is of all organisations: one whose agent is held keeps it from none."""
        other = load_company("nexus")
        write(home, "plan", "!echo 1")
        give(company, LEADER, "plan")
        give(other, "it_manager", "plan")
        approve(company, "plan")
        outcome = CommandOutcome(output=b"1", status=0)
        monkeypatch.setattr(preparing.driver, "run", lambda *_, **__: outcome)
        held, used = threading.Event(), threading.Event()

        def hold():
            with transaction.atomic():
                Agent.objects.select_for_update(no_key=True).get(handle=LEADER)
                held.set()
                return used.wait(PATIENCE)

        def wait():
            held.wait(PATIENCE)
            return use(company, LEADER, "plan").status

        def pass_by():
            held.wait(PATIENCE)
            wait_until(is_waiting_for_a_lock)
            answer = use(other, "it_manager", "plan")
            used.set()
            return answer.status

        assert at_once([hold, wait, pass_by]) == [True, 200, 200]

    def test_are_no_run_where_there_are_none(self, company, home):
        write(home, "plan")
        give(company, LEADER, "plan")
        assert use(company, LEADER, "plan").result["run"] is None
        assert not Run.objects.exists()


class TestStartedByAPerson:
    def start(self, company, **changes):
        asked = {
            "person": company.person("Board"),
            "agent": "coding.leader",
            "name": "plan",
            "arguments": "x",
            "reason": "it is time",
            "now": timezone.now(),
        }
        return start_skill(**{**asked, **changes})

    def test_puts_the_agent_into_the_frame_and_tells_it(self, company, home):
        write(home, "plan", disable_model_invocation="true", allowed_tools="[next_frame]")
        give(company, LEADER, "plan")
        frame_id = self.start(company)["frame_id"]
        frame = company.call(LEADER, "next_frame").result["frame"]
        assert (frame["frame_id"], frame["name"]) == (frame_id, "skill__plan")
        event = Event.objects.get(action="frame.opened_by_person")
        assert (event.actor, event.reason) == ("human:alice", "it is time")
        assert event.for_agent_id == company.agent(LEADER).id
        assert event.kind == "frame"

    def test_is_not_while_the_agent_is_paused(self, company, home):
        """Spec: skills 8."""
        write(home, "plan")
        give(company, LEADER, "plan")
        board, handle = company.person("Board"), company.agent(LEADER).handle
        pause_agent(person=board, agent=handle, reason="Wait.", now=timezone.now())
        with pytest.raises(Denied) as refusal:
            self.start(company)
        assert refusal.value.deny.code == "AGENT_PAUSED"
        assert not Frame.objects.exists()

    def test_is_not_by_a_person_whose_right_has_ended(self, company, home):
        """As while the skill's commands ran (Spec: people 68)."""
        write(home, "plan")
        give(company, LEADER, "plan")
        left = replace(company.person("Board"), is_asked_again=True)  # a user that is no more
        with pytest.raises(Denied) as refusal:
            self.start(company, person=left)
        assert refusal.value.deny.code is Code.NOT_YOURS
        assert not Frame.objects.exists()

    def test_is_refused_what_only_agents_start(self, company, home):
        write(home, "plan", user_invocable="false")
        give(company, LEADER, "plan")
        with pytest.raises(Denied) as refusal:
            self.start(company)
        assert refusal.value.deny.code is Code.TOOL_DENIED
        assert not Frame.objects.exists()
        assert use(company, LEADER, "plan").status == 200

    def test_shows_the_agent_its_prompt_and_the_way_out(self, company, home):
        write(home, "plan", allowed_tools="[current_time]")
        give(company, LEADER, "plan")
        frame_id = self.start(company)["frame_id"]
        refused = company.call(LEADER, "read_inbox")
        assert refused.code == "TOOL_DENIED"
        assert "return_result, also without frame_id" in refused.body["next_action"]
        frame = company.call(LEADER, "next_frame").result["frame"]
        assert (frame["frame_id"], frame["instruction"]) == (frame_id, 'Do "x"')
        assert company.call(LEADER, "return_result", result="done").result == {
            "frame_id": frame_id,
            "state": "returned",
        }
        assert company.call(LEADER, "read_inbox").status == 200

    @pytest.mark.parametrize(
        ("changes", "code"),
        [
            ({"reason": " "}, Code.INVALID_PARAMS),
            ({"agent": "nobody"}, Code.RECIPIENT_UNKNOWN),
            ({"agent": DEVELOPER}, Code.TOOL_NOT_BOUND),
            ({"name": "none"}, Code.TOOL_NOT_BOUND),
        ],
    )
    def test_is_refused_like_any_other(self, company, home, changes, code):
        write(home, "plan")
        give(company, LEADER, "plan")
        with pytest.raises(Denied) as refusal:
            self.start(company, **changes)
        assert refusal.value.deny.code is code
        assert not Frame.objects.exists()

    def test_runs_no_command_that_nobody_approved(self, company, home):
        write(home, "plan", "!id")
        give(company, LEADER, "plan")
        with pytest.raises(Denied) as refusal:
            self.start(company)
        assert refusal.value.deny.code is Code.APPROVAL_REQUIRED

    def test_from_the_command_line(self, company, home):
        write(home, "plan")
        give(company, LEADER, "plan")
        out = StringIO()
        call_command(
            "skills", "start", "soloqueue", "coding.leader", "plan", "--reason", "x", stdout=out
        )
        assert "skill__plan" in out.getvalue()
        with pytest.raises(CommandError, match="no organisation"):
            call_command("skills", "start", "nowhere", "x", "plan", "--reason", "x")

    def test_from_a_machine_that_is_behind_is_not_overdue_at_once(self, company, home, monkeypatch):
        """Spec: clocks 3. Its frame failed at the next sweep, before the agent saw it."""
        write(home, "plan")
        give(company, LEADER, "plan")
        now = timezone.now()
        monkeypatch.setattr(timezone, "now", lambda: now - timedelta(hours=2))
        call_command("skills", "start", "soloqueue", "coding.leader", "plan", "--reason", "x")
        assert Frame.objects.get().due_at > now


class TestScan:
    def test_keeps_a_list_of_what_is_there(self, company, home):
        write(home, "good", "!id", allowed_tools="[current_time]")
        write(home, "bad", "!echo $ARGUMENTS")
        (home / "empty").mkdir()
        (home / "UPPER").mkdir()
        rows = {row.name: row for row in services.scan(caller=company.system, now=timezone.now())}
        assert set(rows) == {"good", "bad"}
        assert rows["good"].commands == ["id"]
        assert rows["good"].allowed_tools == ["current_time"]
        assert "never part of a shell line" in rows["bad"].problem

    def test_records_what_changed_and_nothing_else(self, company, home):
        path = write(home, "plan")
        for _ in range(2):
            services.scan(caller=company.system, now=timezone.now())
        write(home, "plan", "other")
        for _ in range(2):
            services.scan(caller=company.system, now=timezone.now())
        path.unlink()
        for _ in range(2):
            services.scan(caller=company.system, now=timezone.now())
        events = Event.objects.filter(subject="skill:plan").order_by("seq")
        assert [e.action for e in events] == ["skill.found", "skill.changed", "skill.removed"]
        assert not Skill.objects.get(name="plan").installed

    def test_survives_folders_that_are_not_there(self, company, settings, tmp_path):
        settings.NEXUS_SKILL_FOLDERS = [tmp_path / "none", Path("/proc/1/nothing")]
        assert services.scan(caller=company.system, now=timezone.now()) == []


class TestCommandLine:
    def run(self, *words: str) -> str:
        out = StringIO()
        call_command("skills", *words, stdout=out)
        return out.getvalue()

    def test_scans_shows_approves_and_withdraws(self, company, home):
        path = write(home, "plan", "!id")
        assert "its 1 commands do not run" in self.run("scan")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert digest in self.run("show", "plan")
        assert "may run: id" in self.run(
            "approve", "plan", "--reason", "read it", "--sha256", digest
        )
        assert "approved by human:" in self.run("scan")
        assert Skill.objects.get(name="plan").approved
        write(home, "plan", "!id -u")
        assert "changed after its approval" in self.run("scan")
        self.run("withdraw", "plan", "--reason", "no")
        assert Skill.objects.get(name="plan").approved_digest == ""

    def test_prints_nothing_that_a_terminal_obeys(self, company, home):
        """The file is read before it is approved: it may hide what it says."""
        write(home, "plan", "one\n\ttwo \x1b[2J\u202e\u200b\r", **{"d\u202eno\x9b": "x"})
        said = self.run("show", "plan") + self.run("scan")
        assert "one\n\ttwo \ufffd[2J" in said
        assert all(each.isprintable() or each in "\n\t" for each in said)

    def test_scans_what_a_skill_would_be_allowed(self, company, home):
        write(home, "plan", "Now: !`id`", allowed_tools="Read, Bash(ls:*), fly", model="x")
        said = self.run("scan").splitlines()[1:]
        assert said[:2] == ["  allowed, of what its agent has: read_file", "  runs: id"]
        warnings = [line for line in said if line.startswith("  warning: the skill plan")]
        for word in ("allows fly,", "model is not used here", "Bash(ls:*) allows nothing"):
            assert any(word in line for line in warnings), word

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("show", "none"), "no configured folder has a skill none"),
            (("approve", "none", "--reason", "x"), "there is no valid skill 'none'"),
            (("approve", "plan", "--reason", " "), "needs a reason"),
            (("approve", "plan", "--reason", "x", "--sha256", "0" * 64), "no longer the file"),
            (("withdraw", "plan", "--reason", "x"), "no skill 'plan' is approved"),
        ],
    )
    def test_says_what_it_cannot_do(self, company, home, words, said):
        write(home, "plan", "!id")
        with pytest.raises(CommandError, match=said):
            self.run(*words)
