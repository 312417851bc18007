"""No sequence of delegations, results, memories and tasks shows text that no rule carries."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from hypothesis.stateful import run_state_machine_as_test as run

from tests.company import load_company
from tests.machines import CompanyMachine
from tests.oracle.carriers import Carried, Readers
from tests.oracle.delegation import ADDRESSES, ALLOWED, HANDLES, LEADERS

pytestmark = pytest.mark.django_db
agents = st.sampled_from(ADDRESSES)


def group_of(address):
    return {each for each in ADDRESSES if each.split(".")[0] == address.split(".")[0]}


def leads(address):
    return address in LEADERS.values()


def shown_to(writer):
    """By hand (Spec: tasks 33, groups 4): a leader to its members, a member to its leader."""
    return group_of(writer) if leads(writer) else {writer, LEADERS[writer.split(".")[0]]}


class Frames(CompanyMachine):
    """Every text has a word of its own; a frame shows what was given to it, never its parent."""

    def __init__(self):
        super().__init__()
        self.carried = Carried()
        self.readers = Readers(self.here, self.carried)
        self.stacks = {address: [] for address in ADDRESSES}

    def teardown(self):
        try:
            for reader in ADDRESSES:
                self.read(reader)
        finally:
            super().teardown()

    def word(self, readers):
        return self.carried.word(HANDLES[each] for each in readers)

    def act(self, who, tool, /, **params):
        answer = self.here.call(HANDLES[who], tool, **params)
        self.carried.check(HANDLES[who], answer.body)
        return answer.body.get("result", {})

    @initialize()
    def write_once_by_every_channel(self):
        for agent in ADDRESSES:
            self.keep(agent)
        self.delegate("investment.leader", "coding.leader")
        self.take("coding.leader")
        self.delegate("coding.leader", "coding.developer")
        self.take("coding.developer")
        self.read("coding.developer")
        self.give_back("coding.developer")
        self.take("coding.leader")
        self.give_back("coding.leader")

    @rule(source=agents, to=agents)
    def delegate(self, source, to):
        word = self.word({source, to} if (source, to) in ALLOWED else {source})
        self.act(source, "delegate_to", to=to, instruction=word, context={word: word})

    @rule(who=agents)
    def take(self, who):
        frame = self.act(who, "next_frame").get("frame")
        if frame and frame["frame_id"] not in [number for number, _ in self.stacks[who]]:
            self.stacks[who].append((frame["frame_id"], frame["from"]))

    @rule(who=agents)
    def give_back(self, who):
        opener = self.stacks[who][-1][1] if self.stacks[who] else who
        if self.act(who, "return_result", result=self.word({who, opener})):
            self.stacks[who].pop()

    @rule(writer=agents)
    def keep(self, writer):
        own = self.word({writer})
        self.act(writer, "memory_append", text=own)
        self.act(writer, "save_artifact", name=f"{own}.md", content=own, description=own)
        self.act(writer, "memory_append", text=self.word(shown_to(writer)), scope="group")
        common = self.word(shown_to(writer) | (set(LEADERS.values()) if leads(writer) else set()))
        self.act(writer, "memory_append", text=common, scope="organisation")
        word = self.word(shown_to(writer))
        made = self.act(writer, "task_create", subject=word, description=word)
        self.readers.ids["task"].append(made["id"])
        asked = self.word({writer, LEADERS[writer.split(".")[0]]})
        sent = self.act(writer, "escalate", subject=asked, body=asked)
        self.readers.ids["mail"] += [sent["mail_id"]] if sent else []

    @rule(writer=agents, place=st.integers(0, 9))
    def comment(self, writer, place):
        tasks = self.readers.ids["task"]
        task = tasks[place % len(tasks)]
        self.act(writer, "task_comment", taskId=task, body=self.word(shown_to(writer)))

    @rule(reader=agents)
    def read(self, reader):
        self.readers.look(HANDLES[reader], self.readers.calls())


def test_any_sequence_of_delegations_keeps_text_where_it_belongs():
    class OneDay(Frames):
        company = load_company("soloqueue")

    run(
        OneDay,
        settings=settings(
            max_examples=4, stateful_step_count=25, deadline=None, database=None,
            suppress_health_check=list(HealthCheck), phases=[Phase.generate],
        ),
    )  # fmt: skip
