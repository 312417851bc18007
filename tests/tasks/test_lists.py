"""Pages, filters, recommendations; none of them grows with what it does not return."""

from datetime import timedelta

import pytest
from django.db import connection

from core.decision import Code, Denied
from tasks import listing
from tasks.backlog import PAGE as BACKLOG_PAGE
from tasks.insight import recommendations
from tasks.insight.recommendation_order import Candidate, Taker, best, reasons
from tasks.vocabulary import Status
from tests.plans import rows_touched
from tests.tasks.world import NOW, permit


@pytest.fixture
def listed(who):
    def ids(**filters) -> list[str]:
        page = listing.list_tasks(caller=who("architect"), **filters)
        return [line["id"] for line in page["tasks"]]

    return ids


class TestList:
    def test_is_newest_first_and_pages_through_all_once(self, make, who):
        made = [make() for _ in range(7)]
        found, cursor = [], None
        for _ in range(4):
            page = listing.list_tasks(caller=who("architect"), limit=2, cursor=cursor)
            found += [line["id"] for line in page["tasks"]]
            cursor = page["next_cursor"]
        assert found == made[::-1]
        assert cursor is None

    def test_leaves_deleted_ones_out_unless_asked(self, make, update, listed):
        kept, gone = make(), make()
        update("team-lead", gone, status=Status.DELETED)
        assert listed() == [kept]
        assert listed(status=Status.DELETED) == [gone]

    def test_filters_by_status_and_owner(self, make, update, listed):
        mine, free = make(), make()
        update("architect", mine, owner="architect", status=Status.IN_PROGRESS)
        assert listed(status=Status.IN_PROGRESS) == [mine]
        assert listed(owner="architect") == [mine]
        assert listed(owner="") == [free]
        assert listed(owner="", status=Status.IN_PROGRESS) == []

    def test_filters_by_role_and_owner_together(self, make, update, listed):
        free, other, taken = (
            make(required_role="architect"),
            make(required_role="backend-leader"),
            make(required_role="architect"),
        )
        update("architect", taken, owner="architect")
        assert listed(role_filter="architect", owner="") == [free]
        assert listed(role_filter="architect", owner="architect") == [taken]
        assert listed(role_filter="backend-leader", owner="") == [other]
        assert listed(role_filter="backend-leader", owner="architect") == []

    def test_shows_each_task_once_though_two_reasons_list_it(self, make, update, listed):
        one = make(required_role="backend-leader")
        update("backend-leader", one, owner="backend-leader")
        assert listed(role_filter="backend-leader") == [one]

    def test_takes_the_second_agent_of_a_role_for_its_role(self, make, update, listed):
        one = make(required_role="frontend-leader")
        update("team-lead", one, owner="backend-leader-2", force=True)
        assert listed(role_filter="backend-leader") == [one]
        assert listed(role_filter="backend-leader-2") == [one]
        assert listed(role_filter="test-leader") == []

    @pytest.mark.parametrize("cursor", ["x", "", "!", "YWJj", "LTE", "MTIzNDU2Nzg5MDEyMzQ1Njc4OTA"])
    def test_refuses_a_cursor_that_no_list_gave(self, who, cursor):
        with pytest.raises(Denied) as denied:
            listing.list_tasks(caller=who("architect"), cursor=cursor)
        assert denied.value.deny.code is Code.INVALID_PARAMS

    def test_refuses_roles_and_owners_that_do_not_exist(self, who):
        for filters in ({"role_filter": "organisation__slug"}, {"owner": "nobody"}):
            with pytest.raises(Denied) as denied:
                listing.list_tasks(caller=who("architect"), **filters)
            assert denied.value.deny.code is Code.INVALID_PARAMS


