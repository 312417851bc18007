"""How the admin looks and what its pages may load: the theme's own settings."""

from typing import Any

from csp.constants import NONE, SELF
from django.templatetags.static import static
from django.utils.translation import gettext_lazy as _

INDIGO = {
    "50": "oklch(97% .02 275)",
    "100": "oklch(93.5% .04 275)",
    "200": "oklch(87.5% .07 275)",
    "300": "oklch(79% .11 275)",
    "400": "oklch(69% .16 275)",
    "500": "oklch(64% .18 275)",
    "600": "oklch(53% .2 275)",
    "700": "oklch(47% .19 275)",
    "800": "oklch(40% .16 275)",
    "900": "oklch(35% .12 275)",
    "950": "oklch(26% .09 275)",
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "NEXUS",
    "SITE_HEADER": "NEXUS",
    "SITE_SUBHEADER": _("Companies of agents"),
    "SITE_SYMBOL": "hub",
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda _request: static("nexus/icon.svg"),
        }
    ],
    "SITE_URL": None,
    "SHOW_LANGUAGES": True,
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "BORDER_RADIUS": "8px",
    "COLORS": {"primary": INDIGO},
    "STYLES": [
        lambda _request: static("nexus/admin.css"),
        lambda _request: static("nexus/desk.css"),
    ],
    "SCRIPTS": [
        lambda _request: static("nexus/desk.js"),
        lambda _request: static("nexus/live.js"),
    ],
    "LOGIN": {"form": "nexus_site.console.login.LoginForm"},
    "SIDEBAR": {
        "show_search": True,
        "command_search": True,
        "show_all_applications": False,
        "navigation": "nexus_site.console.navigation.sidebar",
    },
}


def lighten_lists() -> None:
    """Let the theme write one class into each cell of a list instead of thirty: a list of 50 rows
    would be 300 KB of classes. What they said is in `desk.css`.
    """
    from unfold.templatetags import unfold_list

    unfold_list.ROW_CLASSES[:] = ["nx-td"]
    unfold_list.LINK_CLASSES[:] = ["nx-td-link"]


CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, "'unsafe-eval'"],  # the theme's Alpine.js evaluates attributes
        "style-src": [SELF, "'unsafe-inline'"],  # the theme sets its colours inline
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    }
}
"""What pages may load: our own files alone, and what the theme cannot do without."""
