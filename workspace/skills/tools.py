"""What agents can do with skills (Spec: skills 15)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from core.params import Params
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, REGISTRY, tool
from toolbox.rules import Holder
from workspace.results import StartedSkill
from workspace.skills import services
from workspace.skills.preparing import usable


class UseSkill(Params):
    """A skill and what to do with it."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")] = Field(
        description="one of your skills"
    )
    args: Annotated[str, StringConstraints(max_length=10_000)] = Field(
        "", description="put in the place of $ARGUMENTS, as text"
    )


def _explained(caller: Caller, params: UseSkill, now: datetime) -> StartedSkill:
    return services.use_skill(
        caller=caller, name=params.name, arguments=params.args, now=now, explained=True
    )


NONE = "you have no skill"


def _why_unusable(holder: Holder) -> str:
    """An agent's list may also hold tools, which it calls by their own names."""
    return "" if any(not REGISTRY.get(name) for name in holder.agent.skills) else NONE


def _prompted(caller: Caller) -> str:
    names = usable(caller=caller)
    return f"Your skills: {', '.join(names)}" if names else ""


@tool(
    "use_skill",
    source=Source.BUILTIN,
    group=ToolGroup.DELEGATION,
    modes=ANY_MODE,
    acts_outside=True,
    dry_run=_explained,
    prompt_line=_prompted,
    unusable=_why_unusable,
)
def use_skill(caller: Caller, params: UseSkill, now: datetime) -> StartedSkill:
    """Start one of your skills: you go on inside its frame, by its prompt and with its tools only,
    until you return_result.
    """
    return services.use_skill(caller=caller, name=params.name, arguments=params.args, now=now)
