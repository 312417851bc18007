"""Refusals rephrased for people on a page, who have no tools to call; pure."""

from __future__ import annotations

from dataclasses import replace

from core.decision import Code, Deny


def for_people(deny: Deny, number: int, wanted: str = "") -> Deny:
    """The same refusal for a person on a page of task `number`.

    `wanted` is the requested state, if any.
    """
    rephrased = _rephrased(deny, f"Task #{number}", wanted.replace("_", " "))
    return replace(deny, message=rephrased[0], next_action=rephrased[1]) if rephrased else deny


def _rephrased(deny: Deny, task: str, wanted: str) -> tuple[str, str] | None:
    match deny.code:
        case Code.VERSION_MISMATCH:
            now = deny.details.get("current")
            return (
                f"{task} changed after you opened this page; it is at version {now} now",
                "reload the page and check it before you try again",
            )
        case Code.INVALID_TRANSITION:
            return _invalid_transition(deny, task, wanted)
        case Code.TASK_BLOCKED:
            blockers = [f"#{number}" for number in deny.details.get("blockedBy", ())]
            waited = ", ".join(blockers)
            if len(blockers) == 1:
                return (
                    f"{task} waits for {waited}, which is unfinished",
                    "complete or delete it first",
                )
            return (
                f"{task} waits for {waited}, which are unfinished",
                "complete or delete them first",
            )
        case Code.APPROVAL_REQUIRED:
            return (
                f"{task} is of a type that needs approval before it is completed",
                "open the task, approve the work, then complete it",
            )
        case _:
            return None


def _invalid_transition(deny: Deny, task: str, wanted: str) -> tuple[str, str]:
    states = [str(state).replace("_", " ") for state in deny.details.get("allowed", ())]
    if not states:
        return (
            f"{task} has ended and can no longer change",
            "create a new task if something is left to do",
        )
    return (
        f"{task} cannot become {wanted} from where it is now",
        f"move it to {' or '.join(states)}",
    )
