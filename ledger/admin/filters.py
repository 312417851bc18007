"""What the list of events is filtered by, and how organisations are called there."""

from collections.abc import Mapping
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import DropdownFilter

from core.admin.browsing import (
    PrefixFilter,
    RecentFilter,
    filter_by,
    number,
)
from core.admin.happened import sentence_of
from core.hooks import Hook
from core.people import signed_in
from ledger.models import Event

organisation_names: Hook[[], Mapping[int, str]] = Hook("how organisations are called")


def names_of_organisations() -> dict[int, str]:
    """The organisations by id; a higher room knows their names, this one does not."""
    return {key: name for names in organisation_names() for key, name in names.items()}


# The organisations with events, found by skipping along the index from one to the next.
ORGANISATIONS = """
WITH RECURSIVE found AS (
    (SELECT organisation_id AS id FROM ledger_event
     WHERE organisation_id IS NOT NULL ORDER BY organisation_id LIMIT 1)
    UNION ALL
    SELECT (SELECT e.organisation_id FROM ledger_event e
            WHERE e.organisation_id > found.id ORDER BY e.organisation_id LIMIT 1)
    FROM found WHERE found.id IS NOT NULL
)
SELECT id FROM found WHERE id IS NOT NULL ORDER BY id
"""


class ActionFilter(RecentFilter):
    """What happened."""

    title = _("action")
    parameter_name = "action"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the actions by their words."""
        actions = [value for value, _ in super().lookups(request, model_admin)]
        return sorted(((each, sentence_of(each)) for each in actions), key=lambda pair: pair[1])


BY_CODE = filter_by(RecentFilter, "code", _("code"))


BY_TOOL = filter_by(RecentFilter, "tool", _("tool"))


class OrganisationFilter(DropdownFilter):
    """Whose event."""

    title = _("organisation")
    parameter_name = "organisation"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the person's organisations that have events, by name."""
        names, who = names_of_organisations(), signed_in(request)
        with connection.cursor() as cursor:
            cursor.execute(ORGANISATIONS)
            found = [key for (key,) in cursor.fetchall() if who.is_member_of(key)]
        return [(str(key), names.get(key, str(key))) for key in found]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Event]) -> QuerySet[Event]:
        """Keep the events of the chosen organisation."""
        chosen = self.value()
        return queryset.filter(organisation_id=number(chosen)) if chosen else queryset


BY_ACTOR = filter_by(PrefixFilter, "actor", _("actor"))