class TestRecommend:
    @pytest.fixture
    def recommended(self, who):
        def found(handle: str = "architect", limit: int = 5) -> list[dict]:
            answer = recommendations.recommend_tasks(caller=who(handle), limit=limit, now=NOW)
            return answer["tasks"]

        return found

    def test_offers_only_what_the_agent_could_take_now(self, team, make, update, recommended):
        permit(team, "architect", claim_task_type=["api_design"], update_own_tasks=True)
        fits, free = make(required_role="architect"), make()
        make(required_role="backend-leader")
        make(task_type="testing")
        make(blocked_by=[fits])
        update("test-leader", make(), owner="test-leader")
        update("team-lead", make(), status=Status.DELETED)
        assert {task["id"] for task in recommended()} == {fits, free}

    def test_orders_by_rank_fit_experience_what_waits_and_age(self, make, update, recommended):
        oldest, waits, known, fits, ranked = (
            make(), make(), make(task_type="testing"), make(required_role="architect"), make(),
        )  # fmt: skip
        make(blocked_by=[waits], required_role="backend-leader")
        before = make(task_type="testing")
        update("architect", before, owner="architect", status=Status.IN_PROGRESS)
        update("architect", before, status=Status.COMPLETED)
        update("product-manager", ranked, rank=3, curates=True)
        found = recommended()
        assert [task["id"] for task in found] == [ranked, fits, known, waits, oldest]
        assert found[0]["reasons"][0] == "It is ranked 3 in the backlog; higher comes first."
        assert 'It requires your role "architect".' in found[1]["reasons"]
        assert 'You have completed 1 of type "testing".' in found[2]["reasons"]
        assert "1 task waits for it." in found[3]["reasons"]
        assert recommended() == found

    def test_knows_the_types_of_the_role(self, team, make, recommended):
        permit(team, "architect", claim_task_type=["api_design"], update_own_tasks=True)
        plain, typed = make(), make(task_type="api_design")
        found = recommended()
        assert [task["id"] for task in found] == [typed, plain]
        assert found[0]["reasons"][0] == 'Your role takes tasks of type "api_design".'

    def test_offers_what_was_begun_and_left(self, make, update, recommended):
        one = make()
        update("test-leader", one, owner="test-leader", status=Status.IN_PROGRESS)
        update("test-leader", one, owner="")
        assert "it has to be finished" in " ".join(recommended()[0]["reasons"])

    def test_the_best_of_each_group_are_enough(self):
        """What the index gives for each role and type holds the best of all."""
        taker = Taker(
            handle="me", role="r", claims=frozenset({"a", "b"}), experience={"a": 2, "c": 1}
        )
        tasks = [
            Candidate(
                number=number,
                required_role=("", "r")[number % 2],
                task_type=("", "a", "b", "c")[number % 4],
                rank=number * 7 % 3,
                dependents=number * 5 % 4,
                started=False,
                created_at=NOW,
            )
            for number in range(1, 200)
        ]
        groups: dict[tuple, list[Candidate]] = {}
        for task in sorted(tasks, key=lambda t: (-t.rank, -t.dependents, t.number)):
            groups.setdefault((task.required_role, task.task_type), []).append(task)
        for limit in (1, 3, 10):
            firsts = [task for group in groups.values() for task in group[:limit]]
            assert best(firsts, taker, limit) == best(tasks, taker, limit)

    @pytest.mark.parametrize(
        ("age", "said"),
        [
            (timedelta(), "0 minutes"),
            (timedelta(minutes=1), "1 minute"),
            (timedelta(hours=5), "5 hours"),
            (timedelta(days=1, hours=23), "1 day"),
            (timedelta(days=-1), "0 minutes"),
        ],
    )
    def test_says_how_long_it_has_been_open(self, age, said):
        task = Candidate(
            number=1,
            required_role="",
            task_type="",
            rank=0,
            dependents=2,
            started=False,
            created_at=NOW - age,
        )
        found = reasons(task, Taker(handle="me", role="r"), NOW)
        assert found[-1] == f"It has been open for {said}."
        assert "2 tasks wait for it." in found


FILL = """
INSERT INTO tasks_task (organisation_id, number, subject, description, active_form, status,
    metadata, required_role, task_type, created_by, completed_at)
SELECT %(organisation)s, n, 'x', '', '', (ARRAY['pending', 'completed', 'deleted'])[n %% 3 + 1],
    '{}', (ARRAY['', 'architect', 'backend-leader'])[n %% 5 %% 3 + 1],
    (ARRAY['', 'testing', 'api_design'])[n %% 7 %% 3 + 1], 'x', now()
FROM generate_series(2, %(many)s) AS n
"""


class TestSize:
    """With thousands of tasks, a page touches some dozens of rows."""

    MANY = 6000

    @pytest.fixture
    def crowded(self, team, make):
        make()
        with connection.cursor() as cursor:
            cursor.execute(FILL, {"organisation": team.id, "many": self.MANY})
            cursor.execute("ANALYZE tasks_task")
        return team

    @pytest.mark.parametrize("owned", ["", "by", "none"])
    @pytest.mark.parametrize("by_role", [True, False])
    @pytest.mark.parametrize("before", [listing.BEFORE_ALL, 3000])
    @pytest.mark.parametrize("writers", [[0], [0, 7, 8, 9]])
    def test_of_a_page_does_not_matter(self, crowded, who, owned, by_role, before, writers):
        caller = who("architect")
        values = {
            "organisation": crowded.id,
            "statuses": ["pending", "in_progress", "completed"],
            "before": before,
            "limit": 10,
            "role": "architect",
            "owner": caller.agent.id,
            "namesake": None,
            "writers": writers,
            "readable": [0],
        }
        statement = listing.statement(owned, by_role=by_role, namesake=False)
        assert rows_touched(statement, values) < 300

    def test_of_a_recommendation_does_not_matter(self, crowded):
        values = {
            "organisation": crowded.id,
            "roles": ["", "architect"],
            "types": ["", "api_design", "testing"],
            "limit": 5,
            "readable": [0],
        }
        assert rows_touched(recommendations.TAKEABLE, values) < 100

    def test_of_the_backlog_does_not_matter(self, crowded):
        values = {
            "organisation": crowded.id,
            "rank": 0,
            "number": 3000,
            "limit": 10,
            "readable": [0],
        }
        assert rows_touched(BACKLOG_PAGE, values) < 100
