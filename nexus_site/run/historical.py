"""Historical models, which migrations work with, made as rarely as possible.

Django makes a model again at each change, and with it all that are related to it: almost every one
of ours, 8,000 times at a first start. Where fields change it still does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db.migrations.state import ModelState, ProjectState


@contextmanager
def made_rarely() -> Iterator[None]:
    """Let a new model, an index and a constraint leave all other historical models as they are.

    Only on the way forward: states that are kept for a way back share their models.
    """
    before: dict[str, Any] = {name: getattr(ProjectState, name) for name in WAYS}
    _use(WAYS)
    try:
        yield
    finally:
        _use(before)


def _use(ways: Mapping[str, Any]) -> None:
    for name, way in ways.items():
        setattr(ProjectState, name, way)


def _add_model(state: Any, model: ModelState) -> None:
    key = model.app_label, model.name_lower
    state.models[key] = model
    if state._relations is not None:  # noqa: SLF001  as Django's own does
        state.resolve_model_relations(key)
    if _are_made(state):
        with state.apps.bulk_update():
            state.apps.render_multiple([model])


def _append_option(state: ProjectState, label: str, model: str, option: str, added: Any) -> None:
    _set_option(state, label, model, option, [*state.models[label, model].options[option], added])


def _remove_option(state: ProjectState, label: str, model: str, option: str, name: str) -> None:
    left = [each for each in state.models[label, model].options[option] if each.name != name]
    _set_option(state, label, model, option, left)


def _set_option(state: ProjectState, label: str, model: str, option: str, value: list[Any]) -> None:
    state.models[label, model].options[option] = value
    if _are_made(state):
        setattr(state.apps.get_model(label, model)._meta, option, value)  # noqa: SLF001  public


def _are_made(state: ProjectState) -> bool:
    return "apps" in vars(state)  # reading it would make them


WAYS = {
    "add_model": _add_model,
    "_append_option": _append_option,
    "_remove_option": _remove_option,
}
"""What Django's operations call to change a state, and what is called instead."""
