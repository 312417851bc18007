"""People, HR and the IT Manager change rights in any order; what must never come of it."""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import F
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from core.decision import Denied
from governance.staff.deactivation import deactivate_by_person
from orgchart.keys import issue_key
from orgchart.models import (
    Agent,
    ApiKey,
    ContactRule,
    Organisation,
    Pause,
    PendingChange,
    Role,
    ToolOverride,
)
from orgchart.organisation_settings import merged
from orgchart.pauses.services import pause_agent, resume_agent
from orgchart.second_person.edits import activating, apply_edit, deleting, saving
from orgchart.second_person.services import propose_change
from orgchart.services import SecondPersonNeeded
from proofs.governance.accounts_machine import Accounts
from proofs.rehearsing import RehearsingCompany
from tests.company import Company
from tests.loaded import rolled_back
from tests.oracle.mail import CEILING

TOOLS = ("escalate", "send_mail", "web_search", "write_note")
TYPES = ("info", "report", "question", "escalation", "task_result")
ROLES = ("backend_worker", "frontend_worker", "qa_worker", "research_worker", "it_manager")
WORKERS = ROLES[:4]
MANAGERS = ("it_manager", "it_two", "hr_manager", "product_manager", "ceo")
ORDINARY = ("backend_worker", "frontend_worker", "research_worker")
"""The roles that a line needs not name to hire into them (Spec: contracts 51)."""
HEADS = ("it_manager", "it_two")
LINES = [("move", who, None, to) for who in WORKERS for to in HEADS] + [
    ("hire", "backend_two", role, None) for role in (None, *ROLES)
]
"""Act, subject, role and superior that a line of a contract names."""

SETTINGS = [
    *(("enforcement", each) for each in ("enforce", "warn", "off")),
    *(("task_visibility", each) for each in ("contacts", "all")),
    *(("enabled_modes", each) for each in (["chat_safe"], ["chat_safe", "coding"])),
    *(("approval_task_types", each) for each in ([], ["deployment"])),
]

person = st.sampled_from(sorted(("ada", "bob", "hans", "eve")))
worker = st.sampled_from(WORKERS)


def hiring(role):
    """The lines that hire into a role."""
    lines = [("hire", "backend_two", each, None) for each in (role, None)]
    return lines if role in ORDINARY else lines[:1]


