"""What a change permits and forbids, in sentences a person can check."""

from dataclasses import replace

import pytest

from orgchart import catalogue
from orgchart.packs.checking import sound_pack
from orgchart.packs.pack import PackToolRestriction, policy_of
from orgchart.policy import difference
from orgchart.policy.compiled import ToolRestriction
from orgchart.policy.contact_difference import LATER
from orgchart.policy.difference import between
from orgchart.policy.instructions import instructions_given
from orgchart.policy.protected import PROTECTED
from orgchart.policy.vocabulary import Kind, Relation, ToolMode
from tests.orgchart.variants import (
    NEXUS,
    SOLO,
    with_agent,
    with_contact,
    with_restrictions,
    with_role,
)
from tests.orgchart.world import PACKS

BEFORE = policy_of(NEXUS)


def change(pack):
    found = between(BEFORE, policy_of(pack))
    return list(found.allowed), list(found.forbidden)


def settings(**values):
    return replace(NEXUS, settings={**NEXUS.settings, **values})


def test_is_empty_between_equals():
    assert between(BEFORE, BEFORE).is_empty


def test_of_something_new_is_all_it_allows():
    found = between(None, BEFORE)
    assert "ceo may send report to board" in found.allowed
    assert "backend_worker may call write_file in coding" in found.allowed
    assert "backend_worker is denied .env" in found.forbidden


def test_mirrors_itself_backwards():
    after = policy_of(with_role("qa_worker", more_tools={"read_code"}))
    there, back = between(BEFORE, after), between(after, BEFORE)
    assert (there.allowed, there.forbidden) == (back.forbidden, back.allowed)


def test_names_a_tool_with_the_modes_it_runs_in():
    assert change(with_role("qa_worker", more_tools={"read_code", "write_note"})) == (
        [
            "qa_worker may call read_code in coding",
            "qa_worker may call write_note in chat_safe",
            "qa_worker may call write_note in coding",
        ],
        [],
    )


def test_names_what_a_mode_brings_and_takes():
    allowed, forbidden = change(settings(enabled_modes=["chat_safe"]))
    assert allowed == []
    assert "sessions may be in coding" in forbidden
    assert "backend_worker may call write_file in coding" in forbidden
    assert not [fact for fact in forbidden if fact.endswith("in chat_safe")]


def test_names_a_denial_and_its_lifting():
    assert change(with_role("qa_worker", denied_tools=frozenset({"read_code"}))) == (
        [],
        ["qa_worker is denied read_code"],
    )
    files = BEFORE.roles["backend_worker"].files
    denied = next(p for p in files.deny if p not in PROTECTED)
    lifted = replace(files, deny=tuple(p for p in files.deny if p not in (denied, ".env")))
    assert change(with_role("backend_worker", files=lifted)) == (
        [f"backend_worker is denied {denied} (lifted)"],
        [],
    ), "a protected denial is never lifted"


def test_names_each_pair_that_a_rule_opens():
    pack = with_contact(
        "hr_manager", "research_worker", types=frozenset({"info"}), relation=Relation.ANY
    )
    assert change(pack) == (
        [
            "hr_manager may contact any research_worker",
            "hr_manager may send info to any research_worker",
        ],
        [],
    )


def test_names_a_rule_that_only_tools_may_use():
    """Who may be contacted may be given a contract, whatever send_mail carries."""
    pack = with_contact("ceo", "qa_worker", types=frozenset(), relation=Relation.ANY)
    assert change(pack) == (["ceo may contact any qa_worker under a contract"], [])


def test_names_a_rule_that_becomes_open_though_only_tools_issue_what_it_carries():
    """Its recipient then reads the sender's tasks, which carry no mail type at all."""
    pair = ("product_manager", "frontend_worker")
    rule = {"types": frozenset({"contract"}), "relation": Relation.OWN}
    opened = policy_of(with_contact(*pair, **rule, needs_contract=False))
    assert between(BEFORE, opened).allowed == ("product_manager may contact frontend_worker",)
    under = policy_of(with_contact(*pair, **rule, needs_contract=True))
    assert between(BEFORE, under).allowed == ()
    assert between(under, opened).allowed == ("product_manager may contact frontend_worker",)
    assert between(opened, under).allowed == (), "what a contract must open is no new right"


