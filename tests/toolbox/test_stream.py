"""The event stream as the database gives it: what commits, when it commits, from any place."""

import base64
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import permutations

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from core.decision import Code, Denied
from core.events import Event, EventOutcome
from ledger import sql
from orgchart.keys import digest_of, issue_key, revoke_key
from orgchart.models import ContactRule
from orgchart.services import change_policy
from tests.decisions import denied
from toolbox.faces import event_reader

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def watcher(company):
    return Watcher(company)


@contextmanager
def elsewhere(**other):
    """A connection of its own to the tests' database: one more writer."""
    given = {**connection.get_connection_params(), **other}
    names = ("host", "port", "user", "password", "dbname")
    with psycopg.connect(**{name: given[name] for name in names if given.get(name)}) as writer:
        yield writer
        writer.rollback()


def write(writer, agent, subject, *, actor="system:tests", kind="mail"):
    event = Event(
        action="test.happened",
        actor=actor,
        at=NOW,
        decision=EventOutcome.DENY if kind == "tool_denied" else EventOutcome.ALLOW,
        code="CONTACT_DENIED" if kind == "tool_denied" else "",
        subject=subject,
        for_agent_id=agent,
        kind=kind,
    )
    writer.execute(sql.INSERT, sql.params(event))


def commit(agent, *subjects, **how):
    with elsewhere() as writer:
        for subject in subjects:
            write(writer, agent, subject, **how)
        writer.commit()


class Watcher:
    """An agent that reads its stream; `given` are the ids and subjects of what came."""

    def __init__(self, company, who="backend_worker"):
        self.caller = company.caller(who)
        self.agent = self.caller.agent.id
        self.key = digest_of(company.key(who))
        self.place = event_reader.here()
        self.given = []

    def page(self):
        """The next page's subjects, and whether more is there at once."""
        page = event_reader.read(caller=self.caller, key=self.key, after=self.place)
        assert not page.over
        new = [(str(place), event["subject"]) for place, event in page.events]
        self.given += new
        self.place = page.place
        return [subject for _, subject in new], page.more

    def look(self):
        """The subjects of all that is new."""
        new, more = self.page()
        while more:
            found, more = self.page()
            new += found
        return new

    def after(self, last):
        """What a reconnection with this id brings."""
        place, given = self.place, self.given
        self.place, self.given = event_reader.place_of(last), []
        try:
            return self.look()
        finally:
            self.place, self.given = place, given

    @property
    def subjects(self):
        return [subject for _, subject in self.given]

    def goes_on_from_each(self):
        """Whether a reconnection from any event brings the ones after it, each once."""
        return all(
            sorted(self.after(last)) == sorted(self.subjects[number + 1 :])
            for number, (last, _) in enumerate(self.given)
        )


class TestBeginning:
    def test_leaves_out_what_was_there_while_an_older_transaction_is_open(self, watcher):
        with elsewhere() as older:
            older.execute("SELECT pg_current_xact_id()")
            commit(watcher.agent, "before")
            watcher.place = event_reader.here()
            assert watcher.look() == []
            commit(watcher.agent, "after")
            assert watcher.look() == ["after"]
            write(older, watcher.agent, "older")
            older.commit()
        assert watcher.look() == ["older"]
        assert watcher.look() == []

    def test_shows_no_number_of_the_installation(self, watcher, company):
        """Spec: wire 11. Transactions and events of other organisations count in them."""
        commit(company.agent("qa_worker").id, "another's")
        place = event_reader.here()
        sent = str(place)
        numbers = (place.history, str(place.seq), place.tag, place.seen.split(":")[0])
        decoded = base64.urlsafe_b64decode(sent + "=" * (-len(sent) % 4))
        long = [each for each in numbers if len(each) > 2]  # chance writes a digit or two
        assert not [each for each in long if each in sent or each.encode() in decoded]
        assert event_reader.place_of(sent).seen == place.seen
        plain = "-".join((place.history, str(place.seq), place.tag, place.seen))
        for other in (
            plain,
            sent[:-1],
            sent[1:],
            f"{sent}A",
            sent.swapcase(),
            "",
            "\u00e9",
            "====",
        ):
            with denied("INVALID_PARAMS"):
                event_reader.place_of(other)

    def test_is_a_place_to_come_back_to(self, watcher):
        with elsewhere() as older:
            write(older, watcher.agent, "older")
            commit(watcher.agent, "before")
            begun = str(event_reader.here())
            commit(watcher.agent, "after")
            assert watcher.after(begun) == ["after"]
            older.commit()
        assert watcher.after(begun) == ["older", "after"]


