"""How much an agent can make the installation store."""

from contextlib import suppress
from datetime import timedelta
from functools import partial
from threading import Barrier, BrokenBarrierError

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.db.models import Sum
from django.utils import timezone

from core.decision import Code, Denied
from ledger.models import Event
from orgchart.models import ApiKey
from tests.company import load_company
from tests.concurrency import at_once
from tests.plans import most_of, renew_statistics
from toolbox import authentication, denial_limits, idempotency, sessions
from toolbox.models import IdempotencyRecord, Session, Stored, Usage
from toolbox.quotas import charging, stored, written
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

    def test_of_explained_calls_end_there_too(self, nexus, settings):
        """What is rolled back was written: it takes room until the database cleans up."""
        settings.NEXUS_BYTES_PER_MINUTE = 20_000
        asked = {"tool": "send_mail", "params": {"to": "it_manager", **LARGE}}
        answers = [nexus.post("/api/v1/explain", asked, "ceo").body for _ in range(4)]
        assert [each["error_code"] for each in answers] == [None, None, *["QUOTA_EXCEEDED"] * 2]
        assert not Stored.objects.filter(bytes__gt=10 * stored.AHEAD_BYTES).exists()
        small = {"tool": "send_mail", "params": {**asked["params"], "body": "x"}}
        assert nexus.post("/api/v1/explain", small, "ceo").body["allowed"]

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

    def test_of_a_future_that_the_clock_was_set_back_from_do_not_count(self, nexus, mail, settings):
        settings.NEXUS_BYTES_PER_DAY = 10_000
        settings.NEXUS_ORGANISATION_BYTES_PER_DAY = 20_000
        assert mail().status == 200
        later = timezone.now() + timedelta(days=10)
        Usage.objects.update(minute=later.replace(second=0, microsecond=0))
        written.sum_up_minutes(later + timedelta(minutes=10))
        assert mail().status == 429
        delete_expired_answers(timezone.now())
        assert not Usage.objects.exists()
        assert [mail().status for _ in range(2)] == [200, 429]

    def test_of_ended_minutes_count_once(self, nexus, mail, settings):
        """Those of an organisation are added in advance, minute by minute."""
        settings.NEXUS_ORGANISATION_BYTES_PER_DAY = 39_000
        for minutes_ago in (20, 10):
            assert mail().status == mail("it_manager", "ceo").status == 200
            now = timezone.now()
            minute = (now - timedelta(minutes=minutes_ago)).replace(second=0, microsecond=0)
            Usage.objects.filter(minute__gt=now - timedelta(minutes=2)).update(minute=minute)
            for _ in range(2):
                written.sum_up_minutes(now)
        summed = Usage.objects.filter(agent_id=-nexus.organisation.id)
        each = Usage.objects.filter(agent_id__gt=0).aggregate(sum=Sum("bytes"))["sum"]
        assert (summed.count(), sum(summed.values_list("bytes", flat=True))) == (2, each)
        refused = mail()
        assert (refused.status, refused.body["details"]["used"]) == (429, each)

    def test_of_a_long_run_that_were_not_used_are_given_back(self, nexus):
        began = timezone.now() - timedelta(minutes=10)
        with charging.reserved(caller=nexus.caller("ceo"), size=90_000, now=began) as room:
            written.sum_up_minutes(timezone.now())
            room.used = 20_000
        assert list(Usage.objects.values_list("bytes", flat=True)) == [20_000, 20_000]

    def test_of_a_day_are_not_added_at_each_call(self, nexus, mail):
        """Each agent and minute has a row of its own."""
        agents = list(nexus.organisation.agents.values_list("id", flat=True))
        minutes = [timezone.now() - timedelta(minutes=7 + number) for number in range(1200)]
        Usage.objects.bulk_create(
            Usage(agent_id=agent, organisation_id=nexus.organisation.id, minute=minute, bytes=9000)
            for agent in agents
            for minute in minutes
        )
        written.sum_up_minutes(timezone.now())
        renew_statistics("toolbox_usage")
        touched, answer = most_of(mail)
        assert answer.status == 200
        assert touched < 3 * len(minutes)

    def test_of_small_calls_are_bounded_by_their_rate(self, nexus):
        nexus.call("ceo", "send_mail", to="it_manager", type="info", subject="a", body="b")
        assert Event.objects.filter(action="mail.delivered").exists()
        assert not Usage.objects.exists()


