"""A pack makes an organisation once, however often and by however many it is loaded."""

import shutil
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.actors import Person, System
from ledger.models import Event
from orgchart.compiling import compile_policy
from orgchart.models import Agent, Organisation
from orgchart.packs import BadPack, OtherOrganisation, diff_pack, load_pack
from orgchart.packs.checking import sound_pack
from orgchart.packs.layout import find_layout
from orgchart.packs.pack import policy_of
from orgchart.packs.problems import Notes
from orgchart.packs.staffing import AT_ONCE
from orgchart.services import set_settings
from tests.concurrency import at_once
from tests.orgchart.world import (
    LOADER,
    NOW,
    PACKS,
    SHIPPED,
    edited,
    load,
    plain,
    write_pack,
)

pytestmark = pytest.mark.django_db


def events():
    return list(Event.objects.order_by("seq").values_list("action", flat=True))


class TestLoadingANewPack:
    @pytest.mark.parametrize("name", SHIPPED)
    def test_makes_the_very_policy_its_files_describe(self, name):
        change = load(PACKS / name)
        assert plain(compile_policy(change.after.organisation_id)) == plain(
            policy_of(sound_pack(PACKS / name))
        )

    def test_begins_at_version_1_with_one_event(self, acme):
        assert acme.policy_version == 1
        [event] = Event.objects.all()
        assert (event.action, event.actor) == ("pack.loaded", "system:tests")
        assert event.organisation_id == acme.id
        assert event.details["policy_version"] == 1
        assert "hand_one may send report to lead" in event.details["allowed"]
        assert "agent hand_one added" in event.details["rows"]
        assert event.details["forbidden"] != []  # the deny lists of its roles

    def test_names_the_person_who_loads(self, pack):
        load_pack(
            pack,
            caller=Person(
                username="alice", organisation_id=0, groups=frozenset({"Board"}), is_member=True
            ),
            now=NOW,
        )
        assert Event.objects.get().actor == "human:alice"

    def test_keeps_what_only_files_say(self, acme):
        hand = acme.agents.get(handle="hand_one")
        assert hand.job_description == "Carries things."
        assert hand.system_prompt == "You are handy.\nBe so.\n"
        assert acme.settings == {"enabled_modes": ["chat_safe", "coding"], "max_rounds": 5}
        assert acme.overrides.get().reason == "costs money"
        assert acme.description == "Makes everything."

    def test_is_refused_whole(self, tmp_path):
        write_pack(tmp_path, edited("roles.yaml", ("read_code", "read_cod")))
        with pytest.raises(BadPack):
            load(tmp_path)
        assert not Organisation.objects.exists()
        assert events() == []

    def test_of_any_number_of_agents_has_room_in_its_statements(self, pack):
        """An organisation of 9,900 agents could be exported and not be loaded."""
        for number in range(2 * AT_ONCE):
            (pack / "agents" / f"hand_{number}.yaml").write_text("role: hand\nreports_to: lead\n")
        with CaptureQueriesContext(connection) as seen:
            load(pack)
        inserts = [each["sql"] for each in seen if 'INSERT INTO "orgchart_agent"' in each["sql"]]
        assert len(inserts) == 3
        assert Agent.objects.count() > 2 * AT_ONCE

    def test_has_room_for_each_agent_that_an_installation_may_have(self, pack):
        for number in range(10_001):
            (pack / "agents" / f"hand_{number}.yaml").touch()
        assert len(find_layout(pack, "", Notes()).agents) == len(list((pack / "agents").iterdir()))

    def test_leaves_nothing_when_only_looked_at(self, pack):
        change = load(pack, preview=True)
        assert "hand_one may send report to lead" in change.difference.allowed
        assert not Organisation.objects.exists()
        assert events() == []

    def test_leaves_nothing_when_its_event_cannot_be_written(self, pack, monkeypatch):
        def fail(action, **fields):
            raise RuntimeError("full disk")

        monkeypatch.setattr("orgchart.services.record", fail)
        with pytest.raises(RuntimeError):
            load(pack)
        assert not Organisation.objects.exists()


