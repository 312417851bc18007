"""Names of rooms, tables, columns and choices, in the language of who looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.db.models import Model
from django.utils.translation import gettext_lazy, override

from nexus_site.languages.columns import COLUMNS


def translate_names() -> None:
    """From now on these names are looked up when they are shown; no model has to mark them.

    Migrations, permissions and the ledger keep the English ones.
    """
    for config in _rooms():
        config.verbose_name = _lazy(config.verbose_name)
        for model in config.get_models():
            _translate(model)


def names_of_models() -> set[str]:
    """The English of every name that `translate_names` makes translatable."""
    found = (name for config in _rooms() for name in _names_in(config))
    return {name for name in found if name and not is_code(name)}


def is_code(name: str) -> bool:
    """Whether a name is one of the wire's, which pages show as it is written."""
    return "_" in name or name.isupper()


def _rooms() -> list[AppConfig]:
    return [apps.get_app_config(room) for room in settings.ROOMS]


def _translate(model: type[Model]) -> None:
    opts: Any = model._meta  # noqa: SLF001  Django's public name
    opts.verbose_name = _lazy(opts.verbose_name)
    opts.verbose_name_plural = _lazy(opts.verbose_name_plural)
    for field in (*opts.concrete_fields, *opts.many_to_many):
        field.verbose_name = _lazy(_for_people(field))
        field.help_text = _lazy(field.help_text)
        if field.choices:
            field.choices = [(value, _lazy(label)) for value, label in field.choices]


def _names_in(config: AppConfig) -> Iterator[str]:
    yield _english(config.verbose_name)
    for model in config.get_models():
        opts: Any = model._meta  # noqa: SLF001  Django's public name
        yield _english(opts.verbose_name)
        yield _english(opts.verbose_name_plural)
        for field in (*opts.concrete_fields, *opts.many_to_many):
            yield _for_people(field)
            yield _english(field.help_text)
            yield from (_english(label) for _, label in field.choices or ())


def _for_people(field: Any) -> str:
    name = _english(field.verbose_name)
    return COLUMNS.get(name, name)


def _english(text: Any) -> str:
    with override(None):
        return str(text)


def _lazy(text: Any) -> Any:
    found = _english(text)
    return gettext_lazy(found) if found and not is_code(found) else found