@pytest.mark.django_db
class TestQuotasThatAnOrganisationSets:
    """They hold within the installation's limits, from the next call on (Spec: settings 9)."""

    @pytest.mark.parametrize(
        ("setting", "limit", "what"),
        [
            ("bytes_per_minute", 20_000, "bytes that an agent writes in a minute"),
            ("bytes_per_day", 20_000, "bytes that an agent writes in a day"),
            ("organisation_bytes_per_day", 20_000, "bytes that an organisation writes in a day"),
            ("organisation_bytes", 20_000, "bytes that an organisation stores in all"),
            ("organisation_rows", 2, "rows that an organisation stores in all"),
        ],
    )
    def test_end_where_it_says(self, nexus, mail, setting, limit, what):
        call_command("org", "set", "nexus", f"{setting}={limit}")
        answers = [mail() for _ in range(4)]
        assert [answer.status for answer in answers] == [200, 200, 429, 429]
        details = answers[-1].body["details"]
        assert (details["what"], details["limit"]) == (what, limit)
        assert "the Board" in answers[-1].body["next_action"] or "minute" in setting
        call_command("org", "set", "nexus", f"{setting}=0")
        assert mail().status == 200

    def test_of_sessions_end_where_it_says(self, nexus):
        call_command("org", "set", "nexus", "sessions_per_day=2")
        opened = [nexus.post("/api/v1/sessions", {}, "ceo").status for _ in range(4)]
        assert opened[-1] == 429
        assert opened.count(201) <= 2

    def test_leave_another_organisation_unharmed(self, nexus, mail):
        other = load_company("soloqueue")
        call_command("org", "set", "nexus", "organisation_rows=1")
        assert [mail().status for _ in range(2)] == [200, 429]
        opened = other.post("/api/v1/sessions", {}, "coding_leader")
        assert opened.status == 201

    def test_hold_for_refused_keys_too(self, nexus):
        call_command("org", "set", "nexus", "organisation_rows=1")
        nexus.key("ceo")
        ApiKey.objects.filter(agent__handle="ceo").update(
            revoked_at=timezone.now(), revoked_by="tests"
        )
        for _ in range(3):
            authentication._last_recorded.clear()
            answer = nexus.post("/api/v1/sessions", {}, "ceo")
            assert answer.status == 401
        assert Stored.objects.get().rows == 1

    def test_that_are_refused_name_the_installations_limit(self, nexus, settings):
        settings.NEXUS_BYTES_PER_DAY = 5000
        with pytest.raises(CommandError, match=r"bytes_per_day: .* from 0 to 5000"):
            call_command("org", "set", "nexus", "bytes_per_day=5001")


@pytest.mark.django_db
class TestWhatAnOrganisationStoresInAll:
    @pytest.mark.parametrize(
        ("setting", "limit", "what"),
        [
            ("NEXUS_ORGANISATION_BYTES", 20_000, "bytes that an organisation stores in all"),
            ("NEXUS_ORGANISATION_ROWS", 2, "rows that an organisation stores in all"),
        ],
    )
    def test_is_summed_over_its_agents(self, nexus, mail, settings, setting, limit, what):
        setattr(settings, setting, limit)
        answers = [mail(), mail("it_manager", "backend_worker"), mail(), mail("it_manager", "ceo")]
        assert [answer.status for answer in answers] == [200, 200, 429, 429]
        refused = answers[-1].body
        assert refused["error_code"] == "QUOTA_EXCEEDED"
        assert (refused["details"]["what"], refused["details"]["limit"]) == (what, limit)
        assert "the people who run NEXUS set the limit" in refused["next_action"]
        assert Event.objects.filter(action="mail.delivered").count() == 2
        assert nexus.call("ceo", READ).status == 200

    def test_of_one_leaves_another_unharmed(self, nexus, mail, settings):
        settings.NEXUS_ORGANISATION_ROWS = 3
        agent = nexus.agent("ceo").id
        Stored.objects.create(agent_id=agent + 10_000, organisation_id=0, bytes=10**9, rows=10**6)
        assert mail().status == 200

    def test_takes_no_lock_while_much_is_free(self, nexus, mail, monkeypatch):
        for module in (stored, written):
            monkeypatch.setattr(module, "hold_lock", None)
        assert mail().status == 200

    def test_is_given_back_by_a_call_that_is_rolled_back(self, nexus, mail, monkeypatch):
        def broken(*_, **__):
            raise RuntimeError

        monkeypatch.setattr(idempotency, "keep", broken)
        assert mail(**{"Idempotency-Key": "k"}).status == 500
        assert not Stored.objects.exists()