class TestLoadingTheSamePackAgain:
    @pytest.mark.parametrize("name", SHIPPED)
    def test_changes_nothing(self, name):
        first = load(PACKS / name)
        again = load(PACKS / name)
        assert first.changed
        assert not again.changed
        assert again.after == first.after
        assert again.difference.is_empty
        assert events() == ["pack.loaded"]

    def test_changes_nothing_when_only_the_order_of_a_set_changed(self, pack, acme):
        write_pack(
            pack,
            edited(
                "roles.yaml",
                ("[send_mail, escalate, create_contract, read_code, web_search]",) * 2,
                ("[send_mail, escalate, create", "[escalate, send_mail, create"),
            ),
        )
        assert not load(pack).changed


class TestComparing:
    def test_finds_nothing_where_nothing_differs(self, pack, acme):
        found = diff_pack(acme, pack, caller=LOADER, now=NOW)
        assert found.is_empty
        assert found.difference.is_empty

    def test_names_rows_and_effects_and_changes_nothing(self, pack, acme):
        write_pack(
            pack,
            edited("agents/hand_one.yaml", ("First Hand", "Right Hand"))
            | {"agents/hand_two.yaml": None},
        )
        found = diff_pack(acme, pack, caller=LOADER, now=NOW)
        assert found.rows == ("agent hand_one changed: title", "agent hand_two deactivated: active")
        assert "hand_two may send report to other_lead" in found.difference.forbidden
        acme.refresh_from_db()
        assert acme.policy_version == 1
        assert acme.agents.get(handle="hand_two").active

    def test_refuses_the_pack_of_another(self, acme):
        with pytest.raises(OtherOrganisation, match="is the pack of nexus, not of acme"):
            diff_pack(acme, PACKS / "nexus", caller=LOADER, now=NOW)


class TestManyLoadsAtOnce:
    @pytest.mark.django_db(transaction=True)
    def test_make_a_new_organisation_once(self, pack):
        results = at_once([lambda: load(pack)] * 6)
        assert sorted(r.changed for r in results) == [False] * 5 + [True]
        assert Organisation.objects.get().policy_version == 1
        assert Agent.objects.count() == 5
        assert events() == ["pack.loaded"]

    @pytest.mark.django_db(transaction=True)
    def test_of_two_packs_leave_one_of_them_whole(self, pack, tmp_path):
        load(pack)
        other = tmp_path / "other"
        shutil.copytree(pack, other)
        write_pack(
            other,
            {
                "agents/hand_two.yaml": None,
                "agents/hand_three.yaml": "role: hand\nreports_to: lead\n",
            },
        )
        results = at_once([lambda: load(pack), lambda: load(other)] * 2)
        assert not [r for r in results if isinstance(r, Exception)]
        organisation = Organisation.objects.get()
        active = set(organisation.agents.filter(active=True).values_list("handle", flat=True))
        assert active & {"hand_two", "hand_three"} in ({"hand_two"}, {"hand_three"})
        assert organisation.policy_version == events().count("pack.loaded")

    @pytest.mark.django_db(transaction=True)
    def test_and_other_changes_are_all_counted(self, pack):
        load(pack)
        organisation = Organisation.objects.get()
        write_pack(pack, edited("agents/hand_one.yaml", ("First Hand", "Right Hand")))

        def work(number):
            if number == 0:
                return load(pack)
            return set_settings(
                organisation=organisation,
                values={"max_rounds": number},
                caller=System(name=f"s{number}", organisation_id=organisation.id),
                now=timezone.now() + timedelta(seconds=number),
            )

        results = at_once([partial(work, n) for n in range(6)])
        assert not [r for r in results if isinstance(r, Exception)]
        organisation.refresh_from_db()
        assert organisation.policy_version == 7
        assert len(events()) == 7
