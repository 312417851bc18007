"""What the management commands of all rooms share."""

from __future__ import annotations

from django.core.management.base import CommandError

from orgchart.models import Organisation


def organisation_of(slug: str) -> Organisation:
    """The organisation of that name. Raises CommandError, which says what names there are."""
    found = Organisation.objects.filter(slug=slug).first()
    if found is None:
        known = ", ".join(Organisation.objects.order_by("slug").values_list("slug", flat=True))
        raise CommandError(f"there is no organisation {slug}; there are: {known or 'none'}")
    return found
