"""People: their pages, their codes, and what they may not do."""

import re
import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.contrib.auth import get_user_model
from django.core import signing
from django.db import IntegrityError, InternalError, connection, transaction
from django.db.models import F, ProtectedError
from django.utils import timezone
from django_otp.plugins.otp_totp.models import TOTPDevice

from core.admin import acts
from core.decision import Denied
from governance.cases.by_people import rules, services
from governance.cases.records import facts_of
from governance.cases.vocabulary import Outcome, Stage
from governance.cases.waiting import repeated_violators
from governance.interventions import confirmation_codes
from governance.models import Artifact, Case, CodeAttempt, Intervention
from ledger.models import Event
from mailroom.models import OutgoingNotice
from orgchart.models import Agent, Organisation, Role
from orgchart.services import set_settings
from tests.admin.forms import filled, values_of
from tests.governance.cases.world import CONTENT, Play, code_of, enrolled
from tests.people import join
from tests.plans import most_of, renew_statistics

pytestmark = pytest.mark.django_db
AGAIN = """
INSERT INTO governance_violation (organisation_id, case_id, round, stage, agent_id, agent_name,
                                  offices, fault, code, reason, aborted, at)
SELECT organisation_id, case_id, round, stage, agent_id, agent_name, offices, fault, code, reason,
       aborted, at
FROM governance_violation CROSS JOIN generate_series(1, 3000) WHERE agent_id = %(agent)s
"""
TASKS = {"tasks": [{"id": "T9", "task": "Other", "verify_by": "python other.py"}]}


@pytest.fixture
def play(company):
    return Play(company)


def steered(play, service, action, params, *, by=None, now=None, device=None, **more):
    """Confirm an action with a fresh code, then carry it out."""
    row = play.row
    person = by or play.company.person("Board")
    now = now or timezone.now()
    purpose = services.purpose_in(
        facts_of(row), action, row.id, row.version, {**params, "reason": "because"}
    )
    token = confirmation_codes.preview_token(purpose, person)
    code = code_of(device, now) if device else "000000"
    confirmed = confirmation_codes.confirm(
        token=token, code=code, purpose=purpose, person=person, now=now, clock=now
    )
    return service(
        case_id=row.id, reason="because", expected_version=row.version, person=person, now=now,
        confirmed=confirmed, **more,
    )  # fmt: skip


def refused(call, code):
    with pytest.raises(Denied) as refusal:
        call()
    assert refusal.value.deny.code == code, refusal.value.deny


def amend(play, person, stage=Stage.TASKS, content=None, **more):
    params = {
        "case_id": play.id,
        "stage": stage,
        "content": content or TASKS,
        "reason": "clearer",
        "expected_version": play.row.version,
        "person": person,
        "now": timezone.now(),
    }
    return services.amend_case(**{**params, **more})


