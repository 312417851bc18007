"""The NEXUS company under a real server, its data committed; agents in both modes call it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import requests
from django.test import override_settings
from django.utils import timezone

from governance.cases import rules
from tests.committed import committing
from tests.company import Company, load_company
from tests.oracle import tools as oracle
from tests.oracle.org import AGENTS
from tests.server import serving
from toolbox.modes import open_mode

UNHURRIED = dict.fromkeys(
    (
        "NEXUS_RATE_BURST",
        "NEXUS_RATE_PER_MINUTE",
        "NEXUS_BYTES_PER_MINUTE",
        "NEXUS_BYTES_PER_DAY",
        "NEXUS_ORGANISATION_BYTES_PER_DAY",
    ),
    10**12,
)


OFFICER = "analyst"
"""Who tries the tools of the offices."""


def unconfigured() -> requests.Session:
    """A session that looks for no proxy and no password at each request."""
    made = requests.Session()
    made.trust_env = False
    return made


@dataclass
class Staff:
    """Who calls whom at what address."""

    company: Company
    url: str
    court: Company | None = None  # of the six offices, where the call is theirs
    sessions: dict[str, str] = field(default_factory=dict)
    http: requests.Session = field(default_factory=unconfigured)

    def headers(self, handle: str, *, coding: bool = False) -> dict[str, str]:
        """The agent's key; and its session in coding mode."""
        company = self.court if handle == OFFICER and self.court else self.company
        proof = {"Authorization": f"Bearer {company.key(handle)}"}
        return proof | ({"X-Nexus-Session": self.coding(handle)} if coding else {})

    def coding(self, handle: str) -> str:
        """A session of the agent that a person opened for coding; made once."""
        if handle not in self.sessions:
            opened = self.company.post("/api/v1/sessions", {}, handle).body["id"]
            open_mode(
                session_id=opened,
                mode="coding",
                caller=self.company.person("Board"),
                now=timezone.now(),
                reason="its tools are tried",
            )
            self.sessions[handle] = opened
        return self.sessions[handle]


@contextmanager
def at_work(blocker: Any) -> Iterator[Staff]:
    """The company, served; nothing of it is left afterwards."""
    with (
        committing(blocker),
        override_settings(**UNHURRIED),
        patch.object(rules, "MOST_OPENED", 10**6),
    ):
        company = load_company("nexus")
        with serving() as url:
            yield Staff(company, url, load_company("constitution"))


def holder_of(tool: str) -> str:
    """An agent whose tool it is by the matrix; the CEO for what everybody has or nobody."""
    if tool in oracle.OFFICE:
        return OFFICER
    return next((agent for agent in AGENTS if tool in oracle.BOUND[agent]), AGENTS[0])


def stranger_to(tool: str) -> str | None:
    """An agent who does not have it, if there is one."""
    has_it_not = (agent for agent in reversed(AGENTS) if tool not in oracle.BOUND[agent])
    return None if tool in oracle.BUILTIN else next(has_it_not, None)


MCP = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


def asked_of_mcp(http, method, params, headers):
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = http.post("/mcp", json=asked, headers=MCP | headers)
    if answer.headers["content-type"].startswith("application/json"):
        return answer.json()["result"]
    lines = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
    return json.loads(next(line for line in lines if line.strip()))["result"]
