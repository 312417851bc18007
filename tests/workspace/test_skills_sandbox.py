"""The walls: what a command cannot reach, what it may use at most, and that nothing outlives it."""

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from core.decision import Code, Denied
from workspace.sandbox import driver
from workspace.sandbox.driver import CommandOutcome, Limits, run

NO_WALLS = driver.problem_of(driver.find())
needs_walls = pytest.mark.skipif(bool(NO_WALLS), reason=f"no sandbox here: {NO_WALLS}")


def alive(mark: str) -> bool:
    """Whether any process of this machine carries the mark in its command line."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in words:
                return True
    return False


@needs_walls
class TestRun:
    def test_gives_output_errors_and_status(self):
        outcome = run("echo out; echo err >&2; exit 3")
        assert sorted(outcome.output.split()) == [b"err", b"out"]
        assert outcome.status == 3

    def test_has_a_clean_environment(self, monkeypatch):
        monkeypatch.setenv("NEXUS_SECRET", "hidden")
        monkeypatch.setenv("LD_PRELOAD", "/tmp/x.so")
        output = run("env").output
        assert b"hidden" not in output
        assert b"LD_PRELOAD" not in output
        assert b"HOME=/tmp" in output

    def test_shows_nothing_of_this_machine(self):
        here = Path(__file__).resolve()
        places = ["/root", "/home", "/var", "/etc/passwd", "/proc/1/root/etc/passwd"]
        for target in [*places, str(here), here.anchor + here.parts[1]]:
            seen = run(f"ls -A {target}")
            its_own = target == "/tmp" and seen.output == b""  # where the checkout lies in /tmp
            assert seen.status != 0 or its_own, target

    def test_hides_the_secrets_of_the_parent(self):
        output = run("cat /proc/*/environ /proc/*/cmdline").output
        assert b"DATABASE" not in output
        assert b"pytest" not in output

    def test_reaches_no_network(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            server.settimeout(0.5)
            outcome = run(f"bash -c 'echo hi > /dev/tcp/127.0.0.1/{port}'")
            assert outcome.status != 0
            with pytest.raises(TimeoutError):
                server.accept()
        assert run("cat /proc/net/route | wc -l").output.strip() == b"1"

    def test_reaches_no_abstract_socket(self):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("\0nexus-test-walls")
            server.listen()
            script = (
                "perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0);"
                'connect(S,pack_sockaddr_un("\\0nexus-test-walls")) or exit 9; print "in"\''
            )
            outcome = run(script)
        assert outcome.status == 9, outcome.output

    @pytest.mark.parametrize("place", ["/x", "/usr/x", "/dev/x", "/etc/x", "/proc/sys/kernel/x"])
    def test_writes_nowhere_but_in_its_scratch(self, place):
        assert run(f"echo x > {place}").status != 0
        assert run("echo x > /tmp/x && cat /tmp/x").output == b"x\n"

    def test_leaves_nothing_for_the_next(self):
        run("echo x > /tmp/left")
        assert run("ls /tmp").output == b""

    def test_has_no_rights(self):
        output = run("grep -E 'CapEff|CapPrm|CapBnd|NoNewPrivs' /proc/self/status").output.decode()
        values = dict(line.split(":\t") for line in output.splitlines())
        assert values["NoNewPrivs"] == "1"
        assert {int(values[name], 16) for name in ("CapEff", "CapPrm")} == {0}

    def test_is_nobody_outside(self):
        if os.geteuid() == 0:
            assert run("id -u").output.strip() == b"65534"

    def test_makes_no_walls_of_its_own(self):
        assert run("unshare --user true").status != 0
        assert run("mount -t tmpfs none /tmp").status != 0

    def test_ends_in_time_with_all_it_started(self):
        begun = time.monotonic()
        outcome = run("sleep 4711 & setsid sleep 4712 & exec sleep 4713", limits=Limits(seconds=1))
        assert outcome.timed_out
        assert time.monotonic() - begun < 5
        assert not any(alive(mark) for mark in ("4711", "4712", "4713"))

    def test_ends_in_time_when_it_closed_its_output(self):
        outcome = run("echo kept; exec >&- 2>&-; sleep 4714", limits=Limits(seconds=1))
        assert outcome.timed_out
        assert outcome.output == b"kept\n"
        assert not alive("4714")

    def test_leaves_no_daemon(self):
        outcome = run("(setsid nohup sleep 4715 > /dev/null 2>&1 &); echo done")
        assert outcome.output == b"done\n"
        assert not alive("4715")

    def test_cuts_endless_output(self):
        outcome = run("yes")
        assert outcome.cut
        assert outcome.status is None
        assert len(outcome.output) == Limits().output

    def test_limits_files_and_scratch(self):
        assert run("head -c 20000000 /dev/zero > /tmp/a").status != 0
        script = "for i in 1 2 3 4; do head -c 12000000 /dev/zero > /tmp/$i || exit 5; done"
        assert run(script).status == 5

    def test_limits_memory(self):
        assert b"exhausted" in run("tail /dev/zero").output

    def test_limits_processes(self):
        script = "for i in $(seq 400); do sleep 3 & done; wait"
        outcome = run(script, limits=Limits(seconds=5, processes=64))
        assert outcome.status != 0 or outcome.timed_out
        assert b"fork" in outcome.output.lower()

    def test_has_no_terminal_and_no_input(self):
        assert run("cat; tty").output.strip() == b"not a tty"

    def test_keeps_many_apart(self):
        found: dict[int, CommandOutcome] = {}

        def one(number: int) -> None:
            found[number] = run(f"echo {number} > /tmp/mine; sleep 0.2; cat /tmp/mine; ls /tmp")

        threads = [threading.Thread(target=one, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {n: o.output for n, o in found.items()} == {
            n: f"{n}\nmine\n".encode() for n in range(4)
        }


class TestWithoutWalls:
    def test_says_which_program_is_missing(self, monkeypatch):
        monkeypatch.setattr(driver, "TOOLS", "/nonexistent")
        assert driver.find() == "bwrap, prlimit, setpriv is not installed"
        with pytest.raises(Denied) as refusal:
            run("id")
        assert refusal.value.deny.code is Code.ISOLATION_UNAVAILABLE

    def test_believes_no_program_that_isolates_nothing(self, monkeypatch, tmp_path):
        for name in ("bwrap", "prlimit", "setpriv"):
            fake = tmp_path / name
            fake.write_text(
                "#!/bin/sh\necho 'No permissions to create a new namespace' >&2\nexit 1\n"
            )
            fake.chmod(0o755)
        monkeypatch.setattr(driver, "TOOLS", str(tmp_path))
        with pytest.raises(Denied, match="No permissions") as refusal:
            run("id")
        assert refusal.value.deny.code is Code.ISOLATION_UNAVAILABLE
