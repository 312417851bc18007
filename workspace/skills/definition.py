"""SKILL.md, validated: what is text in it and what is a command; pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workspace.skills.allowed_tools import read_allowed
from workspace.skills.frontmatter import BadSkill, read_fields, split, warn_of_fields

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
ARGUMENTS = "$ARGUMENTS"
INTO_SHELL = re.compile(r"\$\{?ARGUMENTS")
COMMAND = re.compile(r"!(?![\s\[!])(.+)")
"""A line that begins with `!`; `![` begins a picture in Markdown."""
INLINE = re.compile(r"(?<![\\`!\w])!`([^`\n]+)`")
"""A command within a line of text, as `` !`git status` ``."""
NOT_REPLACED = re.compile(r"\$ARGUMENTS\[\d+\]|\$\{CLAUDE_\w+\}|(?<![\\\w])\$\d\b")

MAX_COMMANDS = 8
MAX_COMMAND = 1000
MAX_DESCRIPTION = 1024


@dataclass(frozen=True, slots=True)
class Text:
    """Words for the reader; only here is `$ARGUMENTS` replaced."""

    line: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command whose output is inserted in its place."""

    line: str


Part = Text | Command


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A valid skill. `warnings` name what its file says that has no effect here."""

    name: str
    description: str
    allowed_tools: tuple[str, ...]
    people_only: bool
    agents_only: bool
    lines: tuple[tuple[Part, ...], ...]
    warnings: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of all lines, in order."""
        return tuple(part for line in self.lines for part in line)

    @property
    def commands(self) -> tuple[str, ...]:
        """What it would run, in order."""
        return tuple(part.line for part in self.parts if isinstance(part, Command))


def parse(data: bytes, folder: str) -> Definition:
    """The skill that a file in this folder defines (Spec: skills 2, skills 16). Raises BadSkill."""
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as problem:
        raise BadSkill("it is not UTF-8") from problem
    _require_visible(text)
    head, body = split(text)
    fields = read_fields(head)
    tools, unmatched = read_allowed(fields.get("allowed_tools", []))
    found = Definition(
        name=_name(fields.get("name", folder), folder),
        description=_description(fields, body),
        allowed_tools=tools,
        people_only=_flag(fields, "disable_model_invocation", default=False),
        agents_only=not _flag(fields, "user_invocable", default=True),
        lines=tuple(_line(line) for line in body.strip("\n").split("\n")),
        warnings=(*warn_of_fields(fields), *unmatched, *_unreplaced(body)),
    )
    if len(found.commands) > MAX_COMMANDS:
        raise BadSkill(f"it has more than {MAX_COMMANDS} commands")
    if found.people_only and found.agents_only:
        raise BadSkill("neither agents nor people may start it")
    return found


def _require_visible(text: str) -> None:
    """What a person approves is what a person saw: no hidden characters."""
    for char in text:
        hidden = unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        if hidden and char not in "\n\t":
            raise BadSkill(f"it holds the hidden character U+{ord(char):04X}")


def _name(name: Any, folder: str) -> str:
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise BadSkill("name must have lower-case letters, digits, '-' and '_', 64 at most")
    if name != folder:
        raise BadSkill(f"name is {name!r}, its folder is {folder!r}")
    return name


def _description(fields: Mapping[str, Any], body: str) -> str:
    """The description; where the field is left out, the first line of the body that has words."""
    if "description" not in fields:
        words = (line.strip("# \t") for line in body.split("\n"))
        return next((line for line in words if line), "No description.")[:MAX_DESCRIPTION]
    value = fields["description"]
    if not isinstance(value, str) or not 0 < len(value.strip()) <= MAX_DESCRIPTION:
        raise BadSkill(f"description must be a text of 1 to {MAX_DESCRIPTION} characters")
    return value.strip()


def _flag(fields: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = fields.get(name, default)
    if not isinstance(value, bool):
        raise BadSkill(f"{name} must be true or false")
    return value


def _unreplaced(body: str) -> list[str]:
    found = sorted({match.group() for match in NOT_REPLACED.finditer(body)})
    return [f"{each[:64]} is not replaced here: only {ARGUMENTS} is, whole" for each in found]


def _line(line: str) -> tuple[Part, ...]:
    """A line that begins with `!` is one command; another may have commands within it."""
    whole = COMMAND.fullmatch(line)
    inline = list(INLINE.finditer(line))
    if whole is not None and not _goes_on(line, inline):
        command = whole.group(1).strip()
        if len(command) > 2 and command[0] == command[-1] == "`" and "`" not in command[1:-1]:
            command = command[1:-1]
        return (_command(command),)
    parts: list[Part] = []
    at = 0
    for match in inline:
        if match.start() > at:
            parts.append(Text(line[at : match.start()]))
        parts.append(_command(match.group(1)))
        at = match.end()
    if at < len(line) or not parts:
        parts.append(Text(line[at:]))
    return tuple(parts)


def _goes_on(line: str, inline: list[re.Match[str]]) -> bool:
    """Whether the line begins with an inline command, and text follows."""
    return bool(inline) and inline[0].start() == 0 and inline[0].end() < len(line.rstrip())


def _command(command: str) -> Command:
    command = command.strip()
    if not 0 < len(command) <= MAX_COMMAND:
        raise BadSkill(f"a command has 1 to {MAX_COMMAND} characters")
    if INTO_SHELL.search(command):
        raise BadSkill("a command line names $ARGUMENTS: arguments are never part of a shell line")
    return Command(command)
