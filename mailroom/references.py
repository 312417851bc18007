"""Which mails and contracts an agent may name: those it is a party of."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from core.decision import Code, Denied, refuse
from core.hooks import Hook
from mailroom.models import Mail
from toolbox.caller import Caller

party_of_contract = Hook[[Caller, str], bool]("whether the caller is a party of a contract")


def mails_of(caller: Caller) -> QuerySet[Mail]:
    """Every mail that the caller sent or received."""
    parties = Q(sender_id=caller.agent.id) | Q(recipient_id=caller.agent.id)
    return Mail.objects.filter(parties, organisation_id=caller.organisation_id)


def require_own(
    caller: Caller, *, reply_to: str | None = None, contract_ref: str | None = None
) -> None:
    """Check that the caller is a party of the mail and of the contract that it names.

    A contract is known here by its mails; one that was handed over to the caller may have none.
    Raises Denied NOT_FOUND, the same for what does not exist and for what belongs to others.
    """
    mails = mails_of(caller)
    if reply_to and not mails.filter(id=reply_to).exists():
        raise _not_found("reply_to", "mail")
    if contract_ref and not (
        mails.filter(contract_ref=contract_ref).exists()
        or any(party_of_contract(caller, contract_ref))
    ):
        raise _not_found("contract_ref", "contract")


def _not_found(field: str, what: str) -> Denied:
    return refuse(
        Code.NOT_FOUND,
        f"{field}: you have no such {what}",
        f"name a {what} of yours, or leave {field} out",
        rule=f"{field} is the sender's own",
    )
