"""The front matter of a SKILL.md: its fields, and what in it is not used here; pure."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping
from typing import Any

import yaml

USED = ("name", "description", "allowed_tools", "disable_model_invocation", "user_invocable")
HARMLESS = frozenset(
    {"license", "version", "metadata", "author", "argument_hint", "compatibility", "when_to_use"}
)
"""Fields for readers: leaving them out changes nothing that the skill may do."""
NOT_HERE = {
    "model": "the agent keeps the model that it runs on",
    "effort": "the agent keeps the model that it runs on",
    "context": "every skill runs in a frame of its own",
    "agent": "the agent that starts the skill runs it",
    "hooks": "no hook runs",
}
"""Fields of Claude Code without effect here, and what holds instead."""


class BadSkill(Exception):
    """Why a SKILL.md is none."""


class _Loader(yaml.SafeLoader):
    """YAML in which no key is given twice, and nothing stands for another place.

    Some hundred bytes of aliases could stand for more than any memory holds.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next value; raises BadSkill for an anchor, an alias or a tag.

        YAML's own readers of tagged values fail on many in other ways than they say.
        """
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise BadSkill("the front matter has anchors or aliases (& and *): write the value out")
        if getattr(event, "tag", None):
            raise BadSkill(f"its front matter is no plain YAML: it has the tag {event.tag[:64]}")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002
        """The mapping; raises BadSkill for a doubled key."""
        keys = [str(key.value) for key, _ in node.value]
        if len(set(keys)) != len(keys):
            raise BadSkill("the front matter gives a key twice")
        return super().construct_mapping(node, deep)


def split(text: str) -> tuple[str, str]:
    """Front matter and body. Raises BadSkill."""
    first, _, rest = text.partition("\n")
    lines = rest.split("\n")
    if first.rstrip() != "---" or "---" not in (marks := [line.rstrip() for line in lines]):
        raise BadSkill("it must begin with front matter between two lines of ---")
    end = marks.index("---")
    return "\n".join(lines[:end]), "\n".join(lines[end + 1 :])


def read_fields(head: str) -> Mapping[str, Any]:
    """Every field by its name, with `_` for `-`. Raises BadSkill."""
    try:
        found = yaml.load(head, Loader=_Loader)  # noqa: S506  a SafeLoader of ours
    except (yaml.YAMLError, RecursionError, ValueError, ArithmeticError) as problem:
        raise BadSkill(f"its front matter is no YAML: {str(problem)[:200]}") from problem
    if not isinstance(found, dict):
        raise BadSkill("its front matter must be names and values")
    fields: dict[str, Any] = {}
    for key, value in found.items():
        name = str(key).replace("-", "_")
        if name in fields:
            raise BadSkill(f"{name} is given twice")
        fields[name] = value
    return fields


def warn_of_fields(fields: Mapping[str, Any]) -> list[str]:
    """What the fields say that has no effect here (Spec: skills 16).

    Raises BadSkill for a field that looks like a misspelled one: it could be meant to restrict.
    """
    said = []
    for name in sorted(fields.keys() - {*USED, *HARMLESS}):
        shown = name[:64]
        if name in NOT_HERE:
            said.append(f"{shown} is not used here: {NOT_HERE[name]}")
        elif meant := difflib.get_close_matches(name.lower(), USED, n=1, cutoff=0.8):
            raise BadSkill(f"unknown in its front matter: {shown}; is {meant[0]} meant?")
        else:
            said.append(f"{shown} is not known here and has no effect")
    return said
