"""From tables to the Policy: what counts, what it costs, when it is read again."""

import gc
import threading
import time
import tracemalloc

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from orgchart import compiling
from orgchart.compiling import PolicyCache, compile_policy, current_policy
from orgchart.models import Agent, Organisation, ToolOverride
from orgchart.policy.vocabulary import BOARD, ToolMode
from orgchart.services import set_settings
from tests.orgchart.world import NOW, PACKS, at_once, load, person, write_pack

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme(tmp_path):
    load(write_pack(tmp_path))
    return Organisation.objects.get(slug="acme")


def queries(work):
    with CaptureQueriesContext(
        connection,
    ) as seen:
        work()
    return len(seen)


class TestCompiling:
    def test_costs_the_same_for_five_agents_and_for_fifty(self, acme):
        before = queries(lambda: compile_policy(acme.id))
        role = acme.roles.get(name="hand")
        lead = acme.agents.get(handle="lead")
        for number in range(45):
            one = Agent.objects.create(
                organisation=acme, handle=f"extra{number}", role=role, reports_to=lead
            )
            one.co_managers.add(acme.agents.get(handle="other_lead"))
        assert queries(lambda: compile_policy(acme.id)) == before
        assert before <= 12

    def test_finds_every_name_of_an_agent(self, acme):
        policy = compile_policy(acme.id)
        for name in ("lead", "crew.leader"):
            found = policy.resolve(name)
            assert found is not None
            assert found.handle == "lead"
        assert policy.by_id[policy.agents["lead"].id] is policy.agents["lead"]

    @pytest.mark.parametrize(
        "name",
        [
            "Lead",
            "LEAD",
            " lead",
            "lead ",
            "lead\n",
            "lead\0",
            "lеad",
            "leаd",
            "ｌead",
            "crew",
            "",
            "board",
        ],
        ids=ascii,
    )
    def test_finds_nobody_by_a_name_that_is_not_exactly_theirs(self, acme, name):
        assert compile_policy(acme.id).resolve(name) is None

    def test_skips_the_deactivated_on_the_way_up(self, acme):
        Agent.objects.filter(handle="lead").update(active=False)
        policy = compile_policy(acme.id)
        assert policy.agents["hand_one"].superior == "boss"
        Agent.objects.filter(handle="boss").update(active=False)
        policy = compile_policy(acme.id)
        assert policy.agents["hand_one"].superior == BOARD
        assert policy.agents["hand_one"].managers == (BOARD, "other_lead")

    def test_never_hangs_on_a_circle_written_by_hand(self, acme):
        boss, lead = acme.agents.get(handle="boss"), acme.agents.get(handle="lead")
        Agent.objects.filter(id__in=[boss.id, lead.id]).update(active=False)
        Agent.objects.filter(id=boss.id).update(reports_to=lead)
        assert compile_policy(acme.id).agents["hand_one"].superior == BOARD

    def test_takes_what_it_cannot_read_of_a_tightening_as_taken_away(self, acme):
        ToolOverride.objects.update(modes=["coding", "root", ""])
        overrides = compile_policy(acme.id).tool_restrictions
        assert overrides == {("role:lead", "web_search"): frozenset({ToolMode.CODING})}

    def test_gives_no_office_for_a_word_that_is_none(self, acme):
        acme.roles.filter(name="hand").update(offices=["REVIEWER", "KING"])
        assert compile_policy(acme.id).roles["hand"].offices == {"REVIEWER"}

    def test_is_chat_safe_where_the_setting_is_garbage(self, acme):
        Organisation.objects.update(settings={"enabled_modes": "all of them"})
        assert compile_policy(acme.id).enabled_modes == {ToolMode.CHAT_SAFE}

    def test_sees_no_row_of_another_organisation(self, acme):
        load(PACKS / "soloqueue")
        policy = compile_policy(acme.id)
        assert set(policy.agents) == {"boss", "lead", "other_lead", "hand_one", "hand_two"}
        assert policy.resolve("coding.leader") is None


