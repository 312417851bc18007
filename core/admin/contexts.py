"""What every page of the admin needs around its own content."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from core.labels import Text


def admin_context(page: Any, request: HttpRequest, title: Text, **more: Any) -> dict[str, Any]:
    """The context of a page of the table that `page` administers: menu, title, table, and more."""
    request.current_app = page.admin_site.name
    return {**page.admin_site.each_context(request), "title": title, "opts": page.opts, **more}
