"""Names say one thing: a function's first word what it answers, a class's name one class."""

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.sources import parsed

ROOT = Path(__file__).parents[2]
ANSWERS = {
    "can": r".*\b(Allow|\w*Decision|Deny)\b.*",
    "may": r"bool",
    "has": r"bool|tuple\[bool, str\]",
    "is": r"bool|tuple\[bool, (str|float)\]|Exists",
}
"""By a name's first word, the types that it answers; a condition of a query is a boolean, too."""
TWICE = {
    *("Agent", "Role", "Group", "ContactRule", "MailTypeRule", "Event", "Seal"),
    "Artifact",
}
"""Classes of the glossary: a value and the table that keeps it, and one name of two tables."""
NOT_PRODUCT = re.compile(r"^(tests|proofs|docs)/|/migrations/")


def misnamed(source):
    """The functions of a module whose annotation is not what the name says."""
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
            word, more, _ = node.name.lstrip("_").partition("_")
            answers = ANSWERS.get(word, ".*") if more else ".*"
            if not re.fullmatch(answers, ast.unparse(node.returns)):
                yield node.name


@pytest.fixture(scope="module")
def product():
    """The source of every module of the product, by its path."""
    listed = ["git", "ls-files", "--", "*.py"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    ours = [name for name in names.splitlines() if not NOT_PRODUCT.search(name)]
    assert len(ours) > 500
    return {name: (ROOT / name).read_text("utf-8") for name in ours}


def test_no_class_shares_its_name_but_those_of_the_glossary(product):
    found = Counter(
        node.name
        for path, source in product.items()
        if not path.startswith("lab/") and "/commands/" not in path
        for node in parsed(source).body
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in found.items() if count > 1} == TWICE


def test_every_function_is_what_its_first_word_says(product):
    found = {name: list(misnamed(source)) for name, source in product.items()}
    assert {name: functions for name, functions in found.items() if functions} == {}


@pytest.mark.parametrize(
    "source",
    [
        "def can_read(agent) -> bool: ...",
        "def is_denied(path) -> str: ...",
        "def has_role(agent) -> Decision: ...",
        "async def _may_read(agent) -> None: ...",
    ],
)
def test_otherwise_is_found(source):
    assert list(misnamed(source))
