"""What a person may do: the one table behind permissions, buttons and every service; pure.

To add a deed: one member here, one `Act` on an admin page, one `require_deed` in the service.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum

from core.actors import Actor, Person
from core.blank import is_blank
from core.decision import Allow, Code, Decision, Deny, deny, require
from core.language import gettext_noop as _


class PeopleGroup(StrEnum):
    """The groups of people that `migrate` creates."""

    BOARD = _("Board")
    HR = _("HR")
    REVIEWER = _("Reviewer")
    OBSERVER = _("Observer")


BOARD = (PeopleGroup.BOARD,)
HR = (PeopleGroup.HR,)
ALL = ("add", "change", "delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeedRule:
    """Who may do one thing to a row of `model`, and what they must give for it.

    `codenames` are its Django permissions, the first one is the deed's own.
    """

    model: str
    codenames: tuple[str, ...]
    title: str
    groups: tuple[PeopleGroup, ...]
    needs_reason: bool = True

    @property
    def app(self) -> str:
        """The Django app of its model."""
        return self.model.partition(".")[0]

    @property
    def permission(self) -> str:
        """The deed's id: `app.codename`, as `has_perm` takes it."""
        return f"{self.app}.{self.codenames[0]}"


def _deed(
    model: str,
    codename: str,
    title: str,
    groups: tuple[PeopleGroup, ...] = BOARD,
    *,
    needs_reason: bool = True,
) -> DeedRule:
    return DeedRule(
        model=model,
        codenames=(codename,),
        title=title,
        groups=groups,
        needs_reason=needs_reason,
    )


def _edit(model: str, title: str, verbs: Iterable[str] = ALL) -> DeedRule:
    name = model.partition(".")[2]
    codenames = tuple(f"{verb}_{name}" for verb in verbs)
    return DeedRule(model=model, codenames=codenames, title=title, groups=(*BOARD, *HR))


class Deed(Enum):
    """Everything that people do except reading."""

    ISSUE_KEY = _deed("orgchart.apikey", "issue_apikey", _("Issue key"), needs_reason=False)
    REVOKE_KEY = _deed("orgchart.apikey", "revoke_apikey", _("Revoke key"))
    ACTIVATE_AGENT = _deed(
        "orgchart.agent", "activate_agent", _("Deactivate or activate agent"), (*BOARD, *HR)
    )
    PAUSE_AGENT = _deed("orgchart.agent", "pause_agent", _("Pause or resume agent"), (*BOARD, *HR))
    TAKE_OVER_PAUSE = _deed("orgchart.agent", "take_over_pause", _("Take over pause"))
    STOP_ORGANISATION = _deed(
        "orgchart.organisation", "stop_organisation", _("Stop or resume everything")
    )
    LOAD_PACK = _deed(
        "orgchart.organisation", "load_organisation", _("Load pack"), needs_reason=False
    )
    EDIT_ORGANISATION = _edit("orgchart.organisation", _("Edit organisation"), ("change",))
    SET_BOARD_SETTINGS = _deed(
        "orgchart.organisation", "set_board_settings", _("Change settings of the Board")
    )
    CONFIRM_CHANGE = _deed("orgchart.pendingchange", "confirm_pendingchange", _("Confirm change"))
    REJECT_CHANGE = _deed("orgchart.pendingchange", "reject_pendingchange", _("Reject change"))
    WITHDRAW_CHANGE = _deed(
        "orgchart.pendingchange", "withdraw_pendingchange", _("Withdraw change"), (*BOARD, *HR)
    )
    EDIT_ROLE = _edit("orgchart.role", _("Edit role"))
    EDIT_GROUP = _edit("orgchart.group", _("Edit group"))
    EDIT_AGENT = _edit("orgchart.agent", _("Edit agent"), ("add", "change"))
    EDIT_ALIAS = _edit("orgchart.alias", _("Edit alias"))
    EDIT_MAIL_TYPE = _edit("orgchart.mailtyperule", _("Edit mail type"))
    EDIT_CONTACT = _edit("orgchart.contactrule", _("Edit contact rule"))
    RESTRICT_TOOL = _edit("orgchart.tooloverride", _("Restrict tool"))
    KEEP_MEMORY = _deed(
        "documents.memory",
        "keep_memory",
        _("Add, correct or withdraw memory"),
        needs_reason=False,
    )
    SWITCH_MODE = _deed("toolbox.session", "switch_mode", _("Open or close coding mode"))
    CANCEL_FRAME = _deed("toolbox.frame", "cancel_frame", _("Cancel delegated work"))
    APPROVE_SKILL = _deed("workspace.skill", "approve_skill", _("Approve skill"))
    READ_SKILLS = _deed(
        "workspace.skill", "scan_skill", _("Read skill folders again"), needs_reason=False
    )
    PUSH_BACK = _deed("workspace.repository", "push_back_repository", _("Push main branch back"))
    STOP_RUN = _deed("workspace.run", "stop_run", _("Stop run"))
    SETTLE_DEPLOYMENT = _deed("workspace.deployment", "settle_deployment", _("Settle deployment"))
    TAKE_DOWN = _deed("workspace.deployment", "take_down_deployment", _("Take service down"))
    START_SKILL = _deed("workspace.skill", "start_skill", _("Start skill"))
    ISSUE_CONTRACT = _deed(
        "contracts.contract", "issue_contract", _("Issue contract"), needs_reason=False
    )
    CANCEL_CONTRACT = _deed("contracts.contract", "cancel_contract", _("Cancel contract"))
    COMMENT_TASK = _deed(
        "tasks.task",
        "comment_task",
        _("Comment on task"),
        (*BOARD, PeopleGroup.OBSERVER),
        needs_reason=False,
    )
    APPROVE_TASK = _deed("tasks.task", "approve_task", _("Approve task"), needs_reason=False)
    WITHDRAW_TASK_APPROVAL = _deed(
        "tasks.task", "withdraw_task_approval", _("Withdraw approval of task")
    )
    RELEASE_TASK = _deed("tasks.task", "release_task", _("Release task"))
    MANAGE_TASK = _deed("tasks.task", "manage_task", _("Change task"), needs_reason=False)
    TAKE_IN_FEEDBACK = _deed(
        "tasks.feedback", "take_in_feedback", _("Add user feedback"), needs_reason=False
    )
    ANSWER_ESCALATION = _deed(
        "mailroom.escalation", "answer_escalation", _("Answer escalation"), needs_reason=False
    )
    ANSWER_REPORT = _deed(
        "mailroom.mail", "answer_mail", _("Answer report to the Board"), needs_reason=False
    )
    RESEND_NOTICE = _deed(
        "mailroom.outgoingnotice", "resend_outgoingnotice", _("Send notice again")
    )
    OPEN_CASE = _deed("governance.case", "open_case", _("Open case"), needs_reason=False)
    AMEND_CASE = _deed(
        "governance.case",
        "amend_case",
        _("Amend ANALYSIS or TASKS"),
        (*BOARD, PeopleGroup.REVIEWER),
    )
    OVERRULE_REVIEW = _deed("governance.case", "overrule_review", _("Overrule REVIEW"))
    EXTEND_CASE = _deed("governance.case", "extend_case", _("Extend case"))
    END_CASE = _deed("governance.case", "end_case", _("End case"))
    ADD_NOTE = _deed(
        "governance.case",
        "note_case",
        _("Add note"),
        (*BOARD, PeopleGroup.REVIEWER, PeopleGroup.OBSERVER),
    )
    KEEP_PEOPLE = DeedRule(
        model="auth.user",
        codenames=("change_user", "add_user", "view_user", "view_group"),
        title=_("Manage users"),
        groups=BOARD,
        needs_reason=False,
    )

    _value_: DeedRule

    @property
    def permission(self) -> str:
        """The deed's id: `app.codename`, as `has_perm` takes it."""
        return self.value.permission


