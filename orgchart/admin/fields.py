"""The base of every form of the organisation: its fields, its reason, the version seen."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.db.models import Model
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminSelect2MultipleWidget,
    UnfoldAdminSelect2Widget,
    UnfoldAdminTextareaWidget,
)

from core.decision import Denied
from core.strictjson import read_object
from orgchart.models import Organisation

REASON_HELP = _("Kept in the ledger with your name.")


class StrictDecoder(json.JSONDecoder):
    """Reads a JSON object that a person typed, like the body of an agent's call."""

    def decode(self, s: str) -> Any:  # type: ignore[override]  # without the place to begin at
        """The object. Raises JSONDecodeError, also for what no column can hold."""
        try:
            return read_object(s.encode())
        except Denied as refusal:
            raise json.JSONDecodeError(refusal.deny.message, s, 0) from refusal


class LinesField(forms.CharField):
    """A list of texts, one to a line."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("required", False)
        super().__init__(widget=UnfoldAdminTextareaWidget(attrs={"rows": 6}), **kwargs)

    def prepare_value(self, value: Any) -> Any:
        """The stored list as lines."""
        return "\n".join(value) if isinstance(value, list | tuple) else value

    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]
        """The lines as a list, each once, as in a pack; empty ones left out."""
        lines = (line.strip() for line in str(value or "").splitlines())
        return [*dict.fromkeys(line for line in lines if line)]

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether the lists differ."""
        return list(initial or []) != self.to_python(data)


class Several(forms.MultipleChoiceField):
    """Some of a closed set; what is stored already stays choosable."""

    def __init__(self, *, names: Iterable[str] = (), **kwargs: Any) -> None:
        kwargs.setdefault("required", False)
        super().__init__(
            choices=[(n, n) for n in names], widget=UnfoldAdminSelect2MultipleWidget(), **kwargs
        )

    def offer(self, names: Iterable[str], stored: Iterable[str] | None) -> None:
        """Set the choices: the names, and whatever the row holds."""
        self.choices = [(n, n) for n in sorted(set(names) | set(stored or ()))]

    def clean(self, value: Any) -> list[str]:
        """The chosen names, sorted."""
        return sorted(super().clean(value))


class ReasonedForm(forms.Form):
    """A reason, and the policy version that was looked at."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text=REASON_HELP,
    )
    seen_version = forms.IntegerField(
        label=_("Version that was read"), widget=forms.HiddenInput, min_value=1, max_value=2**63 - 1
    )


class PolicyForm(forms.ModelForm):  # type: ignore[type-arg]  # subscripted only in its stubs
    """One row of the organisation, the reason for changing it and the version it was read at."""

    organisation: Organisation | None = None
    reason = forms.CharField(
        max_length=500,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        label=_("Reason of this change"),
        help_text=REASON_HELP,
    )
    seen_version = forms.IntegerField(
        label=_("Version that was read"), widget=forms.HiddenInput, min_value=1, max_value=2**63 - 1
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        organisation = self.organisation
        if organisation is None:
            raise ValueError("a form of the policy is for one organisation")
        self.fields["seen_version"].initial = organisation.policy_version
        if self.instance.pk is None and hasattr(self.instance, "organisation_id"):
            self.instance.organisation = organisation
        self.fields["reason"].initial = ""
        self.initial.pop("reason", None)
        for field in self.fields.values():
            _keep_within(field, organisation)
            if isinstance(field.widget, forms.Textarea):
                field.widget.attrs.setdefault("rows", 4)
                field.widget.attrs["rows"] = min(int(field.widget.attrs["rows"]), 6)
        self.offer(organisation)

    def offer(self, organisation: Organisation) -> None:
        """Fill the choices that depend on the organisation."""

    def stored(self, name: str) -> Any:
        """What the row holds in a column now."""
        return getattr(self.instance, name, None)

    def links(self) -> dict[str, Sequence[Model]]:
        """The chosen rows of each many-to-many column."""
        return {
            f.name: list(self.cleaned_data[f.name])
            for f in self._meta.model._meta.many_to_many  # noqa: SLF001  Django's public name
            if f.name in self.cleaned_data
        }

    def touched(self) -> list[str]:
        """The names of the columns whose value the person changed."""
        return list(self.fields)

    def _get_validation_exclusions(self) -> set[str]:
        """Uniqueness holds within the organisation, which is no field of the form."""
        return super()._get_validation_exclusions() - {"organisation"}  # type: ignore[misc, no-any-return]


def _keep_within(field: forms.Field, organisation: Organisation) -> None:
    """Only rows of this organisation can be chosen, and none made on the way."""
    if isinstance(field.widget, RelatedFieldWidgetWrapper):
        field.widget = field.widget.widget
    if not isinstance(field, forms.ModelChoiceField):
        return
    rows: Any = field.queryset
    field.queryset = rows.filter(organisation=organisation)
    several = isinstance(field, forms.ModelMultipleChoiceField)
    widget = UnfoldAdminSelect2MultipleWidget() if several else UnfoldAdminSelect2Widget()
    widget.choices = field.choices
    widget.is_required = field.required
    if several:
        field.help_text = ""
    field.widget = widget


def several(form: PolicyForm, name: str) -> Several:
    """The field of that name; one that is not shown takes its choices and forgets them."""
    field = form.fields.get(name)
    return field if isinstance(field, Several) else Several()
