"""From a page's bytes to readable text."""

from __future__ import annotations

from workspace.web.fetching import Page
from workspace.web.rules import HTML

MOST_TEXT = 100_000
"""Characters of text in one answer."""


def readable(page: Page) -> tuple[str, str, bool]:
    """Title and text of a page, and whether the text was cut. Markup is left out."""
    source = _decoded(page)
    if page.kind not in HTML:
        return "", source[:MOST_TEXT], page.cut or len(source) > MOST_TEXT
    title, text = _extracted(source)
    return title, text[:MOST_TEXT], page.cut or len(text) > MOST_TEXT


def _extracted(source: str) -> tuple[str, str]:
    # Two seconds to import, so it is imported by the processes that read pages.
    from trafilatura import bare_extraction, html2txt, load_html

    tree = load_html(source)
    if tree is None:
        return "", ""
    title = str(tree.findtext(".//title") or "")
    found = bare_extraction(tree, include_comments=False, favor_recall=True)
    text = "" if found is None or isinstance(found, dict) else found.text
    return title, str(text or html2txt(source) or "")


def _decoded(page: Page) -> str:
    if page.charset:
        return page.body.decode(page.charset, "replace")
    if page.kind in HTML:
        from trafilatura.utils import decode_file

        return str(decode_file(page.body))
    return page.body.decode("utf-8", "replace")