def test_of_a_rule_widened_to_everybody_names_later_agents_and_forbids_nothing():
    types = {"types": frozenset({"info"}), "needs_contract": False}
    own = policy_of(with_contact("it_manager", "qa_worker", **types, relation=Relation.OWN))
    anyone = policy_of(with_contact("it_manager", "qa_worker", **types, relation=Relation.ANY))
    assert between(own, anyone).allowed == (
        "it_manager may contact any qa_worker (for later holders)",
        "it_manager may send info to any qa_worker (for later holders)",
    )
    assert between(own, anyone).forbidden == ()
    assert between(anyone, own).allowed == ()


def test_names_what_a_role_gains_while_nobody_holds_it():
    """Somebody may be hired into it by a contract that was signed before."""
    empty = with_agent("qa_worker", active=False)
    before = policy_of(empty)
    pack = with_role("qa_worker", empty, more_tools={"write_note"}, level=2)
    found = between(before, policy_of(pack))
    assert found.allowed == (
        "qa_worker acts as qa_worker (level 2) (for later holders)",
        "qa_worker may call write_note in chat_safe (for later holders)",
        "qa_worker may call write_note in coding (for later holders)",
    )
    back = between(policy_of(pack), before)
    assert back.allowed == ("qa_worker acts as qa_worker (level 3) (for later holders)",)
    assert "qa_worker may call write_note in coding (for later holders)" in back.forbidden


def test_says_nothing_of_a_role_that_is_only_left_or_filled():
    empty = policy_of(with_agent("qa_worker", active=False))
    for found in (between(BEFORE, empty), between(empty, BEFORE)):
        assert not [s for s in (*found.allowed, *found.forbidden) if s.endswith(LATER)]


def test_names_a_restriction_lifted_while_nobody_holds_the_role():
    empty = with_agent("qa_worker", active=False)
    tightened = with_restrictions("write_verdict", scope="role:qa_worker", pack=empty)
    found = between(policy_of(tightened), policy_of(empty))
    assert "qa_worker may call write_verdict in coding (for later holders)" in found.allowed


def test_names_a_rule_that_no_pair_uses_yet():
    """Whoever moves below the other manager has it; that move needs no second person then."""
    pack = with_contact(
        "research_worker", "it_manager", types=frozenset({"info"}), relation=Relation.OWN
    )
    assert change(pack) == (
        [
            "research_worker may contact it_manager (for later holders)",
            "research_worker may send info to it_manager (for later holders)",
        ],
        [],
    )


def test_names_a_type_that_no_longer_goes_to_the_superior_only():
    """No pair uses it: but a member may get a co-manager, or somebody below itself, later."""
    types = [replace(kind, to_superior=False) for kind in SOLO.mail_types]
    before, after = policy_of(SOLO), policy_of(replace(SOLO, mail_types=tuple(types)))
    sentence = f"group_member may send escalation to group_leader{LATER}"
    assert sentence in between(before, after).allowed
    assert sentence in between(after, before).forbidden


def test_names_all_that_a_new_role_brings():
    role = next(role for role in NEXUS.roles if role.name == "qa_worker")
    pack = replace(NEXUS, roles=(*NEXUS.roles, replace(role, name="auditor")))
    assert "auditor may call write_verdict in coding (for later holders)" in change(pack)[0]


def test_names_a_kind_above_the_workers():
    assert "qa_worker is of kind manager" in change(with_role("qa_worker", kind=Kind.MANAGER))[0]


def test_tells_a_channel_under_a_contract_from_an_open_one():
    pack = with_contact(
        "product_manager",
        "frontend_worker",
        types=frozenset({"requirement_clarification"}),
        relation=Relation.OWN,
    )
    opened = [
        "product_manager may contact frontend_worker",
        "product_manager may send requirement_clarification to frontend_worker",
    ]
    assert change(pack) == (opened, [])
    assert between(policy_of(pack), BEFORE).forbidden == tuple(opened)
    assert between(policy_of(pack), BEFORE).allowed == (), "a restriction gives nothing"


