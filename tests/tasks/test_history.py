"""What an event says in a task's history."""

import pytest

from tasks.pages.history import MAX_CHARACTERS, describe_event


@pytest.mark.parametrize(
    ("details", "line"),
    [
        ({}, ""),
        ({"version": 2}, "version 2"),
        (
            {"version": 2, "status": ["pending", "in_progress"], "owner": ["", "architect"]},
            "pending → in progress; owner none → architect; version 2",
        ),
        ({"owner": ["qa", ""], "status": "in_progress"}, "in progress; owner qa → none"),
        ({"addBlockedBy": ["1", "2"], "addBlocks": ["3"]}, "holds up #3; waits for #1, #2"),
        ({"fields": ["rank"], "forceAssign": True}, "across roles, by force; changed rank"),
        ({"requiredRole": None, "taskType": "testing", "blockedBy": []}, "type testing"),
        ({"comment": 7, "enforcement": "warn"}, ""),
    ],
)  # fmt: skip
def test_told(details, line):
    assert describe_event(details) == line


def test_a_notice_says_to_whom():
    assert (
        describe_event({"why": "#1 is completed."}, to="architect")
        == "to architect; #1 is completed."
    )


def test_a_long_part_is_cut():
    assert len(describe_event({"why": "x" * 5000})) == MAX_CHARACTERS
