"""People, HR and the IT Manager change rights in any order; what must never come of it."""

from contextlib import suppress

from django.contrib.auth.models import User
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from core.decision import Denied
from governance.staff.deactivation import deactivate_by_person
from orgchart.models import Agent, ContactRule, Role, ToolOverride
from orgchart.pending.edits import activating, apply_edit, deleting, saving
from orgchart.pending.services import propose_change
from orgchart.services import SecondPersonNeeded
from proofs.governance.accounts_machine import Accounts
from tests.loaded import rolled_back
from tests.oracle.mail import CEILING

TOOLS = ("escalate", "send_mail", "web_search", "write_note")
TYPES = ("info", "report", "question", "escalation", "task_result")
ROLES = ("backend_worker", "frontend_worker", "qa_worker", "research_worker", "it_manager")
WORKERS = ROLES[:4]
MANAGERS = ("it_manager", "hr_manager", "product_manager", "ceo")
ORDINARY = ("backend_worker", "frontend_worker", "research_worker")
"""The roles that a line needs not name to hire into them (Spec: contracts 51)."""
HEADS = ("it_manager", "product_manager")
LINES = [("move", who, None, to) for who in WORKERS for to in HEADS] + [
    ("hire", "backend_two", role, None) for role in (None, *ROLES)
]
"""Act, subject, role and superior that a line of a contract names."""

person = st.sampled_from(sorted(("ada", "bob", "hans", "eve")))
worker = st.sampled_from(WORKERS)


class Rights(Accounts):
    """A day of one company. `agreed` says whether two human beings stand behind the present step.

    `lines` are the unused ones of the contracts with which the CEO lets HR change the organisation.
    """

    people = {"ada": "Board", "bob": "Board", "hans": "HR", "eve": "Observer"}

    def __init__(self):
        super().__init__()
        for agent in ("ceo", "hr_manager", "it_manager"):
            self.here.key(agent)  # a deactivated agent gets none
        self.lines = []
        self.had = self.rights()
        self.version = self.here.policy.version
        self.took = 0

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
        return found | set(held.values_list("username", "groups__name"))

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
                reason="R", set_by="x", at=timezone.now(),
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
                person=self.acting(by), agent=who, reason="R", now=timezone.now(),
                expected_version=self.here.policy.version,
            )  # fmt: skip
        self.now_is(agreed=False)

    def edit(self, by, edit):
        alone = self.alone(by)
        given = {
            "edit": edit, "caller": self.acting(by), "now": timezone.now(), "reason": "R",
            "expected_version": None,
        }  # fmt: skip
        try:
            apply_edit(**given, organisation_id=self.id)
        except SecondPersonNeeded:
            row = propose_change(**given)
            self.proposer[row.pk] = self.human(by)
        except Denied:
            pass
        self.now_is(agreed=alone)

    # Agents

    @rule(line=st.sampled_from(LINES))
    def authorise(self, line):
        act, subject, role, above = line
        made = self.here.call(
            "ceo", "generate_contract", to="hr_manager", title="T", body="B", kind="org_change",
            changes=[{"act": act, "subject": subject, "role": role, "reports_to": above}],
        )  # fmt: skip
        if act == "hire" and self.here.policy.resolve(subject):
            assert made.code == "INVALID_PARAMS"  # nobody is hired twice
            return
        self.here.call("hr_manager", "accept_contract", contract_id=made.result["contract_id"])
        self.lines.append(line)

    @rule(who=worker, to=st.sampled_from(MANAGERS), by=st.sampled_from(["hr_manager", "ceo"]))
    def move_by_hr(self, who, to, by):
        self.by_agent([("move", who, None, to)], by, "update_org_chart", reason="R",
                      changes=[{"agent": who, "reports_to": to}])  # fmt: skip

    @rule(role=st.sampled_from(ROLES), by=st.sampled_from(["hr_manager", "it_manager"]))
    def hire(self, role, by):
        lines = [("hire", "backend_two", each, None) for each in (role, None)]
        self.by_agent(lines if role in ORDINARY else lines[:1], by, "create_agent_jd",
                      handle="backend_two", role=role, title="T", job_description="D")  # fmt: skip

    def by_agent(self, lines, by, tool, **params):
        """A call that needs one of these lines, the first that there is."""
        answer = self.here.call(by, tool, **params)
        held = [line for line in lines if line in self.lines]
        if answer.code == "OK" and self.had != self.rights():
            assert held, (lines, answer.body)
        if answer.code == "OK" and held:
            self.lines.remove(held[0])
            self.now_is(agreed=True)
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
        for agent in agents.select_related("reports_to"):
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
            answers = [self.here.call(agent.handle, "escalate", **text)]
            if answers[0].code != "OK":
                answers.append(self.here.call(agent.handle, "send_mail", **up))
            next(undone, None)
            assert "OK" in [answer.code for answer in answers], [each.body for each in answers]