def test_names_a_new_superior_and_the_mails_that_move_with_it():
    allowed, forbidden = change(with_agent("qa_worker", reports_to="product_manager"))
    assert "product_manager manages qa_worker" in allowed
    assert "it_manager manages qa_worker" in forbidden
    assert "qa_worker may send escalation to it_manager" in forbidden
    assert "it_manager may send info to qa_worker" in forbidden


def test_names_no_mail_that_was_never_possible():
    """Escalations go up, and what only tools issue is sent by nobody."""
    for who, above in (("qa_worker", "product_manager"), ("product_manager", "it_manager")):
        allowed, forbidden = change(with_agent(who, reports_to=above))
        said = [*allowed, *forbidden]
        assert f"it_manager may send escalation to {who}" not in said
        assert not [s for s in said if "may send contract" in s or "deployment_approval to" in s]


def test_names_all_that_goes_with_who_is_deactivated():
    allowed, forbidden = change(with_agent("qa_worker", active=False))
    assert allowed == []
    assert "qa_worker acts as qa_worker (level 3)" in forbidden
    assert "it_manager may send info to qa_worker" in forbidden
    assert "tasks that require qa_worker have an agent that can take them" in forbidden


def test_names_the_built_ins_of_an_agent_in_one_line(monkeypatch):
    entry = catalogue.CatalogueEntry(catalogue.Source.BUILTIN, frozenset(ToolMode))
    entries = dict.fromkeys(("aa", "bb", "cc"), entry)
    monkeypatch.setattr(catalogue, "known", lambda: entries)
    gone = with_agent("qa_worker", active=False)
    assert "qa_worker has the built-ins aa, bb, cc" in change(gone)[1]
    tightening = PackToolRestriction(
        restriction=ToolRestriction("agent:qa_worker", "bb", frozenset()), reason="x"
    )
    assert change(replace(NEXUS, tool_restrictions=(tightening,))) == (
        [],
        ["qa_worker has the built-in bb"],
    )


def test_names_a_tightening():
    tightening = PackToolRestriction(
        restriction=ToolRestriction("agent:qa_worker", "run_test", frozenset()), reason="x"
    )
    assert change(replace(NEXUS, tool_restrictions=(tightening,))) == (
        [],
        ["qa_worker may call run_test in coding"],
    )
    builtin = PackToolRestriction(
        restriction=ToolRestriction("role:qa_worker", "task_create", frozenset({ToolMode.CODING}))
    )
    assert change(replace(NEXUS, tool_restrictions=(builtin,)))[1]


@pytest.mark.parametrize(
    ("now", "then"), [("enforce", "warn"), ("warn", "off"), ("enforce", "off")]
)
def test_names_each_step_that_weakens_enforcement(now, then):
    """Spec: tasks 36. To end the record of what would be refused needs a second person, too."""
    before, after = (policy_of(settings(enforcement=each)) for each in (now, then))
    assert between(before, after).allowed
    assert not between(before, after).forbidden
    assert not between(after, before).allowed


def test_names_files_leads_permissions_and_offices():
    pack = sound_pack(PACKS / "constitution")
    found = between(None, policy_of(pack)).allowed
    assert "analyst holds the office ANALYST" in found
    assert "analyst may write agents/analyst/" in found
    assert "it_manager leads tasks" in between(None, BEFORE).allowed
    team = between(None, policy_of(sound_pack(PACKS / "dev-team"))).allowed
    assert "team-lead has update_own_tasks = True" in team


def test_names_an_alias_and_an_address_that_lead_elsewhere():
    """Mail to a name that led to another agent has another reader."""
    pack = replace(NEXUS, aliases={**NEXUS.aliases, "pm": "hr_manager"})
    assert change(pack) == (["pm leads to hr_manager"], ["pm leads to product_manager"])
    named = policy_of(with_agent("investment_trader", SOLO, name="broker"))
    found = between(policy_of(SOLO), named)
    assert found.allowed == ("investment.broker leads to investment_trader",)
    assert found.forbidden == ("investment.trader leads to investment_trader",)


