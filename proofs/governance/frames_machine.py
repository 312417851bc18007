"""Groups delegate while people change groups, leaders and members; where text and work go."""

from contextlib import suppress

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from core.decision import Denied
from orgchart.models import Agent, Group, Pause
from orgchart.pauses.services import pause_agent, resume_agent
from orgchart.second_person.edits import activating, replacing_leader, saving
from proofs.rehearsing import RehearsedDay
from tests.oracle.carriers import Carried
from toolbox.frames.ending import cancel_frame
from toolbox.models import Frame

AGENTS = tuple(
    f"{group}_{name}"
    for group, names in (
        ("coding", ("leader", "architect", "developer")),
        ("investment", ("leader", "analyst", "trader")),
    )
    for name in names
)
UNENDED = ("open", "taken")
NEXT = {"taken": ("returned", "failed", "cancelled")}
NEXT["open"] = ("taken", *NEXT["taken"])  # one step may take and return it

agents = st.sampled_from(AGENTS)
groups = st.sampled_from(("coding", "investment"))
places = st.integers(0, 9)
ends = st.sampled_from(["", "", "ok", "failed"])


class Frames(RehearsedDay):
    """A day of two groups. `states` are those of each frame as they were after the last step."""

    def __init__(self):
        super().__init__()
        self.words, self.states = Carried(), {}
        self.here.shown = self.words.check
        for agent in AGENTS:
            self.here.key(agent)

    def may_delegate(self, who, to):
        """The table of groups by hand (Spec: groups 4)."""
        one, other = self.here.agent(who), self.here.agent(to)
        if who == to or one.group is None or other.group is None:
            return False
        if one.group_id != other.group_id:
            return one.is_leader and other.is_leader
        return one.is_leader or (one.group.member_delegation and not other.is_leader)

    def works(self, who):
        """Whether the agent can call at all."""
        paused = Pause.objects.filter(agent__handle=who, ended_at=None)
        return self.here.agent(who).active and not paused.exists()

    def call(self, who, tool, **params):
        answer = self.here.call(who, tool, **params)
        self.words.check(who, answer.body)
        self.did[tool] += answer.code == "OK"
        return answer

    def top(self, who):
        """The frame that an agent works in."""
        return Frame.objects.filter(assignee__handle=who, state="taken").order_by("-id").first()

    def waiting(self, frame):
        """Who waits for a result below this frame."""
        found = set()
        while frame is not None:
            found.add(frame.opener.handle)
            frame = frame.parent
        return found

    @rule(who=agents, to=agents)
    def delegate(self, who, to):
        if not self.works(who):
            return
        below, word = self.top(who), self.words.word({who, to})
        params = {"to": to, "instruction": word, "context": {word: word}}
        if self.call(who, "delegate_to", **params).code == "OK":
            assert self.may_delegate(who, to)
            assert self.here.agent(to).active
            assert to not in self.waiting(below)
            assert below is None or below.depth < 8

    @initialize(
        ways=st.lists(st.tuples(places, places, places, ends), min_size=2, max_size=6),
        at=places, leads=st.booleans(), changes=st.booleans(),
    )  # fmt: skip
    def begin(self, ways, at, leads, changes):
        for way in ways:
            self.have_it_taken(*way)
        if changes:
            self.give_back_after_a_change(at, leads)

    @rule(place=places, at=places, down=st.integers(0, 30), end=ends)
    def have_it_taken(self, place, at, down, end):
        """And perhaps returned: else few days reach the work inside of work."""
        self.delegate_as_allowed(place, at)
        self.take(down)
        if end:
            self.give_back(down, end)

    @rule(place=places, at=places)
    def delegate_as_allowed(self, place, at):
        """Else most attempts are refused."""
        pairs = [(who, to) for who in AGENTS for to in AGENTS if self.may_delegate(who, to)]
        inside = [pair for pair in pairs if self.top(pair[0])]
        found = inside if inside and place else pairs
        if found:
            self.delegate(*found[at % len(found)])

    def agent_with(self, state, at):
        """Most often an agent with a frame in this state."""
        rows = Frame.objects.filter(state=state).order_by("id")
        found = list(rows.values_list("assignee__handle", flat=True)) if at < 25 else AGENTS
        return found[at % len(found)] if found else AGENTS[at % len(AGENTS)]

    @rule(at=st.integers(0, 30))
    def take(self, at):
        who = self.agent_with("open", at)
        if not self.works(who):
            return
        before = self.top(who)
        answer = self.call(who, "next_frame")
        if answer.code == "TOOL_NOT_BOUND":
            assert (before, self.here.agent(who).group) == (None, None)
            return
        shown = answer.result["frame"]
        if before is None and shown is not None:
            frame = Frame.objects.get(id=shown["frame_id"])
            assert self.may_delegate(frame.opener.handle, who)
        else:
            assert before is None or shown["frame_id"] == str(before.id)

    @rule(at=st.integers(0, 30), status=st.sampled_from(["ok", "failed"]))
    def give_back(self, at, status):
        self.give_back_as(self.agent_with("taken", at), status)

    @rule(at=places, leads=st.booleans())
    def give_back_after_a_change(self, at, leads):
        """To an agent that may perhaps ask no more, and that reads what it is told."""
        who = self.agent_with("taken", at)
        frame = self.top(who)
        if frame is None:
            return
        opener = frame.opener
        if leads and opener.is_leader:
            self.let_lead(opener.group.slug, at)
        else:
            self.move(who, None)
        self.did["give back after a change"] += 1
        self.give_back_as(who, "ok")
        if self.works(opener.handle):
            self.call(opener.handle, "next_frame", frame_id=str(frame.id))

    def give_back_as(self, who, status):
        frame = self.top(who)
        if frame is None or not self.works(who):
            return
        opener = frame.opener.handle
        carried = {who, opener} if self.may_delegate(opener, who) else {who}
        params = {"result": self.words.word(carried), "status": status}
        assert self.call(who, "return_result", **params).code == "OK"

    @rule(who=agents, place=places)
    def read(self, who, place):
        """The result of a frame that may be anybody's; the prompt, and what the agent is told."""
        if not self.works(who):
            return
        mine = Frame.objects.filter(opener__handle=who).order_by("-id")
        rows = list(mine if place < 8 else Frame.objects.order_by("-id"))
        if rows:
            frame = rows[place % len(rows)]
            answer = self.call(who, "next_frame", frame_id=str(frame.id))
            assert answer.code != "OK" or frame.opener.handle == who
        for path in ("/api/v1/prompt", "/api/v1/me"):
            self.words.check(who, self.here.get(path, who).body)

    # People

    @rule(place=places)
    def cancel(self, place):
        rows = list(Frame.objects.filter(state__in=UNENDED).order_by("id"))
        if rows:
            frame, person = rows[place % len(rows)], self.here.person("Board")
            cancel_frame(frame_id=frame.id, caller=person, reason="R", now=self.here.now())
            self.did["cancel"] += 1

    @rule(who=agents, to=st.none() | groups)
    def move(self, who, to):
        row = self.here.agent(who)
        row.group = to and self.group(to)
        row.name = row.handle if to else ""
        leader = Agent.objects.filter(group=row.group, is_leader=True).first()
        row.reports_to = leader if to and leader != row else row.reports_to
        self.edit("move", saving(row))

    @rule(to=groups, at=places)
    def let_lead(self, to, at):
        group = self.group(to)
        able = list(Agent.objects.filter(group=group, is_leader=False, active=True).order_by("id"))
        if able:
            self.edit("let lead", replacing_leader(group, able[at % len(able)]))

    @rule(to=groups)
    def switch_member_delegation(self, to):
        group = self.group(to)
        group.member_delegation = not group.member_delegation
        self.edit("switch member_delegation", saving(group))

    @rule(who=agents)
    def switch(self, who):
        """One at a time; else it is activated."""
        left = Agent.objects.filter(organisation=self.here.organisation, active=False).first()
        if left is not None:
            self.edit("activate", activating(left))
            self.here.keys.pop(left.handle, None)
            return
        self.deactivate(who, by="HR")

    @rule(who=agents, ends=st.booleans())
    def pause(self, who, ends):
        """One at a time; else it is resumed."""
        paused = Pause.objects.filter(ended_at=None).select_related("agent").first()
        given = {"person": self.here.person("Board"), "reason": "R", "now": self.here.now()}
        with suppress(Denied):
            if paused is not None and ends:
                resume_agent(**given, agent=paused.agent.handle, expected_pause=None)
            elif paused is None:
                pause_agent(**given, agent=who)
                self.did["pause"] += 1

    def group(self, slug):
        return Group.objects.get(organisation=self.here.organisation, slug=slug)

    # Time

    @rule(at=st.integers(0, 99))
    def repeat(self, at):
        self.here.repeat(at)

    @rule(hours=st.sampled_from((0, 0, 0.1, 2)))
    def let_pass(self, hours):
        """After the jobs nobody works for who left, or past their time."""
        self.here.let_pass(hours)
        going = Frame.objects.filter(state__in=UNENDED)
        assert not going.filter(assignee__active=False).exists()
        assert not going.filter(opener__active=False).exists()
        paused = Pause.objects.filter(ended_at=None).values("agent")
        assert not going.filter(due_at__lt=self.here.now()).exclude(assignee__in=paused).exists()

    # What must never be

    @invariant()
    def ends_once_and_never_above_an_ended_frame(self):
        rows = Frame.objects.select_related("parent", "opener", "assignee").order_by("id")
        for row in rows:
            was = self.states.get(row.id, "open")
            assert row.state == was or row.state in NEXT.get(was, ()), (was, row.state)
            self.states[row.id] = row.state
            if row.state in UNENDED and row.parent is not None:
                assert row.parent.state == "taken"
                assert row.parent.assignee_id == row.opener_id
                assert (row.depth, row.assignee.handle in self.waiting(row)) == (
                    row.parent.depth + 1,
                    False,
                )
