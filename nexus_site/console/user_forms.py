"""The forms of users: who they are, and the organisations that they belong to."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.contrib.auth.validators import ASCIIUsernameValidator
from django.core.validators import MaxLengthValidator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.forms import UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldBooleanSwitchWidget

from core.admin.acts import SEEN_IS_MISSING
from core.people import SignedIn
from orgchart.models import Organisation
from orgchart.people.members import seen_as, standing_of, visible_organisations
from orgchart.people.rules import EVERY, Standing

LONGEST_NAME = 80
"""Characters; `human:` and the name are kept in columns of 100."""


class MembersForm(forms.ModelForm):  # type: ignore[type-arg]  # only in its stubs
    """Adds the organisations to a form of a user; `who` fills it in, a class attribute."""

    who: SignedIn
    organisations = forms.ModelMultipleChoiceField(
        label=_("Organisations"),
        queryset=Organisation.objects.none(),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
        help_text=_("The user sees these organisations and nothing of any other."),
    )
    every_organisation = forms.BooleanField(
        label=_("Every organisation"),
        required=False,
        widget=UnfoldBooleanSwitchWidget(),
        help_text=_("Also those that come later, and what belongs to the whole installation."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.found = standing_of(self.instance)
        present = self.found.organisations
        if field := self.fields.get("organisations"):
            assert isinstance(field, forms.ModelMultipleChoiceField)  # noqa: S101  narrows the type
            field.queryset = visible_organisations(self.who).order_by("name")
            field.initial = [one for one in present if one is not EVERY]
        if "every_organisation" in self.fields:
            self.fields["every_organisation"].initial = EVERY in present
            self.fields["every_organisation"].disabled = self.who.organisations is not None

    def clean(self) -> dict[str, Any]:
        """Refuse a user that no person of the chooser's organisations would see again."""
        data: dict[str, Any] = super().clean() or {}
        if self.who.organisations is not None and not data.get("organisations"):
            self.add_error("organisations", gettext("choose at least one of your organisations"))
        return data

    def standing(self, user: User) -> Standing:
        """What the form asks for. A user who is being added has no right before it."""
        groups = self.cleaned_data.get("groups", ())
        return Standing(
            is_active=user.is_active,
            is_staff=user.is_staff,
            is_superuser=user.is_superuser,
            groups=frozenset(group.name for group in groups),
            organisations=frozenset(self.memberships()),
        )

    def memberships(self) -> set[int | None]:
        """The organisations that were chosen."""
        if self.cleaned_data.get("every_organisation"):
            return {EVERY}
        return {one.pk for one in self.cleaned_data.get("organisations", ())}


class PersonChangeForm(MembersForm, UserChangeForm):
    """A user that exists; the form says what rights it was read at (Spec: people 8)."""

    seen = forms.CharField(
        label=_("Version that was read"),
        widget=forms.HiddenInput,
        error_messages=SEEN_IS_MISSING,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["seen"].initial = seen_as(self.instance, self.found)


class PersonCreationForm(MembersForm, UserCreationForm):
    """A new user. The name fits the records of what they do, and looks like no other
    (Spec: people 45).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].validators += [
            MaxLengthValidator(LONGEST_NAME),
            ASCIIUsernameValidator(),
        ]