def can_do(person: Person, deed: Deed, reason: str = "") -> Decision:
    """Decide whether a person may do this: by group, with a reason where one is needed.

    Spec: people 6. A superuser is in every group and a member of every organisation.
    """
    rule = deed.value
    if not _has_group(person, deed):
        return group_refusal(person.groups, rule.title, rule.groups, rule.permission)
    if not (person.is_member or person.is_superuser):
        return not_a_member()
    if rule.needs_reason and is_blank(reason):
        return reason_missing(deed)
    return Allow(f"permission {rule.permission}")


def _has_group(person: Person, deed: Deed) -> bool:
    return person.is_superuser or not person.groups.isdisjoint(deed.value.groups)


def require_deed(caller: Actor, deed: Deed, *, reason: str = "") -> None:
    """Check a person's deed; agents and the system follow rules of their own, but give a reason.

    Raises Denied: NOT_YOURS for a person whose groups do not allow it, INVALID_PARAMS without a
    reason that the deed needs.
    """
    if isinstance(caller, Person):
        require(can_do(caller, deed, reason))
    elif deed.value.needs_reason and is_blank(reason):
        require(reason_missing(deed))


def reason_missing(deed: Deed) -> Deny:
    """The refusal of a deed without the reason that it needs."""
    message = f"This needs a reason: {deed.value.title}"
    return deny(Code.INVALID_PARAMS, message, "say why", reason="empty")


def not_a_member() -> Deny:
    """The one refusal of a person who does not belong to the organisation acted on."""
    return deny(
        Code.NOT_YOURS,
        "You are not a member of this organisation",
        f"ask a {PeopleGroup.BOARD} member of it to add you",
        rule="people act on organisations they are members of (spec: people 35)",
    )


def group_refusal(
    groups: Iterable[str], title: str, allowed: Iterable[str], permission: str
) -> Deny:
    """The one refusal of a person whose groups do not allow something."""
    names = sorted(groups)
    rule = f"permission {permission}"
    if not names:
        return deny(
            Code.NOT_YOURS,
            "You have no role yet",
            f"ask a {PeopleGroup.BOARD} member to add you to a group",
            rule=rule,
        )
    return deny(
        Code.NOT_YOURS,
        f"Your groups ({', '.join(names)}) do not allow this: {title}",
        f"ask a member of {_any_of(allowed)}",
        rule=rule,
    )


def deed_of(permission: str) -> Deed | None:
    """The deed that a Django permission belongs to; None for looking."""
    app, _, codename = permission.partition(".")
    found = (d for d in Deed if d.value.app == app and codename in d.value.codenames)
    return next(found, None)


def _any_of(groups: Iterable[str]) -> str:
    return " or ".join(groups) or PeopleGroup.BOARD
