"""What the offices of the constitution can call (bound by office, to no other role)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from core.params import Page, Params, Reason, Reference, Title
from governance.cases import inputs, services
from governance.cases.content import Evidence, Text
from governance.cases.results import CaseInputs, CaseList, CaseMoved, CaseSubmitted
from governance.cases.vocabulary import Input, Ruling, Stage, State
from orgchart.catalogue import Source
from orgchart.policy.vocabulary import Office, ToolGroup
from toolbox.caller import Caller
from toolbox.registry import ANY_MODE, tool

EVERY_OFFICE = frozenset(Office)


class CaseOpen(Params):
    """A request that becomes a case."""

    title: Title
    request: Text


@tool(
    "case_open",
    source=Source.OFFICE,
    offices=EVERY_OFFICE,
    group=ToolGroup.GOVERNANCE,
    modes=ANY_MODE,
)
def case_open(caller: Caller, params: CaseOpen, now: datetime) -> CaseMoved:
    """Open a case on a request. Only the Analyst's office may."""
    return services.open_case(title=params.title, request=params.request, caller=caller, now=now)


class CaseSubmit(Params):
    """One stage of a case. There is no field for prose, motives or advice."""

    case_id: Reference
    stage: Literal["ANALYSIS", "TASKS", "IMPLEMENTATION", "REVIEW", "TEST"]
    content: dict[str, Any] = Field(
        default_factory=dict,
        description=(
            "ANALYSIS {what, why, constraints}; TASKS {tasks: [{id, task, verify_by}]}; "
            "IMPLEMENTATION {artifacts: [{path, sha256, body}]}; "
            "REVIEW {violations: [{task, article}]}; TEST {}"
        ),
    )
    outcome: (
        Literal[
            "OK",
            "NON_VERIFIABLE",
            "APPROVED",
            "REJECTED",
            "PASSED",
            "FAILED",
            "EVIDENCE_UNAVAILABLE",
        ]
        | None
    ) = Field(
        None,
        description=(
            "ANALYSIS: OK or NON_VERIFIABLE; REVIEW: APPROVED or REJECTED; TEST: PASSED, FAILED or "
            "EVIDENCE_UNAVAILABLE; else OK"
        ),
    )
    evidence: Annotated[list[Evidence], Field(max_length=500)] = Field(
        default_factory=list, description="TEST: one or more for every task"
    )


@tool(
    "case_submit",
    source=Source.OFFICE,
    offices=EVERY_OFFICE,
    group=ToolGroup.GOVERNANCE,
    modes=ANY_MODE,
)
def case_submit(caller: Caller, params: CaseSubmit, now: datetime) -> CaseSubmitted:
    """Submit your own office's stage when case_list says your_turn.

    Any other stage or time is a violation that aborts the round.
    """
    return services.submit_stage(
        case_id=params.case_id,
        stage=Stage(params.stage),
        content=params.content,
        outcome=params.outcome,
        evidence=params.evidence,
        caller=caller,
        now=now,
    )


class CaseInputsOf(Params):
    """A case whose legal inputs are wanted."""

    case_id: Reference
    names: (
        Annotated[
            list[
                Literal[
                    "REQUEST",
                    "ANALYSIS",
                    "TASKS",
                    "IMPLEMENTATION",
                    "VERIFY_BY",
                    "ARTIFACTS",
                    "REVIEW",
                    "TEST",
                    "PROTOCOL",
                ]
            ],
            Field(max_length=9),
        ]
        | None
    ) = Field(None, description="only these; without it all that your office may see")


@tool(
    "case_inputs",
    source=Source.OFFICE,
    offices=EVERY_OFFICE,
    group=ToolGroup.GOVERNANCE,
    modes=ANY_MODE,
    read_only=True,
    leaves_trace=True,
)
def case_inputs(caller: Caller, params: CaseInputsOf, now: datetime) -> CaseInputs:
    """Read the legal inputs of your office. Naming an illegal one is a violation."""
    return inputs.read_inputs(
        case_id=params.case_id,
        names=[Input(name) for name in params.names or ()],
        caller=caller,
        now=now,
    )


class CaseListOf(Page):
    """A page of cases."""

    state: Literal["open", "paused", "delivered", "stopped"] | None = None


@tool(
    "case_list",
    source=Source.OFFICE,
    offices=EVERY_OFFICE,
    group=ToolGroup.GOVERNANCE,
    modes=ANY_MODE,
    read_only=True,
)
def case_list(caller: Caller, params: CaseListOf, now: datetime) -> CaseList:
    """List the cases in which you hold an office, newest first, without content."""
    return inputs.list_cases(
        state=State(params.state) if params.state else None,
        cursor=params.cursor,
        limit=params.limit,
        caller=caller,
    )


class CaseDecide(Params):
    """The CONDUCTOR's ruling."""

    case_id: Reference
    decision: Literal["CONTINUE", "DELIVER", "STOP"]
    reason: Reason


@tool(
    "case_decide",
    source=Source.OFFICE,
    offices=EVERY_OFFICE,
    group=ToolGroup.GOVERNANCE,
    modes=ANY_MODE,
    destructive=True,
)
def case_decide(caller: Caller, params: CaseDecide, now: datetime) -> CaseMoved:
    """Rule on a case at its verdict, as its CONDUCTOR. Any other office commits a violation."""
    return services.decide_case(
        case_id=params.case_id,
        ruling=Ruling(params.decision),
        reason=params.reason,
        caller=caller,
        now=now,
    )
