"""A form that makes something makes it once, whatever else its person sends at that moment."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.sessions.backends.db import SessionStore
from django.db import connections

from core.admin.once import OnceForm, SentBefore, make_once
from tests.concurrency import is_waiting_for_a_lock
from tests.patience import wait_until


@pytest.fixture
def send(rf, transactional_db):
    """Send a form of one session; each request reads the session anew."""
    kept = SessionStore()
    kept.create()

    def sent(form, make=lambda: True):
        request = rf.post("/")
        request.session = SessionStore(kept.session_key)
        request._messages = CookieStorage(request)
        return make_once(request, form, make)

    return sent


def a_form():
    form = OnceForm(
        {"number": OnceForm().get_initial_for_field(OnceForm.base_fields["number"], "number")}
    )
    assert form.is_valid()
    return form


def test_two_forms_at_once_are_both_known_afterwards(send):
    first, second = a_form(), a_form()

    def send_second():
        try:
            return send(second)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as other:

        def make():
            answer = other.submit(send_second)
            wait_until(lambda: answer.done() or is_waiting_for_a_lock())
            return answer

        assert send(first, make).result()
    for form in (first, second):
        with pytest.raises(SentBefore):
            send(form)
