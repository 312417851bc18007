"""Running tests and the linter for an agent: decided, queued, isolated, recorded, kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from core.decision import Code, refuse
from orgchart.policy.paths import in_own_clone, is_of_company
from orgchart.policy.vocabulary import Access
from toolbox.caller import Caller
from workspace.files.places import Files, judged_tree, own_clone
from workspace.git.holding import unchanged_work_tree
from workspace.results import ProgramRun
from workspace.runs import python, view
from workspace.runs.recording import RecordedRun, recorded_run
from workspace.runs.rules import KEPT
from workspace.sandbox import driver
from workspace.sandbox.programs import CommandOutcome, Mount, Program, ProgramLimits
from workspace.services import require_paths, unavailable
from workspace.users import user_of

LIMITS = ProgramLimits(
    seconds=120,
    output=KEPT,
    memory=2 * 1024**3,
    memory_of_all=1024**3,
    file=64 * 1024**2,
    scratch=64 * 1024**2,
    processes=128,
)
SHOWN = 64 * 1024
"""Characters of a log's end that the answer holds."""
TIMED_OUT, KILLED = 124, 137


def require_run(caller: Caller, paths: Sequence[str]) -> list[str]:
    """The paths in the repository that the caller may run. Raises Denied, as the run would."""
    require_paths(caller, paths, Access.READ)
    inner = [in_own_clone(path, caller.handle) or path for path in paths]
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
        _require_seen(path, seen, code)
    with (
        recorded_run(
            caller=caller, paths=paths, commit=code.commit, seconds=LIMITS.seconds, now=now
        ) as run,
        unchanged_work_tree(caller),
    ):
        program = Program(
            argv=words,
            mounts=(*tools, *view.mounts_of(caller, code)),  # as they are when its turn has come
            folder=view.WORK,
            user=user_of(caller.agent.id),
            environment=python.ENVIRONMENT,
            limits=LIMITS,
        )
        outcome = driver.run(program, watch=run)
        run.end(outcome.status, timed_out=outcome.timed_out)
    return _result(run, outcome)


def _code_with(caller: Caller, paths: Sequence[str]) -> Files:
    """The commit that a judge judges, where its own clone has not all of the paths."""
    own = own_clone(caller)
    if all(view.kind_of(own.tree, path) for path in paths):
        return own
    return judged_tree(caller) or own


def _require_seen(path: str, seen: Sequence[Mount], code: Files) -> None:
    """Say early that there is nothing at a path, instead of letting the program say it oddly."""
    target = f"{view.WORK}/{path}".rstrip("/")
    is_seen = any(f"{target}/".startswith(f"{mount.target}/") for mount in seen)
    if is_seen and view.kind_of(code.tree, path):
        return
    raise refuse(
        Code.NOT_FOUND,
        f"there is no {path} in your clone",
        "write the file first, or check the path",
        rule="files in scope",
    )


def _result(run: RecordedRun, outcome: CommandOutcome) -> ProgramRun:
    text = outcome.output.decode("utf-8", errors="replace")
    ended = TIMED_OUT if outcome.timed_out else KILLED
    return {
        **run.log(),
        "commit": run.row.commit or None,
        "exit_code": ended if outcome.status is None else outcome.status,
        "output": text[-SHOWN:],
        "truncated": outcome.cut or len(text) > SHOWN,
        "timed_out": outcome.timed_out,
        "stopped_for": run.row.stopped_for or None,
    }
