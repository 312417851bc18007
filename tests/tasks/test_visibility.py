"""Whose text of tasks an agent sees: the whole NEXUS company against the oracle, over HTTP."""

from dataclasses import replace

import pytest
from django.db.models import F

from core.decision import Allow
from orgchart.models import Agent, ContactRule, Organisation
from orgchart.policy.parties import BOARD_PARTY
from orgchart.policy.readership import can_read_text
from orgchart.policy_cache import current_policy
from tasks.notifications import possible_owners
from tasks.rules import visibility
from tasks.rules.visibility import can_require_role, readership_of
from tests.company import load_company
from tests.oracle import tasks as oracle
from tests.oracle.org import AGENTS
from tests.orgchart.many_kinds import of_many_kinds
from tests.steps import steps_of
from tests.tasks.policies import task
from tests.tasks.world import Http

MARK = "MARKER"


@pytest.fixture
def company(db):
    return load_company("nexus").organisation


@pytest.fixture
def http(company) -> Http:
    return Http(company)


@pytest.fixture
def policy(company):

    return current_policy(company.id)


def made(http: Http, by: str, **fields) -> str:
    return http.call(by, "task_create", **{"subject": f"{MARK} {by}", **fields}).result["id"]


class TestRule:
    def test_is_that_of_the_oracle(self, policy):
        agents = policy.agents
        found = {
            (writer, reader): isinstance(
                can_read_text(policy, agents[writer], agents[reader]), Allow
            )
            for writer in AGENTS
            for reader in AGENTS
        }
        assert found == oracle.SEES

    def test_of_roles_is_that_of_the_oracle(self, policy):
        found = {
            (writer, role): isinstance(can_require_role(policy, policy.agents[writer], role), Allow)
            for writer in AGENTS
            for role in AGENTS
        }
        assert found == oracle.MAY_REQUIRE

    def test_of_one_role_asks_for_no_other(self):
        taken = []
        for workers in (100, 200):
            policy = of_many_kinds(workers)
            ceo = policy.agents["ceo"]
            taken.append(steps_of(lambda p=policy, who=ceo: can_require_role(p, who, "w7")))
        assert taken[0] == taken[1]

    def test_names_no_other_role_in_a_refusal(self, http):
        """A role's name is text of who hired into it: in `Valid: …` every agent would read it."""
        for asking in AGENTS:
            reachable = {role for role in AGENTS if oracle.MAY_REQUIRE[asking, role]}
            for tool, params in (
                ("task_create", {"subject": "x", "requiredRole": "no_such_role"}),
                ("task_list", {"roleFilter": "no_such_role"}),
            ):
                answer = http.call(asking, tool, **params)
                assert answer.code == "INVALID_PARAMS"
                told = str(answer.body)
                assert {role for role in AGENTS if role in told} == reachable, (asking, tool)

    def test_shows_the_board_everything(self, policy):
        assert readership_of(policy, BOARD_PARTY).ids is None

    def test_lists_those_whose_text_it_lets_read(self, policy):
        for reader in AGENTS:
            seen = {policy.agents[one].id for one in AGENTS if oracle.SEES[one, reader]}
            readership = readership_of(policy, policy.agents[reader])
            assert set(readership.ids or ()) == {0, *seen}
            assert {one for one in policy.by_id if readership.covers(one)} == seen

    def test_is_asked_once_for_each_agent_that_may_be_notified(self, policy, monkeypatch):
        """Not once for each pair: that were a million questions in a company of a thousand."""
        asked = []
        monkeypatch.setattr(
            visibility, "rule_of_reading", lambda *pair: asked.append(pair) or "a rule"
        )
        row = replace(task(), subject_writer=policy.agents["it_manager"].id)
        assert possible_owners(policy, row)
        assert len(asked) <= len(policy.agents)


