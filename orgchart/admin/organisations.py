"""The organisation's own pages: its settings, roles, groups, and the other names of agents."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin import BooleanFieldListFilter
from django.db.models import Count, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.admin.base import chips, choice_column, column, computed_column, listed, shown_column
from core.admin.happened import modes_shown
from core.hooks import Hook
from core.labels import Text
from core.permissions import Deed
from orgchart.admin.editing import EditAdmin
from orgchart.admin.fields import PolicyForm
from orgchart.admin.forms import AliasForm, GroupForm, RoleEditForm
from orgchart.admin.pausing import RESTART, STOP, own_pause
from orgchart.admin.preview import RowChange
from orgchart.admin.settings_form import (
    BOARD_ONLY,
    OrganisationForm,
    setting_fields,
    setting_in_words,
)
from orgchart.models import Alias, Group, Organisation, Role
from orgchart.organisation_settings import SETTINGS, merged, public
from orgchart.second_person.edits import Edit, replacing_leader

WHY = (_("This change"), {"fields": ("reason", "seen_version")})


about_organisation = Hook[[Organisation], list[Text]](
    "what the page of an organisation shows of what the rooms above store for it"
)


@admin.register(Organisation)
class OrganisationAdmin(EditAdmin):
    """Tenants and their settings. Organisations come from packs; none is added or deleted here."""

    form = OrganisationForm
    acts = (STOP, RESTART)
    organisation_path = "id"
    subject_key = "slug"
    list_display = ("name", "slug", "policy_version", "agents_active", "modes")
    search_fields = ("slug", "name")
    ordering = ("slug",)
    readonly_fields = ("policy_version", "all_settings", "stored")
    fixed = ("slug",)
    edit_fieldsets = (
        (None, {"fields": ("slug", "name", "description", "stored")}),
        (
            _("Settings"),
            {"description": BOARD_ONLY, "fields": setting_fields(are_quotas=False)},
        ),
        (
            _("Quotas"),
            {"description": BOARD_ONLY, "fields": setting_fields(are_quotas=True)},
        ),
        WHY,
    )
    view_fieldsets = (
        (
            None,
            {"fields": ("slug", "name", "description", "stored", "policy_version", "all_settings")},
        ),
    )

    def get_form(self, *args: Any, **kwargs: Any) -> type[PolicyForm]:
        """Secrets are in the form of those who may change them alone (Spec: people 61)."""
        may_set = args[0].user.has_perm(Deed.SET_BOARD_SETTINGS.permission)
        form = super().get_form(*args, **kwargs)
        return type(form.__name__, (form,), {"shows_secrets": may_set})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Organisation]:
        """With the number of active agents, in one query."""
        rows: QuerySet[Organisation] = super().get_queryset(request)
        active = Count("agents", filter=Q(agents__active=True))
        own = own_pause(organisation=OuterRef("pk"), agent=None)
        return rows.annotate(active_agents=active, own_pause=own)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Packs bring organisations."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What an organisation did stays."""
        return False

    agents_active = computed_column(_("active agents"), lambda row: int(row.active_agents))

    modes = computed_column(
        _("modes"), lambda row: modes_shown(merged(row.settings)["enabled_modes"])
    )

    @column(_("settings"))
    def all_settings(self, row: Organisation) -> SafeString:
        """Every setting with its value."""
        return format_html(
            '<dl class="nx-facts">{}</dl>',
            format_html_join(
                "",
                '<dt>{}</dt><dd>{} <code class="nx-code">{}</code></dd>',
                (
                    (gettext(SETTINGS[name].label), setting_in_words(name, value), name)
                    for name, value in public(merged(row.settings)).items()
                ),
            ),
        )

    stored = computed_column(
        _("stored by its agents"),
        lambda row: listed(str(line) for lines in about_organisation(row) for line in lines),
    )


@admin.register(Role)
class RoleAdmin(EditAdmin):
    """What its holders may do (Spec: organisation 3)."""

    form = RoleEditForm
    subject_key = "name"
    list_display = ("name", "title", "organisation", "level", "kind_label", "tool_count")
    list_filter = ("organisation", "kind", "level", ("task_lead", BooleanFieldListFilter))
    list_select_related = ("organisation",)
    search_fields = ("name", "title")
    fixed = ("name",)
    edit_fieldsets = (
        (None, {"fields": ("name", "title", ("level", "kind"), "summary")}),
        (_("Tools"), {"fields": ("tools", "denied_tools", "offices", "task_lead", "permissions")}),
        (_("Files"), {"fields": ("files_read", "files_write", "files_deny", "files_contract")}),
        (_("Prohibitions"), {"fields": ("prohibitions",)}),
        WHY,
    )
    view_fieldsets = (
        (None, {"fields": ("organisation", "name", "title", "level", "kind", "summary")}),
        (_("Tools"), {"fields": ("bound", "denied", "offices", "task_lead", "permissions")}),
        (_("Files"), {"fields": ("may_read", "may_write", "never", "files_contract")}),
        (_("Prohibitions"), {"fields": ("sentences",)}),
    )

    kind_label = choice_column(
        "kind", _("kind"), {"executive": "primary", "manager": "info", "worker": "success"}
    )

    tool_count = computed_column(_("tools"), lambda row: len(row.tools))

    bound = shown_column("tools", _("bound tools"), chips)
    denied = shown_column("denied_tools", _("denied tools"), chips)
    may_read = shown_column("files_read", _("may read"), listed)
    may_write = shown_column("files_write", _("may write"), listed)
    never = shown_column("files_deny", _("never touches"), chips)
    sentences = shown_column("prohibitions", _("prohibitions"), listed)


@admin.register(Group)
class GroupAdmin(EditAdmin):
    """Teams with one leader each (Spec: groups 2)."""

    form = GroupForm
    subject_key = "slug"
    list_display = ("slug", "name", "organisation", "leader", "member_delegation")
    list_filter = ("organisation",)
    list_select_related = ("organisation",)
    search_fields = ("slug", "name")
    fixed = ("slug",)
    edit_fieldsets = (
        (None, {"fields": ("slug", "name", "context", "member_delegation", "leader_choice")}),
        WHY,
    )
    view_fieldsets = (
        (
            None,
            {"fields": ("organisation", "slug", "name", "context", "member_delegation", "team")},
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        """With the members, in one query more."""
        rows: QuerySet[Group] = super().get_queryset(request)
        return rows.prefetch_related("members")

    def edit_of(self, change: RowChange) -> Edit:
        """With another leader: the two exchange their places in the same change."""
        leader = change.form.new_leader() if isinstance(change.form, GroupForm) else None
        return replacing_leader(change.row, leader) if leader else super().edit_of(change)

    leader = computed_column(
        _("leader"),
        lambda row: ", ".join(a.handle for a in row.members.all() if a.is_leader) or "–",
    )

    team = computed_column(_("members"), lambda row: chips(a.handle for a in row.members.all()))


@admin.register(Alias)
class AliasAdmin(EditAdmin):
    """Other names of agents (Spec: organisation 18)."""

    form = AliasForm
    list_display = ("alias", "agent", "organisation")
    list_filter = ("organisation",)
    list_select_related = ("organisation", "agent")
    search_fields = ("alias", "agent__handle")
    edit_fieldsets = ((None, {"fields": ("alias", "agent")}), WHY)
    view_fieldsets = ((None, {"fields": ("organisation", "alias", "agent")}),)
