"""The product as it is served, and the hand-written views as Django serves them."""

from __future__ import annotations

from django.conf import settings
from django.test.utils import override_settings

from nexus_site.asgi import Site
from nexus_site.serving.bridge import Bridge, Receive, Scope, Send
from nexus_site.serving.handlers import PeopleHandler
from toolbox.faces.pools import pool_of

FLOORS = "/api/bench/"


class BenchSite(Site):
    """The floors have the product's server, threads and connections, and Django's own handler.

    That handler has no middleware: what a careful engineer would serve such a view with.
    """

    def __post_init__(self) -> None:
        """Build the way to the floors as well."""
        super().__post_init__()
        with override_settings(MIDDLEWARE=[]):
            self.floors = Bridge(
                handler=PeopleHandler(), threads=self.threads, limit=settings.NEXUS_MAX_BODY
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI conversation."""
        if scope["type"] == "http" and scope["path"].startswith(FLOORS):
            await self.floors(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


application = BenchSite(pool_of(settings.WEB_THREADS, "django"))
