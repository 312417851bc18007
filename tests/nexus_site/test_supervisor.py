"""Children that end, stay, hang and multiply, and the one who watches them."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from nexus_site.run import pulse as pulse_module
from nexus_site.run import supervisor
from nexus_site.run.fork import fork, status_of
from nexus_site.run.processes import lives
from nexus_site.run.pulse import Pulse
from nexus_site.run.supervisor import Child, Supervisor
from tests.patience import PATIENCE, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
WATCHER = """
import pathlib, sys, time
from nexus_site.run.supervisor import Child
child = Child(name="child", run=lambda: time.sleep(600))
child.start(now=0.0)
pathlib.Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(600)
"""
STAY = "import time; time.sleep(600)"
END = "raise SystemExit(7)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def python(code):
    """A child's whole life: becoming a Python that runs this code."""
    return partial(os.execv, sys.executable, [sys.executable, "-S", "-c", code])


def parent(marker, **options):
    """A child that starts a grandchild, which outlives it unless somebody ends it."""
    return python(
        "import subprocess, sys, time; "
        f"p = subprocess.Popen([sys.executable, '-S', '-c', {STAY!r}], **{options!r}); "
        f"open({str(marker)!r}, 'w').write(str(p.pid)); time.sleep(600)"
    )


@pytest.fixture(autouse=True)
def _signals_as_they_were():
    before = {number: signal.getsignal(number) for number in supervisor.STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def said():
    return []


def stop_after(watcher, condition):
    """Stop the watcher, as a signal would, once something is true."""

    def wait():
        try:
            wait_until(condition)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def run_until_started_often(child, tally, said):
    """Supervise a child that leaves a mark at each start until it has twice what is too many."""
    often = 2 * supervisor.TOO_MANY
    with Supervisor(children=[child], say=said.append) as watcher:
        waiting = stop_after(watcher, lambda: tally.exists() and len(tally.read_text()) >= often)
        assert watcher.run() == 0
    waiting.join()


class TestRun:
    def test_ends_every_child_when_asked(self, said):
        children = [Child(name=name, run=python(STAY)) for name in ("one", "two")]
        with Supervisor(children=children, say=said.append) as watcher:
            waiting = stop_after(watcher, lambda: all(child.pid for child in children))
            assert watcher.run() == 0
            pids = [child.pid for child in children]
        waiting.join()
        assert not any(lives(pid) for pid in pids)
        assert said == []

    def test_ends_what_others_need_after_them(self, said):
        steps = []

        class Noted(Child):
            def ask_to_stop(self):
                steps.append(f"ask {self.name}")
                super().ask_to_stop()

            def kill_group(self):
                super().kill_group()
                steps.append(f"{self.name} is gone")

        children = [
            Noted(name="broker", run=python(STAY), is_needed=True),
            Noted(name="worker", run=python(STAY)),
        ]
        with Supervisor(children=children, say=said.append) as watcher:
            waiting = stop_after(watcher, lambda: all(child.pid for child in children))
            watcher.run()
        waiting.join()
        assert steps == ["ask worker", "worker is gone", "ask broker", "broker is gone"]

    def test_starts_a_fallen_child_again_after_a_pause(self, said, tmp_path):
        tally = tmp_path / "tally"
        child = Child(name="child", run=python(f"open({str(tally)!r}, 'a').write('x'); {END}"))
        with Supervisor(children=[child], say=said.append) as watcher:
            waiting = stop_after(watcher, lambda: tally.exists() and len(tally.read_text()) >= 2)
            assert watcher.run() == 0
        waiting.join()
        assert said[0] == "child ended with status 7; starting it again in 1 s."

    def test_starts_a_fallen_child_later_where_there_is_no_room_for_it(
        self, said, monkeypatch, tmp_path
    ):
        monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 0.0)
        tally, full = tmp_path / "tally", [BlockingIOError(11, "no more processes")] * 3

        def fork_if_there_is_room(run, *, name):
            if tally.exists() and full:
                raise full.pop()
            return fork(run, name=name)

        monkeypatch.setattr(supervisor, "fork", fork_if_there_is_room)
        child = Child(name="child", run=python(f"open({str(tally)!r}, 'a').write('x'); {END}"))
        with Supervisor(children=[child], say=said.append) as watcher:
            waiting = stop_after(watcher, lambda: tally.exists() and len(tally.read_text()) >= 2)
            assert watcher.run() == 0
        waiting.join()
        assert said[1].startswith("child cannot be started: ")
        assert len(said) >= 4

    def test_gives_up_on_a_child_that_always_falls(self, said, monkeypatch):
        monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 0.0)
        steady = Child(name="steady", run=python(STAY))
        falling = Child(name="falling", run=python(END))
        with Supervisor(children=[steady, falling], say=said.append) as watcher:
            assert watcher.run() == 1
            pid = steady.pid
        assert not lives(pid)
        assert said[-1] == "falling ended 6 times in a row (last: 7); giving up."

    def test_never_gives_up_on_a_child_that_once_was_steady(self, said, monkeypatch, tmp_path):
        """What keeps it down later, such as a full disk, may pass."""
        monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 0.0)
        monkeypatch.setattr(supervisor, "STEADY", 0.5)
        tally = tmp_path / "tally"
        code = (
            f"import os, time; first = not os.path.exists({str(tally)!r}); "
            f"open({str(tally)!r}, 'a').write('x'); time.sleep(first); exit(7)"
        )
        child = Child(name="child", run=python(code))
        run_until_started_often(child, tally, said)
        assert not any("giving up" in line for line in said)

    def test_never_gives_up_on_a_child_that_is_killed(self, said, monkeypatch, tmp_path):
        monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 0.0)
        tally = tmp_path / "tally"
        code = f"open({str(tally)!r}, 'a').write('x'); import os; os.kill(os.getpid(), 9)"
        child = Child(name="child", run=python(code))
        run_until_started_often(child, tally, said)
        assert not any("giving up" in line for line in said)

    def test_stops_when_it_is_wanted_no_more(self, said, tmp_path):
        marker = tmp_path / "wanted"
        marker.touch()
        child = Child(name="child", run=python(STAY))
        with Supervisor(children=[child], say=said.append, still_wanted=marker.exists) as watcher:
            threading.Timer(0.3, marker.unlink).start()
            assert watcher.run() == 0

    def test_ends_what_a_child_started(self, said, tmp_path):
        marker = tmp_path / "grandchild"
        child = Child(name="child", run=parent(marker))
        with Supervisor(children=[child], say=said.append) as watcher:
            waiting = stop_after(watcher, lambda: marker.exists() and marker.read_text())
            watcher.run()
        waiting.join()
        wait_until(lambda: not lives(int(marker.read_text())))

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows sessions")
    @pytest.mark.parametrize("end", [lambda _: None, lambda pid: os.kill(pid, signal.SIGKILL)])
    def test_ends_what_a_child_started_in_a_group_of_its_own(self, said, tmp_path, end):
        """As git is; it may wait for another machine for ever."""
        marker = tmp_path / "grandchild"
        child = Child(name="child", run=parent(marker, process_group=0))
        with Supervisor(children=[child], say=said.append) as watcher:
            waiting = stop_after(watcher, lambda: marker.exists() and marker.read_text())
            watcher.run()
            end(child.pid)
        waiting.join()
        wait_until(lambda: not lives(int(marker.read_text())))

    def test_ends_a_child_that_will_not_go(self, said):
        child = Child(name="child", run=python(STUBBORN), grace=0.3)
        with Supervisor(children=[child], say=said.append) as watcher:
            waiting = stop_after(watcher, lambda: child.pid is not None)
            watcher.run()
            time.sleep(0.3)  # let it refuse
            pid = child.pid
        waiting.join()
        assert not lives(pid)

    def test_is_not_patient_when_asked_twice(self, said):
        child = Child(name="child", run=python(STUBBORN), grace=600.0)
        begun = time.monotonic()
        with Supervisor(children=[child], say=said.append) as watcher:
            waiting = stop_after(watcher, lambda: child.pid is not None)
            watcher.run()
            time.sleep(0.3)
            threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGTERM]).start()
        waiting.join()
        assert time.monotonic() - begun < PATIENCE


