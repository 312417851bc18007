"""The repository's day with agents that are moved, trained, deactivated and paused meanwhile."""

from contextlib import suppress

from django.db import connection
from django.db.models import F
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from contracts.models import Contract
from core.decision import Denied
from orgchart.models import Agent, Organisation, Pause, Role
from orgchart.pauses.services import pause_agent, resume_agent
from orgchart.policy.vocabulary import ToolMode
from orgchart.second_person.edits import activating, saving
from proofs.workspace.deliveries_machine import (
    JUDGE,
    LEAD,
    WORKERS,
    Deliveries,
    branches,
    findings,
    scopes,
)
from toolbox.models import Session
from toolbox.modes import close_mode, open_mode

anybody = st.sampled_from((*WORKERS, JUDGE, LEAD))
SECOND_LEAD, TRAINED = "it_two", "trained"
made = st.sampled_from((*WORKERS, JUDGE, TRAINED))
judges = st.sampled_from((TRAINED, TRAINED, *WORKERS, JUDGE))
ROLES = ("backend_worker", "frontend_worker")


class Changes(Deliveries):
    """Work goes on while people change who does it; what reaches the main branch is the same."""

    def __init__(self):
        super().__init__()
        for handle, same in ((SECOND_LEAD, LEAD), (TRAINED, WORKERS[0])):
            row = self.here.agent(same)
            row.pk, row.handle = None, handle
            row.save(force_insert=True)
        connection.check_constraints()  # their user numbers are counted at the end of a transaction
        Organisation.objects.update(policy_version=F("policy_version") + 1)
        self.hands.tree(TRAINED)

    @rule(scope=scopes, branch=branches, finding=findings)
    def have_it_done_by_trained(self, scope, branch, finding):
        self.have_it_done(TRAINED, scope, branch, finding)

    @rule(who=made, to=st.sampled_from((LEAD, SECOND_LEAD)))
    def move(self, who, to):
        row = self.here.agent(who)
        row.reports_to = self.here.agent(to)
        self.edit("move", saving(row))

    @initialize(scope=scopes, worked=branches, judged=branches, finding=findings)
    def judge_after_work(self, scope, worked, judged, finding):
        """Of the agent that worked on a branch, which is perhaps the one that it judges."""
        self.give_a_role(WORKERS[0])
        self.have_it_done(TRAINED, scope, worked, finding)
        self.give_a_role(JUDGE)
        one = self.issue(WORKERS[1], scope, judged)
        if one is not None:
            self.submit(one)
            self.judge(one, "PASS", TRAINED)
            self.merge(one)
            self.close(one, "passed")

    @rule(role=st.sampled_from((*ROLES, JUDGE)))
    def give_a_role(self, role):
        """To an agent that is not called like a role: it judges after it worked, or works again."""
        row = self.here.agent(TRAINED)
        if row.role.name != role:
            row.role = Role.objects.get(organisation=self.here.organisation, name=role)
            self.edit("give a role", saving(row))

    @rule(who=made)
    def switch(self, who):
        row = self.here.agent(who)
        if not row.active:
            self.edit("activate", activating(row))
            return
        self.deactivate(who, by="Board")

    def changed(self):
        """What the organisation does with contracts of who leaves, and whose keys have ended."""
        for one in self.contracts:
            row = Contract.objects.select_related("assignee").get(id=one["id"])
            if row.state != one["state"]:
                assert row.state in ("cancelled", "in_progress", "failed"), row.state
                one["state"] = row.state
            assert row.assignee.handle == one["to"]
        ended = Agent.objects.exclude(keys__revoked_at=None)
        for agent in ended.filter(organisation=self.here.organisation, active=True):
            self.here.keys.pop(agent.handle, None)

    @rule(place=st.integers(0, 9), who=judges, finding=st.sampled_from(["PASS", "PASS", "FAIL"]))
    def judge_by_anybody(self, place, who, finding):
        one = self.pick(place, "review") or self.pick(place, "in_progress")
        if one is None:
            return
        if one["state"] == "in_progress":
            self.submit(one)
        self.judge(one, finding, who)
        self.merge(one)

    @rule(who=anybody)
    def pause(self, who):
        agent, person = self.here.agent(who), self.here.person("Board")
        given = {"person": person, "agent": who, "reason": "R", "now": self.here.now()}
        with suppress(Denied):
            if Pause.objects.filter(agent=agent, ended_at=None).exists():
                resume_agent(**given, expected_pause=None)
            else:
                pause_agent(**given)
                self.did["pause"] += 1

    @rule(who=anybody, opens=st.booleans(), at=st.integers(0, 9))
    def switch_a_mode(self, who, opens, at):
        """By a person, in any session of an agent."""
        sessions = Session.objects.filter(agent=self.here.agent(who)).order_by("id")
        if not sessions:
            return
        given = {
            "session_id": str(sessions[at % len(sessions)].id), "reason": "R",
            "caller": self.here.person("Board"), "now": self.here.now(),
        }  # fmt: skip
        with suppress(Denied):
            if opens:
                open_mode(**given, mode=ToolMode.CODING)
            else:
                close_mode(**given)
            self.did["switch a mode"] += 1

    @rule(at=st.integers(0, 99))
    def repeat(self, at):
        self.here.repeat(at)

    @rule(hours=st.sampled_from((1, 25, 100)))
    def let_pass(self, hours):
        self.here.let_pass(hours)
