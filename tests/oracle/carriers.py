"""Who may come to read a text of each channel of NEXUS, by hand from the decisions.

A text that an agent writes holds a word that nothing else holds; every answer that another agent
gets is searched for such words. Spec: tasks 33, contracts 39, files 14, mail 33, mail 38.
"""

import re
from collections.abc import Iterable
from itertools import count
from typing import Any

from pydantic_core import to_json

from ledger.models import Event
from tests.company import Company
from tests.oracle.org import AGENTS, BACKEND, CEO, CHAIN, DEVOPS, FRONTEND, IT, PM, QA
from tests.oracle.tasks import SEES

WORD = re.compile(r"zq\d+qz")
WORDS = count(1)
JUDGED = (BACKEND, FRONTEND, DEVOPS)
"""The agents whose code QA judges."""


def managers(agent: str) -> set[str]:
    """Its superior and its co-managers."""
    _, _, superior, co_managers = CHAIN[agent]
    return {superior, *co_managers} & set(AGENTS)


def above(agent: str) -> set[str]:
    """Its superior, that agent's superior and so on."""
    superior = CHAIN[agent][2]
    return {superior, *above(superior)} if superior in CHAIN else set()


def shown_to(writer: str) -> set[str]:
    """Who reads what the agent writes to nobody in particular."""
    return {reader for reader in AGENTS if SEES[writer, reader]}


def parties(issuer: str, assignee: str, *, code: bool) -> set[str]:
    """Who reads a contract, the reports on it and the verdicts.

    QA reports to the CEO once the IT manager has left, and judges what the CEO issues as code.
    """
    judge = {QA} if code and (assignee in JUDGED or (issuer, assignee) == (CEO, PM)) else set()
    return {issuer, assignee} | managers(assignee) | above(assignee) | judge


class Carried:
    """The words that were written, and for each the agents that a rule carries it to."""

    def __init__(self) -> None:
        self.readers: dict[str, set[str]] = {}

    def word(self, readers: Iterable[str]) -> str:
        """A new word for these readers."""
        found = f"zq{next(WORDS)}qz"
        self.readers[found] = set(readers)
        return found

    def check(self, reader: str, shown: Any) -> None:
        """Fail for a word that no rule carries to this reader."""
        words = self.found_in(shown)
        astray = {word for word in words if reader not in self.readers[word]}
        assert not astray, (reader, {word: sorted(self.readers[word]) for word in astray}, shown)

    def found_in(self, shown: Any) -> set[str]:
        """The words in whatever an agent is shown."""
        return set(WORD.findall(to_json(shown).decode()))


class Readers:
    """Everything that an agent can read by any tool, by whatever id it could have heard of."""

    def __init__(self, company: Company, carried: Carried) -> None:
        self.company, self.carried = company, carried
        self.ids: dict[str, list[str]] = {
            name: [] for name in ("mail", "contract", "document", "artifact", "task")
        }

    def look(self, reader: str, calls: Iterable[tuple[str, dict[str, Any]]]) -> None:
        """Make these calls and check each answer, the prompt and what the event stream gives."""
        for tool, params in calls:
            self.carried.check(reader, self.company.call(reader, tool, **params).body)
        self.carried.check(reader, self.company.get("/api/v1/prompt", reader).body)
        self.carried.check(reader, self.company.get("/api/v1/me", reader).body)
        events = Event.objects.filter(for_agent_id=self.company.agent(reader).id)
        streamed = events.exclude(kind="").values_list("details", "reason", "subject")
        self.carried.check(reader, list(streamed))

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """Every call that reads."""
        reads = (
            ("read_mail", "mail_id", "mail"),
            ("list_contracts", "contract_id", "contract"), ("task_get", "taskId", "task"),
            ("read_reports", "document_id", "document"),
            ("read_tech_reports", "document_id", "document"),
            ("read_memory", "artifact_id", "artifact"),
        )  # fmt: skip
        plain = ("list_contracts", "task_list", "task_recommend", "list_agents",
                 "read_tech_reports")  # fmt: skip
        return [
            *((tool, {}) for tool in plain),
            ("read_inbox", {"status": "all", "limit": 200}),
            ("manage_backlog", {"action": "list"}),
            *(("manage_tools", {"action": "list", "agent": each}) for each in JUDGED),
            *(("read_reports", {"kind": kind}) for kind in ("note", "prd", "report")),
            *(("read_memory", {"scope": each}) for each in ("agent", "group", "organisation")),
            ("memory_search", {"query": "zq"}),
            *((tool, {name: each}) for tool, name, kind in reads for each in self.ids[kind]),
        ]


ISSUERS = {CEO: "generate_contract", IT: "create_contract", PM: "create_contract"}
