"""Every update a rule could be asked about: states × roles × owners × enforcement."""

from dataclasses import replace
from itertools import product

import pytest

from core.actors import System
from core.decision import Allow, Code, Deny
from orgchart.policy.compiled import Agent
from tasks.rules import updates
from tasks.rules.actors import (
    UNRESTRICTED,
    Permissions,
    TaskActor,
    read_permissions,
    roles_claiming,
)
from tasks.rules.approval import can_approve
from tasks.rules.asking import active_leads
from tasks.rules.changes import change_of
from tasks.rules.ownership import can_comment, can_owner_take, can_take
from tasks.rules.texts import withheld_texts
from tasks.rules.updates import can_update
from tasks.rules.validation import can_type_role
from tasks.rules.values import TaskRow, TaskUpdate
from tasks.rules.visibility import EVERYTHING
from tasks.vocabulary import Enforcement, Status, TaskType
from tests.decisions import code_of
from tests.oracle import tasks as spec
from tests.tasks.policies import (
    AT,
    NEEDS_APPROVAL,
    NEXUS,
    TEAM,
    actor,
    policy_of,
    role,
    task,
    under,
)


def update(who: TaskActor, what: TaskRow, enforcement=Enforcement.ENFORCE, **asked) -> str:
    return code_of(can_update(under(who, enforcement), what, TaskUpdate(**asked)).decision)


class TestTransitions:
    @pytest.mark.parametrize("enforcement", Enforcement)
    def test_are_those_of_the_specification_for_every_role_and_enforcement(self, enforcement):
        for before, after, name in product(spec.STATUSES, spec.STATUSES, spec.ROLES):
            allowed = spec.transition(before, after, name)
            if before == after:
                allowed = False  # ours: naming the present status is no transition
            answer = update(actor(name), task(before), enforcement, status=Status(after))
            assert answer == ("OK" if allowed else "INVALID_TRANSITION"), (before, after, name)

    @pytest.mark.parametrize("owner", ["", *spec.ROLES])
    def test_of_owned_tasks_are_for_owner_and_lead(self, owner):
        for before, after, name in product(spec.STATUSES, spec.STATUSES, spec.ROLES):
            owned = task(before, owner=TEAM.agents.get(owner))
            answer = update(actor(name), owned, status=Status(after))
            allowed = before != after and spec.transition(before, after, name)
            if not allowed:
                assert answer == "INVALID_TRANSITION"
            else:
                mine = name in ("team-lead", owner) or not owner
                assert answer == ("OK" if mine else "NOT_YOURS")

    def test_name_what_is_allowed(self):
        found = can_update(actor("architect"), task("completed"), TaskUpdate(status=Status.PENDING))
        assert isinstance(found.decision, Deny)
        assert found.decision.message == " ".join(
            (*spec.INVALID_TRANSITION, *spec.ALLOWED_FROM_COMPLETED)
        ).format("completed", "pending")

    def test_of_a_deleted_task_are_none(self):
        found = can_update(actor("team-lead"), task("deleted"), TaskUpdate(status=Status.PENDING))
        assert isinstance(found.decision, Deny)
        assert found.decision.message.endswith('Allowed transitions from "deleted": [].')

    def test_deleting_what_is_completed_is_for_the_lead_of_its_owner(self):
        done = task("completed", owner=NEXUS.agents["backend_worker_2"])
        assert update(actor("it_manager", NEXUS), done, status=Status.DELETED) == (
            "INVALID_TRANSITION"
        )
        mine = task("completed", owner=NEXUS.agents["backend_worker"])
        assert update(actor("it_manager", NEXUS), mine, status=Status.DELETED) == "OK"


