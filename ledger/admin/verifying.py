"""The page that verifies the ledger."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext

from ledger import keys
from ledger.verification import verify_ledger

VERIFY = "ledger_event_verify"


def verify_page(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Say what verifying is; on POST verify every event against its seal. Changes nothing."""
    request.current_app = model_admin.admin_site.name
    context = {
        **model_admin.admin_site.each_context(request),
        "title": gettext("Verify the ledger"),
        "opts": model_admin.opts,
    }
    if request.method == "POST":
        context |= _verified()
    return TemplateResponse(request, "admin/nexus/verify.html", context)


def _verified() -> dict[str, Any]:
    """Whether the ledger is whole, as a sentence."""
    try:
        report = verify_ledger(trusted=keys.trusted(), now=timezone.now())
    except (keys.KeyMissing, OSError) as problem:
        return {
            "whole": False,
            "answer": gettext("It could not be verified: %(problem)s.") % {"problem": problem},
        }
    if report.finding:
        return {"whole": False, "answer": str(report.finding)}
    answer = gettext(
        "All %(events)s sealed events are as they were sealed, under %(seals)s seals; "
        "%(unsealed)s newer ones wait for the next seal."
    ) % {
        "events": f"{report.events:,}",
        "seals": f"{report.seals:,}",
        "unsealed": f"{report.unsealed:,}",
    }
    return {"whole": True, "answer": answer}
