"""The walls: what a command cannot reach, what it may use at most, and that nothing outlives it."""

import hashlib
import os
import platform
import socket
import threading
import time
from pathlib import Path

import pytest

from core.decision import Code, Denied
from tests.patience import PATIENCE
from workspace.sandbox import driver
from workspace.sandbox.doctor import HUNGRY
from workspace.sandbox.launcher import memory_use
from workspace.sandbox.programs import HIDDEN, CommandOutcome, Mount, Program, ProgramLimits, shell

WAYS = ["bubblewrap", "namespaces"]


@pytest.fixture(params=WAYS)
def way(request, settings):
    """Each way to isolate, by itself."""
    settings.WORKSPACE_SANDBOX = request.param
    problems = [driver.problem_of(walls) for walls in driver.find()] or ["it is not installed"]
    if problems != [""]:
        pytest.skip(f"no {request.param} here: {problems[0]}")
    return request.param


def run(line: str, *, limits: ProgramLimits | None = None) -> CommandOutcome:
    return driver.run(shell(line, limits=limits))


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


@pytest.mark.usefixtures("way")
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
        places = ["/root", "/home", "/var", "/etc/shadow", "/proc/1/root/etc/shadow"]
        for target in [*places, str(here), here.anchor + here.parts[1]]:
            seen = run(f"ls -A {target}")
            its_own = target == "/tmp" and seen.output == b""  # where the checkout lies in /tmp
            assert seen.status != 0 or its_own, target

    def test_hides_the_secrets_of_the_parent(self):
        output = run("cat /proc/*/environ /proc/*/cmdline /proc/*/root/etc/shadow").output
        assert b"DATABASE" not in output
        assert b"root:" not in output
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
        outcome = run(
            "sleep 4711 & setsid sleep 4712 & exec sleep 4713", limits=ProgramLimits(seconds=1)
        )
        assert outcome.timed_out
        assert time.monotonic() - begun < PATIENCE
        assert not any(alive(mark) for mark in ("4711", "4712", "4713"))

    def test_ends_in_time_when_it_closed_its_output(self):
        outcome = run("echo kept; exec >&- 2>&-; sleep 4714", limits=ProgramLimits(seconds=1))
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
        assert len(outcome.output) == ProgramLimits().output

    def test_limits_files_and_scratch(self):
        assert run("head -c 20000000 /dev/zero > /tmp/a").status != 0
        script = "for i in 1 2 3 4; do head -c 12000000 /dev/zero > /tmp/$i || exit 5; done"
        assert run(script).status == 5

    def test_limits_memory(self):
        assert run(HUNGRY).status == 0
        assert run(HUNGRY, limits=ProgramLimits(memory=64 * 1024 * 1024)).status not in (0, None)

    def test_limits_processes(self):
        script = "for i in $(seq 400); do sleep 3 & done; wait"
        outcome = run(script, limits=ProgramLimits(seconds=5, processes=64))
        assert outcome.status != 0 or outcome.timed_out
        assert b"fork" in outcome.output.lower()

    def test_has_no_terminal_and_no_input(self):
        assert run("cat; tty").output.strip() == b"not a tty"

    def test_reads_its_input_whole(self):
        text = b"line\n" * 10_000
        program = Program(argv=("/usr/bin/md5sum",), stdin=text)
        assert driver.run(program).output.split()[0].decode() == hashlib.md5(text).hexdigest()

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


