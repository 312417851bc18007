"""No sequence of calls shows an agent text of another that no rule carries."""

import json
from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from pydantic_core import to_json

from core.decision import Denied
from ledger.models import Event
from mailroom.models import Mail
from tasks import backlog, discussion, listing, services
from tasks.insight.recommendations import recommend_tasks
from tasks.rules.values import TaskUpdate
from tasks.vocabulary import Status
from tests.company import load_company
from tests.oracle.org import AGENTS
from tests.oracle.tasks import SEES
from tests.tasks.world import NOW, caller_of

agents = st.sampled_from(AGENTS)
places = st.integers(0, 9)
MARKS = count(1)


class Texts(RuleBasedStateMachine):
    """Every text that an agent writes carries its name, encoded so that nothing else has it."""

    @initialize()
    def found(self):
        self.organisation = load_company("nexus").organisation
        self.callers = {name: caller_of(self.organisation, name) for name in AGENTS}
        self.ids = []
        for agent in AGENTS:
            self.create(agent=agent, role=None, blocker=20)

    def mark(self, agent: str) -> str:
        return f"<<{AGENTS.index(agent)}/{next(MARKS)}>>"

    def attempt(self, act, **fields):
        """Do it; what the answer or the refusal shows is checked like everything that is read."""
        try:
            answer = act(now=NOW, **fields)
        except Denied as refusal:
            deny = refusal.deny
            answer = {"no": [deny.message, deny.next_action, str(deny.details)]}
        self.check(fields["caller"].handle, answer)
        return answer

    def check(self, reader: str, shown) -> None:
        text = json.dumps(json.loads(to_json(shown)))
        for place, writer in enumerate(AGENTS):
            assert f"<<{place}/" not in text or SEES[writer, reader], (writer, reader)

    @rule(agent=agents, role=st.sampled_from([None, *AGENTS]), blocker=st.integers(0, 20))
    def create(self, agent, role, blocker):
        made = self.attempt(
            services.create_task,
            caller=self.callers[agent],
            subject=self.mark(agent),
            description=self.mark(agent),
            metadata={self.mark(agent): self.mark(agent)},
            required_role=role,
            blocked_by=self.ids[blocker : blocker + 1],
        )
        if "id" in made:
            self.ids.append(made["id"])

    @rule(
        agent=agents,
        place=places,
        status=st.sampled_from([None, *Status]),
        owner=st.sampled_from([None, "", *AGENTS]),
        field=st.sampled_from([None, "subject", "description", "active_form", "metadata"]),
        force=st.booleans(),
        blocker=st.integers(0, 20),
    )
    def update(self, agent, place, status, owner, field, force, blocker):
        text = {field: self.mark(agent)} if field else {}
        if field == "metadata":
            text = {field: {self.mark(agent): self.mark(agent)}}
        asked = TaskUpdate(
            status=status,
            owner=owner,
            force=force,
            add_blocked_by=tuple(self.ids[blocker : blocker + 1]),
            **text,
        )
        self.attempt(
            services.update_task, caller=self.callers[agent], task_id=str(place + 1), update=asked
        )

    @rule(agent=agents, place=places)
    def comment(self, agent, place):
        self.attempt(
            discussion.comment_task,
            caller=self.callers[agent],
            task_id=str(place + 1),
            body=self.mark(agent),
        )

    @invariant()
    def shows_no_text_that_no_rule_carries(self):
        for reader, caller in getattr(self, "callers", {}).items():
            self.check(reader, listing.list_tasks(caller=caller))
            self.check(reader, recommend_tasks(caller=caller, limit=20, now=NOW))
            self.check(reader, backlog.list_backlog(caller=caller, cursor=None, limit=50))
            for task_id in self.ids:
                try:
                    self.check(reader, services.get_task(caller=caller, task_id=task_id))
                except Denied as refusal:
                    self.check(reader, refusal.deny.message)
            mine = Event.objects.filter(for_agent_id=caller.agent.id)
            self.check(reader, list(mine.values_list("details", "reason")))
            mails = Mail.objects.filter(recipient_id=caller.agent.id)
            self.check(reader, list(mails.values_list("subject", "body")))


def test_any_sequence_keeps_text_where_it_belongs(transactional_db):
    run_machine(Texts, settings=settings(max_examples=5, stateful_step_count=15, deadline=None))