class TestTheCache:
    def test_asks_one_question_while_nothing_changed(self, acme):
        current_policy(acme.id)
        assert queries(lambda: current_policy(acme.id)) == 1
        assert current_policy(acme.id) is current_policy(acme.id)

    def test_asks_none_when_the_version_is_known(self, acme):
        cache = PolicyCache()
        held = cache.get(acme.id, 1)
        assert queries(lambda: cache.get(acme.id, 1)) == 0
        assert cache.get(acme.id, 1) is held

    def test_follows_a_change_at_once(self, acme):
        before = current_policy(acme.id)
        set_settings(organisation=acme, values={"max_rounds": 8}, caller=person(acme), now=NOW)
        after = current_policy(acme.id)
        assert (before.version, after.version) == (1, 2)
        assert (before.settings["max_rounds"], after.settings["max_rounds"]) == (5, 8)

    @pytest.mark.parametrize("deep", [False, True])
    def test_keeps_nothing_of_a_change_that_was_rolled_back(self, acme, deep):
        """The version that was rolled back is given again, to another change."""

        def change(rounds):
            set_settings(
                organisation=acme, values={"max_rounds": rounds}, caller=person(acme), now=NOW
            )
            return current_policy(acme.id).settings["max_rounds"]

        with transaction.atomic():
            with transaction.atomic(savepoint=deep):
                assert change(66) == 66
            assert current_policy(acme.id).settings["max_rounds"] == 66
            transaction.set_rollback(True)
        assert change(7) == 7
        assert current_policy(acme.id).version == 2

    def test_forgets_the_least_used(self, acme, monkeypatch):
        compiled = []

        def fake(organisation_id):
            compiled.append(organisation_id)
            return Held(organisation_id)

        class Held:
            version = 1

            def __init__(self, organisation_id):
                self.organisation_id = organisation_id

        monkeypatch.setattr(compiling, "compile_policy", fake)
        monkeypatch.setattr(compiling, "bytes_of", lambda policy: 10)
        cache = PolicyCache(capacity=20)
        for wanted in (1, 2, 1, 3, 1, 2):
            assert cache.get(wanted, 1).organisation_id == wanted
        assert compiled == [1, 2, 3, 2], "2 was used before 1, so it made room for 3"

    def test_is_bounded_by_memory(self, monkeypatch):
        class Held:
            def __init__(self, organisation_id):
                self.organisation_id, self.version = organisation_id, 1

        monkeypatch.setattr(compiling, "compile_policy", Held)
        monkeypatch.setattr(compiling, "bytes_of", lambda policy: policy.organisation_id)
        cache = PolicyCache(capacity=100)
        small = [cache.get(number, 1) for number in (10, 20, 30)]
        assert [cache.get(p.organisation_id, 1) is p for p in small] == [True, True, True]
        cache.get(90, 1)
        assert [cache.get(p.organisation_id, 1) is p for p in small] == [False, False, False]

    @pytest.mark.parametrize("more", [0, 200])
    def test_estimates_the_memory_that_one_more_policy_takes(self, more):
        """Of organisations that were made of one pack, as most are: they share what they say."""
        load(PACKS / "nexus")
        nexus = Organisation.objects.get()
        worker = nexus.agents.get(handle="backend_worker")
        Agent.objects.bulk_create(
            Agent(organisation=nexus, handle=f"worker{n}", role=worker.role, reports_to=worker)
            for n in range(more)
        )
        compile_policy(nexus.id)
        tracemalloc.start()
        try:
            held = [compile_policy(nexus.id) for _ in range(10)]
            gc.collect()
            each = tracemalloc.get_traced_memory()[0] / len(held)
        finally:
            tracemalloc.stop()
        assert 0.7 < each / compiling.bytes_of(held[0]) < 1.3

    def test_compiles_once_for_many_threads(self, monkeypatch):
        compiled, begun = [], threading.Event()

        class Held:
            def __init__(self, organisation_id):
                begun.set()
                compiled.append(organisation_id)
                time.sleep(0.05)
                self.organisation_id, self.version = organisation_id, 1

        monkeypatch.setattr(compiling, "compile_policy", Held)
        monkeypatch.setattr(compiling, "bytes_of", lambda policy: 1)
        cache = PolicyCache()
        threads = [threading.Thread(target=cache.get, args=(7, 1)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert compiled == [7]

    def test_may_be_asked_by_many_threads(self, monkeypatch):
        class Held:
            def __init__(self, organisation_id):
                self.organisation_id, self.version = organisation_id, 1

        monkeypatch.setattr(compiling, "compile_policy", Held)
        monkeypatch.setattr(compiling, "bytes_of", lambda policy: 1)
        cache = PolicyCache(capacity=3)
        wrong = []

        def work(seed):
            for step in range(2000):
                wanted = (seed * 7 + step) % 5
                if cache.get(wanted, 1).organisation_id != wanted:
                    wrong.append(wanted)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


class TestUnderChanges:
    @pytest.mark.django_db(transaction=True)
    def test_never_mixes_two_versions(self, tmp_path):
        """Settings and a title always change together: nobody sees one without the other."""
        load(write_pack(tmp_path))
        organisation = Organisation.objects.get()

        def work(number):
            if number:
                return [
                    (p.settings["max_rounds"], p.roles["boss"].title)
                    for p in (compile_policy(organisation.id) for _ in range(25))
                ]
            for rounds in range(10, 30):
                with transaction.atomic():
                    row = Organisation.objects.select_for_update().get()
                    row.roles.filter(name="boss").update(title=f"Boss {rounds}")
                    row.settings = {"max_rounds": rounds}
                    row.policy_version += 1
                    row.save()
            return []

        results = at_once(3, work)
        seen = {pair for answer in results for pair in answer}
        seen.discard((5, "Boss"))
        assert seen
        assert not [(rounds, title) for rounds, title in seen if title != f"Boss {rounds}"]