class TestClaims:
    def test_are_those_of_the_specification(self):
        for required, owner, caller, force, outcome in spec.claims():
            asked = TaskUpdate(owner=owner, force=force)
            found = can_update(actor(caller), task(required_role=required or ""), asked)
            assert code_of(found.decision) == outcome, (required, owner, caller, force)

    @pytest.mark.parametrize("enforcement", [Enforcement.WARN, Enforcement.OFF])
    def test_pass_role_match_where_it_is_not_enforced(self, enforcement):
        for required, owner, caller, force, outcome in spec.claims():
            asked = TaskUpdate(owner=owner, force=force)
            needs = task(required_role=required or "")
            found = can_update(under(actor(caller), enforcement), needs, asked)
            lets_pass = outcome in ("OK", "ROLE_MISMATCH")
            assert isinstance(found.decision, Allow) == lets_pass
            warned = outcome == "ROLE_MISMATCH" and enforcement is Enforcement.WARN
            assert [w.code for w in found.warnings] == ([Code.ROLE_MISMATCH] if warned else [])

    @pytest.mark.parametrize("caller", spec.ROLES[1:])
    def test_of_what_somebody_else_owns_are_refused(self, caller):
        owned = task(owner=TEAM.agents["team-lead"])
        me = TEAM.agents[caller]
        assert update(actor(caller), owned, owner=me.handle) == "NOT_YOURS"
        assert update(actor(caller), owned, owner="") == "NOT_YOURS"

    def test_nobody_but_a_lead_gives_a_task_to_somebody_else(self):
        for caller, target in product(spec.ROLES, spec.ROLES):
            answer = update(actor(caller), task(), owner=target)
            assert answer == ("OK" if caller in ("team-lead", target) else "NOT_YOURS")

    def test_a_lead_without_force_keeps_to_the_role(self):
        asked = TaskUpdate(owner="architect")
        found = can_update(actor("team-lead"), task(required_role="backend-leader"), asked).decision
        assert isinstance(found, Deny)
        assert found.message.startswith('Role mismatch. Task requires "backend-leader", but')
        assert '"architect"' in found.message

    @pytest.mark.parametrize("status", ["completed", "deleted"])
    def test_of_what_has_ended_are_refused(self, status):
        me = TEAM.agents["architect"]
        answer = update(actor("architect"), task(status), owner=me.handle)
        assert answer == "INVALID_TRANSITION"

    def test_a_manager_forces_for_its_own_workers_only(self):
        lead = actor("it_manager", NEXUS)
        for target, outcome in [
            ("backend_worker", "OK"),
            ("it_manager", "FORCE_ASSIGN_DENIED"),
            ("backend_worker_2", "FORCE_ASSIGN_DENIED"),
            ("hr_manager", "FORCE_ASSIGN_DENIED"),
            ("ceo", "FORCE_ASSIGN_DENIED"),
        ]:
            asked = {"owner": target}
            assert update(lead, task(required_role="it_manager"), force=True, **asked) == outcome

    def test_a_manager_forces_no_work_of_another_department(self):
        """Not at first, and not after a lease took it from who began it."""
        lead = actor("it_manager", NEXUS)
        for free in (task(), task("in_progress", workers=[5])):
            theirs = replace(free, required_role="hr_manager")
            asked = TaskUpdate(owner="backend_worker", force=True)
            refused = can_update(lead, theirs, asked).decision
            assert isinstance(refused, Deny)
            assert refused.code is Code.FORCE_ASSIGN_DENIED
            without = can_update(lead, theirs, replace(asked, force=False)).decision
            assert isinstance(without, Deny)
            assert "forceAssign" not in without.next_action

    def test_a_manager_forces_work_that_no_active_agent_could_take(self):
        """A pack renamed or removed the role, or its only holder left."""
        holder = NEXUS.agents["hr_manager"]
        left = replace(NEXUS, agents={**NEXUS.agents, holder.handle: replace(holder, active=False)})
        asked = {"owner": "backend_worker", "force": True}
        assert update(actor("it_manager", NEXUS), task(required_role="gone"), **asked) == "OK"
        assert update(actor("it_manager", left), task(required_role="hr_manager"), **asked) == "OK"
        begun = task("in_progress", workers=[5], required_role="gone")
        assert update(actor("backend_worker", NEXUS), begun, **asked) == "FORCE_ASSIGN_DENIED"

    def test_its_own_handle_fits_as_well_as_its_role(self):
        worker = NEXUS.agents["backend_worker_2"]
        for required, outcome in [
            ("backend_worker", "OK"),
            ("backend_worker_2", "OK"),
            ("ceo", "ROLE_MISMATCH"),
        ]:
            assert code_of(can_take(NEXUS, worker, required, "")) == outcome


class TestVersion:
    def test_is_asked_before_everything_else(self):
        wrong = {"expected_version": 2, "status": Status.PENDING, "force": True}
        assert update(actor("architect"), task("deleted"), **wrong) == "VERSION_MISMATCH"

    @pytest.mark.parametrize("enforcement", [Enforcement.WARN, Enforcement.OFF])
    def test_passes_where_it_is_not_enforced(self, enforcement):
        found = can_update(
            under(actor("architect"), enforcement),
            task(),
            TaskUpdate(expected_version=2, active_form="x"),
        )
        assert isinstance(found.decision, Allow)
        assert len(found.warnings) == (1 if enforcement is Enforcement.WARN else 0)

    def test_says_both_numbers(self):
        found = can_update(actor("architect"), task(), TaskUpdate(expected_version=9)).decision
        assert isinstance(found, Deny)
        assert found.message == " ".join(spec.VERSION_MISMATCH).format(9, 3)
        assert found.details == {"expected": 9, "current": 3}


