"""Task files in and out: all or nothing, never twice, the same both ways."""

import json
import os
from errno import ENOSPC
from io import StringIO
from itertools import islice

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.people import operator
from ledger.models import Event
from orgchart.models import Agent
from tasks.intake import files
from tasks.models import Dependency, Task
from tasks.schedule import release_overdue
from tests.tasks.world import Http, company, dev_team, touch

OLD = {"id": "5", "subject": "[backend-leader] REQ-002", "description": "…", "status": "pending"}


def run(*words) -> str:
    out = StringIO()
    call_command("tasks", *map(str, words), stdout=out)
    return out.getvalue()


@pytest.fixture
def folder(tmp_path):
    def filled(*tasks):
        for number, task in enumerate(tasks):
            text = task if isinstance(task, str) else json.dumps(task)
            (tmp_path / f"{number}.json").write_text(text)
        return tmp_path

    return filled


class TestImport:
    def test_takes_what_old_tools_wrote(self, team, folder):
        said = run("import", "dev-team", folder(OLD))
        assert "0.json: imported: #5" in said
        task = Task.objects.get()
        assert (task.number, task.version, task.required_role, task.task_type) == (5, 1, "", "")
        event = Event.objects.get(action="task.imported")
        assert event.subject == "task:dev-team/5"
        assert event.actor == Task.objects.get().created_by == operator().actor

    def test_means_the_development_team_unless_told(self, team, folder):
        company()
        run("import", folder(OLD))
        assert Task.objects.get().organisation == team

    def test_goes_on_counting_behind_the_highest(self, team, http, folder):
        run("import", folder(OLD))
        assert http.call("architect", "task_create", subject="x").result["id"] == "6"

    def test_counts_new_dependencies_without_reading_all(self, team, folder):
        """PostgreSQL has no statistics of what was just taken in: it would read all for each."""
        run("import", folder({"id": 4, "subject": "there"}))
        chain = [{"id": at, "subject": "x", "blockedBy": [str(at - 1)]} for at in range(5, 10)]
        with CaptureQueriesContext(connection) as seen:
            run("import", folder(json.dumps(chain)))
        changed = [each["sql"] for each in seen if "UPDATE tasks_task" in each["sql"]]
        assert changed
        assert not any("tasks_dependency" in sql for sql in changed)
        counts = Task.objects.order_by("number").values_list("open_blockers", "dependents")
        assert list(counts) == [(0, 1), *[(1, 1)] * 4, (1, 0)]

    @pytest.mark.parametrize("way", ["tasks", "blockers"])
    def test_of_more_tasks_than_a_statement_has_parameters_is_looked_through(
        self, team, folder, way
    ):
        """An organisation of 100,000 tasks could be exported and not be imported."""
        numbers = [str(number) for number in range(2, 2**16 + 2)]
        tasks = {
            "tasks": [{"id": each, "subject": "x", "blockedBy": ["1"]} for each in numbers],
            "blockers": [{"id": "1", "subject": "x", "blockedBy": numbers}],
        }[way]
        said = run("import", folder(json.dumps(tasks)), "--skip-bad")
        assert said.endswith(f"0 imported, 0 exists, {len(tasks)} bad\n")
        assert "which does not exist" in said

    @pytest.mark.parametrize("number", ["999999999999999999", 10**15])
    def test_refuses_an_id_that_counting_could_not_go_on_behind(self, team, folder, number):
        with pytest.raises(CommandError, match="nothing was imported"):
            run("import", folder({"id": number, "subject": "x"}))
        said = run("import", folder({"id": number, "subject": "x"}), "--skip-bad")
        assert "0.json: bad: the id of a new task has 15 digits at most" in said
        assert not Task.objects.exists()

    def test_of_the_highest_id_leaves_room_to_go_on(self, team, http, folder):
        run("import", folder(OLD | {"id": "9" * 10}))
        made = http.call("architect", "task_create", subject="x").result["id"]
        assert http.call("architect", "task_get", taskId=made).result["id"] == str(10**10)

    def test_reads_lists_numbers_and_everything_a_task_has(self, team, http, folder):
        whole = OLD | {
            "id": 6,
            "status": "in_progress",
            "owner": "backend-leader",
            "requiredRole": "backend-leader",
            "taskType": "testing",
            "version": 4,
            "metadata": {"a": [1]},
            "activeForm": "doing",
            "blockedBy": ["5"],
            "createdAt": "2026-01-01T00:00:00Z",
            "updatedAt": "2026-01-02T00:00:00Z",
        }
        run("import", folder(json.dumps([OLD, whole])))
        task = http.call("architect", "task_get", taskId="6").result
        assert {name: task[name] for name in whole if name != "id"} | {"id": 6} == whole
        assert http.call("architect", "task_get", taskId="5").result["blocks"] == ["6"]
        assert Task.objects.get(number=6).open_blockers == 1

    def test_a_second_time_changes_nothing(self, team, folder):
        path = folder(OLD, OLD | {"id": "6", "blockedBy": ["5"]})
        run("import", path)
        before = (list(Task.objects.values()), list(Dependency.objects.values()))
        events = Event.objects.count()
        assert "0 imported, 2 exists, 0 bad" in run("import", path)
        assert (list(Task.objects.values()), list(Dependency.objects.values())) == before
        assert Event.objects.count() == events

    @pytest.mark.parametrize(
        "bad",
        [
            "{",
            "[7]",
            "\x00",
            {"id": "x", "subject": "x"},
            {"id": "0", "subject": "x"},
            {"id": "1"},
            {"id": "1", "subject": ""},
            {"id": "1", "subject": "x", "status": "dreaming"},
            {"id": "1", "subject": "x", "requiredRole": "nobody"},
            {"id": "1", "subject": "x", "taskType": "dreaming"},
            {"id": "1", "subject": "x", "owner": "nobody"},
            {"id": "1", "subject": "x", "version": 0},
            {"id": "1", "subject": "x", "version": 2**31},
            {"id": "1", "subject": "x", "blocks": ["77"]},
            {"id": "1", "subject": "x", "blockedBy": ["5"], "status": "completed"},
            {"id": "5", "subject": "the same id again"},
            {"id": "1", "subject": "a\x00b"},
            {"id": "1", "subject": "x", "metadata": {"a": [{"b": "\x00"}]}},
            {"id": "1", "subject": "x", "metadata": {"\x00": 1}},
            '{"id": "1", "subject": "x", "metadata": {"a": 1e999}}',
            '{"id": "1", "subject": "x", "subject": "y"}',
            '{"id": "1", "subject": "x", "metadata": {"a": 1, "a": 2}}',
            "[" * 100_000,
            {"id": "1", "subject": "x", "createdAt": "0001-01-01T00:00:00+14:00"},
            {"id": "1", "subject": "x", "updatedAt": "9999-12-31T23:00:00-12:00"},
            {"id": "1", "subject": "x", "updatedAt": "2201-01-01T00:00:00Z"},
        ],
    )
    def test_with_one_bad_changes_nothing_unless_it_is_skipped(self, team, folder, bad):
        path = folder(OLD, bad)
        with pytest.raises(CommandError, match="nothing was imported"):
            run("import", path)
        assert not Task.objects.exists()
        said = run("import", path, "--skip-bad")
        assert "1 imported, 0 exists, 1 bad" in said
        assert Task.objects.get().number == 5

    def test_of_a_circle_changes_nothing(self, team, folder):
        path = folder(OLD | {"blocks": ["6"]}, OLD | {"id": "6", "blocks": ["5"]})
        with pytest.raises(CommandError, match="nothing was imported"):
            run("import", path)
        assert not Task.objects.exists()

    def test_leaves_out_only_what_is_in_a_circle(self, team, folder):
        path = folder(
            OLD | {"blocks": ["6"]},
            OLD | {"id": "6", "blocks": ["7"]},
            OLD | {"id": "7", "blocks": ["5"]},
            OLD | {"id": "8"},
            OLD | {"id": "9", "blockedBy": ["8"]},
            OLD | {"id": "10", "blockedBy": ["7"]},
            OLD | {"id": "11", "blocks": ["11"]},
        )
        said = run("import", path, "--skip-bad")
        assert "2 imported, 0 exists, 5 bad" in said
        for file in (0, 1, 2, 6):
            assert f"{file}.json: bad: blocks and blockedBy close a circle: #" in said
        assert "5.json: bad: it names #7, which does not exist" in said
        assert set(Task.objects.values_list("number", flat=True)) == {8, 9}
        assert Dependency.objects.count() == 1

    def test_leaves_out_what_closes_a_circle_with_what_is_there(self, team, folder):
        run("import", folder(OLD, OLD | {"id": "6", "blockedBy": ["5"]}))
        path = folder(
            OLD | {"id": "7", "blockedBy": ["6"], "blocks": ["5"]},
            OLD | {"id": "8", "blockedBy": ["6"]},
        )
        said = run("import", path, "--skip-bad")
        assert "0.json: bad: blocks and blockedBy close a circle" in said
        assert "1.json: imported: #8" in said
        assert set(Task.objects.values_list("number", flat=True)) == {5, 6, 8}

    def test_says_imported_only_of_what_was(self, team, folder):
        out = StringIO()
        with pytest.raises(CommandError, match="nothing was imported"):
            call_command("tasks", "import", str(folder(OLD, "{")), stdout=out)
        assert "0.json: good: #5" in out.getvalue()
        assert "imported" not in out.getvalue()

    def test_of_what_is_not_there_says_so(self, team, tmp_path):
        with pytest.raises(CommandError, match="does not exist"):
            run("import", tmp_path / "none")
        with pytest.raises(CommandError, match="no organisation nowhere"):
            run("import", "nowhere", tmp_path)