def beating(pulse, tally, life):
    """A child that leaves a mark at its start, and beats while it lives this life."""

    def run():
        with tally.open("a") as marks:
            marks.write("x")

        async def both():
            beats = asyncio.create_task(pulse.beat_for_ever())
            await asyncio.get_running_loop().run_in_executor(None, life)
            beats.cancel()

        asyncio.run(both())

    return Child(name="child", run=run, pulse=pulse)


def stop_oneself():
    os.kill(os.getpid(), signal.SIGSTOP)


def calculate():
    """Keep the processor busy for longer than any limit here."""
    ends = time.monotonic() + 4
    while time.monotonic() < ends:
        sum(range(10_000))


class TestPulse:
    """A child that beats is watched: only one that is silent is killed."""

    @pytest.fixture
    def pulse(self):
        return Pulse(limit=1.5)

    def test_of_a_child_that_was_stopped_ends_and_it_is_started_again(self, said, pulse, tmp_path):
        tally = tmp_path / "tally"
        child = beating(pulse, tally, stop_oneself)
        with Supervisor(children=[child], say=said.append) as watcher:
            waiting = stop_after(watcher, lambda: tally.exists() and len(tally.read_text()) >= 2)
            assert watcher.run() == 0
        waiting.join()
        assert said[:2] == [
            "child did not respond for 2 s; killing it.",
            "child ended with status -9; starting it again in 1 s.",
        ]

    def test_of_a_child_that_hangs_ends(self, said, pulse, tmp_path):
        tally = tmp_path / "tally"
        child = Child(name="child", run=lambda: tally.touch() or time.sleep(600), pulse=pulse)
        with Supervisor(children=[child], say=said.append) as watcher:
            waiting = stop_after(watcher, lambda: said)
            assert watcher.run() == 0
        waiting.join()
        assert said[0] == "child did not respond for 2 s; killing it."

    def test_of_a_busy_child_goes_on(self, said, pulse, tmp_path):
        done = tmp_path / "done"
        child = beating(pulse, tmp_path / "tally", lambda: calculate() or done.touch())
        with Supervisor(children=[child], say=said.append) as watcher:
            waiting = stop_after(watcher, done.exists)
            assert watcher.run() == 0
        waiting.join()
        assert not any("did not respond" in line for line in said)
        assert (tmp_path / "tally").read_text() == "x"

    def test_is_not_missed_for_the_time_that_the_machine_was_suspended(self, pulse):
        pulse.begin(now=0.0)
        assert not pulse.is_silent(now=3600.0)
        pulse.beat()
        assert not pulse.is_silent(now=3600.1)
        assert not any(pulse.is_silent(now=3600.1 + tenths / 10) for tenths in range(15))
        assert pulse.is_silent(now=3602.0)

    def test_of_an_earlier_child_does_not_count(self, pulse):
        pulse.begin(now=0.0)
        assert [pulse.is_silent(now=float(now)) for now in (1, 2)] == [False, True]
        pulse.begin(now=10.0)
        assert not pulse.is_silent(now=11.0)

    def test_limit_is_the_one_that_people_read(self):
        words = (REPOSITORY / "docs" / "operations.md").read_text("utf-8")
        assert f"does not respond for {pulse_module.SILENT_AFTER:.0f} seconds" in words


