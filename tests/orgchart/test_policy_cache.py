"""The compiled policies of a process: what is kept, for how long, in how much memory."""

import gc
import threading
import time
import tracemalloc

import pytest
from django.db import transaction

from orgchart import compiling, policy_cache
from orgchart.compiling import compile_policy
from orgchart.models import Agent, Organisation
from orgchart.policy_cache import PolicyCache, bytes_of, current_policy
from orgchart.services import set_settings
from tests.orgchart.world import NOW, PACKS, load, person, queries

pytestmark = pytest.mark.django_db


def said_in(role, column):
    return role.files.read if column == "files_read" else getattr(role, column)


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

    def test_keeps_nothing_that_was_read_before_it_was_cleared(self, acme, monkeypatch):
        cache = PolicyCache()

        def lost(organisation_id):
            policy = compile_policy(organisation_id)
            cache.clear()
            return policy

        with monkeypatch.context() as patched:
            patched.setattr(policy_cache, "compile_policy", lost)
            held = cache.get(acme.id, 1)
        assert cache.get(acme.id, 1) is not held

    def test_forgets_the_least_used(self, acme, monkeypatch):
        compiled = []

        def fake(organisation_id):
            compiled.append(organisation_id)
            return Held(organisation_id)

        class Held:
            version = 1

            def __init__(self, organisation_id):
                self.organisation_id = organisation_id

        monkeypatch.setattr(policy_cache, "compile_policy", fake)
        monkeypatch.setattr(policy_cache, "bytes_of", lambda policy: 10)
        cache = PolicyCache(capacity=20)
        for wanted in (1, 2, 1, 3, 1, 2):
            assert cache.get(wanted, 1).organisation_id == wanted
        assert compiled == [1, 2, 3, 2], "2 was used before 1, so it made room for 3"

    def test_is_bounded_by_memory(self, monkeypatch):
        class Held:
            def __init__(self, organisation_id):
                self.organisation_id, self.version = organisation_id, 1

        monkeypatch.setattr(policy_cache, "compile_policy", Held)
        monkeypatch.setattr(policy_cache, "bytes_of", lambda policy: policy.organisation_id)
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
        assert 0.7 < each / bytes_of(held[0]) < 1.3

    def test_counts_what_people_wrote(self, acme):
        before = bytes_of(compile_policy(acme.id))
        acme.agents.update(system_prompt="x" * 100_000)
        once = bytes_of(compile_policy(acme.id))
        assert 99_000 < once - before < 101_000
        acme.roles.filter(name="hand").update(prohibitions=["é" * 1000, "界" * 1000])
        assert 3000 <= bytes_of(compile_policy(acme.id)) - once < 4000

    @pytest.mark.parametrize("column", ["files_read", "prohibitions", "tools"])
    def test_shares_no_long_list_with_other_policies(self, acme, column):
        """It would stay in memory behind every change of it."""
        compile_policy(acme.id)
        shared = [f.cache_info().currsize for f in (compiling._tuple_of, compiling._set_of)]
        words = [f"{n}/" + "x" * 100 for n in range(50)]
        acme.roles.filter(name="hand").update(**{column: words})
        assert set(said_in(compile_policy(acme.id).roles["hand"], column)) == set(words)
        assert shared == [f.cache_info().currsize for f in (compiling._tuple_of, compiling._set_of)]

    def test_compiles_once_for_many_threads(self, monkeypatch):
        compiled, begun = [], threading.Event()

        class Held:
            def __init__(self, organisation_id):
                begun.set()
                compiled.append(organisation_id)
                time.sleep(0.05)
                self.organisation_id, self.version = organisation_id, 1

        monkeypatch.setattr(policy_cache, "compile_policy", Held)
        monkeypatch.setattr(policy_cache, "bytes_of", lambda policy: 1)
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

        monkeypatch.setattr(policy_cache, "compile_policy", Held)
        monkeypatch.setattr(policy_cache, "bytes_of", lambda policy: 1)
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
