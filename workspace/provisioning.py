"""Preparing an installation for its agents' hands: folders, homes and users; again and again."""

from __future__ import annotations

import os

from orgchart.models import Agent, Organisation
from workspace.homes import make_company, make_home
from workspace.users import user_of


def provision() -> list[str]:
    """Make what is missing for every organisation and active agent; what was done, in words.

    Spec: files 20. Run again, it does nothing. Raises Denied where user numbers are used up,
    PermissionError where a home belongs to another user.
    """
    done = []
    for organisation in Organisation.objects.order_by("slug"):
        done += make_company(organisation.slug)
        for agent in Agent.objects.filter(organisation=organisation, active=True):
            done += make_home(organisation.slug, agent.handle, user_of(agent.id))
    return done


def who_agents_are() -> str:
    """Which users agents have here, in words."""
    if os.geteuid() == 0:
        return "each agent has its own operating-system user"
    return (
        f"agents share the user {os.geteuid()}, because this is not root; "
        "each agent's own user needs a server that runs as root"
    )
