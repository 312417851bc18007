"""The one way to change who may what: counted, recorded, checked, or not at all."""

from functools import partial

import pytest

from core.decision import Code, Denied
from ledger.models import Event
from orgchart import services
from orgchart.compiling import compile_policy
from orgchart.models import Agent, Organisation
from orgchart.policy import invariants
from orgchart.policy_cache import bytes_of, current_policy
from orgchart.services import change_policy, set_settings
from tests.concurrency import at_once
from tests.decisions import denied
from tests.orgchart.world import NOW, load, person, write_pack

pytestmark = pytest.mark.django_db


def retitle(title="New"):
    def apply(organisation):
        organisation.roles.filter(name="boss").update(title=title)

    return apply


def change(acme, apply=None, **options):
    return change_policy(
        organisation_id=acme.id,
        apply=apply or retitle(),
        caller=person(acme),
        action="role.changed",
        now=NOW,
        **options,
    )


def last_event():
    return Event.objects.order_by("seq").last()


class TestChangingThePolicy:
    def test_counts_and_records_in_one_transaction(self, acme):
        done = change(
            acme,
            lambda o: o.roles.filter(name="hand").update(tools=["send_mail"]) and None,
            reason="less is more",
            subject="role:hand",
            details={"ticket": 7},
        )
        acme.refresh_from_db()
        assert acme.policy_version == done.after.version == 2
        event = last_event()
        assert (event.action, event.actor, event.subject) == (
            "role.changed",
            "human:alice",
            "role:hand",
        )
        assert event.reason == "less is more"
        assert event.at == NOW
        assert event.details["policy_version"] == 2
        assert event.details["ticket"] == 7
        assert "hand_one may call write_file in coding" in event.details["forbidden"]
        assert event.details["forbidden"] == list(done.difference.forbidden)

    def test_records_the_beginning_of_a_very_long_list(self, acme, monkeypatch):
        monkeypatch.setattr(services, "MOST_SENTENCES", 2)
        done = change(
            acme, lambda o: o.roles.filter(name="hand").update(tools=["escalate"]) and None
        )
        told = last_event().details["forbidden"]
        assert told == [
            *done.difference.forbidden[:2],
            f"… and {len(done.difference.forbidden) - 2} more",
        ]

    def test_names_the_organisation_where_no_subject_is_given(self, acme):
        change(acme)
        assert last_event().subject == "organisation:acme"

    @pytest.mark.parametrize("expected", [0, 2, 99])
    def test_changes_nothing_when_the_version_is_stale(self, acme, expected):
        with pytest.raises(Denied) as refused:
            change(acme, expected_version=expected)
        deny = refused.value.deny
        assert deny.code is Code.VERSION_MISMATCH
        assert deny.details == {"expected": expected, "current": 1}
        assert compile_policy(acme.id).roles["boss"].title == "Boss"
        assert Event.objects.count() == 1

    def test_takes_the_version_it_was_looked_at(self, acme):
        assert change(acme, expected_version=1).after.version == 2
        with denied("VERSION_MISMATCH"):
            change(acme, retitle("Newer"), expected_version=1)
        assert current_policy(acme.id).roles["boss"].title == "New"

    def test_leaves_nothing_of_a_preview(self, acme):
        seen = change(
            acme,
            lambda o: o.roles.filter(name="hand").update(tools=["escalate"]) and None,
            preview=True,
        )
        assert "hand_one may call write_file in coding" in seen.difference.forbidden
        assert seen.after.version == 2
        acme.refresh_from_db()
        assert acme.policy_version == 1
        assert "write_file" in current_policy(acme.id).roles["hand"].tools
        assert Event.objects.count() == 1

    def test_the_cache_keeps_nothing_of_a_preview(self, acme):
        change(acme, preview=True)
        change(acme, retitle("Real"))
        assert current_policy(acme.id).roles["boss"].title == "Real"

    def test_refuses_what_breaks_an_invariant_and_lists_all(self, acme):
        def apply(organisation):
            organisation.roles.filter(name="hand").update(
                tools=["create_contract", "no_such_tool"], files_write=["../"]
            )

        with pytest.raises(Denied) as refused:
            change(acme, apply)
        deny = refused.value.deny
        assert deny.code is Code.INVALID_PARAMS
        assert {v["invariant"] for v in deny.details["violations"]} == {
            "known tools",
            "paths",
            "C-07",
            "way up",
        }
        assert all(v["mend"] for v in deny.details["violations"])
        assert "write_file" in current_policy(acme.id).roles["hand"].tools
        assert Event.objects.count() == 1

    def test_corrects_one_row_of_two_that_an_update_made_wrong(self, acme):
        """An organisation may break an invariant that came later; it breaks no more of them."""
        acme.roles.filter(name__in=["hand", "lead"]).update(files_write=["../"])
        change(acme, lambda o: o.roles.filter(name="hand").update(files_write=["src/"]) and None)
        with pytest.raises(Denied) as refused:
            change(acme, lambda o: o.roles.filter(name="hand").update(files_read=["/"]) and None)
        broken = refused.value.deny.details["violations"]
        assert [each["subject"] for each in broken] == ["hand"]

    def test_is_where_every_invariant_is_checked(self, acme, monkeypatch):
        """Seen to fail: without the checks the same change passes."""
        monkeypatch.setattr(invariants, "CHECKS", ())
        change(
            acme, lambda o: o.roles.filter(name="hand").update(tools=["create_contract"]) and None
        )
        assert current_policy(acme.id).roles["hand"].tools == {"create_contract"}

    def test_refuses_a_circle_of_superiors(self, acme):
        def apply(organisation):
            rows = {a.handle: a for a in organisation.agents.all()}
            Agent.objects.filter(id=rows["boss"].id).update(reports_to=rows["lead"])

        with pytest.raises(Denied, match="no circle in reports_to") as refused:
            change(acme, apply)
        assert refused.value.deny.code is Code.INVALID_PARAMS
        assert current_policy(acme.id).agents["boss"].superior == "board"

    def test_leaves_nothing_when_the_change_itself_fails(self, acme):
        def apply(organisation):
            retitle()(organisation)
            raise RuntimeError

        with pytest.raises(RuntimeError):
            change(acme, apply)
        acme.refresh_from_db()
        assert acme.policy_version == 1
        assert current_policy(acme.id).roles["boss"].title == "Boss"

    def test_does_not_happen_when_its_event_cannot_be_written(self, acme, monkeypatch):
        def fail(action, **fields):
            raise RuntimeError("no space left on device")

        monkeypatch.setattr(services, "record", fail)
        with pytest.raises(RuntimeError):
            change(acme)
        acme.refresh_from_db()
        assert acme.policy_version == 1
        assert current_policy(acme.id).roles["boss"].title == "Boss"