class TestAmending:
    def test_keeps_the_original_and_runs_the_later_stages_again(self, play):
        play.to("TEST")
        play.submit("TEST", "EVIDENCE_UNAVAILABLE")
        reviewer = play.company.person("Reviewer")
        assert amend(play, reviewer)["stage"] == "IMPLEMENTATION"
        assert play.at == ("open", "IMPLEMENTATION", 2)
        kept = Artifact.objects.filter(case_id=play.id, stage="TASKS").order_by("number")
        assert [(a.revision, a.author_name) for a in kept] == [(0, "planner"), (1, "human:alice")]
        assert play.inputs("implementer").result["inputs"]["TASKS"] == TASKS
        row = Intervention.objects.get()
        assert (row.operator_role, row.trigger_condition, row.action_taken, row.reason) == (
            "HUMAN_REVIEWER",
            "EVIDENCE_UNAVAILABLE",
            "amend_tasks",
            "clearer",
        )
        assert row.timestamp

    def test_is_done_a_limited_number_of_times(self, play, monkeypatch):
        monkeypatch.setattr(rules, "MOST_AMENDMENTS", 3)
        reviewer = play.company.person("Reviewer")
        play.to("REVIEW")
        play.submit("REVIEW", "APPROVED", by="planner")
        for stage in (Stage.TASKS, Stage.ANALYSIS, Stage.TASKS):
            amend(play, reviewer, stage, {**CONTENT, "TASKS": TASKS}[stage])
        before = play.row.version
        refused(lambda: amend(play, reviewer), "INVALID_TRANSITION")
        assert play.row.version == before

    def test_of_the_analysis_lifts_non_verifiable(self, play):
        play.submit("ANALYSIS", "NON_VERIFIABLE")
        amend(play, play.company.person("Reviewer"), Stage.ANALYSIS, CONTENT["ANALYSIS"])
        assert play.at == ("open", "TASKS", 1)

    def test_lifts_no_violation(self, play):
        play.to("REVIEW")
        play.submit("REVIEW", "APPROVED", by="planner")
        amend(play, play.company.person("Reviewer"))
        assert play.at == ("paused", "VERDICT", 2)

    @pytest.mark.parametrize(
        ("to", "failed", "stage", "goes_on"),
        [("TEST", ("TEST", "EVIDENCE_UNAVAILABLE"), Stage.TASKS, ("open", "IMPLEMENTATION", 2)),
         ("ANALYSIS", ("ANALYSIS", "NON_VERIFIABLE"), Stage.ANALYSIS, ("open", "TASKS", 1))],
    )  # fmt: skip
    def test_after_a_violation_during_the_pause_leaves_it_to_the_admin(
        self, play, to, failed, stage, goes_on
    ):
        set_settings(
            organisation=play.company.organisation, values={"board_email": "board@example.org"},
            caller=play.company.system, now=timezone.now(),
        )  # fmt: skip
        play.to(to)
        play.submit(*failed)
        assert play.inputs("tester", names=["REQUEST"]).code == "INPUT_DENIED"
        for _ in range(2):  # the second one lifts nothing either
            amend(play, play.company.person("Reviewer"), stage, {**CONTENT, "TASKS": TASKS}[stage])
            assert play.at == ("paused", "VERDICT", goes_on[2])
            assert play.row.paused_by == "STRUCTURAL_VIOLATION"
        told = [str(each.payload) for each in OutgoingNotice.objects.order_by("id")]
        assert len(told) == 2
        assert failed[1] in told[0]
        assert "STRUCTURAL_VIOLATION" in told[1]
        steered(
            play, services.extend_case, "extend_rounds", {"rounds": 0},
            device=enrolled("alice"), rounds=0,
        )  # fmt: skip
        assert play.decide("CONTINUE").status == 200
        assert play.at == goes_on

    def test_is_for_paused_cases_and_reviewers(self, play):
        play.to("REVIEW")
        company = play.company
        refused(lambda: amend(play, company.person("Reviewer")), "INVALID_TRANSITION")
        for group in ("Observer", "HR"):
            refused(lambda group=group: amend(play, company.person(group)), "NOT_YOURS")
        refused(lambda: amend(play, company.person("Board")), "APPROVAL_REQUIRED")

    @pytest.mark.parametrize("stage", [Stage.IMPLEMENTATION, Stage.REVIEW, Stage.TEST])
    def test_of_another_stage_is_refused_to_everybody(self, play, stage):
        play.to("TEST")
        play.submit("TEST", "EVIDENCE_UNAVAILABLE")
        reviewer = play.company.person("Reviewer")
        refused(lambda: amend(play, reviewer, stage), "STAGE_DENIED")

    def test_needs_a_reason_and_the_version_that_was_read(self, play):
        play.submit("ANALYSIS", "NON_VERIFIABLE")
        reviewer = play.company.person("Reviewer")
        refused(lambda: amend(play, reviewer, Stage.ANALYSIS, reason="  "), "INVALID_PARAMS")
        refused(lambda: amend(play, reviewer, expected_version=1), "VERSION_MISMATCH")
        assert not Intervention.objects.exists()


class TestOverruling:
    def overrule(self, play, device, outcome=Outcome.APPROVED, **more):
        return steered(
            play, services.overrule_review, "overrule_review", {"outcome": outcome.value},
            device=device, outcome=outcome, **more,
        )  # fmt: skip

    def test_shows_both_and_still_needs_the_test(self, play):
        play.to("REVIEW")
        play.submit("REVIEW", "REJECTED")
        self.overrule(play, enrolled("alice"))
        assert play.at == ("open", "TEST", 1)
        said = Artifact.objects.filter(case_id=play.id, stage="REVIEW").order_by("revision")
        assert [a.outcome for a in said] == ["REJECTED", "APPROVED"]
        assert play.inputs("conductor").result["inputs"]["REVIEW"] == {
            "outcome": "APPROVED",
            "round": 1,
            "overruled": True,
        }
        play.submit("TEST", "PASSED")
        assert play.decide("DELIVER").result["state"] == "delivered"

    def test_to_rejected_ends_the_round(self, play):
        play.to("TEST")
        self.overrule(play, enrolled("alice"), Outcome.REJECTED)
        assert play.at == ("open", "VERDICT", 2)

    def test_to_rejected_makes_no_violator_of_a_tester_at_work(self, play):
        """Spec: constitution 14. What it does before the next stage was submitted is too late."""
        play.to("TEST")
        self.overrule(play, enrolled("alice"), outcome=Outcome.REJECTED)
        assert play.submit("TEST", "PASSED").code == "INVALID_TRANSITION"
        assert play.decide("CONTINUE").status == 200
        assert play.submit("TEST", "PASSED").code == "INVALID_TRANSITION"
        assert play.submit("IMPLEMENTATION").status == 200
        assert not play.row.violations.exists()
        assert play.submit("TEST", "PASSED").code == "STAGE_DENIED"
        assert play.row.violations.exists()

    def test_is_refused_before_a_review_took_place(self, play):
        play.to("REVIEW")
        refused(lambda: self.overrule(play, enrolled("alice")), "INVALID_TRANSITION")

    def test_is_refused_where_a_signal_obliges_the_review(self, play):
        play.to("TASKS")
        play.submit("TASKS", content={"tasks": [{"id": "T1", "task": "x", "verify_by": ""}]})
        play.submit("IMPLEMENTATION")
        play.submit("REVIEW", "REJECTED")
        refused(lambda: self.overrule(play, enrolled("alice")), "INVALID_TRANSITION")

    def test_belongs_to_the_board(self, play):
        play.to("REVIEW")
        play.submit("REVIEW", "REJECTED")
        device = enrolled("alice")
        for minutes, group in enumerate(("Reviewer", "Observer", "HR")):
            person = play.company.person(group)
            now = timezone.now() + timedelta(minutes=minutes)
            call = lambda p=person, n=now: self.overrule(play, device, by=p, now=n)  # noqa: E731
            refused(call, "NOT_YOURS")


