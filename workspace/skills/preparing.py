"""A skill before its frame: may the agent use it, and the prompt with what its commands print."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import cast

from core.decision import Allow, Code, Denied, refuse
from orgchart.policy.vocabulary import ToolMode
from toolbox.caller import Caller
from toolbox.sessions import caller_now
from workspace.git.holding import unchanged_work_tree
from workspace.models import Skill
from workspace.runs.recording import RecordedRun, recorded_run
from workspace.runs.view import WORK, mounts_of
from workspace.sandbox import driver
from workspace.sandbox.programs import CommandOutcome, ProgramLimits, shell
from workspace.skills import folders
from workspace.skills.definition import Definition
from workspace.skills.folders import OnDisk
from workspace.skills.prompting import Runner, prompt_of
from workspace.skills.rules import Found, can_use_skill
from workspace.users import user_of

SECONDS = 20.0
"""All commands of one skill together."""
MAX_PROMPT = 200_000


@dataclass(frozen=True, slots=True)
class PreparedSkill:
    """A skill that may be opened: what allowed it, its prompt, and the run of its commands."""

    definition: Definition
    digest: str
    allowed: Allow
    prompt: str
    run: RecordedRun | None


def prepare_skill(
    *,
    caller: Caller,
    name: str,
    arguments: str,
    now: datetime,
    person: bool = False,
    explained: bool = False,
) -> PreparedSkill:
    """Check that the caller, or a person for it, may use a skill, and run its commands.

    Commands take their time: no transaction should be open, and they are a run, which people can
    stop (Spec: skills 11). None runs where it is only `explained`. Raises Denied: TOOL_NOT_BOUND,
    NOT_FOUND, TOOL_DENIED, APPROVAL_REQUIRED, ISOLATION_UNAVAILABLE, TOO_LARGE; RATE_LIMITED where
    the run's turn does not come, INVALID_TRANSITION where it is stopped.
    """
    found = found_of(name, folders.read(name))
    allowed = caller.require(can_use_skill(caller.agent, name, found, person=person))
    skill = cast("Definition", found.definition)
    if explained or not skill.commands:
        prompt, run = _prompt(skill, arguments, _unrun), None
    else:
        still = partial(
            require_still_usable, caller=caller, name=name, digest=found.digest, person=person
        )
        prompt, run = _prompt_and_run(caller, skill, arguments, still, now)
    return PreparedSkill(skill, found.digest, allowed, prompt, run)


def require_still_usable(*, caller: Caller, name: str, digest: str, person: bool) -> None:
    """Check again what may have changed while commands ran (Spec: skills 19).

    Raises Denied: as `caller_now`, AGENT_PAUSED, VERSION_MISMATCH for another file, and what
    `can_use_skill` refuses.
    """
    at_present = caller_now(caller)
    if at_present.pause is not None:
        raise Denied(at_present.pause.refusal)
    found = found_of(name, folders.read(name))
    at_present.require(can_use_skill(at_present.agent, name, found, person=person))
    if found.digest != digest:
        raise refuse(
            Code.VERSION_MISMATCH,
            f"skill {name} changed while its commands ran",
            "start it again",
            rule="a person approves the exact file",
        )


def usable(*, caller: Caller) -> list[str]:
    """The skills that the caller could start by itself now, by the rule that `use_skill` asks."""
    return [
        name
        for name in sorted(caller.agent.skills)
        if isinstance(can_use_skill(caller.agent, name, found_of(name, folders.read(name))), Allow)
    ]


def found_of(name: str, on_disk: OnDisk | None) -> Found:
    """What the rules know of a skill."""
    if on_disk is None:
        return Found(definition=None)
    known = Skill.objects.filter(name=name).values_list("approved_digest", "was_approved")
    approved_digest, was_approved = known.first() or ("", False)
    return Found(
        definition=on_disk.definition,
        digest=on_disk.digest,
        problem=on_disk.problem,
        approved_digest=approved_digest,
        was_approved=was_approved,
    )


def _prompt_and_run(
    caller: Caller, skill: Definition, arguments: str, still: Callable[[], None], now: datetime
) -> tuple[str, RecordedRun]:
    driver.required()
    with recorded_run(caller=caller, paths=[skill.name], seconds=SECONDS, now=now) as run:
        prompt = _prompt(skill, arguments, _within_time(caller, run, still))
        run.end(0)
    run.require_not_stopped()
    return prompt, run


def _within_time(caller: Caller, run: RecordedRun, still: Callable[[], None]) -> Runner:
    """Runs commands as the caller's user, each within what is left of the time of all.

    `still` raises Denied where the skill may be used no more: no further command begins.

    They see of the repository what the caller may read, and nothing of it outside of coding mode
    (Spec: skills 11).
    """
    is_coding = caller.session.mode is ToolMode.CODING
    ends = time.monotonic() + SECONDS
    user = user_of(caller.agent.id)

    def outcome_of(command: str) -> CommandOutcome:
        still()
        if not run(f"$ {command}\n".encode()):
            return CommandOutcome(output=b"", status=None, cancelled=True)
        with unchanged_work_tree(caller) if is_coding else nullcontext():
            limits = ProgramLimits()
            left = max(0.0, ends - time.monotonic())
            program = shell(command, limits=replace(limits, seconds=min(limits.seconds, left)))
            seen = mounts_of(caller) if is_coding else ()
            folder = WORK if seen else program.folder
            return driver.run(replace(program, user=user, mounts=seen, folder=folder), watch=run)

    return outcome_of


def _unrun(_command: str) -> CommandOutcome:
    """What stands for a command that is not run, where it could be."""
    driver.required()
    return CommandOutcome(output=b"", status=0)


def _prompt(skill: Definition, arguments: str, run: Runner) -> str:
    """Run the commands and put the prompt together."""
    prompt = prompt_of(skill, arguments, run)
    if len(prompt) > MAX_PROMPT:
        raise refuse(
            Code.TOO_LARGE,
            f"the prompt of {skill.name} would have more than {MAX_PROMPT} characters",
            "give shorter args",
            rule="size of a prompt",
        )
    return prompt
