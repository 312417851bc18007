"""Two at once: exactly one moves the case, on a real PostgreSQL."""

import pytest
from django.utils import timezone

from core.decision import Code
from governance.cases import rules, services
from governance.cases.content import Evidence
from governance.cases.vocabulary import Ruling, Stage
from governance.models import Artifact, Case, Violation
from tests.company import load_company
from tests.concurrency import at_once
from tests.governance.cases.world import AGENT, CONTENT, EVIDENCE, Play, code_of, enrolled

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 8


@pytest.fixture
def company(transactional_db):
    return load_company("constitution")


def codes_of_many(call):
    """The code of each answer to the same call, made at once by many."""
    answers = at_once([call] * AT_ONCE, raising=True)
    return [answer.value if isinstance(answer, Code) else "OK" for answer in answers]


@pytest.mark.parametrize(
    ("stage", "outcome"),
    [
        ("ANALYSIS", "OK"),
        ("ANALYSIS", "NON_VERIFIABLE"),
        ("TASKS", "OK"),
        ("IMPLEMENTATION", "OK"),
        ("REVIEW", "APPROVED"),
        ("REVIEW", "REJECTED"),
        ("TEST", "PASSED"),
        ("TEST", "FAILED"),
        ("TEST", "EVIDENCE_UNAVAILABLE"),
    ],
)
def test_a_stage_is_submitted_once(company, stage, outcome):
    play = Play(company).to(stage)
    caller, version = company.caller(AGENT[stage]), play.row.version
    answers = codes_of_many(
        lambda: services.submit_stage(
            case_id=play.id, stage=Stage(stage), content=CONTENT[stage], outcome=outcome,
            evidence=[Evidence(**e) for e in EVIDENCE] if stage == "TEST" else [],
            caller=caller, now=timezone.now(),
        )
    )  # fmt: skip
    assert answers.count("OK") == 1
    assert set(answers) <= {"OK", "STAGE_DENIED", "INVALID_TRANSITION"}
    assert play.row.version == version + 1
    assert Artifact.objects.filter(case_id=play.id, stage=stage).count() == 1
    assert not Violation.objects.exists()


def test_cases_of_one_opener_go_past_no_limit(company, monkeypatch):
    """Spec: constitution 40."""
    monkeypatch.setattr(rules, "MOST_OPENED", 3)
    caller, now = company.caller("analyst"), timezone.now()
    answers = codes_of_many(
        lambda: services.open_case(title="A case", request="Say ok", caller=caller, now=now)
    )
    assert answers.count("OK") == Case.objects.count() == 3
    assert set(answers) == {"OK", "QUOTA_EXCEEDED"}


@pytest.mark.parametrize("ruling", ["CONTINUE", "DELIVER", "STOP"])
def test_a_ruling_happens_once(company, ruling):
    play = Play(company)
    if ruling == "DELIVER":
        play.to("VERDICT")
    else:
        play.to("REVIEW").submit("REVIEW", "REJECTED")
    caller, version = company.caller("conductor"), play.row.version
    answers = codes_of_many(
        lambda: services.decide_case(
            case_id=play.id, ruling=Ruling(ruling), reason="r", caller=caller, now=timezone.now()
        )
    )
    assert answers.count("OK") == 1
    assert play.row.version == version + 1


def test_a_code_confirms_once_and_guesses_do_not_add_up(company):
    from governance.interventions import confirmation_codes
    from governance.models import CodeAttempt

    play, device, now = Play(company), enrolled("alice"), timezone.now()
    person = company.person("Board")
    purpose = confirmation_codes.purpose_of("end_case", play.id, 1, {"reason": "r"})
    token = confirmation_codes.preview_token(purpose, person)
    right = code_of(device, now)

    def confirm(code):
        return lambda: confirmation_codes.confirm(
            token=token, code=code, purpose=purpose, person=person, now=now, clock=now
        )

    assert codes_of_many(confirm("000000")).count("OK") == 0
    assert CodeAttempt.objects.count() == confirmation_codes.TRIES
    assert codes_of_many(confirm(right)).count("OK") == 0


def test_a_right_code_is_taken_by_one(company):
    from governance.interventions import confirmation_codes

    play, device, now = Play(company), enrolled("alice"), timezone.now()
    person = company.person("Board")
    purpose = confirmation_codes.purpose_of("end_case", play.id, 1, {"reason": "r"})
    token, code = confirmation_codes.preview_token(purpose, person), code_of(device, now)
    answers = codes_of_many(
        lambda: confirmation_codes.confirm(
            token=token, code=code, purpose=purpose, person=person, now=now, clock=now
        )
    )
    assert answers.count("OK") == 1
