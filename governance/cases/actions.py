"""What people do on a case's page: each action with its form, its preview and its service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.admin.acts import Act, ActRequest, Answer
from core.decision import Allow, Decision
from core.labels import Text
from core.permissions import Deed
from governance.cases import forms as pages
from governance.cases import records
from governance.cases.by_people import rules, services
from governance.cases.by_people.vocabulary import DEED_OF, CaseAction
from governance.cases.facts import FINAL, CaseFacts, Next
from governance.cases.models import Artifact, Case
from governance.cases.vocabulary import Outcome, Stage, State
from governance.cases.wording import next_step, round_shown
from governance.interventions import confirmation_codes


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
        steering, groups = STEERINGS[name], call.person.groups
        given = _params(form, call.data)
        shaped = steering.shape(given)
        token, who = str(call.data["token"]), call.person
        purpose = purpose_of_act(name, call.row, call.data, shaped)
        confirmed = None
        if rules.needs_code(groups, steering.action):
            code = str(call.data["code"])
            confirmed = confirmation_codes.confirm(
                token=token,
                code=code,
                purpose=purpose,
                person=who,
                now=call.now,
                clock=timezone.now(),
            )
        else:
            confirmation_codes.require_shown(token=token, purpose=purpose, person=who)
        steering.serve(
            case_id=call.row.id,
            reason=call.reason,
            expected_version=call.data["version"],
            person=call.person,
            now=call.now,
            confirmed=confirmed,
            **shaped,
        )
        moved = Case.objects.get(id=call.row.id)
        return gettext("Done. %(next)s") % {"next": next_step(records.position_of(moved))}

    return perform


def _params(form: type[pages.CaseForm], data: Mapping[str, Any]) -> dict[str, Any]:
    filled = form()
    filled.cleaned_data = dict(data)
    return filled.params()


def purpose_of_act(
    name: str, row: Case, data: Mapping[str, Any], shaped: Mapping[str, Any]
) -> confirmation_codes.Purpose:
    """What a code confirms: the action on this case, at this version, with these parameters."""
    params = {key: getattr(value, "value", value) for key, value in shaped.items()}
    return services.purpose_in(
        records.facts_of(row),
        STEERINGS[name].action,
        row.id,
        data["version"],
        {**params, "reason": data["reason"]},
    )


def _act(name: str, form: type[pages.CaseForm], title: Text, explanation: Text, **more: Any) -> Act:
    return Act(
        name=name,
        title=title,
        explanation=explanation,
        deed=DEED_OF[STEERINGS[name].action],
        form=form,
        perform=_steer(name, form),
        button=_("Show what will happen"),
        version=lambda row: int(row.version),
        facts=_facts,
        **more,
    )


def _facts(row: Case) -> list[tuple[str, str]]:
    at = records.position_of(row)
    return [(gettext("Now"), next_step(at)), (gettext("Round"), round_shown(at))]


def effect_of(name: str, row: Case, shaped: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What an action will do to a case, as rows of name and change, for its preview."""
    facts = records.facts_of(row)
    to = STEERINGS[name].after(facts, shaped).at
    rows = [
        (gettext("Then"), next_step(to)),
        (gettext("State"), _change(facts.at.state, to.state)),
        (gettext("Stage"), _change(facts.at.stage, to.stage)),
        (gettext("Round"), _change(round_shown(facts.at), round_shown(to))),
    ]
    if facts.record.violated:
        why = gettext(
            "An agent acted outside its office while the case was paused. "
            "Only a member of the Board lets the case go on."
        )
        stays = to.state is State.PAUSED
        rows.insert(1, (gettext("Why it stays paused") if stays else gettext("Violation"), why))
    return rows


def _change(was: str, now: str) -> str:
    return str(was) if was == now else f"{was} → {now}"


def _if_possible(name: str, **params: Any) -> Callable[[Case], bool]:
    return lambda row: isinstance(STEERINGS[name].can(records.facts_of(row), params), Allow)


def _note(call: ActRequest) -> Answer:
    services.add_note(case_id=call.row.id, note=call.reason, person=call.person, now=call.now)
    return gettext("The note is kept.")


def _newest(row: Case, stage: Stage) -> dict[str, Any]:
    """The content of a stage that a person amends."""
    found = Artifact.objects.filter(
        organisation_id=row.organisation_id, case_id=row.id, stage=stage
    ).order_by("-number")
    content: dict[str, Any] = found.values_list("content", flat=True).first() or {}
    return content


def _analysis(row: Case) -> dict[str, Any]:
    content = _newest(row, Stage.ANALYSIS)
    limits = content.get("constraints", "")
    return {**content, "constraints": limits if isinstance(limits, str) else "\n".join(limits)}


def _tasks(row: Case) -> dict[str, Any]:
    tasks = _newest(row, Stage.TASKS).get("tasks", [])
    return {
        "tasks": "\n".join(
            " | ".join(_on_a_line(t[name]) for name in ("id", "task", "verify_by")) for t in tasks
        )
    }


def _on_a_line(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def _other_outcome(row: Case) -> dict[str, Any]:
    """The outcome that the REVIEW can be overruled to now."""
    possible = [
        o for o in (Outcome.APPROVED, Outcome.REJECTED) if _if_possible("overrule", outcome=o)(row)
    ]
    return {"outcome": possible[0].value} if possible else {}


ACTS = (
    _act(
        "amend-analysis",
        pages.AmendAnalysisForm,
        _("Amend ANALYSIS"),
        _("Your version takes the place of the ANALYSIS; the original stays. TASKS run again."),
        icon="edit_note",
        possible=_if_possible("amend-analysis"),
        initial=_analysis,
    ),
    _act(
        "amend-tasks",
        pages.AmendTasksForm,
        _("Amend TASKS"),
        _(
            "Your version takes the place of the TASKS; the original stays. IMPLEMENTATION "
            "runs again."
        ),
        icon="checklist",
        possible=_if_possible("amend-tasks"),
        initial=_tasks,
    ),
    _act(
        "overrule",
        pages.OverruleForm,
        _("Overrule REVIEW"),
        _("The REVIEW stays as it was given and the record shows both. TEST still follows."),
        icon="balance",
        danger=True,
        possible=lambda row: bool(_other_outcome(row)),
        initial=_other_outcome,
    ),
    _act(
        "extend",
        pages.ExtendForm,
        _("Extend rounds"),
        _("The pause is lifted. The CONDUCTOR decides whether the case goes on."),
        icon="more_time",
        possible=lambda row: row.state == State.PAUSED and row.paused_by != "NON_VERIFIABLE",
    ),
    _act(
        "end",
        pages.CaseForm,
        _("End case"),
        _("The case stops where it is and cannot be opened again."),
        icon="stop_circle",
        danger=True,
        possible=lambda row: row.state not in FINAL,
    ),
    Act(
        name="note",
        title=_("Add note"),
        icon="sticky_note_2",
        deed=Deed.ADD_NOTE,
        explanation=_("Adds context for people. It changes nothing in the case."),
        form=pages.NoteForm,
        perform=_note,
        facts=_facts,
    ),
)
