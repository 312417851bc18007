"""Markup in every text of every table, shown in a real browser: it is text, and nothing runs."""

from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.contrib.postgres.fields import ArrayField
from django.db import DatabaseError, connection, models, transaction

from core.permissions import PeopleGroup
from tests.admin.places import change_page, list_page

EVIL = '"><img src=x onerror=ran=1><script>ran=1</script>{{7*7}}'
ROOMS = [m for room in settings.ROOMS for m in apps.get_app_config(room).get_models()]
LEAST = 40
"""Columns that take markup; fewer, and the tables have outgrown this test."""


def stain():
    """Write markup into the first row's columns of text, where the database lets us; how many."""
    stained = 0
    for model in ROOMS:
        for field in model._meta.concrete_fields:
            if field.primary_key or field.is_relation or field.choices:
                continue
            value = None
            if isinstance(field, ArrayField) and isinstance(field.base_field, models.CharField):
                value = [EVIL]
            elif isinstance(field, models.CharField | models.TextField):
                value = EVIL
            if value is not None and model._default_manager.exists():
                stained += written(model, field.attname, value)
    return stained


def written(model, column, value):
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")  # what never changes too
            first = model._default_manager.first()
            return model._default_manager.filter(pk=first.pk).update(**{column: value})
    except DatabaseError:
        return False


def test_is_shown_as_it_was_written_and_never_runs(enter, company, live_server, complaints):
    page = enter(PeopleGroup.BOARD)
    assert stain() >= LEAST
    addresses = ["/admin/", "/admin/explain/", "/admin/tasks/task/measures/"]
    for model in ROOMS:
        row = model._default_manager.first() if model in admin.site._registry else None
        if row is not None:
            addresses += [list_page(model), change_page(row)]
    shown = 0
    for address in addresses:
        answer = page.goto(live_server.url + address, wait_until="domcontentloaded")
        assert answer.status == 200, address
        assert page.evaluate("window.ran") is None, address
        assert page.locator("img[src='x']").count() == 0, address
        text = page.locator("body").inner_text()
        assert "<script>ran=1</script>49" not in text, address
        shown += "<script>ran=1</script>{{7*7}}" in text
    assert shown >= 20
    assert complaints == []