class TestMounts:
    """What a program sees of this machine is what it is given, and nothing by way of a link."""

    @pytest.fixture
    def tree(self, tmp_path, way):
        (tmp_path / "seen").mkdir()
        (tmp_path / "seen/file").write_text("seen")
        (tmp_path / "seen/.env").write_text("SECRET")
        (tmp_path / "seen/keys").mkdir()
        (tmp_path / "seen/keys/one").write_text("SECRET")
        (tmp_path / "other").write_text("SECRET")
        (tmp_path / "link").symlink_to(tmp_path / "seen")
        (tmp_path / "seen/out").symlink_to(tmp_path / "other")
        for path in (tmp_path / "seen", tmp_path / "seen/keys"):
            path.chmod(0o777)
        return tmp_path

    def outcome(self, line, *mounts):
        words = ("/bin/sh", "-c", line)
        return driver.run(Program(argv=words, mounts=mounts, folder="/work"))

    def test_are_seen_at_their_target(self, tree):
        outcome = self.outcome("cat file; pwd", Mount(tree / "seen", "/work"))
        assert outcome.output == b"seen/work\n"

    def test_are_read_only_unless_said_otherwise(self, tree):
        assert self.outcome("echo x > new", Mount(tree / "seen", "/work")).status != 0
        assert self.outcome("rm file", Mount(tree / "seen", "/work")).status != 0
        assert (
            self.outcome("echo x > new", Mount(tree / "seen", "/work", writable=True)).status == 0
        )
        assert (tree / "seen/new").read_text() == "x\n"

    def test_do_not_show_what_a_link_in_them_names(self, tree):
        outcome = self.outcome("cat out", Mount(tree / "seen", "/work"))
        assert b"SECRET" not in outcome.output
        assert outcome.status != 0

    @pytest.mark.parametrize("source", ["link", "link/file", "seen/out", "seen/../other", "gone"])
    def test_pass_no_link(self, tree, source):
        with pytest.raises(Denied) as refusal:
            self.outcome("cat /x /work/*", Mount(tree / source, "/work"))
        assert refusal.value.deny.code is Code.ISOLATION_UNAVAILABLE

    def test_hide_a_file_and_a_folder_of_another(self, tree):
        hidden = [Mount(HIDDEN, "/work/.env"), Mount(HIDDEN, "/work/keys/")]
        outcome = self.outcome(
            "cat .env keys/one; ls keys; cat file; echo x > keys/two",
            Mount(tree / "seen", "/work", writable=True),
            *hidden,
        )
        assert b"SECRET" not in outcome.output
        assert b"seen" in outcome.output
        assert sorted(path.name for path in (tree / "seen/keys").iterdir()) == ["one"]

    def test_make_a_seen_program_runnable(self, tree):
        (tree / "seen/run").write_text("#!/bin/sh\necho ran\n")
        (tree / "seen/run").chmod(0o755)
        assert self.outcome("./run", Mount(tree / "seen", "/work")).output == b"ran\n"


@pytest.mark.usefixtures("way")
class TestWatch:
    def test_gets_the_output_as_it_comes(self, tmp_path):
        """The second line is printed when the first was seen."""
        tmp_path.chmod(0o755)
        chunks = []

        def watch(chunk):
            chunks.append(chunk)
            if b"one" in chunk:
                (tmp_path / "seen").touch()
            return True

        line = "echo one; until [ -e /work/seen ]; do sleep 0.05; done; echo two"
        program = Program(
            argv=("/bin/sh", "-c", line),
            mounts=(Mount(tmp_path, "/work"),),
            folder="/work",
            limits=ProgramLimits(seconds=PATIENCE),
        )
        assert driver.run(program, watch=watch).output == b"one\ntwo\n"
        assert [chunk for chunk in chunks if chunk] == [b"one\n", b"two\n"]

    def test_ends_a_program_that_is_not_wanted_any_more(self):
        begun = time.monotonic()
        outcome = driver.run(
            shell("sleep 4721 & setsid sleep 4722 & wait", limits=ProgramLimits(seconds=600)),
            watch=lambda _: False,
        )
        assert outcome.cancelled
        assert outcome.status is None
        assert time.monotonic() - begun < PATIENCE
        assert not alive("4721")
        assert not alive("4722")


@pytest.mark.usefixtures("way")
class TestCalls:
    """What the filter of system calls refuses, asked for by number."""

    ASKED = """
import ctypes, errno, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    ctypes.set_errno(0)
    answer = libc.syscall(*words)
    return errno.errorcode.get(ctypes.get_errno(), "done") if answer < 0 else "done"
"""

    def asked(self, code):
        program = Program(argv=("/usr/bin/python3", "-I", "-S", "-c", self.ASKED + code))
        return driver.run(program).output.decode().split()

    @pytest.mark.skipif(platform.machine() != "x86_64", reason="by the numbers of x86-64")
    def test_are_refused(self):
        numbers = "101, 165, 166, 155, 161, 272, 308, 321, 298, 304, 323, 428, 438, 442"
        answers = self.asked(f"for n in ({numbers}): print(call(n, 0, 0, 0, 0, 0))")
        assert answers == ["EPERM"] * 14
        assert self.asked("print(call(56, 0x10000000 | 17, 0, 0, 0, 0))") == ["EPERM"]
        assert self.asked("print(call(435, 0, 0), call(425, 1, 0))") == ["ENOSYS", "ENOSYS"]
        assert self.asked("print(call(0x40000000 + 39))") == ["EPERM"]

    @pytest.mark.skipif(platform.machine() != "x86_64", reason="by the numbers of x86-64")
    def test_that_take_memory_which_nobody_is_seen_to_hold_are_refused(self):
        """memfd_create, shmget, msgget, semget; vmsplice, splice, tee, sendfile."""
        numbers = "319, 29, 68, 64, 278, 275, 276, 40"
        answers = self.asked(f"for n in ({numbers}): print(call(n, 0, 0, 0, 0, 0))")
        assert answers == ["ENOSYS"] * 8

    def test_map_no_shared_memory_without_a_file(self):
        code = """
import mmap, os
zero = os.open("/dev/zero", os.O_RDWR)
for file, kind in (-1, mmap.MAP_SHARED), (zero, mmap.MAP_SHARED), (-1, mmap.MAP_PRIVATE):
    try: mmap.mmap(file, 4096, flags=kind); print("done")
    except OSError as problem: print(errno.errorcode[problem.errno])
print(len(os.read(zero, 100).strip(bytes(1))))
"""
        assert self.asked(code) == ["ENOSYS", "ENODEV", "done", "0"]

    def test_open_no_strange_sockets(self):
        code = """
for family in (socket.AF_INET, socket.AF_UNIX, 17, 38, 40):
    try: socket.socket(family, socket.SOCK_STREAM).close(); print("opened")
    except OSError as e: print(errno.errorcode[e.errno])
"""
        assert self.asked(code) == ["opened", "opened", *["EAFNOSUPPORT"] * 3]