class TestChild:
    def test_forgets_old_failures_once_it_was_steady(self):
        child = Child(name="child", run=int, failures=5, started=0.0)
        assert child.failed(now=supervisor.STEADY + 1) == 1.0
        assert child.failures == 1

    def test_waits_longer_after_each_fall_in_a_row(self):
        child = Child(name="child", run=int)
        pauses = [child.failed(now=0.0) for _ in range(8)]
        assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]

    @pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")
    def test_ends_with_a_watcher_that_was_killed(self, tmp_path):
        marker = tmp_path / "pid"
        watcher = subprocess.Popen([sys.executable, "-c", WATCHER, str(marker)], cwd=REPOSITORY)
        wait_until(lambda: marker.exists() and marker.read_text())
        watcher.kill()
        watcher.wait()
        wait_until(lambda: not lives(int(marker.read_text())))


class TestFinish:
    def test_does_both_and_tells_how_the_task_ended(self, said):
        done = []
        with Supervisor(children=[], say=said.append) as watcher:
            task = Child(name="task", run=lambda: 5)
            assert watcher.finish(task, lambda: done.append(True)) == 5
        assert done == [True]
        assert said == []

    def test_says_that_the_task_was_killed(self, said):
        task = Child(name="task", run=lambda: os.kill(os.getpid(), signal.SIGKILL))
        with Supervisor(children=[], say=said.append) as watcher:
            assert watcher.finish(task, lambda: None) == -signal.SIGKILL
        assert said == ["task was killed (signal 9); start again."]

    def test_ends_a_child_that_leads_no_group_yet(self, monkeypatch):
        def young(pid, number):
            raise ProcessLookupError

        monkeypatch.setattr(os, "killpg", young)
        child = Child(name="young", run=lambda: time.sleep(600))
        child.start(now=0.0)
        child.kill_group()
        assert child.status == -signal.SIGKILL

    def test_breaks_the_task_off_when_asked_to_stop(self, said):
        task = Child(name="task", run=lambda: time.sleep(600))
        with Supervisor(children=[], say=said.append) as watcher:
            waiting = stop_after(watcher, lambda: task.pid is not None)
            assert watcher.finish(task, lambda: None) == 1
        waiting.join()
        assert not lives(task.pid)


