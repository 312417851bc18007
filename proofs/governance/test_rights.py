"""No sequence gives a right that one person alone wanted, or leaves an agent without a way up."""

import pytest

from proofs.governance.accounts_machine import Accounts
from proofs.governance.rights_machine import Rights
from tests.machines import play

pytestmark = pytest.mark.django_db
MOVES = {
    "authorise", "create_agent_jd", "update_org_chart", "edit by contract", "confirm", "cancel",
    "edit Agent", "edit ContactRule", "edit Organisation", "edit Role", "edit ToolOverride",
    "issue a key", "pause", "let pass", "repeated", "explained True", "explained False",
}  # fmt: skip


def test_are_never_given_by_one_person_and_every_agent_reaches_its_superior(db):
    play(Rights, days=40, steps=30, moves=MOVES)


def test_of_another_user_are_nobodys(db):
    play(Accounts, days=60, steps=30)