class TestInstructions:
    """Spec: people 60."""

    TOLD = ["ceo, which orders changes, gets other instructions"]

    def test_of_an_agent_that_orders_changes_are_a_new_right(self):
        told = change(with_agent("ceo", system_prompt="Sign what HR asks for."))
        assert told == (self.TOLD, [])
        assert change(with_role("ceo", summary="You sign."))[0] == self.TOLD
        assert change(with_role("ceo", prohibitions=()))[0] == self.TOLD

    def test_count_before_somebody_comes_to_order_changes(self):
        """Otherwise nobody would see them when a second person confirms that somebody does."""
        chief = replace(next(r for r in NEXUS.roles if r.name == "ceo"), name="chief")
        unheld = replace(NEXUS, roles=(*NEXUS.roles, chief))
        told = replace(NEXUS, roles=(*NEXUS.roles, replace(chief, summary="You sign.")))
        found = between(policy_of(unheld), policy_of(told))
        later = "chief, which orders changes, gets other instructions (for later holders)"
        assert (found.allowed, found.forbidden) == ((later,), ())
        left = with_agent("qa_worker", role="ceo", active=False)
        other = with_agent("qa_worker", left, system_prompt="Sign what HR asks for.")
        found = between(policy_of(left), policy_of(other))
        assert found.allowed == ("qa_worker, which orders changes, gets other instructions",)

    @pytest.mark.parametrize("words", [{"context": "You sign."}, {"name": "Who signs for HR"}])
    def test_of_a_group_are_those_of_its_agents(self, words):
        leads = with_role("group_leader", SOLO, more_tools={"generate_contract"})
        groups = tuple(replace(g, **words) if g.slug == "coding" else g for g in leads.groups)
        found = between(policy_of(leads), policy_of(replace(leads, groups=groups)))
        assert found.allowed == ("coding_leader, which orders changes, gets other instructions",)

    @pytest.mark.parametrize("words", [{"context": "You sign."}, {"name": "Who signs for HR"}])
    def test_that_a_change_brings_are_those_of_the_group_an_agent_comes_into(self, words):
        """Of two changes that say the same, a second person confirms the one that was shown."""
        apart = with_role("group_leader", SOLO, more_tools={"generate_contract"})
        told = []
        for more in ({}, words):
            groups = tuple(replace(g, **more) if g.slug == "coding" else g for g in apart.groups)
            pack = replace(apart, groups=groups)
            outside = with_agent("coding_leader", pack, group="investment")
            told.append(instructions_given(policy_of(outside), policy_of(pack)))
            assert list(told[-1]) == ["coding_leader"]
        assert told[0] != told[1]

    def test_that_a_change_brings_are_of_agents_and_roles_that_come_to_order_changes(self):
        orders = with_role("it_manager", more_tools={"generate_contract"})
        found = instructions_given(policy_of(NEXUS), policy_of(orders))
        assert sorted(found) == ["it_manager", "role it_manager"]
        other = with_agent("it_manager", orders, system_prompt="Sign what HR asks for.")
        before = with_agent("it_manager", system_prompt="Sign what HR asks for.")
        assert instructions_given(policy_of(before), policy_of(other)) != found
        assert instructions_given(policy_of(orders), policy_of(orders)) == {}

    def test_of_every_other_agent_give_no_right(self):
        assert change(with_agent("qa_worker", system_prompt="Pass all.")) == ([], [])
        assert change(with_role("qa_worker", summary="You pass.")) == ([], [])


class TestWhereReportsAreFiled:
    """Spec: files 13, people 9. HR alone could have filed technical reports in another folder."""

    @pytest.mark.parametrize(
        ("role", "folder", "files"),
        [
            ("it_manager", "reports/tech/", {"read": ("company/contracts/",)}),
            ("it_manager", "reports/tech/", {"read": ("reports/hr/", "reports/tech/")}),
            ("qa_worker", "reports/qa/", {"write": ("tests/",)}),
        ],
    )
    def test_another_folder_is_a_new_right(self, role, folder, files):
        scopes = replace(next(r.files for r in NEXUS.roles if r.name == role), **files)
        said = f"reports of the department of {role} are no longer filed in {folder}"
        assert said in change(with_role(role, files=scopes))[0]

    def test_a_scope_elsewhere_takes_nothing_to_another_folder(self):
        scopes = next(r.files for r in NEXUS.roles if r.name == "it_manager")
        kept = replace(scopes, read=("reports/tech/",))
        assert change(with_role("it_manager", files=kept))[0] == []


