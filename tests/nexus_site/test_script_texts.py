"""What the browser's scripts say: every text is marked, and pages carry it."""

import json
import re

from django.template import Context, Template
from django.utils.translation import override

from nexus_site.languages.scripts import FOLDER, script_texts, translated_texts

TAG = Template("{% load nexus %}{% texts_of_scripts %}")
SAID = re.compile(
    r"""(?:textContent|title|placeholder) = [^;\n]*?(?<!nexusText\()["'`][A-Z][a-z]+ """
    r"""|new Error\(["'`]|prompt\(["'`]"""
)
"""What looks like a text that a script shows without asking for its translation."""


def test_no_script_shows_another_text():
    for file in sorted(FOLDER.glob("*.js")):
        assert SAID.findall(file.read_text()) == [], file.name


def test_an_english_page_carries_none():
    with override("en"):
        assert translated_texts() == {}
        assert TAG.render(Context()) == ""


def test_a_chinese_page_carries_all_of_them():
    with override("zh-hans"):
        html = TAG.render(Context())
        carried = json.loads(re.search(r">(.*)</script>", html)[1])
        assert carried.keys() == script_texts()
        assert carried["Skip to the content"] == "跳到正文"
