"""What is decided before a hand moves: paths, branches, approvals; then whether it can."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NoReturn

from django.db import transaction

from contracts.approvals.deployments import use_approval
from contracts.models import Contract
from contracts.vocabulary import ContractState
from core.decision import Code, refuse
from orgchart.policy.paths import can_touch
from orgchart.policy.vocabulary import Access
from toolbox.caller import Caller
from toolbox.scopes import active_scopes
from workspace import rules


def unavailable(caller: Caller, driver: str) -> NoReturn:
    """Say that every gate was passed and that this installation cannot do it (wire: 503)."""
    raise refuse(
        Code.DRIVER_UNAVAILABLE,
        f"{caller.tool or 'this'} is allowed, but no {driver} is configured on this installation",
        f"go on without it and tell {caller.agent.superior}; who runs the installation configures "
        "it",
        rule=f"{driver} is configured",
        driver=driver,
    )


def require_paths(caller: Caller, paths: Iterable[str], access: Access) -> None:
    """Every path must be in the caller's scope, contracts in progress included.

    Raises Denied SCOPE_DENIED for the first that is not.
    """
    scopes = active_scopes(caller.agent.id)
    for path in paths:
        caller.require(
            can_touch(
                path,
                access,
                agent=caller.agent,
                files=caller.role.files,
                contract_scope=scopes,
            )
        )


def branches_of(caller: Caller) -> list[str]:
    """The branches that the caller's contracts in progress assign."""
    rows = Contract.objects.filter(
        organisation_id=caller.organisation_id,
        assignee_id=caller.agent.id,
        state=ContractState.IN_PROGRESS,
    ).exclude(assigned_branch="")
    return list(rows.order_by("-id").values_list("assigned_branch", flat=True))


def require_branch(caller: Caller, name: str) -> None:
    """Git works on the contract's branch only (seed 000 §1.6). Raises Denied BRANCH_DENIED."""
    caller.require(rules.can_use_branch(name, branches_of(caller)))


def require_commit(caller: Caller, paths: Iterable[str]) -> None:
    """A commit needs a branch of one's own and paths in scope.

    Raises Denied BRANCH_DENIED, SCOPE_DENIED.
    """
    caller.require(rules.can_commit(branches_of(caller)))
    require_paths(caller, paths, Access.WRITE)


def deploy(*, caller: Caller, environment: str, artifact: str, now: datetime) -> NoReturn:
    """Deploy one artefact; production needs an approval, which it uses up (seed 000 §1.8).

    Raises Denied APPROVAL_REQUIRED; DRIVER_UNAVAILABLE, and then the approval is not used up.
    """
    with transaction.atomic():
        where = rules.environment_of(environment)
        if rules.needs_approval(where):
            use_approval(caller=caller, environment=where, artifact=artifact, now=now)
        unavailable(caller, "container engine")
