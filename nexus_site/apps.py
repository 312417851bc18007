"""The wiring as a Django app: its commands, its logs."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
from django.db.models.signals import post_migrate


class SiteConfig(AppConfig):
    """What belongs to the whole site and to no room."""

    name = "nexus_site"
    verbose_name = "Site"

    def ready(self) -> None:
        """See that the humans' groups have their rights after every migration."""
        from nexus_site.console.rights import grant

        post_migrate.connect(grant, dispatch_uid="nexus_site.console.rights")


class PeopleAdminConfig(AdminConfig):
    """Django's admin with our site in it."""

    default = False
    default_site = "nexus_site.console.site.PeopleSite"
