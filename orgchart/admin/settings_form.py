"""The form of an organisation and its settings."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.formats import number_format
from django.utils.functional import lazy
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from core.admin.happened import modes_shown
from core.admin.refused import said
from core.admin.units import duration, size
from orgchart.admin.fields import PolicyForm
from orgchart.organisation_settings import SETTINGS, checked, merged, public, quota_of
from orgchart.setting_parsers import BadSetting

BOARD_ONLY = _("Only the Board changes this.")


class OrganisationForm(PolicyForm):
    """Name, description and settings; a change of settings is a change of policy like any other."""

    shows_secrets = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        values = merged(self.instance.settings)
        if not self.shows_secrets:
            values = public(values)
        for name, value in values.items():
            field = self.fields[setting_field(name)]
            field.initial = ", ".join(value) if isinstance(value, list) else value
            if SETTINGS[name].is_duration:
                field.help_text = format_html(
                    '<b class="nx-duration" data-of="id_{}">{}</b> · {}',
                    setting_field(name),
                    duration(value),
                    _meaning(name),
                )
            if SETTINGS[name].bound:
                now = gettext("Now %(limit)s") % {"limit": _amount(name, quota_of(values, name))}
                field.help_text = format_html("<b>{}</b> · {}", now, _meaning(name))

    def clean(self) -> dict[str, Any]:
        """Check every setting by its own rule, and put them together."""
        data: dict[str, Any] = super().clean() or {}
        now, wanted = merged(self.instance.settings), {}
        for name in SETTINGS:
            given = data.get(setting_field(name))
            if given == public(now)[name]:
                continue  # as it was shown
            try:
                value = checked({name: "" if given is None else given})[name]
            except BadSetting as problem:
                self.add_error(setting_field(name), said(problem.problem))
                continue
            if value != now[name]:
                wanted[name] = value
        self.instance.settings = {**self.instance.settings, **wanted}
        return data

    def touched(self) -> list[str]:
        """The settings are one column."""
        return ["name", "description", "settings"]


def setting_field(name: str) -> str:
    """The form's name of a setting."""
    return f"setting_{name}"


def setting_fields(*, are_quotas: bool) -> tuple[str, ...]:
    """The form's names of the quotas, or of the other settings."""
    chosen = (name for name, one in SETTINGS.items() if bool(one.bound) is are_quotas)
    return tuple(map(setting_field, chosen))


def _meaning(name: str) -> str:
    """What a setting means, as a sentence."""
    words = gettext(SETTINGS[name].meaning)
    return gettext("%(meaning)s.") % {"meaning": words[:1].upper() + words[1:]}


def setting_in_words(name: str, value: Any) -> str:
    """A setting's value as people read it."""
    setting = SETTINGS[name]
    if setting.is_duration and value:
        return duration(value)
    if setting.bound:
        return gettext("the installation's limit") if not value else _amount(name, value)
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, list):
        return modes_shown(value)
    if value in setting.choices:
        return gettext(setting.choices[value])
    return gettext("none") if value in ("", 0) else str(value)


def _amount(name: str, value: int) -> str:
    """What a quota allows, as people read it."""
    return size(value) if "bytes" in name else number_format(value, force_grouping=True)


def _setting(name: str) -> forms.Field:
    setting = SETTINGS[name]
    meaning = lazy(_meaning, str)(name)
    label = _(setting.label)  # marked in SETTINGS
    if isinstance(setting.default, bool):
        return forms.BooleanField(
            label=label, help_text=meaning, required=False, widget=UnfoldBooleanSwitchWidget()
        )
    if isinstance(setting.default, int):
        widget: forms.Widget = UnfoldAdminIntegerFieldWidget()
        return forms.IntegerField(label=label, help_text=meaning, widget=widget)
    if setting.choices:
        choices = [(value, _(words)) for value, words in setting.choices.items()]
        widget = UnfoldAdminSelectWidget(choices=choices)
        return forms.ChoiceField(label=label, help_text=meaning, choices=choices, widget=widget)
    widget = UnfoldAdminTextInputWidget()
    return forms.CharField(label=label, help_text=meaning, required=False, widget=widget)


for _name in SETTINGS:
    OrganisationForm.base_fields[setting_field(_name)] = _setting(_name)
    OrganisationForm.declared_fields[setting_field(_name)] = _setting(_name)
