"""What people do on a case's page: each action with its form, its preview and its service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.admin.acts import Act, ActRequest, Answer
from core.decision import Allow, Decision
from core.deeds import Deed
from governance.cases import forms as pages
from governance.cases import records
from governance.cases.facts import FINAL, CaseFacts, Next
from governance.cases.models import Artifact, Case
from governance.cases.vocabulary import Outcome, Stage, State
from governance.interventions import confirmation, rules, services
from governance.interventions.vocabulary import DEED_OF, CaseAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """One way to steer a case: its service, whether it is possible, and where it leads."""

    action: CaseAction
    serve: Callable[..., Any]
    shape: Callable[[dict[str, Any]], dict[str, Any]]
    can: Callable[[CaseFacts, Mapping[str, Any]], Decision]
    after: Callable[[CaseFacts, Mapping[str, Any]], Next]


def _amending(stage: Stage, action: CaseAction) -> Steering:
    return Steering(
        action=action,
        serve=services.amend_case,
        shape=lambda params: {"stage": stage, "content": params},
        can=lambda case, _: rules.can_amend(case, stage),
        after=lambda case, _: rules.after_amendment(case, stage),
    )


STEERINGS: Mapping[str, Steering] = {
    "amend-analysis": _amending(Stage.ANALYSIS, CaseAction.AMEND_ANALYSIS),
    "amend-tasks": _amending(Stage.TASKS, CaseAction.AMEND_TASKS),
    "overrule": Steering(
        action=CaseAction.OVERRULE_REVIEW,
        serve=services.overrule_review,
        shape=lambda params: {"outcome": Outcome(params["outcome"])},
        can=lambda case, params: rules.can_overrule(case, params["outcome"]),
        after=lambda case, params: rules.after_overruling(case.at, params["outcome"]),
    ),
    "extend": Steering(
        action=CaseAction.EXTEND_ROUNDS,
        serve=services.extend_case,
        shape=lambda params: params,
        can=lambda case, params: rules.can_extend(case.at, params["rounds"]),
        after=lambda case, params: rules.after_extension(case.at, params["rounds"]),
    ),
    "end": Steering(
        action=CaseAction.END,
        serve=services.end_case,
        shape=lambda params: params,
        can=lambda case, _: rules.can_end(case.at),
        after=lambda case, _: rules.after_end(case.at),
    ),
}


def _steer(name: str, form: type[pages.CaseForm]) -> Callable[[ActRequest], Answer]:
    def perform(call: ActRequest) -> Answer:
        steering, groups = STEERINGS[name], services.all_groups(call.person)
        given = _params(form, call.data)
        shaped = steering.shape(given)
        confirmed = None
        if rules.needs_code(groups, steering.action):
            confirmed = confirmation.confirm(
                token=str(call.data["token"]),
                code=str(call.data["code"]),
                purpose=purpose_of_act(name, call.row.id, call.data, shaped),
                person=call.person,
                now=call.now,
            )
        steering.serve(
            case_id=call.row.id,
            reason=call.reason,
            expected_version=call.data["version"],
            person=call.person,
            now=call.now,
            confirmed=confirmed,
            **shaped,
        )
        return f"{call.row.id}: {steering.action.value.replace('_', ' ')} is done."

    return perform


def _params(form: type[pages.CaseForm], data: Mapping[str, Any]) -> dict[str, Any]:
    filled = form()
    filled.cleaned_data = dict(data)
    return filled.params()


def purpose_of_act(
    name: str, case_id: str, data: Mapping[str, Any], shaped: Mapping[str, Any]
) -> confirmation.Purpose:
    """What a code confirms: the action on this case, at this version, with these parameters."""
    params = {key: getattr(value, "value", value) for key, value in shaped.items()}
    return confirmation.purpose_of(
        STEERINGS[name].action, case_id, data["version"], {**params, "reason": data["reason"]}
    )


def _act(name: str, form: type[pages.CaseForm], title: str, explanation: str, **more: Any) -> Act:
    return Act(
        name=name,
        title=title,
        explanation=explanation,
        deed=DEED_OF[STEERINGS[name].action],
        form=form,
        perform=_steer(name, form),
        version=lambda row: int(row.version),
        facts=_facts,
        **more,
    )


def _facts(row: Case) -> list[tuple[str, str]]:
    waits = [("Waits because of", row.paused_by)] if row.paused_by else []
    return [
        ("Title", row.title),
        ("State", f"{row.state} at {row.stage}"),
        ("Round", f"{row.round} of {row.max_rounds}"),
        *waits,
    ]


def _can_be(name: str, **params: Any) -> Callable[[Case], bool]:
    return lambda row: isinstance(STEERINGS[name].can(records.facts_of(row), params), Allow)


def _note(call: ActRequest) -> Answer:
    services.add_note(case_id=call.row.id, note=call.reason, person=call.person, now=call.now)
    return "The note is kept."


def _current(stage: Stage) -> Callable[[Case], str]:
    """The content that the form amends, shown next to it."""

    def shown(row: Case) -> str:
        rows = Artifact.objects.filter(case_id=row.id, stage=stage).order_by("-number")
        content = rows.values_list("content", flat=True).first() or {}
        if stage is Stage.TASKS:
            tasks = content.get("tasks", [])
            return "\n".join(f"{t['id']} | {t['task']} | {t['verify_by']}" for t in tasks)
        return "\n\n".join(f"{name}: {value}" for name, value in content.items())

    return shown


ACTS = (
    _act(
        "amend-analysis",
        pages.AmendAnalysisForm,
        "Amend ANALYSIS",
        "Your version takes the place of the ANALYSIS; the original stays. TASKS run again.",
        icon="edit_note",
        possible=_can_be("amend-analysis"),
        text=_current(Stage.ANALYSIS),
    ),
    _act(
        "amend-tasks",
        pages.AmendTasksForm,
        "Amend TASKS",
        "Your version takes the place of the TASKS; the original stays. IMPLEMENTATION runs again.",
        icon="checklist",
        possible=_can_be("amend-tasks"),
        text=_current(Stage.TASKS),
    ),
    _act(
        "overrule",
        pages.OverruleForm,
        "Overrule REVIEW",
        "The REVIEW stays as it was given and the record shows both. TEST still follows.",
        icon="balance",
        danger=True,
        possible=lambda row: any(
            _can_be("overrule", outcome=o)(row) for o in (Outcome.APPROVED, Outcome.REJECTED)
        ),
    ),
    _act(
        "extend",
        pages.ExtendForm,
        "Extend rounds",
        "The pause is lifted. The CONDUCTOR rules whether the case goes on.",
        icon="more_time",
        possible=lambda row: row.state == State.PAUSED and row.paused_by != "NON_VERIFIABLE",
    ),
    _act(
        "end",
        pages.CaseForm,
        "End case",
        "The case stops where it is and cannot be opened again.",
        icon="stop_circle",
        danger=True,
        possible=lambda row: row.state not in FINAL,
    ),
    Act(
        name="note",
        title="Add note",
        icon="sticky_note_2",
        deed=Deed.ADD_NOTE,
        explanation="Adds context for people. It changes nothing in the case.",
        form=pages.NoteForm,
        perform=_note,
        facts=_facts,
    ),
)
