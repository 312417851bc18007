"""Rows of every state in Chinese: what a day of the company leaves out."""

import pytest
from django.apps import apps
from django.contrib import admin

from tests.admin.english import english_on, known_texts
from tests.admin.places import change_page, list_page, page_of
from tests.admin.rows import fill
from tests.browser.day import day_of

CHINESE = {"HTTP_ACCEPT_LANGUAGE": "zh-CN,zh;q=0.9"}
CODES = {"admin", "author", "body", "category", "source", "rating", "id"}
"""A source without a name, and the fields of a file of feedback."""
PAGES = ("/admin/tasks/feedback/take-in/", "/admin/workspace/skill/look-again/")


@pytest.fixture
def made(company):
    day_of(company)
    return fill(company)


def test_every_state_has_a_page_in_chinese(board, made):
    known, left = known_texts() | CODES, []
    for address in [*_addresses(made), *PAGES]:
        answer = board.get(address, follow=True, **CHINESE)
        assert answer.status_code == 200, address
        left += [f"{address}: {text[:200]}" for text in english_on(answer.content.decode(), known)]
    assert not left, "\n".join(left)


def _addresses(made):
    for row in made:
        yield change_page(row)
        yield page_of(row, "history")
        for act in getattr(admin.site._registry[type(row)], "all_acts", list)():
            yield f"{change_page(row).removesuffix('change/')}{act.name}/"
    for model in {type(row) for row in made}:
        yield list_page(model)
        yield f"{list_page(model)}export/"
    organisation = apps.get_model("orgchart.organisation").objects.get().id
    tasks, query = list_page(apps.get_model("tasks.task")), f"?organisation={organisation}"
    yield f"{tasks}board/{query}&deleted=1"
    yield f"{tasks}measures/{query}"