class Rights(Accounts):
    """A day of one company. `agreed` says whether two human beings stand behind the present step.

    `lines` are the unused ones of the contracts with which the CEO lets HR change the organisation,
    each with its contract and its end; `keys` those that people issued, with the human being.
    `did` counts the moves that took effect.
    """

    kind = RehearsingCompany

    people = {"ada": "Board", "bob": "Board", "hans": "HR", "eve": "Observer"}

    def __init__(self):
        super().__init__()
        self.clock = self.here.clock()
        self.clock.__enter__()
        head = self.here.agent("it_manager")
        Agent.objects.create(organisation_id=self.id, handle="it_two", title="T", role=head.role,
                             reports_to=head.reports_to)  # fmt: skip
        Organisation.objects.filter(id=self.id).update(policy_version=F("policy_version") + 1)
        for agent in ("ceo", "hr_manager", "it_manager"):
            self.here.key(agent)  # a deactivated agent gets none
        self.lines, self.keys, self.proposed = [], [], 0
        self.had = self.rights()
        self.version = self.here.policy.version
        self.took = 0

    def teardown(self):
        self.did.update(self.here.took)
        self.clock.__exit__(None, None, None)
        super().teardown()

    def now(self):
        return self.here.now()

    def rights(self):
        """What everybody may do, read from the tables by hand."""
        everybody = {row.id: row for row in Agent.objects.filter(organisation_id=self.id)}
        agents = [row for row in everybody.values() if row.active]
        roles = {role.id: role for role in Role.objects.filter(organisation_id=self.id)}
        limited = {
            (row.agent_id, row.role_id, row.tool)
            for row in ToolOverride.objects.filter(organisation_id=self.id)
        }
        above = {agent.id: self.role_above(agent, everybody) for agent in agents}
        found = set()
        for agent in agents:
            superior = everybody.get(agent.reports_to_id)
            if superior is not None and superior.active:
                found.add((superior.handle, "manages", agent.handle))
            role = roles[agent.role_id]
            for tool in set(role.tools) - set(role.denied_tools):
                scopes = {(agent.id, None, tool), (None, role.id, tool), (None, None, tool)}
                if not scopes & limited:
                    found.add((agent.handle, tool))
        contacts = ContactRule.objects.filter(organisation_id=self.id, recipient__isnull=False)
        for one in contacts:
            for kind in one.types if one.types is not None else (*TYPES, "every other type"):
                found |= {
                    (agent.handle, kind, one.recipient_id)
                    for agent in agents
                    if agent.role_id == one.sender_id
                    and kind in CEILING[roles[one.sender_id].name]
                    and (kind != "escalation" or one.recipient_id == above[agent.id])
                }
        held = User.objects.filter(is_active=True, groups__isnull=False)
        return found | set(held.values_list("username", "groups__name")) | self.settings()

    def settings(self):
        """What the settings of the organisation allow everybody."""
        held = merged(Organisation.objects.get(id=self.id).settings)
        found = {("mode", each) for each in held["enabled_modes"]}
        found |= {("reads every task",)} if held["task_visibility"] == "all" else set()
        found |= {("unapproved",)} if "deployment" not in held["approval_task_types"] else set()
        found |= {("any role",)} if held["enforcement"] != "enforce" else set()
        return found | ({("unrecorded",)} if held["enforcement"] == "off" else set())

    def role_above(self, agent, everybody):
        """The role of an agent's superior: the only one that an escalation goes to."""
        above = everybody.get(agent.reports_to_id)
        while above is not None and not above.active:
            above = everybody.get(above.reports_to_id)
        return above and above.role_id

    def now_is(self, *, agreed):
        """Compare with the last step: what was given needs two, and so does being left alone."""
        super().now_is(agreed=agreed)
        rights = self.rights()
        given = rights - self.had
        self.took += bool(given)
        assert agreed or not given, given
        self.had = rights
        held = dict(self.keys)
        keys = ApiKey.objects.filter(pk__in=held, revoked_at=None, agent__active=True)
        alone = keys.filter(agent__role__tools__contains=["generate_contract"])
        assert len(self.board) < 2 or not alone, [(key.agent.handle, held[key.pk]) for key in alone]

    # People and the organisation

    @rule(by=person, role=st.sampled_from(ROLES), tool=st.sampled_from(TOOLS))
    def toggle_a_tool(self, by, role, tool):
        row = Role.objects.get(organisation_id=self.id, name=role)
        row.tools = sorted({*row.tools} ^ {tool})
        self.edit(by, saving(row))

    @rule(by=person, role=st.sampled_from(ROLES), kind=st.sampled_from(TYPES), at=st.integers(0, 9))
    def toggle_a_type(self, by, role, kind, at):
        rows = ContactRule.objects.filter(organisation_id=self.id, sender__name=role).order_by("id")
        if rows:
            row = rows[at % len(rows)]
            row.types = sorted({*(row.types or TYPES)} ^ {kind})
            self.edit(by, saving(row))

    @rule(by=person, role=st.sampled_from(ROLES), at=st.integers(0, 9))
    def delete_a_contact(self, by, role, at):
        rows = ContactRule.objects.filter(organisation_id=self.id, sender__name=role).order_by("id")
        if rows:
            self.edit(by, deleting(rows[at % len(rows)]))

    @rule(by=person, who=worker, tool=st.sampled_from(TOOLS), lift=st.booleans())
    def restrict_a_tool(self, by, who, tool, lift):
        agent = self.here.agent(who)
        row = ToolOverride.objects.filter(agent=agent, tool=tool).first()
        if lift and row:
            self.edit(by, deleting(row))
        elif not lift and not row:
            self.edit(by, saving(ToolOverride(
                organisation_id=self.id, agent=agent, tool=tool, modes=[],
                reason="R", set_by="x", at=self.now(),
            )))  # fmt: skip

    @rule(by=person, who=worker, to=st.sampled_from(MANAGERS))
    def move(self, by, who, to):
        row = self.here.agent(who)
        row.reports_to = self.here.agent(to)
        self.edit(by, saving(row))

    @rule(by=person, who=st.sampled_from((*WORKERS, "it_manager", "product_manager")))
    def switch(self, by, who):
        row = self.here.agent(who)
        if not row.active:
            self.edit(by, activating(row))
            return
        with suppress(Denied):
            deactivate_by_person(
                person=self.acting(by), agent=who, reason="R", now=self.now(),
                expected_version=self.here.policy.version,
            )  # fmt: skip
        self.now_is(agreed=False)

    def edit(self, by, edit, contract=""):
        """By a person; one that gives a right is proposed, unless a contract is named."""
        alone = self.alone(by)
        given = {
            "edit": edit, "caller": replace(self.acting(by), contract=contract), "reason": "R",
            "now": self.now(), "expected_version": None,
        }  # fmt: skip
        change = None
        try:
            change = apply_edit(**given, organisation_id=self.id)
            self.did[f"edit {edit.table}"] += 1
        except SecondPersonNeeded:
            row = propose_change(**given)
            self.proposer.setdefault(row.pk, self.human(by))  # it may wait already
            self.did[f"propose {edit.table}"] += 1
            self.proposed += 1
            if self.proposed % 2:
                self.confirm(at=0)
        except Denied:
            pass
        used = change is not None and bool(change.contract)
        if used:
            self.did["edit by contract"] += 1
        else:
            self.now_is(agreed=alone)
        return used

    @rule(by=person, who=worker, to=st.sampled_from(HEADS), at=st.integers(0, 9))
    def move_by_contract(self, by, who, to, at):
        row = self.here.agent(who)
        row.reports_to = self.here.agent(to)
        self.edit_by_contract(by, saving(row), [("move", who, None, to)], at)

    @rule(by=person, role=st.sampled_from(ROLES), to=st.sampled_from(MANAGERS),
          at=st.none() | st.integers(0, 9))  # fmt: skip
    def hire_by_person(self, by, role, to, at):
        """Also into another role, where the agent is there already."""
        kept = Agent.objects.filter(organisation_id=self.id, handle="backend_two").first()
        row = kept or Agent(organisation_id=self.id, handle="backend_two", title="T")
        row.role = Role.objects.get(organisation_id=self.id, name=role)
        row.reports_to = self.here.agent(to)
        if at is None or kept:
            self.edit(by, saving(row))
        else:
            self.edit_by_contract(by, saving(row), hiring(role), at)

    def edit_by_contract(self, by, edit, lines, at):
        """A contract that names this change, or any other one."""
        held = self.held(lines) or self.lines
        if held:
            contract = held[at % len(held)][1]
            if self.edit(by, edit, contract):
                self.use([one for one in self.held(lines) if one[1] == contract])

    @rule(by=person, to=st.sampled_from(SETTINGS))
    def set_a_setting(self, by, to):
        row = Organisation.objects.get(id=self.id)
        row.settings = {**row.settings, to[0]: to[1]}
        self.edit(by, saving(row))

    @rule(by=person, who=st.sampled_from(("ceo", "it_manager", "backend_worker")))
    def issue_a_key(self, by, who):
        """Of an agent whose contracts replace a second person only while there is none."""
        with suppress(Denied):
            issue_key(agent=self.here.agent(who), caller=self.acting(by), now=self.now())
            self.keys.append((ApiKey.objects.latest("pk").pk, self.human(by)))
            self.did["issue a key"] += 1
        self.now_is(agreed=False)

    @rule(by=person, who=st.sampled_from(("it_manager", "hr_manager", "backend_worker")))
    def pause(self, by, who):
        """One at a time; else it is resumed."""
        paused = Pause.objects.filter(ended_at=None).first()
        who = paused.agent.handle if paused else who
        fields = {"person": self.acting(by), "agent": who, "reason": "R", "now": self.now()}
        with suppress(Denied):
            if paused is None:
                pause_agent(**fields)
                self.did["pause"] += 1
            else:
                resume_agent(**fields, expected_pause=None)
                assert not paused.by_board or self.human(by) in self.board
                self.did["resume"] += 1
        self.now_is(agreed=False)

    @rule(at=st.integers(0, 2))
    def confirm(self, at):
        """A change that waits, by a member of the Board who did not propose it."""
        rows = PendingChange.objects.filter(state="proposed", organisation_id=self.id)
        row = rows.order_by("-id").first()
        names = sorted({"ada", "bob"} - {row.proposed_by}) if row else []
        if names:
            self.decide(names[at % len(names)], at=0, no=1)
            self.did["confirm"] += PendingChange.objects.get(pk=row.pk).state == "confirmed"

    # Time

    @rule(at=st.integers(0, 99))
    def repeat(self, at):
        self.here.repeat(at)
        self.now_is(agreed=False)

    @rule(hours=st.sampled_from((1, 1, 12, 100)))
    def let_pass(self, hours):
        self.here.let_pass(hours)
        self.now_is(agreed=False)

    # Agents

    @initialize(line=st.sampled_from(LINES), by=st.sampled_from(("hr_manager", "ada", "hans")))
    def begin(self, line, by):
        self.carry_out(line, by, twice=True)

    @rule(line=st.sampled_from(LINES), days=st.sampled_from((3, 30)))
    def authorise(self, line, days):
        act, subject, role, above = line
        until = self.now() + timedelta(days=days)
        made = self.here.call(
            "ceo", "generate_contract", to="hr_manager", title="T", body="B", kind="org_change",
            changes=[{"act": act, "subject": subject, "role": role, "reports_to": above}],
            expires_at=until.isoformat(),
        )  # fmt: skip
        if act == "hire" and self.here.policy.resolve(subject):
            assert made.code == "INVALID_PARAMS"  # nobody is hired twice
            return
        number = made.result["contract_id"]
        if self.here.call("hr_manager", "accept_contract", contract_id=number).code == "OK":
            self.lines.append((line, number, until))
            self.did["authorise"] += 1

    @rule(at=st.integers(0, 9))
    def cancel(self, at):
        """The CEO takes an authorisation back."""
        if self.lines:
            number = self.lines[at % len(self.lines)][1]
            given = {"contract_id": number, "outcome": "cancelled", "reason": "R"}
            assert self.here.call("ceo", "close_contract", **given).code == "OK"
            self.lines = [one for one in self.lines if one[1] != number]
            self.did["cancel"] += 1

    def held(self, lines):
        """The unused lines of contracts that still hold, of these."""
        return [one for one in self.lines if one[0] in lines and one[2] > self.now()]

    def use(self, held):
        """Two persons agreed, the CEO and who acts: a line is used up."""
        assert held
        self.lines.remove(held[0])
        self.now_is(agreed=True)

    @rule(line=st.sampled_from(LINES), by=st.sampled_from(("hr_manager", "ada", "hans")),
          twice=st.booleans())  # fmt: skip
    def carry_out(self, line, by, twice):
        """The CEO authorises a change and it is made at once: few days reach it in single steps."""
        self.authorise(line, 7)
        self.make(line, by)
        if twice:
            act, who, _, to = line
            if act == "move":  # back again in between
                self.carry_out((act, who, None, *({*HEADS} - {to})), by, twice=False)
            self.make(line, by)

    def make(self, line, by):
        act, who, role, to = line
        role = role or ORDINARY[0]
        if act == "move" and by == "hr_manager":
            self.move_by_hr(who, to, by)
        elif act == "move":
            self.move_by_contract(by, who, to, 0)
        elif by == "hr_manager":
            self.hire(role, by)
        else:
            self.hire_by_person(by, role, "it_manager", 0)

    @rule(who=worker, to=st.sampled_from(MANAGERS), by=st.sampled_from(["hr_manager", "ceo"]))
    def move_by_hr(self, who, to, by):
        self.by_agent([("move", who, None, to)], by, "update_org_chart", reason="R",
                      changes=[{"agent": who, "reports_to": to}])  # fmt: skip

    @rule(role=st.sampled_from(ROLES), by=st.sampled_from(["hr_manager", "it_manager"]))
    def hire(self, role, by):
        self.by_agent(hiring(role), by, "create_agent_jd",
                      handle="backend_two", role=role, title="T", job_description="D")  # fmt: skip

    def by_agent(self, lines, by, tool, **params):
        """A call that needs one of these lines, the first that there is."""
        held = self.held(lines)
        answer = self.here.call(by, tool, **params)
        self.did[tool] += answer.code == "OK"
        if answer.code == "OK" and self.had != self.rights():
            assert held, (lines, answer.body)
        if answer.code == "OK" and held:
            self.use(held)
        else:
            self.now_is(agreed=False)

    @rule(who=worker, tool=st.sampled_from(TOOLS), lift=st.booleans())
    def manage_tools(self, who, tool, lift):
        """What the IT Manager takes away it may give back; that was confirmed before."""
        before = self.had
        kept = {(who, tool)} if lift else set()
        fields = {"agent": who, "tool": tool, "reason": "R"}
        if lift:
            self.here.call("it_manager", "manage_tools", action="restore", **fields)
        else:
            self.here.call("it_manager", "manage_tools", action="tighten", modes=[], **fields)
        assert self.rights() - before <= kept
        self.had |= kept & self.rights()
        self.now_is(agreed=False)

    # What must never be

    @invariant()
    def everyone_reaches_their_superior(self):
        """Each agent below the top, by the tool itself, over HTTP."""
        if self.here.policy.version == self.version:
            return
        self.version = self.here.policy.version
        agents = Agent.objects.filter(organisation_id=self.id, active=True)
        paused = Pause.objects.filter(ended_at=None, agent__isnull=False).values("agent")
        for agent in agents.exclude(pk__in=paused).select_related("reports_to"):
            above = agent.reports_to
            while above is not None and not above.active:
                above = above.reports_to
            # A deactivation moves nobody: its people wait for another superior (escalation 7).
            if above is None or above.pk != agent.reports_to_id:
                continue
            if not agent.keys.filter(revoked_at=None).exists():
                self.here.keys.pop(agent.handle, None)  # activated again: people give it a new key
            self.here.key(agent.handle)  # not one that is taken back
            undone = rolled_back()
            next(undone)
            text = {"subject": "Stuck", "body": "Help."}
            up = {"to": above.handle, "type": "escalation", **text}
            here = Company(self.here.organisation, self.here.keys)
            answers = [here.call(agent.handle, "escalate", **text)]
            if answers[0].code != "OK":
                answers.append(here.call(agent.handle, "send_mail", **up))
            next(undone, None)
            assert "OK" in [answer.code for answer in answers], [each.body for each in answers]
