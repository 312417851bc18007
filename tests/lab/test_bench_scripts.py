"""What pgbench executes is what the product executes."""

import pytest
from django.db import connection

from lab.bench import postgres
from ledger.models import Event
from mailroom.models import Mail
from tests.company import load_company


@pytest.mark.django_db
def test_the_script_of_send_mail_sends_a_mail():
    organisation = load_company("nexus").organisation
    ids = dict(organisation.agents.values_list("handle", "id"))
    with connection.cursor() as cursor:
        cursor.execute(postgres.send_script(organisation.id, ids).replace("%", "%%"), [])
    assert Mail.objects.get().recipient_id == ids["it_manager"]
    assert Event.objects.filter(for_agent_id=ids["it_manager"], tool="x").count() == 1
