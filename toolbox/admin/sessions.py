"""The admin of sessions: modes and grants; the Board opens and closes coding mode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from core.admin.actors import actor_name, actor_shown
from core.admin.acts import Act, ActingAdmin, ActRequest, Answer, acts_for
from core.admin.base import BrowseAdmin, actor_column, column, computed_column
from core.admin.browsing import WordsFilter, filter_by
from core.admin.happened import mode_shown
from core.detail_words import MODES
from core.people import signed_in
from core.permissions import Deed
from orgchart.models import Agent
from orgchart.people.members import visible_agents, visible_organisations
from orgchart.policy.vocabulary import ToolMode
from orgchart.policy_cache import current_policy
from toolbox.authentication import get_or_create_standing_session
from toolbox.models import IdempotencyRecord, ModeGrant, RateBucket, Session
from toolbox.modes import close_mode, open_mode, switches_of_people
from toolbox.sessions import effective_session


def _open(call: ActRequest) -> Answer:
    return _open_coding(call, session_id=str(call.row.id), handle=call.row.agent.handle)


def _open_for_agent(call: ActRequest) -> Answer:
    session = get_or_create_standing_session(call.row.id, call.row.organisation_id, now=call.now)
    return _open_coding(call, session_id=str(session), handle=call.row.handle)


def _open_coding(call: ActRequest, *, session_id: str, handle: str) -> Answer:
    open_mode(
        session_id=session_id,
        mode=ToolMode.CODING,
        caller=call.person,
        now=call.now,
        reason=call.reason,
        expected_switches=call.version,
    )
    return gettext("The session of %(agent)s is in coding mode.") % {"agent": handle}


def _close(call: ActRequest) -> Answer:
    closed = close_mode(
        session_id=str(call.row.id), caller=call.person, now=call.now, reason=call.reason
    )
    return ngettext(
        "Coding mode of %(agent)s is closed (%(count)s grant ended).",
        "Coding mode of %(agent)s is closed (%(count)s grants ended).",
        closed,
    ) % {"agent": call.row.agent.handle, "count": closed}


def _standing_grants(agent: Agent) -> QuerySet[ModeGrant]:
    return ModeGrant.objects.filter(session__agent=agent, session__standing=True)


def _may_open(row: Session | Agent, grants: QuerySet[ModeGrant]) -> bool:
    """Whether no grant of a person is open, and the organisation enables the mode."""
    return (
        not grants.filter(closed_at=None, mode=ToolMode.CODING, contract_ref="").exists()
        and ToolMode.CODING in current_policy(row.organisation_id).enabled_modes
    )


def _has_open_grant(row: Session) -> bool:
    return row.grants.filter(closed_at=None, mode=ToolMode.CODING).exists()


def _open_grants(row: Session) -> list[tuple[str, str]]:
    """What opened the mode: all of this ends."""
    opened = row.grants.filter(closed_at=None).exclude(mode=ToolMode.CHAT_SAFE)
    return [
        (gettext("Opened by"), f"{each.contract_ref or actor_name(each.opened_by)}: {each.reason}")
        for each in opened.order_by("id")
    ]


OPEN = Act(
    name="open-coding",
    title=_("Open coding mode"),
    icon="lock_open",
    deed=Deed.SWITCH_MODE,
    explanation=_(
        "Tools that touch code, git, builds and deployment become available in this session, as "
        "far as the agent's role has them, until a person closes the mode."
    ),
    perform=_open,
    possible=lambda row: row.agent.active and _may_open(row, row.grants.all()),
    version=lambda row: switches_of_people(row.grants),
)
OPEN_FOR_AGENT = replace(
    OPEN,
    title=_("Open coding in its standing session"),
    perform=_open_for_agent,
    possible=lambda agent: agent.active and _may_open(agent, _standing_grants(agent)),
    version=lambda agent: switches_of_people(_standing_grants(agent)),
)
"""The same for an agent that has no session yet because it never called."""
CLOSE = Act(
    name="close-coding",
    title=_("Close coding mode"),
    icon="lock",
    danger=True,
    deed=Deed.SWITCH_MODE,
    explanation=_(
        "The session is in chat_safe mode from the next call on. Where a contract opened the mode "
        "here, it ends in all sessions of this contract; the contract itself continues, and only a "
        "person opens the mode again. Other contracts of the agent open it as before."
    ),
    perform=_close,
    facts=_open_grants,
    possible=_has_open_grant,
)


def _duration(grant: ModeGrant) -> str:
    since = f"{grant.opened_at:%Y-%m-%d %H:%M}"
    if grant.closed_at is None:
        return gettext("%(since)s, open") % {"since": since}
    until = f"{grant.closed_at:%Y-%m-%d %H:%M}"
    said = {"since": since, "until": until, "person": actor_name(grant.closed_by)}
    return gettext("%(since)s to %(until)s, %(person)s") % said


@acts_for.join
def acts_on_agents(model: type[Model]) -> tuple[Act, ...]:
    """What this room adds to the agents' pages."""
    return (OPEN_FOR_AGENT,) if model is Agent else ()