class TestExtendingAndEnding:
    def test_gives_the_conductor_the_case_again(self, play):
        play.to("REVIEW")
        play.submit("TEST", "PASSED")
        assert play.at == ("paused", "VERDICT", 2)
        steered(play, services.extend_case, "extend_rounds", {"rounds": 0},
                device=enrolled("alice"), rounds=0)  # fmt: skip
        assert play.at == ("open", "VERDICT", 2)
        assert play.decide("DELIVER").code == "INVALID_TRANSITION"
        assert play.decide("CONTINUE").result["stage"] == "IMPLEMENTATION"

    def test_ends_a_case_at_any_time(self, play):
        steered(play, services.end_case, "end_case", {}, device=enrolled("alice"))
        assert play.at == ("stopped", "ANALYSIS", 1)
        assert play.submit("ANALYSIS").code == "INVALID_TRANSITION"
        assert Intervention.objects.get().confirmed


class TestNotes:
    @pytest.mark.parametrize("group", ["Board", "Reviewer", "Observer"])
    def test_are_marked_and_open_to_all_offices(self, play, group):
        person = play.company.person(group)
        services.add_note(case_id=play.id, note="See ticket 7", person=person, now=timezone.now())
        assert Intervention.objects.get().reason == "[HUMAN_NOTE] See ticket 7"

    def test_are_not_hrs_and_never_empty(self, play):
        now, company = timezone.now(), play.company
        note = lambda group, text: services.add_note(  # noqa: E731
            case_id=play.id, note=text, person=company.person(group), now=now
        )
        refused(lambda: note("HR", "x"), "NOT_YOURS")
        refused(lambda: note("Observer", " "), "INVALID_PARAMS")


class TestTheDatabase:
    def test_refuses_what_no_person_may_do(self, play):
        play.to("VERDICT")
        case, artifacts = Case.objects.filter(id=play.id), Artifact.objects.filter(case_id=play.id)
        for change in (
            lambda: artifacts.update(outcome="APPROVED"),
            artifacts.delete,
            lambda: Intervention.objects.all().delete(),
            lambda: case.update(request="another"),
            case.delete,
        ):
            with pytest.raises((IntegrityError, InternalError)), transaction.atomic():
                change()

    def test_refuses_a_delivery_without_review_and_test(self, play):
        play.to("TEST")
        with pytest.raises(IntegrityError, match="a delivery needs REVIEW"), transaction.atomic():
            Case.objects.filter(id=play.id).update(state="delivered", stage="VERDICT")

    def test_refuses_an_intervention_without_a_reason(self, play):
        row = Intervention(
            organisation=play.company.organisation, subject="x", timestamp=timezone.now(),
            operator="a", operator_role="HUMAN_ADMIN", trigger_condition="t", action_taken="a",
            reason="  ",
        )  # fmt: skip
        with pytest.raises(IntegrityError, match="intervention_reason_given"), transaction.atomic():
            row.save()

    def test_keeps_a_person_who_entered_a_code(self, play):
        """What the person did stays as well: an intervention holds the name, not the row."""
        now, person = timezone.now(), play.company.person("Board")
        device = enrolled("alice")
        purpose = confirmation_codes.purpose_of("end_case", play.id, 1, {"reason": "r"})
        token = confirmation_codes.preview_token(purpose, person)
        confirmation_codes.confirm(
            token=token,
            code=code_of(device, now),
            purpose=purpose,
            person=person,
            now=now,
            clock=now,
        )
        with pytest.raises(ProtectedError), transaction.atomic():
            device.user.delete()
        assert CodeAttempt.objects.filter(user__username="alice").count() == 1

    def test_keeps_the_interventions_of_a_person_who_is_deleted(self, play):
        user = get_user_model().objects.create_user("olga")
        services.add_note(
            case_id=play.id, note="See ticket 7", now=timezone.now(),
            person=play.company.person("Observer", username="olga"),
        )  # fmt: skip
        user.delete()
        assert Intervention.objects.get().operator == "olga"


