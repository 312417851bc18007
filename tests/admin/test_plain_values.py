"""Values that pages show in words; exports keep them as they are."""

import pytest
from django.utils.translation import override

from contracts.issuing.changes import NamedChange, SoughtLine
from contracts.models import OrgChangeLine
from contracts.vocabulary import OrgAct
from core.deeds import PeopleGroup
from governance.cases.vocabulary import MEANINGS, Fault, Signal
from ledger.models import Event
from mailroom.models import MailRejection
from nexus_site.templatetags.nexus import case_words
from tests.admin.places import change_page, list_page


class TestSettingsOfAnOrganisation:
    def test_are_words_for_who_reads(self, sign_in, company):
        html = sign_in(PeopleGroup.OBSERVER).get(change_page(company.organisation)).content.decode()
        assert "2 hours <code" in html
        assert "['chat_safe'" not in html

    def test_are_numbers_with_their_length_for_who_edits(self, board, company):
        html = board.get(change_page(company.organisation)).content.decode()
        assert 'value="7200"' in html
        assert 'data-of="id_setting_escalation_timeout">2 hours</b>' in html


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
