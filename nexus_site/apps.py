"""The wiring as a Django app: its commands, its logs."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
from django.db.models.signals import post_migrate


class SiteConfig(AppConfig):
    """What belongs to the whole site and to no room."""

    name = "nexus_site"
    verbose_name = "Site"

    def ready(self) -> None:
        """Give groups their rights after every migration; record and check how people sign in;
        forget the rules of another server.
        """
        from axes.signals import user_locked_out
        from django.contrib.auth.signals import user_logged_in, user_login_failed

        from governance.interventions.confirmation_codes import proves_password
        from nexus_site.company import agent_page  # noqa: F401  joins the page of an agent
        from nexus_site.console import signing_in
        from nexus_site.console.group_rights import grant
        from nexus_site.console.theme import lighten_lists
        from nexus_site.languages.names import translate_names
        from nexus_site.run.database.base import server_changed
        from orgchart.policy_cache import POLICIES

        proves_password.join(signing_in.proves_password)
        server_changed.join(POLICIES.clear)
        signing_in.keep_given_time()
        translate_names()
        lighten_lists()
        post_migrate.connect(grant, dispatch_uid="nexus_site.console.group_rights")
        user_logged_in.connect(signing_in.on_signed_in, dispatch_uid="nexus_site.signed_in")
        user_login_failed.connect(signing_in.on_failed, dispatch_uid="nexus_site.failed")
        user_locked_out.connect(signing_in.on_locked_out, dispatch_uid="nexus_site.locked_out")


class ConsoleConfig(AppConfig):
    """Before Django's own apps: its commands take the place of theirs."""

    name = "nexus_site.console"
    verbose_name = "Console"


class PeopleAdminConfig(AdminConfig):
    """Django's admin with our site in it."""

    default = False
    default_site = "nexus_site.console.site.PeopleSite"
