"""What a wrong name is answered: the name that was meant, if the caller may know it."""

import pytest

from orgchart.policy.names import SHOWN, did_you_mean, unknown_agent
from orgchart.staffing import deactivate_agent
from tests.company import load_company

KNOWN = ("it_manager", "hr_manager", "ceo")


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("it_manger", "it_manager"),
        ("IT_Manager", "it_manager"),
        ("it-manager", "it_manager"),
        ("hr_managr", "hr_manager"),
        ("cto", ""),
        ("backend_worker", ""),
        ("x" * 500, ""),
        ("", ""),
    ],
)
def test_suggests_the_name_most_like_it(wrong, meant):
    assert did_you_mean(wrong, KNOWN) == (f"; did you mean {meant}?" if meant else "")
    message = unknown_agent(wrong, "n", known=KNOWN).message
    assert message.endswith("organisation" + (f"; did you mean {meant}?" if meant else ""))
    assert len(message) < SHOWN + 100


@pytest.fixture
def company(db):
    return load_company("nexus")


def mail(company, sender, to):
    answer = company.call(sender, "send_mail", to=to, type="info", subject="S", body="B")
    assert answer.code == "RECIPIENT_UNKNOWN"
    return answer.body["message"]


def test_a_mail_to_a_contact_spelled_wrong_names_it(company):
    assert "did you mean it_manager?" in mail(company, "backend_worker", "it_manger")


def test_no_answer_names_an_agent_that_is_no_contact(company):
    for wrong in ("hr_managr", "frontend_worke", "ceoo", "qa_worke"):
        assert "did you mean" not in mail(company, "backend_worker", wrong)


def test_no_answer_names_a_contact_that_is_deactivated(company, django_capture_on_commit_callbacks):
    assert "did you mean qa_worker?" in mail(company, "it_manager", "qa_worke")
    from django.utils import timezone

    deactivate_agent(
        handle="qa_worker", caller=company.person("Board"), now=timezone.now(), reason="r"
    )
    assert "did you mean" not in mail(company, "it_manager", "qa_worke")


def test_a_task_for_an_owner_spelled_wrong_names_it(company):
    made = company.call("it_manager", "task_create", subject="S").result
    answer = company.call("it_manager", "task_update", taskId=made["id"], owner="backend_worke")
    assert answer.code == "INVALID_PARAMS"
    assert "did you mean backend_worker?" in answer.body["message"]