@pytest.mark.django_db
class TestEventsOfCallsThatChangeNothing:
    """They count in all; an organisation without room still shows that it is being refused."""

    def ways(self, nexus):
        """Every way to leave an event without storing anything else."""
        unknown = {"X-Nexus-Session": "2f6a8c70-1111-4222-8333-444455556666"}
        asked = {"tool": "send_mail", "params": {}}
        return {
            "unknown tool": lambda: nexus.call("ceo", "send_male"),
            "not bound": lambda: nexus.call("ceo", "git_push", name="x"),
            "bad parameters": lambda: nexus.call("ceo", "send_mail", to=1),
            "a rule": lambda: nexus.call("backend_worker", "send_mail", **{**SMALL, "to": "ceo"}),
            "another session": lambda: nexus.call("ceo", READ, unknown),
            "explained": lambda: nexus.post("/api/v1/explain", asked, "ceo"),
        }

    @pytest.mark.parametrize("way", range(6))
    def test_count_one_row_each(self, nexus, settings, way):
        settings.NEXUS_ORGANISATION_ROWS = stored.MARGIN["rows_margin"]  # counted one by one
        refused = list(self.ways(nexus).values())[way]
        nexus.key("ceo"), nexus.key("backend_worker")
        before = Event.objects.count()
        refused()
        assert Event.objects.count() == before + 1
        assert Stored.objects.aggregate(n=Sum("rows"))["n"] >= 1

    @pytest.mark.parametrize("way", range(6))
    def test_are_few_once_the_quota_is_used_up(self, nexus, settings, way):
        settings.NEXUS_ORGANISATION_ROWS = 0
        refused = list(self.ways(nexus).values())[way]
        first = refused()
        after_one = Event.objects.count()
        assert after_one
        answers = [refused() for _ in range(5)]
        assert {(a.status, a.code) for a in answers} == {(first.status, first.code)}
        assert Event.objects.count() == after_one

    def test_are_recorded_again_after_a_minute(self, nexus, settings):
        settings.NEXUS_ORGANISATION_ROWS = 0
        refused = self.ways(nexus)["unknown tool"]
        refused()
        refused()
        before = Event.objects.count()
        denial_limits._last_recorded[nexus.agent("ceo").id] -= denial_limits.RECORD_INTERVAL
        refused()
        assert Event.objects.count() == before + 1

    def test_of_one_organisation_leave_another_unharmed(self, nexus, settings):
        other = load_company("soloqueue")
        settings.NEXUS_ORGANISATION_ROWS = stored.MARGIN["rows_margin"] + stored.AHEAD_ROWS
        for _ in range(3):
            self.ways(nexus)["unknown tool"]()
        assert not Stored.objects.filter(organisation_id=other.organisation.id).exists()


SMALL = {"to": "it_manager", "type": "info", "subject": "a", "body": "b"}


