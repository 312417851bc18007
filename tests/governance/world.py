"""Contracts that let HR change the organisation."""

from contracts.issuing.changes import NamedChange
from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_contract
from contracts.services import accept_contract
from contracts.vocabulary import ContractKind, OrgAct
from tests.documents.world import NOW, caller_of

AGENTS = (
    "ceo", "it_manager", "hr_manager", "product_manager", "backend_worker", "frontend_worker",
    "devops_worker", "qa_worker", "research_worker",
)  # fmt: skip
EVERYTHING = (
    "hire backend_two",
    *(f"{act} {agent}" for act in ("describe", "move", "deactivate") for agent in AGENTS),
)
"""One line of each act on each agent."""


def authorise(organisation, *changes: str) -> str:
    """The CEO lets HR carry out changes, each written as `act subject` or `act subject role`."""
    issued = issue_contract(
        caller=caller_of(organisation, "ceo"),
        draft=ContractDraft(
            to="hr_manager",
            title="Grow",
            body="Hire.",
            kind=ContractKind.ORG_CHANGE,
            changes=[NamedChange(OrgAct(act), *names) for act, *names in map(str.split, changes)],
        ),
        tool="generate_contract",
        now=NOW,
    )
    accept_contract(
        contract_id=issued["contract_id"],
        expected_version=None,
        caller=caller_of(organisation, "hr_manager"),
        now=NOW,
    )
    return issued["contract_id"]
