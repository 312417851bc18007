"""Pure modules: no database, settings, files, network, time or chance, whatever the module's name.

A module is pure by its name (`rules`, `vocabulary`), by its package (`orgchart.policy`), or by the
word "pure" in the first sentence of its docstring. What it imports of ours is pure as well, so a
new helper of a pure module has to be marked too.
"""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.sources import parsed

ROOT = Path(__file__).resolve().parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
ROOMS = CONFIG["root_packages"]
BY_NAME = ("rules", "vocabulary")
BY_PACKAGE = "orgchart.policy."
IMPURE = frozenset(
    (
        "asyncio",
        "celery",
        "contextvars",
        "django",
        "django_fsm",
        "fcntl",
        "httpx",
        "kombu",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "prometheus_client",
        "psycopg",
        "queue",
        "random",
        "requests",
        "secrets",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "structlog",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "time",
    )
)
CALLS = re.compile(
    r"\b(?:datetime|date)\.(?:now|today|utcnow)\(|\buuid[14]\(|(?<!def )(?<![.\w])(?:open|input)\("
)
EXCEPTIONS = {
    "core.addresses": "resolves no names: `socket` only for constants of addresses",
    "core.events": "an event has a random id",
    "core.machines": "a table of transitions is declared beside the code that saves one",
    "orgchart.catalogue": "filled once, at start",
    "toolbox.registry": "filled once, at start; the type of a tool",
    "workspace.sandbox.programs": "the type of a command's outcome",
}
"""Modules that pure ones import though they are not pure, each with its reason."""


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the product, parsed, by its dotted name."""
    found = {}
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            if "migrations" not in path.parts:
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                found[name.removesuffix(".__init__")] = parsed(path.read_text())
    return found


def imports(name: str) -> set[str]:
    """The dotted names of everything a module imports, also inside functions."""
    found = set()
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            inner = whole & modules().keys()
            found |= inner | ({node.module} if len(inner) < len(node.names) else set())
    return found


def is_pure(name: str) -> bool:
    """Whether a module must be pure: by its name, its package or its docstring."""
    docstring = ast.get_docstring(modules()[name]) or ""
    return (
        name.rpartition(".")[2] in BY_NAME
        or name.startswith(BY_PACKAGE)
        or re.search(r"\bpure\b", docstring.split("\n\n")[0], re.IGNORECASE) is not None
    )


def pure_modules() -> list[str]:
    return sorted(name for name in modules() if is_pure(name))


def impurities(name: str) -> set[str]:
    """What a module does or imports that a pure one may not."""
    said = {match.group() for match in CALLS.finditer(ast.unparse(modules()[name]))}
    for each in imports(name):
        if each.partition(".")[0] in ROOMS:
            if not is_pure(each) and each not in EXCEPTIONS:
                said.add(each)
        elif each.partition(".")[0] in IMPURE:
            said.add(each)
    return said


def test_pure_modules_import_and_call_only_what_is_pure():
    """One test for all: modules are parsed where it runs, not wherever tests are collected."""
    found = {name: impurities(name) for name in pure_modules()}
    assert {name: said for name, said in found.items() if said} == {}


def test_every_room_with_rules_is_among_them():
    found = pure_modules()
    assert {"contracts.rules", "mailroom.rules", "tasks.rules", "toolbox.rules"} <= set(found)
    assert any(name.startswith(BY_PACKAGE) for name in found)
    assert len(found) >= 35


def test_an_exception_is_still_needed():
    used = {each for name in pure_modules() for each in imports(name)}
    assert not {name for name in EXCEPTIONS if name not in used or is_pure(name)}


@pytest.mark.parametrize(
    "source",
    [
        "from django.utils import timezone",
        "import time",
        "from toolbox.models import Frame",
        "from contracts import services",
        "def f():\n    from django.conf import settings",
        "from datetime import datetime\nNOW = datetime.now()",
        "from uuid import uuid4\nID = uuid4()",
    ],
)
def test_what_is_not_pure_is_found(monkeypatch, source):
    monkeypatch.setitem(modules(), "contracts.rules", parsed(source))
    assert impurities("contracts.rules")