@pytest.mark.django_db(transaction=True)
class TestSmallCalls:
    """They are counted before they are made, so a process that dies has counted too many."""

    @pytest.fixture
    def send(self, monkeypatch):
        company = load_company("nexus")
        monkeypatch.setattr(stored, "AHEAD_ROWS", 3)
        return lambda to="it_manager", **h: company.call(
            "ceo", "send_mail", h, **SMALL | {"to": to}
        )

    def test_are_counted_many_at_once(self, send):
        counted = []
        for _ in range(7):
            assert send().status == 200
            counted.append(Stored.objects.get().rows)
        assert counted == [3, 3, 3, 6, 6, 6, 9]

    def test_are_counted_again_where_their_bytes_are_used_up(self, send, monkeypatch):
        monkeypatch.setattr(stored, "AHEAD_BYTES", 150)
        for _ in range(3):
            send()
        assert Stored.objects.get().rows == 6

    def test_leave_no_more_than_was_used_when_the_process_ends(self, send):
        for _ in range(4):
            send()
        stored.give_back()
        row = Stored.objects.get()
        assert (row.rows, stored.AHEAD.take_all()) == (4, {})
        assert 100 < row.bytes < 1000

    def test_that_are_refused_take_nothing_from_the_others(self, send):
        """A key keeps the refusal in a transaction whose inner part is rolled back."""
        assert send("backend_worker", **{"Idempotency-Key": "refused"}).status == 403
        for n in range(11):
            assert send(**{"Idempotency-Key": f"k{n}"}).status == 200
        assert Stored.objects.get().rows == 12

    @pytest.mark.parametrize("quota", ["organisation_rows=2", "organisation_bytes=300"])
    def test_end_where_a_quota_says_that_was_lowered_meanwhile(self, send, quota):
        assert send().status == 200
        call_command("org", "set", "nexus", quota)
        assert [send().status for _ in range(2)] == [429] * 2

    def test_near_the_limit_are_counted_one_by_one(self, send, settings):
        settings.NEXUS_ORGANISATION_ROWS = 5
        assert [send().status for _ in range(7)] == [200] * 5 + [429] * 2
        assert Stored.objects.get().rows == 5


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    @pytest.mark.parametrize("setting", ["NEXUS_ORGANISATION_BYTES", "NEXUS_ORGANISATION_ROWS"])
    def test_agents_together_store_no_more_than_the_limit(self, settings, setting):
        company = load_company("nexus")
        setattr(settings, setting, 100_000 if setting.endswith("BYTES") else 10)
        callers = [company.caller(handle) for handle in ("ceo", "it_manager", "backend_worker")]
        refused = []

        def write(caller):
            for _ in range(8):
                try:
                    charging.charge(
                        agent=caller.agent.id,
                        policy=caller.policy,
                        size=10_000,
                        now=timezone.now(),
                    )
                except Denied as refusal:
                    refused.append(refusal.deny.code)

        at_once([lambda each=each: write(each) for each in callers * 2])
        total = Stored.objects.aggregate(rows=Sum("rows"), bytes=Sum("bytes"))
        assert total == {"rows": 10, "bytes": 100_000}
        assert len(refused) == 6 * 8 - 10

    def test_a_call_that_was_not_counted_does_not_pass(self, monkeypatch):
        """Another one took the rest of the minute after what is used was read."""
        caller = load_company("nexus").caller("ceo")
        monkeypatch.setattr(written, "_charge", lambda _: (False, 0, 0, 0))
        with pytest.raises(Denied, match="in a minute"):
            charging.charge_bytes(caller=caller, size=10_000, now=timezone.now())

    @pytest.mark.parametrize(
        ("setting", "writers"),
        [
            ("NEXUS_BYTES_PER_MINUTE", ["ceo"] * 6),
            ("NEXUS_BYTES_PER_DAY", ["ceo"] * 6),
            ("NEXUS_ORGANISATION_BYTES_PER_DAY", ["ceo", "it_manager", "backend_worker"] * 2),
        ],
    )
    def test_calls_write_no_more_than_the_limit(self, settings, setting, writers):
        """A call with an idempotency key counts in the transaction that it works in."""
        company = load_company("nexus")
        setattr(settings, setting, 30_000)
        callers = [company.caller(handle) for handle in writers]
        now, all_count = timezone.now(), Barrier(len(callers))

        def write(caller):
            with transaction.atomic(), suppress(BrokenBarrierError):
                charging.charge_bytes(caller=caller, size=10_000, now=now)
                all_count.wait(0.5)  # without locks all have read what is used by now

        answers = at_once([partial(write, each) for each in callers])
        assert answers.count(Code.QUOTA_EXCEEDED) == 3
        assert Usage.objects.aggregate(bytes=Sum("bytes")) == {"bytes": 30_000}

    def test_sessions_are_no_more_than_the_limit(self, settings):
        company = load_company("nexus")
        caller = company.caller("ceo")
        settings.NEXUS_SESSIONS_PER_DAY = (
            Session.objects.filter(agent_id=caller.agent.id).count() + 2
        )
        act = partial(sessions.open_session, caller=caller, params={}, now=timezone.now())
        assert at_once([act] * 6).count(Code.QUOTA_EXCEEDED) == 4
        opened = Session.objects.filter(agent_id=caller.agent.id).count()
        assert opened == settings.NEXUS_SESSIONS_PER_DAY


