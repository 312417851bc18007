"""The code that docs/clients shows, taken from the pages themselves."""

import re
import textwrap
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs" / "clients"
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^(?:    .*)?\n)+", re.MULTILINE)


def fenced(page: str, language: str = "") -> list[str]:
    """The page's blocks in a language, or in any, in their order."""
    return [text for name, text in FENCED.findall(_text(page)) if language in {"", name}]


def indented(page: str) -> list[str]:
    """The page's blocks without a language: what a shell reads, or what it shows."""
    plain = FENCED.sub("", _text(page))
    found = (textwrap.dedent(block).strip("\n") for block in INDENTED.findall(plain))
    return [block for block in found if block]


def only(blocks: list[str], containing: str) -> str:
    """The one block that contains these words."""
    (block,) = [block for block in blocks if containing in block]
    return block


def _text(page: str) -> str:
    return (PAGES / page).read_text()
