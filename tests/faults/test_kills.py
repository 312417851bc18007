"""`kill -9` of anything, at any moment, under load: what was acknowledged is there, once."""

import os
import random
import subprocess
import sys
import threading
import time

import pytest

from tests.faults.harness import ROOT, Agents, installation, kill

KILLS = int(os.environ.get("NEXUS_KILLS", "6"))
KINDS = ("child", "child", "postgres", "child")
"""Children are two web processes and the worker with its beat; each falls in its turn."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory):
    """An installation that was killed piece by piece while its agents worked."""
    random.seed(7)
    with installation(tmp_path_factory.mktemp("installation")) as one:
        agents = Agents(one)
        clients = [threading.Thread(target=agents.live) for _ in range(agents.threads)]
        for client in clients:
            client.start()
        killed = dict.fromkeys(KINDS, 0)
        for number in range(KILLS):
            time.sleep(random.uniform(0.5, 1.5))
            kind = KINDS[number % len(KINDS)]
            killed[kind] += kill(one, kind)
            one.wait_until_ready()
        agents.stop.set()
        for client in clients:
            client.join(180)
        one.wait_until_ready()
        yield one, agents, killed


class TestAfterEveryKill:
    def test_something_of_each_kind_was_killed(self, aftermath):
        _, _, killed = aftermath
        assert all(killed.values()), killed
        assert sum(killed.values()) == KILLS

    def test_every_attempt_was_answered_in_the_end(self, aftermath):
        _, agents, _ = aftermath
        assert agents.odd == []
        assert set(agents.acknowledged) == agents.attempted
        assert len(agents.acknowledged) > KILLS

    def test_what_was_acknowledged_is_there_once_under_its_id(self, aftermath):
        one, agents, _ = aftermath
        stored = one.rows(
            "SELECT subject, id FROM mailroom_mail WHERE from_agent = 'backend_worker'"
        )
        assert len(stored) == len(dict(stored)), "a mail was delivered twice"
        assert dict(stored) == agents.acknowledged

    def test_the_ledger_equals_the_effects(self, aftermath):
        one, _, _ = aftermath
        mails = one.rows("SELECT 'mail:' || id FROM mailroom_mail ORDER BY 1")
        events = one.rows(
            "SELECT subject FROM ledger_event WHERE action = 'mail.delivered' ORDER BY 1"
        )
        assert mails == events

    def test_the_ledger_still_verifies(self, aftermath):
        one, _, _ = aftermath
        done = subprocess.run(
            [sys.executable, "manage.py", "ledger", "verify"],
            cwd=ROOT,
            env={**os.environ, **one.environment()},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
