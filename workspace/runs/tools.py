"""What agents can run: their tests, and the linter."""

from __future__ import annotations

from datetime import datetime

from orgchart.policy.vocabulary import ToolGroup
from toolbox.caller import Caller
from toolbox.registry import CODING_ONLY, tool
from workspace.param_types import SomePaths
from workspace.results import ProgramRun
from workspace.runs import services


@tool(
    "run_test",
    group=ToolGroup.CODE,
    modes=CODING_ONLY,
    acts_outside=True,
    dry_run=lambda caller, params, now: services.require_run(caller, params.paths),
)
def run_test(caller: Caller, params: SomePaths, now: datetime) -> ProgramRun:
    """Run the tests at these paths of your clone, in a sandbox without network."""
    return services.run_tests(caller=caller, paths=params.paths, now=now)


@tool(
    "run_linter",
    group=ToolGroup.CODE,
    modes=CODING_ONLY,
    read_only=True,
    leaves_trace=True,
    acts_outside=True,
    dry_run=lambda caller, params, now: services.require_run(caller, params.paths),
)
def run_linter(caller: Caller, params: SomePaths, now: datetime) -> ProgramRun:
    """Check the code at these paths of your clone; nothing is changed."""
    return services.run_linter(caller=caller, paths=params.paths, now=now)
