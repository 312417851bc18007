"""Where pages are."""

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.urls import reverse

from orgchart.models import Agent, Organisation, Role

ROWS = 3
"""Rows of each table whose pages are opened."""


def list_page(model):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def page_of(row, kind):
    name = f"admin:{row._meta.app_label}_{row._meta.model_name}_{kind}"
    return reverse(name, args=[quote(row.pk)])


def change_page(row):
    return page_of(row, "change")


def act_page(row, act):
    return f"{change_page(row).removesuffix('change/')}{act}/"


def edit_page(agent):
    """The form of an agent, one click from its page."""
    return f"{change_page(agent)}?edit=1"


def addresses_of(model):
    """The pages of a table and of its newest rows."""
    page = admin.site._registry[model]
    yield list_page(model)
    yield f"{list_page(model)}add/"
    yield f"{list_page(model)}export/"
    for row in model._default_manager.order_by("-pk")[:ROWS]:
        yield change_page(row)
        if model is Agent:
            yield edit_page(row)
        yield page_of(row, "delete")
        yield page_of(row, "history")
        for act in getattr(page, "all_acts", list)():
            yield f"{change_page(row).removesuffix('change/')}{act.name}/"


def addresses_of_the_site():
    """Pages that belong to no table, of the two companies that are played."""
    nexus = Organisation.objects.get(slug="nexus").id
    team = Organisation.objects.get(slug="dev-team").id
    role = Role.objects.get(name="backend_worker", organisation=nexus).id
    worker = Agent.objects.get(handle="backend_worker", organisation=nexus).id
    boss = Agent.objects.get(handle="it_manager", organisation=nexus).id
    analysts = Role.objects.filter(offices__contains=["ANALYST"])
    cases = analysts.values_list("organisation", flat=True).first()
    hire = f"/admin/orgchart/agent/add/?organisation={nexus}"
    asked = f"/admin/explain/?organisation={nexus}&agent=backend_worker"
    return [
        "/admin/",
        f"/admin/company/?organisation={nexus}",
        f"/admin/matrix/?organisation={nexus}",
        f"/admin/matrix/?organisation={nexus}&of=agents&from=it_manager&to=hr_manager",
        "/admin/explain/",
        f"{asked}&ask=mail&recipient=ceo&type=info&contract=",
        f"{asked}&ask=mail&recipient=it_manager&type=info&contract=",
        f"{asked}&ask=tool&tool=send_mail&mode=chat_safe",
        "/admin/feed/",
        "/admin/confirmation-codes/",
        "/admin/password_change/",
        "/admin/search/?s=mail",
        "/admin/search/?s=MODE",
        f"/admin/tasks/task/board/?organisation={team}",
        f"/admin/tasks/task/measures/?organisation={team}",
        "/admin/ledger/event/verify/",
        "/admin/ledger/event/?q=today",
        f"/admin/governance/case/open/?organisation={cases}",
        "/admin/contracts/contract/issue/",
        f"/admin/contracts/contract/issue/?organisation={nexus}",
        hire,
        f"{hire}&role={role}",
        f"{hire}&role={role}&reports_to={boss}",
        f"/admin/orgchart/agent/{worker}/move/",
    ]
