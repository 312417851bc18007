"""`allowed-tools` as people write it: the tools of NEXUS that it names, and warnings; pure.

A skill written for Claude Code names that program's tools. Some have a counterpart here; a pattern
such as `Bash(git add:*)` narrows a tool in a way that no tool here can keep, so it allows nothing.
"""

from __future__ import annotations

import re
from typing import Any

from workspace.skills.frontmatter import BadSkill

MOST = 100
ONE_ENTRY = r"([A-Za-z_*][A-Za-z0-9_.*-]{0,99})(\((?:[^()\n]|\([^()\n]*\))*\))?"
ENTRY = re.compile(rf"\s*{ONE_ENTRY}\s*(?:,|(?<=[\s)])|$)")
"""One entry of a text: a name, perhaps a pattern; ended by a comma, a space or the end."""
ONE = re.compile(ONE_ENTRY)
COUNTERPARTS = {
    "Read": "read_file",
    "Write": "write_file",
    "Edit": "write_file",
    "WebSearch": "web_search",
    "WebFetch": "read_url",
}
OVER_MCP = "mcp__nexus__"


def read_allowed(value: Any) -> tuple[tuple[str, ...], list[str]]:
    """The tools that a skill allows, and a warning for each entry that allows none.

    `value` is a list of entries, or a text of entries between commas or spaces; an empty field is
    an empty list. Raises BadSkill.
    """
    entries = (
        _of_text(value) if isinstance(value, str) else _of_list([] if value is None else value)
    )
    if len(entries) > MOST:
        raise BadSkill(f"allowed_tools names more than {MOST} tools")
    tools: dict[str, None] = {}
    warnings = []
    for name, pattern in entries:
        here = COUNTERPARTS.get(name, name.removeprefix(OVER_MCP))
        if pattern and pattern != "()":
            warnings.append(
                f"allowed_tools: {name}{pattern} allows nothing here: patterns cannot be kept"
            )
        elif "*" in name:
            warnings.append(f"allowed_tools: {name} allows nothing here: name each tool")
        elif here == "Bash":
            warnings.append("allowed_tools: Bash allows nothing here: there is no shell tool")
        else:
            tools[here] = None
    return tuple(tools), warnings


def _of_text(value: str) -> list[tuple[str, str]]:
    found, at = [], 0
    text = value.strip()
    while at < len(text):
        match = ENTRY.match(text, at)
        if match is None or match.end() == at:
            raise BadSkill(f"allowed_tools holds something that is no tool name: {text[at:][:64]}")
        found.append((match.group(1), match.group(2) or ""))
        at = match.end()
    return found


def _of_list(value: Any) -> list[tuple[str, str]]:
    if not isinstance(value, list):
        raise BadSkill("allowed_tools must be a list or a text of tool names")
    matches = [ONE.fullmatch(entry) if isinstance(entry, str) else None for entry in value]
    if not all(matches):
        raise BadSkill("allowed_tools holds something that is no tool name")
    return [(match.group(1), match.group(2) or "") for match in matches if match]
