"""What a person does not do alone, and who the second person can be; pure.

Spec: people 9, 10, 11, 12, 55.
"""

from __future__ import annotations

from collections.abc import Collection

from core.actors import Confirmation, Person
from core.decision import Allow, Code, Decision, deny
from core.permissions import PeopleGroup
from orgchart.policy.difference import Difference
from orgchart.policy.separation import ORDERS_CHANGES

SECOND_PERSON = "a new right needs a second person"
AS_SHOWN = "a change is confirmed as it was shown"
MOST_WAITING = 200
"""Changes of one person in one organisation that wait for a second person."""
TWO_PERSONS_OR_NONE = "no person alone orders changes of the organisation (spec: people 55)"


def can_change_alone(person: Person, change: Difference, board: Collection[str]) -> Decision:
    """Decide whether a person's change takes effect without a second person.

    `board` are the usernames of the Board's members. Operators at the shell are outside of this
    rule: they own the database.
    """
    if not change.allowed:
        return Allow("a change that gives no right needs no confirmation")
    if person.at_shell:
        return Allow("an operator at the command line")
    others = set(board) - {person.username}
    if is_of_board(person) and not others:
        return Allow("the only member of the Board needs no confirmation")
    return deny(
        Code.APPROVAL_REQUIRED,
        f"this gives rights that no second person has confirmed: {change.allowed[0]}",
        "propose it; a member of the Board other than you confirms it",
        rule=SECOND_PERSON,
    )


def can_issue_key(
    person: Person, agent: str, tools: Collection[str], board: Collection[str]
) -> Decision:
    """Decide whether a person may issue a key of the agent whose role has these tools.

    Who has the key of an agent that orders changes could act as it, and confirm their own changes
    by its contracts. `board` are the usernames of the Board's members.
    """
    if ORDERS_CHANGES not in tools:
        return Allow("this agent orders no changes of the organisation")
    if person.at_shell:
        return Allow("an operator at the command line")
    if not set(board) - {person.username}:
        return Allow("the only member of the Board needs no confirmation")
    return deny(
        Code.APPROVAL_REQUIRED,
        f"the contracts of {agent} replace a second person, so no member of the Board issues its "
        "key alone",
        f"let the operator issue it: manage.py issue_key ORG {agent}",
        rule=TWO_PERSONS_OR_NONE,
    )


def is_of_board(person: Person) -> bool:
    """Whether the person is a member of the Board."""
    return person.is_superuser or PeopleGroup.BOARD in person.groups


def can_propose(waiting: int) -> Decision:
    """Decide whether a person may propose one more change while so many of theirs wait.

    A Board decides them one by one: thousands of one person would hide those of others.
    Spec: people 66.
    """
    if waiting < MOST_WAITING:
        return Allow("a change that a Board can look at")
    return deny(
        Code.QUOTA_EXCEEDED,
        f"{MOST_WAITING} changes that you proposed wait for a second person already",
        "wait until some are decided, or withdraw some",
        rule="quota",
        what="changes that wait for a second person",
        used=waiting,
        limit=MOST_WAITING,
    )


def can_decide(person: Person, proposed_by: str) -> Decision:
    """Decide whether a person may confirm or reject a change: not the one who proposed it."""
    if person.username == proposed_by:
        return deny(
            Code.NOT_YOURS,
            "you proposed this change, so you cannot confirm or reject it",
            "ask another member of the Board, or withdraw it",
            rule="the proposer does not confirm",
        )
    return Allow("a second person decides")


def can_withdraw(person: Person, proposed_by: str) -> Decision:
    """Decide whether a person may withdraw a change: the one who proposed it."""
    if person.username != proposed_by:
        return deny(
            Code.NOT_YOURS,
            f"{proposed_by} proposed this change",
            "a member of the Board rejects what another person proposed",
            rule="the proposer withdraws",
        )
    return Allow("the proposer withdraws")


def can_apply(confirmation: Confirmation, change: Difference) -> Decision:
    """Decide whether a confirmed change may take effect: if it does exactly what was shown."""
    if (change.allowed, change.forbidden) == (confirmation.allowed, confirmation.forbidden):
        return Allow(f"confirmed by {confirmation.by}")
    return deny(
        Code.VERSION_MISMATCH,
        "the organisation changed: this no longer does what was shown when it was proposed",
        "propose the change again",
        rule=AS_SHOWN,
    )
