"""What `org check` says of the skills that agents list (Spec: skills 6)."""

from __future__ import annotations

from orgchart import catalogue
from workspace.skills import folders


def doubts_about(skill: str) -> list[tuple[str, str]]:
    """What keeps a skill from its work, each with a way to correct it; empty where it is fine."""
    found = folders.read(skill)
    if found is None:
        fix = f"add {skill}/{folders.FILE} to a skill folder, or take the skill out"
        return [(f"the skill {skill} is not installed", fix)]
    if found.definition is None:
        return [(f"the skill {skill} cannot be used: {found.problem}", f"correct {found.path}")]
    fix = f"correct {found.path}"
    return [
        *(
            (f"the skill {skill} allows {tool}, and there is no such tool", fix)
            for tool in found.definition.allowed_tools
            if tool not in catalogue.known()
        ),
        *((f"the skill {skill}: {warning}", fix) for warning in found.definition.warnings),
    ]
