"""People and paused cases in a real browser: codes, decisions, refusals, the auditor's reading."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone
from django_otp.plugins.otp_totp.models import TOTPDevice
from playwright.sync_api import expect

from core.permissions import PeopleGroup
from governance.models import Artifact, CodeAttempt, Intervention
from ledger.models import Seal
from ledger.sealer import seal_events
from tests.browser.eyes import NAMES, PASSWORD, make_people
from tests.company import load_company
from tests.governance.cases.world import Play, code_of
from tests.ledger.world import wait_until_ended

WHY = "The reviewer misread T1."
OVERRULE = "Overrule REVIEW"
NEXT_CODE = timedelta(seconds=30)
"""How far ahead of the clock a person's second code is: each code counts once."""


@pytest.fixture
def company(transactional_db):
    made = load_company("constitution")
    make_people()
    return made


@pytest.fixture
def play(company):
    """A case whose third and last round was rejected: it waits for a person."""
    made = Play(company, request="Greet every visitor by name", title="Greeting for visitors")
    made.to("IMPLEMENTATION")
    for number in range(3):
        made.submit("IMPLEMENTATION")
        made.submit("REVIEW", "REJECTED")
        if number < 2:
            made.decide("CONTINUE")
    assert made.at == ("paused", "VERDICT", 4)
    return made


class Desk:
    """A person in front of one case."""

    def __init__(self, page, address, play):
        self.page, self.play = page, play
        self.site = address
        self.case = f"{address}/admin/governance/case/{play.id}/change/"

    def begin(self, action, **fields):
        """From the case's page to the preview of an action."""
        page = self.page
        page.goto(self.case)
        page.locator("#choices").get_by_role("link", name=action, exact=True).click()
        for name, value in fields.items():
            page.fill(f"[name={name}]", value)
        page.get_by_role("button", name="Show what will happen").click()

    def confirm(self, code=None):
        if code is not None:
            self.page.fill("input[name=code]", code)
        self.page.get_by_role("button", name="Confirm:").click()


@pytest.fixture
def desk(enter, play, live_server):
    return lambda group: Desk(enter(group), live_server.url, play)


def device_of(group):
    """An authenticator that was enrolled earlier, before this sign-in."""
    user = get_user_model().objects.get(username=NAMES[group])
    return TOTPDevice.objects.create(user=user, name="t", confirmed=True)


def test_the_board_enrols_and_decides_the_paused_case(desk, play, complaints):
    board = desk(PeopleGroup.BOARD)
    page = board.page
    page.locator("#waiting").get_by_role("link", name=re.compile("Look and decide")).click()
    expect(page.locator(".nx-lead").first).to_contain_text("waits for a person: the last round")
    expect(page.locator(".nx-steps .nx-failed")).to_have_text(["REVIEW"])
    expect(page.locator(".nx-steps .nx-now")).to_have_text(["VERDICT"])
    page.goto(f"{board.site}/admin/confirmation-codes/")
    page.fill("input[name=password]", PASSWORD)
    page.get_by_role("button", name="Set it up").click()
    expect(page.get_by_alt_text("QR code of the authenticator")).to_be_visible()
    device = TOTPDevice.objects.get()
    page.fill("input[name=code]", "000000")
    page.get_by_role("button", name="Enrol").click()
    expect(page.locator("#act-form")).to_contain_text("The code is wrong")
    page.fill("input[name=code]", code_of(device, timezone.now()))
    page.get_by_role("button", name="Enrol").click()
    expect(page.get_by_text("Its codes confirm your interventions")).to_be_visible()

    board.begin(OVERRULE, reason=WHY)
    expect(page.locator("#effect")).to_contain_text("TEST is next, by the Tester.")
    expect(page.locator("#effect")).to_contain_text("paused → open")
    assert play.at[0] == "paused", "a preview changes nothing"
    board.confirm(code_of(device, timezone.now() + NEXT_CODE))
    expect(page.get_by_text("Done. TEST is next")).to_be_visible()
    expect(page.locator("#story ~ .nx-timeline-intervened")).to_contain_text(WHY)
    assert play.at == ("open", "TEST", 3)
    row = Intervention.objects.get()
    assert (row.operator, row.operator_role) == (NAMES[PeopleGroup.BOARD], "HUMAN_ADMIN")
    assert (row.trigger_condition, row.reason) == ("ITERATION_OVERFLOW", WHY)
    assert row.confirmed
    assert complaints == []


def test_an_override_without_a_code_or_with_a_wrong_one_does_nothing(desk, play):
    board = desk(PeopleGroup.BOARD)
    page = board.page
    board.begin(OVERRULE, reason=WHY)
    expect(page.get_by_text("you have no authenticator yet")).to_be_visible()
    assert page.get_by_role("button", name="Confirm:").count() == 0
    device = device_of(PeopleGroup.BOARD)
    board.begin(OVERRULE, reason=WHY)
    board.confirm("000000")
    expect(page.locator("#effect")).to_contain_text("paused → open")
    expect(page.get_by_text("the code is wrong or was used")).to_be_visible()
    expect(page.locator("#given")).to_contain_text(WHY)
    board.confirm("")
    expect(page.get_by_role("button", name="Confirm:")).to_be_visible()
    assert play.at[0] == "paused"
    assert not Intervention.objects.exists()
    assert CodeAttempt.objects.filter(accepted=False).count() == 1, "no code is no try"
    board.confirm(code_of(device, timezone.now()))
    expect(page.get_by_text("Done. TEST is next")).to_be_visible()


