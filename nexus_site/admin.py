"""The pages of people's accounts; importing them registers them."""

from nexus_site.console import users  # noqa: F401  registers its pages
