"""The page's own script: six agents with six keys run a case over REST and MCP, as printed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from governance.models import Artifact, Case, Violation
from tests.company import load_company
from tests.governance.cases import oracle
from tests.server import serving

pytestmark = pytest.mark.django_db(transaction=True)
SCRIPT = Path(__file__).resolve().parents[3] / "docs" / "clients" / "six_agents.py"


@pytest.fixture
def company(transactional_db, settings):
    settings.NEXUS_RATE_BURST = settings.NEXUS_RATE_PER_MINUTE = 10**6
    return load_company("constitution")


def test_six_agents_deliver_a_case_that_is_rejected_once_and_fails_once(company, tmp_path):
    keys = {office.lower(): company.key(office.lower()) for office in oracle.OFFICES}
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    with serving() as url:
        done = subprocess.run(
            [sys.executable, SCRIPT, "--url", url, "--keys", tmp_path / "keys.json"],
            capture_output=True, text=True, timeout=150, check=False, cwd=tmp_path,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    case = Case.objects.get()
    assert (case.state, case.round) == ("delivered", 3)
    page = (SCRIPT.parents[1] / "constitution.md").read_text()
    printed = page.partition("$ python3 docs/clients/six_agents.py\n")[2].partition("\n```")[0]
    assert done.stdout.strip() == printed.replace("CASE-…", case.id)
    told = Artifact.objects.order_by("number").values_list("author_name", "outcome")
    assert [pair for pair in told if pair[0] in ("reviewer", "tester")] == [
        ("reviewer", "REJECTED"),
        ("reviewer", "APPROVED"),
        ("tester", "FAILED"),
        ("reviewer", "APPROVED"),
        ("tester", "PASSED"),
    ]
    assert not Violation.objects.exists()
