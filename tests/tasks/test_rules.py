"""Every update a rule could be asked about: states × roles × owners × enforcement."""

from dataclasses import replace
from itertools import product

import pytest

from core.decision import Allow, Code, Deny
from orgchart.policy.compiled import Agent, Role, build_policy
from orgchart.policy.vocabulary import Kind
from tasks import rules
from tasks.facts import Change, Facts
from tasks.ownership import can_approve, can_comment, can_take
from tasks.parties import UNRESTRICTED, Hand, Permissions, read_permissions, roles_taking
from tasks.rules import can_update
from tasks.vocabulary import Enforcement, Status, TaskType
from tests.oracle import tasks as seed

ENFORCE = Enforcement.ENFORCE


def role(name: str, level: int = 2, **fields) -> Role:
    return Role(name, name, level, Kind.WORKER, frozenset(), **fields)


def policy_of(roles: list[Role], agents: list[Agent]):
    return build_policy(
        organisation_id=1,
        organisation="dev-team",
        version=1,
        roles=roles,
        agents=agents,
        groups=[],
        mail_types=[],
        contacts=[],
        aliases={},
        settings={"enforcement": "enforce", "task_lease": 1800, "approval_task_types": []},
        enabled_modes=frozenset(),
    )


TEAM = policy_of(
    [role("team-lead", 1, task_lead=True), *(role(name) for name in seed.ROLES[1:])],
    [
        Agent(1, "team-lead", "team-lead", "", managers=("board",)),
        *(
            Agent(number, name, name, "", managers=("team-lead",))
            for number, name in enumerate(seed.ROLES[1:], start=2)
        ),
    ],
)
NEXUS = policy_of(
    [
        role("ceo", 1),
        role("it_manager", task_lead=True),
        role("backend_worker", 3),
        role("hr_manager"),
    ],
    [
        Agent(1, "ceo", "ceo", "", managers=("board",)),
        Agent(2, "it_manager", "it_manager", "", managers=("ceo",)),
        Agent(3, "backend_worker", "backend_worker", "", managers=("it_manager",)),
        Agent(4, "backend_worker_2", "backend_worker", "", managers=("it_manager_2",)),
        Agent(5, "hr_manager", "hr_manager", "", managers=("ceo",)),
    ],
)


def hand(name: str, policy=TEAM) -> Hand:
    return Hand(policy, policy.agents[name])


def task(status: str = "pending", **fields) -> Facts:
    return Facts(id="5", status=Status(status), version=3, **fields)


def code(decision) -> str:
    return decision.code.value if isinstance(decision, Deny) else "OK"


def update(who: Hand, what: Facts, enforcement=ENFORCE, **change) -> str:
    return code(can_update(who, what, Change(**change), enforcement).decision)


class TestTransitions:
    @pytest.mark.parametrize("enforcement", Enforcement)
    def test_are_those_of_the_seed_for_every_role_and_enforcement(self, enforcement):
        for before, after, name in product(seed.STATUSES, seed.STATUSES, seed.ROLES):
            allowed = seed.transition(before, after, name)
            if before == after:
                allowed = False  # ours: naming the present status is no transition
            answer = update(hand(name), task(before), enforcement, status=Status(after))
            assert answer == ("OK" if allowed else "INVALID_TRANSITION"), (before, after, name)

    @pytest.mark.parametrize("owner", ["", *seed.ROLES])
    def test_of_owned_tasks_are_for_owner_and_lead(self, owner):
        for before, after, name in product(seed.STATUSES, seed.STATUSES, seed.ROLES):
            owned = task(before, owner=TEAM.agents.get(owner))
            answer = update(hand(name), owned, status=Status(after))
            allowed = before != after and seed.transition(before, after, name)
            if not allowed:
                assert answer == "INVALID_TRANSITION"
            else:
                mine = name in ("team-lead", owner) or not owner
                assert answer == ("OK" if mine else "NOT_YOURS")

    def test_name_what_is_allowed(self):
        found = can_update(
            hand("architect"), task("completed"), Change(status=Status.PENDING), ENFORCE
        )
        assert isinstance(found.decision, Deny)
        assert found.decision.message == " ".join(
            (*seed.INVALID_TRANSITION, *seed.ALLOWED_FROM_COMPLETED)
        ).format("completed", "pending")

    def test_of_a_deleted_task_are_none(self):
        found = can_update(
            hand("team-lead"), task("deleted"), Change(status=Status.PENDING), ENFORCE
        )
        assert isinstance(found.decision, Deny)
        assert found.decision.message.endswith('Allowed transitions from "deleted": [].')

    def test_deleting_what_is_completed_is_for_the_lead_of_its_owner(self):
        done = task("completed", owner=NEXUS.agents["backend_worker_2"])
        assert update(hand("it_manager", NEXUS), done, status=Status.DELETED) == (
            "INVALID_TRANSITION"
        )
        mine = replace(done, owner=NEXUS.agents["backend_worker"])
        assert update(hand("it_manager", NEXUS), mine, status=Status.DELETED) == "OK"


