"""Reading what a role may do with tasks: a mapping, or the seed's list (seed 001 §10.1)."""

from __future__ import annotations

from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode

from orgchart import catalogue
from orgchart.packs.fields import BOOL, TEXT, Section, kind_of, line_of
from orgchart.policy.vocabulary import Permission

KEY = "permissions"
EVERY_TYPE = "*"


def read_permissions(role: Section) -> dict[str, Any]:
    """A role's permissions as the one mapping that is stored; {} where it lists none.

    `claim_task_type` becomes a list of types, or true for every type; the others true or false.
    """
    given = _mapping_of_list(role) if role.is_list(KEY) else role.section(KEY)
    if given is None:
        return {}
    given.allow(*Permission)
    return {
        str(name): _claims(given) if name is Permission.CLAIM_TASK_TYPE else given.flag(name)
        for name in Permission
        if name in given
    }


def _mapping_of_list(role: Section) -> Section:
    """The seed's list as the mapping it means: a bare name is `name: true`."""
    pairs: list[tuple[Node, Node]] = []
    for node in role.nodes(KEY):
        if isinstance(node, MappingNode) and node.value:
            pairs += node.value
        elif isinstance(node, ScalarNode) and node.tag == TEXT:
            pairs.append((node, ScalarNode(BOOL, "true", node.start_mark, node.end_mark)))
        else:
            role.note(
                line_of(node),
                f"each of {KEY} must be a name or `name: value`, this is "
                + ("empty" if isinstance(node, MappingNode) else kind_of(node)),
                f"write one of {', '.join(Permission)}, or take it out",
            )
    return role.of_pairs(KEY, pairs)


def _claims(given: Section) -> bool | list[str]:
    key = Permission.CLAIM_TASK_TYPE
    known = catalogue.task_types() or None
    what = "task type"
    if given.is_list(key):
        return list(given.names(key, known=known, what=what))
    if given.is_flag(key):
        return given.flag(key) or []
    if not given.is_text(key):
        given.note(
            given.line_of(key),
            f"{key} must be a list of task types, this is {given.kind(key)}",
            "write [a, b], or true for every type",
        )
        return []
    if given.text(key) == EVERY_TYPE:
        return True
    name = given.name(key, known=known, what=what)
    return [name] if name else []
