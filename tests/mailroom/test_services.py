"""Sending through the real door: every pair and type, what is stored, what is refused and kept."""

import hashlib
import itertools
import re
from datetime import UTC

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

import core.events
from contracts.issuing.rules import RequestedChannel
from contracts.vocabulary import ContractState
from core.decision import Denied
from core.ids import timed_id
from ledger.models import Event
from mailroom import delivery, services
from mailroom.models import ContactGrant, Mail, MailRejection
from tests.company import load_company
from tests.contracts import world as contracts
from tests.mailroom.world import NOW, draft, mails, put_in_clone, send, sent
from tests.oracle import mail as oracle
from tests.oracle.org import AGENTS, BOARD, FRONTEND, IT, PM

GRANTING = [
    {"from": FRONTEND, "to": PM, "types": ["question"]},
    {"from": PM, "to": FRONTEND, "types": ["requirement_clarification"]},
]


def granting_contract(company, state):
    """IT's contract for the frontend worker that grants both ways, at that state."""
    wishes = [RequestedChannel(g["from"], g["to"], frozenset(g["types"])) for g in GRANTING]
    contract = contracts.issue(company, FRONTEND, grants=wishes)
    if state == ContractState.CANCELLED:
        contracts.close(company, contract, "cancelled")
    if state in (
        ContractState.IN_PROGRESS,
        ContractState.REVIEW,
        ContractState.PASSED,
        ContractState.FAILED,
    ):
        contracts.accept(company, contract, by=FRONTEND)
    if state in (ContractState.REVIEW, ContractState.PASSED, ContractState.FAILED):
        contracts.submit(company, contract, by=FRONTEND)
    if state in (ContractState.PASSED, ContractState.FAILED):
        contracts.close(company, contract, str(state))
    return contract


class TestTheDoor:
    def test_decides_every_pair_and_type_as_specified(self, nexus):
        wrong = []
        for sender, to, kind in itertools.product(AGENTS, (*AGENTS, BOARD), oracle.MAIL_TYPES):
            expected = oracle.expected(sender, to, kind) if sender != to else "CONTACT_DENIED"
            found = send(nexus, sender, to, type=kind).code
            if found != expected:
                wrong.append((sender, to, kind, found, expected))
        assert wrong == []

    @pytest.mark.parametrize("state", [str(s) for s in ContractState])
    def test_opens_a_conditional_channel_while_its_contract_is_open(self, nexus, state):
        contract = granting_contract(nexus, state)
        for one, other in ((FRONTEND, PM), (PM, FRONTEND)):
            for kind in oracle.MAIL_TYPES:
                found = send(nexus, one, other, type=kind, contract_ref=contract).code
                assert found == oracle.expected(one, other, kind, state), (one, kind)

    def test_gives_the_same_answer_to_an_address_and_an_old_name(self, nexus):
        for name in ("it_manager", "it_admin", "it.manager", "eng_manager"):
            assert send(nexus, "backend_worker", name).code == "OK"
        assert len(mails(nexus, "it_manager")) == 4


class TestAMail:
    def test_is_stored_with_every_column_of_the_specification(self, nexus):
        put_in_clone(nexus, "tests/a.py", b"assert True")
        mail_id = sent(
            nexus,
            "backend_worker",
            "it_manager",
            type="report",
            subject="S" * 200,
            body="文" * 10_000,
            priority="critical",
            attachments=[{"path": "tests/a.py", "description": "a test"}],
        )
        mail = Mail.objects.get(id=mail_id)
        assert re.fullmatch(r"MAIL-[0-9]{20}-[a-z0-9]{4}", mail_id)
        assert mail_id[5:25] == NOW.astimezone(UTC).strftime("%Y%m%d%H%M%S%f")
        assert (mail.from_agent, mail.to_agent, mail.status) == (
            "backend_worker",
            "it_manager",
            "delivered",
        )
        assert mail.created_at == mail.delivered_at == NOW
        (attached,) = mail.attachments
        assert (attached["path"], attached["description"]) == ("tests/a.py", "a test")
        assert attached["sha256"] == hashlib.sha256(b"assert True").hexdigest()
        assert mail.read_at is mail.rejected_reason is None
        assert mail.route_log[0] == "from agent:backend_worker"
        assert mail.route_log[2] == f"policy {nexus.policy.version}"

    def test_leaves_one_event_with_its_text_as_a_digest_only(self, nexus):
        mail_id = sent(nexus, "backend_worker", "it_manager", subject="Secret", body="Salary")
        event = Event.objects.get(action="mail.delivered")
        assert event.subject == f"mail:{mail_id}"
        assert event.for_agent_id == nexus.agent("it_manager").id
        assert len(event.args_digest) == 64
        assert "Salary" not in str(event.details)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"subject": "S" * 201},
            {"subject": ""},
            {"body": "b" * 10_001},
            {"priority": "urgent"},
            {"type": 7},
            {"attachments": [{"path": ""}]},
            {"attachments": [{"path": "a", "size": 1}]},
            {"attachments": [{"path": "tests/a.py"}] * 21},
            {"reply_to": "x" * 33},
            {"bcc": "ceo"},
            {"status": "read"},
            {"mail_id": "MAIL-1"},
        ],
        ids=str,
    )
    def test_with_a_field_out_of_bounds_is_no_mail(self, nexus, wrong):
        answer = send(nexus, "backend_worker", "it_manager", **wrong)
        assert (answer.status, answer.code) == (400, "INVALID_PARAMS")
        assert not Mail.objects.exists()

    def test_costs_two_queries_the_caller_and_the_mail(self, nexus):
        nexus.caller("backend_worker"), nexus.count_ahead()
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert (
                nexus.call(
                    "backend_worker",
                    "send_mail",
                    to="it_manager",
                    type="info",
                    subject="x",
                    body="x",
                ).code
                == "OK"
            )
        assert len(queries) == 2, [q["sql"][:80] for q in queries]

    def test_refused_leaves_its_rows_in_one_statement_of_its_own_transaction(self, nexus):
        nexus.caller("backend_worker"), nexus.count_ahead()
        with CaptureQueriesContext(connection) as queries:
            nexus.call("backend_worker", "send_mail", to="ceo", type="info", subject="x", body="x")
        shown = [q["sql"] for q in queries if "SAVEPOINT" not in q["sql"]]
        assert len(shown) == 2, [sql[:80] for sql in shown]


