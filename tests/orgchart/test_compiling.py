"""From tables to the Policy: what counts, what it costs, when it is read again."""

from functools import partial

import pytest
from django.db import transaction

from orgchart import compiling
from orgchart.compiling import compile_policy
from orgchart.models import Agent, Organisation, ToolOverride
from orgchart.policy.vocabulary import BOARD, ToolMode
from tests.concurrency import at_once
from tests.orgchart.world import PACKS, load, queries, write_pack

pytestmark = pytest.mark.django_db


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

        results = at_once([partial(work, n) for n in range(3)])
        seen = {pair for answer in results for pair in answer}
        seen.discard((5, "Boss"))
        assert seen
        assert not [(rounds, title) for rounds, title in seen if title != f"Boss {rounds}"]

    @pytest.mark.django_db(transaction=True)
    def test_begins_again_where_an_agent_of_a_new_role_came_in_between(self, tmp_path, monkeypatch):
        load(write_pack(tmp_path))
        organisation = Organisation.objects.get()
        read, hired = compiling._role, []

        def hire():
            with transaction.atomic():
                row = Organisation.objects.select_for_update().get()
                role = row.roles.get(name="hand")
                role.pk, role.name = None, "new_hand"
                role.save()
                lead = row.agents.get(handle="lead")
                row.agents.create(handle="newcomer", role=role, reports_to=lead)
                row.policy_version += 1
                row.save()

        def read_and_hire(row):
            if not hired:
                hired.append(row)
                at_once([hire], raising=True)
            return read(row)

        monkeypatch.setattr(compiling, "_role", read_and_hire)
        assert compile_policy(organisation.id).agents["newcomer"].role == "new_hand"