class TestCodes:
    now = timezone.now()

    def tried(self, play, code, person=None, now=None, **changes):
        person = person or play.company.person("Board")
        shown = {"action": "end_case", "case_id": play.id, "version": 1, "params": {"reason": "r"}}
        purpose = confirmation_codes.purpose_of(**shown)
        asked = confirmation_codes.purpose_of(**{**shown, **changes})
        token = confirmation_codes.preview_token(purpose, play.company.person("Board"))
        now = now or self.now
        return confirmation_codes.confirm(
            token=token, code=code, purpose=asked, person=person, now=now, clock=now
        )

    def test_are_used_once(self, play):
        code = code_of(enrolled("alice"), self.now)
        self.tried(play, code)
        refused(lambda: self.tried(play, code), "APPROVAL_REQUIRED")

    def test_that_are_right_and_sent_again_are_no_wrong_ones(self, play):
        """As by a double click; another code counts, and the same one for something else."""
        device = enrolled("alice")
        code = code_of(device, self.now)
        self.tried(play, code)
        for _ in range(confirmation_codes.TRIES + 2):
            refused(lambda: self.tried(play, code), "APPROVAL_REQUIRED")
        assert not CodeAttempt.objects.filter(accepted=False).exists()
        refused(lambda: self.tried(play, f"{(int(code) + 1) % 10**6:06}"), "APPROVAL_REQUIRED")
        refused(lambda: self.tried(play, code), "APPROVAL_REQUIRED")
        assert CodeAttempt.objects.filter(accepted=False).count() == 2
        later = self.now + timedelta(minutes=1)
        assert self.tried(play, code_of(device, later), now=later)

    @pytest.mark.parametrize(
        "changes",
        [
            {"action": "extend_rounds"},
            {"case_id": "CASE-other"},
            {"version": 2},
            {"params": {"reason": "another"}},
        ],
    )
    def test_confirm_only_what_was_shown(self, play, changes):
        code = code_of(enrolled("alice"), self.now)
        refused(lambda: self.tried(play, code, **changes), "APPROVAL_REQUIRED")
        assert self.tried(play, code)  # the code itself was not used up by that

    def test_belong_to_one_person(self, play):
        enrolled("bob")
        code = code_of(enrolled("alice"), self.now)
        bob = play.company.person("Board", username="bob")
        refused(lambda: self.tried(play, code, person=bob), "APPROVAL_REQUIRED")

    def test_of_ones_own_confirm_nothing_that_another_person_was_shown(self, play):
        code = code_of(enrolled("bob"), self.now)
        bob = play.company.person("Board", username="bob")
        refused(lambda: self.tried(play, code, person=bob), "APPROVAL_REQUIRED")
        assert not CodeAttempt.objects.exists()

    @pytest.mark.parametrize(("seconds", "accepted"), [(590, True), (610, False)])
    def test_confirm_what_was_shown_in_the_last_ten_minutes(
        self, play, monkeypatch, seconds, accepted
    ):
        code, person = code_of(enrolled("alice"), self.now), play.company.person("Board")
        purpose = confirmation_codes.purpose_of("end_case", play.id, 1, {"reason": "r"})
        earlier = time.time() - seconds
        with monkeypatch.context() as patch:
            patch.setattr(signing, "time", SimpleNamespace(time=lambda: earlier))
            token = confirmation_codes.preview_token(purpose, person)

        def confirm():
            return confirmation_codes.confirm(
                token=token,
                code=code,
                purpose=purpose,
                person=person,
                now=self.now,
                clock=self.now,
            )

        if accepted:
            assert confirm()
        else:
            refused(confirm, "APPROVAL_REQUIRED")

    def test_for_something_else_do_nothing_in_a_service(self, play):
        confirmed = self.tried(play, code_of(enrolled("alice"), self.now))
        call = lambda: services.end_case(  # noqa: E731
            case_id=play.id, reason="another", expected_version=1,
            person=play.company.person("Board"), now=self.now, confirmed=confirmed,
        )  # fmt: skip
        refused(call, "APPROVAL_REQUIRED")
        assert play.row.state == "open"

    def test_of_another_person_do_nothing_in_a_service(self, play):
        confirmed = self.tried(play, code_of(enrolled("alice"), self.now))
        bob = play.company.person("Board", username="bob")
        call = lambda: services.end_case(  # noqa: E731
            case_id=play.id, reason="r", expected_version=1, person=bob, now=self.now,
            confirmed=confirmed,
        )  # fmt: skip
        refused(call, "APPROVAL_REQUIRED")

    @pytest.mark.parametrize(
        ("seconds", "accepted"), [(-30, True), (30, True), (-60, False), (60, False)]
    )
    def test_allow_a_clock_that_is_a_step_off(self, play, seconds, accepted):
        code = code_of(enrolled("alice"), self.now + timedelta(seconds=seconds))
        if accepted:
            assert self.tried(play, code)
        else:
            refused(lambda: self.tried(play, code), "APPROVAL_REQUIRED")

    def test_lock_after_five_wrong_ones_with_a_notice(self, play):
        device = enrolled("alice")
        for _ in range(5):
            refused(lambda: self.tried(play, "000000"), "APPROVAL_REQUIRED")
        right = code_of(device, self.now)
        refused(lambda: self.tried(play, right), "APPROVAL_REQUIRED")
        assert CodeAttempt.objects.count() == 5
        later = self.now + timedelta(hours=1, seconds=1)
        assert self.tried(play, code_of(device, later), now=later)

    def test_that_a_clock_ahead_called_wrong_lock_nothing_after_it_was_set_back(self, play):
        """Every code of a person's device is wrong there."""
        device, ahead = enrolled("alice"), self.now + timedelta(days=10)
        right = code_of(device, self.now)
        for _ in range(5):
            refused(lambda: self.tried(play, right, now=ahead), "APPROVAL_REQUIRED")
        assert self.tried(play, right)

    def test_that_are_wrong_after_a_clock_was_set_back_lock_at_once(self, play):
        device, ahead = enrolled("alice"), self.now + timedelta(days=10)
        for now in [ahead] * 5 + [self.now]:
            refused(lambda now=now: self.tried(play, "000000", now=now), "APPROVAL_REQUIRED")
        right = code_of(device, self.now)
        refused(lambda: self.tried(play, right), "APPROVAL_REQUIRED")

    def test_that_are_wrong_are_told_to_the_board_and_recorded(self, play):
        set_settings(
            organisation=play.company.organisation, values={"board_email": "board@example.org"},
            caller=play.company.system, now=self.now,
        )  # fmt: skip
        enrolled("alice")
        for _ in range(5):
            refused(lambda: self.tried(play, "000000"), "APPROVAL_REQUIRED")
        assert Event.objects.filter(action="code.refused", actor="human:alice").count() == 5
        assert Event.objects.filter(action="code.locked").count() == 1
        assert "alice" in str(OutgoingNotice.objects.values_list("payload", flat=True).get())

    def test_that_are_wrong_lock_only_in_a_row(self, play):
        device, later = enrolled("alice"), self.now + timedelta(minutes=5)
        for _ in range(4):
            refused(lambda: self.tried(play, "000000"), "APPROVAL_REQUIRED")
        assert self.tried(play, code_of(device, self.now))
        refused(lambda: self.tried(play, "000000"), "APPROVAL_REQUIRED")
        assert self.tried(play, code_of(device, later), now=later)

    def test_of_a_device_that_is_not_in_use_confirm_nothing(self, play):
        device = enrolled("alice")
        TOTPDevice.objects.update(confirmed=False)
        refused(lambda: self.tried(play, code_of(device, self.now)), "APPROVAL_REQUIRED")
        assert not CodeAttempt.objects.exists()

    @pytest.mark.parametrize("code", ["", "abc", "0" * 16])
    def test_are_six_digits(self, play, code):
        enrolled("alice")
        refused(lambda: self.tried(play, code), "APPROVAL_REQUIRED")

    @pytest.mark.parametrize("change", ["other digits", "a zero in front", "no zero in front"])
    def test_are_the_six_digits_as_shown(self, play, change):
        device = enrolled("alice")
        now = next(
            moment
            for step in range(2000)
            if code_of(device, moment := self.now + timedelta(seconds=30 * step))[0] == "0"
        )
        code = code_of(device, now)
        wrong = {
            "other digits": "".join(chr(0x660 + int(digit)) for digit in code),
            "a zero in front": f"0{code}",
            "no zero in front": code.lstrip("0"),
        }[change]
        refused(lambda: self.tried(play, wrong, now=now), "APPROVAL_REQUIRED")
        assert self.tried(play, code, now=now)

    def test_need_an_authenticator(self, play):
        refused(lambda: self.tried(play, "000000"), "APPROVAL_REQUIRED")


