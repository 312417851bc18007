"""The pages of people's accounts; importing them registers them."""

from nexus_site.console import people_groups, users  # noqa: F401  they register their pages
