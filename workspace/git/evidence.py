"""What contracts ask about the code of their branches."""

from __future__ import annotations

from contracts.branches import TakenNames
from contracts.models import Contract
from contracts.store import in_the_way
from workspace.git.importing import MAIN
from workspace.git.models import Branch, Repository


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


def branches_in_the_way(organisation_id: int, name: str) -> TakenNames:
    """The main branch of an organisation, and the branches that leave no room for this name.

    An organisation without a repository gets one with the first call of git that needs it.
    """
    repository = Repository.objects.filter(organisation_id=organisation_id).first()
    return taken_in(repository, name) if repository else TakenNames(main=MAIN)


def taken_in(repository: Repository, name: str) -> TakenNames:
    """The main branch of a repository, and the branches that leave no room for this name."""
    rows = repository.branches.filter(in_the_way("name", name))
    return TakenNames(main=repository.main, names=frozenset(rows.values_list("name", flat=True)))