class TestTasks:
    def test_are_shown_as_the_oracle_says_by_every_tool(self, http):
        ids = {writer: made(http, writer) for writer in AGENTS}
        for reader in AGENTS:
            seen = {ids[writer] for writer in AGENTS if oracle.SEES[writer, reader]}
            listed = http.call(reader, "task_list").result["tasks"]
            assert {one["id"] for one in listed} == seen
            by_role = http.call(reader, "task_list", roleFilter=reader).result["tasks"]
            assert {one["id"] for one in by_role} == seen
            best = http.call(reader, "task_recommend", limit=20).result["tasks"]
            assert {one["id"] for one in best} == seen
            for task_id in ids.values():
                expected = "" if task_id in seen else "NOT_FOUND"
                for tool, params in (
                    ("task_get", {}),
                    ("task_update", {"metadata": {"k": None}}),
                    ("task_comment", {"body": "hm"}),
                ):
                    answer = http.call(reader, tool, taskId=task_id, **params)
                    assert (
                        answer.code in ("", "NOT_YOURS")
                        if not expected
                        else (answer.code == expected)
                    ), (reader, tool, task_id)
        backlog = http.call("product_manager", "manage_backlog").result["tasks"]
        assert {one["id"] for one in backlog} == {
            ids[writer] for writer in AGENTS if oracle.SEES[writer, "product_manager"]
        }

    def test_that_cannot_be_read_answer_like_those_that_do_not_exist(self, http):
        hidden = made(http, "research_worker")
        for tool, params in (
            ("task_get", {}),
            ("task_update", {"owner": "backend_worker"}),
            ("task_update", {"expectedVersion": 99, "status": "completed"}),
            ("task_comment", {"body": "x"}),
        ):
            answers = [
                http.call("backend_worker", tool, taskId=one, **params).body
                for one in (hidden, "999")
            ]
            texts = [
                (body["error_code"], body["message"].replace(hidden, "N").replace("999", "N"))
                for body in answers
            ]
            assert texts[0] == texts[1]
            assert texts[0][0] == "NOT_FOUND"

    def test_are_no_mailbox_between_workers(self, http):
        """The attack of the first audit: backend wrote to research by a task."""
        refused = http.call(
            "backend_worker", "task_create", subject="hi", requiredRole="research_worker"
        )
        assert (refused.status, refused.code) == (403, "CONTACT_DENIED")
        one = made(http, "backend_worker")
        for reader in ("research_worker", "hr_manager"):
            assert http.call(reader, "task_get", taskId=one).code == "NOT_FOUND"
            assert http.call(reader, "task_comment", taskId=one, body="hi").code == "NOT_FOUND"
            assert http.call(reader, "task_update", taskId=one, owner=reader).code == "NOT_FOUND"

    def test_are_not_assigned_to_who_cannot_read_them(self, http):
        one = made(http, "product_manager")
        refused = http.call("it_manager", "assign_task", taskId=one, to="backend_worker")
        assert (refused.code, refused.status) == ("CONTACT_DENIED", 403)
        http.call("it_manager", "task_update", taskId=one, subject="in my words")
        assert http.call("it_manager", "assign_task", taskId=one, to="backend_worker").status == 200
        assert http.call("backend_worker", "task_get", taskId=one).result["owner"]

    def test_page_over_readable_rows_only(self, http):
        mine = [made(http, "it_manager") for _ in range(3)]
        for _ in range(6):
            made(http, "research_worker")
        page = http.call("backend_worker", "task_list", limit=2).result
        assert [one["id"] for one in page["tasks"]] == [mine[2], mine[1]]
        cursor = page["next_cursor"]
        page = http.call("backend_worker", "task_list", limit=2, cursor=cursor).result
        assert ([one["id"] for one in page["tasks"]], page["next_cursor"]) == ([mine[0]], None)


