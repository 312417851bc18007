"""The first word of a function's name says what it answers (CONTRIBUTING, rules of the house)."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ANSWERS = {
    "can": r".*\b(Allow|\w*Decision|Deny)\b.*",
    "may": r"bool",
    "has": r"bool|tuple\[bool, str\]",
    "is": r"bool|tuple\[bool, (str|float)\]|Exists",
}
"""By a name's first word, the types that it answers; a condition of a query is a boolean, too."""
NOT_PRODUCT = re.compile(r"^(tests|proofs|docs)/|/migrations/")


def misnamed(source):
    """The functions of a module whose annotation is not what the name says."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
            word, more, _ = node.name.lstrip("_").partition("_")
            answers = ANSWERS.get(word, ".*") if more else ".*"
            if not re.fullmatch(answers, ast.unparse(node.returns)):
                yield node.name


def test_is_kept_by_every_function():
    listed = ["git", "ls-files", "--", "*.py"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    product = [name for name in names.splitlines() if not NOT_PRODUCT.search(name)]
    found = {name: list(misnamed((ROOT / name).read_text("utf-8"))) for name in product}
    assert len(product) > 500
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
