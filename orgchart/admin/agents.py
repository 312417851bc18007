"""The admin pages of agents and their keys."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import DropdownFilter

from core.admin.acts import Act, ActingAdmin, ActRequest, Answer, ShownOnce
from core.admin.base import actor_column, block, chips, column, computed_column, link, shown_column
from core.permissions import Deed
from core.waiting import page_of
from orgchart.admin.forms import AgentForm
from orgchart.admin.organisations import WHY
from orgchart.admin.pausing import PAUSE, RESUME, TAKE_OVER, own_pause
from orgchart.admin.placing import PlacingAdmin
from orgchart.keys import issue_key, keys_ever, other_keys, revoke_key
from orgchart.models import Agent, ApiKey
from orgchart.pauses.services import is_paused

KEY_REMARK = _(
    "Give it to the agent's program now. It is stored nowhere: this page is the only time it can "
    "be seen. If it is lost, revoke it and issue another one."
)


def _issue(call: ActRequest) -> Answer:
    key = issue_key(
        agent=call.row,
        caller=call.person,
        now=call.now,
        reason=call.reason,
        expected_keys=call.version,
    )
    return ShownOnce(
        gettext("The new key of %(agent)s") % {"agent": call.row.handle}, key, KEY_REMARK
    )


def _revoke(call: ActRequest) -> Answer:
    revoke_key(
        prefix=call.row.prefix,
        caller=call.person,
        now=call.now,
        reason=call.reason,
        expected_others=call.version,
    )
    return gettext("The key %(prefix)s… of %(agent)s is revoked.") % {
        "prefix": call.row.prefix,
        "agent": call.row.agent.handle,
    }


def _key_facts(key: ApiKey) -> list[tuple[str, str]]:
    """Whose key it is, and with which others that agent goes on."""
    return [
        (gettext("Agent"), key.agent.handle),
        (gettext("Its other keys in use"), str(other_keys(key).count())),
    ]


ISSUE = Act(
    name="issue-key",
    title=_("Issue a key"),
    icon="key",
    deed=Deed.ISSUE_KEY,
    explanation=_("Creates a new API key. Existing keys keep working."),
    perform=_issue,
    possible=lambda agent: bool(agent.active),
    version=keys_ever,
)
REVOKE = Act(
    name="revoke",
    title=_("Revoke this key"),
    icon="key_off",
    danger=True,
    deed=Deed.REVOKE_KEY,
    explanation=_(
        "The key stops working immediately. This cannot be undone. Other keys keep working."
    ),
    perform=_revoke,
    version=lambda key: other_keys(key).count(),
    facts=_key_facts,
    possible=lambda key: key.revoked_at is None,
)


@admin.register(Agent)
class AgentAdmin(PlacingAdmin):
    """Holders of roles. They are deactivated rather than deleted: their mails and events stay."""

    form = AgentForm
    subject_key = "handle"
    acts = (PAUSE, RESUME, TAKE_OVER, ISSUE)
    list_display = (
        "handle",
        "title",
        "organisation",
        "role",
        "level",
        "superior",
        "group",
        "state",
    )
    list_filter = ("organisation", "active", "role", "group", "reports_to")
    list_select_related = ("organisation", "role", "reports_to", "group")
    search_fields = ("handle", "title", "name")
    fixed = ("handle",)
    readonly_fields = ("own_keys",)
    edit_fieldsets = (
        (None, {"fields": ("handle", "title", "role")}),
        (_("Place"), {"fields": ("reports_to", "co_managers", "group", "name", "is_leader")}),
        (_("Abilities"), {"fields": ("skills", "system_prompt", "job_description")}),
        (_("Keys"), {"fields": ("own_keys",)}),
        (_("Authority"), {"fields": ("contract",)}),
        WHY,
    )
    hire_fieldsets = (
        (None, {"fields": ("role", "reports_to", "handle", "title", "job_description")}),
        (
            _("More"),
            {
                "classes": ("collapse",),
                "fields": (
                    ("group", "name", "is_leader"),
                    "co_managers",
                    "skills",
                    "system_prompt",
                    "contract",
                ),
            },
        ),
        WHY,
    )
    view_fieldsets = (
        (None, {"fields": ("organisation", "handle", "title", "role", "active")}),
        (_("Place"), {"fields": ("reports_to", "together_with", "group", "name", "is_leader")}),
        (_("Abilities"), {"fields": ("own_skills", "prompt", "description")}),
        (_("Keys"), {"fields": ("own_keys",)}),
    )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Deactivated, never deleted."""
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        """With what every page shows of an agent; a page shows some of it several times."""
        rows: QuerySet[Agent] = super().get_queryset(request)
        others = Agent.co_managers.through.objects.filter(from_agent=OuterRef("pk"))
        good = ApiKey.objects.filter(agent=OuterRef("pk"), revoked_at=None).order_by("id")
        return rows.select_related("organisation", "role", "reports_to", "group").annotate(
            others=ArraySubquery(others.order_by("to_agent__handle").values("to_agent__handle")),
            good_keys=ArraySubquery(good.values("prefix")),
            is_paused=is_paused("id"),
            own_pause=own_pause(agent=OuterRef("pk")),
            is_paused_by_board=own_pause("by_board", agent=OuterRef("pk")),
        )

    level = computed_column(_("level"), lambda row: row.role.level, ordering="role__level")

    superior = computed_column(_("reports to"), lambda row: str(row.reports_to or "board"))

    @column(_("state"), label={"active": "success", "paused": "warning", "deactivated": "danger"})
    def state(self, row: Agent) -> tuple[str, str]:
        """Active, paused or deactivated, in colour."""
        if not row.active:
            return "deactivated", gettext("deactivated")
        if row.is_paused:  # type: ignore[attr-defined]  # annotated
            return "paused", gettext("paused")
        return "active", gettext("active")

    together_with = computed_column(_("co-managers"), lambda row: chips(row.others))

    own_skills = shown_column("skills", _("skills"), chips)
    prompt = shown_column("system_prompt", _("system prompt"), block)
    description = shown_column("job_description", _("job description"), block)

    own_keys = computed_column(_("keys"), lambda row: chips(f"{p}…" for p in row.good_keys))


