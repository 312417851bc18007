"""Verbs on skills: scan folders, approve a file, start one (Spec: skills 3, skills 15)."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import F

from core.actions import Action
from core.actors import Actor
from core.database import fetch_row
from core.decision import Code, refuse, require_version
from core.events import Event
from core.interventions import record_intervention
from core.people import require_still
from core.permissions import Deed, require_deed
from ledger.services import insert_event, record
from toolbox.caller import Caller
from toolbox.frames.services import enter_skill
from toolbox.frames.stack import lock_agent
from toolbox.registry import REGISTRY
from toolbox.rules import effective_tools
from workspace.models import Skill
from workspace.results import StartedSkill
from workspace.skills import folders
from workspace.skills.folders import OnDisk
from workspace.skills.preparing import PreparedSkill, prepare_skill, require_still_usable

PREFIX = "skill__"
LOCK_SHARED = "SELECT id FROM workspace_skill WHERE name = %s FOR SHARE"
"""Agents of all organisations start one skill: they do not wait for each other."""
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


def approve(
    *,
    name: str,
    digest: str,
    reason: str,
    caller: Actor,
    now: datetime,
    expected_version: int | None = None,
) -> Skill:
    """Approve the exact file that a person has read, by its SHA-256 (Spec: skills 12).

    Raises Denied: INVALID_PARAMS for an empty reason, NOT_FOUND for a skill that is not there or
    not valid, VERSION_MISMATCH where the file is no longer the one that was read, or where it was
    approved, or an approval withdrawn, since `expected_version`.
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
        row = Skill.objects.select_for_update().filter(name=name).first()
        require_still(caller)
        if row is not None:
            _require_seen(row, expected_version)
        _note(row, on_disk, caller, now)
        Skill.objects.filter(name=name).update(
            version=F("version") + 1,
            approved_digest=digest,
            approved_by=caller.actor,
            approved_at=now,
            approval_reason=reason,
            was_approved=True,
        )
        insert_event(_event(Action.SKILL_APPROVED, name, caller, now, digest, reason))
    return Skill.objects.get(name=name)


def withdraw(
    *, name: str, reason: str, caller: Actor, now: datetime, expected_version: int | None = None
) -> None:
    """Take an approval back; where `expected_version` is given, only of then.

    Raises Denied: INVALID_PARAMS, NOT_FOUND, VERSION_MISMATCH where it was approved again since.
    """
    require_deed(caller, Deed.APPROVE_SKILL, reason=reason)
    with transaction.atomic():
        row = Skill.objects.select_for_update().filter(name=name).exclude(approved_at=None).first()
        if row is None:
            raise refuse(Code.NOT_FOUND, f"no skill {name[:64]!r} is approved", "see the list")
        _require_seen(row, expected_version)
        Skill.objects.filter(id=row.id).update(
            version=F("version") + 1,
            approved_digest="",
            approved_by="",
            approved_at=None,
            approval_reason="",
        )
        insert_event(_event(Action.SKILL_WITHDRAWN, name, caller, now, row.approved_digest, reason))
        record_intervention(
            caller,
            deed=Deed.APPROVE_SKILL,
            subject=f"skill:{name}",
            trigger_condition=f"approved by {row.approved_by}",
            action_taken="withdraw_skill_approval",
            reason=reason,
            now=now,
        )


def _require_seen(row: Skill, expected: int | None) -> None:
    step = "read in its history who approved or withdrew it, and why, then decide again"
    require_version(f"the approval of {row.name}", step, expected=expected, current=row.version)


def use_skill(
    *, caller: Caller, name: str, arguments: str, now: datetime, explained: bool = False
) -> StartedSkill:
    """Start a skill as its agent: `prepare_skill`, then `open_skill`, and raises what they raise.

    Only `explained`, to be rolled back, every rule is asked and no command runs.
    """
    skill = prepare_skill(
        caller=caller, name=name, arguments=arguments, now=now, explained=explained
    )
    return open_skill(caller=caller, skill=skill, now=now)


def open_skill(
    *, caller: Caller, skill: PreparedSkill, now: datetime, person: bool = False
) -> StartedSkill:
    """Open a skill for the caller as `skill__<name>`, in a frame on its session (Spec: skills 15).

    Its tools are those it allows, of those the caller has now. Raises Denied INVALID_TRANSITION,
    and after commands what `require_still_usable` raises.
    """
    extra = (TO_BE_SEEN,) if person else ()
    has = {tool.name for tool in effective_tools(REGISTRY.all(), caller.holder)}
    definition = skill.definition
    with transaction.atomic():
        if skill.run is not None:
            lock_agent(caller)  # first: what waits for it keeps a person from no skill
            fetch_row(LOCK_SHARED, [definition.name])
            require_still_usable(
                caller=caller, name=definition.name, digest=skill.digest, person=person
            )
        frame = enter_skill(
            caller=caller,
            name=f"{PREFIX}{definition.name}",
            prompt=skill.prompt,
            tools=[tool for tool in (*definition.allowed_tools, *extra) if tool in has],
            now=now,
        )
        caller.require(skill.allowed)
        record(
            Action.SKILL_STARTED,
            by=caller,
            at=now,
            subject=f"skill:{definition.name}",
            details={
                "digest": skill.digest,
                "frame_id": str(frame.id),
                "commands": len(definition.commands),
            },
        )
    return {
        "frame_id": str(frame.id),
        "name": frame.name,
        "prompt": skill.prompt,
        "allowed_tools": frame.allowed_tools or [],
        "due_at": frame.due_at,
        "run": skill.run.log() if skill.run else None,
    }


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
