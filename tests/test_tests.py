"""Tests share helpers (`world.py`, `company.py`, …), never each other's modules.

A refusal is awaited by its code: another rule that refuses would hide that this one no longer does.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
OF_A_TEST = re.compile(
    r"^\s*(?:from|import) (?:tests|proofs)\.(?:\w+\.)*(?:test_\w+|conftest)\b", re.MULTILINE
)


def test_no_test_module_is_imported_by_another():
    found = {
        str(path.relative_to(ROOT))
        for folder in ("tests", "proofs")
        for path in (ROOT / folder).rglob("*.py")
        if OF_A_TEST.search(path.read_text("utf-8"))
    }
    fixtures = {f"proofs/{part}conftest.py" for part in ("", "admin/", "browser/")}
    assert found - fixtures == set()


def test_no_test_takes_any_refusal_for_the_one_it_awaits():
    found = {
        str(path.relative_to(ROOT))
        for folder in ("tests", "proofs")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"raises\(Denied\)(?! as )", path.read_text("utf-8"))
    }
    assert found == set()
