"""Modules that another process compiles (`nexus_site/run/compiling.py`)."""

import os
import subprocess
import sys

import pytest

from nexus_site.run.command import REPOSITORY

BEGIN = """
import os, sys
sys.path.insert(0, sys.argv[1])
from nexus_site.run.compiling import elsewhere
import importlib._bootstrap_external as loading
here = []
own = loading.SourceLoader.source_to_code
def source_to_code(self, data, path, **options):
    here.append(os.path.basename(path))
    return own(self, data, path, **options)
loading.SourceLoader.source_to_code = source_to_code
elsewhere.begin()
"""


@pytest.fixture
def imports(tmp_path):
    """Run these lines in a process whose modules never were compiled; what it said."""
    modules, compiled = tmp_path / "modules", tmp_path / "compiled"
    modules.mkdir()
    for name in "abc":
        (modules / f"{name}_module.py").write_text(f"NAME = {name!r}\n")
    (modules / "wrong_module.py").write_text("this is no Python\n")

    def run(lines: str, *options: str) -> str:
        done = subprocess.run(
            [sys.executable, *options, "-c", BEGIN + lines, str(modules)],
            cwd=REPOSITORY,
            env=os.environ | {"PYTHONPYCACHEPREFIX": str(compiled), "PYTHONDONTWRITEBYTECODE": ""},
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert not done.returncode, done.stderr
        return done.stdout.strip()

    return run


class TestCompilingElsewhere:
    def test_leaves_nothing_to_compile_here(self, imports):
        assert imports("import a_module, b_module; print(a_module.NAME, b_module.NAME, here)") == (
            "a b []"
        )

    def test_starts_no_process_for_what_is_compiled(self, imports):
        imports("import a_module")
        assert imports("import a_module; print(elsewhere._compiler, here)") == "None []"

    def test_ends_with_its_process(self, imports):
        lines = "import a_module; other = elsewhere._compiler; elsewhere.end(); import b_module;"
        assert imports(f"{lines} print(other.returncode, here)") == "-9 ['b_module.py']"

    def test_is_for_no_forked_process(self, imports):
        forked = (
            "import a_module\nif os.fork() == 0:\n  import b_module; print(here)\nelse: os.wait()"
        )
        assert imports(forked) == "['b_module.py']"

    def test_leaves_the_error_of_a_wrong_module_as_it_is(self, imports):
        lines = """
try: import wrong_module
except SyntaxError as error: print(error.filename.endswith("wrong_module.py"))
import a_module; print(here)
"""
        assert imports(lines).split("\n") == ["True", "['wrong_module.py', 'a_module.py']"]

    def test_goes_on_here_where_the_other_process_ended(self, imports):
        lines = "import a_module; elsewhere._compiler.kill(); elsewhere._compiler.wait();"
        assert imports(f"{lines} import b_module; print(b_module.NAME, here)") == (
            "b ['b_module.py']"
        )

    def test_compiles_nothing_where_nothing_is_kept(self, imports):
        assert imports("import a_module; print(elsewhere._compiler, here)", "-B") == (
            "None ['a_module.py']"
        )
