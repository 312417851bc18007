"""Refusals in the words of people at a page, who have no tools to call; pure."""

from __future__ import annotations

from dataclasses import replace

from core.decision import Code, Deny


def for_people(deny: Deny, number: int, wanted: str = "") -> Deny:
    """The same refusal, said to whoever looks at a page of task `number`.

    `wanted` is the state that the task was to get, if any.
    """
    said = _said(deny, f"Task #{number}", wanted.replace("_", " "))
    return replace(deny, message=said[0], next_action=said[1]) if said else deny


def _said(deny: Deny, task: str, wanted: str) -> tuple[str, str] | None:
    match deny.code:
        case Code.VERSION_MISMATCH:
            now = deny.details.get("current")
            return (
                f"{task} changed after you opened this page; it is at version {now} now",
                "load the page again and look at it before you decide",
            )
        case Code.INVALID_TRANSITION:
            return _not_from_here(deny, task, wanted)
        case Code.TASK_BLOCKED:
            blockers = [f"#{number}" for number in deny.details.get("blockedBy", ())]
            them, are = ("it", "is") if len(blockers) == 1 else ("them", "are")
            return (
                f"{task} waits for {', '.join(blockers)}, which {are} unfinished",
                f"complete or delete {them} first",
            )
        case Code.APPROVAL_REQUIRED:
            return (
                f"{task} is of a type that is completed only after an approval",
                "open the task, approve the work there, and complete it then",
            )
        case _:
            return None


def _not_from_here(deny: Deny, task: str, wanted: str) -> tuple[str, str]:
    states = [str(state).replace("_", " ") for state in deny.details.get("allowed", ())]
    if not states:
        return (
            f"{task} has ended, and nothing of it changes any more",
            "create a new task if something is left to do",
        )
    return (
        f"{task} cannot become {wanted} from where it is now",
        f"move it to {' or '.join(states)}",
    )
