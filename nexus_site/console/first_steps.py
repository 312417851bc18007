"""What a person does before any other page: change a password that others know, enrol a device.

Spec: people 37, people 38.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext
from django_otp import devices_for_user

from core.people import signed_in
from core.permissions import PeopleGroup
from orgchart.people import passwords

View = Callable[..., HttpResponseBase]

IN_SESSION = "password_was_given"
"""Set at sign-in: a password that changes ends every session of its user."""


def remember_given_password(request: HttpRequest, user: AbstractBaseUser) -> None:
    """Note in the session whether somebody else chose the password that was just entered."""
    if passwords.is_given(user.pk):
        request.session[IN_SESSION] = True


def on_password_changed(request: HttpRequest) -> None:
    """Note that the user has chosen this password: no longer the one that was given to them."""
    passwords.take_password(int(request.user.pk or 0))
    request.session.pop(IN_SESSION, None)


def has_to_choose_password(request: HttpRequest) -> bool:
    """Whether the person has to choose a password of their own before any page."""
    return IN_SESSION in request.session or bool(passwords.code_from(int(request.user.pk or 0)))


def needs_second_factor(request: HttpRequest) -> bool:
    """Whether the setting asks a second factor of this person."""
    match settings.REQUIRE_SECOND_FACTOR:
        case "everybody":
            return True
        case "board":
            return PeopleGroup.BOARD in signed_in(request).groups
        case _:
            return False


def first_steps(view: View) -> View:
    """The same view, for a person who has nothing to do first; others are sent there."""

    @wraps(view)
    def stepped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return _sent_to_step(request) or view(request, *args, **kwargs)

    return stepped


def _sent_to_step(request: HttpRequest) -> HttpResponseBase | None:
    if request.path == reverse("admin:logout"):
        return None
    if code_from := _code_asked(request):
        step, word = (
            "password_change",
            gettext("Choose a password of your own first, with the code that %(person)s has.")
            % {"person": code_from},
        )
    elif request.session.get(IN_SESSION):
        step, word = (
            "password_change",
            gettext("Choose a password of your own first: others know this one."),
        )
    elif needs_second_factor(request) and not request.user.is_verified():  # type: ignore[union-attr]  # django_otp's
        if any(devices_for_user(request.user)):
            logout(request)  # signed in before the device was enrolled, so without its code
            return HttpResponseRedirect(reverse("admin:login"))
        step, word = (
            "confirmation_codes",
            gettext("Enrol a second factor first: your group needs one."),
        )
    else:
        return None
    address = reverse(f"admin:{step}")
    if request.path == address:
        return None
    _say_once(request, word)
    return HttpResponseRedirect(address)


def _say_once(request: HttpRequest, word: str) -> None:
    """Show this on the next page: a browser that asked for several is told one time."""
    waiting = messages.get_messages(request)
    said = [message.message for message in waiting]
    waiting.used = False  # type: ignore[union-attr]  # read here, not yet shown
    if word not in said:
        messages.warning(request, word)


def _code_asked(request: HttpRequest) -> str:
    """The person who has the code that is asked of this one.

    Asked are superusers, and members of no organisation: a code that is not entered hides them all.
    """
    who = signed_in(request)
    if who.is_superuser or who.organisations == frozenset():
        return passwords.code_from(int(request.user.pk or 0))
    return ""