class TestFork:
    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows sessions")
    def test_leaves_nothing_that_the_function_started(self, tmp_path):
        """Where our own process is gone, only it can end that."""
        marker = tmp_path / "started"

        def run():
            words = [sys.executable, "-S", "-c", STAY]
            marker.write_text(str(subprocess.Popen(words, process_group=0).pid))

        assert status_of(fork(run), wait=True) == 0
        wait_until(lambda: not lives(int(marker.read_text())))

    @pytest.mark.parametrize(
        ("run", "status"),
        [
            (lambda: None, 0),
            (lambda: 3, 3),
            (lambda: sys.exit(4), 4),
            (lambda: sys.exit("in words"), 1),
            (sys.exit, 0),
            (lambda: 1 / 0, 1),
            (lambda: os.kill(os.getpid(), signal.SIGKILL), -signal.SIGKILL),
        ],
    )
    def test_ends_with_what_the_function_says(self, run, status):
        assert status_of(fork(run), wait=True) == status

    def test_takes_none_of_our_signal_handlers_along(self, tmp_path):
        marker, begun = tmp_path / "handled", tmp_path / "begun"
        signal.signal(signal.SIGTERM, lambda *_: marker.touch())
        pid = fork(lambda: begun.touch() or time.sleep(600))
        wait_until(begun.exists)
        os.kill(pid, signal.SIGTERM)
        assert status_of(pid, wait=True) == -signal.SIGTERM
        assert not marker.exists()

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows names of processes")
    def test_is_listed_under_its_name(self):
        def named():
            return int(Path("/proc/self/comm").read_text() != "nexus child\n")

        assert status_of(fork(named, name="nexus child"), wait=True) == 0

    def test_runs_in_a_session_of_its_own(self):
        assert status_of(fork(lambda: int(os.getsid(0) != os.getpid())), wait=True) == 0
