"""The same markers over a live MCP connection and the event stream (Spec: constitution 4)."""

import json
import threading
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from tests.clients.listening import connected
from tests.company import load_company
from tests.governance.cases import oracle
from tests.governance.cases.markers import HANDLE, MARKS, MAY_SEE, marked_case
from tests.loops import run
from tests.patience import PATIENCE
from tests.server import serving

pytestmark = pytest.mark.django_db(transaction=True)
OFFICE_TOOLS = ("case_inputs", "case_list", "case_submit", "case_decide", "case_open")


@pytest.fixture
def company(transactional_db, settings):
    settings.NEXUS_RATE_BURST = settings.NEXUS_RATE_PER_MINUTE = 10**6
    return load_company("constitution")


class Stream:
    """The event stream of one office, read until the test ends."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self.key, self.text = url, key, ""
        self.opened, self.last = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._read)

    def _read(self) -> None:
        headers = {"Authorization": f"Bearer {self.key}"}
        with (
            httpx.Client(base_url=self.url, timeout=30, trust_env=False) as http,
            http.stream("GET", "/api/v1/events", headers=headers) as answer,
        ):
            assert answer.status_code == 200
            self.opened.set()
            for chunk in answer.iter_text():
                self.text += chunk
                if "no_such_tool" in self.text:
                    self.last.set()
                    return


@contextmanager
def streams(company, url):
    """A stream of every office; at the end each office's own last refusal ends its stream."""
    found = {office: Stream(url, company.key(HANDLE[office])) for office in oracle.OFFICES}
    for each in found.values():
        each.thread.start()
    for each in found.values():
        assert each.opened.wait(PATIENCE)
    try:
        yield found
    finally:
        for office, each in found.items():
            company.call(HANDLE[office], "no_such_tool")
            assert each.last.wait(PATIENCE), f"the stream of {office} never showed its last event"
            each.thread.join(PATIENCE)


async def over_mcp(url: str, key: str, case_id: str) -> str:
    """Everything that a live MCP connection answers an office: lists, results, refusals."""
    said = []
    async with connected(url, key) as client:
        said.append((await client.list_tools()).model_dump_json())
        calls = [
            *((name, {"case_id": case_id}) for name in OFFICE_TOOLS),
            *(("case_inputs", {"case_id": case_id, "names": [n]}) for n in oracle.EVERY_INPUT),
            *(
                ("case_submit", {"case_id": case_id, "stage": stage, "content": {"bad": 1}})
                for stage in oracle.STAGES[:-1]
            ),
            ("case_list", {}),
            ("query_memory", {"query": "MARK"}),
        ]
        for name, arguments in calls:
            said.append((await client.call_tool(name, arguments)).model_dump_json())
    return "\n".join(said)


def test_no_office_meets_more_over_mcp_or_in_its_events(company):
    for office in oracle.OFFICES:
        company.key(HANDLE[office])
    with serving() as url, ExitStack() as open_streams:
        heard = open_streams.enter_context(streams(company, url))
        case = marked_case(company)
        for office in oracle.OFFICES:
            said = run(over_mcp(url, company.key(HANDLE[office]), case.id))
            assert json.dumps(case.id) in said or case.id in said
            found = {name for name, mark in MARKS.items() if mark in said}
            assert found == MAY_SEE[office], (office, found)
        open_streams.close()
    for office, stream in heard.items():
        # The Analyst opened the case itself, and its stage is not repeated.
        assert (case.id in stream.text) is (office != "ANALYST"), office
        assert not {name for name, mark in MARKS.items() if mark in stream.text}, office
