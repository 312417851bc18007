"""The forms with which people act on a case."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from core.admin.acts import ReasonForm
from core.admin.once import OnceForm
from core.limits import MAX_SUBJECT
from governance.cases.rules import MOST_ROUNDS
from governance.cases.vocabulary import Outcome

CODE = UnfoldAdminTextInputWidget(
    attrs={"autocomplete": "one-time-code", "inputmode": "numeric", "autofocus": True}
)

BAR = re.compile(r"(?<!\\)\|")
"""What separates the parts of a line of TASKS; a bar within a part is written `\\|`."""


def _area(rows: int) -> UnfoldAdminTextareaWidget:
    return UnfoldAdminTextareaWidget(attrs={"rows": rows})


class CaseForm(ReasonForm):
    """Why, and after the preview the confirmation code for exactly what was shown."""

    field_order = ("what", "why", "constraints", "tasks", "outcome", "rounds", "reason")
    token = forms.CharField(required=False, widget=forms.HiddenInput)
    code = forms.CharField(required=False, max_length=16, widget=forms.HiddenInput)

    def params(self) -> dict[str, Any]:
        """The parameters of the service: what the form asks besides the fields of every case."""
        own = self.base_fields.keys() - CaseForm.base_fields.keys()
        return {name: self.cleaned_data[name] for name in self.base_fields if name in own}


class AmendAnalysisForm(CaseForm):
    """The amended ANALYSIS."""

    what = forms.CharField(label=_("What"), max_length=20_000, widget=_area(4))
    why = forms.CharField(label=_("Why"), max_length=20_000, widget=_area(3))
    constraints = forms.CharField(
        label=_("Constraints"), max_length=20_000, widget=_area(4), help_text=_("One on each line.")
    )

    def clean_constraints(self) -> list[str]:
        """The constraints, one from each line."""
        lines = self.cleaned_data["constraints"].splitlines()
        return [line.strip() for line in lines if line.strip()]


class AmendTasksForm(CaseForm):
    """The amended TASKS."""

    tasks = forms.CharField(
        label=_("Tasks"),
        max_length=100_000,
        widget=_area(8),
        help_text=_(
            "One task on each line: id | task | how it is verified. "
            r"Write a bar inside a text as \|."
        ),
    )

    def clean_tasks(self) -> list[dict[str, str]]:
        """The tasks, one from each line."""
        found = []
        for line in self.cleaned_data["tasks"].splitlines():
            parts = [part.strip().replace(r"\|", "|") for part in BAR.split(line)]
            if parts == [""]:
                continue
            if len(parts) != 3 or not all(parts):
                raise forms.ValidationError(
                    gettext(
                        "Write each line as: id | task | how it is verified; "
                        r"a bar inside a text is written \|"
                    )
                )
            found.append(dict(zip(("id", "task", "verify_by"), parts, strict=True)))
        return found


class OverruleForm(CaseForm):
    """What the REVIEW shall say instead."""

    outcome = forms.ChoiceField(
        label=_("Outcome"),
        choices=[(o.value, o.value) for o in (Outcome.APPROVED, Outcome.REJECTED)],
        widget=UnfoldAdminSelectWidget(),
    )


class ExtendForm(CaseForm):
    """How many more rounds."""

    rounds = forms.IntegerField(
        label=_("Rounds"),
        min_value=0,
        max_value=MOST_ROUNDS,
        initial=1,
        widget=UnfoldAdminTextInputWidget(attrs={"inputmode": "numeric"}),
        help_text=_("0 lifts the pause without further rounds."),
    )


class NoteForm(OnceForm):
    """A note of a person."""

    reason = forms.CharField(
        label=_("Note"),
        max_length=5000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 5, "autofocus": True}),
        help_text=_("Marked [HUMAN_NOTE] and kept; agents do not see it."),
    )


class OpenForm(OnceForm):
    """A request that becomes a case."""

    title = forms.CharField(
        label=_("Title"), max_length=MAX_SUBJECT, widget=UnfoldAdminTextInputWidget()
    )
    request = forms.CharField(label=_("Request"), max_length=20_000, widget=_area(8))


class BeginForm(forms.Form):
    """The present password of who begins to enrol: an open session alone is not enough."""

    password = forms.CharField(
        label=_("Your password"),
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, *args: Any, proves: Callable[[str], bool], **kwargs: Any) -> None:
        """With what checks the password."""
        super().__init__(*args, **kwargs)
        self.proves = proves

    def clean_password(self) -> str:
        """The password of who is signed in. Spec: people 53."""
        password = str(self.cleaned_data["password"])
        if not self.proves(password):
            raise forms.ValidationError(gettext("This is not your password."))
        return password


class EnrolForm(forms.Form):
    """The first code of a new authenticator."""

    code = forms.CharField(label=_("Code"), max_length=16, widget=CODE)
