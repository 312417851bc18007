"""The NEXUS company at work: contracts in progress that open folders and branches."""

from dataclasses import replace

import pytest

from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_contract
from contracts.services import accept_contract
from orgchart.policy.vocabulary import ToolMode
from tests.documents.world import NOW, caller_of, found
from tests.workspace.calls import call


@pytest.fixture(autouse=True)
def company(settings, tmp_path):
    settings.WORKSPACE_ROOT = tmp_path / "company"


@pytest.fixture
def nexus(db):
    return found()


@pytest.fixture
def hired(nexus):
    """Give an agent a contract of the IT manager in progress; its caller is in coding mode."""

    def hire(handle: str, **terms):
        terms = {"mode": ToolMode.CODING, "title": "Work", "body": "Do it.", **terms}
        issued = issue_contract(
            caller=caller_of(nexus, "it_manager"),
            draft=ContractDraft(to=handle, **terms),
            tool="create_contract",
            now=NOW,
        )
        worker = caller_of(nexus, handle)
        accept_contract(
            contract_id=issued["contract_id"], expected_version=None, caller=worker, now=NOW
        )
        return replace(worker, session=replace(worker.session, mode=ToolMode.CODING))

    return hire


@pytest.fixture
def backend(hired):
    return hired(
        "backend_worker", workspace_scope=["src/feature/"], assigned_branch="feature/login"
    )


@pytest.fixture
def write(backend):
    def write(path, content):
        assert call(backend, "write_file", path=path, content=content)["ok"], path

    return write