class TestEnrolling:
    def confirmed(self):
        return list(TOTPDevice.objects.filter(user__username="alice", confirmed=True))

    @pytest.fixture
    def alice(self):
        get_user_model().objects.create(username="alice", is_staff=True)

    def test_takes_the_first_code_of_the_new_device(self, alice):
        device, now = confirmation_codes.new_device("alice"), timezone.now()
        wrong = f"{(int(code_of(device, now)) + 1) % 10**6:06d}"
        assert not confirmation_codes.enrol(
            username="alice", device_id=device.id, code=wrong, clock=now
        )
        assert self.confirmed() == []
        assert confirmation_codes.enrol(
            username="alice", device_id=device.id, code=code_of(device, now), clock=now
        )
        assert self.confirmed() == [device]

    def test_ends_a_device_that_was_shown_and_not_enrolled(self, alice):
        old, now = confirmation_codes.new_device("alice"), timezone.now()
        new = confirmation_codes.new_device("alice")
        assert not confirmation_codes.enrol(
            username="alice", device_id=old.id, code=code_of(old, now), clock=now
        )
        assert list(TOTPDevice.objects.all()) == [new]

    def test_gives_nobody_a_second_device(self, alice):
        mine, now = enrolled("alice"), timezone.now()
        second = confirmation_codes.new_device("alice")
        assert not confirmation_codes.enrol(
            username="alice", device_id=second.id, code=code_of(second, now), clock=now
        )
        assert self.confirmed() == [mine]


