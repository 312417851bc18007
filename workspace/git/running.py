"""Git as the control plane runs it: with its own configuration, within limits."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from core.decision import Code, Denied, deny, refuse
from core.terminal import printable_lines

SECONDS = 120
"""How long one command may take; an import may take ten times as long."""

MEMORY = 2048 * 1024 * 1024
"""Bytes of memory that git and each program that it starts may hold: agents write what it reads."""

LIMITED = 'ulimit -d "$0" 2>/dev/null; exec git "$@"'
"""Git with at most so many KiB of memory, or with the smaller limit that holds already. A limit
that is set once git works would not hold for the programs that it has begun by then."""

MOST_SAID = 64 * 1024
"""Bytes of what git says of errors that are kept: another machine writes them, too."""

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LANG": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": str(Path(__file__).with_name("git.config")),
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PROTOCOL_FROM_USER": "0",
}

NO_PROGRAMS = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE})
"""Errors of a machine that can start no more programs, or open no more files."""
SIGNS_OF_IT = ("annot fork", *(os.strerror(number) for number in NO_PROGRAMS))
"""What git says of it, or the shell of a hook of git's, which writes "Cannot"."""
MACHINE_IS_FULL = deny(
    Code.DRIVER_UNAVAILABLE,
    "this machine can start no more programs for git now",
    "repeat the call in a minute; if this stays, tell the people who run this installation",
    rule="git has limited time and memory (spec: hands 34)",
    driver="git",
)


class GitFailed(Denied):
    """A command of git ended with an error; `said` is its text.

    What no caller says in other words is DRIVER_UNAVAILABLE: the repository itself is broken.
    """

    def __init__(self, verb: str, status: int | None, said: bytes) -> None:
        self.said = printable_lines(said.decode("utf-8", "replace")).strip()
        super().__init__(
            deny(
                Code.DRIVER_UNAVAILABLE,
                f"git {verb} failed: {self.said[:1000] or status}",
                "repeat the call in ten minutes; if this stays, tell the people who run this "
                "installation: `git fsck` says what is broken, and a backup has what is missing",
                rule="the repository is whole (spec: hands 34)",
                driver="git repository",
            )
        )


def run_git(
    words: Sequence[str],
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    *,
    seconds: float = SECONDS,
    watch: Callable[[], None] = lambda: None,
) -> subprocess.CompletedProcess[bytes]:
    """Run git with nothing of this machine's configuration or environment. Raises GitFailed.

    Raises Denied DRIVER_UNAVAILABLE where the machine can start no more programs. The watcher is
    asked about once a second; what it raises ends git. So does a long text of errors, which another
    machine may write.
    """
    ends = time.monotonic() + seconds
    with (
        _file_of(stdin) as given,
        tempfile.TemporaryFile() as errors,
        started(words, environment or {}, errors.fileno(), given) as process,
    ):
        while True:
            left = ends - time.monotonic()
            try:
                output, _ = process.communicate(timeout=max(0, min(left, 1)))
            except subprocess.TimeoutExpired:
                pass
            else:
                errors.seek(0)
                said = errors.read(MOST_SAID)
                if process.returncode != 0 and _is_machine_full(said):
                    raise Denied(MACHINE_IS_FULL)
                return subprocess.CompletedProcess(words, process.returncode, output, said)
            watch()
            if os.fstat(errors.fileno()).st_size > MOST_SAID:
                raise GitFailed(words[0], None, b"it complains without an end")
            if left <= 0:
                raise GitFailed(words[0], None, f"no answer within {seconds:g} s".encode())


@contextmanager
def _file_of(text: bytes) -> Iterator[int]:
    """A file to read a text from. To a pipe `communicate` writes no more once it is asked again."""
    if not text:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(text)
        file.seek(0)
        yield file.fileno()


def _is_machine_full(said: bytes) -> bool:
    text = said.decode("utf-8", "replace")
    return any(sign in text for sign in SIGNS_OF_IT)


@contextmanager
def started(
    words: Sequence[str],
    environment: Mapping[str, str],
    errors: int,
    stdin: int = subprocess.DEVNULL,
) -> Iterator[subprocess.Popen[bytes]]:
    """Git at work, with limited memory; at the end it and what it began is killed."""
    if shutil.which("git", path=ENVIRONMENT["PATH"]) is None:
        raise refuse(
            Code.DRIVER_UNAVAILABLE,
            "git is not installed on this installation",
            "go on without it; ask the people who run this installation to install git",
            rule="git is installed",
            driver="git",
        )
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", LIMITED, str(MEMORY // 1024), *words],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd="/",
            env={**ENVIRONMENT, **environment},
            process_group=0,
        )
    except OSError as problem:
        if problem.errno in NO_PROGRAMS:
            raise Denied(MACHINE_IS_FULL) from problem
        raise
    with process:
        try:
            yield process
        finally:
            # Where git itself has ended, what it began may wait for another machine for ever.
            with suppress(ProcessLookupError, PermissionError):  # macOS says that of a zombie
                os.killpg(process.pid, signal.SIGKILL)
