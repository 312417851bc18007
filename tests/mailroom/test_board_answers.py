"""The Board reads the top agent's reports and answers them by mail."""

import pytest

from core.decision import Denied
from mailroom.board_answers import answer_report
from tests.mailroom.world import NOW, call, mails, sent


@pytest.fixture
def report(nexus):
    return sent(nexus, "ceo", "board", type="report", subject="Month", body="All well.")


class TestAReportToTheBoard:
    def test_is_answered_into_the_inbox_of_its_sender(self, nexus, report):
        mail = answer_report(
            mail_id=report, text="Thank you.", person=nexus.person("Board"), now=NOW
        )
        (answer,) = mails(nexus, "ceo", sender="board")
        assert (answer.id, answer.reply_to_id, answer.subject) == (mail, report, "Re: Month")
        read = call(nexus, "ceo", "read_mail", mail_id=mail).result
        assert read["body"] == "Thank you."

    @pytest.mark.parametrize("group", ["HR", "Reviewer", "Observer"])
    def test_is_the_boards_to_answer(self, nexus, report, group):
        with pytest.raises(Denied) as refusal:
            answer_report(mail_id=report, text="x", person=nexus.person(group), now=NOW)
        assert refusal.value.deny.code == "NOT_YOURS"

    def test_is_not_any_other_mail(self, nexus):
        other = sent(nexus, "it_manager", "ceo")
        with pytest.raises(Denied) as refusal:
            answer_report(mail_id=other, text="x", person=nexus.person("Board"), now=NOW)
        assert refusal.value.deny.code == "NOT_FOUND"
