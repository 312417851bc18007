"""The forms that check a person's password: of the sign-in, and of one's own password."""

from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django_otp import devices_for_user, match_token
from unfold.forms import AdminOwnPasswordChangeForm, AuthenticationForm
from unfold.widgets import UnfoldAdminTextInputWidget

from nexus_site.console import signing_in
from orgchart.people import passwords
from orgchart.people.authenticators import bound_wait


class LoginForm(AuthenticationForm):
    """Asks for a code if the user has a confirmed device, which cannot be skipped."""

    otp_token = forms.CharField(
        label=_("One-time code"),
        help_text=_("Only if you have set up a second factor."),
        required=False,
        max_length=16,
        widget=UnfoldAdminTextInputWidget(
            attrs={"autocomplete": "one-time-code", "inputmode": "numeric"}
        ),
    )

    def clean(self) -> dict[str, Any]:
        """Check the password, then the code."""
        with signing_in.turn(self.request):
            cleaned: dict[str, Any] = super().clean()
        user = self.get_user()
        if user is not None and any(devices_for_user(user)):
            bound_wait(user, now=timezone.now())
            user.otp_device = match_token(user, cleaned.get("otp_token") or "")
            if user.otp_device is None:
                signing_in.report_wrong_code(self.request, user)
                raise forms.ValidationError(_("The one-time code is missing or wrong."), code="otp")
        return cleaned


class OwnPasswordForm(AdminOwnPasswordChangeForm):
    """Another password than the present one, with the code of who confirmed the user's rights.

    A wrong present password counts as a sign-in that failed. Spec: people 37, people 48, people 53.
    """

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request
        if code_from := passwords.code_from(self.user.pk):
            self.fields["code"] = forms.CharField(
                label=gettext("Opening code"),
                max_length=100,
                widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
                help_text=gettext("%(person)s confirmed your rights, and has this code for you.")
                % {"person": code_from},
            )

    def clean_old_password(self) -> str:
        """The present password."""
        password = str(self.cleaned_data["old_password"])
        if not signing_in.proves_password(self.request, password):
            raise forms.ValidationError(
                self.error_messages["password_incorrect"], code="password_incorrect"
            )
        return password

    def clean_code(self) -> str:
        """Only the person who confirmed the rights was shown the code."""
        code = str(self.cleaned_data["code"])
        if not passwords.is_code(self.user.pk, code):
            raise forms.ValidationError(gettext("This is not the code."))
        return code

    def clean(self) -> dict[str, Any]:
        """Refuse the same password again: the person who gave it would still know it."""
        data: dict[str, Any] = super().clean() or {}
        if data.get("new_password1") and data.get("new_password1") == data.get("old_password"):
            raise forms.ValidationError(
                gettext("Choose a password that differs from your current one.")
            )
        return data
