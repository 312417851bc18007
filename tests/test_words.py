"""The product and its pages use plain, current words (CONTRIBUTING, words)."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
QUAINT = re.compile(
    r"\b(?:whom|whoever|heed(?:ed|s)?|beside|nobody|that one|no desk|stands(?! (?:in )?for))\b",
    re.IGNORECASE,
)
PARTS = [
    *["core", "ledger", "orgchart", "toolbox", "documents", "mailroom", "contracts", "tasks"],
    *["workspace", "governance", "nexus_site", "lab", "templates", "packs", "docs"],
    *["README.md", "CONTRIBUTING.md", "Makefile", "Dockerfile"],
    *["deploy", "pyproject.toml", "requirements.in"],
]
READ = {"", ".css", ".html", ".in", ".js", ".md", ".py", ".sh", ".toml", ".yaml", ".yml"}
"""The endings of names of files that people read."""


def quaint(part: str) -> list[str]:
    """Each line of a part's files that holds such a word."""
    listed = ["git", "ls-files", "--", part]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [
        f"{name}:{number}: {line.strip()}"
        for name in sorted(set(names.splitlines()))
        if "/migrations/" not in name and Path(name).suffix in READ
        for number, line in enumerate((ROOT / name).read_text("utf-8").splitlines(), start=1)
        if QUAINT.search(line)
    ]


@pytest.mark.parametrize("part", PARTS)
def test_uses_plain_words(part):
    assert quaint(part) == []