@pytest.mark.django_db
class TestSessions:
    def test_end_where_the_quota_does(self, nexus, settings):
        settings.NEXUS_SESSIONS_PER_DAY = 3
        opened = [nexus.post("/api/v1/sessions", {}, "ceo").status for _ in range(6)]
        assert opened.count(201) <= 3
        assert opened[-1] == 429
        assert Session.objects.filter(agent__handle="ceo").count() <= 3

    def test_of_a_future_that_the_clock_was_set_back_from_do_not_count(self, nexus, settings):
        settings.NEXUS_SESSIONS_PER_DAY = 2
        opened = [nexus.post("/api/v1/sessions", {}, "ceo").status for _ in range(3)]
        assert opened[-1] == 429
        Session.objects.update(opened_at=timezone.now() + timedelta(days=10))
        opened = [nexus.post("/api/v1/sessions", {}, "ceo").status for _ in range(3)]
        assert opened == [201, 201, 429]


@pytest.mark.django_db
class TestAnswers:
    def test_of_tools_that_only_read_are_not_kept(self, nexus, mail):
        key = {"Idempotency-Key": "k"}
        first = nexus.call("ceo", READ, key)
        assert IdempotencyRecord.objects.get().answer is None
        assert nexus.call("ceo", READ, key).body == first.body
        assert mail(**key).body["error_code"] == "IDEMPOTENCY_MISMATCH"

    def test_that_a_quota_is_used_up_are_not_kept(self, mail, settings):
        key = {"Idempotency-Key": "once"}
        settings.NEXUS_BYTES_PER_MINUTE = 5_000
        assert mail(**key).body["error_code"] == "QUOTA_EXCEEDED"
        settings.NEXUS_BYTES_PER_MINUTE = 20_000
        assert mail(**key).status == 200

    def test_that_are_large_are_not_kept_and_not_done_again(self, nexus, mail, monkeypatch):
        monkeypatch.setattr(idempotency, "LARGEST", 10)
        key = {"Idempotency-Key": "once"}
        assert mail(**key).status == 200
        again = mail(**key)
        assert (again.status, again.body["error_code"]) == (409, "IDEMPOTENCY_MISMATCH")
        assert IdempotencyRecord.objects.get().answer is None
        assert Event.objects.filter(action="mail.delivered").count() == 1

    def test_that_are_large_count_among_the_bytes_of_a_day(self, nexus, settings):
        task = nexus.call("ceo", "task_create", subject="Large", description="x" * 15_000)
        settings.NEXUS_BYTES_PER_DAY = Usage.objects.get().bytes + 20_000
        number, kept = task.body["result"]["id"], []
        for n in range(3):
            key = {"Idempotency-Key": f"update-{n}"}
            words = {"taskId": number, "subject": f"Subject {n}"}
            assert nexus.call("ceo", "task_update", key, **words).status == 200
            kept.append(
                IdempotencyRecord.objects.get(key=key["Idempotency-Key"]).answer is not None
            )
        assert kept == [True, False, False]


@pytest.mark.django_db(transaction=True)
def test_reserved_bytes_are_given_back_over_a_connection_that_was_lost_meanwhile():
    """A run of ten minutes may outlive a failover."""
    caller = load_company("nexus").caller("ceo")
    with charging.reserved(caller=caller, size=10_000, now=timezone.now()) as room:
        room.used = 1000
        with suppress(DatabaseError), connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert Usage.objects.get().bytes == Stored.objects.get().bytes == 1000
