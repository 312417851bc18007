"""Frontend and Product talk only under a contract that says so (Spec: mail 10)."""

import pytest

ASK = {"to": "product_manager", "type": "question", "subject": "Colour?", "body": "Red?"}
TELL = {
    "to": "frontend_worker",
    "type": "requirement_clarification",
    "subject": "Colour",
    "body": "Blue.",
}
BOTH_WAYS = [
    {"from": "frontend_worker", "to": "product_manager", "types": ["question"]},
    {"from": "product_manager", "to": "frontend_worker", "types": ["requirement_clarification"]},
]


class TestTheChannel:
    def talk(self, stage, contract=None):
        ref = {"contract_ref": contract} if contract else {}
        return [
            stage.call("frontend_worker", "send_mail", **ASK, **ref).code,
            stage.call("product_manager", "send_mail", **TELL, **ref).code,
        ]

    @pytest.mark.parametrize("issuer", ["it_manager", "product_manager"])
    def test_opens_with_its_contract_and_ends_with_it(self, stage, issuer):
        assert self.talk(stage) == ["CONTRACT_REQUIRED"] * 2
        contract = stage.issue(issuer, "frontend_worker", grants=BOTH_WAYS)
        assert self.talk(stage) == ["CONTRACT_REQUIRED"] * 2, "the mail names no contract"
        assert self.talk(stage, contract) == ["OK", "OK"], "pending"
        stage.done("frontend_worker", "accept_contract", contract_id=contract)
        assert self.talk(stage, contract) == ["OK", "OK"], "in progress"
        report = {"kind": "completion", "title": "Done", "body": ""}
        stage.done("frontend_worker", "submit_report", contract_id=contract, **report)
        assert self.talk(stage, contract) == ["OK", "OK"], "in review"
        stage.done(issuer, "close_contract", contract_id=contract, outcome="passed", reason="Seen")
        assert self.talk(stage, contract) == ["CONTRACT_REQUIRED"] * 2, "passed"

    def test_carries_the_granted_types_in_the_granted_direction_only(self, stage):
        contract = stage.issue("it_manager", "frontend_worker", grants=BOTH_WAYS[:1])
        assert self.talk(stage, contract) == ["OK", "CONTRACT_REQUIRED"]
        for mail_type in ("report", "info", "escalation", "approval_request"):
            answer = stage.call(
                "frontend_worker",
                "send_mail",
                **{**ASK, "type": mail_type},
                contract_ref=contract,
            )
            assert answer.code == "MAIL_TYPE_DENIED", mail_type

    def test_is_not_opened_by_a_contract_without_it_nor_by_somebody_elses(self, stage):
        plain = stage.issue("it_manager", "frontend_worker")
        assert self.talk(stage, plain) == ["CONTRACT_REQUIRED"] * 2
        other = stage.issue("it_manager", "backend_worker")
        assert self.talk(stage, other) == ["CONTRACT_REQUIRED"] * 2

    def test_is_nobody_elses_channel(self, stage):
        contract = stage.issue("it_manager", "frontend_worker", grants=BOTH_WAYS)
        for who in ("backend_worker", "qa_worker", "devops_worker"):
            answer = stage.call(who, "send_mail", **ASK, contract_ref=contract)
            assert answer.code == "CONTACT_DENIED", who
        answer = stage.call("research_worker", "send_mail", **ASK, contract_ref=contract)
        assert answer.code == "NOT_FOUND"
