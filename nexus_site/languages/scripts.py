"""The texts of the browser's scripts: a page in another language carries their translations."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from django.utils.translation import gettext

CALL = re.compile(r'\bnexusText\(\s*("(?:[^"\\]|\\.)*")')
FOLDER = Path(__file__).parents[1] / "static" / "nexus"


@cache
def script_texts() -> frozenset[str]:
    """The English texts that the scripts ask `nexusText` for."""
    files = sorted(FOLDER.glob("*.js"))
    return frozenset(
        json.loads(words) for file in files for words in CALL.findall(file.read_text())
    )


def translated_texts() -> dict[str, str]:
    """Those that read otherwise in the language of the page; none in English."""
    found = {text: gettext(text) for text in sorted(script_texts())}
    return {text: said for text, said in found.items() if said != text}