class TestAReference:
    def test_to_a_mail_is_to_one_of_ones_own(self, nexus):
        mine = sent(nexus, "it_manager", "backend_worker")
        others = sent(nexus, "it_manager", "qa_worker")
        assert send(nexus, "backend_worker", "it_manager", reply_to=mine).code == "OK"
        for reference in (others, "MAIL-20260101000000000000-aaaa"):
            answer = send(nexus, "backend_worker", "it_manager", reply_to=reference)
            assert answer.code == "NOT_FOUND"
            assert answer.body["message"] == "reply_to: you have no such mail"

    def test_to_a_contract_is_to_one_of_ones_own(self, nexus):
        mine = contracts.issue(nexus, "backend_worker")
        others = contracts.issue(nexus, "qa_worker")
        assert send(nexus, "backend_worker", "it_manager", contract_ref=mine).code == "OK"
        answers = [
            send(nexus, "backend_worker", "it_manager", contract_ref=ref).body
            for ref in (others, "CON-20260101000000000000-aaaa")
        ]
        assert [a["error_code"] for a in answers] == ["NOT_FOUND"] * 2
        assert answers[0] == answers[1]

    def test_to_another_organisations_mail_or_contract_is_not_found(self, nexus):
        dev = load_company("dev-team")
        theirs = sent(nexus, "it_manager", "backend_worker")
        lead, *_ = [a.handle for a in dev.policy.agents.values() if dev.policy.contacts_of(a)]
        to = dev.policy.contacts_of(dev.policy.agents[lead])[0]
        pair = dev.policy.agents[lead], dev.policy.agents[to]
        rule = dev.policy.rule_between(*pair)
        mail_type = min(dev.policy.sendable_types(pair[0], to, rule))
        answer = send(dev, lead, to, type=mail_type, reply_to=theirs)
        assert answer.code == "NOT_FOUND"
        assert (
            not Mail.objects.filter(organisation=dev.organisation)
            .exclude(from_agent="system")
            .exists()
        )


class TestAttachments:
    def test_reach_as_far_as_a_contract_in_progress(self, nexus):
        files = [{"path": put_in_clone(nexus, "src/search/index.py")}]
        refused = send(nexus, "backend_worker", "it_manager", attachments=files)
        assert refused.code == "SCOPE_DENIED"
        assert MailRejection.objects.get().code == "SCOPE_DENIED"
        contracts.at_state(nexus, ContractState.IN_PROGRESS, workspace_scope=["src/search/"])
        assert send(nexus, "backend_worker", "it_manager", attachments=files).code == "OK"


class TestARejection:
    @pytest.mark.parametrize(
        ("to", "kind", "code", "told"),
        [
            ("ceo", "info", "CONTACT_DENIED", ["backend_worker"]),
            ("it_manager", "contract", "MAIL_TYPE_DENIED", ["backend_worker"]),
            ("nobody", "info", "RECIPIENT_UNKNOWN", []),
            ("ceo\u0000x", "info", "RECIPIENT_UNKNOWN", []),
        ],
    )
    def test_is_kept_and_told_as_its_code_asks(self, nexus, to, kind, code, told):
        with pytest.raises(Denied) as refused:
            services.send_mail(
                caller=nexus.caller("backend_worker"), draft=draft(to, mail_type=kind), now=NOW
            )
        event = core.events.Event.by(
            nexus.caller("backend_worker"),
            "tool.denied",
            at=NOW,
            decision="deny",
            code=code,
            reason="refused",
        )
        refused.value.on_refused(event)
        assert MailRejection.objects.get().code == code
        assert list(Mail.objects.values_list("to_agent", flat=True)) == told
        assert Event.objects.filter(action="tool.denied").count() == 1

    def test_for_want_of_a_contract_is_told_too(self, nexus):
        send(nexus, "frontend_worker", "product_manager", type="question")
        (told,) = mails(nexus, "frontend_worker", sender="system")
        assert told.subject == "Your mail to product_manager was refused"
        assert "contract_ref" in told.body


