"""State machines: django-fsm declares them, one statement moves a row and checks its version."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from django.apps import apps
from django.db import connection, models
from django_fsm import FSMField, transition

from core.closed_sets import choices_of
from core.database import fetch_row
from core.decision import Code, refuse
from core.limits import BIGGEST_VERSION

Method = TypeVar("Method", bound=Callable[..., None])

PLAIN = frozenset({str, int, bool, datetime, type(None)})
"""Types whose values every column but JSON stores as they are; to ask its field takes longer."""
MARK = "nexus_machine"
"""The attribute of a state field that holds its machine."""


@dataclass(frozen=True, slots=True)
class Step:
    """One transition: the states it starts from, the state it ends in, and who takes it."""

    sources: tuple[str, ...]
    target: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """The one table of a state machine; the model's field and methods are built from it.

    `steps` maps the name of each transition method to its step; `initial` is where a row begins.
    """

    name: str
    states: type[StrEnum]
    initial: str
    steps: Mapping[str, Step]

    def field(self, **options: Any) -> FSMField:
        """The model's state field: protected, so that only a transition sets it."""
        made: FSMField = FSMField(
            default=self.initial, choices=choices_of(self.states), protected=True, **options
        )
        setattr(made, MARK, self)  # `machine_fields` finds it by this
        return made

    def step(self, name: str, state: FSMField) -> Callable[[Method], Method]:
        """The decorator of the transition method called `name`."""
        found = self.steps[name]
        made: Callable[[Method], Method] = transition(
            field=state, source=list(found.sources), target=found.target
        )
        return made

    def plain_step(self, name: str, state: FSMField) -> Callable[[models.Model], None]:
        """The transition method called `name`, which sets no field but the state."""

        def move(_row: models.Model) -> None:
            pass

        move.__name__ = name
        return self.step(name, state)(move)

    def steps_from(self, state: str) -> tuple[str, ...]:
        """The transitions that a row in this state can take; none from a final state."""
        return tuple(name for name, step in self.steps.items() if state in step.sources)

    @property
    def final_states(self) -> tuple[str, ...]:
        """The states that no transition leaves."""
        return tuple(state.value for state in self.states if not self.steps_from(state))


@dataclass(frozen=True, slots=True)
class MachineField:
    """A machine and the model's field that holds its state."""

    machine: Machine
    model: type[models.Model]
    name: str


def machine_fields() -> list[MachineField]:
    """Every field of the installed models that a machine built, in the order of machine names."""
    found = [
        MachineField(getattr(each, MARK), model, each.name)
        for model in apps.get_models()
        for each in model._meta.concrete_fields  # noqa: SLF001  Django's public name
        if hasattr(each, MARK)
    ]
    return sorted(found, key=lambda each: each.machine.name)


class UndeclaredTransition(RuntimeError):
    """Code tried to save a change of state that the machine does not have."""


@dataclass(frozen=True, slots=True)
class Cte:
    """A statement that is carried out together with a swap, and only if the swap found its row.

    `text` reads from `swapped`, which has the columns named by `Swap.returning`.
    """

    name: str
    text: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """A change of one row, if it is still at the version that was decided on.

    `state` is (field, before, after) where the state changes, `also` a second state field that
    changes with it. `values` maps columns to values.
    `condition` is more SQL that must hold (its parameters in `params`), `returning` the columns
    that the further statements read.
    """

    model: type[models.Model]
    key: Any
    version: int
    state: tuple[str, str, str] | None = None
    also: tuple[str, str, str] | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    condition: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    returning: tuple[str, ...] = ("id",)


def swap(change: Swap, then: Sequence[Cte] = ()) -> bool:
    """Carry out the change and everything in `then` as one statement; False if the row moved on.

    The version grows by one. Raises Denied at the highest version, and
    UndeclaredTransition for a change of state that django-fsm does not know of this field: nothing
    else writes a state.
    """
    if change.version >= BIGGEST_VERSION:
        raise refuse(
            Code.INVALID_TRANSITION,
            "This record has reached the highest version number and cannot change any more.",
            "create a new one in its place",
            rule="versions",
        )
    values = dict(change.values)
    params: dict[str, Any] = {"swap_key": change.key, "swap_version": change.version}
    for name, before, after in filter(None, (change.state, change.also)):
        if (str(before), str(after)) not in declared_transitions(change.model, name):
            raise UndeclaredTransition(f"{change.model.__name__}.{name}: {before} -> {after}")
        values[name] = str(after)
    if change.state is not None:
        params["swap_before"] = str(change.state[1])
    text = _statement(
        change.model,
        tuple(sorted(values)),
        None if change.state is None else change.state[0],
        change.condition,
        change.returning,
        tuple((each.name, each.text) for each in then),
    )
    columns = _columns(change.model)
    for name, value in values.items():
        column, plain = columns[name]
        is_plain = type(value) in plain
        params[f"set_{name}"] = value if is_plain else column.get_db_prep_save(value, connection)
    params |= change.params
    for each in then:
        params |= each.params
    (count,) = fetch_row(text, params)
    return bool(count)


@cache
def declared_transitions(model: type[models.Model], name: str) -> frozenset[tuple[str, str]]:
    """Every (before, after) that the transition methods of a model's state field allow."""
    state = model._meta.get_field(name)  # noqa: SLF001  Django's public name
    if not isinstance(state, FSMField):
        raise UndeclaredTransition(f"{model.__name__}.{name} is no state machine")
    return frozenset((str(t.source), str(t.target)) for t in state.get_all_transitions(model))


@cache
def _columns(model: type[models.Model]) -> Mapping[str, tuple[Any, Collection[type]]]:
    """The model's fields by their column's name, each with the types that it stores as they are."""
    fields: Sequence[Any] = model._meta.concrete_fields  # noqa: SLF001  Django's public name
    return {
        each.column: (each, () if isinstance(each, models.JSONField) else PLAIN) for each in fields
    }


@cache
def _statement(
    model: type[models.Model],
    columns: tuple[str, ...],
    state: str | None,
    condition: str,
    returning: tuple[str, ...],
    then: tuple[tuple[str, str], ...],
) -> str:
    """The text of a swap: made once for each shape, so that the server can keep it prepared."""
    meta = model._meta  # noqa: SLF001  Django's public name
    sets = "".join(f", {name} = %(set_{name})s" for name in columns)
    unmoved = f" AND {state} = %(swap_before)s" if state else ""
    further = f" AND {condition}" if condition else ""
    key = meta.pk.column
    return (
        f"WITH swapped AS (UPDATE {meta.db_table} SET version = version + 1{sets} "
        f"WHERE {key} = %(swap_key)s AND version = %(swap_version)s{unmoved}{further} "
        f"RETURNING {', '.join(returning)})"
        + "".join(f", {name} AS ({text})" for name, text in then)
        + " SELECT count(*) FROM swapped"
    )


def diagram(machine: Machine) -> str:
    """The machine as Mermaid text, from the table it is built from."""
    lines = ["stateDiagram-v2", f"    [*] --> {machine.initial}"]
    for name, step in machine.steps.items():
        label = f"{name}: {step.by}" if step.by else name
        lines += [f"    {source} --> {step.target} : {label}" for source in step.sources]
    lines += [f"    {state} --> [*]" for state in machine.final_states]
    return "\n".join(lines)
