"""A budget names the request that it answers: the assignee's own, to the issuer, once."""

import pytest
from django.db import DatabaseError, transaction

from contracts.models import Contract
from ledger.models import Event
from toolbox.registry import REGISTRY

pytestmark = pytest.mark.django_db
TERMS = {"to": "it_manager", "title": "Servers", "body": "Rent two.", "kind": "budget"}


def ask(nexus, by="it_manager"):
    if by == "it_manager":
        return nexus.call(by, "request_budget", amount="1500", purpose="Servers.").result["mail_id"]
    words = {"type": "approval_request", "subject": "Money", "body": "For a study."}
    return nexus.call(by, "send_mail", to="ceo", **words).result["mail_id"]


def give(nexus, request, **terms):
    return nexus.call("ceo", "generate_contract", **{**TERMS, **terms}, request=request)


class TestTheRequest:
    def test_is_named_by_the_contract_its_mail_and_its_event(self, nexus):
        request = ask(nexus)
        made = give(nexus, request, amount="1500").result
        for agent in ("ceo", "it_manager"):
            read = nexus.call(agent, "list_contracts", contract_id=made["contract_id"]).result
            assert read["request"] == request
            assert nexus.call(agent, "list_contracts").result["contracts"][0]["request"] == request
        mail = nexus.call("it_manager", "read_mail", mail_id=made["mail_id"]).result
        assert mail["reply_to"] == request
        assert f"request: {request}" in mail["body"]
        assert Event.objects.get(action="contract.issued").details["request"] == request

    def test_may_be_a_mail_of_a_manager_without_the_tool(self, nexus):
        request = ask(nexus, by="product_manager")
        assert give(nexus, request, to="product_manager").status == 200

    def test_may_be_left_out(self, nexus):
        made = nexus.call("ceo", "generate_contract", **TERMS).result
        read = nexus.call("ceo", "list_contracts", contract_id=made["contract_id"]).result
        assert read["request"] is None

    def test_is_of_a_budget_only(self, nexus):
        answer = give(nexus, ask(nexus), kind="work")
        assert answer.code == "INVALID_PARAMS"
        assert answer.body["details"] == {"request": "only with kind budget"}

    def test_is_the_assignees_own_to_the_issuer_and_of_that_type(self, nexus):
        info = {"type": "info", "subject": "Money", "body": "We need some."}
        report = {"type": "report", "subject": "Money", "body": "We need some."}
        up = {"type": "approval_request", "subject": "Money", "body": "For disks."}
        wrong = [
            "MAIL-none",
            ask(nexus, by="product_manager"),
            nexus.call("it_manager", "send_mail", to="ceo", **report).result["mail_id"],
            nexus.call("ceo", "send_mail", to="it_manager", **info).result["mail_id"],
            nexus.call("backend_worker", "send_mail", to="it_manager", **up).result["mail_id"],
        ]
        for mail_id in wrong:
            answer = give(nexus, mail_id)
            assert answer.code == "NOT_FOUND", mail_id
            assert answer.body["message"] == (
                "request: it_manager sent you no such approval_request"
            )

    def test_is_answered_once_unless_that_was_cancelled(self, nexus):
        request = ask(nexus)
        first = give(nexus, request).result["contract_id"]
        second = give(nexus, request)
        assert second.code == "INVALID_TRANSITION"
        assert second.body["message"] == f"request: {first} answers it already"
        cancel = {"contract_id": first, "outcome": "cancelled", "reason": "Too much."}
        assert nexus.call("ceo", "close_contract", **cancel).status == 200
        assert give(nexus, request).status == 200

    def test_is_a_parameter_of_generate_contract_only(self):
        has = {
            name: "request" in REGISTRY.get(name).input_schema["properties"]
            for name in ("generate_contract", "create_contract")
        }
        assert has == {"generate_contract": True, "create_contract": False}


class TestTheDatabase:
    def test_keeps_which_request_a_contract_answers(self, nexus):
        made = give(nexus, ask(nexus)).result["contract_id"]
        for other in (None, ask(nexus)):
            with pytest.raises(DatabaseError, match="does not change"), transaction.atomic():
                Contract.objects.filter(id=made).update(request_id=other, version=2)