@pytest.mark.usefixtures("way")
class TestLimits:
    def test_hold_for_the_memory_of_all_processes_together(self):
        hungry = "python3 -c \"x = b'x' * 150_000_000; import time; time.sleep(600)\""
        line = f"{hungry} & {hungry} & {hungry} & wait"
        few = ProgramLimits(seconds=600, memory_of_all=300_000_000)
        begun = time.monotonic()
        assert driver.run(shell(line, limits=few)).status == 137
        assert time.monotonic() - begun < 2 * PATIENCE
        assert driver.run(shell("python3 -c 'print(1)'", limits=few)).status == 0

    HIDDEN_MEMORY = {
        "of what a thread started": """
import os, threading, time
def start():
    if os.fork() == 0:
        held = b"x" * 200_000_000
        time.sleep(600)
    time.sleep(600)
for _ in range(2): threading.Thread(target=start).start()
""",
        "that is shared with nobody": """
import mmap, os, time
for name in "ab":
    if os.fork() == 0:
        file = os.open(f"/dev/shm/{name}", os.O_RDWR | os.O_CREAT)
        os.truncate(file, 200_000_000)
        held = mmap.mmap(file, 200_000_000)
        for at in range(0, 200_000_000, 4096): held[at] = 1
        time.sleep(600)
time.sleep(600)
""",
        "of what waits in sockets": """
import os, socket, time
for _ in range(8):
    if os.fork() == 0:
        held = [socket.socketpair() for _ in range(100)]
        time.sleep(600)
time.sleep(600)
""",
    }

    @pytest.mark.parametrize("code", HIDDEN_MEMORY.values(), ids=HIDDEN_MEMORY)
    def test_hold_for_memory(self, code):
        few = ProgramLimits(seconds=30, memory_of_all=300_000_000, scratch=10**9, file=10**9)
        program = Program(argv=("/usr/bin/python3", "-I", "-S", "-c", code), limits=few)
        assert driver.run(program).status == 137

    def test_hold_for_what_one_socket_takes(self):
        """Some kernels let a program ask for 8 MB, of which nothing is seen in its memory."""
        code = """
import socket
one, _ = socket.socketpair()
sizes = socket.SO_SNDBUF, socket.SO_RCVBUF
before = [one.getsockopt(socket.SOL_SOCKET, size) for size in sizes]
for size in sizes: one.setsockopt(socket.SOL_SOCKET, size, 1 << 22)
print([one.getsockopt(socket.SOL_SOCKET, size) for size in sizes] == before)
one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
print(one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
"""
        program = Program(argv=("/usr/bin/python3", "-I", "-S", "-c", code))
        assert driver.run(program).output == b"True\n1\n"

    def test_hold_for_what_one_connection_takes(self):
        """A kernel gives a TCP connection more the more waits in it, up to 37 MB."""
        code = """
import socket
server = socket.create_server(("127.0.0.1", 0))
one = socket.create_connection(server.getsockname())
other, _ = server.accept()
one.setblocking(False)
waiting = 0
try:
    while True: waiting += one.send(bytes(65536))
except BlockingIOError: print(waiting)
"""
        program = Program(argv=("/usr/bin/python3", "-I", "-S", "-c", code))
        assert 0 < int(driver.run(program).output) <= memory_use.SOCKET

    def test_hold_for_what_sockets_keep_of_memory_that_was_given_back(self):
        assert run("ulimit -H -l").output == b"0\n"

    @pytest.mark.parametrize("name", ["RssAnon", "VmSwap", "VmPTE"])
    def test_count_what_only_one_process_holds(self, monkeypatch, name):
        files = {"status": f"{name}: 60000 kB\n"}
        monkeypatch.setattr(memory_use, "_read", lambda path: files.get(path.split("/")[-1], ""))
        assert memory_use.is_more_than(100_000_000, [2**22, 2**22 + 1])
        assert not memory_use.is_more_than(200_000_000, [2**22, 2**22 + 1])

    def test_count_what_processes_share_once(self):
        code = """
import mmap, os, time
file = os.open("/dev/shm/held", os.O_RDWR | os.O_CREAT)
os.truncate(file, 100_000_000)
held = mmap.mmap(file, 100_000_000)
for at in range(0, len(held), 4096): held[at] = 1
for _ in range(5):
    if os.fork() == 0:
        sum(held[at] for at in range(0, len(held), 4096))
        time.sleep(1)
        os._exit(0)
for _ in range(5): os.wait()
print("done")
"""
        few = ProgramLimits(seconds=PATIENCE, memory_of_all=300_000_000, scratch=10**9, file=10**9)
        program = Program(argv=("/usr/bin/python3", "-I", "-S", "-c", code), limits=few)
        assert driver.run(program).output == b"done\n"

    def test_count_nothing_of_a_process_that_ended_while_it_was_weighed(self, monkeypatch):
        seen = iter(["RssShmem: 200000 kB\n", "", ""])
        monkeypatch.setattr(
            memory_use, "_read", lambda path: next(seen) if "net" not in path else ""
        )
        assert not memory_use.is_more_than(100_000_000, [2**22])

    def test_count_all_that_is_shared_where_the_kernel_does_not_say_the_part(self, monkeypatch):
        files = {"status": "RssShmem: 200000 kB\n"}
        monkeypatch.setattr(memory_use, "_read", lambda path: files.get(path.split("/")[-1], ""))
        assert memory_use.is_more_than(100_000_000, [2**22])

    @pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
    def test_hold_for_the_number_of_files(self, folder):
        code = f"""
made = 0
try:
    for made in range(25_000): open(f"{folder}/{{made}}", "w").close()
except OSError: pass
print(made)
"""
        program = Program(argv=("/usr/bin/python3", "-I", "-S", "-c", code))
        assert int(driver.run(program).output) < 24_999

    @pytest.mark.skipif(platform.machine() != "x86_64", reason="by the numbers of x86-64")
    def test_leave_no_memory_that_nobody_is_seen_to_hold(self):
        calls = "319, b'x', 0", "447, 0", "29, 0, 4096, 0o1600", "68, 0, 0o1600"
        code = TestCalls.ASKED + "\n".join(f"print(call({words}))" for words in calls)
        program = Program(argv=("/usr/bin/python3", "-I", "-S", "-c", code))
        assert driver.run(program).output.split() == [b"ENOSYS"] * 4

    def test_hold_for_time_on_the_processor(self):
        outcome = driver.run(shell("while :; do :; done", limits=ProgramLimits(seconds=1)))
        assert outcome.timed_out

    def test_let_the_kernel_choose_the_sandbox_when_memory_runs_short(self):
        assert run("cat /proc/self/oom_score_adj").output == b"1000\n"


class TestWithoutWalls:
    def test_says_what_is_missing(self, monkeypatch, settings):
        settings.WORKSPACE_SANDBOX = "bubblewrap"
        monkeypatch.setattr(driver, "TOOLS", "/nonexistent")
        assert driver.find() == []
        with pytest.raises(Denied) as refusal:
            run("id")
        assert refusal.value.deny.code is Code.ISOLATION_UNAVAILABLE

    def test_takes_the_next_way_where_bubblewrap_is_missing(self, monkeypatch):
        monkeypatch.setattr(driver, "TOOLS", "/nonexistent")
        assert [walls.way for walls in driver.find()] == ["namespaces"]

    def test_believes_no_program_that_isolates_nothing(self, monkeypatch, tmp_path, settings):
        settings.WORKSPACE_SANDBOX = "bubblewrap"
        fake = tmp_path / "bwrap"
        fake.write_text("#!/bin/sh\necho 'No permissions to create a new namespace'\nexit 1\n")
        fake.chmod(0o755)
        monkeypatch.setattr(driver, "TOOLS", str(tmp_path))
        with pytest.raises(Denied, match="bubblewrap: ") as refusal:
            run("id")
        assert refusal.value.deny.code is Code.ISOLATION_UNAVAILABLE
