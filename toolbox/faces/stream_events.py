"""Every event that an agent's stream can hold: its kind, when it comes, its type, an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.actions import Action
from toolbox.faces import event_types as types

COMMIT = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"
EARLIER = "60303ae22b998861bce3b28f33eec1be758a213c"


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event: `kind` is its SSE `event:` field, `details` the type of its details."""

    kind: str
    action: Action
    summary: str
    details: Any
    example: Mapping[str, Any]


Row = tuple[str, Any, dict[str, Any]]
"""When the event comes, the type of its details, and an example of them."""


def _step(summary: str, before: str, after: str, version: int) -> Row:
    example = {"from_state": before, "state": after, "version": version}
    return summary, types.ContractStepDetails, example


def _change(summary: str, **example: Any) -> Row:
    return summary, types.TaskChangeDetails, {"version": 3, **example}


def _notice(summary: str, why: str) -> Row:
    return summary, types.NoticeDetails, {"why": why}


def _ended(summary: str, state: str) -> Row:
    return summary, types.FrameEndedDetails, {"frame_id": "7", "state": state}


MAIL: Mapping[Action, Row] = {
    Action.MAIL_DELIVERED: (
        "A mail is in your inbox.",
        types.MailDetails,
        {"from": "it_manager", "to": "backend_worker", "type": "info"},
    )
}
TOOL_DENIED: Mapping[Action, Row] = {
    Action.TOOL_DENIED: (
        "A call of yours was refused. The session goes on.",
        types.DenialDetails,
        {
            "rule": "contact rules",
            "next_action": "write to one of: it_manager",
            "mode": "chat_safe",
            "call_id": "4f7a9c2e51d04b8a9d582f6a1e4b7c90",
        },
    )
}
CONTRACT: Mapping[Action, Row] = {
    Action.CONTRACT_ISSUED: (
        "You have a new contract.",
        types.ContractIssuedDetails,
        {
            "to": "backend_worker",
            "contract_kind": "work",
            "mode": "coding",
            "workspace_scope": ["src/"],
            "assigned_branch": "feature/login",
            "state": "pending",
            "version": 1,
        },
    ),
    Action.CONTRACT_ACCEPTED: _step(
        "The assignee accepted a contract that you issued.", "pending", "in_progress", 2
    ),
    Action.CONTRACT_REPORTED: (
        "The assignee of a contract that you issued reports progress.",
        types.ContractReportedDetails,
        {"report": "12", "state": "in_progress", "version": 2},
    ),
    Action.CONTRACT_SUBMITTED: (
        "Work for a contract that you issued is submitted. Review it.",
        types.ContractSubmittedDetails,
        {
            "from_state": "in_progress",
            "state": "review",
            "version": 3,
            "report": "13",
            "submission": 1,
            "commit": COMMIT,
        },
    ),
    Action.CONTRACT_SENT_BACK: _step(
        "Your submission needs more work; `reason` says what.", "review", "in_progress", 4
    ),
    Action.CONTRACT_PASSED: _step("Your work passed.", "review", "passed", 4),
    Action.CONTRACT_FAILED: _step("Your work failed; `reason` says why.", "review", "failed", 4),
    Action.CONTRACT_CANCELLED: _step(
        "Your contract was cancelled; `reason` says why.", "in_progress", "cancelled", 3
    ),
    Action.CONTRACT_HANDED_OVER: (
        "You are now the issuer of a contract: its issuer was replaced.",
        types.ContractHandedOverDetails,
        {"from_state": "review", "state": "review", "version": 4, "issuer": "it_manager"},
    ),
    Action.VERDICT_GIVEN: (
        "QA judged work that was submitted to you.",
        types.VerdictDetails,
        {"verdict": "3", "finding": "PASS", "commit": COMMIT},
    ),
    Action.APPROVAL_USED: _step(
        "A deployment used an approval that you gave.", "in_progress", "in_progress", 3
    ),
    Action.APPROVAL_EXPIRED: _step(
        "An approval that you gave expired unused.", "pending", "cancelled", 2
    ),
    Action.BRANCH_PUSHED: (
        "Commits were pushed for a contract that you issued.",
        types.PushDetails,
        {"branch": "feature/login", "from": EARLIER, "commit": COMMIT},
    ),
    Action.BRANCH_REVIEWED: (
        "Your branch was reviewed; `reason` is the comment.",
        types.ReviewDetails,
        {"branch": "feature/login", "commit": COMMIT},
    ),
    Action.BRANCH_MERGED: (
        "Your branch was merged.",
        types.MergeDetails,
        {
            "branch": "feature/login",
            "commit": COMMIT,
            "main": "main",
            "merge": EARLIER,
            "verdict": "qa_worker",
        },
    ),
}
TASK: Mapping[Action, Row] = {
    Action.TASK_CLAIMED: _change(
        "A task was given to you, or taken from you.",
        owner=["", "backend_worker"],
        requiredRole="backend_worker",
    ),
    Action.TASK_STARTED: _change(
        "Somebody else started a task of yours.", status=["pending", "in_progress"]
    ),
    Action.TASK_UPDATED: _change("Somebody else changed a task of yours.", fields=["description"]),
    Action.TASK_COMPLETED: _change(
        "Somebody else completed a task of yours.", status=["in_progress", "completed"]
    ),
    Action.TASK_RELEASED: _change(
        "A task was taken from you and is free.",
        owner=["backend_worker", ""],
        requiredRole="backend_worker",
    ),
    Action.TASK_DELETED: _change(
        "Somebody else deleted a task of yours.", status=["pending", "deleted"]
    ),
    Action.TASK_APPROVED: _change("A task of yours was approved."),
    Action.TASK_DISAPPROVED: _change("The approval of a task of yours was taken back."),
    Action.TASK_LEASE_EXPIRED: (
        "Your claim on a task expired.",
        types.LeaseExpiredDetails,
        {"version": 3, "owner": ["backend_worker", ""], "status": "in_progress"},
    ),
    Action.TASK_JOINED: (
        "A task of yours waits for another task.",
        types.TaskJoinedDetails,
        {"version": 3, "with": "2"},
    ),
    Action.TASK_COMMENTED: (
        "A task of yours has a new comment.",
        types.CommentDetails,
        {"comment": 12},
    ),
    Action.TASK_UNBLOCKED: _notice(
        "A task that you can do can go on.", "task #2, which blocked task #4, is completed"
    ),
    Action.TASK_FREE: _notice(
        "A task that you can take is free again.",
        "Task #4 has no owner any more. It stays in_progress.",
    ),
    Action.TASK_LOST: _notice(
        "You lost your claim on a task.",
        "backend_worker's claim on task #4 expired at 2026-02-20 09:30:00 UTC",
    ),
}
FRAME: Mapping[Action, Row] = {
    Action.FRAME_OPENED: (
        "Work is delegated to you.",
        types.FrameOpenedDetails,
        {"frame_id": "7", "from": "nexus:it_manager", "to": "nexus:backend_worker", "depth": 1},
    ),
    Action.FRAME_TAKEN: (
        "The assignee began work that you delegated.",
        types.FrameTakenDetails,
        {"frame_id": "7", "by": "nexus:backend_worker"},
    ),
    Action.FRAME_RETURNED: _ended("Work that you delegated is done: read its result.", "returned"),
    Action.FRAME_FAILED: _ended("Work that you delegated failed; `reason` says why.", "failed"),
    Action.FRAME_CANCELLED: _ended(
        "Work that was delegated to you is no longer needed.", "cancelled"
    ),
    Action.FRAME_OPENED_BY_PERSON: (
        "A person started a skill for you.",
        types.FrameStartedDetails,
        {"frame_id": "7", "skill": "tidy"},
    ),
}
CASE: Mapping[Action, Row] = {
    Action.CASE_TURN: (
        "It is your office's turn in a case.",
        types.CaseTurnDetails,
        {"stage": "REVIEW", "round": 1, "state": "open"},
    )
}
RUN: Mapping[Action, Row] = {
    Action.RUN_PRINTED: (
        "A program of yours printed something.",
        types.RunPrintedDetails,
        {"run": "12", "from": 0, "output": "4 passed in 0.31s\n"},
    ),
    Action.RUN_STOPPED: (
        "A program of yours was stopped.",
        types.RunStoppedDetails,
        {"run": "12", "tool": "run_test"},
    ),
}

KINDS: Mapping[str, tuple[str, Mapping[Action, Row]]] = {
    "mail": ("mail:MAIL-20260220-093000-9C2E", MAIL),
    "tool_denied": ("", TOOL_DENIED),
    "contract": ("contract:CON-20260220-093000-4F7A", CONTRACT),
    "task": ("task:nexus/4", TASK),
    "frame": ("frame:7", FRAME),
    "case": ("case:CASE-20260220-093000-51D0", CASE),
    "run": ("run:12", RUN),
}
"""Each kind of event, with the `subject` of its examples."""

STREAM_EVENTS = tuple(
    StreamEvent(kind, action, *row)
    for kind, (_, rows) in KINDS.items()
    for action, row in rows.items()
)
"""Every event of the stream (Spec: wire 11), except its last: `event_types.PausedEvent`."""
