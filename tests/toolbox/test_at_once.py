"""Calls of one agent at the same moment: one key, one session, one bucket, one revocation."""

from collections import Counter

import pytest
from django.db import transaction
from django.utils import timezone

from ledger.models import Event
from mailroom.models import Mail
from orgchart.keys import revoke_key
from tests.company import load_company
from tests.contracts.world import at_once
from toolbox import door, idempotency
from toolbox.authentication import authenticate
from toolbox.models import IdempotencyRecord, Session

pytestmark = pytest.mark.django_db(transaction=True)

MAIL = {"to": "it_manager", "type": "info", "subject": "Hello", "body": "A word."}


@pytest.fixture
def company(transactional_db):
    return load_company("nexus")


def caller(company, who="backend_worker"):
    return authenticate(
        authorization=f"Bearer {company.key(who)}", session_id=None, request_id="test"
    )


def called(company, tool, params, key=None):
    who = caller(company)
    return lambda: door.call(who, tool, params, now=timezone.now(), idempotency_key=key)


class TestOneIdempotencyKey:
    def test_does_the_work_once_and_answers_everybody_alike(self, company):
        answers = at_once([called(company, "send_mail", MAIL, "once")] * 8)
        assert {a.status for a in answers} == {200}
        assert len({a.body["result"]["mail_id"] for a in answers}) == 1
        assert Mail.objects.count() == IdempotencyRecord.objects.count() == 1

    def test_with_different_bodies_does_one_of_them(self, company):
        bodies = [{**MAIL, "body": str(n)} for n in range(6)]
        answers = at_once([called(company, "send_mail", body, "once") for body in bodies])
        codes = Counter(a.body.get("error_code", "OK") for a in answers)
        assert codes == {"OK": 1, "IDEMPOTENCY_MISMATCH": 5}
        assert Mail.objects.count() == 1

    def test_of_a_refused_call_is_refused_to_all_and_kept_once(self, company):
        refused = {**MAIL, "to": "ceo"}
        answers = at_once([called(company, "send_mail", refused, "once")] * 6)
        assert {a.body["error_code"] for a in answers} == {"CONTACT_DENIED"}
        assert IdempotencyRecord.objects.count() == 1
        assert Event.objects.filter(decision="deny").count() == 1

    def test_that_its_call_gives_back_meanwhile_is_claimed_by_the_next(self, company, monkeypatch):
        """As where two repeat a search that no driver answers, whose refusal is not kept."""
        first, claim = caller(company, "research_worker"), idempotency.fetch_row
        with transaction.atomic():
            idempotency.begin(first.calling("web_search", {}), "once", {}, now=timezone.now())

        def claim_and_give_back(*statement):
            claimed = claim(*statement)
            idempotency.release(first, "once")
            monkeypatch.setattr(idempotency, "fetch_row", claim)
            return claimed

        monkeypatch.setattr(idempotency, "fetch_row", claim_and_give_back)
        searched = door.call(
            first, "web_search", {"query": "x"}, now=timezone.now(), idempotency_key="once"
        )
        assert searched.body["error_code"] == "DRIVER_UNAVAILABLE"

    def test_of_a_refused_call_and_another_leaves_every_refusal_in_the_ledger(self, company):
        seen = Counter()
        for n in range(8):
            refused = called(company, "send_mail", {**MAIL, "to": "ceo"}, f"once{n}")
            other = called(company, "current_time", {}, f"once{n}")
            answers = at_once([refused, other, other])
            codes = Counter(a.body.get("error_code", "OK") for a in answers)
            del codes["OK"]
            kept = Counter(Event.objects.filter(decision="deny").values_list("code", flat=True))
            seen += codes
            assert kept == seen


class TestAFirstCall:
    def test_of_many_at_once_makes_one_standing_session(self, company):
        company.key("backend_worker")
        sessions = at_once([lambda: caller(company).session.id] * 8)
        assert len(set(sessions)) == 1
        assert Session.objects.filter(standing=True).count() == 1


class TestTheBucket:
    def test_gives_its_burst_and_no_more_to_many_at_once(self, company, settings):
        settings.NEXUS_RATE_BURST, settings.NEXUS_RATE_PER_MINUTE = 10, 1
        company.key("backend_worker")
        ends = at_once([lambda: caller(company).handle] * 16)
        assert Counter(map(str, ends)) == {"backend_worker": 10, "RATE_LIMITED": 6}


class TestARevocation:
    def test_lets_a_call_be_before_or_after_and_never_half(self, company):
        key = company.key("backend_worker")
        proof = f"Bearer {key}"

        def call():
            who = authenticate(authorization=proof, session_id=None, request_id="test")
            return door.call(who, "send_mail", MAIL, now=timezone.now()).status

        def revoke():
            revoke_key(prefix=key[:12], caller=company.system, now=timezone.now(), reason="lost")
            return "revoked"

        ends = at_once([call, call, revoke, call, call])
        assert set(map(str, ends)) <= {"200", "UNAUTHENTICATED", "revoked"}
        assert Mail.objects.count() == ends.count(200)
        assert Event.objects.filter(action="mail.delivered").count() == ends.count(200)
        with pytest.raises(Exception, match="revoked"):
            call()