class TestPages:
    @pytest.fixture
    def client(self, client, db):
        from django.contrib.auth.models import Group

        user, _ = get_user_model().objects.get_or_create(username="alice", is_staff=True)
        user.groups.set([Group.objects.get(name="Board")])
        join(user)
        client.defaults["HTTP_HOST"] = "127.0.0.1"
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    @pytest.fixture
    def reviewer(self, db):
        from django.contrib.auth.models import Group
        from django.test import Client

        user = get_user_model().objects.create(username="rita", is_staff=True)
        user.groups.set([Group.objects.get(name="Reviewer")])
        join(user)
        client = Client(HTTP_HOST="127.0.0.1")
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    def test_list_says_in_words_why_a_case_is_paused(self, client, play):
        play.to("REVIEW")
        play.submit("REVIEW", "APPROVED", by="planner")
        page = client.get("/admin/governance/case/").content.decode()
        words = (
            'An agent acted outside its office <code class="nx-code">STRUCTURAL_VIOLATION</code>'
        )
        assert words in page

    def test_tell_the_story_of_a_case_in_order(self, client, play):
        play.to("REVIEW")
        play.submit("REVIEW", "APPROVED", by="planner")
        page = client.get(f"/admin/governance/case/{play.id}/change/").content.decode()
        places = [
            page.index(f"<strong>{s}</strong>") for s in ("ANALYSIS", "TASKS", "IMPLEMENTATION")
        ]
        assert places == sorted(places)
        assert page.index("STRUCTURAL VIOLATION") > places[-1]
        assert Artifact.objects.get(case_id=play.id, stage="TASKS").sha256 in page

    def test_say_that_no_agent_can_take_the_next_stage(self, client, play):
        """Spec: constitution 39."""
        play.to("TEST")
        address = f"/admin/governance/case/{play.id}/change/"
        assert "TEST is next, by the Tester." in client.get(address).content.decode()
        Agent.objects.filter(handle="tester").update(active=False)
        Organisation.objects.update(policy_version=F("policy_version") + 1)
        page = client.get(address).content.decode()
        assert "TEST is next, but no agent can do it" in page

    def test_enrol_show_a_preview_and_act_on_the_code(self, client, play):
        assert client.get("/admin/confirmation-codes/").status_code == 200
        assert not TOTPDevice.objects.exists()
        alice, sent = get_user_model().objects.get(username="alice"), {"password": "a word of hers"}
        alice.set_password(sent["password"])
        alice.save()
        client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
        begun = client.post("/admin/confirmation-codes/", sent, follow=True)
        assert "svg" in begun.content.decode()
        device = TOTPDevice.objects.get()
        earlier = timezone.now() - timedelta(seconds=30)
        client.post("/admin/confirmation-codes/", {"code": code_of(device, earlier)})
        address = f"/admin/governance/case/{play.id}/end/"
        shown = client.post(address, {"reason": "enough", "version": 1}).content.decode()
        assert "open → stopped" in shown
        assert play.at[0] == "open"
        token = re.search(r'name="token" value="([^"]+)"', shown).group(1)
        posted = {"reason": "enough", "version": 1, "token": token, "code": "000000"}
        assert "wrong" in client.post(address, posted).content.decode()
        assert play.at[0] == "open"
        posted["code"] = code_of(device, timezone.now())
        changed = client.post(address, {**posted, "reason": "another"}).content.decode()
        assert "belongs to something else" in changed
        assert client.post(address, posted).status_code == 302
        assert play.at[0] == "stopped"

    def test_take_the_codes_that_signing_in_takes(self, client, play, monkeypatch):
        """Also where the database has another time. Spec: constitution 20."""
        device, address = enrolled("alice"), f"/admin/governance/case/{play.id}/end/"
        ahead = lambda: timezone.now() + timedelta(minutes=2)  # noqa: E731
        monkeypatch.setattr(acts, "database_now", ahead)
        posted = {"reason": "enough", "version": 1}
        shown = client.post(address, posted).content.decode()
        posted["token"] = re.search(r'name="token" value="([^"]+)"', shown).group(1)
        posted["code"] = code_of(device, timezone.now())
        assert client.post(address, posted).status_code == 302
        assert play.at[0] == "stopped"

    @pytest.mark.parametrize(
        ("act", "field"),
        [
            ("amend-analysis", "what"), ("amend-tasks", "tasks"), ("overrule", "outcome"),
            ("extend", "rounds"), ("end", "reason"),
        ],
    )  # fmt: skip
    def test_ask_again_for_what_is_missing_when_it_is_confirmed(self, client, play, act, field):
        """Spec: constitution 35."""
        address = f"/admin/governance/case/{play.id}/{act}/"
        posted = {"reason": "enough", "version": 1, "code": "000000", field: ""}
        answer = client.post(address, posted)
        assert answer.status_code == 200
        assert answer.context_data["form"].errors[field] == ["This field is required."]
        assert play.at == ("open", "ANALYSIS", 1)

    def test_change_no_task_that_they_left_as_it_was(self, reviewer, play):
        """Spec: constitution 4, 22. A bar in a task moved its end into what the Tester sees."""
        play.submit("ANALYSIS", "OK")
        task = {"id": "T|1", "task": r"print a | b \ c", "verify_by": "run | grep"}
        play.submit("TASKS", "OK", content={"tasks": [task]})
        play.submit("IMPLEMENTATION", "OK")
        play.submit("REVIEW", "APPROVED")
        play.submit("TEST", "EVIDENCE_UNAVAILABLE")
        address = f"/admin/governance/case/{play.id}/amend-tasks/"
        form = reviewer.get(address).context_data["form"]
        posted = {"tasks": form.initial["tasks"], "reason": "as it was"}
        posted["version"] = play.row.version
        shown = reviewer.post(address, posted).content.decode()
        token = re.search(r'name="token" value="([^"]+)"', shown).group(1)
        assert (
            reviewer.post(address, {**posted, "token": token, "_confirm": "1"}).status_code == 302
        )
        kept = Artifact.objects.get(case_id=play.id, stage="TASKS", revision=1)
        assert kept.content == {"tasks": [task]}

    def test_confirm_nothing_that_a_violation_came_before(self, client, play):
        """Spec: constitution 38. It came while the person typed the code, and had no effect."""
        device, address = enrolled("alice"), f"/admin/governance/case/{play.id}/extend/"
        play.to("IMPLEMENTATION")
        for _ in range(3):
            play.submit("IMPLEMENTATION")
            play.submit("REVIEW", "REJECTED")
            play.decide("CONTINUE")
        assert play.at == ("paused", "VERDICT", 4)
        posted = {"reason": "enough", "version": play.row.version, "rounds": 1}

        def confirm():
            shown = client.post(address, posted).content.decode()
            token = re.search(r'name="token" value="([^"]+)"', shown).group(1)
            return shown, {**posted, "token": token, "code": code_of(device, timezone.now())}

        shown, confirmed = confirm()
        assert "acted outside its office" not in shown
        assert play.inputs("tester", names=["REQUEST"]).code == "INPUT_DENIED"
        assert "belongs to something else" in client.post(address, confirmed).content.decode()
        assert play.at[0] == "paused"
        assert not CodeAttempt.objects.exists()
        shown, confirmed = confirm()
        assert "acted outside its office" in shown
        assert play.inputs("tester", names=["REQUEST"]).code == "INPUT_DENIED"
        assert client.post(address, confirmed).status_code == 302
        assert play.at[0] == "open"

    @pytest.mark.parametrize("is_violated", [True, False])
    def test_say_why_an_amendment_leaves_a_case_paused(self, reviewer, play, is_violated):
        """Spec: constitution 38."""
        play.submit("ANALYSIS", "NON_VERIFIABLE")
        if is_violated:
            assert play.inputs("tester", names=["REQUEST"]).code == "INPUT_DENIED"
        posted = {**CONTENT["ANALYSIS"], "reason": "clearer", "version": play.row.version}
        address = f"/admin/governance/case/{play.id}/amend-analysis/"
        shown = reviewer.post(address, posted).content.decode()
        assert ("acted outside its office while the case was paused" in shown) is is_violated

    def test_ask_who_needs_no_code_to_confirm_what_was_shown(self, reviewer, play):
        """Spec: constitution 35."""
        play.submit("ANALYSIS", "NON_VERIFIABLE")
        address = f"/admin/governance/case/{play.id}/amend-analysis/"
        content = {"what": "W", "why": "Y", "constraints": "C", "reason": "clearer"}
        posted = {**content, "version": play.row.version, "_confirm": "1"}
        for token in ("", "forged"):
            answer = reviewer.post(address, {**posted, "token": token})
            assert "has expired" in answer.content.decode()
            assert play.at == ("paused", "VERDICT", 1)
        shown = reviewer.post(address, {**posted, "what": "X"}).content.decode()
        token = re.search(r'name="token" value="([^"]+)"', shown).group(1)
        other = reviewer.post(address, {**posted, "token": token}).content.decode()
        assert "belongs to something else" in other
        done = reviewer.post(address, {**posted, "what": "X", "token": token})
        assert done.status_code == 302
        assert play.at == ("open", "TASKS", 1)

    def test_show_paused_cases_and_repeated_violations_first(self, client, play):
        play.submit("TASKS", by="implementer")
        play.submit("TASKS", by="implementer")
        page = client.get("/admin/").content.decode()
        assert f"/admin/governance/case/{play.id}/change/" in page
        assert "committed 2 structural violations" in page

    def test_count_few_of_the_violations_of_an_agent_that_does_not_stop(self, client, play):
        for office in ("implementer", "tester", "implementer"):
            play.submit("TASKS", by=office)
        with connection.cursor() as cursor:
            cursor.execute(AGAIN, {"agent": play.company.agent("implementer").id})
        renew_statistics("governance_violation")
        touched, found = most_of(
            lambda: repeated_violators(Organisation.objects.all(), timezone.now())
        )
        assert [(each["agent"], each["count"]) for each in found] == [("implementer", "100+")]
        assert touched < 150
        assert "committed 100+ structural violations" in client.get("/admin/").content.decode()

    def test_open_a_case(self, client, company):
        page = f"/admin/governance/case/open/?organisation={company.organisation.id}"
        answer = client.post(page, {"title": "T", "request": "R"})
        assert answer.status_code == 302
        assert Case.objects.get().opened_by_name == "human:alice"
        assert client.get("/admin/governance/case/").status_code == 200
        assert client.get("/admin/governance/intervention/").status_code == 200
        assert client.get("/admin/governance/violation/").status_code == 200

    def test_note_once_however_often_the_form_is_sent(self, client, company):
        page = f"/admin/governance/case/{Play(company).id}/note/"
        form = filled(client, page, "act-form", reason="See ticket 7")
        before = Intervention.objects.count()
        client.post(page, form)
        again = client.post(page, form, follow=True)
        assert Intervention.objects.count() == before + 1
        assert "nothing was done again" in again.content.decode()

    def test_open_one_however_often_its_form_is_sent(self, client, company):
        page = f"/admin/governance/case/open/?organisation={company.organisation.id}"
        form = filled(client, page, "act-form", title="T", request="R")
        client.post(page, form)
        again = client.post(page, form, follow=True)
        assert Case.objects.count() == 1
        assert "nothing was done again" in again.content.decode()
        client.post(page, filled(client, page, "act-form", title="T", request="R"))
        assert Case.objects.count() == 2

    def test_open_a_case_where_the_page_said(self, client, company):
        """Spec: people 8: meanwhile another organisation comes first in the list."""
        shown = client.get("/admin/governance/case/open/", follow=True)
        page = shown.request["PATH_INFO"] + "?" + shown.request["QUERY_STRING"]
        form = values_of(shown, "act-form", title="T", request="R")
        other = Organisation.objects.create(slug="first", name="A first one")
        Role.objects.create(
            organisation=other, name="a", title="A", level=1, kind="worker", offices=["ANALYST"]
        )
        client.post(page, form)
        assert Case.objects.get().organisation == company.organisation

    def test_say_which_office_is_vacant(self, client, company):
        Agent.objects.filter(handle="tester").update(active=False)
        Organisation.objects.update(policy_version=F("policy_version") + 1)
        page = f"/admin/governance/case/open/?organisation={company.organisation.id}"
        answer = client.post(page, {"title": "T", "request": "R"})
        assert answer.status_code == 200
        assert "no active agent holds these offices: TESTER" in answer.content.decode()
        assert not Case.objects.exists()
