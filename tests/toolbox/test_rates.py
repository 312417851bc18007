"""The rate of an agent's calls: exact for one process, never too many for several."""

import time

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from core.decision import Code, Denied
from orgchart.keys import revoke_key
from tests.company import load_company
from tests.contracts.world import at_once
from toolbox import authentication, rates
from toolbox.authentication import authenticate
from toolbox.models import RateBucket

ENOUGH = rates.LEAST_LEFT + rates.CALLS_AHEAD


@pytest.fixture
def company(transactional_db):
    return load_company("nexus")


def is_allowed(company, who="backend_worker"):
    try:
        authenticate(authorization=f"Bearer {company.key(who)}", session_id=None, request_id="test")
    except Denied as refusal:
        if refusal.deny.code is not Code.RATE_LIMITED:
            raise
        return False
    return True


def bucket():
    return RateBucket.objects.values_list("tokens", "taken").get()


@pytest.mark.django_db(transaction=True)
class TestABucket:
    def test_that_is_full_is_asked_once_for_many_calls(self, company, settings):
        settings.NEXUS_RATE_BURST, settings.NEXUS_RATE_PER_MINUTE = 300, 1
        for _ in range(rates.CALLS_AHEAD):
            assert is_allowed(company)
            tokens, taken = bucket()
            assert (round(tokens), taken) == (300 - rates.CALLS_AHEAD, rates.CALLS_AHEAD)
        assert is_allowed(company)
        assert round(bucket()[0]) == 300 - 2 * rates.CALLS_AHEAD

    def test_that_is_nearly_empty_is_asked_at_each_call(self, company, settings):
        settings.NEXUS_RATE_BURST, settings.NEXUS_RATE_PER_MINUTE = ENOUGH - 1, 1
        for number in (1, 2, 3):
            assert is_allowed(company)
            tokens, taken = bucket()
            assert (round(tokens), taken) == (ENOUGH - 1 - number, 1)

    @pytest.mark.parametrize("burst", [1, 2, 16, ENOUGH - 1, ENOUGH, ENOUGH + 1, 131])
    def test_gives_one_process_its_burst_exactly(self, company, settings, burst):
        settings.NEXUS_RATE_BURST, settings.NEXUS_RATE_PER_MINUTE = burst, 1
        ends = [is_allowed(company) for _ in range(burst + 20)]
        assert ends == [True] * burst + [False] * 20
        assert bucket()[1] == 0

    def test_gives_calls_at_once_its_burst_and_no_more(self, company, settings):
        settings.NEXUS_RATE_BURST, settings.NEXUS_RATE_PER_MINUTE = ENOUGH + 10, 1
        is_allowed(company)

        def some():
            return sum(is_allowed(company) for _ in range(16))

        assert sum(at_once([some] * 8)) == ENOUGH + 9

    def test_lets_no_call_pass_that_was_counted_ahead_once_the_key_is_revoked(
        self, company, settings
    ):
        settings.NEXUS_RATE_BURST = 300
        assert is_allowed(company)
        revoke_key(
            prefix=company.key("backend_worker")[:12],
            caller=company.system,
            now=timezone.now(),
            reason="lost",
        )
        with pytest.raises(Denied) as refusal:
            is_allowed(company)
        assert refusal.value.deny.code is Code.UNAUTHENTICATED


@pytest.mark.django_db(transaction=True)
class TestOwnerOfAKey:
    def test_is_known_once_the_key_was_proved(self, company, monkeypatch):
        monkeypatch.setattr(authentication, "_owners", {})
        key = f"Bearer {company.key('backend_worker')}"
        assert authentication.owner_of_key(key) is None
        assert is_allowed(company)
        worker = company.organisation.agents.get(handle="backend_worker")
        assert authentication.owner_of_key(key) == (worker.id, company.organisation.id)

    def test_is_known_once_the_key_was_looked_for(self, company, monkeypatch):
        """Before its first call waits in a turn."""
        monkeypatch.setattr(authentication, "_owners", {})
        key = f"Bearer {company.key('backend_worker')}"
        authentication.meet_owner(key)
        worker = company.organisation.agents.get(handle="backend_worker")
        assert authentication.owner_of_key(key) == (worker.id, company.organisation.id)

    def test_is_unknown_once_the_key_was_refused(self, company):
        """Else who has a revoked key keeps the agent waiting that it belonged to."""
        key = f"Bearer {company.key('backend_worker')}"
        assert is_allowed(company)
        assert authentication.owner_of_key(key) is not None
        revoke_key(
            prefix=company.key("backend_worker")[:12],
            caller=company.system,
            now=timezone.now(),
            reason="stolen",
        )
        with pytest.raises(Denied) as refusal:
            is_allowed(company)
        assert refusal.value.deny.code is Code.UNAUTHENTICATED
        assert authentication.owner_of_key(key) is None
        authentication.meet_owner(key)
        assert authentication.owner_of_key(key) is None

    @pytest.mark.parametrize("key", ["", "Bearer", "Bearer nxs_unknown", "Basic nxs_x", "\x00"])
    def test_is_nobody_for_what_was_never_proved(self, key):
        authentication.meet_owner(key)
        assert authentication.owner_of_key(key) is None


@pytest.mark.django_db(transaction=True)
class TestSeveralProcesses:
    @pytest.mark.parametrize("turns", ["ab" * 100, "a" * 40 + "b" * 160, "aaab" * 50, "abc" * 70])
    def test_never_let_more_pass_and_few_less(self, company, settings, turns, monkeypatch):
        settings.NEXUS_RATE_BURST, settings.NEXUS_RATE_PER_MINUTE = 120, 1
        ahead = {name: rates.CallsAhead() for name in set(turns)}
        allowed = 0
        for name in turns:
            monkeypatch.setattr(rates, "AHEAD", ahead[name])
            allowed += is_allowed(company)
        assert 120 - (len(ahead) - 1) * (rates.CALLS_AHEAD - 1) <= allowed <= 120

    def test_add_nothing_to_a_bucket_that_is_full_again(self, company, settings, monkeypatch):
        settings.NEXUS_RATE_BURST, settings.NEXUS_RATE_PER_MINUTE = 200, 1
        ahead = [rates.CallsAhead() for _ in range(6)]
        for process in ahead:
            monkeypatch.setattr(rates, "AHEAD", process)
            assert is_allowed(company)
        RateBucket.objects.update(tokens=200)
        later = time.monotonic() + 200 * 60
        monkeypatch.setattr(time, "monotonic", lambda: later)
        allowed = 0
        for process in ahead * 40:
            monkeypatch.setattr(rates, "AHEAD", process)
            allowed += is_allowed(company)
        assert 200 - 5 * (rates.CALLS_AHEAD - 1) <= allowed <= 200


class TestCallsCountedAhead:
    def test_are_forgotten_as_their_tokens_come_back(self):
        ahead = rates.CallsAhead()
        ahead.put(b"key", 15, full_at=time.monotonic() + 1000)
        assert [ahead.take(b"key", 3.5 / 1000) for _ in range(4)] == [True, True, True, False]

    @given(st.lists(st.one_of(st.integers(0, 15), st.just("take")), max_size=60))
    def test_are_each_used_once(self, steps):
        ahead, left = rates.CallsAhead(), 0
        for step in steps:
            if step == "take":
                assert ahead.take(b"key", 1) == (left > 0)
                left = max(0, left - 1)
            else:
                ahead.put(b"key", step, full_at=time.monotonic() + 10_000)
                left += step
            assert not ahead.take(b"other", 1)
