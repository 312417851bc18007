"""Names of tables, columns and choices, translated where a page shows them.

They come from the models' own names, so no model marks them; `label_texts` is what the catalogue
of translations needs of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.apps import AppConfig, apps
from django.db.models import Model
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, override

Text = str | Promise


def translate_labels(rooms: Iterable[str]) -> None:
    """From now on the names of these rooms' tables are in the language of the page.

    Migrations, permissions and the ledger keep the English names.
    """
    for config in _configs(rooms):
        config.verbose_name = _lazy(config.verbose_name)
        for model in config.get_models():
            _translate_model(model)


def label_texts(rooms: Iterable[str]) -> set[str]:
    """Every English text that `translate_labels` makes translatable."""
    return {text for config in _configs(rooms) for text in _texts_of(config) if not is_code(text)}


def is_code(label: str) -> bool:
    """Whether a label is a code of the wire, which pages show as it is."""
    return "_" in label


def english(text: Text) -> str:
    """The text before any translation."""
    with override(None):
        return str(text)


def _configs(rooms: Iterable[str]) -> list[AppConfig]:
    return [apps.get_app_config(room) for room in rooms]


def _translate_model(model: type[Model]) -> None:
    opts: Any = model._meta  # noqa: SLF001  Django's public name
    opts.verbose_name = _lazy(opts.verbose_name)
    opts.verbose_name_plural = _lazy(opts.verbose_name_plural)
    for field in opts.concrete_fields:
        field.verbose_name = _lazy(field.verbose_name)
        if field.choices:
            field.choices = [(value, _lazy(label)) for value, label in field.choices]


def _texts_of(config: AppConfig) -> Iterator[str]:
    yield english(config.verbose_name)
    for model in config.get_models():
        opts: Any = model._meta  # noqa: SLF001  Django's public name
        yield english(opts.verbose_name)
        yield english(opts.verbose_name_plural)
        for field in opts.concrete_fields:
            yield english(field.verbose_name)
            yield from (english(label) for _, label in field.choices or ())


def _lazy(text: Text) -> Any:
    found = english(text)
    return found if is_code(found) else gettext_lazy(found)
