"""What an organisation stores in all, and its quotas, on its page."""

import pytest
from django.core.management import call_command

from core.permissions import PeopleGroup
from tests.admin.places import change_page
from toolbox.models import Stored

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("group", [PeopleGroup.BOARD, PeopleGroup.OBSERVER])
@pytest.mark.parametrize(
    ("language", "bytes_", "calls"),
    [
        ("en", "1.6 GB of at most 100 GB", "1,234,567 of at most 100,000,000 calls"),
        ("zh-hans", "1.6 GB，上限 100 GB", "1,234,567 次写入调用，上限 100,000,000 次"),
    ],
)
def test_is_shown_to_people(nexus, sign_in, settings, group, language, bytes_, calls):
    settings.NEXUS_ORGANISATION_BYTES = 100_000_000_000
    settings.NEXUS_ORGANISATION_ROWS = 100_000_000
    organisation = nexus.organisation
    for number, share in enumerate((1, 2)):
        Stored.objects.create(
            agent_id=10_000 + number,
            organisation_id=organisation.id,
            bytes=share * 536_870_912,
            rows=share * 400_000 + number * 34_567,
        )
    client = sign_in(group)
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = language
    text = client.get(change_page(organisation)).content.decode().replace("\xa0", " ")
    assert bytes_ in text
    assert calls in text


def test_each_quota_shows_what_it_allows_now(nexus, sign_in, settings):
    settings.NEXUS_SESSIONS_PER_DAY = 1200
    call_command("org", "set", "nexus", "bytes_per_day=3000000")
    text = sign_in(PeopleGroup.BOARD).get(change_page(nexus.organisation)).content.decode()
    assert "<b>Now 3 MB</b>" in text
    assert "<b>Now 1,200</b>" in text
