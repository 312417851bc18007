"""Out of service and back."""

import pytest

from core.decision import Code, Denied
from ledger.models import Event
from orgchart.keys import issue_key
from orgchart.models import ApiKey, Organisation
from orgchart.policy_cache import current_policy
from orgchart.staffing import activate_agent, deactivate_agent
from tests.concurrency import at_once
from tests.orgchart.world import NOW, PACKS, load, person, write_pack

pytestmark = pytest.mark.django_db


def leave(acme, handle="hand_one", **options):
    return deactivate_agent(handle=handle, caller=person(acme), now=NOW, reason="left", **options)


def come_back(acme, handle="hand_one", **options):
    return activate_agent(handle=handle, caller=person(acme), now=NOW, reason="back", **options)


class TestDeactivating:
    def test_takes_every_right_and_keeps_the_name(self, acme):
        done = leave(acme)
        assert "hand_one acts as hand (level 3)" in done.difference.forbidden
        assert done.difference.allowed == ()
        found = current_policy(acme.id).resolve("crew.one")
        assert found is not None
        assert not found.active

    def test_revokes_all_its_keys_and_nobody_elses(self, acme):
        for handle in ("hand_one", "hand_one", "hand_two"):
            issue_key(agent=acme.agents.get(handle=handle), caller=person(acme), now=NOW)
        leave(acme)
        assert set(ApiKey.objects.values_list("agent__handle", "revoked_by")) == {
            ("hand_one", "human:alice"),
            ("hand_two", ""),
        }

    def test_is_recorded_with_its_reason(self, acme):
        leave(acme)
        event = Event.objects.order_by("seq").last()
        assert (event.action, event.subject, event.reason) == (
            "agent.deactivated",
            "agent:hand_one",
            "left",
        )

    def test_of_a_leader_waits_for_another_leader(self, acme):
        with pytest.raises(Denied, match="group crew has 0 leaders"):
            leave(acme, "lead")
        assert current_policy(acme.id).agents["lead"].active

    def test_of_the_last_in_a_group_ends_its_lead(self, acme):
        leave(acme, "hand_one")
        leave(acme, "lead")
        assert not acme.agents.get(handle="lead").is_leader

    def test_of_a_manager_leaves_its_workers_to_the_one_above(self, acme):
        leave(acme, "other_lead")
        assert current_policy(acme.id).agents["hand_two"].superior == "boss"

    def test_leaves_nothing_of_a_preview(self, acme):
        issue_key(agent=acme.agents.get(handle="hand_one"), caller=person(acme), now=NOW)
        assert leave(acme, preview=True).difference.forbidden
        assert current_policy(acme.id).agents["hand_one"].active
        assert ApiKey.objects.get().revoked_at is None

    def test_is_refused_when_the_version_is_stale(self, acme):
        with pytest.raises(Denied) as refused:
            leave(acme, expected_version=7)
        assert refused.value.deny.code is Code.VERSION_MISMATCH

    @pytest.mark.parametrize("name", ["nobody", "Hand_One", "", "coding_leader", "crew.one"])
    def test_of_nobody_here_is_refused(self, acme, name):
        load(PACKS / "soloqueue")
        with pytest.raises(Denied) as refused:
            leave(acme, name)
        assert refused.value.deny.code is Code.NOT_FOUND

    @pytest.mark.django_db(transaction=True)
    def test_by_many_at_once_happens_once(self, tmp_path):
        load(write_pack(tmp_path))
        acme = Organisation.objects.get()
        results = at_once([lambda: leave(acme)] * 6)
        assert [r for r in results if isinstance(r, Code)] == [Code.INVALID_TRANSITION] * 5
        assert Event.objects.filter(action="agent.deactivated").count() == 1


class TestActivating:
    def test_brings_everything_back_but_the_keys(self, acme):
        issue_key(agent=acme.agents.get(handle="hand_one"), caller=person(acme), now=NOW)
        before = current_policy(acme.id).agents["hand_one"]
        leave(acme)
        done = come_back(acme)
        assert done.after.agents["hand_one"] == before
        assert not ApiKey.objects.filter(revoked_at=None).exists()

    def test_of_who_is_active_is_refused(self, acme):
        with pytest.raises(Denied) as refused:
            come_back(acme)
        assert refused.value.deny.code is Code.INVALID_TRANSITION

    def test_is_refused_where_its_place_breaks_an_invariant(self, acme):
        leave(acme, "hand_two")
        acme.roles.filter(name="hand").update(level=2)
        with pytest.raises(Denied) as refused:
            come_back(acme, "hand_two")
        assert refused.value.deny.code is Code.INVALID_PARAMS
        assert "other_lead (level 2) cannot manage level 2" in str(
            refused.value.deny.details["violations"]
        )
