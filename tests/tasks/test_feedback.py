"""Feedback from files and through the signed hook."""

import json
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from errno import ENOSPC
from functools import partial
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from standardwebhooks import Webhook

from core.actors import System
from core.decision import Code, Denied
from core.people import operator
from ledger.models import Event
from tasks.intake.feedback import add_feedback, open_hook, read_file, read_items
from tasks.intake.hook import add_signed, require_rate
from tasks.models import Feedback, FeedbackHook
from tests.concurrency import at_once
from tests.tasks.world import CSV, NOW, dev_team
from toolbox.quotas.stored import stored_by


def run(*words) -> str:

    out = StringIO()
    call_command("tasks", *map(str, words), stdout=out)
    return out.getvalue()


def add_one(hook, number) -> bool:
    items = read_items([{"body": "x", "id": str(number)}], "a")
    try:
        add_signed(hook, items, 100)
    except Denied:
        return False
    return True


class TestFiles:
    def test_csv_is_read_with_its_header(self):
        slow, lovely = read_file("a.csv", CSV.encode("utf-8-sig"))
        assert (slow.body, slow.rating, slow.external_id) == ("It is slow, very", 2, "7")
        assert slow.received_at == datetime(2026, 1, 5, 10, tzinfo=UTC)
        assert (lovely.category, lovely.received_at) == ("", None)

    def test_json_is_one_object_or_a_list(self):
        assert len(read_file("a.json", b'{"body": "x"}')) == 1
        assert len(read_file("a.json", b'[{"body": "x"}, {"body": "y"}]')) == 2

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.json", b"{"),
            ("a.json", b'{"body": ""}'),
            ("a.json", b'[{"body": "x"}, 7]'),
            ("a.json", b'{"body": "x", "rating": 6}'),
            ("a.json", b'{"body": "a\\u0000b"}'),
            ("a.json", b'{"body": "\\ud800"}'),
            ("a.json", b'{"body": NaN}'),
            ("a.json", b'{"body": "x", "received_at": "0001-01-01T00:00:00+14:00"}'),
            ("a.json", b'{"body": "x", "received_at": "9999-12-31T23:00:00-12:00"}'),
            ("a.json", b'{"body": "x", "received_at": "1970-01-01T00:00:00+14:00"}'),
            ("a.csv", b"body,received_at\nx,2201-01-01T00:00:00Z\n"),
            ("a.csv", b"author\nann\n"),
            ("a.csv", b"body\n\xff\xfe\n"),
        ],
    )
    def test_that_cannot_be_read_are_refused(self, name, content):
        with pytest.raises(Denied) as denied:
            read_file(name, content)
        assert denied.value.deny.code is Code.INVALID_PARAMS

    def test_are_imported_once(self, team, tmp_path):
        path = tmp_path / "reports.csv"
        path.write_text(CSV)
        assert run("feedback", "dev-team", path).strip() == "2 added, 0 already known"
        assert run("feedback", "dev-team", path).strip() == "0 added, 2 already known"
        assert Feedback.objects.count() == 2
        assert Event.objects.get(action="feedback.received").actor == operator().actor

    def test_that_are_bad_change_nothing(self, team, tmp_path):
        path = tmp_path / "reports.json"
        path.write_text('[{"body": "fine"}, {"body": ""}]')
        with pytest.raises(CommandError, match="item 2: body"):
            run("feedback", "dev-team", path)
        assert not Feedback.objects.exists()


