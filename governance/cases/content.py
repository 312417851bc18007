"""The form of each stage's content: no field for prose, motives or advice exists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError

from core.blank import is_blank
from core.decision import Code, Denied, refuse
from core.params import Params, sentence_of
from governance.cases.vocabulary import OFFICE_OF, OFFICES, Outcome, Signal, Stage
from orgchart.policy.paths import denying_pattern, normal_path

Text = Annotated[str, StringConstraints(min_length=1, max_length=20_000, pattern=r"\S")]
Short = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"\S")]
TaskId = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^\S+$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
RULE = "constitution: the form of each stage"


class Analysis(Params):
    """What the Analyst submits."""

    what: Text
    why: Text
    constraints: Text | Annotated[list[Text], Field(max_length=100)]


class NoAnalysis(Params):
    """What the Analyst submits of a request that cannot be verified: as much as there is."""

    what: str = Field("", max_length=20_000)
    why: str = Field("", max_length=20_000)
    constraints: str | list[str] = ""


class PlannedTask(Params):
    """One task; an empty `verify_by` says that it cannot be verified, so REVIEW must reject."""

    id: TaskId
    task: Text
    verify_by: Annotated[str, StringConstraints(max_length=20_000)]


class Tasks(Params):
    """What the Planner submits."""

    tasks: Annotated[list[PlannedTask], Field(min_length=1, max_length=100)]


class MadeArtifact(Params):
    """One file of an IMPLEMENTATION; `sha256` is the digest of the UTF-8 body."""

    path: Annotated[str, StringConstraints(min_length=1, max_length=1024)]
    sha256: Sha256
    body: Annotated[str, StringConstraints(max_length=900_000)]


class Implementation(Params):
    """What the Implementer submits."""

    artifacts: Annotated[list[MadeArtifact], Field(min_length=1, max_length=200)]


class Breach(Params):
    """Which task or article an IMPLEMENTATION breaks."""

    task: TaskId
    article: Short


class Review(Params):
    """What the Reviewer submits in addition to its outcome."""

    violations: Annotated[list[Breach], Field(max_length=200)] = Field(default_factory=list)


class Nothing(Params):
    """What the Tester submits in addition to outcome and evidence: nothing."""


class Evidence(Params):
    """One command that was run for a task, its exit status and the digest of its output."""

    task: TaskId
    command: Text
    exit_status: Annotated[int, Field(ge=-255, le=255)]
    output_sha256: Sha256


FORMS: Mapping[Stage, type[Params]] = {
    Stage.ANALYSIS: Analysis,
    Stage.TASKS: Tasks,
    Stage.IMPLEMENTATION: Implementation,
    Stage.REVIEW: Review,
    Stage.TEST: Nothing,
}


def checked_outcome(stage: Stage, given: str | None) -> Outcome:
    """The outcome of a stage. Raises Denied INVALID_PARAMS for one that the stage does not have."""
    legal = OFFICES[OFFICE_OF[stage]].outcomes
    if given is None and Outcome.OK in legal:
        return Outcome.OK
    if given not in legal:
        raise _invalid("outcome", f"{stage} ends with one of {', '.join(legal)}")
    return Outcome(given)


def checked_content(stage: Stage, outcome: Outcome, content: Mapping[str, Any]) -> dict[str, Any]:
    """The content in its stage's form. Raises Denied INVALID_PARAMS."""
    form = NoAnalysis if outcome is Outcome.NON_VERIFIABLE else FORMS[stage]
    try:
        found = form.model_validate(content)
    except ValidationError as problems:
        first = problems.errors(include_url=False)[0]
        place = ".".join(["content", *(str(part)[:64] for part in first["loc"])])
        raise _invalid(place, sentence_of(first)) from problems
    if isinstance(found, Tasks):
        _require_once("content.tasks", [task.id for task in found.tasks])
    if isinstance(found, Implementation):
        _require_once("content.artifacts", [made.path for made in found.artifacts])
        for made in found.artifacts:
            if hashlib.sha256(made.body.encode()).hexdigest() != made.sha256:
                raise _invalid("content.artifacts", f"{made.path}: sha256 is not the body's digest")
    if isinstance(found, Review) and found.violations and outcome is Outcome.APPROVED:
        raise _invalid("outcome", "a REVIEW that names violations is REJECTED")
    return found.model_dump()


def require_tasks_known(stage: Stage, content: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raises Denied INVALID_PARAMS for a REVIEW that names a task which TASKS does not have."""
    if stage is Stage.REVIEW:
        for each in content["violations"]:
            if each["task"] not in known:
                raise _invalid("content.violations", f"there is no task {each['task']}")


def checked_evidence(
    stage: Stage, outcome: Outcome, evidence: Sequence[Evidence], tasks: Sequence[str]
) -> list[dict[str, Any]]:
    """The evidence of a TEST; PASSED has it for every task (Spec: constitution 27).

    Raises Denied INVALID_PARAMS.
    """
    if stage is not Stage.TEST:
        if evidence:
            raise _invalid("evidence", "only TEST has evidence")
        return []
    for each in evidence:
        if each.task not in tasks:
            raise _invalid("evidence", f"there is no task {each.task}")
    if outcome is Outcome.PASSED:
        missing = [task for task in tasks if task not in {each.task for each in evidence}]
        if missing:
            raise _invalid("evidence", f"PASSED needs it for {', '.join(missing)}")
        if any(each.exit_status for each in evidence):
            raise _invalid("evidence", "PASSED needs exit_status 0 of every command")
    return [each.model_dump() for each in evidence]


def signals_in(stage: Stage, content: Mapping[str, Any], denied: Sequence[str]) -> list[Signal]:
    """The failure signals that the system finds itself; they oblige the REVIEW to reject.

    `denied` are the file patterns that the Implementer's role may never touch.
    """
    if stage is Stage.TASKS and not all(map(_is_verifiable, content["tasks"])):
        return [Signal.UNVERIFIABLE_TASK]
    if stage is Stage.IMPLEMENTATION:
        for made in content["artifacts"]:
            path = normal_path(made["path"])
            if not isinstance(path, str) or denying_pattern(path, denied):
                return [Signal.UNAUTHORISED_CHANGE]
    return []


def _is_verifiable(task: Mapping[str, Any]) -> bool:
    """Whether a task says how it is verified: in letters or digits that people see."""
    return any(char.isalnum() and not is_blank(char) for char in task["verify_by"])


def digest_of(
    stage: str, outcome: str, content: Mapping[str, Any], evidence: Sequence[Mapping[str, Any]]
) -> str:
    """The SHA-256 that an artifact is addressed by."""
    value = {"stage": stage, "outcome": outcome, "content": content, "evidence": evidence}
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _require_once(field: str, names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise _invalid(field, "the same one is there twice")


def _invalid(field: str, problem: str) -> Denied:
    return refuse(
        Code.INVALID_PARAMS,
        f"{field}: {problem}",
        "correct the named field",
        rule=RULE,
        **{field: problem},
    )
