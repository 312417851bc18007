"""The navigation of the admin: the tables that a person may see, by subject."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from nexus_site.console.desk import badge

Section = tuple[str, tuple[tuple[str, ...], ...]]
"""A heading; of each item its title, icon, the table whose view right it needs, and its page."""

SECTIONS: tuple[Section, ...] = (
    (
        "What happens",
        (
            ("Mail", "mail", "mailroom.mail"),
            ("Blocked mail", "block", "mailroom.mailrejection"),
            ("Escalations", "escalator_warning", "mailroom.escalation"),
            ("Contracts", "contract", "contracts.contract"),
            ("Cases", "gavel", "governance.case"),
            ("Tasks", "task_alt", "tasks.task"),
            ("Task board", "view_kanban", "tasks.task", "tasks_task_board"),
            ("Task measures", "monitoring", "tasks.task", "tasks_task_measures"),
            ("Feedback", "reviews", "tasks.feedback"),
            ("Documents", "description", "documents.document"),
            ("Runs", "play_circle", "workspace.run"),
            ("Deployments", "rocket_launch", "workspace.deployment"),
            ("Images", "deployed_code", "workspace.imagebuild"),
        ),
    ),
    (
        "Permissions",
        (
            ("Organisations", "domain", "orgchart.organisation"),
            ("Agents", "smart_toy", "orgchart.agent"),
            ("Changes to confirm", "how_to_reg", "orgchart.pendingchange"),
            ("Roles", "badge", "orgchart.role"),
            ("Groups", "groups", "orgchart.group"),
            ("Contact rules", "conversion_path", "orgchart.contactrule"),
            ("Mail types", "stacked_email", "orgchart.mailtyperule"),
            ("Restricted tools", "lock", "orgchart.tooloverride"),
            ("Aliases", "alternate_email", "orgchart.alias"),
        ),
    ),
    (
        "Access",
        (
            ("Keys", "key", "orgchart.apikey"),
            ("Sessions", "terminal", "toolbox.session"),
            ("Temporary contact permissions", "swap_horiz", "mailroom.contactgrant"),
            ("Skills", "extension", "workspace.skill"),
            ("Repositories", "commit", "workspace.repository"),
            ("Delegated work", "stacks", "toolbox.frame"),
        ),
    ),
    (
        "The record",
        (
            ("Ledger", "receipt_long", "ledger.event"),
            ("Interventions", "pan_tool", "governance.intervention"),
            ("Violations", "report", "governance.violation"),
            ("Seals", "verified", "ledger.seal"),
            ("Scheduled jobs", "schedule", "toolbox.jobrun"),
            ("Pushes and merges", "merge", "workspace.branchmove"),
            ("Notices", "outgoing_mail", "mailroom.outgoingnotice"),
        ),
    ),
    (
        "People",
        (
            ("Users", "person", "auth.user"),
            ("Groups of people", "shield_person", "auth.group"),
        ),
    ),
)


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """The navigation of a person: only tables that exist and that they may see."""
    first = {"title": "Waiting for you", "icon": "inbox", "link": reverse("admin:index")}
    own: list[dict[str, Any]] = [first | badge(request)]
    if request.user.has_perm("orgchart.view_organisation"):
        own += [
            {"title": "Company", "icon": "account_tree", "link": reverse("admin:company")},
            {"title": "Contact matrix", "icon": "grid_on", "link": reverse("admin:matrix")},
            {"title": "Explain", "icon": "policy", "link": reverse("admin:explain")},
        ]
    if request.user.has_perm("ledger.view_event"):
        own.append({"title": "Live", "icon": "sensors", "link": reverse("admin:feed")})
    codes = {"title": "Second factor", "icon": "phonelink_lock"}
    own.append({**codes, "link": reverse("admin:confirmation_codes")})
    groups: list[dict[str, Any]] = [{"title": "", "items": own}]
    for title, tables in SECTIONS:
        items = [_item(*table) for table in tables if _may_see(request, table[2])]
        if items:
            groups.append({"title": title, "separator": True, "collapsible": False, "items": items})
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
    return {"title": title, "icon": icon, "link": reverse(f"admin:{name}")}
