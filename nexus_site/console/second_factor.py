"""The button that removes a lost second factor of a user (Spec: people 50)."""

from __future__ import annotations

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django_otp import devices_for_user

from core.admin.acts import SEEN_IS_MISSING, Act, ActRequest, Answer, FileForm, ShownOnce
from core.people import signed_in_as
from core.permissions import Deed
from orgchart.people.passwords import code_from
from orgchart.second_person.users import remove_second_factor, seen_factor

REMARK = _(
    "Hand it over to this person yourself, and only to them. They sign in with their present "
    "password and choose a new one with this code, before any page. You do not know their "
    "password, and so cannot act as this user."
)


class FactorForm(FileForm):
    """Why, and the second factor that was looked at."""

    digest = forms.RegexField(
        r"^\d*:.{0,150}\Z", widget=forms.HiddenInput, error_messages=SEEN_IS_MISSING
    )


def _remove(call: ActRequest) -> Answer:
    code = remove_second_factor(
        user=call.row,
        who=signed_in_as(call.person.username, call.person.request_id),
        reason=call.reason,
        now=call.now,
        seen=call.digest,
    )
    return ShownOnce(gettext("The code for %(user)s") % {"user": call.row}, code, REMARK)


def _has_one(user: User) -> bool:
    return any(devices_for_user(user)) or bool(code_from(user.pk))


def _is_of_another(username: str, user: User) -> bool:
    return username != user.get_username()


REMOVE_SECOND_FACTOR = Act(
    name="second_factor",
    title=_("Remove second factor"),
    icon="phonelink_erase",
    danger=True,
    deed=Deed.KEEP_PEOPLE,
    explanation=_(
        "For a person who has lost their authenticator, or whose code was lost before they entered "
        "it. They then need their password and a new code that is shown to you once, and enrol "
        "another authenticator."
    ),
    perform=_remove,
    form=FactorForm,
    version=seen_factor,
    possible=_has_one,
    is_for=_is_of_another,
)
