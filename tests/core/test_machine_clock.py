"""The time of the machine: asked for only where the database's would be wrong (Spec: clocks 3)."""

import ast
import tomllib
from pathlib import Path

from tests.sources import parsed

ROOT = Path(__file__).resolve().parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
ROOMS = set(CONFIG["root_packages"]) - {"lab", "tests", "proofs"}
READS = {"timezone.now", "datetime.now", "date.today", "time.time"}
READERS = {
    "governance/cases/actions.py": "one-time codes change with the clock that checks them",
    "governance/interventions/pages.py": "as above",
    "nexus_site/console/login.py": "as above",
    "mailroom/outgoing/webhook.py": "a signature, and a header of HTTP, have the time of who sends",
    "toolbox/caller.py": "said of the database by the statement that reads a key; else not asked",
    "workspace/git/bare_repository.py": "compared with the times of files",
    "workspace/git/importing.py": "as above",
}


def names_in(path):
    """The dotted names that a module uses."""
    tree = parsed(path.read_text())
    return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_is_read_only_where_it_has_to_be():
    modules = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    readers = {str(path.relative_to(ROOT)) for path in modules if names_in(path) & READS}
    assert readers == READERS.keys()
