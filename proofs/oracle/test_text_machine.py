"""No sequence of calls shows an agent text of another that no rule carries, by any channel."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from documents.files import tree_of
from mailroom.models import Escalation
from tests.machines import CompanyMachine, play
from tests.oracle.carriers import ISSUERS, Carried, Readers, above, managers, parties, shown_to
from tests.oracle.mail import MAIL_TYPES
from tests.oracle.org import AGENTS, BACKEND, CEO, CHAIN, DEVOPS, FRONTEND, HR, IT, PM, QA, WORKERS

pytestmark = pytest.mark.django_db
agents = st.sampled_from(AGENTS)
places = st.integers(0, 30)
GRANTS = [
    {"from": FRONTEND, "to": PM, "types": ["question"]},
    {"from": PM, "to": FRONTEND, "types": ["requirement_clarification"]},
]


class Texts(CompanyMachine):
    """Every text has a word that nothing else has; every answer to anybody is searched for them."""

    def __init__(self):
        super().__init__()
        self.carried = Carried()
        self.readers = Readers(self.here, self.carried)
        self.ids = self.readers.ids
        self.contracts = []
        self.away = False

    def teardown(self):
        try:
            for reader in AGENTS:
                self.read(reader)
        finally:
            super().teardown()

    def act(self, who, tool, /, **params):
        """Call; what the answer or the refusal shows is checked. The result, empty if refused."""
        if self.away and who == IT:
            return {}
        answer = self.here.call(who, tool, **params)
        self.carried.check(who, answer.body)
        made = answer.body.get("result", {})
        for name, kind in (("mail_id", "mail"), ("report_id", "document"), ("task_id", "task"),
                           ("document_id", "document"), ("artifact_id", "artifact"),
                           ("contract_id", "contract")):  # fmt: skip
            if name in made:
                self.ids[kind].append(made[name])
        return made

    def pick(self, kind, place):
        found = self.ids[kind]
        return found[place % len(found)] if found else None

    @initialize()
    def write_once_by_every_channel(self):
        for issuer, to in ((CEO, IT), (CEO, HR), *((IT, each) for each in WORKERS), (PM, FRONTEND)):
            self.issue(issuer, to, False, True)
        self.issue(IT, BACKEND, True, False)
        for place in range(len(self.contracts)):
            self.report(place, "progress")
            self.report(place, "completion")
            self.judge(place, "FAIL")
        for agent in AGENTS:
            self.keep(agent)
            self.escalate(agent, 0)
            self.mail(agent, IT, "info", 0, 0, True)
            self.task(agent, 0)
        for agent in (BACKEND, QA, IT):
            self.describe(agent)
        self.restrict(DEVOPS)

    @rule(writer=agents, to=agents, mail_type=st.sampled_from(MAIL_TYPES), reply=places, ref=places,
          attach=st.booleans())  # fmt: skip
    def mail(self, writer, to, mail_type, reply, ref, attach):
        """Also with the id of a mail and of a contract that may be anybody's."""
        word = self.carried.word({writer, to, *({CEO} if to == IT else ())})
        params = {"to": to, "type": mail_type, "subject": word, "body": word}
        if attach:
            inside = self.carried.word({writer, to, *({CEO} if to == IT else ())})
            path = f"agents/{writer}/{inside}.txt"
            tree_of(self.here.organisation.slug).write(path, inside.encode())
            params["attachments"] = [{"path": path, "description": inside}]
        if (reply + ref) % 2 and self.ids["mail"] and self.ids["contract"]:
            params["reply_to"] = self.pick("mail", reply)
            params["contract_ref"] = self.pick("contract", ref)
        self.act(writer, "send_mail", **params)

    @rule(writer=agents, ref=places)
    def escalate(self, writer, ref):
        word = self.carried.word({writer, *above(writer)})
        made = self.act(writer, "escalate", subject=word, body=word)
        if not made and CHAIN[writer][2] in AGENTS:
            self.act(writer, "send_mail", to=CHAIN[writer][2], type="escalation", subject=word,
                     body=word)  # fmt: skip

    @rule(writer=agents)
    def keep(self, writer):
        """Notes, memories, artifacts and reports to nobody in particular."""
        own = self.carried.word({writer})
        self.act(writer, "write_note", title=own, content=own)
        self.act(writer, "write_prd", title=own, content=own)
        self.act(writer, "memory_append", text=own)
        self.act(writer, "save_artifact", name=f"{own}.md", content=own, description=own)
        shared = self.carried.word(shown_to(writer))
        self.act(writer, "memory_append", text=shared, scope="organisation")
        filed = self.carried.word({writer, *managers(writer), *above(writer)})
        self.act(writer, "write_report", title=filed, content=filed)

    @rule(writer=agents, place=places)
    def task(self, writer, place):
        word = self.carried.word(shown_to(writer))
        made = self.act(writer, "task_create", subject=word, description=word)
        self.ids["task"] += [made["id"]] if made else []
        task = self.pick("task", place)
        if task:
            self.act(writer, "task_comment", taskId=task, body=word)
            self.act(writer, "task_update", taskId=task, description=word)

    @rule(issuer=st.sampled_from(sorted(ISSUERS)), to=agents, code=st.booleans(),
          grants=st.booleans())  # fmt: skip
    def issue(self, issuer, to, code, grants):
        readers = parties(issuer, to, code=code)
        word = self.carried.word(readers)
        more = {"mode": "coding", "workspace_scope": ["src/"]} if code else {}
        if grants and to == FRONTEND:
            more["grants"] = GRANTS
        made = self.act(issuer, ISSUERS[issuer], to=to, title=word, body=word, **more)
        if made:
            self.act(to, "accept_contract", contract_id=made["contract_id"])
            self.contracts.append((made["contract_id"], issuer, to, code))

    @rule(place=places, kind=st.sampled_from(["progress", "completion"]))
    def report(self, place, kind):
        number, issuer, to, code = self.contracts[place % len(self.contracts)]
        word = self.carried.word(parties(issuer, to, code=code))
        made = self.act(to, "submit_report", contract_id=number, kind=kind, title=word, body=word)
        if not made:
            self.act(to, "send_mail", to=issuer, type="report", subject=word, body=word,
                     contract_ref=number, submits=kind == "completion")  # fmt: skip

    @rule(place=places, verdict=st.sampled_from(["PASS", "FAIL"]))
    def judge(self, place, verdict):
        number, issuer, to, code = self.contracts[place % len(self.contracts)]
        word = self.carried.word({QA, *parties(issuer, to, code=code)})
        self.act(QA, "write_verdict", contract_id=number, verdict=verdict, evidence=word, body=word)

    @rule(place=places, who=agents, outcome=st.sampled_from(["passed", "cancelled", "rework"]))
    def close(self, place, who, outcome):
        """By anybody; the CEO is the issuer of what a manager that left had issued."""
        number, _, to, code = self.contracts[place % len(self.contracts)]
        readers = {who, *above(to), *managers(to)}
        readers |= {to} if who in managers(to) else set()
        readers |= {QA} if code and who == IT else set()
        word = self.carried.word(readers)
        self.act(who, "close_contract", contract_id=number, outcome=outcome, reason=word)

    def authorise(self, act, subject):
        word = self.carried.word({CEO, HR})
        made = self.act(CEO, "generate_contract", to=HR, kind="org_change", title=word, body=word,
                        changes=[{"act": act, "subject": subject}])  # fmt: skip
        self.act(HR, "accept_contract", contract_id=made["contract_id"])

    @rule(subject=st.sampled_from([BACKEND, FRONTEND, QA, IT, PM]))
    def describe(self, subject):
        self.authorise("describe", subject)
        word = self.carried.word(shown_to(HR))
        self.act(HR, "update_agent_jd", agent=subject, title=word, job_description=word)

    @rule(subject=st.sampled_from([BACKEND, DEVOPS]))
    def restrict(self, subject):
        word = self.carried.word({IT, CEO, subject})
        self.act(IT, "manage_tools", action="tighten", agent=subject, tool="submit_report",
                 modes=["chat_safe", "coding"], reason=word)  # fmt: skip

    @rule()
    def ask_for_money(self):
        word = self.carried.word({IT, CEO})
        self.act(IT, "request_budget", amount="5", currency="EUR", purpose=word)

    @rule()
    def approve(self):
        word = self.carried.word(parties(IT, DEVOPS, code=True))
        self.act(IT, "approve_deployment", to=DEVOPS, environment="production", reason=word,
                 artifact="sha256:" + "a" * 64, expires_at="2999-01-01T00:00:00Z")  # fmt: skip

    @rule()
    def leave(self):
        """The IT manager is deactivated: its contracts and unread mail go to the CEO."""
        if self.away:
            return
        self.authorise("deactivate", IT)
        word = self.carried.word(shown_to(HR))
        self.act(HR, "deactivate_agent", agent=IT, reason=word)
        self.away = True
        word = self.carried.word({CEO, PM})
        for escalation in Escalation.objects.filter(sender__handle=BACKEND):
            self.act(CEO, "generate_contract", to=PM, title=word, body=word,
                     answers=str(escalation.id))  # fmt: skip
        for place, (_, _, to, _) in enumerate(self.contracts):
            self.report(place, "completion")
            for outcome in ("rework", "cancelled"):
                self.close(place, CEO, outcome)
            self.read(to)

    @rule(reader=agents)
    def read(self, reader):
        if not (self.away and reader == IT):
            self.readers.look(reader, self.readers.calls())


def test_any_sequence_keeps_text_where_it_belongs(db):
    play(Texts, days=6, steps=20)


def test_of_a_manager_that_left(nexus):
    class OneDay(Texts):
        company = nexus

    day = OneDay()
    day.write_once_by_every_channel()
    day.leave()
    day.read(BACKEND)
    day.teardown()
