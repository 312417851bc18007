"""What the pages say is there is there: links, commands, settings, tools, words."""

import re

import pytest
from django.conf import settings

from toolbox.registry import REGISTRY

ROOT = settings.BASE_DIR
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
README = (ROOT / "README.md").read_text("utf-8")
SECRETLY = {"TEST_DATABASE", "DEBUG", "ROOT_URLCONF", "NEXUS_ENV"}
"""Settings for tests and for development that a README's reader does not need."""


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))
    inside = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in inside if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_exists(page):
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = page.read_text("utf-8")
    named = re.findall(r"`make ([a-z]+)`", text) + re.findall(
        r"^    make ([a-z]+)", text, re.MULTILINE
    )
    assert set(named) <= targets


def test_the_readme_names_every_setting_of_the_environment():
    source = (ROOT / "nexus_site" / "settings.py").read_text("utf-8")
    read = set(re.findall(r"""env\.\w+\(\s*"([A-Z_]+)\"""", source))
    assert read - SECRETLY - {name for name in read if f"`{name}`" in README} == set()


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "clients").glob("*.md")), ids=name_of)
def test_every_tool_that_a_client_is_shown_exists(page):
    text = page.read_text("utf-8")
    shown = re.findall(r"^    as \w+ (\w+)", text, re.MULTILINE)
    assert {name for name in shown if REGISTRY.get(name) is None} == set()
