"""Values in the files of a pack: what each may be, and what is wrong with it where it is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError, PydanticKnownError

from core.limits import MAX_SENTENCE, MAX_SUBJECT, MAX_TEXT
from core.storable import UNSTORABLE
from orgchart import catalogue
from orgchart.catalogue import Source
from orgchart.packs.source import Place
from orgchart.policy.paths import problem_of_deny, problem_of_scope
from orgchart.policy.vocabulary import (
    BOARD,
    HANDLE_FORM,
    HANDLE_MEANT,
    KINDS,
    SKILL_FORM,
    SKILL_MEANT,
)


@dataclass(frozen=True, slots=True)
class Known:
    """The names that a value of a file may refer to; `handle` is the agent whose file it is."""

    handles: frozenset[str] = frozenset()
    roles: Collection[str] = ()
    groups: Collection[str] = ()
    mail_types: Collection[str] = ()
    handle: str = ""

    def of(self, what: str) -> Collection[str] | None:
        """The names of a sort; None where any name will do."""
        others = self.handles - {self.handle}
        names: dict[str, Collection[str]] = {
            "agent": self.handles,
            "superior": others | {BOARD},
            "co-manager": others,
            "role": self.roles,
            "role or kind": {*self.roles, *KINDS},
            "group": self.groups,
            "mail type": self.mail_types,
        }
        declared = {"tool": catalogue.known() or None, "task type": catalogue.task_types() or None}
        return declared[what] if what in declared else names.get(what)


def problem(message: str, fix: str) -> PydanticCustomError:
    """What is wrong with a value, and how to correct it."""
    return PydanticCustomError("pack", "{message}", {"message": message, "fix": fix})


def refuse_each(found: Iterable[tuple[Place, PydanticCustomError]]) -> None:
    """Raise every problem at its place, counted from the value that is validated."""
    if errors := [InitErrorDetails(type=error, loc=at, input=None) for at, error in found]:
        raise ValidationError.from_exception_data("pack", errors)


def suggest(word: str, known: Collection[str]) -> str:
    """How to correct a name that is not among those known."""
    close = get_close_matches(word, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    if not known:
        return "there is none yet"
    names = sorted(known)
    return f"there are {', '.join(names[:20])}{', …' if len(names) > 20 else ''}"


def problem_of_name(value: str, what: str) -> PydanticCustomError | None:
    """Why a new name is none; None where it is one."""
    if value == BOARD:
        return problem(f"`{BOARD}` names the humans, not the {what}", "choose another name")
    if not re.match(HANDLE_FORM, value):
        return problem(f"the {what} {value!r} is no name", HANDLE_MEANT)
    return None


def skill_name(value: str) -> str:
    """A name of a skill."""
    _require_filled(value)
    if not re.match(SKILL_FORM, value):
        raise problem(f"the skill {value!r} is no name", SKILL_MEANT)
    return value


def name_of(what: str, known_as: str = "") -> AfterValidator:
    """A name; with `known_as`, of something that there is."""

    def check(value: str, info: ValidationInfo[Known]) -> str:
        _require_filled(value)
        known = info.context.of(known_as)
        wrong = problem_of_name(value, what) if known is None else None
        if known is not None and value not in known:
            wrong = problem(f"there is no {what} {value!r}", suggest(value, known))
        if wrong:
            raise wrong
        return value

    return AfterValidator(check)


def reference(what: str) -> AfterValidator:
    """The name of something of this sort that there is."""
    return name_of(what, what)


def _require_filled(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("blank", "blank")
    return value


def _require_storable(value: str) -> str:
    if UNSTORABLE.search(value):
        raise PydanticCustomError("unstorable", "unstorable")
    return value


def _require_distinct(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """A list as a tuple; no item twice."""
    if not isinstance(value, list):
        raise PydanticKnownError("list_type")
    found = validate(tuple(value))
    first = {item: at for at, item in reversed([*enumerate(found)])}
    refuse_each(
        ((at,), PydanticCustomError("twice", "twice", {"item": item}))
        for at, item in enumerate(found)
        if first[item] < at
    )
    return found


def _bindable_tool(value: str) -> str:
    known = catalogue.known()
    entry = known.get(value)
    if known and entry is None:
        raise problem(f"there is no tool {value}", suggest(value, catalogue.bindable()))
    if entry and entry.source is not Source.ROLE:
        raise problem(f"{value} comes by itself ({entry.source})", "take it out")
    return value


def _deniable_tool(value: str) -> str:
    entry = catalogue.known().get(value)
    if entry and entry.source is Source.BUILTIN:
        raise problem(f"{value} is built in and cannot be denied or restricted", "take it out")
    return value


def _path(problem_of: Callable[[str], str]) -> AfterValidator:
    def check(value: str) -> str:
        if wrong := problem_of(value):
            fix = "write it relative to the company tree; '/' ends a folder"
            raise problem(f"the path {value!r} is none: {wrong}", fix)
        return value

    return AfterValidator(check)


Text = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_require_storable)]
ShortText = Annotated[Text, Field(max_length=MAX_SUBJECT)]
Title = Annotated[ShortText, AfterValidator(_require_filled)]
Sentence = Annotated[Text, Field(max_length=MAX_SENTENCE), AfterValidator(_require_filled)]
Distinct = WrapValidator(_require_distinct)
RoleName = Annotated[str, reference("role")]
SenderName = Annotated[str, reference("role or kind")]
AgentName = Annotated[str, reference("agent")]
MailTypeName = Annotated[str, reference("mail type")]
TaskType = Annotated[str, reference("task type")]
Tool = Annotated[str, reference("tool")]
BoundTool = Annotated[str, name_of("tool"), AfterValidator(_bindable_tool)]
DeniedTool = Annotated[Tool, AfterValidator(_deniable_tool)]
Scope = Annotated[Title, _path(problem_of_scope)]
Denial = Annotated[Title, _path(problem_of_deny)]


class Form(BaseModel):
    """A mapping in a file of a pack."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