class TestTheWeightOfAPolicy:
    """Every process that serves keeps it: what one organisation writes is memory of all."""

    @pytest.fixture
    def limit(self, acme, monkeypatch):
        limit = bytes_of(compile_policy(acme.id)) + 10_000
        monkeypatch.setattr(services, "MOST_BYTES", limit)
        return limit

    @pytest.mark.parametrize(
        "write",
        [
            lambda o, text: o.agents.filter(handle="boss").update(system_prompt=text),
            lambda o, text: o.agents.filter(handle="boss").update(skills=list(_parts(text))),
            lambda o, text: o.groups.create(slug="new", name="New", context=text),
            lambda o, text: o.roles.filter(name="boss").update(summary=text),
            lambda o, text: o.roles.filter(name="hand").update(prohibitions=[text]),
            lambda o, text: o.roles.filter(name="hand").update(files_deny=list(_parts(text))),
            lambda o, text: o.roles.update(permissions={"claim_task_type": [text]}),
            lambda o, text: o.mail_types.update(description=text),
            lambda o, text: _set(o, approval_task_types=[f"t{n}" for n in range(len(text))]),
        ],
    )
    def test_is_bounded(self, acme, limit, write):
        with pytest.raises(Denied) as problem:
            change(acme, lambda o: write(o, "x" * 11_000) and None)
        assert problem.value.deny.code is Code.QUOTA_EXCEEDED
        assert problem.value.deny.details["limit"] == limit
        acme.refresh_from_db()
        assert acme.policy_version == 1

    def test_may_shrink_and_stay_where_it_is_more(self, acme, limit):
        acme.agents.filter(handle="boss").update(system_prompt="x" * 30_000)
        change(acme)
        change(acme, lambda o: o.agents.update(system_prompt="x" * 20_000) and None)


def _set(organisation, **values):
    Organisation.objects.filter(id=organisation.id).update(settings=values)


def _parts(text):
    """Of 100 characters each, and of no two the same."""
    return (f"{n:0100}" for n in range(len(text) // 100))


class TestManyChangesAtOnce:
    @pytest.mark.django_db(transaction=True)
    def test_are_all_counted(self, tmp_path):
        load(write_pack(tmp_path))
        acme = Organisation.objects.get()
        results = at_once([partial(change, acme, retitle(f"Boss {n}")) for n in range(8)])
        assert sorted(r.after.version for r in results) == list(range(2, 10))
        acme.refresh_from_db()
        assert acme.policy_version == 9
        assert sorted(e.details["policy_version"] for e in Event.objects.all()) == list(
            range(1, 10)
        )
        last = max(results, key=lambda r: r.after.version)
        assert current_policy(acme.id).roles["boss"].title == last.after.roles["boss"].title

    @pytest.mark.django_db(transaction=True)
    def test_upon_one_version_let_one_win(self, tmp_path):
        load(write_pack(tmp_path))
        acme = Organisation.objects.get()
        results = at_once(
            [partial(change, acme, retitle(f"Boss {n}"), expected_version=1) for n in range(8)]
        )
        lost = [r for r in results if isinstance(r, Code)]
        assert len(lost) == 7
        assert set(lost) == {Code.VERSION_MISMATCH}
        acme.refresh_from_db()
        assert acme.policy_version == 2
        assert Event.objects.count() == 2


class TestSettings:
    def test_are_set_recorded_and_seen(self, acme):
        done = set_settings(
            organisation=acme,
            values={"max_rounds": "9", "enforcement": "off"},
            caller=person(acme),
            now=NOW,
        )
        assert done.after.settings["max_rounds"] == 9
        event = last_event()
        assert event.action == "organisation.settings_changed"
        assert event.reason == "max_rounds=9, enforcement=off"
        acme.refresh_from_db()
        assert acme.settings["enabled_modes"] == ["chat_safe", "coding"]

    def test_say_what_a_mode_permits(self, acme):
        done = set_settings(
            organisation=acme,
            values={"enabled_modes": "chat_safe"},
            caller=person(acme),
            now=NOW,
        )
        assert "sessions may be in coding" in done.difference.forbidden

    @pytest.mark.parametrize("values", [{"max_rounds": "x"}, {"max_rounds": 4, "no_such": 1}])
    def test_are_refused_whole(self, acme, values):
        with pytest.raises(Denied) as refused:
            set_settings(organisation=acme, values=values, caller=person(acme), now=NOW)
        assert refused.value.deny.code is Code.INVALID_PARAMS
        assert current_policy(acme.id).settings["max_rounds"] == 5
        assert Event.objects.count() == 1