class TestExport:
    @pytest.fixture
    def lively(self, team, http) -> Http:
        call = http.call
        for fields in ({}, {"requiredRole": "architect", "taskType": "testing"}, {}):
            call("team-lead", "task_create", subject="x", metadata={"é": [1, None]}, **fields)
        call("architect", "task_update", taskId="2", owner="architect", addBlockedBy=["1"])
        call("team-lead", "task_update", taskId="3", status="deleted")
        return http

    def test_writes_one_file_each_that_imports_as_the_same(self, lively, tmp_path):
        assert "3 tasks written" in run("export", "dev-team", tmp_path / "out")
        written = json.loads((tmp_path / "out" / "2.json").read_text())
        assert (written["owner"], written["blockedBy"], written["version"]) == (
            "architect", ["1"], 2,
        )  # fmt: skip
        other = Http(dev_team("other"))
        run("import", "other", tmp_path / "out")
        run("export", "other", tmp_path / "again")
        for number in (1, 2, 3):
            one, two = (tmp_path / place / f"{number}.json" for place in ("out", "again"))
            assert one.read_text() == two.read_text()
        assert other.call("architect", "task_get", taskId="1").result["blocks"] == ["2"]

    def test_takes_the_place_of_no_pipe_or_device(self, lively, tmp_path):
        pipe = tmp_path / "pipe.json"
        os.mkfifo(pipe)
        with pytest.raises(CommandError, match="no plain file"):
            run("export", "dev-team", pipe)
        assert pipe.is_fifo()

    def test_is_imported_where_an_owner_has_left(self, lively, tmp_path):
        """Nothing at all was imported of an organisation that one agent had left."""
        lively.call("team-lead", "task_update", taskId="1", owner="architect", forceAssign=True)
        for status in ("in_progress", "completed"):
            lively.call("architect", "task_update", taskId="1", status=status)
        run("export", "dev-team", tmp_path / "out")
        other = dev_team("other")
        Agent.objects.filter(handle="architect").update(active=False)
        touch(lively.organisation)
        touch(other)
        assert "0 imported, 3 exists, 0 bad" in run("import", "dev-team", tmp_path / "out")
        assert "3 imported, 0 exists, 0 bad" in run("import", "other", tmp_path / "out")
        release_overdue(now=timezone.now())
        tasks = Task.objects.filter(organisation=other).order_by("number")
        found = list(tasks.values_list("status", "owner__handle"))
        assert found[:2] == [("completed", "architect"), ("pending", None)]

    def test_writes_a_list_into_one_file(self, lively, tmp_path):
        run("export", "dev-team", tmp_path / "all.json")
        assert len(json.loads((tmp_path / "all.json").read_text())) == 3

    def test_read_back_changes_nothing(self, lively, tmp_path):
        run("export", "dev-team", tmp_path / "out")
        assert "0 imported, 3 exists, 0 bad" in run("import", "dev-team", tmp_path / "out")

    @pytest.mark.parametrize("place", ["file/out", "file/all.json", "nowhere/all.json"])
    def test_to_where_nothing_can_be_written_says_so(self, lively, tmp_path, place):
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(CommandError, match="cannot be written: "):
            run("export", "dev-team", tmp_path / place)

    def test_killed_within_a_folder_is_not_taken_for_a_whole_one(self, lively, tmp_path):
        """Ten of sixty tasks were there after a kill, and an import found nothing wrong."""
        out = tmp_path / "out"
        with pytest.raises(KeyboardInterrupt):
            files.write_path(out, killed_after(files.export_tasks(lively.organisation.id), 2))
        Http(dev_team("other"))
        with pytest.raises(CommandError, match="did not come to its end: tasks may be missing"):
            run("import", "other", out)
        run("export", "dev-team", out)
        assert "3 imported, 0 exists, 0 bad" in run("import", "other", out)
        assert len(list(out.iterdir())) == 3

    def test_killed_or_without_room_leaves_the_earlier_list(self, lively, tmp_path, monkeypatch):
        run("export", "dev-team", tmp_path / "all.json")
        before = (tmp_path / "all.json").read_bytes()

        def full(descriptor):
            raise OSError(ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(CommandError, match=r"all\.json cannot be written: "):
            run("export", "dev-team", tmp_path / "all.json")
        assert [each.read_bytes() for each in tmp_path.iterdir()] == [before]


def killed_after(tasks, count):
    """The first tasks, then the end of the process that writes them."""
    yield from islice(tasks, count)
    raise KeyboardInterrupt


class TestReport:
    @pytest.mark.parametrize("days", [9999999, 36501, 0, -4])
    def test_refuses_days_that_no_calendar_has(self, team, days):
        with pytest.raises(CommandError, match=f"from 1 to 36500, not {days}"):
            run("report", "dev-team", f"--days={days}")

    def test_looks_back_as_far_as_it_says(self, team):
        assert "dev-team, " in run("report", "dev-team", "--days=36500")