class TestHook:
    @pytest.fixture
    def secret(self, team) -> str:
        return open_hook(caller=System(name="t", organisation_id=team.id), now=NOW)

    @pytest.fixture
    def send(self, client, secret):
        def sent(body, *, key=None, message="msg_1", slug="dev-team", at=None, **changed):
            text = json.dumps(body)
            at = at or timezone.now()
            headers = {
                "webhook-id": message,
                "webhook-timestamp": str(int(at.timestamp())),
                "webhook-signature": Webhook(key or secret).sign(message, at, text),
            } | changed
            return client.post(
                f"/api/v1/hooks/feedback/{slug}",
                text,
                content_type="application/json",
                headers=headers,
            )

        return sent

    def test_keeps_what_is_signed(self, send):
        answer = send({"type": "feedback.created", "data": {"body": "x", "rating": 4}})
        assert (answer.status_code, answer.json()) == (200, {"ok": True, "kept": 1, "known": 0})
        kept = Feedback.objects.get()
        assert (kept.body, kept.source, kept.rating) == ("x", "hook", 4)

    def test_keeps_a_repeated_message_once(self, send):
        for _ in range(2):
            answer = send({"data": [{"body": "x"}, {"body": "y"}]})
        assert answer.json() == {"ok": True, "kept": 0, "known": 2}
        assert Feedback.objects.count() == 2

    @pytest.mark.parametrize(
        "how",
        [
            {"key": "whsec_" + "A" * 32},
            {"slug": "nowhere"},
            {"webhook-signature": "v1,AAAA"},
            {"webhook-signature": ""},
            {"webhook-timestamp": "x"},
            {"webhook-id": "msg_2"},
            {"at": datetime(2020, 1, 1, tzinfo=UTC)},
        ],
    )
    def test_refuses_what_is_not_signed_alike(self, send, how):
        answer = send({"body": "x"}, **how)
        assert answer.status_code == 401
        assert answer.json()["error_code"] == "UNAUTHENTICATED"
        assert answer.json() == send({"body": "x"}, slug="elsewhere").json()
        assert not Feedback.objects.exists()

    def test_of_another_organisation_is_refused(self, send):
        other = dev_team("other")
        key = open_hook(caller=System(name="t", organisation_id=other.id), now=NOW)
        assert send({"body": "x"}, key=key).status_code == 401

    def test_refuses_an_old_signature(self, send):
        assert send({"body": "x"}, at=timezone.now() - timedelta(hours=1)).status_code == 401

    def test_refuses_a_time_that_no_page_could_show(self, send):
        answer = send({"body": "x", "received_at": "0001-01-01T00:00:00+14:00"})
        assert answer.status_code == 400
        assert "received_at" in answer.json()["message"]
        assert "between the years 1970 and 2200" in answer.json()["message"]
        assert not Feedback.objects.exists()

    @pytest.mark.parametrize("body", [[], 7, {"data": []}, {"data": {"body": ""}}, {"data": 7}])
    def test_answers_what_it_cannot_read_without_breaking(self, send, body):
        answer = send(body)
        assert answer.status_code == (200 if body == {"data": []} else 400)
        assert not Feedback.objects.exists()

    def test_says_what_is_wrong_with_a_signed_body(self, client, secret):
        big = "9" * 5000
        for body in ("", "[" * 5000 + "]" * 5000, f'{{"data": {{"body": "x", "rating": {big}}}}}'):
            now = timezone.now()
            headers = {
                "webhook-id": "m",
                "webhook-timestamp": str(int(now.timestamp())),
                "webhook-signature": Webhook(secret).sign("m", now, body),
            }
            answer = client.post(
                "/api/v1/hooks/feedback/dev-team", body, "application/json", headers=headers
            )
            assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMS")

    def test_takes_posts_of_a_certain_size(self, client, send, settings):
        assert client.get("/api/v1/hooks/feedback/dev-team").status_code == 405
        settings.NEXUS_MAX_BODY = 1024
        assert send({"body": "x" * 2000}).status_code == 413

    @pytest.fixture
    def late(self, send, team):
        """A message for which an allowance of 10 bytes a second has no room yet."""
        team.settings = {**team.settings, "bytes_per_minute": 100_000, "bytes_per_day": 864_000}
        team.save(update_fields=["settings"])
        large = {"data": [{"body": "x" * 19_000} for _ in range(5)]}
        assert send(large).status_code == 200
        return {"data": {"body": "y", "id": "late"}}

    def test_limits_what_it_sends_at_once_and_in_a_day(self, send, late):
        refused = send(late, message="m2")
        assert (refused.status_code, refused["Retry-After"]) == (429, "820")
        assert refused.json()["error_code"] == "RATE_LIMITED"
        assert not Feedback.objects.filter(external_id="late").exists()
        FeedbackHook.objects.update(used_at=timezone.now() - timedelta(seconds=820))
        assert send(late, message="m2").status_code == 200

    def test_waits_for_no_time_that_the_databases_clock_was_set_back_from(self, send, late):
        FeedbackHook.objects.update(used_at=timezone.now() + timedelta(hours=1))
        assert send(late, message="m2").status_code == 429
        assert FeedbackHook.objects.get().used_at <= timezone.now() + timedelta(minutes=1)
        used = FeedbackHook.objects.get().used
        FeedbackHook.objects.update(used=used - 8_200)  # what 820 s give back
        assert send(late, message="m2").status_code == 200

    @pytest.mark.django_db(transaction=True)
    def test_counts_messages_that_arrive_at_once(self, secret, team):
        hook = FeedbackHook.objects.select_related("organisation").get()
        hook.organisation.settings = {"bytes_per_minute": 100_000, "bytes_per_day": 100_000}

        def counted(size=20_000) -> bool:
            try:
                require_rate(hook, size)
            except Denied:
                return False
            return True

        assert sum(at_once([counted] * 12)) == 5

    @pytest.mark.django_db(transaction=True)
    def test_counts_a_report_as_new_once_where_messages_arrive_at_once(self, team):
        items = read_items([{"body": "x", "id": str(number)} for number in range(50)], "a")
        caller = System(name="feedback-hook", organisation_id=team.id)

        def added() -> int:
            return add_feedback(caller=caller, items=items, source="hook", now=NOW)[0]

        assert sum(at_once([added] * 8, raising=True)) == Feedback.objects.count() == 50
        assert Event.objects.filter(action="feedback.received").count() == 1

    @pytest.mark.parametrize(
        ("setting", "limit"), [("NEXUS_ORGANISATION_BYTES", 2500), ("NEXUS_ORGANISATION_ROWS", 8)]
    )
    def test_counts_in_what_the_organisation_stores(self, send, team, settings, setting, limit):
        setattr(settings, setting, limit)
        items = [{"body": "x" * 300, "id": str(number)} for number in range(3)]
        assert send({"data": items}).status_code == 200
        assert send({"data": items}, message="again").json() == {"ok": True, "kept": 0, "known": 3}
        used = stored_by(team.id)
        assert 900 < used[0] < 2000
        assert used[1] == 4, "three reports and the event"
        assert send({"data": [{"body": "y" * 300}] * 3}, message="m2").status_code == 200
        refused = send({"data": [{"body": "z" * 300}] * 3}, message="m3")
        assert (refused.status_code, refused.json()["error_code"]) == (429, "QUOTA_EXCEEDED")
        assert "then send it again" in refused.json()["next_action"]
        assert not Feedback.objects.filter(body__startswith="z").exists()
        assert stored_by(team.id)[1] == 8
        setattr(settings, setting, 10_000)
        assert send({"data": [{"body": "z" * 300}] * 3}, message="m3").json()["kept"] == 3

    @pytest.mark.django_db(transaction=True)
    def test_stores_no_more_than_the_organisation_may_where_messages_arrive_at_once(
        self, secret, team, settings
    ):
        settings.NEXUS_ORGANISATION_ROWS = 10
        hook = FeedbackHook.objects.select_related("organisation").get()
        adding = [partial(add_one, hook, number) for number in range(12)]
        assert sum(at_once(adding)) == 5  # each is a report and an event
        assert Feedback.objects.count() == 5
        assert stored_by(team.id)[1] == 10

    def test_keeps_nothing_where_the_disk_is_full(self, send, settings):
        settings.NEXUS_DISK_RESERVE = 2**62
        refused = send({"data": {"body": "x"}})
        assert (refused.status_code, refused.json()["error_code"]) == (507, "STORAGE_FULL")
        assert not Feedback.objects.exists()

    def test_counts_small_messages_as_8_kb(self, send, team):
        team.settings = {**team.settings, "bytes_per_minute": 100_000, "bytes_per_day": 100_000}
        team.save(update_fields=["settings"])
        sent = [send({"data": {"body": "x"}}, message=f"m{n}").status_code for n in range(13)]
        assert sent == [200] * 12 + [429]

    def test_has_one_secret_until_it_is_renewed(self, team, secret, settings):
        settings.PUBLIC_URL = "https://nexus.example:9000"
        first = run("hook", "dev-team").split()
        assert first == ["https://nexus.example:9000/api/v1/hooks/feedback/dev-team", secret]
        assert len(b64decode(secret.removeprefix("whsec_"))) == 32
        assert run("hook", "dev-team", "--renew").split()[1] != secret
        event = Event.objects.get(action="feedback.hook_renewed")
        assert event.actor == operator().actor  # who was shown it: people 31

    def test_keeps_its_secret_where_the_new_one_cannot_be_printed(self, team, secret):
        class Full(StringIO):
            def flush(self):
                raise OSError(ENOSPC, "No space left on device")

        with pytest.raises(OSError, match="No space left"):
            call_command("tasks", "hook", "dev-team", "--renew", stdout=Full())
        assert FeedbackHook.objects.get().secret == secret
