"""What people are told of a mail before it is sent is what the door then decides."""

import itertools

import pytest

from contracts.issuing.rules import RequestedChannel
from mailroom.models import Mail, MailRejection
from orgchart.explaining import ask_mail, explain
from tests.contracts import world as contracts
from tests.decisions import code_of
from tests.mailroom.world import send
from tests.oracle import mail as oracle
from tests.oracle.org import AGENTS, BOARD, FRONTEND, PM


def told(company, sender, to, mail_type, contract=""):
    policy = company.policy
    agent = policy.agents[sender]
    decision = explain(ask_mail(policy, agent, mail_type=mail_type, to=to, contract=contract))
    assert decision.rule
    return code_of(decision)


class TestWhatPeopleAreTold:
    def test_is_the_specified_answer_for_every_pair_and_type(self, nexus):
        space = itertools.product(AGENTS, (*AGENTS, BOARD), oracle.MAIL_TYPES)
        wrong = [
            line
            for line in space
            if line[0] != line[1] and told(nexus, *line) != oracle.expected(*line)
        ]
        assert wrong == []

    def test_changes_nothing(self, nexus):
        told(nexus, "backend_worker", "ceo", "info")
        told(nexus, "backend_worker", "it_manager", "info")
        assert not Mail.objects.exists()
        assert not MailRejection.objects.exists()

    @pytest.mark.parametrize("granted", [True, False])
    def test_knows_of_the_named_contract(self, nexus, granted):
        wish = [RequestedChannel(FRONTEND, PM, frozenset({"question"}))] if granted else []
        contract = contracts.issue(nexus, FRONTEND, grants=wish)
        expected = "OK" if granted else "CONTRACT_REQUIRED"
        assert told(nexus, FRONTEND, PM, "question", contract) == expected
        answer = send(nexus, FRONTEND, PM, type="question", contract_ref=contract)
        assert answer.code == expected
        assert told(nexus, FRONTEND, PM, "question") == "CONTRACT_REQUIRED"

    def test_of_a_name_that_is_nobodys_is_that(self, nexus):
        assert told(nexus, "ceo", "nobody", "info") == "RECIPIENT_UNKNOWN"