def test_a_reason_that_is_empty_is_refused_before_the_preview(desk, play):
    board = desk(PeopleGroup.BOARD)
    page = board.page
    page.goto(board.case)
    page.locator("#choices").get_by_role("link", name="End case").click()
    page.get_by_role("button", name="Show what will happen").click()
    assert page.evaluate("document.querySelector('[name=reason]').validity.valueMissing")
    page.fill("[name=reason]", "   ")
    page.get_by_role("button", name="Show what will happen").click()
    expect(page.locator("#act-form")).to_contain_text("This field is required")
    assert play.at[0] == "paused"
    assert not Intervention.objects.exists()


def test_a_stale_form_changes_nothing_and_says_so(desk, play):
    board = desk(PeopleGroup.BOARD)
    device, page = device_of(PeopleGroup.BOARD), board.page
    board.begin("Extend rounds", reason="One more", rounds="1")
    play.decide("STOP")
    board.confirm(code_of(device, timezone.now()))
    expect(page.locator("#act-form, .nx-card").first).to_contain_text("changed after you read it")
    assert play.at[0] == "stopped"
    assert not Intervention.objects.exists()
    page.locator("#act-form").get_by_role("link", name="Go back").click()
    expect(page.locator(".nx-lead").first).to_contain_text("The case is stopped.")
    assert page.locator("#choices").get_by_role("link", name="Extend rounds").count() == 0


def test_a_reviewer_amends_the_tasks_with_a_preview_and_no_code(desk, play):
    reviewer = desk(PeopleGroup.REVIEWER)
    page = reviewer.page
    page.goto(reviewer.case)
    expect(page.locator("#choices").get_by_role("link")).to_have_text(
        ["Amend ANALYSIS", "Amend TASKS", "Add note"]
    )
    page.locator("#choices").get_by_role("link", name="Amend TASKS").click()
    expect(page.locator("[name=tasks]")).to_have_value("T1 | Print ok | python ok.py")
    reviewer.begin(
        "Amend TASKS", reason="Clearer", tasks=r"T1 | Print ok | python ok.py \| grep ok"
    )
    expect(page.locator("#given")).to_contain_text(r"python ok.py \| grep ok")
    assert page.locator("input[name=code]").get_attribute("type") == "hidden"
    assert not Intervention.objects.exists()
    reviewer.confirm()
    expect(page.get_by_text("Done. The case waits for a person")).to_be_visible()
    kept = Artifact.objects.get(case_id=play.id, stage="TASKS", revision=1)
    assert kept.content["tasks"][0]["verify_by"] == "python ok.py | grep ok"
    assert Intervention.objects.get().operator_role == "HUMAN_REVIEWER"


class TestTheAuditor:
    def told(self, page):
        return page.locator("#story ~ section strong").all_inner_texts()

    def test_reads_the_story_in_order_and_verifies_it(self, desk, play):
        play.inputs("conductor")
        wait_until_ended()
        seal_events(now=timezone.now())
        auditor = desk(PeopleGroup.OBSERVER)
        page = auditor.page
        page.goto(auditor.case)
        again = ["IMPLEMENTATION", "REVIEW"]
        rounds = [*again, "CONDUCTOR decides", *again, "CONDUCTOR decides", *again]
        assert self.told(page) == ["Request", "ANALYSIS", "TASKS", *rounds, "Inputs read"]
        story = page.locator(".nx-page").inner_text()
        digests = Artifact.objects.filter(case_id=play.id).values_list("sha256", flat=True)
        assert play.row.request_sha256 in story
        assert all(digest in story for digest in digests)
        number = Seal.objects.latest("number").number
        assert story.count(f"seal {number}") == len(self.told(page))
        assert "not sealed yet" not in story
        expect(page.locator("#choices").get_by_role("link")).to_have_text(["Add note"])
        page.get_by_role("button", name="Verify this case").click()
        expect(page.locator("#verified strong")).to_have_text("This case is as it was written")
        expect(page.locator("#verified")).to_contain_text("9 compared with their SHA-256")
        expect(page.locator("#verified")).to_contain_text(f"{number}: signatures")

    @pytest.mark.parametrize(
        ("change", "found"),
        [
            ("UPDATE governance_artifact SET content = '{\"artifacts\": []}' WHERE number = 4",
             "The content of IMPLEMENTATION of round 1 does not match its SHA-256."),
            ("UPDATE governance_artifact SET outcome = 'APPROVED' WHERE number = 5",
             "The content of REVIEW of round 1 does not match its SHA-256."),
            ("UPDATE governance_case SET request = 'Another'",
             "The request does not match its SHA-256."),
            ("UPDATE ledger_event SET reason = 'Another' WHERE action = 'case.decided'",
             "its fields were changed"),
            ("DELETE FROM ledger_event WHERE action = 'case.inputs_read'",
             "this sealed event is gone"),
        ],
    )  # fmt: skip
    def test_finds_what_was_changed_behind_the_guards(self, desk, play, change, found):
        play.inputs("conductor")
        wait_until_ended()
        seal_events(now=timezone.now())
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            cursor.execute(change)
            changed = cursor.rowcount
            cursor.execute("SET session_replication_role = origin")
        assert changed
        auditor = desk(PeopleGroup.OBSERVER)
        auditor.page.goto(auditor.case)
        auditor.page.get_by_role("button", name="Verify this case").click()
        expect(auditor.page.locator("#verified strong")).to_have_text("This case was changed")
        expect(auditor.page.locator("#verified")).to_contain_text(found)
