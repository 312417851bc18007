"""Cases of the constitution while people change roles, amend, overrule and pause in any order."""

import hashlib
from contextlib import suppress

from django.db.models import F
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from core.decision import Denied
from governance.cases.by_people import services
from governance.cases.records import facts_of
from governance.cases.vocabulary import Outcome, Stage
from governance.interventions.confirmation_codes import Confirmed
from governance.models import Case, Violation
from orgchart.models import Agent, Organisation, Pause, Role
from orgchart.pauses.services import pause_agent, resume_agent
from orgchart.second_person.edits import activating, saving
from proofs.rehearsing import RehearsedDay
from tests.governance.cases.oracle import INPUTS, OFFICES, OUTCOMES, STAGE, STAGES
from tests.oracle.carriers import Carried

OFFICE = {stage: office for office, stage in STAGE.items()}
AGENTS = tuple(f"{office.lower()}{number}" for office in OFFICES for number in ("", "_two"))
WRITTEN = {
    "REQUEST": {"ANALYST"}, "ANALYSIS": {"PLANNER"}, "TASK": {"IMPLEMENTER", "REVIEWER"},
    "VERIFY": {"IMPLEMENTER", "REVIEWER", "TESTER"}, "BODY": {"REVIEWER", "TESTER"}, "OTHER": set(),
}  # fmt: skip
"""The offices that a text is for (Spec: constitution 4)."""
LIFTING = {"ANALYSIS": Stage.ANALYSIS, "TASKS": Stage.TASKS}

agents = st.sampled_from(AGENTS)
others = st.sampled_from(["", "read", "submit", "submit"])
places = st.integers(0, 9)
offices = st.sampled_from(OFFICES)
stages = st.sampled_from(STAGES[:-1])
choices = st.integers(0, 2)
beginnings = st.sampled_from([0, 3, 3, 4, 4, 5])
"""How many stages of a case went well: most often up to a REVIEW or a TEST."""