class TestBlockers:
    @pytest.mark.parametrize("status", [Status.IN_PROGRESS, Status.COMPLETED])
    def test_hold_start_and_completion_even_of_a_lead(self, status):
        before = "pending" if status is Status.IN_PROGRESS else "in_progress"
        held = task(before, blockers=(10, 9))
        found = can_update(actor("team-lead"), held, TaskUpdate(status=status)).decision
        assert isinstance(found, Deny)
        assert found.code is Code.TASK_BLOCKED
        assert "#9, #10" in found.message

    def test_added_in_the_same_call_hold_as_well(self):
        answer = update(
            actor("team-lead"),
            task(),
            status=Status.IN_PROGRESS,
            active_form="x",
            new_blockers=(2,),
        )
        assert answer == "TASK_BLOCKED"

    def test_hold_neither_claims_nor_deletion(self):
        held = task(blockers=(9,))
        assert update(actor("architect"), held, status=Status.DELETED) == "OK"
        me = TEAM.agents["architect"]
        assert update(actor("architect"), held, owner=me.handle) == "OK"


class TestUnowned:
    def test_is_moved_by_who_could_take_it(self):
        needs = task(required_role="backend-leader")
        assert update(actor("backend-leader"), needs, status=Status.IN_PROGRESS) == "OK"
        assert update(actor("architect"), needs, status=Status.IN_PROGRESS) == "ROLE_MISMATCH"

    def test_is_edited_and_withdrawn_by_its_creator(self):
        needs = task(required_role="backend-leader", creator=TEAM.agents["architect"])
        assert update(actor("architect"), needs, active_form="x") == "OK"
        assert update(actor("architect"), needs, status=Status.DELETED) == "OK"
        assert update(actor("architect"), needs, status=Status.IN_PROGRESS) == "ROLE_MISMATCH"
        assert update(actor("test-leader"), needs, active_form="x") == "ROLE_MISMATCH"

    def test_stays_as_it_was_completed_for_all_but_its_worker_and_who_leads_that(self):
        worker, team_mate = NEXUS.agents["backend_worker"], NEXUS.agents["backend_worker_2"]
        done = task("completed", completed_by=worker, creator=NEXUS.agents["ceo"])
        for name, outcome in (
            ("backend_worker", "OK"),
            ("it_manager", "OK"),
            ("backend_worker_2", "NOT_YOURS"),
            ("hr_manager", "NOT_YOURS"),
            ("ceo", "NOT_YOURS"),
        ):
            assert update(actor(name, NEXUS), done, active_form="x") == outcome, name
            assert update(actor(name, NEXUS), done, active_form="x", owner="") == outcome, name
        of_others = task("completed", completed_by=team_mate)
        for change in ({"active_form": "x"}, {"status": Status.DELETED}):
            assert update(actor("it_manager", NEXUS), of_others, **change) != "OK"

    def test_is_its_creators_once_it_was_completed_for_no_agent(self):
        done = task("completed", creator=NEXUS.agents["hr_manager"])
        assert update(actor("hr_manager", NEXUS), done, active_form="x") == "OK"
        assert update(actor("backend_worker", NEXUS), done, active_form="x") == "NOT_YOURS"

    def test_is_curated_while_it_has_not_begun(self):
        keeper = actor("product-manager")
        for required, outcome in (
            ("", "OK"),
            ("product-manager", "OK"),
            ("architect", "NOT_YOURS"),
        ):
            one = task(required_role=required)
            assert update(keeper, one, active_form="x", curates=True) == outcome
            assert update(keeper, one, rank=1, curates=True) == "OK"
        for begun in (task("in_progress"), task(owner=TEAM.agents["architect"])):
            assert update(keeper, begun, active_form="x", curates=True) == "NOT_YOURS"