class TestPermissionsOnTasks:
    """A role without any has no limit on tasks, so that taking all away gives a right."""

    TEAM = sound_pack(PACKS / "dev-team")
    LIMIT = "backend-leader does with tasks what its permissions name"

    def changed(self, before, after):
        packs = (with_role("backend-leader", self.TEAM, permissions=p) for p in (before, after))
        found = between(*map(policy_of, packs))
        return found.allowed, found.forbidden

    def test_taken_away_lift_a_limit(self):
        limits = {"claim_task_type": ["bug_fix"]}
        assert self.changed(limits, {}) == (
            (f"{self.LIMIT} (lifted)",),
            ("backend-leader has claim_task_type = ['bug_fix']",),
        )
        assert self.LIMIT in self.changed({}, limits)[1]

    def test_of_which_some_are_taken_away_give_nothing(self):
        one = {"claim_task_type": ["bug_fix"]}
        assert self.changed({**one, "update_own_tasks": True}, one)[0] == ()


class TestAgentsThatStayTheSame:
    """Their facts are not worked out; what is found is what comparing all of them finds."""

    CHANGES = (
        with_agent("backend_worker", active=False),
        with_agent("backend_worker", skills=["tidy"]),
        with_agent("backend_worker", reports_to="hr_manager"),
        with_agent("it_manager", active=False),
        with_agent("it_manager", title="Head of IT"),
        with_role("qa_worker", more_tools={"read_code"}),
        with_contact("it_manager", "hr_manager", types=frozenset({"info", "report"})),
        with_restrictions("write_verdict"),
        settings(enabled_modes=["chat_safe"]),
    )

    @pytest.mark.parametrize("pack", CHANGES)
    def test_change_no_sentence(self, pack, monkeypatch):
        after = policy_of(pack)
        found = between(BEFORE, after), between(after, BEFORE)
        monkeypatch.setattr(difference, "_same_agents", lambda *_: frozenset())
        assert found == (between(BEFORE, after), between(after, BEFORE))

    @pytest.mark.parametrize(
        ("pack", "worked_out"),
        [
            (with_agent("backend_worker", skills=["tidy"]), {"backend_worker"}),
            (with_agent("backend_worker", title="Engineer"), set()),
            (with_agent("backend_worker", reports_to="hr_manager"), set()),
            (with_agent("it_manager", active=False), set()),
        ],
    )
    def test_are_left_out(self, monkeypatch, pack, worked_out):
        asked = []
        real = difference._agent_facts

        def facts(policy, agent):
            asked.append(agent.handle)
            return real(policy, agent)

        monkeypatch.setattr(difference, "_agent_facts", facts)
        between(BEFORE, policy_of(pack))
        assert set(asked) - {"it_manager"} == worked_out | {"hr_worker"}  # a role without holder


class TestADeactivatedAgent:
    """Its place, role and group say who reads its reports, contracts and tasks."""

    GONE = with_agent("backend_worker", active=False)

    @pytest.mark.parametrize(
        ("place", "sentence"),
        [
            ({"reports_to": "product_manager"}, "product_manager reads what backend_worker left"),
            ({"co_managers": ("hr_manager",)}, "hr_manager reads what backend_worker left"),
            ({"role": "research_worker"}, "backend_worker left as research_worker"),
        ],
    )
    def test_is_put_elsewhere_by_a_new_right(self, place, sentence):
        before = policy_of(self.GONE)
        after = policy_of(with_agent("backend_worker", self.GONE, **place))
        assert sentence in between(before, after).allowed
        assert sentence in between(after, before).forbidden

    def test_is_put_into_another_group_by_a_new_right(self):
        gone = with_agent("coding_developer", SOLO, active=False)
        moved = with_agent("coding_developer", gone, group="investment")
        found = between(policy_of(gone), policy_of(moved)).allowed
        assert "coding_developer left as a member of investment" in found

    def test_gives_nobody_a_right_by_leaving(self):
        assert between(BEFORE, policy_of(self.GONE)).allowed == ()
