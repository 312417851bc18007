"""A disk that fills up: nothing acknowledged is lost, and work goes on when there is room."""

import time
from collections import Counter

import httpx
import pytest

from proofs.faults.account import DUE, complaints
from proofs.faults.installation import Installation, installation, wait_until
from proofs.faults.load import Agents
from proofs.faults.receiver import receiving
from tests.disks import MEGABYTE, disk, full

DISK, TREE = 400, 24  # megabytes of the database's disk, and of the company tree's
RESERVE = 40
MAIL = {"to": "it_manager", "type": "info", "subject": "s", "body": "b"}
UNFILED = "SELECT path FROM documents_document WHERE filed_at IS NULL"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def company(tmp_path_factory):
    var = tmp_path_factory.mktemp("storage")
    settings = {"escalation_timeout": "2", "task_lease": "2", "allow_internal_addresses": "true"}
    with disk(var, DISK), disk(var / "company", TREE), receiving() as receiver:
        settings["board_webhook"] = receiver.url
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("NEXUS_DISK_RESERVE", str(RESERVE * MEGABYTE))
            with installation(var, settings, twins=False) as one:
                yield one, Agents(one), receiver


def answer(one: Installation, tool: str, **params: object) -> httpx.Response:
    key = {"Authorization": f"Bearer {one.keys['backend_worker']}"}
    return httpx.post(f"{one.url}/api/v1/tools/{tool}", json=params, headers=key, timeout=30)


def work(agents: Agents, seconds: float = 5) -> None:
    """Wait until agents were answered again."""
    before = len(agents.calls)
    wait_until("agents at work", lambda: len(agents.calls) > before + 5)
    time.sleep(seconds)


def check(one: Installation, agents: Agents, receiver) -> None:
    """Nothing acknowledged is lost or doubled, and nobody was answered what nobody expects."""
    one.wait_until_ready()
    wait_until("the last due row", lambda: not one.ask(DUE))
    assert agents.odd == []
    assert complaints(one, agents.calls, receiver, settled=True) == []
    with httpx.Client(base_url=one.url, timeout=30) as http:
        again = [agents.repeat(call, http) for call in agents.calls[-100:]]
    assert [problem for problem in again if problem] == []
    one.manage("ledger", "seal")
    assert "OK" in one.manage("ledger", "verify").stdout


def test_a_disk_with_nothing_but_its_reserve_refuses_what_stores(company):
    one, agents, receiver = company
    with agents.at_work():
        work(agents)
        with full(one.var, but=RESERVE - 1):
            done = len(agents.calls)
            for _ in range(5):
                refusal = answer(one, "send_mail", **MAIL)
                assert (refusal.status_code, refusal.json()["error_code"]) == (507, "STORAGE_FULL")
                assert refusal.json()["next_action"]
                assert answer(one, "task_list").status_code == 200
                time.sleep(1)
            assert one.ready()["status"] == "ready"
            assert len(agents.calls) - done < 30  # what reads, or was under way
        work(agents)
        assert answer(one, "send_mail", **MAIL).status_code == 200
    check(one, agents, receiver)


def test_a_disk_without_a_byte_left_loses_nothing(company):
    """PostgreSQL itself finds no room, and may have to start again."""
    one, agents, receiver = company
    statuses: Counter[int] = Counter()
    with agents.at_work():
        work(agents)
        with full(one.var, but=0):
            one.kill_all("web")
            wait_until("new web processes", lambda: len(one.pids("web")) == 2)
            for _ in range(10):
                try:
                    statuses[answer(one, "send_mail", **MAIL).status_code] += 1
                except httpx.HTTPError:
                    statuses[0] += 1
                time.sleep(1)
        work(agents)
    print("answers without a byte left:", dict(statuses))
    assert 200 not in statuses
    assert 500 not in statuses
    assert "status -7" not in one.log  # SIGBUS: of a process that counts
    check(one, agents, receiver)


def test_a_full_company_tree_delays_files_and_loses_none(company):
    one, agents, receiver = company
    with agents.at_work():
        with full(one.var / "company", but=0):
            work(agents, 10)
            waiting = [path for (path,) in one.ask(UNFILED)]
            assert waiting, "no document was acknowledged meanwhile"
            assert one.ready()["status"] == "ready"
        work(agents)
    wait_until("the last file", lambda: not one.ask(UNFILED))
    tree = one.var / "company" / "nexus"
    assert [path for path in waiting if not (tree / path).stat().st_size] == []
    check(one, agents, receiver)
