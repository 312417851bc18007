"""Forms that make something new: one that is sent twice, as by a double click, makes it once."""

from __future__ import annotations

from uuid import uuid4

from django import forms
from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext

from core.database import hold_lock, needs_transaction

SENT = "forms_sent"
"""In the session of a person: the numbers of the forms that made something."""
KEPT = 50
"""So many of them, the newest."""


HIDDEN = forms.HiddenInput(attrs={"id": False})  # a page may have several such forms


class OnceForm(forms.Form):
    """A form with a number of its own, from the page on which it was read."""

    number = forms.UUIDField(required=False, initial=uuid4, widget=HIDDEN)


@needs_transaction
def was_sent(request: HttpRequest, form: forms.Form) -> bool:
    """Whether the form made something before; the person reads so (Spec: people 8).

    Of two that are sent at once the later one waits for the end of the first.
    """
    hold_lock("form", request.session.session_key, _number(form))
    stored = type(request.session)(request.session.session_key)
    request.session[SENT] = stored.get(SENT, [])
    if _number(form) not in request.session[SENT]:
        return False
    messages.warning(
        request, gettext("This form was sent before, and nothing was done again. Look at the list.")
    )
    return True


@needs_transaction
def note_sent(request: HttpRequest, form: forms.Form) -> None:
    """Remember that the form made something, in the transaction that did."""
    request.session[SENT] = [*request.session[SENT], _number(form)][-KEPT:]
    request.session.save()


def _number(form: forms.Form) -> str:
    """The number; where a form brings none, one that no other form has."""
    return str(form.cleaned_data["number"] or uuid4())