class TestWhatIsGiven:
    def test_is_for_the_agent_and_done_by_others(self, watcher, company):
        commit(watcher.agent, "mail")
        commit(watcher.agent, "own deed", actor=watcher.caller.actor)
        commit(watcher.agent, "own refusal", actor=watcher.caller.actor, kind="tool_denied")
        commit(watcher.agent, "of no kind", kind="")
        commit(company.agent("qa_worker").id, "another's")
        assert watcher.look() == ["mail", "own refusal"]

    def test_is_nothing_without_a_good_key_and_the_place_stays(self, watcher, company):
        key = issue_key(
            agent=company.agent("backend_worker"), caller=company.system, now=timezone.now()
        )
        watcher.key = digest_of(key)
        commit(watcher.agent, "before")
        assert watcher.look() == ["before"]
        revoke_key(prefix=key[:12], caller=company.system, now=timezone.now(), reason="lost")
        commit(watcher.agent, "after")
        page = event_reader.read(caller=watcher.caller, key=watcher.key, after=watcher.place)
        assert (page.over, page.events, page.place) == (True, [], watcher.place)

    def test_waits_for_no_transaction_of_another_database(self, watcher):
        with elsewhere(dbname="postgres") as other:
            other.execute("SELECT pg_current_xact_id()")
            commit(watcher.agent, "here")
            assert watcher.look() == ["here"]


def interleavings(writers):
    """Every order in which writers write and commit, up to their names."""
    found = set(permutations(writers * 2))
    return sorted("".join(one) for one in found if list(dict.fromkeys(one)) == sorted(set(one)))


class TestCommitOrder:
    """Transactions that overlap in every way: numbers tell who began first, not who committed."""

    @pytest.fixture
    def writers(self, company):
        with ExitStack() as all_of_them:
            yield {name: all_of_them.enter_context(elsewhere()) for name in "abc"}

    @pytest.mark.parametrize("steps", interleavings("abc"))
    def test_skips_nothing_and_repeats_nothing(self, watcher, company, writers, steps):
        late, committed, begun = Watcher(company), "", []
        for number, name in enumerate(steps):
            if name in steps[:number]:
                writers[name].commit()
                committed += name
            else:
                write(writers[name], watcher.agent, name)
            watcher.look()
            begun.append((str(event_reader.here()), committed))
        assert "".join(watcher.subjects) == committed
        assert sorted(late.look()) == sorted(committed)
        assert watcher.goes_on_from_each()
        assert late.goes_on_from_each()
        for place, before in begun:
            assert sorted(watcher.after(place)) == sorted(set(committed) - set(before))


class TestPages:
    @pytest.fixture(autouse=True)
    def _of_two(self, monkeypatch):
        monkeypatch.setattr(event_reader, "PAGE", 2)

    @pytest.mark.parametrize("pages", range(4))
    def test_keep_their_place_when_others_commit_between_them(self, watcher, pages):
        with elsewhere() as older:
            write(older, watcher.agent, "older")
            commit(watcher.agent, *"12345")
            for _ in range(pages):
                watcher.page()
            older.commit()
            commit(watcher.agent, "newer")
        watcher.look()
        assert sorted(watcher.subjects) == [*"12345", "newer", "older"]
        assert watcher.goes_on_from_each()

    def test_end_exactly_where_the_events_do(self, watcher):
        commit(watcher.agent, *"1234")
        assert watcher.look() == [*"1234"]
        assert watcher.look() == []