class TestPermissions:
    def test_none_given_restrict_nothing(self):
        for none in (None, {}, []):
            assert read_permissions(none) == UNRESTRICTED

    def test_are_read_as_specified_and_as_a_mapping(self):
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
        answer = update(actor("architect", team), typed, owner=me.handle)
        listed = kind in ("api_design", "tech_research")
        assert answer == ("OK" if listed else "ROLE_MISMATCH")
        assert ("architect" in roles_claiming(team, kind.value)) == listed

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
        assert update(actor("architect", team), owned, status=Status.COMPLETED) == "NOT_YOURS"
        assert update(actor("architect", team), owned, owner="") == "OK"

    @pytest.mark.parametrize("enforcement", Enforcement)
    def test_without_update_own_tasks_reach_nothing_by_not_claiming_it(self, enforcement):
        team = self._team(claim_task_type=["testing"])
        who = actor("architect", team)
        begun = task("in_progress", task_type="testing")
        assert update(who, task(), enforcement, status=Status.IN_PROGRESS) == "NOT_YOURS"
        assert update(who, begun, enforcement, status=Status.COMPLETED) == "NOT_YOURS"
        assert update(who, begun, enforcement, active_form="x") == "NOT_YOURS"

    def test_without_update_own_tasks_withdraw_what_they_created(self):
        team = self._team(claim_task_type=["testing"])
        mine = task(creator=team.agents["architect"])
        assert update(actor("architect", team), mine, status=Status.DELETED) == "OK"

    def test_without_update_own_tasks_keep_a_claim_alive(self):
        team = self._team(claim_task_type=["testing"])
        who, beat = actor("architect", team), {}
        assert update(who, task(owner=team.agents["architect"]), **beat) == "OK"
        assert update(who, task(owner=team.agents["test-leader"]), **beat) == "NOT_YOURS"
        assert update(who, task(), **beat) == "NOT_YOURS"

    def test_without_comment_on_all_tasks_speak_of_their_own_only(self):
        team = self._team(update_own_tasks=True)
        me, who = team.agents["architect"], actor("architect", team)
        assert code_of(can_comment(who, task())) == "NOT_YOURS"
        for mine in (
            task(owner=me),
            task(creator=team.agents["architect"]),
            task(workers=frozenset({me.id})),
        ):
            assert code_of(can_comment(who, mine)) == "OK"


class TestApproval:
    def test_is_needed_before_completion(self):
        me = TEAM.agents["architect"]
        waits = task("in_progress", owner=me, task_type=NEEDS_APPROVAL)
        assert update(actor("architect"), waits, status=Status.COMPLETED) == "APPROVAL_REQUIRED"
        assert update(actor("team-lead"), waits, status=Status.COMPLETED) == "APPROVAL_REQUIRED"
        approved = replace(waits, approved_at=AT)
        assert update(actor("architect"), approved, status=Status.COMPLETED) == "OK"

    def test_is_for_an_agent_that_worked_and_did_not_approve(self):
        me = TEAM.agents["architect"]
        free = replace(task("in_progress", task_type=NEEDS_APPROVAL), approved_at=AT)
        finish = {"status": Status.COMPLETED}
        assert update(actor("architect"), free, **finish) == "APPROVAL_REQUIRED"
        worked = replace(free, workers=[me.id])
        assert update(actor("architect"), worked, **finish) == "OK"
        own = replace(worked, approved_by="agent:architect")
        assert update(actor("architect"), own, **finish) == "APPROVAL_REQUIRED"

    def test_is_given_by_leads(self):
        for name in spec.ROLES:
            found = code_of(can_approve(actor(name), task("in_progress")))
            assert found == ("OK" if name == "team-lead" else "LEVEL_DENIED")

    def test_is_never_given_by_who_did_the_work(self):
        lead = TEAM.agents["team-lead"]
        worked = task("in_progress", workers=frozenset({lead.id}))
        assert code_of(can_approve(actor("team-lead"), worked)) == "NOT_YOURS"

    def test_reaches_the_own_workers(self):
        theirs = task("in_progress", owner=NEXUS.agents["backend_worker_2"])
        assert code_of(can_approve(actor("it_manager", NEXUS), theirs)) == "NOT_YOURS"

    @pytest.mark.parametrize(
        ("workers", "outcome"), [([], "OK"), ([3], "OK"), ([5], "NOT_YOURS"), ([3, 5], "NOT_YOURS")]
    )
    def test_without_an_owner_is_of_who_leads_all_that_worked_on_it(self, workers, outcome):
        free = task("in_progress", workers=workers)
        assert code_of(can_approve(actor("it_manager", NEXUS), free)) == outcome

    @pytest.mark.parametrize("status", ["completed", "deleted"])
    def test_comes_too_late_for_what_has_ended(self, status):
        assert code_of(can_approve(actor("team-lead"), task(status))) == "INVALID_TRANSITION"

    def test_comes_too_early_for_what_has_not_begun(self):
        for who in (actor("team-lead"), TaskActor(TEAM)):
            found = can_approve(who, task())
            assert isinstance(found, Deny)
            assert found.code is Code.INVALID_TRANSITION
            assert "in_progress" in found.next_action

    def test_has_to_outlive_the_update_that_completes(self):
        me = TEAM.agents["architect"]
        done = task("in_progress", owner=me, task_type=NEEDS_APPROVAL, approved=True)
        finish = {"status": Status.COMPLETED}
        assert update(actor("architect"), done, **finish) == "OK"
        assert update(actor("architect"), done, **finish, subject="x") == "APPROVAL_REQUIRED"
        assert update(actor("architect"), done, **finish, owner=me.handle) == "OK"
        rework = {"subject": "x"}
        assert update(actor("team-lead"), done, **finish, **rework) == "APPROVAL_REQUIRED"

    def test_freezes_what_is_completed_with_it(self):
        me = TEAM.agents["architect"]
        done = task("completed", owner=me, approved=True)
        for who in (actor("architect"), actor("team-lead"), TaskActor(TEAM)):
            assert update(who, done, subject="x") == "INVALID_TRANSITION"
            free = replace(done, approved_at=None)
            assert update(who, free, subject="x") == "OK"

    def test_people_of_the_board_may(self):
        assert code_of(can_approve(TaskActor(TEAM), task("in_progress"))) == "OK"


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
                asked = TaskUpdate(
                    status=after,
                    owner=None if new == "keep" else new.handle if new else "",
                    force=force,
                    expected_version=version,
                    active_form="x" if after is None and new == "keep" else None,
                )
                what = task(status, owner=owner, required_role=required)
                found = can_update(actor(name), what, asked).decision
                seen.add(code_of(found))
                if isinstance(found, Deny):
                    assert found.message
                    assert found.next_action
                    assert found.rule
        assert seen == {
            "OK", "VERSION_MISMATCH", "FORCE_ASSIGN_DENIED", "INVALID_TRANSITION", "ROLE_MISMATCH",
            "NOT_YOURS", "INVALID_PARAMS",
        }  # fmt: skip