class Cases(RehearsedDay):
    """A day of six offices with two agents each, and what each agent really did in each case.

    `acted` is the office of each agent in each case, `passed` the rounds in which a REVIEW approved
    or was overruled to that, `tested` those with a TEST passed, `owed` the cases with a violation
    that no member of the Board decided on.
    """

    def __init__(self):
        super().__init__()
        self.words = Carried()
        self.here.shown = self.check
        self.about, self.cases, self.acted = {}, [], {}
        self.passed, self.tested, self.owed = set(), set(), set()
        for office in OFFICES:
            same = self.here.agent(office.lower())
            if office != "CONDUCTOR":
                Agent.objects.create(organisation=same.organisation, handle=f"{same.handle}_two",
                                     role=same.role, reports_to=same.reports_to)  # fmt: skip
        Organisation.objects.update(policy_version=F("policy_version") + 1)
        self.everybody = [name for name in AGENTS if name != "conductor_two"]

    # What is known

    def word(self, kind, case, author):
        """A new word of a text of this kind; who may read it is asked when it is read."""
        found = self.words.word(())
        self.about[found] = (kind, case, author)
        return found

    def office_of(self, who):
        return self.here.agent(who).role.name.upper()

    def place_of(self, who, case):
        """The office in which an agent reads now: that in which it acted, else that of its role."""
        now = self.office_of(who)
        return now if self.acted.get((case, who), now) == now else None

    def check(self, who, body):
        """Every word in an answer is of the agent itself, or of a text for its office."""
        for word in self.words.found_in(body):
            kind, case, author = self.about[word]
            office = self.place_of(who, case)
            assert author == who or office in WRITTEN[kind], (who, kind, office, body)
            if author != who:
                self.acted.setdefault((case, who), office)

    def call(self, who, tool, **params):
        """A call by an agent, and what the refusal leaves."""
        violations = Violation.objects.count()
        answer = self.here.call(who, tool, **params)
        self.check(who, answer.body)
        if Violation.objects.count() > violations:
            self.did["violate"] += 1
            if Case.objects.get(id=params["case_id"]).state in ("open", "paused"):
                self.owed.add(params["case_id"])
        return answer

    def pick(self, place):
        """Most often a case that goes on."""
        going = Case.objects.filter(state__in=("open", "paused")).values_list("id", flat=True)
        found = [one for one in self.cases if one in set(going)] if place < 8 else self.cases
        return Case.objects.get(id=found[place % len(found)]) if found else None

    def holders(self, office, case):
        return [
            who for who in self.everybody
            if self.office_of(who) == office and self.acted.get((case, who), office) == office
        ]  # fmt: skip

    # Agents

    @initialize(
        ways=st.tuples(*[st.tuples(beginnings, choices)] * 2), at=places, act=others,
        stage=st.sampled_from(sorted(LIFTING)),
    )  # fmt: skip
    def begin(self, ways, at, act, stage):
        """Two cases, each some stages on; the last of these may fail."""
        for place, (times, choice) in enumerate(ways):
            self.open(AGENTS[place])
            self.go_on(place, place, 0, times)
            self.go_on(place, place, choice, 1)
        self.violate_in_a_pause(at, stage)
        self.act_in_another_office(at, at, act)

    @rule(place=places, at=places, act=others)
    def act_in_another_office(self, place, at, act):
        """By an agent that acted in the case already, and is given the office whose turn it is."""
        row = self.pick(place)
        if row is None or not act or row.stage == "VERDICT":
            return
        able = [who for who in self.everybody if (row.id, who) in self.acted and "_two" in who]
        if not able:
            return
        who = able[at % len(able)]
        self.give_an_office(who, OFFICE[row.stage])
        if act == "read":
            self.read_as(row, who, [])
        else:
            self.submit_to(row, who, row.stage, 0)

    @rule(at=places, stage=st.sampled_from(sorted(LIFTING)))
    def violate_in_a_pause(self, at, stage):
        """Then a person amends what the case waits for."""
        row = Case.objects.filter(state="paused").order_by("id").first()
        if row is not None:
            self.did["violate in a pause"] += 1
            who = self.everybody[at % len(self.everybody)]
            illegal = min(set(INPUTS["CONDUCTOR" if self.office_of(who) == "TESTER" else "TESTER"]))
            self.read_as(row, who, [illegal])
            self.amend_as(row, stage, "Reviewer")

    @rule(who=agents)
    def open(self, who):
        if who not in self.everybody or len(self.cases) > 3:
            return
        request = self.word("REQUEST", None, who)
        made = self.call(who, "case_open", title=self.word("OTHER", None, who), request=request)
        if made.code == "OK":
            case = made.result["case_id"]
            self.about[request] = ("REQUEST", case, who)
            self.cases.append(case)
            self.acted[case, who] = "ANALYST"
            self.did["open"] += 1

    @rule(place=places, at=places, choice=choices, times=st.integers(1, 6))
    def go_on(self, place, at, choice, times):
        """What the case waits for, by an agent that may."""
        for _ in range(times):
            row = self.pick(place)
            if row is None or row.state != "open":
                return
            able = self.holders(OFFICE[row.stage], row.id)
            if not able:
                return
            if row.stage == "VERDICT":
                self.decide(row, "CONTINUE" if row.failed_by else "DELIVER", able[0])
            else:
                chosen = choice if times == 1 else 0
                self.submit_to(row, able[at % len(able)], row.stage, chosen)

    @rule(place=places, who=agents, stage=stages, choice=choices)
    def submit(self, place, who, stage, choice):
        """Whoever it is, and whatever the stage."""
        row = self.pick(place)
        if row is not None and who in self.everybody:
            self.submit_to(row, who, stage, choice)

    def submit_to(self, row, who, stage, choice):
        outcomes = OUTCOMES[stage]
        outcome = outcomes[choice % len(outcomes)]
        params = self.content(row.id, stage, outcome, who)
        done = self.call(who, "case_submit", case_id=row.id, stage=stage, outcome=outcome, **params)
        if done.code != "OK":
            return
        office = self.acted.setdefault((row.id, who), OFFICE[stage])
        assert (office, row.stage, row.state) == (OFFICE[stage], stage, "open")
        self.did[f"{stage} {outcome}"] += 1
        if outcome == "APPROVED":
            self.passed.add((row.id, row.round))
        if outcome == "PASSED":
            assert (row.id, row.round) in self.passed
            self.tested.add((row.id, row.round))

    def content(self, case, stage, outcome, author):
        task, verify = self.word("TASK", case, author), self.word("VERIFY", case, author)
        analysis, body = self.word("ANALYSIS", case, author), self.word("BODY", case, author)
        other = self.word("OTHER", case, author)
        digest = hashlib.sha256(body.encode()).hexdigest()
        evidence = {"task": "T1", "command": other, "exit_status": 0, "output_sha256": digest}
        return {
            "content": {
                "ANALYSIS": {"what": analysis, "why": analysis, "constraints": [analysis]},
                "TASKS": {"tasks": [{"id": "T1", "task": task, "verify_by": verify}]},
                "IMPLEMENTATION": {
                    "artifacts": [{"path": "ok.py", "sha256": digest, "body": body}]
                },
                "REVIEW": {
                    "violations": [{"task": "T1", "article": other}] * (outcome == "REJECTED")
                },
                "TEST": {},
            }[stage],
            **({"evidence": [evidence]} if outcome == "PASSED" else {}),
        }

    @rule(place=places, office=offices, at=st.integers(0, 30), name=st.none() | st.sampled_from(
        sorted(set().union(*INPUTS.values()))))  # fmt: skip
    def read(self, place, office, at, name):
        row = self.pick(place)
        if row is None:
            return
        who = self.most_often(office, row.id, at)
        names = [name] if name in INPUTS[office] or at > 20 else []
        self.read_as(row, who, [each for each in names if each])

    def read_as(self, row, who, names):
        params = {"names": names} if names else {}
        answer = self.call(who, "case_inputs", case_id=row.id, **params)
        if answer.code == "OK":
            found = answer.result["inputs"]
            office = self.place_of(who, row.id)
            assert set(found) <= (INPUTS[office] if office else set())
            if found:
                self.acted.setdefault((row.id, who), office)
                self.did["read"] += 1
        self.check(who, self.here.call(who, "case_list").body)

    @rule(
        place=places, at=st.integers(0, 30), ruling=st.sampled_from(["CONTINUE", "DELIVER", "STOP"])
    )
    def rule_on(self, place, at, ruling):
        """Most often by a CONDUCTOR."""
        row = self.pick(place)
        if row is not None:
            who = self.most_often("CONDUCTOR", row.id, at)
            self.decide(row, ruling, who)

    def most_often(self, office, case, at):
        """Somebody of this office, if there is anybody; now and then whoever it is."""
        able = self.holders(office, case) if at < 25 else self.everybody
        able = able or self.everybody
        return able[at % len(able)]

    def decide(self, row, ruling, who):
        reason = self.word("OTHER", row.id, who)
        done = self.call(who, "case_decide", case_id=row.id, decision=ruling, reason=reason)
        if done.code == "OK":
            assert self.acted.setdefault((row.id, who), "CONDUCTOR") == "CONDUCTOR"
            assert row.stage == "VERDICT"
            if ruling == "DELIVER":
                assert (row.id, row.round) in self.passed & self.tested
            self.did[ruling] += 1

    # People

    @rule(place=places, stage=st.sampled_from(sorted(LIFTING)), group=st.sampled_from(
        ["Reviewer", "Reviewer", "Board", "Observer", "HR"]))  # fmt: skip
    def amend(self, place, stage, group):
        row = self.pick(place)
        if row is not None:
            self.amend_as(row, stage, group)

    def amend_as(self, row, stage, group):
        content = self.content(row.id, stage, "OK", "a person")["content"]
        params = {"stage": stage, "content": content}
        given = {"stage": LIFTING[stage], "content": content}
        action = f"amend_{stage.lower()}"
        if self.by_person(row, services.amend_case, group, action, params, **given):
            assert row.state == "paused"
            assert group in ("Reviewer", "Board")

    @rule(place=places, outcome=st.sampled_from(["APPROVED", "REJECTED"]))
    def overrule(self, place, outcome):
        row = self.pick(place)
        if row is None:
            return
        number = row.round
        if self.by_person(row, services.overrule_review, "Board", "overrule_review",
                          {"outcome": outcome}, outcome=Outcome(outcome)):  # fmt: skip
            self.owed.discard(row.id)
            to = Case.objects.get(id=row.id)
            if outcome == "APPROVED":
                self.passed.add((row.id, to.round))
            else:
                self.passed.discard((row.id, number))

    @rule(place=places, rounds=st.integers(0, 2))
    def extend(self, place, rounds):
        row = self.pick(place)
        if row is not None and self.by_person(
            row, services.extend_case, "Board", "extend_rounds", {"rounds": rounds}, rounds=rounds
        ):
            assert row.state == "paused"
            self.owed.discard(row.id)

    @rule(place=st.integers(0, 40))
    def end(self, place):
        row = self.pick(place) if place < 2 else None
        if row is not None:
            self.by_person(row, services.end_case, "Board", "end", {})

    def by_person(self, row, service, group, action, params, **given):
        person = self.here.person(group)
        reason = self.word("OTHER", row.id, "a person")
        given_why = {**params, "reason": reason}
        purpose = services.purpose_in(facts_of(row), action, row.id, row.version, given_why)
        with suppress(Denied):
            service(
                case_id=row.id, reason=reason, expected_version=row.version, person=person,
                now=self.here.now(), confirmed=Confirmed(person.username, purpose), **given,
            )  # fmt: skip
            self.did[action] += 1
            return True
        return False

    @rule(who=agents, office=offices)
    def give_an_office(self, who, office):
        """By the operator, whom nobody confirms."""
        if who in self.everybody:
            row = self.here.agent(who)
            organisation = self.here.organisation
            row.role = Role.objects.get(organisation=organisation, name=office.lower())
            self.edit("give an office", saving(row))

    @rule(who=agents)
    def switch(self, who):
        if who not in self.everybody:
            return
        row = self.here.agent(who)
        if not row.active:
            self.edit("activate", activating(row))
            return
        self.deactivate(who, by="HR")

    def changed(self):
        """Who is active has a key; a deactivated agent has one from before, or cannot call."""
        agents = Agent.objects.filter(organisation=self.here.organisation)
        self.everybody = [one.handle for one in agents.order_by("handle") if one.active]
        for agent in agents.filter(active=True):
            if not agent.keys.filter(revoked_at=None).exists():
                self.here.keys.pop(agent.handle, None)

    @rule(who=agents)
    def pause(self, who):
        if who not in self.everybody:
            return
        person = self.here.person("Board")
        given = {"person": person, "agent": who, "reason": "R", "now": self.here.now()}
        with suppress(Denied):
            if Pause.objects.filter(agent=self.here.agent(who), ended_at=None).exists():
                resume_agent(**given, expected_pause=None)
            else:
                pause_agent(**given)
                self.did["pause"] += 1

    @rule(at=st.integers(0, 99))
    def repeat(self, at):
        self.here.repeat(at)

    @rule(hours=st.sampled_from((1, 25)))
    def let_pass(self, hours):
        self.here.let_pass(hours)

    @invariant()
    def waits_for_the_board_after_a_violation(self):
        going = Case.objects.filter(id__in=self.owed, state__in=("open", "delivered"))
        assert not going.exists(), "HUMAN_ADMIN decides on a violation"

    @invariant()
    def keeps_one_office_of_an_agent_in_a_case(self):
        for row in Case.objects.filter(state="delivered"):
            assert (row.id, row.round) in self.passed & self.tested