class TestGrants:
    def test_are_rows_that_end_with_their_contract(self, nexus):
        contract = granting_contract(nexus, ContractState.IN_PROGRESS)
        assert ContactGrant.objects.filter(contract_ref=contract, closed_at=None).count() == 2
        contracts.close(nexus, contract, "cancelled")
        assert not ContactGrant.objects.filter(contract_ref=contract, closed_at=None).exists()

    def test_of_one_contract_do_not_serve_a_mail_that_names_another(self, nexus):
        granting_contract(nexus, ContractState.IN_PROGRESS)
        plain = contracts.issue(nexus, FRONTEND)
        answer = send(nexus, FRONTEND, PM, type="question", contract_ref=plain)
        assert answer.code == "CONTRACT_REQUIRED"
        assert send(nexus, FRONTEND, PM, type="question").code == "CONTRACT_REQUIRED"


class TestWhatALeaverDidNotRead:
    """A pack takes thousands of agents out of service in one transaction."""

    def asked(self, nexus):
        asked = []

        def keep(execute, sql, values, *rest):
            asked.append(len(values or ()))
            return execute(sql, values, *rest)

        agents = nexus.policy.agents
        leaver, successor = agents["backend_worker"], agents["it_manager"]
        with transaction.atomic(), connection.execute_wrapper(keep):
            left = services.notify_successor(
                caller=nexus.system, leaver=leaver, successor=successor, now=NOW
            )
        return left, asked

    def test_is_nothing_at_the_cost_of_one_statement(self, nexus):
        assert self.asked(nexus) == (0, [2])

    def test_is_counted_by_statements_that_do_not_grow_with_the_agents(self, nexus):
        send(nexus, "it_manager", "backend_worker")
        left, asked = self.asked(nexus)
        assert left == 1
        assert max(asked[:4]) < len(AGENTS)


class TestIds:
    def test_that_clash_are_made_again(self, nexus, monkeypatch):
        taken = sent(nexus, "backend_worker", "it_manager")
        offered = iter([taken, taken, taken, "MAIL-20261121090000000000-free"])
        monkeypatch.setattr(delivery, "timed_id", lambda *_: next(offered))
        assert sent(nexus, "qa_worker", "it_manager") == "MAIL-20261121090000000000-free"
        assert Event.objects.filter(action="mail.delivered").count() == 2

    def test_of_a_refusal_s_notice_that_clash_are_made_again_and_nothing_is_written_twice(
        self, nexus, monkeypatch
    ):
        taken = sent(nexus, "backend_worker", "it_manager")
        offered = iter([taken, taken, "MAIL-20261121090000000000-told"])
        monkeypatch.setattr(delivery, "timed_id", lambda *_: next(offered))
        assert send(nexus, "backend_worker", "ceo").code == "CONTACT_DENIED"
        assert mails(nexus, "backend_worker").pop().id == "MAIL-20261121090000000000-told"
        assert MailRejection.objects.get().code == "CONTACT_DENIED"
        assert Event.objects.filter(action="tool.denied").count() == 1

    def test_of_ten_thousand_mails_in_one_microsecond_leave_room_for_the_next(
        self, nexus, monkeypatch
    ):
        moment = f"MAIL-{NOW:%Y%m%d%H%M%S%f}"
        taken = {
            "organisation": nexus.organisation,
            "sender": nexus.agent("it_manager"),
            "recipient": nexus.agent("qa_worker"),
            "from_agent": "it_manager",
            "to_agent": "qa_worker",
            "mail_type": "info",
            "subject": "x",
            "body": "x",
        }
        Mail.objects.create(id=f"{moment}-0000", **taken)
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO mailroom_mail SELECT (json_populate_record("
                "m, json_build_object('id', %s || lpad(n::text, 4, '0')))).* "
                "FROM mailroom_mail m, generate_series(1, 9999) n",
                [f"{moment}-"],
            )
        assert Mail.objects.filter(id=f"{moment}-9999").exists()
        unlucky = itertools.count(10_000 - delivery.ATTEMPTS + 1)
        monkeypatch.setattr(delivery, "timed_id", lambda *_: f"{moment}-{next(unlucky):04d}")
        assert sent(nexus, "backend_worker", IT) == f"{moment}-10000"
        assert Mail.objects.count() == 10_001
        for _ in range(1000):
            assert len(timed_id("MAIL", NOW)) <= 32

    def test_of_one_moment_are_told_apart_by_letters_that_nobody_guesses(self):
        made = {timed_id("MAIL", NOW) for _ in range(10_000)}
        assert len(made) > 9_900
        assert {i[:25] for i in made} == {f"MAIL-{NOW:%Y%m%d%H%M%S%f}"}