class TestGuards:
    CASES = [
        ("can_apply_to_version", task(), TaskUpdate(expected_version=9, active_form="x")),
        ("can_name_owner", task(), TaskUpdate(owner="unknown")),
        ("can_force", task(), TaskUpdate(force=True, active_form="x")),
        (
            "can_move_to",
            task("completed", completed_by=TEAM.agents["architect"]),
            TaskUpdate(status=Status.PENDING),
        ),
        ("can_still_change", task("deleted"), TaskUpdate(owner="architect")),
        (
            "can_end_now",
            task("in_progress", owner=TEAM.agents["architect"]),
            TaskUpdate(owner="", status=Status.COMPLETED),
        ),
        (
            "can_owner_take",
            task(required_role="backend-leader"),
            TaskUpdate(owner="architect"),
        ),
        ("can_set_owner", task(owner=TEAM.agents["test-leader"]), TaskUpdate(owner="")),
        ("can_owner_act", task(), TaskUpdate(owner="architect")),
        (
            "can_owner_read",
            replace(task(), subject_writer=TEAM.agents["test-leader"].id),
            TaskUpdate(owner="architect"),
        ),
        ("can_change", task(owner=TEAM.agents["test-leader"]), TaskUpdate(active_form="x")),
        (
            "can_replace_texts",
            replace(
                task(),
                description="x",
                text_writers={"description": TEAM.agents["test-leader"].id},
            ),
            TaskUpdate(description="y"),
        ),
        ("can_go_on", task(blockers=(9,)), TaskUpdate(status=Status.IN_PROGRESS)),
        (
            "can_complete",
            task("in_progress", task_type=NEEDS_APPROVAL),
            TaskUpdate(status=Status.COMPLETED),
        ),
    ]

    def test_are_all_tried(self):
        assert [name for name, *_ in self.CASES] == [check.__name__ for check in updates.CHECKS]

    @pytest.mark.parametrize(("name", "what", "asked"), CASES)
    def test_each_alone_refuses_something(self, monkeypatch, name, what, asked):
        who = actor("architect")
        if name in ("can_owner_read", "can_replace_texts"):
            settings = {**TEAM.settings, "task_visibility": "contacts"}
            who = TaskActor(replace(TEAM, settings=settings), who.party)
        if name == "can_owner_act":
            agents = {**TEAM.agents, "architect": replace(who.party, active=False)}
            who = TaskActor(replace(TEAM, agents=agents), who.party)
        assert isinstance(can_update(who, what, asked).decision, Deny)
        left = tuple(check for check in updates.CHECKS if check.__name__ != name)
        monkeypatch.setattr(updates, "CHECKS", left)
        assert isinstance(can_update(who, what, asked).decision, Allow)


