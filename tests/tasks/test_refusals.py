"""Refusals as people read them: sentences, and a step that a person at a page can take."""

import pytest

from core.decision import Code, deny
from tasks.pages.refusals import for_people


@pytest.mark.parametrize(
    ("refusal", "wanted", "sentence"),
    [
        (
            deny(Code.VERSION_MISMATCH, "…", "task_get", current=6),
            "",
            ("Task #3 changed after you opened this page; it is at version 6 now. "
            "Reload the page and check it before you try again."),
        ),
        (
            deny(Code.INVALID_TRANSITION, "…", "task_create", allowed=["in_progress", "deleted"]),
            "completed",
            ("Task #3 cannot become completed from where it is now. "
            "Move it to in progress or deleted."),
        ),
        (
            deny(Code.INVALID_TRANSITION, "…", "task_create", allowed=[]),
            "in_progress",
            ("Task #3 has ended and can no longer change. "
            "Create a new task if something is left to do."),
        ),
        (
            deny(Code.TASK_BLOCKED, "…", "task_recommend", blockedBy=["1"]),
            "in_progress",
            "Task #3 waits for #1, which is unfinished. Complete or delete it first.",
        ),
        (
            deny(Code.TASK_BLOCKED, "…", "task_recommend", blockedBy=["1", "2"]),
            "in_progress",
            "Task #3 waits for #1, #2, which are unfinished. Complete or delete them first.",
        ),
        (
            deny(Code.APPROVAL_REQUIRED, "…", "task_approve"),
            "completed",
            ("Task #3 is of a type that needs approval before it is completed. "
            "Open the task, approve the work, then complete it."),
        ),
        (deny(Code.NOT_YOURS, "ada is not of the Board", "ask one of them"), "", (
            "ada is not of the Board. Ask one of them.")),
        (deny(Code.NOT_FOUND, "there is none."), "", "there is none."),
    ],
)  # fmt: skip
def test_for_people(refusal, wanted, sentence):
    found = for_people(refusal, 3, wanted)
    assert found.sentence == sentence
    assert found.code is refusal.code
