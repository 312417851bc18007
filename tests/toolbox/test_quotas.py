"""How much an agent can make the installation store."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ledger.models import Event
from toolbox import idempotency
from toolbox.models import IdempotencyRecord, Session, Usage
from toolbox.registry import REGISTRY
from toolbox.schedule import delete_expired_answers

READ = next(tool.name for tool in REGISTRY.all() if tool.name == "list_contracts")
LARGE = {"type": "info", "subject": "Large", "body": "x" * 9000}


@pytest.fixture
def mail(nexus):
    return lambda who="ceo", to="it_manager", **h: nexus.call(who, "send_mail", h, to=to, **LARGE)


@pytest.mark.django_db
class TestBytes:
    @pytest.mark.parametrize(
        ("setting", "what"),
        [
            ("NEXUS_BYTES_PER_MINUTE", "bytes that an agent writes in a minute"),
            ("NEXUS_BYTES_PER_DAY", "bytes that an agent writes in a day"),
            ("NEXUS_ORGANISATION_BYTES_PER_DAY", "bytes that an organisation writes in a day"),
        ],
    )
    def test_end_where_the_quota_does(self, nexus, mail, settings, setting, what):
        setattr(settings, setting, 20_000)
        answers = [mail() for _ in range(4)]
        assert [answer.status for answer in answers] == [200, 200, 429, 429]
        refused = answers[-1].body
        assert refused["error_code"] == "QUOTA_EXCEEDED"
        assert refused["details"]["what"] == what
        assert refused["details"]["limit"] == 20_000
        assert 18_000 < refused["details"]["used"] <= 20_000
        assert Event.objects.filter(code="QUOTA_EXCEEDED").count() == 2

    def test_of_one_agent_leave_its_neighbour_unharmed(self, nexus, mail, settings):
        settings.NEXUS_BYTES_PER_MINUTE = 10_000
        assert [mail().status for _ in range(2)] == [200, 429]
        assert mail("it_manager", "backend_worker").status == 200

    def test_of_another_minute_do_not_count(self, nexus, mail, settings):
        settings.NEXUS_BYTES_PER_MINUTE = 10_000
        assert [mail().status for _ in range(2)] == [200, 429]
        Usage.objects.update(minute=timezone.now() - timedelta(minutes=5))
        assert mail().status == 200

    def test_are_forgotten_after_a_day(self, nexus, mail):
        mail()
        delete_expired_answers(timezone.now())
        assert Usage.objects.count() == 1
        delete_expired_answers(timezone.now() + timedelta(days=1, minutes=1))
        assert not Usage.objects.exists()

    def test_of_small_calls_are_bounded_by_their_rate(self, nexus):
        nexus.call("ceo", "send_mail", to="it_manager", type="info", subject="a", body="b")
        assert Event.objects.filter(action="mail.delivered").exists()
        assert not Usage.objects.exists()


@pytest.mark.django_db
class TestSessions:
    def test_end_where_the_quota_does(self, nexus, settings):
        settings.NEXUS_SESSIONS_PER_DAY = 3
        opened = [nexus.post("/api/v1/sessions", {}, "ceo").status for _ in range(6)]
        assert opened.count(201) <= 3
        assert opened[-1] == 429
        assert Session.objects.filter(agent__handle="ceo").count() <= 3


@pytest.mark.django_db
class TestAnswers:
    def test_of_tools_that_only_read_are_not_kept(self, nexus, mail):
        key = {"Idempotency-Key": "k"}
        first = nexus.call("ceo", READ, key)
        assert IdempotencyRecord.objects.get().answer is None
        assert nexus.call("ceo", READ, key).body == first.body
        assert mail(**key).body["error_code"] == "IDEMPOTENCY_MISMATCH"

    def test_that_are_large_are_not_kept_and_not_done_again(self, nexus, mail, monkeypatch):
        monkeypatch.setattr(idempotency, "LARGEST", 10)
        key = {"Idempotency-Key": "once"}
        assert mail(**key).status == 200
        again = mail(**key)
        assert (again.status, again.body["error_code"]) == (409, "IDEMPOTENCY_MISMATCH")
        assert IdempotencyRecord.objects.get().answer is None
        assert Event.objects.filter(action="mail.delivered").count() == 1
