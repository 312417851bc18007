"""The pages of the rules: mail types, contacts, restricted tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from core.admin.base import actor_column, chips, column, computed_column, yes_no_column
from core.admin.browsing import WordsFilter, filter_by
from core.admin.happened import modes_shown, worded
from orgchart.admin.editing import EditAdmin
from orgchart.admin.forms import ContactEditForm, MailTypeEditForm, ToolRestrictionForm
from orgchart.admin.organisations import WHY
from orgchart.models import ContactRule, MailTypeRule, ToolOverride
from orgchart.policy.vocabulary import BOARD, Relation


@admin.register(MailTypeRule)
class MailTypeAdmin(EditAdmin):
    """The ceiling of each mail type (Spec: mail 5)."""

    form = MailTypeEditForm
    list_display = ("name", "organisation", "who", "how", "upwards")
    list_filter = ("organisation", "to_superior")
    list_select_related = ("organisation",)
    search_fields = ("name",)
    fixed = ("name",)
    edit_fieldsets = (
        (
            None,
            {
                "fields": (
                    "name",
                    "every_role",
                    "senders",
                    "issued_by",
                    "to_superior",
                    "description",
                )
            },
        ),
        WHY,
    )
    view_fieldsets = (
        (None, {"fields": ("organisation", "name", "who", "how", "upwards", "description")}),
    )

    in_other_words = ("to_superior",)
    upwards = yes_no_column("to_superior", _("to superior"))

    @column(_("senders"))
    def who(self, row: MailTypeRule) -> SafeString:
        """Roles and kinds that may send it at all."""
        return chips(
            [gettext("every role")] if row.senders is None else row.senders,
            gettext("no role"),
        )

    how = computed_column(_("issued by"), lambda row: chips(row.issued_by, "send_mail"))


RELATIONS = {
    Relation.ANY.value: gettext_noop("any agents of these roles"),
    Relation.OWN.value: gettext_noop("an agent and its own manager"),
}


BY_RELATION = filter_by(WordsFilter, "relation", _("relation"), words=RELATIONS)


@admin.register(ContactRule)
class ContactRuleAdmin(EditAdmin):
    """Which role may send which mail types to which role (Spec: mail 8)."""

    form = ContactEditForm
    list_display = ("sender", "to", "organisation", "with_types", "under_contract", "between")
    list_filter = ("organisation", "sender", "needs_contract", BY_RELATION)
    list_select_related = ("organisation", "sender", "recipient")
    search_fields = ("sender__name", "recipient__name")
    fixed = ("sender", "recipient")
    edit_fieldsets = (
        (None, {"fields": ("sender", "recipient")}),
        (_("What may pass"), {"fields": ("every_type", "types", "needs_contract", "relation")}),
        WHY,
    )
    view_fieldsets = (
        (
            None,
            {
                "fields": (
                    "organisation",
                    "sender",
                    "to",
                    "with_types",
                    "under_contract",
                    "between",
                )
            },
        ),
    )

    in_other_words = ("needs_contract", "relation")
    under_contract = yes_no_column("needs_contract", _("needs contract"))

    between = computed_column(_("relation"), lambda row: worded(RELATIONS, row.relation))

    to = computed_column(_("recipient"), lambda row: str(row.recipient or BOARD))

    with_types = computed_column(
        _("types"),
        lambda row: chips([gettext("all the sender may send")] if row.types is None else row.types),
    )


@admin.register(ToolOverride)
class ToolRestrictionAdmin(EditAdmin):
    """Restrictions of single tools (Spec: tools 14): never more than the tool or the role has."""

    form = ToolRestrictionForm
    list_display = ("tool", "organisation", "for_whom", "left", "setter", "at")
    list_filter = ("organisation", "agent", "at")
    list_select_related = ("organisation", "role", "agent")
    search_fields = ("tool", "agent__handle", "role__name")
    fixed = ("tool", "role", "agent")
    edit_fieldsets = (
        (None, {"fields": ("tool", "role", "agent", "modes")}),
        WHY,
    )
    view_fieldsets = (
        (
            None,
            {"fields": ("organisation", "tool", "for_whom", "left", "setter", "reason", "at")},
        ),
    )

    in_other_words = ("set_by",)
    seen_with: Mapping[str, str] = {"reason": "ledger.view_event"}
    setter = actor_column("set_by", _("set by"))

    def subject_of(self, row: ToolOverride) -> str:
        """The tool's events are those of its restrictions."""
        return f"tool:{row.tool}"

    @column(_("for"))
    def for_whom(self, row: ToolOverride) -> str:
        """An agent, a role, or everybody."""
        if row.agent:
            return gettext("agent %(agent)s") % {"agent": row.agent}
        return gettext("role %(role)s") % {"role": row.role} if row.role else gettext("everybody")

    left = computed_column(
        _("modes left"), lambda row: modes_shown(row.modes, gettext("taken away"))
    )

    def _row_url(self, row: Any) -> str:
        """A new restriction has no row yet; the list shows it."""
        return super()._row_url(row) if row.pk else self._list_url()
