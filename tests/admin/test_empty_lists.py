"""A list without rows says what will appear there and how to make it happen."""

import re
from html import unescape

import pytest
from django.contrib import admin
from django.test import Client
from django.utils import translation

from nexus_site.console.empty_lists import WHEN_EMPTY
from tests.admin.places import list_page

PAGES = [model for model in admin.site._registry if model._meta.label_lower in WHEN_EMPTY]
TOOL = re.compile(r"\b[a-z]+_[a-z_]+\b")
NO_TOOLS = frozenset({"board_email", "board_webhook"})


def words_of(html):
    found = re.search(r'<div class="nx-no-rows" id="empty">.*?</div>', html, re.DOTALL)
    return found and unescape(" ".join(re.sub(r"<[^>]+>", " ", found[0]).split()))


class TestEveryList:
    def test_has_a_sentence_of_its_own(self):
        labels = {model._meta.label_lower for model in admin.site._registry}
        assert labels == set(WHEN_EMPTY)
        texts = [str(text) for text in WHEN_EMPTY.values()]
        assert len(texts) == len(set(texts))

    @pytest.mark.parametrize("model", PAGES, ids=lambda model: model._meta.label_lower)
    def test_says_it_while_it_is_empty(self, admin_client, monkeypatch, model):
        page = admin.site._registry[model]
        monkeypatch.setattr(page, "get_queryset", lambda _: model._default_manager.none())
        html = admin_client.get(list_page(model), headers={"Host": "127.0.0.1"}).content.decode()
        assert str(WHEN_EMPTY[model._meta.label_lower]) in (words_of(html) or "")

    def test_names_only_tools_that_there_are(self):
        from toolbox.registry import REGISTRY

        known = {tool.name for tool in REGISTRY.all()} | NO_TOOLS
        for label, text in WHEN_EMPTY.items():
            assert set(TOOL.findall(str(text))) <= known, label


class TestAListThatIsFiltered:
    def test_says_that_nothing_matches_and_leads_to_all_rows(self, board, company):
        words = words_of(board.get("/admin/orgchart/agent/?q=nobody_of_this_name").content.decode())
        assert "Nothing matches" in words
        assert "Show all" in words

    def test_offers_to_add_only_to_who_may(self, board, observer, company):
        restricted = "/admin/orgchart/tooloverride/"
        assert f"{restricted}add/" in board.get(restricted).content.decode()
        assert "Add " in words_of(board.get(restricted).content.decode())
        assert "Add" not in words_of(observer.get(restricted).content.decode())

    def test_speaks_the_language_of_the_person(self, observer, company):
        with translation.override("zh-hans"):
            text = str(WHEN_EMPTY["orgchart.tooloverride"])
        client = Client(HTTP_HOST="127.0.0.1", HTTP_ACCEPT_LANGUAGE="zh-CN")
        client.cookies = observer.cookies
        assert text in words_of(client.get("/admin/orgchart/tooloverride/").content.decode())
        assert re.search("[\u4e00-\u9fff]", text)
