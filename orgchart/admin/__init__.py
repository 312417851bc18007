"""The humans' face of the organisation: who may what, changed only after a preview."""

from __future__ import annotations

from ledger.admin.filters import organisation_names
from orgchart.admin.agents import AgentAdmin, ApiKeyAdmin
from orgchart.admin.contact_rules import ContactRuleAdmin, MailTypeAdmin, ToolRestrictionAdmin
from orgchart.admin.organisations import AliasAdmin, GroupAdmin, OrganisationAdmin, RoleAdmin
from orgchart.admin.second_person import PendingChangeAdmin
from orgchart.models import Organisation

__all__ = [
    "AgentAdmin",
    "AliasAdmin",
    "ApiKeyAdmin",
    "ContactRuleAdmin",
    "GroupAdmin",
    "MailTypeAdmin",
    "OrganisationAdmin",
    "PendingChangeAdmin",
    "RoleAdmin",
    "ToolRestrictionAdmin",
]

organisation_names.join(lambda: dict(Organisation.objects.values_list("id", "name")))
