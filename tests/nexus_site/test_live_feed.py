"""The live feed: who may watch, each event once, by filter, and the end of a stream."""

import asyncio

import pytest
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.auth.models import Permission
from django.contrib.sessions.backends.db import SessionStore
from django.http import QueryDict
from django.utils import timezone
from django_otp import DEVICE_ID_SESSION_KEY
from django_otp.plugins.otp_totp.models import TOTPDevice

from core.actions import Action
from core.events import Event
from ledger.services import record_alone
from nexus_site.live import stream
from nexus_site.live.events import PageWatcher, organisations_watched, session_of, watching_user
from orgchart.models import Membership, Organisation
from tests.people import join


def happen(actor="agent:ceo", **more):
    return record_alone(Event(action=Action.MAIL_DELIVERED, actor=actor, at=timezone.now(), **more))


def watcher(query=""):
    made = PageWatcher(QueryDict(query), None)
    made.begin()
    return made


def seqs(found):
    return [event["seq"] for event in found]


@pytest.fixture
def person(db):
    user = get_user_model().objects.create_user("olga", password="x", is_staff=True)
    join(user)
    user.user_permissions.add(Permission.objects.get(codename="view_event"))
    return user


def session_for(user):
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return session.session_key


class TestWhoMayWatch:
    def test_is_signed_in_and_may_read_the_ledger(self, person):
        assert watching_user(session_for(person)) == "olga"

    def test_is_not_a_stranger(self, db):
        assert watching_user("") == ""
        assert watching_user("x" * 32) == ""

    def test_has_the_second_factor_that_the_session_was_opened_with(self, person, settings):
        settings.REQUIRE_SECOND_FACTOR = "everybody"
        device = TOTPDevice.objects.create(user=person, name="phone", confirmed=True)
        session = SessionStore(session_for(person))
        assert watching_user(session.session_key) == ""
        session[DEVICE_ID_SESSION_KEY] = device.persistent_id
        session.save()
        assert watching_user(session.session_key) == "olga"
        device.delete()
        assert watching_user(session.session_key) == ""

    @pytest.mark.parametrize("field", ["is_active", "is_staff"])
    def test_is_not_who_was_shut_out(self, person, field):
        cookie = session_for(person)
        setattr(person, field, False)
        person.save()
        assert watching_user(cookie) == ""

    def test_is_not_who_may_not_read_the_ledger(self, person):
        cookie = session_for(person)
        person.user_permissions.clear()
        assert watching_user(cookie) == ""

    def test_is_known_by_the_session_cookie_only(self):
        assert session_of({b"cookie": b"a=1; nexus_session=abc; b=2"}) == "abc"
        assert session_of({b"cookie": b"xnexus_session=abc"}) == ""
        assert session_of({}) == ""


class TestTheFeed:
    def test_begins_now_and_gives_each_event_once(self, db):
        happen()
        watching = watcher()
        assert watching.read() == []
        new = [happen(), happen()]
        assert seqs(watching.read()) == new
        assert watching.read() == []

    def test_keeps_to_its_filters(self, db):
        refused = watcher("decision=deny")
        named = watcher("q=qa_worker")
        other = watcher("organisation=12345")
        happen()
        bad = happen(decision="deny", code="NOT_YOURS")
        mine = happen(actor="agent:qa_worker")
        assert seqs(refused.read()) == [bad]
        assert seqs(named.read()) == [mine]
        assert other.read() == []


class TestALook:
    """Nothing is sent to somebody who may not see it any more."""

    @pytest.fixture
    def cookie(self, person):
        return session_for(person)

    @pytest.fixture
    def watching(self, cookie):
        made = PageWatcher(QueryDict(), organisations_watched(cookie))
        made.begin()
        return made

    def test_gives_what_happened(self, watching, cookie):
        assert watching.look(cookie, prove=False) == []
        new = happen()
        assert seqs(watching.look(cookie, prove=False)) == [new]

    @pytest.mark.parametrize("field", ["is_active", "is_staff"])
    def test_ends_at_the_next_event_of_who_was_shut_out(self, watching, cookie, person, field):
        get_user_model().objects.filter(pk=person.pk).update(**{field: False})
        assert watching.look(cookie, prove=False) == []
        happen()
        assert watching.look(cookie, prove=False) is None

    def test_ends_in_time_where_nothing_happens(self, watching, cookie, person):
        person.user_permissions.clear()
        assert watching.look(cookie, prove=True) is None

    def test_shows_nothing_of_an_organisation_that_was_left(self, person):
        kept, left = (Organisation.objects.create(slug=slug, name=slug) for slug in ("one", "two"))
        Membership.objects.all().delete()
        join(person, kept, left)
        cookie = session_for(person)
        watching = PageWatcher(QueryDict(), organisations_watched(cookie))
        watching.begin()
        Membership.objects.filter(organisation=left).delete()
        mine = happen(organisation_id=kept.id)
        happen(organisation_id=left.id)
        assert seqs(watching.look(cookie, prove=False)) == [mine]


class TestAPart:
    def test_shows_controls_as_every_page_does(self):
        sent = stream._part_of({"reason": "a\u202eb\u2066"})
        assert sent == b'data: {"reason":"a[U+202E]b[U+2066]"}\n\n'


def answered(scope):
    """The messages of the stream to somebody who leaves at once."""
    sent = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    asyncio.run(stream.application(scope, receive, send))
    return sent


class TestTheStream:
    def test_refuses_a_stranger(self):
        sent = answered({"headers": [], "path": "/admin/live"})
        assert sent[0]["status"] == 403

    def test_is_one_of_a_few_of_each_person(self, monkeypatch):
        monkeypatch.setattr(stream, "watching_user", lambda cookie: "olga")
        monkeypatch.setitem(stream._STREAMS._open, "olga", stream.MOST)
        headers = [(b"cookie", b"nexus_session=abc")]
        sent = answered({"headers": headers, "path": "/admin/live"})
        assert sent[0]["status"] == 429
        assert stream._STREAMS._open["olga"] == stream.MOST

    def test_refuses_more_filters_than_a_page_takes(self, monkeypatch):
        monkeypatch.setattr(stream, "watching_user", lambda cookie: "olga")
        scope = {"headers": [(b"cookie", b"nexus_session=abc")], "query_string": b"a&" * 1001}
        assert answered(scope)[0]["status"] == 400
