"""SKILL.md: front matter and body, validated; what is text in it and what is a command; pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
TOOL = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
ARGUMENTS = "$ARGUMENTS"
INTO_SHELL = re.compile(r"\$\{?ARGUMENTS")
COMMAND = re.compile(r"!(?![\s\[!])(.+)")
"""A line that begins with `!`; `![` begins a picture in Markdown."""

MAX_COMMANDS = 8
MAX_COMMAND = 1000
HARMLESS = frozenset({"license", "version", "metadata", "author", "argument_hint", "compatibility"})


class BadSkill(Exception):
    """Why a SKILL.md is none."""


@dataclass(frozen=True, slots=True)
class Text:
    """A line for the reader; only here is `$ARGUMENTS` replaced."""

    line: str


@dataclass(frozen=True, slots=True)
class Command:
    """A line whose output is inserted in its place."""

    line: str


Part = Text | Command


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A valid skill."""

    name: str
    description: str
    allowed_tools: tuple[str, ...]
    people_only: bool
    parts: tuple[Part, ...]

    @property
    def commands(self) -> tuple[str, ...]:
        """What it would run, in order."""
        return tuple(part.line for part in self.parts if isinstance(part, Command))


class _Loader(yaml.SafeLoader):
    """YAML in which no key is given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002
        """The mapping; raises BadSkill for a doubled key."""
        keys = [str(key.value) for key, _ in node.value]
        if len(set(keys)) != len(keys):
            raise BadSkill("the front matter gives a key twice")
        return super().construct_mapping(node, deep)


def parse(data: bytes, folder: str) -> Definition:
    """The skill that a file in this folder defines (Spec: skills 2). Raises BadSkill."""
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as problem:
        raise BadSkill("it is not UTF-8") from problem
    _require_visible(text)
    head, body = _parted(text)
    fields = _fields(head)
    name = fields.get("name")
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise BadSkill("name must have lower-case letters, digits, '-' and '_', 64 at most")
    if name != folder:
        raise BadSkill(f"name is {name!r}, its folder is {folder!r}")
    parts = tuple(_part(line) for line in body.strip("\n").split("\n"))
    found = Definition(
        name=name,
        description=_description(fields.get("description")),
        allowed_tools=_tools(fields.get("allowed_tools", [])),
        people_only=_flag(fields.get("disable_model_invocation", False)),
        parts=parts,
    )
    if len(found.commands) > MAX_COMMANDS:
        raise BadSkill(f"it has more than {MAX_COMMANDS} command lines")
    return found


def _require_visible(text: str) -> None:
    """What a person approves is what a person saw: no hidden characters."""
    for char in text:
        hidden = unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        if hidden and char not in "\n\t":
            raise BadSkill(f"it holds the hidden character U+{ord(char):04X}")


def _parted(text: str) -> tuple[str, str]:
    first, _, rest = text.partition("\n")
    lines = rest.split("\n")
    if first.rstrip() != "---" or "---" not in (marks := [line.rstrip() for line in lines]):
        raise BadSkill("it must begin with front matter between two lines of ---")
    end = marks.index("---")
    return "\n".join(lines[:end]), "\n".join(lines[end + 1 :])


def _fields(head: str) -> Mapping[str, Any]:
    try:
        found = yaml.load(head, Loader=_Loader)  # noqa: S506  a SafeLoader of ours
    except (yaml.YAMLError, RecursionError, ValueError) as problem:
        raise BadSkill(f"its front matter is no YAML: {str(problem)[:200]}") from problem
    if not isinstance(found, dict):
        raise BadSkill("its front matter must be names and values")
    fields: dict[str, Any] = {}
    for key, value in found.items():
        name = str(key).replace("-", "_")
        if name in fields:
            raise BadSkill(f"{name} is given twice")
        fields[name] = value
    known = {"name", "description", "allowed_tools", "disable_model_invocation"} | HARMLESS
    unknown = sorted(set(fields) - known)
    if unknown:
        raise BadSkill(f"unknown in its front matter: {', '.join(unknown)[:200]}")
    return fields


def _description(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value.strip()) <= 1024:
        raise BadSkill("description must be a text of 1 to 1024 characters")
    return value.strip()


def _tools(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > 100:
        raise BadSkill("allowed_tools must be a list of tool names")
    if not all(isinstance(name, str) and TOOL.fullmatch(name) for name in value):
        raise BadSkill("allowed_tools holds something that is no tool name")
    return tuple(dict.fromkeys(value))


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadSkill("disable_model_invocation must be true or false")
    return value


def _part(line: str) -> Part:
    found = COMMAND.fullmatch(line)
    if found is None:
        return Text(line)
    command = found.group(1).strip()
    if len(command) > 2 and command[0] == command[-1] == "`" and "`" not in command[1:-1]:
        command = command[1:-1].strip()
    if not command or len(command) > MAX_COMMAND:
        raise BadSkill(f"a command has 1 to {MAX_COMMAND} characters")
    if INTO_SHELL.search(command):
        raise BadSkill("a command line names $ARGUMENTS: arguments are never part of a shell line")
    return Command(command)