class TestTexts:
    def test_belong_to_who_wrote_them_last(self, http):
        one = made(http, "it_manager", description="by it", metadata={"a": 1})
        http.call(
            "backend_worker", "task_update", taskId=one, description=MARK, metadata={"b": MARK}
        )
        peer = http.call("qa_worker", "task_get", taskId=one).result
        assert (peer["description"], peer["metadata"]) == ("", {"a": 1})
        assert peer["withheld"] == ["description", "metadata"]
        lead = http.call("it_manager", "task_get", taskId=one).result
        assert (lead["description"], lead["metadata"]) == (MARK, {"a": 1, "b": MARK})
        assert "withheld" not in lead

    @pytest.mark.parametrize(
        "fields",
        [
            {"description": "mine"},
            {"description": ""},
            {"activeForm": "mine"},
            {"metadata": {"a": 2}},
            {"metadata": {"a": None}},
        ],
    )
    def test_are_not_written_over_by_who_cannot_read_them(self, http, fields):
        one = made(http, "product_manager")
        theirs = {"description": MARK, "activeForm": MARK, "metadata": {"a": MARK}}
        assert http.call("it_manager", "task_update", taskId=one, **theirs).status == 200
        refused = http.call("research_worker", "task_update", taskId=one, **fields)
        assert (refused.code, refused.body["next_action"]) == (
            "CONTACT_DENIED",
            "leave it as it is; write yours with task_comment",
        )
        assert MARK not in refused.message
        kept = http.call("it_manager", "task_get", taskId=one).result
        assert {name: kept[name] for name in theirs} == theirs
        mine = http.call("research_worker", "task_update", taskId=one, metadata={"b": 1})
        assert mine.result["metadata"] == {"b": 1}
        assert http.call("product_manager", "task_update", taskId=one, **fields).status == 200

    def test_are_not_told_by_the_names_of_keys(self, http):
        """One refusal named all keys that one worker wrote and the other one guessed."""
        one = made(http, "it_manager")
        word = {f"{place}{letter}": 1 for place, letter in enumerate("noon")}
        assert http.call("backend_worker", "task_update", taskId=one, metadata=word).status == 200
        guesses = {f"{place}{letter}": None for place in range(4) for letter in "abcmno"}
        refused = http.call("qa_worker", "task_update", taskId=one, metadata=guesses)
        assert refused.message.startswith("metadata: another agent wrote it")

    def test_of_comments_follow_the_same_rule(self, http):
        one = made(http, "it_manager")
        for by in ("backend_worker", "qa_worker", "it_manager"):
            http.call(by, "task_comment", taskId=one, body=f"{MARK} {by}")
        for reader in ("backend_worker", "qa_worker", "it_manager", "ceo"):
            found = http.call(reader, "task_get", taskId=one).result.get("comments", [])
            assert {line["author"].removeprefix("agent:") for line in found} == {
                by
                for by in ("backend_worker", "qa_worker", "it_manager")
                if oracle.SEES[by, reader]
            }

    def test_of_comments_are_paged(self, http):
        one = made(http, "it_manager")
        for number in range(53):
            by = "it_manager" if number % 26 else "qa_worker"
            http.call(by, "task_comment", taskId=one, body=str(number))
        page = http.call("backend_worker", "task_get", taskId=one).result
        assert len(page["comments"]) == 50
        assert "comments_cursor" not in page
        page = http.call("it_manager", "task_get", taskId=one).result
        earlier = http.call(
            "it_manager", "task_get", taskId=one, comments_cursor=page["comments_cursor"]
        ).result
        bodies = [line["body"] for line in earlier["comments"] + page["comments"]]
        assert bodies == [str(number) for number in range(53)]

    def test_of_a_subject_are_not_rewritten_for_a_role_out_of_reach(self, http):
        edit = {"action": "edit", "subject": MARK}
        own = made(http, "product_manager")
        asked = {**edit, "taskId": own, "requiredRole": "frontend_worker"}
        assert http.call("product_manager", "manage_backlog", **asked).code == "CONTACT_DENIED"
        others = made(http, "it_manager", requiredRole="frontend_worker")
        answer = http.call("product_manager", "manage_backlog", **edit, taskId=others)
        assert answer.code == "NOT_YOURS"


