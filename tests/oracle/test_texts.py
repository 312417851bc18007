"""Notes, memories, reports, attachments: every reader tries every tool that reads."""

import json

import pytest
from pydantic_core import to_json

from tests.documents.world import caller_of
from tests.mailroom.world import NOW, call, put_file, sent
from tests.oracle.org import AGENTS, BACKEND, CEO, DEVOPS, FRONTEND, HR, IT, PM, QA, RESEARCH
from tests.oracle.texts import READS
from toolbox import door

pytestmark = pytest.mark.django_db
TO = {BACKEND: IT, DEVOPS: IT, RESEARCH: PM, CEO: HR, IT: CEO, FRONTEND: IT, QA: IT}
ISSUES = {CEO: (IT, "generate_contract"), IT: (BACKEND, "create_contract"),
          PM: (RESEARCH, "create_contract")}  # fmt: skip
BOSS = {RESEARCH: PM}
PLACE = {BACKEND: "agents/backend_worker/a.txt", DEVOPS: "agents/devops_worker/a.txt",
         RESEARCH: "agents/research_worker/a.txt"}  # fmt: skip


def mark(text, writer):
    """A word that nothing else holds."""
    return f"mark{text}{writer.replace('_', '')}"


class World:
    """Every text of the table written once, and what a reader could name it by."""

    def __init__(self, company):
        self.company = company
        self.documents, self.artifacts, self.mails = [], [], []
        self.contracts = []
        for text, writer in READS:
            getattr(self, text)(writer, mark(text, writer))

    def do(self, who, tool, **params):
        return call(self.company, who, tool, **params).result

    def document(self, made):
        self.documents.append(made["document_id"])

    def note(self, who, word):
        self.document(self.do(who, "write_note", title=word, content=word))

    def prd(self, who, word):
        self.document(self.do(who, "write_prd", title=word, content=word))

    def filed(self, who, word):
        self.document(self.do(who, "write_report", title=word, content=word))

    def report(self, who, word):
        boss = BOSS.get(who, IT)
        made = self.do(boss, "create_contract", to=who, title="Work", body="Do it.")
        self.contracts.append(made["contract_id"])
        self.do(who, "accept_contract", contract_id=made["contract_id"])
        done = self.do(who, "submit_report", contract_id=made["contract_id"], kind="completion",
                       title=word, body=word)  # fmt: skip
        self.mails.append(done["mail_id"])
        self.documents.append(done["report_id"])

    def contract(self, who, word):
        to, tool = ISSUES[who]
        made = self.do(who, tool, to=to, title=word, body=word)
        self.contracts.append(made["contract_id"])

    def memory(self, who, word):
        self.do(who, "memory_append", text=word)

    def shared(self, who, word):
        self.do(who, "memory_append", text=word, scope="organisation")

    def artifact(self, who, word):
        made = self.do(who, "save_artifact", name=f"{word}.md", content=word, description=word)
        self.artifacts.append(made["artifact_id"])

    def attached(self, who, word):
        path = put_file(self.company, PLACE[who], word.encode())
        files = [{"path": path, "description": "why"}]
        self.mails.append(sent(self.company, who, TO[who], attachments=files))

    def mail(self, who, word):
        self.mails.append(sent(self.company, who, TO[who], subject=word, body=word))

    def attempts(self):
        """Every call that reads, by anything that a reader could have heard of."""
        departments = ("tech", "hr", "product", "research", "qa", "general")
        tools = ("read_reports", "read_tech_reports")
        return [
            ("read_reports", {"limit": 200}),
            *(("read_reports", {"kind": kind}) for kind in ("note", "prd", "report")),
            *(("read_reports", {"department": each}) for each in departments),
            ("read_tech_reports", {}),
            *((tool, {"document_id": str(each)}) for tool in tools for each in self.documents),
            *(("read_memory", {"scope": each}) for each in ("agent", "group", "organisation")),
            *(("read_memory", {"artifact_id": each}) for each in self.artifacts),
            *(("memory_search", {"query": mark(*each)}) for each in READS),
            ("read_inbox", {"status": "all", "limit": 200}),
            *(("read_mail", {"mail_id": each}) for each in self.mails),
            ("list_contracts", {"limit": 200}),
            *(("list_contracts", {"contract_id": each}) for each in self.contracts),
            *(("read_contract", {"contract_id": each}) for each in self.contracts),
            *((tool, {}) for tool in ("task_list", "task_recommend", "list_agents")),
        ]


def seen_by(world, reader):
    """The marks that any answer, or any refusal, shows a reader; and its prompt."""
    found, allowed = [], 0
    for tool, params in world.attempts():
        caller = caller_of(world.company.organisation, reader)
        answer = door.call(caller, tool, params, now=NOW)
        said = dict(answer.body)
        given = [value for value in params.values() if isinstance(value, str)]
        text = json.dumps(json.loads(to_json(said)))
        for value in given:  # what the caller named itself, it knows
            text = text.replace(value, "")
        found.append(text)
        allowed += answer.status == 200
    found.append(json.dumps(world.company.get("/api/v1/prompt", reader).body))
    whole = " ".join(found)
    assert allowed > 5
    return {(text, writer) for text, writer in READS if mark(text, writer) in whole}


def test_each_agent_reads_exactly_what_the_table_gives_it(nexus):
    world = World(nexus)
    wrong = {}
    for reader in AGENTS:
        seen = seen_by(world, reader)
        expected = {text for text, readers in READS.items() if reader in readers}
        if seen != expected:
            wrong[reader] = {"too much": seen - expected, "too little": expected - seen}
    assert not wrong
