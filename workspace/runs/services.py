"""Running tests and the linter for an agent: decided, queued, isolated, recorded, kept."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from core.actions import Action
from core.decision import Code, refuse
from documents.tree import Unsafe
from ledger.services import record
from orgchart.policy.vocabulary import Access
from toolbox.caller import Caller
from workspace.files.places import Files, judged_tree, own_clone, own_tree
from workspace.models import Run
from workspace.outside import slot
from workspace.results import ProgramRun
from workspace.rules import is_of_company
from workspace.runs import python, queue, view
from workspace.runs.watching import Watcher
from workspace.sandbox import driver
from workspace.sandbox.programs import CommandOutcome, Limits, Mount, Program
from workspace.services import require_paths, unavailable
from workspace.tree import AGENTS, in_own_work_tree
from workspace.users import user_of

LIMITS = Limits(
    seconds=120,
    output=1024 * 1024,
    memory=2 * 1024**3,
    memory_of_all=1024**3,
    file=64 * 1024**2,
    scratch=64 * 1024**2,
    processes=128,
)
SHOWN = 64 * 1024
"""Characters of a log's end that the answer holds."""
LOGS = "runs"
TIMED_OUT, KILLED = 124, 137


def require_run(caller: Caller, paths: Sequence[str]) -> list[str]:
    """The paths in the repository that the caller may run. Raises Denied, as the run would."""
    require_paths(caller, paths, Access.READ)
    inner = [in_own_work_tree(path, caller.handle) or path for path in paths]
    outside = [path for path in inner if is_of_company(path)]
    if outside:
        raise refuse(
            Code.SCOPE_DENIED,
            f"{outside[0]} is not in the repository: only code of your clone runs",
            "name files or folders of the repository, such as tests/",
            rule="what runs is in the agent's clone (spec: hands 6)",
        )
    driver.required()
    return inner


def run_tests(*, caller: Caller, paths: Sequence[str], now: datetime) -> ProgramRun:
    """Run tests in the caller's sandbox (Spec: hands 6, hands 16).

    Raises Denied SCOPE_DENIED, CONTRACT_REQUIRED, NOT_FOUND, RATE_LIMITED, ISOLATION_UNAVAILABLE.
    """
    inner = require_run(caller, paths)
    words = (*python.test_words(), *(f"{view.WORK}/{path}" for path in inner))
    return _run(caller, inner, words, python.mounts(), now)


def run_linter(*, caller: Caller, paths: Sequence[str], now: datetime) -> ProgramRun:
    """Check code in the caller's sandbox (Spec: hands 7). Raises Denied as `run_tests`.

    DRIVER_UNAVAILABLE where no linter is installed.
    """
    inner = require_run(caller, paths)
    program = python.linter()
    if program is None:
        unavailable(caller, "linter")
    ruff = f"{python.TOOLS}/ruff"
    options = ("check", "--no-cache", "--output-format=concise", "--")
    words = (ruff, *options, *(f"{view.WORK}/{path}" for path in inner))
    return _run(caller, inner, words, (Mount(program, ruff),), now)


def _run(
    caller: Caller,
    paths: Sequence[str],
    words: tuple[str, ...],
    tools: tuple[Mount, ...],
    now: datetime,
) -> ProgramRun:
    code = _code_with(caller, paths)
    seen = view.mounts_of(caller, code)
    for path in paths:
        _require_seen(path, seen)
    program = Program(
        argv=words,
        mounts=(*tools, *seen),
        folder=view.WORK,
        user=user_of(caller.agent.id),
        environment=python.ENVIRONMENT,
        limits=LIMITS,
    )
    with slot("runs"):
        row = queue.take_turn(
            caller=caller, paths=paths, commit=code.commit, limits=LIMITS, now=now
        )
        watcher = Watcher(row, caller)
        outcome = CommandOutcome(output=b"", status=None)
        try:
            outcome = driver.run(program, watch=watcher)
        finally:
            watcher.end()
            digest = end_run(row=row, caller=caller, outcome=outcome, reason=watcher.reason)
    return _result(caller, row, outcome, digest)


def _code_with(caller: Caller, paths: Sequence[str]) -> Files:
    """The commit that a judge judges, where its own clone has not all of the paths."""
    own = own_clone(caller)
    if all((own.folder / path).exists() for path in paths):
        return own
    return judged_tree(caller) or own


def _require_seen(path: str, seen: Sequence[Mount]) -> None:
    """Say early that there is nothing at a path, instead of letting the program say it oddly."""
    target = f"{view.WORK}/{path}".rstrip("/")
    for mount in seen:
        inside = target == mount.target or target.startswith(f"{mount.target}/")
        if inside and (mount.source / target[len(mount.target) :].lstrip("/")).exists():
            return
    raise refuse(
        Code.NOT_FOUND,
        f"there is no {path} in your clone",
        "write the file first, or check the path",
        rule="files in scope",
    )


def end_run(*, row: Run, caller: Caller, outcome: CommandOutcome, reason: str) -> str:
    """Keep a run's log and how it ended, with its event; the digest of the log.

    `reason` is why it was stopped, or ''; a person's, if one stopped it meanwhile, stays.
    """
    digest = hashlib.sha256(outcome.output).hexdigest()
    now = timezone.now()
    text = outcome.output.decode("utf-8", errors="replace").replace("\x00", "\ufffd")
    with transaction.atomic():
        kept = Run.objects.select_for_update().filter(id=row.id)
        row.stopped_for = kept.values_list("stopped_for", flat=True).first() or reason
        kept.update(
            ended_at=now,
            exit_status=outcome.status,
            timed_out=outcome.timed_out,
            stopped_for=row.stopped_for,
            output=text,
            output_sha256=digest,
        )
        record(
            Action.RUN_ENDED,
            by=caller,
            at=now,
            subject=f"run:{row.id}",
            details={
                "exit_status": outcome.status,
                "timed_out": outcome.timed_out,
                "stopped_for": row.stopped_for,
                "output_sha256": digest,
            },
        )
    try:
        own_tree(caller, LOGS).write(_log_name(row), outcome.output)
    except (OSError, Unsafe):
        pass  # the row holds the log; a full disk must not hide how the run ended
    return digest


def _log_name(row: Run) -> str:
    return f"{row.tool}-{row.id}.log"


def _result(caller: Caller, row: Run, outcome: CommandOutcome, digest: str) -> ProgramRun:
    text = outcome.output.decode("utf-8", errors="replace")
    ended = TIMED_OUT if outcome.timed_out else KILLED
    return {
        "run_id": str(row.id),
        "commit": row.commit or None,
        "exit_code": ended if outcome.status is None else outcome.status,
        "output": text[-SHOWN:],
        "output_sha256": digest,
        "truncated": outcome.cut or len(text) > SHOWN,
        "timed_out": outcome.timed_out,
        "stopped_for": row.stopped_for or None,
        "log": f"{AGENTS}/{caller.handle}/{LOGS}/{_log_name(row)}",
    }
