"""The forms of the organisation's tables: what a person types, and nothing a person may not."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.widgets import (
    UnfoldAdminSelect2Widget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from orgchart import catalogue
from orgchart.admin.fields import LinesField, PolicyForm, Several, StrictDecoder, several
from orgchart.admin.settings_form import BOARD_ONLY
from orgchart.models import Agent, Organisation
from orgchart.policy.vocabulary import KINDS, LOWEST_LEVEL, Kind, Office, Permission, ToolMode

PERMISSIONS_FORM = _(
    "Write a JSON object with claim_task_type (a list of task types, or true for every type), "
    "update_own_tasks and comment_on_all_tasks (true or false)."
)


class RoleEditForm(PolicyForm):
    """What its holders may do."""

    tools = Several(
        label=_("Tools"), help_text=_("Built-in tools need no binding; skills are an agent's.")
    )
    denied_tools = Several(label=_("Denied tools"), help_text=_("Denied whatever else is allowed."))
    offices = Several(
        label=_("Offices"), names=[o.value for o in Office], help_text=_("Of the constitution.")
    )
    prohibitions = LinesField(
        label=_("Prohibitions"), help_text=_("Sentences for the prompt, one to a line.")
    )
    files_read = LinesField(
        label=_("May read"), help_text=_("One path to a line; a folder ends in /.")
    )
    files_write = LinesField(label=_("May write"), help_text=_("Writing implies reading."))
    files_deny = LinesField(
        label=_("Never touches"), help_text=_("Paths or patterns; wins over the others.")
    )

    def offer(self, organisation: Organisation) -> None:
        """Tools by what is registered."""
        several(self, "tools").offer(catalogue.bindable(), self.stored("tools"))
        several(self, "denied_tools").offer(catalogue.known(), self.stored("denied_tools"))
        if "level" in self.fields:
            rank = gettext("1 is the highest rank, %(lowest)s the lowest.")
            self.fields["level"].help_text = rank % {"lowest": LOWEST_LEVEL}
        if isinstance(field := self.fields.get("permissions"), forms.JSONField):
            field.decoder = StrictDecoder
            field.error_messages["invalid"] = PERMISSIONS_FORM

    def clean_permissions(self) -> dict[str, Any]:
        """What rules can read: an empty field is no permission, so no limit (Spec: tasks 40)."""
        value = self.cleaned_data["permissions"] or {}
        if not _is_permissions(value):
            raise forms.ValidationError(PERMISSIONS_FORM)
        return dict(value)


def _is_permissions(value: Any) -> bool:
    if not isinstance(value, dict) or not value.keys() <= set(Permission):
        return False
    types = value.get(Permission.CLAIM_TASK_TYPE, False)
    others = [given for name, given in value.items() if name != Permission.CLAIM_TASK_TYPE]
    known = catalogue.task_types()
    is_list = isinstance(types, list) and all(str(each) in known for each in types)
    return (is_list or isinstance(types, bool)) and all(isinstance(each, bool) for each in others)


class GroupForm(PolicyForm):
    """A team, and who leads it."""

    leader_choice = forms.ModelChoiceField(
        queryset=Agent.objects.none(),
        required=False,
        label=_("Leader"),
        widget=UnfoldAdminSelect2Widget(),
        help_text=(
            _(
                "Choose another member to replace the leader: the two exchange their roles "
                "and places in one change."
            )
        ),
    )

    def offer(self, organisation: Organisation) -> None:
        """The active members of the group."""
        self.fields["member_delegation"].help_text = BOARD_ONLY
        if self.instance.pk is None:
            self.fields["leader_choice"].help_text = gettext("A new group has no members yet.")
            return
        members = Agent.objects.filter(organisation=organisation, group=self.instance, active=True)
        field = self.fields["leader_choice"]
        assert isinstance(field, forms.ModelChoiceField)  # noqa: S101  narrows the type
        field.queryset = members
        field.initial = members.filter(is_leader=True).first()

    def new_leader(self) -> Agent | None:
        """The member that replaces the leader; None where the leader stays."""
        chosen: Agent | None = self.cleaned_data.get("leader_choice")
        return None if chosen is None or chosen.is_leader else chosen


class AgentForm(PolicyForm):
    """One holder of a role. Activity is no column to tick: it has an act of its own."""

    skills = LinesField(
        label=_("Skills"), help_text=_("Names of skills and extra tools, one to a line.")
    )
    contract = forms.CharField(
        max_length=64,
        required=False,
        strip=True,
        widget=UnfoldAdminTextInputWidget(),
        label=_("org_change contract"),
        help_text=_("If one in progress names this change (CON-…), no second person is needed."),
    )

    def offer(self, organisation: Organisation) -> None:
        """Only managers manage; role and superior of a new agent were chosen before."""
        if self.instance.pk is None:
            for name in ("role", "reports_to"):
                self.fields[name].widget = forms.HiddenInput()
        managers = Q(active=True) & ~Q(role__kind=Kind.WORKER)
        chosen = Q(pk=self.instance.reports_to_id) | Q(pk__in=self._co_managers())
        for name in {"reports_to", "co_managers"} & self.fields.keys():
            field = self.fields[name]
            assert isinstance(field, forms.ModelChoiceField)  # noqa: S101  narrows the type
            rows = Agent.objects.filter(organisation=organisation).order_by("handle")
            field.queryset = rows.filter(managers | chosen)

    def _co_managers(self) -> list[int]:
        """The agents that manage the row together with its superior now."""
        row: Agent = self.instance
        return [] if row.pk is None else list(row.co_managers.values_list("pk", flat=True))

    def clean(self) -> dict[str, Any]:
        """A member of a group has a name there."""
        data: dict[str, Any] = super().clean() or {}
        if data.get("group") and not data.get("name"):
            self.add_error("name", gettext("an agent of a group has a name in it"))
        return data


class AliasForm(PolicyForm):
    """Another name of an agent."""


class MailTypeEditForm(PolicyForm):
    """Who may send a type at all."""

    every_role = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget(),
        label=_("Every role may send it"),
        help_text=_("Off: only the roles and kinds chosen below; none chosen means no role."),
    )
    senders = Several(
        label=_("Senders"), help_text=_("Roles, or every role of a kind, that may send it.")
    )
    issued_by = Several(
        label=_("Issued by"), help_text=_("Tools that alone make mails of this type.")
    )

    def offer(self, organisation: Organisation) -> None:
        """Roles of the organisation, tools of the registry."""
        names = organisation.roles.values_list("name", flat=True)
        several(self, "senders").offer({*names, *KINDS}, self.stored("senders"))
        several(self, "issued_by").offer(catalogue.known(), self.stored("issued_by"))
        self.fields["every_role"].initial = self.stored("senders") is None

    def clean(self) -> dict[str, Any]:
        """Absent is every role; empty is none."""
        data: dict[str, Any] = super().clean() or {}
        if data.get("every_role"):
            data["senders"] = None
        return data


class ContactEditForm(PolicyForm):
    """Which role may write to which, with which types."""

    every_type = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget(),
        label=_("Every type the sender may send at all"),
        help_text=_("Off: only the types chosen below; none chosen means none."),
    )
    types = Several(label=_("Types"), help_text=_("Mail types of this channel."))

    def offer(self, organisation: Organisation) -> None:
        """Types of the organisation."""
        names = organisation.mail_types.values_list("name", flat=True)
        several(self, "types").offer(names, self.stored("types"))
        self.fields["every_type"].initial = self.stored("types") is None
        if "recipient" in self.fields:
            self.fields["recipient"].help_text = gettext("Empty: the Board.")

    def clean(self) -> dict[str, Any]:
        """Absent is all that the sender's ceiling gives; empty is none."""
        data: dict[str, Any] = super().clean() or {}
        if data.get("every_type"):
            data["types"] = None
        return data


class ToolRestrictionForm(PolicyForm):
    """A restriction of one tool."""

    tool = forms.ChoiceField(widget=UnfoldAdminSelect2Widget())
    modes = Several(
        names=[m.value for m in ToolMode],
        label=_("Modes it is left in"),
        help_text=_("None chosen: the tool is taken away. A mode the tool lacks is refused."),
    )

    def offer(self, organisation: Organisation) -> None:
        """Every registered tool."""
        if "tool" in self.fields:
            names = sorted({*catalogue.known(), *filter(None, [self.stored("tool")])})
            field = self.fields["tool"]
            assert isinstance(field, forms.ChoiceField)  # noqa: S101  narrows the type
            field.choices = [(n, n) for n in names]

    def clean(self) -> dict[str, Any]:
        """For an agent, a role or everybody; not for two of these."""
        data: dict[str, Any] = super().clean() or {}
        if data.get("agent") and data.get("role"):
            self.add_error("agent", gettext("choose an agent or a role, not both"))
        return data
