"""Verbs on skills: scan folders, approve a file, start one (Spec: skills 3, skills 15)."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from typing import cast

from django.db import transaction

from core.actions import Action
from core.actors import Actor
from core.decision import Allow, Code, refuse
from core.deeds import Deed, require_deed
from core.events import Event
from core.interventions import record_intervention
from ledger.services import insert_event, record
from toolbox.caller import Caller
from toolbox.frames.services import enter_skill
from toolbox.registry import REGISTRY
from toolbox.rules import effective_tools
from workspace.models import Skill
from workspace.results import StartedSkill
from workspace.runs.view import WORK, mounts_of
from workspace.sandbox import driver
from workspace.sandbox.programs import CommandOutcome, Limits, shell
from workspace.skills import folders
from workspace.skills.definition import Definition
from workspace.skills.folders import OnDisk
from workspace.skills.prompting import Runner, prompt_of
from workspace.skills.rules import Found, can_use_skill
from workspace.users import user_of

PREFIX = "skill__"
SECONDS = 20.0
"""All commands of one skill together."""
MAX_PROMPT = 200_000
TO_BE_SEEN = "next_frame"
"""What a frame has too where a person opened it: its agent was answered no prompt, no frame_id."""


def scan(*, caller: Actor, now: datetime) -> list[Skill]:
    """Write down which skills the folders hold now; every change of a file is recorded.

    What is gone stays in the list, not installed, with its approval: the same file may come back.
    """
    require_deed(caller, Deed.READ_SKILLS)
    found = {skill.name: skill for skill in folders.discover()}
    with transaction.atomic():
        rows = {row.name: row for row in Skill.objects.select_for_update().order_by("name")}
        for name, on_disk in found.items():
            _note(rows.get(name), on_disk, caller, now)
        for name in set(rows) - set(found):
            if rows[name].installed:
                Skill.objects.filter(name=name).update(installed=False, seen_at=now)
                insert_event(_event(Action.SKILL_REMOVED, name, caller, now))
    return list(Skill.objects.order_by("name"))


def approve(*, name: str, digest: str, reason: str, caller: Actor, now: datetime) -> Skill:
    """Approve the exact file that a person has read, by its SHA-256 (Spec: skills 12).

    Raises Denied: INVALID_PARAMS for an empty reason, NOT_FOUND for a skill that is not there or
    not valid, VERSION_MISMATCH where the file is no longer the one that was read.
    """
    require_deed(caller, Deed.APPROVE_SKILL, reason=reason)
    on_disk = folders.read(name)
    if on_disk is None or on_disk.definition is None:
        problem = f": {on_disk.problem}" if on_disk else ""
        raise refuse(Code.NOT_FOUND, f"there is no valid skill {name[:64]!r}{problem}", "mend it")
    if on_disk.digest != digest:
        raise refuse(
            Code.VERSION_MISMATCH,
            f"{name} is no longer the file that was read: it is {on_disk.digest}",
            "read it again, then approve what you read",
            current=on_disk.digest,
        )
    with transaction.atomic():
        _note(Skill.objects.select_for_update().filter(name=name).first(), on_disk, caller, now)
        Skill.objects.filter(name=name).update(
            approved_digest=digest,
            approved_by=caller.actor,
            approved_at=now,
            approval_reason=reason,
        )
        insert_event(_event(Action.SKILL_APPROVED, name, caller, now, digest, reason))
    return Skill.objects.get(name=name)


def withdraw(*, name: str, reason: str, caller: Actor, now: datetime) -> None:
    """Take an approval back. Raises Denied: INVALID_PARAMS, NOT_FOUND."""
    require_deed(caller, Deed.APPROVE_SKILL, reason=reason)
    with transaction.atomic():
        row = Skill.objects.select_for_update().filter(name=name).exclude(approved_at=None).first()
        if row is None:
            raise refuse(Code.NOT_FOUND, f"no skill {name[:64]!r} is approved", "see the list")
        Skill.objects.filter(id=row.id).update(
            approved_digest="", approved_by="", approved_at=None, approval_reason=""
        )
        insert_event(_event(Action.SKILL_WITHDRAWN, name, caller, now, row.approved_digest, reason))
        record_intervention(
            caller,
            Deed.APPROVE_SKILL,
            subject=f"skill:{name}",
            trigger_condition=f"approved by {row.approved_by}",
            action_taken="withdraw_skill_approval",
            reason=reason,
            now=now,
        )


def use_skill(
    *,
    caller: Caller,
    name: str,
    arguments: str,
    now: datetime,
    person: bool = False,
    explained: bool = False,
) -> StartedSkill:
    """Open a skill for the caller as `skill__<name>`, in a frame on its session (Spec: skills 15).

    Its tools are those it allows, of those the caller has now. Only `explained`, to be rolled back,
    every rule is asked and no command runs. Raises Denied: TOOL_NOT_BOUND,
    NOT_FOUND, TOOL_DENIED, APPROVAL_REQUIRED, ISOLATION_UNAVAILABLE, INVALID_TRANSITION, TOO_LARGE.
    """
    on_disk = folders.read(name)
    found = _found(name, on_disk)
    allowed = caller.require(can_use_skill(caller.agent, name, found, person=person))
    skill = cast("Definition", found.definition)
    prompt = _prompt(skill, arguments, _unrun if explained else _within_time(caller))
    extra = (TO_BE_SEEN,) if person else ()
    has = {tool.name for tool in effective_tools(REGISTRY.all(), caller.holder)}
    with transaction.atomic():
        frame = enter_skill(
            caller=caller,
            name=f"{PREFIX}{name}",
            prompt=prompt,
            tools=[tool for tool in (*skill.allowed_tools, *extra) if tool in has],
            now=now,
        )
        caller.require(allowed)
        record(
            Action.SKILL_STARTED,
            by=caller,
            at=now,
            subject=f"skill:{name}",
            details={
                "digest": found.digest,
                "frame_id": str(frame.id),
                "commands": len(skill.commands),
            },
        )
    return {
        "frame_id": str(frame.id),
        "name": frame.name,
        "prompt": prompt,
        "allowed_tools": frame.allowed_tools or [],
        "due_at": frame.due_at,
    }


def usable(*, caller: Caller) -> list[str]:
    """The skills that the caller could start by itself now, by the rule that `use_skill` asks."""
    return [
        name
        for name in sorted(caller.agent.skills)
        if isinstance(can_use_skill(caller.agent, name, _found(name, folders.read(name))), Allow)
    ]


def _found(name: str, on_disk: OnDisk | None) -> Found:
    if on_disk is None:
        return Found(definition=None)
    approved = Skill.objects.filter(name=name).values_list("approved_digest", flat=True).first()
    return Found(
        definition=on_disk.definition,
        digest=on_disk.digest,
        problem=on_disk.problem,
        approved_digest=approved or "",
    )


def _within_time(caller: Caller) -> Runner:
    """Runs commands as the caller's user, each within what is left of the time of all.

    They see of the repository what the caller may read (Spec: skills 11).
    """
    ends = time.monotonic() + SECONDS
    user = user_of(caller.agent.id)

    def run(command: str) -> CommandOutcome:
        limits = Limits()
        left = max(0.0, ends - time.monotonic())
        program = shell(command, limits=replace(limits, seconds=min(limits.seconds, left)))
        seen = mounts_of(caller)
        folder = WORK if seen else program.folder
        return driver.run(replace(program, user=user, mounts=seen, folder=folder))

    return run


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


def _note(row: Skill | None, on_disk: OnDisk, caller: Actor, now: datetime) -> None:
    """Bring the row to what the file says; record it where the file is another."""
    definition = on_disk.definition
    Skill.objects.update_or_create(
        name=on_disk.name,
        defaults={
            "path": on_disk.path[:1024],
            "text": on_disk.text,
            "digest": on_disk.digest,
            "problem": on_disk.problem[:500],
            "description": definition.description if definition else "",
            "allowed_tools": list(definition.allowed_tools) if definition else [],
            "commands": list(definition.commands) if definition else [],
            "people_only": bool(definition and definition.people_only),
            "installed": True,
            "seen_at": now,
        },
    )
    if row is None or not row.installed:
        insert_event(_event(Action.SKILL_FOUND, on_disk.name, caller, now, on_disk.digest))
    elif row.digest != on_disk.digest:
        insert_event(_event(Action.SKILL_CHANGED, on_disk.name, caller, now, on_disk.digest))


def _event(
    action: Action, name: str, caller: Actor, now: datetime, digest: str = "", reason: str = ""
) -> Event:
    """An event of the whole installation: a skill belongs to no organisation."""
    return Event(
        action=action,
        actor=caller.actor,
        at=now,
        subject=f"skill:{name}",
        reason=reason,
        details={"digest": digest} if digest else {},
    )