class TestRenewing:
    """Spec: tasks 37."""

    @pytest.mark.parametrize(
        "asked",
        [
            {"status": Status.PENDING}, {"owner": ""}, {"subject": "x"}, {"required_role": ""},
            {"task_type": ""}, {"metadata": {}}, {"add_blocks": ("1",)}, {"add_blocked_by": ("1",)},
        ],
    )  # fmt: skip
    def test_is_what_asks_for_nothing(self, asked):
        assert TaskUpdate().renews
        assert TaskUpdate(expected_version=3).renews
        assert not TaskUpdate(**asked).renews


class TestThePresentOwner:
    def test_keeps_a_task_that_another_role_could_not_take(self):
        """Spec: tasks 19. Naming the owner that a task has gives it to nobody."""
        lead, names = actor(spec.ROLES[0]), spec.ROLES[1:]
        owner, other = TEAM.agents[names[0]], TEAM.agents[names[1]]
        owned = task(owner=owner, required_role=other.role)
        assert code_of(can_owner_take(lead, owned, TaskUpdate(owner=owner.handle))) == "OK"
        free = task(owner=other, required_role=other.role)
        found = can_owner_take(lead, free, TaskUpdate(owner=owner.handle))
        assert code_of(found) == "ROLE_MISMATCH"


class TestAPerson:
    def test_is_called_board(self):
        person = TaskActor(TEAM)
        assert (person.handle, person.role) == ("board", "board")
        lead = actor(spec.ROLES[0])
        assert (lead.handle, lead.role) == (lead.party.handle, lead.party.role)


class TestWhatAnUpdateChanges:
    LEAD, OWNER = actor(spec.ROLES[0]), TEAM.agents[spec.ROLES[1]]

    def change(self, who, row, **asked):
        return change_of(System(name="tests", organisation_id=1), who, row, TaskUpdate(**asked), AT)

    def test_names_the_owner_before_and_after(self):
        given = self.change(self.LEAD, task(), owner=self.OWNER.handle)
        assert given.event.details["owner"] == ["", self.OWNER.handle]
        taken = self.change(self.LEAD, task(owner=self.OWNER), owner="")
        assert taken.event.details["owner"] == [self.OWNER.handle, ""]

    def test_tells_another_owner_nothing_of_tasks_that_it_may_not_read(self):
        asked = {"add_blocks": ("8", "9"), "unseen": ("9",)}
        told = self.change(self.LEAD, task(owner=self.OWNER), **asked)
        assert told.event.for_agent_id == self.OWNER.id
        assert told.event.details["addBlocks"] == ["8"]
        own = self.change(TaskActor(TEAM, self.OWNER), task(owner=self.OWNER), **asked)
        assert own.event.for_agent_id is None
        assert own.event.details["addBlocks"] == ["8", "9"]

    @pytest.mark.parametrize(("status", "works"), [("pending", False), ("in_progress", True)])
    def test_counts_who_changes_the_text_of_begun_work_among_its_workers(self, status, works):
        found = self.change(self.LEAD, task(status, owner=self.OWNER), subject="Other")
        assert found.values.get("workers") == ([self.LEAD.party.id] if works else None)


class TestWhatIsSaid:
    def test_names_only_leads_to_ask(self):
        worker = TaskActor(TEAM, TEAM.agents[spec.ROLES[1]])
        assert [lead.handle for lead in active_leads(worker, task())] == [spec.ROLES[0]]

    def test_withholds_nothing_of_a_task_from_who_reads_everything(self):
        assert withheld_texts(task(), EVERYTHING) == []

    def test_names_the_roles_that_claim_a_type(self):
        roles = [
            role("architect", permissions={"claim_task_type": ["design"]}),
            role("tester", permissions={"claim_task_type": ["testing"]}),
        ]
        found = can_type_role(policy_of(roles, []), "architect", "testing")
        assert "are claimed by tester, not by" in found.message
        none = can_type_role(policy_of(roles, []), "architect", "deployment")
        assert "are claimed by no role, not by" in none.message
