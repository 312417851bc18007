"""What contracts ask about the code of their branches."""

from __future__ import annotations

from contracts.models import Contract
from workspace.git.models import Branch


def commit_of_contract(contract: Contract) -> str:
    """The commit that the contract pushed its branch to, or '' (Spec: hands 21)."""
    return (
        Branch.objects.filter(
            repository__organisation_id=contract.organisation_id,
            name=contract.assigned_branch,
            contract_id=contract.id,
        )
        .values_list("commit", flat=True)
        .first()
        or ""
    )
