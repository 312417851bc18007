"""The buttons that pause and resume: two clicks, a reason, for the groups of the deed."""

import pytest
from django.contrib.auth import get_user

from core.permissions import PeopleGroup
from governance.models import Intervention
from orgchart.models import Pause

pytestmark = pytest.mark.django_db
REASON = {"reason": "It repeats itself."}


def page_of(row):
    return f"/admin/orgchart/{row._meta.model_name}/{row.pk}"


def as_seen():
    return {**REASON, "version": Pause.objects.latest("id").id}


@pytest.mark.parametrize(
    ("act", "undo", "handle"),
    [("pause", "resume", "backend_worker"), ("stop-everything", "resume-everything", None)],
)
def test_pauses_and_resumes_from_the_page(sign_in, company, act, undo, handle):
    board = sign_in(PeopleGroup.BOARD)
    row = company.agent(handle) if handle else company.organisation
    worker = company.agent("backend_worker")
    page = board.get(f"{page_of(row)}/change/").content.decode()
    assert f"/{act}/" in page
    assert f"/{undo}/" not in page
    assert board.post(f"{page_of(row)}/{act}/", {"reason": " "}).status_code == 200
    assert not Pause.objects.exists()
    assert board.post(f"{page_of(row)}/{act}/", REASON).status_code == 302
    assert company.call(worker.handle, "read_inbox").code == "AGENT_PAUSED"
    page = board.get(f"{page_of(row)}/change/").content.decode()
    assert f"/{undo}/" in page
    assert f"/{act}/" not in page
    assert REASON["reason"] in board.get(f"{page_of(row)}/{undo}/").content.decode()
    assert "paused" in board.get("/admin/orgchart/agent/").content.decode()
    seen = as_seen()
    assert "looked at is missing" in board.post(f"{page_of(row)}/{undo}/", REASON).content.decode()
    assert board.post(f"{page_of(row)}/{undo}/", {**seen, "version": 1 << 30}).status_code == 200
    assert company.call(worker.handle, "read_inbox").code == "AGENT_PAUSED"
    assert board.post(f"{page_of(row)}/{undo}/", seen).status_code == 302
    assert company.call(worker.handle, "read_inbox").code == "OK"


def test_is_shown_to_no_other_group(sign_in, company):
    observer = sign_in(PeopleGroup.OBSERVER)
    worker = company.agent("backend_worker")
    assert "/pause/" not in observer.get(f"{page_of(worker)}/change/").content.decode()
    assert observer.post(f"{page_of(worker)}/pause/", REASON).status_code == 403
    assert not Pause.objects.exists()


@pytest.mark.parametrize(
    ("by", "code"), [(PeopleGroup.BOARD, "AGENT_PAUSED"), (PeopleGroup.HR, "OK")]
)
def test_hr_lifts_no_pause_of_the_board(sign_in, company, by, code):
    """Spec: people 39."""
    worker = company.agent("backend_worker")
    assert sign_in(by).post(f"{page_of(worker)}/pause/", REASON).status_code == 302
    sign_in(PeopleGroup.HR).post(f"{page_of(worker)}/resume/", as_seen())
    assert company.call(worker.handle, "read_inbox").code == code
    sign_in(PeopleGroup.BOARD).post(f"{page_of(worker)}/resume/", as_seen())
    assert company.call(worker.handle, "read_inbox").code == "OK"


def test_hr_lifts_no_pause_of_a_person_who_left_the_board_since(sign_in, company):
    """Spec: people 39."""
    worker, board = company.agent("backend_worker"), sign_in(PeopleGroup.BOARD)
    board.post(f"{page_of(worker)}/pause/", REASON)
    get_user(board).groups.clear()
    sign_in(PeopleGroup.HR).post(f"{page_of(worker)}/resume/", as_seen())
    assert company.call(worker.handle, "read_inbox").code == "AGENT_PAUSED"


def test_the_board_takes_over_a_pause_of_hr(sign_in, company):
    """Spec: people 39."""
    worker = company.agent("backend_worker")
    page = f"{page_of(worker)}/take-over-pause/"
    board, hr = sign_in(PeopleGroup.BOARD), sign_in(PeopleGroup.HR)
    assert page not in board.get(f"{page_of(worker)}/change/").content.decode()
    hr.post(f"{page_of(worker)}/pause/", REASON)
    assert hr.post(page, REASON).status_code == 403
    assert page in board.get(f"{page_of(worker)}/change/").content.decode()
    assert board.post(page, {**as_seen(), "reason": "The Board looks at it."}).status_code == 302
    hr.post(f"{page_of(worker)}/resume/", as_seen())
    refused = company.call(worker.handle, "read_inbox")
    assert (refused.code, refused.body["details"]["resumed_by"]) == ("AGENT_PAUSED", ["Board"])
    assert refused.body["details"]["reason"] == "The Board looks at it."
    assert page not in board.get(f"{page_of(worker)}/change/").content.decode()
    kept = Intervention.objects.latest("id")
    assert kept.action_taken == "take_over_pause"
    assert kept.trigger_condition == f"paused: {REASON['reason']}"
    board.post(f"{page_of(worker)}/resume/", as_seen())
    assert company.call(worker.handle, "read_inbox").code == "OK"


def test_only_a_pause_of_hr_is_taken_over(sign_in, company):
    worker, board = company.agent("backend_worker"), sign_in(PeopleGroup.BOARD)
    page = f"{page_of(worker)}/take-over-pause/"
    assert "is not paused" in board.post(page, REASON).content.decode()
    board.post(f"{page_of(worker)}/pause/", REASON)
    assert "Board paused backend_worker" in board.post(page, as_seen()).content.decode()
    assert Intervention.objects.count() == 1


def test_another_pause_than_was_shown_is_not_taken_over(sign_in, company):
    """Spec: people 8: nobody has read why it was paused again."""
    worker, hr = company.agent("backend_worker"), sign_in(PeopleGroup.HR)
    hr.post(f"{page_of(worker)}/pause/", REASON)
    shown = as_seen()
    hr.post(f"{page_of(worker)}/resume/", shown)
    hr.post(f"{page_of(worker)}/pause/", {"reason": "It deletes files."})
    board = sign_in(PeopleGroup.BOARD)
    answer = board.post(f"{page_of(worker)}/take-over-pause/", shown)
    assert "It deletes files." in answer.content.decode()
    assert not Pause.objects.get(ended_at=None).by_board
