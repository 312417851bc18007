"""Replacing the leader of a group: one change, so that every invariant holds before and after."""

from __future__ import annotations

from typing import Unpack

from core.actions import Action
from core.decision import Code, refuse
from core.permissions import Deed, require_deed
from orgchart.editing import changed_settings
from orgchart.models import Agent, Group, Organisation
from orgchart.services import ChangeRequest, PolicyChange, change_policy
from orgchart.settings_rights import require_settings


def replace_leader(
    *,
    group: Group,
    leader: Agent,
    **request: Unpack[ChangeRequest],
) -> PolicyChange:
    """Let another member lead the group; the old leader becomes a member under the new one.

    The two exchange their roles, places and names in the group: who reported to the old leader
    reports to the new one, and the leader's address leads to it (Spec: groups 13).
    The group's own columns are saved with it. Raises Denied like `save_row`, and INVALID_PARAMS for
    an agent that is no active member.
    """
    caller, reason = request["caller"], request["reason"]
    require_deed(caller, Deed.EDIT_GROUP, reason=reason)
    require_settings(caller, changed_settings(group), reason=reason)

    def apply(_organisation: Organisation) -> None:
        group.save()
        _exchange(group, leader)

    return change_policy(
        organisation_id=group.organisation_id,
        apply=apply,
        action=Action.GROUP_CHANGED,
        subject=f"group:{group.slug}",
        details={"leader": leader.handle},
        **request,
    )


def _exchange(group: Group, leader: Agent) -> None:
    members = Agent.objects.filter(group=group, active=True)
    new = members.filter(pk=leader.pk).first()
    if new is None:
        raise refuse(
            Code.INVALID_PARAMS,
            f"{leader.handle} is no active member of {group.slug}",
            "choose one of its members",
            rule="a member leads the group",
        )
    old = members.filter(is_leader=True).exclude(pk=new.pk).first()
    if old is None:
        Agent.objects.filter(pk=new.pk).update(is_leader=True)
        return
    above = old.reports_to_id if old.reports_to_id != new.pk else new.reports_to_id
    under = list(Agent.objects.filter(reports_to=old).exclude(pk=new.pk))
    shared = list(Agent.objects.filter(co_managers=old).exclude(pk=new.pk))
    Agent.objects.filter(pk=old.pk).update(
        is_leader=False, role=new.role, reports_to=new, name=f"leaves_{old.pk}"
    )
    Agent.objects.filter(pk=new.pk).update(
        is_leader=True, role=old.role, reports_to=above, name=old.name
    )
    Agent.objects.filter(pk=old.pk).update(name=new.name)  # free only now
    Agent.objects.filter(pk__in=[agent.pk for agent in under]).update(reports_to=new)
    for agent in shared:
        agent.co_managers.remove(old)
        agent.co_managers.add(new)
    new.co_managers.remove(old)
