"""No text of a stranger makes a regular expression of the product work long.

Steps are counted, not timed: a pattern that tries every way there is takes more steps for each
character, the longer the text is. Patterns of pydantic run in linear time by themselves.
"""

import ast
import importlib
import re
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.backtracking import Counter, TooManySteps, hostile_texts
from tests.sources import parsed

HERE = Path(__file__).parent.parent
ROOMS = [
    "core",
    "ledger",
    "orgchart",
    "toolbox",
    "documents",
    "mailroom",
    "contracts",
    "tasks",
    "workspace",
    "governance",
    "nexus_site",
]
WHOLE = {"match", "fullmatch"}
USES = {*WHOLE, "search", "sub", "subn", "findall", "finditer", "split"}
SIZE = 120
STEPS = 40  # for each character: a quadratic pattern takes half as many as there are characters

BOUNDED = {
    ("ledger.admin.events", "LONG_ID"): "an event's subject has 255 characters at most",
    ("toolbox.faces.docs.fields", "RULE"): "our own descriptions of fields",
    ("nexus_site.run.env", "search"): "our own lock file",
    ("nexus_site.languages.messages", "CALL"): "our own sources",
    ("nexus_site.languages.messages", "findall"): "our own sources",
    ("nexus_site.languages.sentences", "WORDS"): "our own sources",
    ("nexus_site.languages.sentences", "SEVERAL"): "our own sources",
    ("documents.memory.query", "TERM"): "the query of memory_search has 500 characters at most",
}
"""Patterns that are not linear, and why their text is short."""


def sources():
    for room in ROOMS:
        for path in sorted((HERE / room).rglob("*.py")):
            text = path.read_text("utf-8")
            if "migrations" not in path.parts and re.search(r"^import re$", text, re.MULTILINE):
                yield ".".join(path.relative_to(HERE).with_suffix("").parts), parsed(text)


def calls_of_re(tree):
    """The calls of `re`'s functions, and the names that their results are given."""
    names = {
        id(node.value): node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        function = getattr(node, "func", None)
        if not isinstance(function, ast.Attribute) or getattr(function.value, "id", "") != "re":
            continue
        if function.attr in {"compile", *USES}:
            yield node, names.get(id(node), function.attr)


@cache
def uses():
    """How each named pattern is used, wherever it is imported."""
    found = {}
    for room in ROOMS:
        for path in (HERE / room).rglob("*.py"):
            for name, use in re.findall(r"\b([A-Z_]+)\.(\w+)\(", path.read_text("utf-8")):
                found.setdefault(name, set()).add(use)
    return found


def patterns():
    """Every pattern of text: its module, name, and the ways it is used."""
    for module, tree in sources():
        for node, name in calls_of_re(tree):
            given = node.args[: 2 if node.func.attr == "compile" else 1]
            scope = vars(importlib.import_module(module))
            pattern = re.compile(*(eval(ast.unparse(each), dict(scope)) for each in given))
            used = uses().get(name, set()) & USES if name.isupper() else {node.func.attr}
            if isinstance(pattern.pattern, str):
                yield module, name, pattern, used or USES


@pytest.fixture(autouse=True, scope="module")
def deep_recursion():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)  # each step of the counting is a call
    yield
    sys.setrecursionlimit(before)


def is_linear(pattern, used, size=SIZE):
    ways = {use if use in WHOLE else "search" for use in used}
    try:
        for text in hostile_texts(pattern, size):
            for way in ways:
                getattr(Counter(pattern, text, STEPS * len(text)), way)()
    except TooManySteps:
        return False
    return True


def test_no_pattern_takes_more_steps_for_each_character_of_a_longer_text():
    slow = [
        f"{module}.{name}"
        for module, name, pattern, used in patterns()
        if (module, name) not in BOUNDED and not is_linear(pattern, used)
    ]
    assert slow == []


@pytest.mark.parametrize(
    "slow",
    [
        r"(a+)+$",
        r"(a|a)*$",
        r"a*a*b",
        r"\s+$",
        r"(?:-\s*)*x",
        r"a.*b.*c",
        r"(\w+\s?)*!",
        r"^(.*,)*x",
        r"(?m)^\s*#",
    ],
)
def test_slow_patterns_are_found(slow):
    assert not is_linear(re.compile(slow), {"search"})


@pytest.mark.parametrize("quick", [r"a+", r"\Aa*\Z", r'"[^"]*+"', r"x[a-z]{0,9}y", r"[^,]*,"])
def test_quick_patterns_are_not(quick):
    assert is_linear(re.compile(quick), {"match", "fullmatch"})