class TestClaims:
    def test_are_those_of_the_seed(self):
        for required, owner, caller, force, outcome in seed.claims():
            asked = Change(sets_owner=True, new_owner=TEAM.agents.get(owner), force=force)
            found = can_update(hand(caller), task(required_role=required or ""), asked, ENFORCE)
            assert code(found.decision) == outcome, (required, owner, caller, force)

    @pytest.mark.parametrize("enforcement", [Enforcement.WARN, Enforcement.OFF])
    def test_pass_role_match_where_it_is_not_enforced(self, enforcement):
        for required, owner, caller, force, outcome in seed.claims():
            asked = Change(sets_owner=True, new_owner=TEAM.agents.get(owner), force=force)
            found = can_update(hand(caller), task(required_role=required or ""), asked, enforcement)
            lets_pass = outcome in ("OK", "ROLE_MISMATCH")
            assert isinstance(found.decision, Allow) == lets_pass
            warned = outcome == "ROLE_MISMATCH" and enforcement is Enforcement.WARN
            assert [w.code for w in found.warnings] == ([Code.ROLE_MISMATCH] if warned else [])

    @pytest.mark.parametrize("caller", seed.ROLES[1:])
    def test_of_what_somebody_else_owns_are_refused(self, caller):
        owned = task(owner=TEAM.agents["team-lead"])
        me = TEAM.agents[caller]
        assert update(hand(caller), owned, sets_owner=True, new_owner=me) == "NOT_YOURS"
        assert update(hand(caller), owned, sets_owner=True) == "NOT_YOURS"

    def test_nobody_but_a_lead_gives_a_task_to_somebody_else(self):
        for caller, target in product(seed.ROLES, seed.ROLES):
            answer = update(hand(caller), task(), sets_owner=True, new_owner=TEAM.agents[target])
            assert answer == ("OK" if caller in ("team-lead", target) else "NOT_YOURS")

    def test_a_lead_without_force_keeps_to_the_role(self):
        asked = Change(sets_owner=True, new_owner=TEAM.agents["architect"])
        found = can_update(
            hand("team-lead"), task(required_role="backend-leader"), asked, ENFORCE
        ).decision
        assert isinstance(found, Deny)
        assert found.message.startswith('Role mismatch. Task requires "backend-leader", but')
        assert '"architect"' in found.message

    @pytest.mark.parametrize("status", ["completed", "deleted"])
    def test_of_what_has_ended_are_refused(self, status):
        me = TEAM.agents["architect"]
        answer = update(hand("architect"), task(status), sets_owner=True, new_owner=me)
        assert answer == "INVALID_TRANSITION"

    def test_a_manager_leads_its_own_workers_only(self):
        lead = hand("it_manager", NEXUS)
        for target, outcome in [
            ("backend_worker", "OK"),
            ("it_manager", "OK"),
            ("backend_worker_2", "FORCE_ASSIGN_DENIED"),
            ("hr_manager", "FORCE_ASSIGN_DENIED"),
            ("ceo", "FORCE_ASSIGN_DENIED"),
        ]:
            asked = {"sets_owner": True, "new_owner": NEXUS.agents[target]}
            assert update(lead, task(required_role="ceo"), force=True, **asked) == outcome

    def test_its_own_handle_fits_as_well_as_its_role(self):
        worker = NEXUS.agents["backend_worker_2"]
        for required, outcome in [
            ("backend_worker", "OK"),
            ("backend_worker_2", "OK"),
            ("ceo", "ROLE_MISMATCH"),
        ]:
            assert code(can_take(NEXUS, worker, required, "")) == outcome