class KeyState(DropdownFilter):
    """Filter by valid and revoked keys."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the two states."""
        return [("good", gettext("good")), ("revoked", gettext("revoked"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
        """Keep the keys in that state."""
        if self.value() in ("good", "revoked"):
            return queryset.filter(revoked_at__isnull=self.value() == "good")
        return queryset


@admin.register(ApiKey)
class ApiKeyAdmin(ActingAdmin):
    """Keys by their prefix; the keys themselves are nowhere."""

    subject = "key:{row.prefix}"
    acts = (REVOKE,)
    organisation_path = "agent.organisation_id"
    list_display = ("key", "agent", "organisation", "state", "created_at", "creator")
    list_filter = ("agent__organisation", "agent", KeyState, "created_at")
    list_select_related = ("agent", "agent__organisation")
    search_fields = ("prefix", "agent__handle")
    fields = ("key", "whose", "state", "created_at", "creator", "revoked_at", "revoker")
    in_other_words = ("created_by", "revoked_by")
    creator = actor_column("created_by", _("created by"))
    revoker = actor_column("revoked_by", _("revoked by"))

    key = computed_column(_("key"), lambda row: f"{row.prefix}…")

    organisation = computed_column(_("organisation"), lambda row: str(row.agent.organisation))

    @column(_("state"), label={"good": "success", "revoked": "danger"})
    def state(self, row: ApiKey) -> tuple[str, str]:
        """Good or revoked, in colour."""
        if row.revoked_at is None:
            return "good", gettext("good")
        return "revoked", gettext("revoked")

    whose = shown_column("agent", _("agent"), lambda agent: link(page_of(agent), agent))
