"""Where pages are."""

from django.contrib.admin.utils import quote
from django.urls import reverse


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