class TestVersion:
    def test_is_asked_before_everything_else(self):
        wrong = {"expected_version": 2, "status": Status.PENDING, "force": True}
        assert update(hand("architect"), task("deleted"), **wrong) == "VERSION_MISMATCH"

    @pytest.mark.parametrize("enforcement", [Enforcement.WARN, Enforcement.OFF])
    def test_passes_where_it_is_not_enforced(self, enforcement):
        found = can_update(
            hand("architect"), task(), Change(expected_version=2, edits=True), enforcement
        )
        assert isinstance(found.decision, Allow)
        assert len(found.warnings) == (1 if enforcement is Enforcement.WARN else 0)

    def test_says_both_numbers(self):
        found = can_update(hand("architect"), task(), Change(expected_version=9), ENFORCE).decision
        assert isinstance(found, Deny)
        assert found.message == " ".join(seed.VERSION_MISMATCH).format(9, 3)
        assert found.details == {"expected": 9, "current": 3}


class TestBlockers:
    @pytest.mark.parametrize("status", [Status.IN_PROGRESS, Status.COMPLETED])
    def test_hold_start_and_completion_even_of_a_lead(self, status):
        before = "pending" if status is Status.IN_PROGRESS else "in_progress"
        held = task(before, open_blockers=("10", "9"))
        found = can_update(hand("team-lead"), held, Change(status=status), ENFORCE).decision
        assert isinstance(found, Deny)
        assert found.code is Code.TASK_BLOCKED
        assert "#9, #10" in found.message

    def test_added_in_the_same_call_hold_as_well(self):
        answer = update(
            hand("team-lead"), task(), status=Status.IN_PROGRESS, edits=True, new_blockers=("2",)
        )
        assert answer == "TASK_BLOCKED"

    def test_hold_neither_claims_nor_deletion(self):
        held = task(open_blockers=("9",))
        assert update(hand("architect"), held, status=Status.DELETED) == "OK"
        me = TEAM.agents["architect"]
        assert update(hand("architect"), held, sets_owner=True, new_owner=me) == "OK"


class TestUnowned:
    def test_is_moved_by_who_could_take_it(self):
        needs = task(required_role="backend-leader")
        assert update(hand("backend-leader"), needs, status=Status.IN_PROGRESS) == "OK"
        assert update(hand("architect"), needs, status=Status.IN_PROGRESS) == "ROLE_MISMATCH"

    def test_is_edited_and_withdrawn_by_its_creator(self):
        needs = task(required_role="backend-leader", creator="architect")
        assert update(hand("architect"), needs, edits=True) == "OK"
        assert update(hand("architect"), needs, status=Status.DELETED) == "OK"
        assert update(hand("architect"), needs, status=Status.IN_PROGRESS) == "ROLE_MISMATCH"
        assert update(hand("test-leader"), needs, edits=True) == "ROLE_MISMATCH"

    def test_is_curated_while_it_has_not_begun(self):
        keeper = hand("product-manager")
        assert update(keeper, task(required_role="architect"), edits=True, curates=True) == "OK"
        for begun in (task("in_progress"), task(owner=TEAM.agents["architect"])):
            assert update(keeper, begun, edits=True, curates=True) == "NOT_YOURS"


