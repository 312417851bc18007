"""The page on which a person enrols an authenticator for confirmation codes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import segno
from django.contrib import messages
from django.contrib.admin import site
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django_otp import devices_for_user, login

from core.actions import Action
from core.actors import Person
from core.database import database_now
from core.events import Event
from core.people import signed_in
from governance.cases.forms import BeginForm, EnrolForm
from governance.interventions import confirmation_codes
from ledger.services import record_alone

BEGUN_HERE = "authenticator_begun_here"
"""In the session: the device that it began. What another session began is not shown in it."""


def codes_page(request: HttpRequest) -> HttpResponse:
    """Begin, show the QR code, and confirm the first code. Reading the page changes nothing.

    Who found an open session does not begin: the person would be asked for the finder's codes.
    """
    username = request.user.get_username()
    enrolled = confirmation_codes.has_authenticator(username)
    begins = request.method == "POST" and not enrolled and "code" not in request.POST
    begin = BeginForm(
        request.POST if begins else None,
        proves=lambda password: any(confirmation_codes.proves_password(request, password)),
    )
    form = EnrolForm(request.POST if "code" in request.POST else None)
    begun = request.session.get(BEGUN_HERE)
    device = None if enrolled else confirmation_codes.pending_device(username, begun)
    if begins and begin.is_valid():
        request.session[BEGUN_HERE] = confirmation_codes.new_device(username).pk
        return HttpResponseRedirect(reverse("admin:confirmation_codes"))
    if not enrolled and form.is_valid():
        code = form.cleaned_data["code"]
        if device and confirmation_codes.enrol(
            username=username, device_id=device.pk, code=code, clock=timezone.now()
        ):
            login(request, next(devices_for_user(request.user)))
            _record(signed_in(request).on(0), database_now())
            messages.success(request, gettext("Your authenticator is enrolled."))
            return HttpResponseRedirect(reverse("admin:confirmation_codes"))
        if confirmation_codes.has_authenticator(username):  # by another request, as a double click
            return HttpResponseRedirect(reverse("admin:confirmation_codes"))
        if device is None:
            messages.error(
                request,
                gettext("The key that this page showed was replaced meanwhile. Begin again."),
            )
            return HttpResponseRedirect(reverse("admin:confirmation_codes"))
        form.add_error(None, gettext("The code is wrong. Wait for the next one and enter it."))
    context: dict[str, Any] = {
        **site.each_context(request),
        "title": gettext("Second factor"),
        "enrolled": enrolled,
        "form": form,
        "begin": begin,
    }
    if device is not None:
        address = device.config_url
        context |= {
            "qr": segno.make(address).svg_data_uri(scale=5),
            "secret": address.partition("secret=")[2].partition("&")[0],
        }
    response = TemplateResponse(request, "admin/nexus/case_codes.html", context)
    response.headers["Cache-Control"] = "no-store"
    return response


def _record(person: Person, now: datetime) -> None:
    subject = f"user:{person.username}"
    record_alone(Event.by(person, Action.CODE_ENROLLED, at=now, subject=subject))
