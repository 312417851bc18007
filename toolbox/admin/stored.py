"""What an organisation's agents have stored in all, in words for its page."""

from __future__ import annotations

from django.utils.formats import number_format
from django.utils.translation import gettext

from core.admin.units import size
from core.labels import Text
from orgchart.admin.organisations import about_organisation
from orgchart.models import Organisation
from orgchart.organisation_settings import merged
from toolbox.quotas.limits import total_quotas
from toolbox.quotas.stored import stored_by


@about_organisation.join
def describe_stored(organisation: Organisation) -> list[Text]:
    """Bytes and rows with their limits (Spec: settings 6)."""
    used, limits = stored_by(organisation.id), total_quotas(merged(organisation.settings))
    bytes_, most = (size(n) for n in (used[0], limits[0].limit))
    rows, most_rows = (number_format(n, force_grouping=True) for n in (used[1], limits[1].limit))
    return [
        gettext("%(used)s of at most %(limit)s") % {"used": bytes_, "limit": most},
        gettext("%(used)s of at most %(limit)s calls that write")
        % {"used": rows, "limit": most_rows},
    ]
