"""Contracts that let HR change the organisation."""

from contracts.issuing.drafts import ContractDraft
from contracts.issuing.services import issue_contract
from contracts.services import accept_contract
from contracts.vocabulary import ContractKind
from tests.documents.world import NOW, caller_of


def authorise(organisation) -> str:
    """The CEO lets HR change the organisation; the contract is in progress."""
    issued = issue_contract(
        caller=caller_of(organisation, "ceo"),
        draft=ContractDraft(
            to="hr_manager", title="Grow", body="Hire.", kind=ContractKind.ORG_CHANGE
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
