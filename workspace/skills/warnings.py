"""What `org check` says of the skills that agents list (Spec: skills 6)."""

from __future__ import annotations

from django.utils.translation import gettext

from orgchart import catalogue
from workspace.skills import folders


def doubts_about(skill: str) -> list[tuple[str, str]]:
    """What keeps a skill from its work, each with a way to correct it; empty where it is fine."""
    found = folders.read(skill)
    if found is None:
        fix = gettext("add %(file)s to a skill folder, or take the skill out")
        doubt = gettext("the skill %(skill)s is not installed")
        return [(doubt % {"skill": skill}, fix % {"file": f"{skill}/{folders.FILE}"})]
    fix = gettext("correct %(file)s") % {"file": found.path}
    if found.definition is None:
        doubt = gettext("the skill %(skill)s cannot be used: %(problem)s")
        return [(doubt % {"skill": skill, "problem": found.problem}, fix)]
    not_there = gettext("the skill %(skill)s allows %(tool)s, and there is no such tool")
    return [
        *(
            (not_there % {"skill": skill, "tool": tool}, fix)
            for tool in found.definition.allowed_tools
            if tool not in catalogue.known()
        ),
        *((f"the skill {skill}: {warning}", fix) for warning in found.definition.warnings),
    ]