class TestPlaces:
    def refused(self, place):
        with pytest.raises(Denied) as found:
            event_reader.place_of(str(place))
        assert found.value.deny.code is Code.INVALID_PARAMS
        return found.value.deny

    @pytest.mark.parametrize(
        "snapshot",
        ["", "5", "5:4:", "0:9:", "5:9:4", "5:9:9", "5:9:7,6", "5:9:7,", "5:9:x"],
    )
    def test_that_no_snapshot_makes_are_refused(self, watcher, snapshot):
        self.refused(replace(watcher.place, seen=snapshot or "-"))
        self.refused(replace(watcher.place, within=snapshot or "-"))

    def test_of_another_history_are_refused_with_what_to_do_instead(self, watcher):
        other = "00000000" if watcher.place.history != "00000000" else "11111111"
        assert "read_inbox" in self.refused(replace(watcher.place, history=other)).next_action

    def test_whose_event_is_gone_or_another_are_refused(self, watcher):
        self.refused(replace(watcher.place, seq=event_reader.LAST))
        self.refused(replace(watcher.place, seq=10**19 - 1))
        other = "00000000" if watcher.place.tag != "00000000" else "11111111"
        self.refused(replace(watcher.place, tag=other))

    def test_ahead_of_the_database_are_refused(self, watcher):
        lowest = watcher.place.seen.split(":")[0]
        self.refused(replace(watcher.place, seen=f"{lowest}:{10**19 - 1}:"))
        self.refused(replace(watcher.place, within=f"{lowest}:{2**62 + 5}:"))

    def test_of_a_restored_dump_hide_nothing_that_comes(self, watcher):
        """Its events have the numbers of their own cluster, here such as come next in this one."""
        with elsewhere() as restoring:
            write(restoring, watcher.agent, "restored")
            restoring.execute(
                "INSERT INTO ledger_event (id, action, actor, at, decision, for_agent_id, kind, "
                "subject, digest, xid, era) SELECT gen_random_uuid(), action, actor, at, decision, "
                "for_agent_id, kind, 'of old', digest, xid + n, era - 1 "
                "FROM ledger_event, generate_series(1, 20) AS n WHERE subject = 'restored'"
            )
            restoring.commit()
        watcher.place = event_reader.here()
        for new in "1234":
            commit(watcher.agent, new)
        assert watcher.look() == [*"1234"]
        assert watcher.goes_on_from_each()

    def test_end_with_their_history(self, watcher):
        place = replace(watcher.place, history="00000000")
        assert event_reader.read(caller=watcher.caller, key=watcher.key, after=place).over


class TestAnAgentWithOtherRights:
    """Spec: wire 42. Its stream stays open, and follows its rights of each moment."""

    def free(self, company):
        """A task that QA could claim, where it may read it: its last blocker ends."""
        task = {"subject": "One", "requiredRole": "backend_worker"}
        blocker = company.call("it_manager", "task_create", **task).result["id"]
        waiting = {"subject": "Two", "requiredRole": "qa_worker", "blockedBy": [blocker]}
        answer = company.call("it_manager", "task_create", **waiting)
        done = {"owner": "backend_worker", "status": "in_progress"}
        assert company.call("backend_worker", "task_update", taskId=blocker, **done).code == "OK"
        ended = company.call("backend_worker", "task_update", taskId=blocker, status="completed")
        assert ended.code == "OK"
        return answer.code

    def test_is_told_only_of_what_it_may_read_now(self, company):
        watcher = Watcher(company, "qa_worker")
        self.free(company)
        assert watcher.page()[0]
        known = company.call("it_manager", "task_create", subject="Old").result["id"]
        watcher.page()
        rules = ContactRule.objects.filter(sender__name="it_manager", recipient__name="qa_worker")
        change_policy(
            organisation_id=company.organisation.id,
            apply=lambda _: rules.delete() and None,
            caller=company.system,
            action="agent.changed",
            now=timezone.now(),
        )
        assert company.call("qa_worker", "task_get", taskId=known).code == "NOT_FOUND"
        watcher.page()  # its own refusal
        assert self.free(company) == "CONTACT_DENIED"
        company.call("it_manager", "task_comment", taskId=known, body="Now.")
        company.call("it_manager", "task_update", taskId=known, subject="New")
        assert watcher.page()[0] == []
