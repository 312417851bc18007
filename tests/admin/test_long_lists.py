"""People's lists that are ranges of an index, in tables that are the worst for them."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib import admin, auth
from django.db import connection

from core.deeds import PeopleGroup
from mailroom.models import MailRejection
from tests.admin.places import list_page
from tests.plans import rows_touched

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAYS, A_DAY = 60, 100


@pytest.fixture
def blocked(nexus):
    """A hundred blocked mails on each of sixty days."""
    MailRejection.objects.bulk_create(
        MailRejection(
            organisation=nexus.organisation,
            from_agent="backend_worker",
            to_agent="ceo",
            mail_type="info",
            code="CONTACT_DENIED",
            reason="no contact",
            attempted_at=NOW - timedelta(days=DAYS - day, seconds=number),
        )
        for day in range(DAYS)
        for number in range(A_DAY)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE mailroom_mailrejection")


@pytest.mark.django_db
@pytest.mark.parametrize("is_of_one", [False, True])
def test_blocked_mails_of_a_past_day(nexus, blocked, rf, sign_in, is_of_one):
    day = (NOW - timedelta(days=50)).date().isoformat()
    asked = {"attempted_at_from_0": day, "attempted_at_to_0": day}
    if is_of_one:
        asked["organisation__id__exact"] = str(nexus.organisation.id)
    request = rf.get(list_page(MailRejection), asked)
    request.user = auth.get_user(sign_in(PeopleGroup.BOARD))
    found = admin.site.get_model_admin(MailRejection).get_changelist_instance(request).queryset
    assert found.count() == A_DAY
    assert rows_touched(*found[:50].query.sql_with_params()) <= 2 * A_DAY
    moments = [row.attempted_at for row in found[:50]]
    assert moments == sorted(moments, reverse=True)
