"""The navigation of the admin: the tables that a person may see, by subject."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from nexus_site.console.desk import badge

Section = tuple[str, tuple[tuple[str, ...], ...]]
"""A heading; of each item its title, icon, the table whose view right it needs, and its page."""

SECTIONS: tuple[Section, ...] = (
    (
        _("What happens"),
        (
            (_("Mail"), "mail", "mailroom.mail"),
            (_("Blocked mail"), "block", "mailroom.mailrejection"),
            (_("Escalations"), "escalator_warning", "mailroom.escalation"),
            (_("Contracts"), "contract", "contracts.contract"),
            (_("Cases"), "gavel", "governance.case"),
            (_("Tasks"), "task_alt", "tasks.task"),
            (_("Task board"), "view_kanban", "tasks.task", "tasks_task_board"),
            (_("Task measures"), "monitoring", "tasks.task", "tasks_task_measures"),
            (_("Feedback"), "reviews", "tasks.feedback"),
            (_("Documents"), "description", "documents.document"),
            (_("Runs"), "play_circle", "workspace.run"),
            (_("Deployments"), "rocket_launch", "workspace.deployment"),
            (_("Images"), "deployed_code", "workspace.imagebuild"),
        ),
    ),
    (
        _("Permissions"),
        (
            (_("Organisations"), "domain", "orgchart.organisation"),
            (_("Agents"), "smart_toy", "orgchart.agent"),
            (_("Changes to confirm"), "how_to_reg", "orgchart.pendingchange"),
            (_("Roles"), "badge", "orgchart.role"),
            (_("Groups"), "groups", "orgchart.group"),
            (_("Contact rules"), "conversion_path", "orgchart.contactrule"),
            (_("Mail types"), "stacked_email", "orgchart.mailtyperule"),
            (_("Restricted tools"), "lock", "orgchart.tooloverride"),
            (_("Aliases"), "alternate_email", "orgchart.alias"),
        ),
    ),
    (
        _("Access"),
        (
            (_("Keys"), "key", "orgchart.apikey"),
            (_("Sessions"), "terminal", "toolbox.session"),
            (_("Temporary contacts"), "swap_horiz", "mailroom.contactgrant"),
            (_("Skills"), "extension", "workspace.skill"),
            (_("Repositories"), "commit", "workspace.repository"),
            (_("Delegated work"), "stacks", "toolbox.frame"),
        ),
    ),
    (
        _("The record"),
        (
            (_("Ledger"), "receipt_long", "ledger.event"),
            (_("Interventions"), "pan_tool", "governance.intervention"),
            (_("Violations"), "report", "governance.violation"),
            (_("Seals"), "verified", "ledger.seal"),
            (_("Scheduled jobs"), "schedule", "toolbox.jobrun"),
            (_("Pushes and merges"), "merge", "workspace.branchmove"),
            (_("Notices"), "outgoing_mail", "mailroom.outgoingnotice"),
        ),
    ),
    (
        _("People"),
        (
            (_("Users"), "person", "auth.user"),
            (_("Groups of people"), "shield_person", "auth.group"),
        ),
    ),
)


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """The navigation of a person: only tables that exist and that they may see."""
    first = {"title": gettext("Waiting for you"), "icon": "inbox", "link": reverse("admin:index")}
    own: list[dict[str, Any]] = [first | badge(request)]
    if request.user.has_perm("orgchart.view_organisation"):
        own += [
            {"title": gettext("Company"), "icon": "account_tree", "link": reverse("admin:company")},
            {
                "title": gettext("Contact matrix"),
                "icon": "grid_on",
                "link": reverse("admin:matrix"),
            },
            {"title": gettext("Explain"), "icon": "policy", "link": reverse("admin:explain")},
        ]
    if request.user.has_perm("ledger.view_event"):
        own.append({"title": gettext("Live"), "icon": "sensors", "link": reverse("admin:feed")})
    codes = {"title": gettext("Second factor"), "icon": "phonelink_lock"}
    own.append({**codes, "link": reverse("admin:confirmation_codes")})
    own.append({"title": "API", "icon": "api", "link": reverse("api_docs")})
    groups: list[dict[str, Any]] = [{"title": "", "items": own}]
    for title, tables in SECTIONS:
        items = [_item(*table) for table in tables if _may_see(request, table[2])]
        if items:
            groups.append(
                {"title": gettext(title), "separator": True, "collapsible": False, "items": items}
            )
    _mark([item for group in groups for item in group["items"]], request.path)
    return groups


def _mark(items: list[dict[str, Any]], path: str) -> None:
    """Mark the one item that leads nearest to the page that is open."""
    index = reverse("admin:index")
    links = [item["link"] for item in items]
    leading = [one for one in links if path == one or (one != index and path.startswith(one))]
    nearest = max(leading, key=len, default="")
    for item in items:
        item["active"] = item["link"] == nearest


def _may_see(request: HttpRequest, label: str) -> bool:
    room, _, model = label.partition(".")
    found = apps.all_models[room].get(model)
    page = admin.site._registry.get(found) if found else None  # noqa: SLF001  Django's public name
    return page is not None and page.has_view_permission(request)


def _item(title: str, icon: str, label: str, page: str = "") -> dict[str, Any]:
    name = page or f"{label.replace('.', '_')}_changelist"
    return {"title": gettext(title), "icon": icon, "link": _address_of(name)}


@cache
def _address_of(name: str) -> str:
    """Asked for each of fifty items of every page, and never another."""
    return reverse(f"admin:{name}")
