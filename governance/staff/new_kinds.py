"""A new kind of worker: the role that its first holder brings, with the rights of any worker."""

from __future__ import annotations

from orgchart.models import ContactRule, Organisation
from orgchart.models import Role as RoleRow
from orgchart.policy.compiled import Agent, FileScopes, Policy, Role
from orgchart.policy.vocabulary import LOWEST_LEVEL, Kind, Relation

TOOLS = frozenset({"send_mail", "escalate", "read_contract", "submit_report"})
"""What a worker needs on its first day; people give the role more in the admin."""

HOME = ("agents/{agent}/",)


def role_of_new_kind(name: str, title: str, above: Agent, policy: Policy) -> Role:
    """The role of a kind of worker that there was none of, one level below its manager.

    Its ceilings on mail types are those of every worker (Spec: organisation 4).
    """
    return Role(
        name=name,
        title=title,
        level=min(policy.level_of(above) + 1, LOWEST_LEVEL),
        kind=Kind.WORKER,
        tools=TOOLS,
        files=FileScopes(write=HOME),
    )


def insert_role(organisation: Organisation, role: Role, manager_role: str) -> RoleRow:
    """Insert the role, and the contact rules between its holders and their own manager."""
    row = RoleRow.objects.create(
        organisation=organisation,
        name=role.name,
        title=role.title,
        level=role.level,
        kind=role.kind,
        tools=sorted(role.tools),
        files_write=list(role.files.write),
    )
    manager = RoleRow.objects.get(organisation=organisation, name=manager_role)
    for sender, recipient in ((manager, row), (row, manager)):
        ContactRule.objects.create(
            organisation=organisation, sender=sender, recipient=recipient, relation=Relation.OWN
        )
    return row