class TestNeighbours:
    def test_that_cannot_be_read_have_no_ids(self, http):
        hidden = made(http, "product_manager")
        one = made(http, "it_manager", blockedBy=[hidden])
        assert http.call("it_manager", "task_get", taskId=one).result["blockedBy"] == [hidden]
        seen = http.call("backend_worker", "task_get", taskId=one).result
        assert seen["blockedBy"] == []
        (line,) = http.call("backend_worker", "task_list").result["tasks"]
        assert line["blockedBy"] == []
        answer = http.call("backend_worker", "task_update", taskId=one, status="in_progress")
        assert answer.code == "TASK_BLOCKED"
        assert f"#{hidden}" not in str(answer.body)
        assert answer.body["details"]["blockedBy"] == []

    def test_that_cannot_be_read_cannot_be_named(self, http):
        hidden, one = made(http, "research_worker"), made(http, "backend_worker")
        for field in ("addBlocks", "addBlockedBy"):
            answer = http.call("backend_worker", "task_update", taskId=one, **{field: [hidden]})
            assert answer.code == "NOT_FOUND"
        answer = http.call("backend_worker", "task_create", subject="x", blockedBy=[hidden])
        assert answer.code == "NOT_FOUND"

    def test_that_cannot_be_read_are_not_counted(self, http):
        one = made(http, "it_manager")
        made(http, "product_manager", blockedBy=[one])
        assert "waits for it" in str(http.call("it_manager", "task_recommend").body)
        assert "waits for it" not in str(http.call("backend_worker", "task_recommend").body)


class TestAnOwnerWhoMayNoLongerRead:
    @pytest.fixture
    def cut(self, http, company):
        """A task of IT's that Backend owns when its contact rule goes."""
        one = made(http, "it_manager", requiredRole="backend_worker")
        assert http.call("backend_worker", "task_update", taskId=one, owner="backend_worker").result
        rule = ContactRule.objects.filter(
            sender__name="it_manager", recipient__name="backend_worker"
        )
        assert rule.update(types=[]) == 1
        Organisation.objects.filter(id=company.id).update(policy_version=F("policy_version") + 1)
        return one

    def test_finds_it_among_its_own_and_reads_none_of_it(self, http, cut):
        listed = http.call("backend_worker", "task_list", owner="backend_worker")
        assert [(one["id"], one["subject"]) for one in listed.result["tasks"]] == [(cut, "")]
        assert http.call("backend_worker", "task_list").result["tasks"] == []
        shown = http.call("backend_worker", "task_get", taskId=cut)
        assert (shown.result["owner"], shown.result["withheld"]) == ("backend_worker", ["subject"])
        assert MARK not in f"{listed.body} {shown.body}"

    def test_finds_none_of_others_with_their_handle(self, http, cut):
        """Research may not read IT's text: Backend's tasks are not its own."""
        listed = http.call("research_worker", "task_list", owner="backend_worker")
        assert listed.result["tasks"] == []

    @pytest.mark.parametrize("how", [{}, {"status": "in_progress"}])
    def test_gives_it_back_and_loses_sight_of_it(self, http, cut, how):
        answer = http.call("backend_worker", "task_update", taskId=cut, owner="", **how)
        assert (answer.result["owner"], answer.result["withheld"]) == ("", ["subject"])
        assert MARK not in str(answer.body)
        assert http.call("backend_worker", "task_update", taskId=cut, owner="").code == "NOT_FOUND"

    def test_finishes_it(self, http, cut):
        assert http.call("backend_worker", "task_comment", taskId=cut, body="done").result
        for status in ("in_progress", "completed"):
            answer = http.call("backend_worker", "task_update", taskId=cut, status=status)
            assert (answer.result["status"], answer.result["withheld"]) == (status, ["subject"])

    def test_writes_over_no_text_that_it_cannot_read(self, http, cut):
        answer = http.call("backend_worker", "task_update", taskId=cut, subject="x")
        assert (answer.code, "subject:" in answer.body["message"]) == ("CONTACT_DENIED", True)

    def test_does_not_let_others_release_it(self, http, cut):
        assert http.call("research_worker", "task_update", taskId=cut, owner="").code == "NOT_FOUND"


def test_nobody_learns_from_a_task_who_is_deactivated(http, company):
    """Backend may not assign QA, deactivated or not: the answer is the same."""
    one = made(http, "backend_worker")
    said = []
    for active in (True, False):
        Agent.objects.filter(handle="qa_worker").update(active=active)
        Organisation.objects.filter(id=company.id).update(policy_version=F("policy_version") + 1)
        said.append(http.call("backend_worker", "task_update", taskId=one, owner="qa_worker").body)
    assert said[0] == said[1]
    assert said[0]["error_code"] == "NOT_YOURS"
