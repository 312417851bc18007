"""The page that verifies the ledger."""

from threading import Lock
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from core.admin.contexts import admin_context
from core.database import database_now
from core.people import signed_in
from ledger import keys
from ledger.verification import verify_ledger

VERIFY = "ledger_event_verify"
UNDER_WAY = Lock()
"""Held while a ledger is verified: a large one takes minutes, and pages have few threads."""


def verify_page(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Say what verifying is; on POST verify every event against its seal. Changes nothing."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    context = admin_context(model_admin, request, gettext("Verify the ledger"))
    if request.method == "POST":
        if UNDER_WAY.acquire(blocking=False):
            try:
                context |= _verified(request)
            finally:
                UNDER_WAY.release()
        else:
            word = gettext("The ledger is being verified at this moment. Try again in a minute.")
            messages.warning(request, word)
    return TemplateResponse(request, "admin/nexus/verify.html", context)


def _verified(request: HttpRequest) -> dict[str, Any]:
    """Whether the ledger is whole, as a sentence.

    How much all organisations did is for members of every one (Spec: people 35).
    """
    try:
        report = verify_ledger(trusted=keys.trusted(), now=database_now())
    except (keys.KeyMissing, OSError) as problem:
        return {
            "whole": False,
            "answer": gettext("It could not be verified: %(problem)s.") % {"problem": problem},
        }
    if report.finding:
        return {"whole": False, "answer": str(report.finding)}
    if not signed_in(request).is_member_of(None):
        return {"whole": True, "answer": gettext("All sealed events are as they were sealed.")}
    answer = gettext(
        "All %(events)s sealed events are as they were sealed, under %(seals)s seals; "
        "%(unsealed)s newer ones wait for the next seal."
    ) % {
        "events": f"{report.events:,}",
        "seals": f"{report.seals:,}",
        "unsealed": f"{report.unsealed:,}",
    }
    return {"whole": True, "answer": answer}
