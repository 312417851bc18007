"""The admin's sign-in: a password, and a one-time code for people who have set one up."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django_otp import devices_for_user, match_token
from unfold.forms import AuthenticationForm
from unfold.widgets import UnfoldAdminTextInputWidget

from nexus_site.console import signing_in


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
        if not signing_in.CHECKS.acquire(timeout=signing_in.PATIENCE):
            raise forms.ValidationError(
                _("Too many people sign in at this moment. Try again in a few seconds."),
                code="busy",
            )
        try:
            cleaned: dict[str, Any] = super().clean()
        finally:
            signing_in.CHECKS.release()
        user = self.get_user()
        if user is not None and any(devices_for_user(user)):
            user.otp_device = match_token(user, cleaned.get("otp_token") or "")
            if user.otp_device is None:
                signing_in.report_wrong_code(self.request, user)
                raise forms.ValidationError(_("The one-time code is missing or wrong."), code="otp")
        return cleaned
