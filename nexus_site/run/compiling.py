"""Compiles modules in another process: `python -I -S compiling.py`, a path to a line.

What is compiled leaves holes in the memory of its process, and all children of `up` would share
them: 15 MB of an idle installation. Standard library only: it must start in milliseconds.
"""

import os
import py_compile
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType


class CompilingElsewhere:
    """A finder of modules, by which those that never were compiled are compiled elsewhere.

    Only for the process that began it: its forked children compile for themselves.
    """

    def __init__(self) -> None:
        self._compiler: subprocess.Popen[str] | None = None
        self._owner = 0

    def begin(self) -> None:
        """Be asked where Python looks into folders."""
        if not sys.dont_write_bytecode:
            self._owner = os.getpid()
            sys.meta_path.insert(sys.meta_path.index(PathFinder), self)

    def end(self) -> None:
        """Be asked no more, and end the other process."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        if self._compiler:
            self._compiler.kill()
            self._compiler.communicate()
            self._compiler = None

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What Python's own finder finds, compiled."""
        spec = PathFinder.find_spec(name, path, target)
        if spec and os.getpid() == self._owner and not self._compiles(spec):
            self.end()  # Python compiles it here, and says what is wrong
        return spec

    def _compiles(self, spec: ModuleSpec) -> bool:
        """Let the other process compile a module that needs it; whether it is compiled now."""
        if not spec.origin or not spec.cached or Path(spec.cached).exists():
            return True
        if self._compiler is None:
            self._compiler = _start()
        asked, answers = self._compiler.stdin, self._compiler.stdout
        try:
            print(spec.origin, file=asked, flush=True)
        except OSError:
            return False
        return bool(answers and answers.readline().strip() == spec.origin)


elsewhere = CompilingElsewhere()


def _start() -> subprocess.Popen[str]:
    """The other process; it keeps what it compiled where this one looks for it."""
    folder = ["-X", f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []
    return subprocess.Popen(
        [sys.executable, "-I", "-S", *folder, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,  # Ctrl-C is for the process that began
    )


def main() -> None:
    """Compile each file that is named, and repeat its path; an empty line where it cannot be."""
    for line in sys.stdin:
        path, made = line.rstrip("\n"), None
        with suppress(OSError):
            made = py_compile.compile(path, quiet=2)
        print(path if made else "", flush=True)


if __name__ == "__main__":
    main()