class TestPermissions:
    def test_none_given_restrict_nothing(self):
        for none in (None, {}, []):
            assert read_permissions(none) == UNRESTRICTED

    def test_are_read_as_the_seed_lists_them_and_as_a_mapping(self):
        listed = [{"claim_task_type": ["testing"]}, "update_own_tasks", "comment_on_all_tasks"]
        mapped = {
            "claim_task_type": ["testing"],
            "update_own_tasks": True,
            "comment_on_all_tasks": True,
        }
        expected = Permissions(frozenset({"testing"}), update_own=True, comment_all=True)
        assert read_permissions(listed) == read_permissions(mapped) == expected

    def test_are_whole_once_there_are_any(self):
        assert read_permissions({"update_own_tasks": True}) == Permissions(
            frozenset(), update_own=True, comment_all=False
        )

    @pytest.mark.parametrize("nonsense", [7, "all", {"claim_task_type": None}, [3]])
    def test_that_make_no_sense_give_nothing(self, nonsense):
        found = read_permissions(nonsense)
        assert not found.claims
        assert found.claims is not None
        assert not found.update_own

    def _team(self, **permissions):
        return policy_of(
            [
                role("team-lead", 1, task_lead=True),
                role("architect", permissions=permissions),
                role("test-leader", permissions={"claim_task_type": ["testing"]}),
            ],
            [
                Agent(1, "team-lead", "team-lead", "", managers=("board",)),
                Agent(2, "architect", "architect", "", managers=("team-lead",)),
                Agent(3, "test-leader", "test-leader", "", managers=("team-lead",)),
            ],
        )

    @pytest.mark.parametrize("kind", TaskType)
    def test_claim_the_types_they_list(self, kind):
        team = self._team(claim_task_type=["api_design", "tech_research"])
        me = team.agents["architect"]
        typed = task(task_type=kind.value)
        answer = update(hand("architect", team), typed, sets_owner=True, new_owner=me)
        listed = kind in ("api_design", "tech_research")
        assert answer == ("OK" if listed else "ROLE_MISMATCH")
        assert ("architect" in roles_taking(team, kind.value)) == listed

    def test_say_whose_type_it_is(self):
        team = self._team(claim_task_type=[])
        found = can_take(team, team.agents["architect"], "", "testing")
        assert isinstance(found, Deny)
        assert found.message.startswith(
            'Role mismatch. Tasks of type "testing" require "test-leader", but you are "architect".'
        )

    def test_without_update_own_tasks_only_claim_and_release(self):
        team = self._team(claim_task_type=["testing"])
        me = team.agents["architect"]
        owned = task("in_progress", owner=me)
        assert update(hand("architect", team), owned, status=Status.COMPLETED) == "NOT_YOURS"
        assert update(hand("architect", team), owned, sets_owner=True) == "OK"

    @pytest.mark.parametrize("enforcement", Enforcement)
    def test_without_update_own_tasks_reach_nothing_by_not_claiming_it(self, enforcement):
        team = self._team(claim_task_type=["testing"])
        who = hand("architect", team)
        begun = task("in_progress", task_type="testing")
        assert update(who, task(), enforcement, status=Status.IN_PROGRESS) == "NOT_YOURS"
        assert update(who, begun, enforcement, status=Status.COMPLETED) == "NOT_YOURS"
        assert update(who, begun, enforcement, edits=True) == "NOT_YOURS"

    def test_without_update_own_tasks_withdraw_what_they_created(self):
        team = self._team(claim_task_type=["testing"])
        mine = task(creator="architect")
        assert update(hand("architect", team), mine, status=Status.DELETED) == "OK"

    def test_without_update_own_tasks_keep_a_claim_alive(self):
        team = self._team(claim_task_type=["testing"])
        who, beat = hand("architect", team), {"edits": True, "renews": True}
        assert update(who, task(owner=team.agents["architect"]), **beat) == "OK"
        assert update(who, task(owner=team.agents["test-leader"]), **beat) == "NOT_YOURS"
        assert update(who, task(), **beat) == "NOT_YOURS"

    def test_without_comment_on_all_tasks_speak_of_their_own_only(self):
        team = self._team(update_own_tasks=True)
        me, who = team.agents["architect"], hand("architect", team)
        assert code(can_comment(who, task())) == "NOT_YOURS"
        for mine in (
            task(owner=me),
            task(creator="architect"),
            task(workers=frozenset({me.id})),
        ):
            assert code(can_comment(who, mine)) == "OK"


