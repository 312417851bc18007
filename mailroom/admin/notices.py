"""The admin pages of outgoing notices: whether they arrived; the Board sends dead ones again."""

from __future__ import annotations

import json
from uuid import UUID

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldBooleanSwitchWidget

from core.admin.acts import Act, ActingAdmin, ActRequest, Answer, ReasonForm
from core.admin.base import block, choice_column, computed_column
from core.events import text
from core.permissions import Deed
from mailroom.models import OutgoingNotice
from mailroom.outgoing.outbox import CHANNELS, channels_of, resend
from mailroom.vocabulary import NoticeState
from orgchart.policy_cache import current_policy


class ResendForm(ReasonForm):
    """Why, and which."""

    with_others = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget(),
        label=_("And all others of this organisation and channel that failed"),
    )


def _resend(call: ActRequest) -> Answer:
    count = resend(
        notice_id=call.row.id,
        reason=call.reason,
        caller=call.person,
        now=call.now,
        with_others=bool(call.data["with_others"]),
        expected_version=call.version,
    )
    if count > 1:
        return gettext("%(count)s notices are sent again with the same ids.") % {"count": count}
    return gettext("The notice is sent again with the same id.")


def _facts(row: OutgoingNotice) -> list[tuple[str, str]]:
    """What failed, and where it would go now: the organisation's setting may be another since."""
    address = channels_of(current_policy(row.organisation_id)).get(row.channel)
    nowhere = gettext("nowhere: %(setting)s is not set") % {"setting": CHANNELS[row.channel]}
    return [
        (gettext("Channel"), row.get_channel_display()),
        (pgettext("recipient", "To"), row.as_place(address) if address else nowhere),
        (gettext("Last sent to"), row.place),
        (gettext("Attempts"), str(row.attempts)),
        (gettext("Last problem"), row.last_problem or gettext("none")),
    ]


RESEND = Act(
    name="resend",
    title=_("Send again"),
    icon="forward_to_inbox",
    deed=Deed.RESEND_NOTICE,
    explanation=_(
        "The notice goes to where the organisation's settings point now. It keeps its id, so "
        "a receiver that accepted it before recognises it."
    ),
    perform=_resend,
    form=ResendForm,
    possible=lambda row: row.state == NoticeState.DEAD,
    version=lambda row: current_policy(row.organisation_id).version,
    facts=_facts,
    text=lambda row: json.dumps(row.payload, indent=2, ensure_ascii=False),
)


@admin.register(OutgoingNotice)
class OutgoingNoticeAdmin(ActingAdmin):
    """Notices to people outside, and whether they arrived."""

    subject = "notice:{row.event_id}"
    acts = (RESEND,)
    list_display = (
        "created_at",
        "about",
        "channel",
        "organisation",
        "state_label",
        "attempts",
        "due_at",
        "problem",
    )
    list_filter = ("organisation", "channel", "state", "created_at")
    list_select_related = ("organisation",)
    search_fields = ("event_id",)
    search_help_text = _("The event id that receivers see")
    fields = (
        "organisation",
        "channel",
        "place",
        "event_id",
        "state",
        "attempts",
        "due_at",
        "last_problem",
        "created_at",
        "settled_at",
        "payload_text",
    )

    def find(
        self, request: HttpRequest, rows: QuerySet[OutgoingNotice], term: str
    ) -> QuerySet[OutgoingNotice]:
        """By event."""
        try:
            return rows.filter(event_id=UUID(term))
        except ValueError:
            return rows.none()

    payload_text = computed_column(
        _("payload"), lambda row: block(json.dumps(row.payload, indent=2, ensure_ascii=False))
    )

    place = computed_column(_("target"), lambda row: row.place)

    about = computed_column(_("about"), lambda row: text(str(row.payload["data"]["subject"]), 60))

    problem = computed_column(_("last problem"), lambda row: text(row.last_problem, 60) or "–")

    state_label = choice_column(
        "state", _("state"), {"pending": "warning", "sent": "success", "dead": "danger"}
    )
