"""Values that pages show in words; exports keep them as they are."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone
from django.utils.translation import override

from contracts.issuing.changes import NamedChange, SoughtLine
from contracts.models import OrgChangeLine
from contracts.vocabulary import ContractOutcome, OrgAct
from core.admin.base import printed
from core.deed_words import DONE
from core.permissions import PeopleGroup
from governance.cases.by_people.vocabulary import CaseAction
from governance.cases.vocabulary import MEANINGS, Fault, Signal
from governance.interventions.models import Intervention
from ledger.models import Event
from mailroom.models import MailRejection
from nexus_site.templatetags.nexus import case_words
from orgchart.models import ContactRule
from tasks.vocabulary import Status
from tests.admin.places import change_page, list_page

ROOT = Path(settings.BASE_DIR)
ROOMS = ("contracts", "governance", "mailroom", "orgchart", "toolbox", "workspace")


class TestSettingsOfAnOrganisation:
    def test_are_words_for_who_reads(self, sign_in, company):
        html = sign_in(PeopleGroup.OBSERVER).get(change_page(company.organisation)).content.decode()
        assert "2 hours <code" in html
        assert "['chat_safe'" not in html

    def test_say_the_modes_in_words(self, sign_in, company):
        html = sign_in(PeopleGroup.OBSERVER).get(change_page(company.organisation)).content.decode()
        assert 'Messages only <code class="nx-code">chat_safe</code>, May change code' in html

    def test_are_numbers_with_their_length_for_who_edits(self, board, company):
        html = board.get(change_page(company.organisation)).content.decode()
        assert 'value="7200"' in html
        assert 'data-of="id_setting_escalation_timeout">2 hours</b>' in html


class TestInterventions:
    def test_have_words_for_everything_that_people_do(self):
        sources = [p.read_text() for room in ROOMS for p in (ROOT / room).rglob("*.py")]
        found = {one for text in sources for one in re.findall(r'action_taken="(\w+)"', text)}
        found |= {f"close_contract_{outcome}" for outcome in ContractOutcome}
        found |= {f"move_task_{status}" for status in Status}
        found |= {*CaseAction} | {"pause_agent", "resume_agent", "stop_everything"}
        found |= {"resume_everything", "take_over_pause", "open_mode", "close_mode"}
        found |= {"correct_memory", "withdraw_memory", "release_task", "withdraw_task_approval"}
        assert found - set(DONE) == set()

    def test_are_shown_in_words_and_exported_as_they_are(self, board, company):
        call = {"operator": "ada", "trigger_condition": "contract submitted", "reason": "Good."}
        Intervention.objects.create(
            organisation=company.organisation, subject="contract:CON-1", timestamp=timezone.now(),
            operator_role="HUMAN_ADMIN", action_taken="close_contract_passed", **call,
        )  # fmt: skip
        html = board.get(list_page(Intervention)).content.decode()
        assert 'Close contract as passed <code class="nx-code">close_contract_passed</code>' in html
        assert 'Board <code class="nx-code">HUMAN_ADMIN</code>' in html
        found = board.get(list_page(Intervention), {"operator_role": "HR"}).content.decode()
        assert "close_contract_passed" not in found
        address = f"{list_page(Intervention)}export/"
        sent = board.post(address, {"format": "csv"}).getvalue().decode()
        assert "HUMAN_ADMIN" in sent
        assert "close_contract_passed" in sent


class TestContactRules:
    def test_are_shown_in_words_and_exported_as_they_are(self, board, company):
        html = board.get(list_page(ContactRule)).content.decode()
        assert 'an agent and its own manager <code class="nx-code">own</code>' in html
        assert re.search(r"field-under_contract[^>]*>\s*no\s*<", html)
        own = ContactRule.objects.filter(relation="own").first()
        ContactRule.objects.exclude(pk=own.pk).update(relation="any")
        found = board.get(list_page(ContactRule), {"relation": "own"}).content.decode()
        assert 'class="nx-code">any<' not in found
        sent = board.post(f"{list_page(ContactRule)}export/", {"format": "csv"}).getvalue().decode()
        assert "relation" in sent
        assert "needs_contract" in sent


class TestTheLogOfARun:
    def test_is_in_columns_as_the_program_wrote_it(self):
        assert printed("a  b\n<i>") == '<pre class="nx-file" translate="no">a  b\n&lt;i&gt;</pre>'
        assert printed("") == "–"


class TestACaseInWords:
    def test_has_a_meaning_for_each_signal_and_fault(self):
        assert set(MEANINGS) == {*Signal, *Fault}

    def test_shows_the_code_in_small_print(self):
        with override("zh-hans"):
            assert case_words("TEST_FAILED").startswith("测试未通过 <code")
        assert case_words("APPROVED") == "APPROVED"


class TestAChangeThatAContractAllows:
    @pytest.mark.parametrize("role", ["", "backend_worker"])
    def test_is_said_alike_everywhere(self, role):
        line = OrgChangeLine(act=OrgAct.HIRE, subject="ada", role=role)
        named = NamedChange(OrgAct.HIRE, "ada", role)
        sought = SoughtLine(OrgAct.HIRE, "ada", role, is_role_named=bool(role))
        assert str(line) == str(named) == str(sought)

    def test_is_in_the_language_of_the_page(self):
        line = OrgChangeLine(act=OrgAct.HIRE, subject="ada", role="qa_worker")
        with override("zh-hans"):
            assert str(line).endswith("ada（角色 qa_worker）")
            assert str(NamedChange(OrgAct.HIRE, "ada", "qa_worker")) == "hire ada as qa_worker"


class TestListsOfWhatHappened:
    @pytest.fixture
    def refused(self, company):
        company.call("backend_worker", "send_mail", to="ceo", type="info", subject="?", body="?")
        company.call(
            "backend_worker", "send_mail", to="it_manager", type="info", subject="?", body="?"
        )

    def test_name_agents_by_their_handles_and_shorten_ids(self, board, refused):
        html = board.get(list_page(Event)).content.decode()
        assert ">backend_worker</td>" in html
        assert ">MAIL-…-" in html

    @pytest.mark.parametrize(
        ("table", "columns"),
        [
            (Event, {"actor", "decision", "code", "reason", "subject", "for_agent_id"}),
            (MailRejection, {"from_agent", "to_agent", "code", "reason"}),
        ],
    )
    def test_are_exported_as_they_are(self, board, refused, table, columns):
        answer = board.post(f"{list_page(table)}export/", {"format": "csv"})
        head = b"".join(answer.streaming_content).decode().splitlines()[0]
        assert columns <= {*head.split(",")}
