"""Forms that make something new: one that is sent twice, as by a double click, makes it once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.exceptions import SessionInterrupted
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext

from core.database import hold_lock

Made = TypeVar("Made")

SENT = "forms_sent"
"""In the session of a person: the numbers of the forms that made something."""
KEPT = 50
"""So many of them, the newest."""
HIDDEN = forms.HiddenInput(attrs={"id": False})  # a page may have several such forms


class OnceForm(forms.Form):
    """A form with a number of its own, from the page on which it was read."""

    number = forms.UUIDField(required=False, initial=uuid4, widget=HIDDEN)


class SentBefore(Exception):
    """The form made something before, and the person is told so on the next page."""


def make_once(request: HttpRequest, form: forms.Form, make: Callable[[], Made]) -> Made:
    """Make what a form asks for, in one transaction; what it made, or nothing where it was refused.

    Of two of one session that are sent at once the later one waits for the end of the first: both
    write the numbers that the session keeps (Spec: people 8). A form that brings no number was
    never sent. Raises SentBefore, and SessionInterrupted where the person signed out meanwhile:
    then nothing is made.
    """
    number = str(form.cleaned_data["number"] or uuid4())
    with transaction.atomic():
        hold_lock("form", request.session.session_key)
        sent = type(request.session)(request.session.session_key).get(SENT, [])
        if number in sent:
            messages.warning(
                request,
                gettext("This form was sent before, and nothing was done again. Look at the list."),
            )
            raise SentBefore
        made = make()
        if made:
            request.session[SENT] = [*sent, number][-KEPT:]
            try:
                request.session.save()
            except UpdateError as gone:
                raise SessionInterrupted("signed out while a form was carried out") from gone
            # Saved again with the answer, after the lock, it would take back another form's number.
            request.session.modified = False
    return made