class TestApproval:
    def test_is_needed_before_completion(self):
        me = TEAM.agents["architect"]
        waits = task("in_progress", owner=me, task_type="deployment", needs_approval=True)
        assert update(hand("architect"), waits, status=Status.COMPLETED) == "APPROVAL_REQUIRED"
        assert update(hand("team-lead"), waits, status=Status.COMPLETED) == "APPROVAL_REQUIRED"
        approved = replace(waits, approved=True)
        assert update(hand("architect"), approved, status=Status.COMPLETED) == "OK"

    def test_is_given_by_leads(self):
        for name in seed.ROLES:
            found = code(can_approve(hand(name), task("in_progress")))
            assert found == ("OK" if name == "team-lead" else "LEVEL_DENIED")

    def test_is_never_given_by_who_did_the_work(self):
        lead = TEAM.agents["team-lead"]
        worked = task("in_progress", workers=frozenset({lead.id}))
        assert code(can_approve(hand("team-lead"), worked)) == "NOT_YOURS"

    def test_reaches_the_own_workers(self):
        theirs = task("in_progress", owner=NEXUS.agents["backend_worker_2"])
        assert code(can_approve(hand("it_manager", NEXUS), theirs)) == "NOT_YOURS"

    @pytest.mark.parametrize("status", ["completed", "deleted"])
    def test_comes_too_late_for_what_has_ended(self, status):
        assert code(can_approve(hand("team-lead"), task(status))) == "INVALID_TRANSITION"

    def test_comes_too_early_for_what_has_not_begun(self):
        for who in (hand("team-lead"), Hand(TEAM)):
            found = can_approve(who, task())
            assert isinstance(found, Deny)
            assert found.code is Code.INVALID_TRANSITION
            assert "in_progress" in found.next_action

    def test_has_to_outlive_the_update_that_completes(self):
        me = TEAM.agents["architect"]
        done = task("in_progress", owner=me, needs_approval=True, approved=True)
        finish = {"status": Status.COMPLETED}
        assert update(hand("architect"), done, **finish) == "OK"
        for also in ({"sets_owner": True}, {"edits": True, "reworks": True}):
            assert update(hand("architect"), done, **finish, **also) == "APPROVAL_REQUIRED"
        assert update(hand("architect"), done, **finish, sets_owner=True, new_owner=me) == "OK"
        assert update(hand("team-lead"), done, **finish, sets_owner=True) == "OK"
        rework = {"edits": True, "reworks": True}
        assert update(hand("team-lead"), done, **finish, **rework) == "APPROVAL_REQUIRED"

    def test_freezes_what_is_completed_with_it(self):
        me = TEAM.agents["architect"]
        done = task("completed", owner=me, approved=True)
        for who in (hand("architect"), hand("team-lead"), Hand(TEAM)):
            assert update(who, done, edits=True, reworks=True) == "INVALID_TRANSITION"
            free = replace(done, approved=False)
            assert update(who, free, edits=True, reworks=True) == "OK"

    def test_people_of_the_board_may(self):
        assert code(can_approve(Hand(TEAM), task("in_progress"))) == "OK"


class TestDecisions:
    def test_are_made_for_every_combination_and_name_a_next_step(self):
        owners = (None, TEAM.agents["architect"], TEAM.agents["backend-leader"])
        seen = set()
        for status, after, owner, new, force, required, version in product(
            Status,
            (None, *Status),
            owners,
            (*owners, "keep"),
            (False, True),
            ("", "backend-leader"),
            (None, 3, 4),
        ):
            for name in ("team-lead", "architect", "test-leader"):
                asked = Change(
                    status=after,
                    sets_owner=new != "keep",
                    new_owner=None if new == "keep" else new,
                    force=force,
                    expected_version=version,
                    edits=after is None and new == "keep",
                )
                what = task(status, owner=owner, required_role=required)
                found = can_update(hand(name), what, asked, ENFORCE).decision
                seen.add(code(found))
                if isinstance(found, Deny):
                    assert found.message
                    assert found.next_action
                    assert found.rule
        assert seen == {
            "OK", "VERSION_MISMATCH", "FORCE_ASSIGN_DENIED", "INVALID_TRANSITION", "ROLE_MISMATCH",
            "NOT_YOURS",
        }  # fmt: skip


class TestGuards:
    CASES = [
        ("has_version", task(), Change(expected_version=9, edits=True)),
        ("may_force", task(), Change(force=True, edits=True)),
        ("has_transition", task("completed"), Change(status=Status.PENDING)),
        (
            "fits_owner",
            task(required_role="backend-leader"),
            Change(sets_owner=True, new_owner=TEAM.agents["architect"]),
        ),
        ("may_set_owner", task(owner=TEAM.agents["test-leader"]), Change(sets_owner=True)),
        ("may_change", task(owner=TEAM.agents["test-leader"]), Change(edits=True)),
        ("not_blocked", task(open_blockers=("9",)), Change(status=Status.IN_PROGRESS)),
        ("is_approved", task("in_progress", needs_approval=True), Change(status=Status.COMPLETED)),
    ]

    def test_are_all_tried(self):
        assert [name for name, *_ in self.CASES] == [check.__name__ for check in rules.CHECKS]

    @pytest.mark.parametrize(("name", "what", "asked"), CASES)
    def test_each_alone_refuses_something(self, monkeypatch, name, what, asked):
        who = hand("architect")
        assert isinstance(can_update(who, what, asked, ENFORCE).decision, Deny)
        left = tuple(check for check in rules.CHECKS if check.__name__ != name)
        monkeypatch.setattr(rules, "CHECKS", left)
        assert isinstance(can_update(who, what, asked, ENFORCE).decision, Allow)
