"""Tasks as JSON files, read and written in the format of agent tools (Spec: tasks 7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from core.decision import Denied, require
from core.files import UNFINISHED, filled, place, plain_file
from core.limits import BIGGEST_VERSION
from core.strictjson import read_content, read_object
from orgchart.policy.compiled import Policy
from orgchart.policy.parties import BOARD_PARTY
from tasks.intake.feedback import LenientMoment, StorableText
from tasks.results import JsonObject, TaskResult
from tasks.rules.ownership import unknown_owner
from tasks.rules.validation import (
    can_type_role,
    validate_metadata,
    validate_role,
    validate_subject,
    validate_type,
)
from tasks.store import number_of, read_tasks_after, task_result
from tasks.vocabulary import MAX_TASK_SUBJECT, MAX_TASK_TEXT, Status


class InvalidTask(ValueError):
    """An object of a file that is no valid task."""


class UnfinishedExport(ValueError):
    """A folder that lacks the tasks that an export was killed before."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"an export into {folder} did not come to its end: tasks may be missing; export the "
            "tasks again, into this folder"
        )


MAX_DIGITS = 15
"""Digits of a new imported id; the organisation's next number follows the largest one."""
MAX_VERSION = BIGGEST_VERSION - 1_000_000
"""The highest version of an imported task: it leaves room for changes."""


class StoredTask(BaseModel):
    """A task as a file holds it; missing fields are undefined, and `version` is 1."""

    model_config = ConfigDict(extra="ignore")

    id: str = Field(min_length=1)
    subject: StorableText = Field(min_length=1, max_length=MAX_TASK_SUBJECT)
    description: StorableText = Field("", max_length=MAX_TASK_TEXT)
    active_form: StorableText | None = Field(None, alias="activeForm", max_length=MAX_TASK_SUBJECT)
    status: Status = Status.PENDING
    owner: StorableText | None = None
    metadata: JsonObject | None = None
    blocks: list[str] = Field(default_factory=list)
    blocked_by: list[str] = Field(default_factory=list, alias="blockedBy")
    created_at: LenientMoment | None = Field(None, alias="createdAt")
    updated_at: LenientMoment | None = Field(None, alias="updatedAt")
    required_role: StorableText | None = Field(None, alias="requiredRole")
    version: int = Field(1, ge=1, le=MAX_VERSION, strict=True)
    task_type: StorableText | None = Field(None, alias="taskType")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One object of a file: its place, and the task or the reason why it is invalid."""

    place: str
    task: StoredTask | None = None
    problem: str = ""


@dataclass(slots=True)
class TaskFiles:
    """The entries of all files of a path."""

    found: list[FileEntry] = field(default_factory=list)


def read_path(path: Path, policy: Policy) -> TaskFiles:
    """Read a file, or every `*.json` of a folder, in the order of their names.

    Raises UnfinishedExport.
    """
    if (path / UNFINISHED).exists():
        raise UnfinishedExport(path)
    paths = sorted(path.glob("*.json")) if path.is_dir() else [path]
    files = TaskFiles()
    taken: dict[int, str] = {}
    for file in paths:
        for found in _read_file(file, policy):
            number = int(found.task.id) if found.task else 0
            if found.task and number in taken:
                problem = f"id {number} is already used by {taken[number]}"
                files.found.append(FileEntry(found.place, None, problem))
                continue
            taken[number] = found.place
            files.found.append(found)
    return files


def _read_file(file: Path, policy: Policy) -> Iterator[FileEntry]:
    if not file.is_file():  # a pipe would be waited for, a device has no end
        yield FileEntry(file.name, None, "not readable: no plain file")
        return
    try:
        raw = read_content(file.read_bytes())
    except (OSError, ValueError) as problem:
        yield FileEntry(file.name, None, f"not readable: {problem}"[:300])
        return
    listed = raw if isinstance(raw, list) else [raw]
    for number, one in enumerate(listed, start=1):
        name = file.name if len(listed) == 1 else f"{file.name}[{number}]"
        try:
            yield FileEntry(name, _read_task(one, policy))
        except InvalidTask as problem:
            yield FileEntry(name, None, str(problem))


def _read_task(raw: Any, policy: Policy) -> StoredTask:
    """Read one object as a task. Raises InvalidTask with what is wrong."""
    if isinstance(raw, Mapping) and isinstance(raw.get("id"), int):
        raw = {**raw, "id": str(raw["id"])}  # some tools number their tasks without quotes
    try:
        task = StoredTask.model_validate(raw)
    except ValidationError as problems:
        first = problems.errors(include_url=False)[0]
        raise InvalidTask(
            f"{'.'.join(map(str, first['loc'])) or 'task'}: {first['msg']}"
        ) from problems
    for one in (task.id, *task.blocks, *task.blocked_by):
        if number_of(one) is None:
            raise InvalidTask(f"{one!r} is not a task id: ids are whole numbers from 1")
    try:
        validate_subject(task.subject)
        role = validate_role(policy, task.required_role or None, BOARD_PARTY)
        require(can_type_role(policy, role, validate_type(task.task_type or None)))
        read_object(validate_metadata(task.metadata or {}).encode())
        _require_owner(policy, task.owner or "")
    except Denied as refusal:
        raise InvalidTask(refusal.deny.message) from refusal
    return task


def _require_owner(policy: Policy, name: str) -> None:
    """An owner that left is one, too: what it completed stays its own, and the rest becomes free by
    the scheduled job, as all that it left (Spec: tasks 39).
    """
    if name and policy.resolve(name) is None:
        raise Denied(unknown_owner(name))


def export_tasks(organisation_id: int) -> Iterator[JsonObject]:
    """Every task of the organisation as its object, by number (Spec: tasks 1)."""
    last = 0
    while rows := read_tasks_after(organisation_id, last, EXPORTED_AT_ONCE):
        for row in rows:
            exported = task_result(row)
            yield {name: value for name, value in exported.items() if name in EXPORTED}
        last = rows[-1].number


EXPORTED = TaskResult.__required_keys__
EXPORTED_AT_ONCE = 1000


def write_path(path: Path, tasks: Iterable[JsonObject]) -> int:
    """Write one file for each task into a folder, or a list into a file called `*.json`.

    Whole or not at all (Spec: tasks 7): what was there before stays until the rest is written, and
    a folder that it was killed in is not read before the next export into it.
    """
    if path.suffix == ".json":
        listed = list(tasks)
        place(plain_file(path), to_json(listed, indent=2) + b"\n", replace=True)
        return len(listed)
    count = 0
    with filled(path) as write:
        for task in tasks:
            write(f"{task['id']}.json", to_json(task, indent=2) + b"\n")
            count += 1
    return count