BY_MODE = filter_by(WordsFilter, "mode", _("mode"), words=MODES)


@admin.register(Session)
class SessionAdmin(ActingAdmin):
    """Sessions of agents, each with the grant that backs its mode."""

    acts = (OPEN, CLOSE)
    list_display = ("agent", "organisation", "mode_label", "backed", "standing", "opened_at")
    list_filter = ("organisation", "agent", BY_MODE, "standing", "opened_at")
    list_select_related = ("organisation", "agent")
    search_fields = ("id",)
    search_help_text = _("A session's id, or its agent's handle")
    fields = ("organisation", "agent", "id", "standing", "effective", "opened_at", "why")

    def find(self, request: HttpRequest, rows: QuerySet[Session], term: str) -> QuerySet[Session]:
        """By id, or by agent."""
        try:
            return rows.filter(id=UUID(term))
        except ValueError:
            return rows.filter(agent__in=visible_agents(signed_in(request), term))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Session]:
        """Add whether an open grant backs the mode, in one query."""
        rows: QuerySet[Session] = super().get_queryset(request)
        grants = ModeGrant.objects.filter(
            session=OuterRef("pk"), mode=OuterRef("mode"), closed_at=None
        )
        return rows.annotate(is_backed=Exists(grants))

    mode_label = computed_column(
        _("mode"),
        lambda row: (row.mode, gettext(MODES[row.mode])),
        label={"coding": "warning", "chat_safe": "success"},
    )

    @column(
        _("grant"),
        label={"none needed": "default", "open": "success", "missing": "danger"},
    )
    def backed(self, row: Any) -> tuple[str, str]:
        """Whether an open grant backs the mode; without one the effective mode is chat_safe."""
        if row.mode == ToolMode.CHAT_SAFE:
            return "none needed", gettext("none needed")
        if row.is_backed:
            return "open", gettext("open")
        return "missing", gettext("MISSING: chat_safe")

    effective = computed_column(
        _("mode now"),
        lambda row: mode_shown(effective_session(row, current_policy(row.organisation_id)).mode),
    )

    @column(_("grants, newest first"))
    def why(self, row: Session) -> SafeString:
        """The grants: mode, opener, reason, closer."""
        lines = format_html_join(
            "",
            "<li><strong>{}</strong> {}: {} <span class='nx-quiet'>({})</span></li>",
            (
                (
                    mode_shown(g.mode),
                    g.contract_ref or actor_shown(g.opened_by),
                    g.reason,
                    _duration(g),
                )
                for g in row.grants.all()[:50]
            ),
        )
        return format_html('<ul class="nx-list">{}</ul>', lines) if lines else SafeString("–")


@admin.register(ModeGrant)
class ModeGrantAdmin(BrowseAdmin):
    """Permissions of sessions to be in a mode."""

    subject = "session:{row.session_id}"
    list_display = (
        "agent",
        "mode",
        "contract_ref",
        "opener",
        "opened_at",
        "closed_at",
        "reason",
    )
    fields = (
        "session",
        "mode",
        "contract_ref",
        "opener",
        "opened_at",
        "reason",
        "closer",
        "closed_at",
    )
    in_other_words = ("opened_by", "closed_by")
    opener = actor_column("opened_by", _("opened by"))
    closer = actor_column("closed_by", _("closed by"))
    list_filter = ("organisation", BY_MODE, "opened_at")
    list_select_related = ("session", "session__agent")
    dated_by = "opened_at"
    ordering = ("-id",)
    search_fields = ("contract_ref",)
    search_help_text = _("A contract (CON-…), or an agent's handle")

    def find(
        self, request: HttpRequest, rows: QuerySet[ModeGrant], term: str
    ) -> QuerySet[ModeGrant]:
        """By contract, or by agent."""
        if term.startswith("CON-"):
            return rows.filter(contract_ref=term)
        return rows.filter(session__agent__in=visible_agents(signed_in(request), term))

    agent = computed_column(_("agent"), lambda row: row.session.agent.handle)


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(BrowseAdmin):
    """Answers to calls with an Idempotency-Key."""

    subject = ""
    organisation_path = "agent.organisation_id"
    list_display = ("agent", "key", "status", "due_at")
    list_filter = ("agent", "due_at")
    list_select_related = ("agent",)
    search_fields = ("key",)
    search_help_text = _("An Idempotency-Key")
    exclude = ("request_digest",)

    def find(
        self, request: HttpRequest, rows: QuerySet[IdempotencyRecord], term: str
    ) -> QuerySet[IdempotencyRecord]:
        """By key, of each agent that this person sees."""
        mine = visible_organisations(signed_in(request))
        return rows.filter(agent__in=Agent.objects.filter(organisation__in=mine), key=term)


@admin.register(RateBucket)
class RateBucketAdmin(BrowseAdmin):
    """How many calls each agent may still make now."""

    subject = ""
    organisation_path = "agent.organisation_id"
    list_display = ("agent", "left", "taken", "at")
    list_filter = ("agent",)
    list_select_related = ("agent",)
    search_fields = ("=agent__handle",)

    left = computed_column(_("calls left"), lambda row: int(row.tokens))
