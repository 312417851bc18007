"""The constitution by hand, never from the code (Spec: constitution 2 to 15)."""

OFFICES = ("ANALYST", "PLANNER", "IMPLEMENTER", "REVIEWER", "TESTER", "CONDUCTOR")
STAGES = ("ANALYSIS", "TASKS", "IMPLEMENTATION", "REVIEW", "TEST", "VERDICT")
STAGE = dict(zip(OFFICES, STAGES, strict=True))

# Who may see what.
INPUTS = {
    "ANALYST": {"REQUEST"},
    "PLANNER": {"ANALYSIS"},
    "IMPLEMENTER": {"TASKS"},
    "REVIEWER": {"TASKS", "IMPLEMENTATION"},
    "TESTER": {"VERIFY_BY", "ARTIFACTS"},
    "CONDUCTOR": {"REVIEW", "TEST", "PROTOCOL"},
}
EVERY_INPUT = set().union(*INPUTS.values())

OUTCOMES = {
    "ANALYSIS": ("OK", "NON_VERIFIABLE"),
    "TASKS": ("OK",),
    "IMPLEMENTATION": ("OK",),
    "REVIEW": ("APPROVED", "REJECTED"),
    "TEST": ("PASSED", "FAILED", "EVIDENCE_UNAVAILABLE"),
}

# Stage and outcome: the state, the stage and how many rounds further, in a case with rounds left.
LEADS = {
    ("ANALYSIS", "OK"): ("open", "TASKS", 0),
    ("ANALYSIS", "NON_VERIFIABLE"): ("paused", "VERDICT", 0),
    ("TASKS", "OK"): ("open", "IMPLEMENTATION", 0),
    ("IMPLEMENTATION", "OK"): ("open", "REVIEW", 0),
    ("REVIEW", "APPROVED"): ("open", "TEST", 0),
    ("REVIEW", "REJECTED"): ("open", "VERDICT", 1),
    ("TEST", "PASSED"): ("open", "VERDICT", 0),
    ("TEST", "FAILED"): ("open", "VERDICT", 1),
    ("TEST", "EVIDENCE_UNAVAILABLE"): ("paused", "VERDICT", 1),
}

# Signal, new round, pauses, REVIEW must reject.
SIGNALS = """
NON_VERIFIABLE        -  Y  -
UNVERIFIABLE_TASK     -  -  Y
UNAUTHORISED_CHANGE   -  -  Y
REJECTED              Y  -  -
TEST_FAILED           Y  -  -
EVIDENCE_UNAVAILABLE  Y  Y  -
ITERATION_OVERFLOW    -  Y  -
STRUCTURAL_VIOLATION  Y  Y  -
"""

# Which refusals abort the round, and which are plain mistakes.
VIOLATIONS = {
    "OTHER_STAGE": "STAGE_DENIED",
    "BEFORE_ITS_STAGE": "STAGE_DENIED",
    "SECOND_AUTHOR": "STAGE_DENIED",
    "SECOND_OFFICE": "STAGE_DENIED",
    "OTHER_RULING": "STAGE_DENIED",
    "RULING_TOO_EARLY": "STAGE_DENIED",
    "ILLEGAL_INPUT": "INPUT_DENIED",
}
MISTAKES = {
    "OPENED_BY_OTHER": "STAGE_DENIED",
    "OFFICE_VACANT": "INVALID_TRANSITION",
    "SUBMITTED_ALREADY": "STAGE_DENIED",
    "TURNED_DOWN": "INVALID_TRANSITION",
    "PAUSED": "INVALID_TRANSITION",
    "FINAL": "INVALID_TRANSITION",
    "NOT_DELIVERABLE": "INVALID_TRANSITION",
    "NOTHING_FAILED": "INVALID_TRANSITION",
    "MUST_REJECT": "INVALID_TRANSITION",
}


def submission(state, at, office, stage, *, written_by_self, written):
    """What submitting is answered with: OK, a code, and whether it is a violation."""
    if state in ("delivered", "stopped"):
        return "INVALID_TRANSITION", False
    if STAGE[office] != stage:
        return "STAGE_DENIED", True
    if state == "paused":
        return "INVALID_TRANSITION", False
    if stage == at:
        return "OK", False
    if written_by_self:
        return "STAGE_DENIED", False
    return "STAGE_DENIED", True
